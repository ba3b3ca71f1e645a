"""Every action, offered anywhere in every C# file at hand, leaves a text that is understood as well as before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.embedded_server import wire
from bridge.embedded_server.actions import add_braces, convert_namespace, sort_usings
from bridge.embedded_server.actions.base import Action, DocumentFix, Outcome, Place
from bridge.embedded_server.edits import Edit, apply
from bridge.embedded_server.syntax import Source
from tests.shared import CORPORA, SAMPLES
from transactions.text import Range, SourceText, TextEdit

ROOT = Path(__file__).parents[3]
FOLDERS = (ROOT / "scripts/sample", CORPORA / "bakery", SAMPLES)
FILES = [path for folder in FOLDERS for path in sorted(folder.rglob("*.cs"))]

FIXES = (
    sort_usings.sort,
    convert_namespace.to_file_scoped,
    convert_namespace.to_block_scoped,
    add_braces.add_everywhere,
)


def leaves(actions: list[Action]) -> Iterator[Action]:
    for action in actions:
        yield from leaves(list(action.children)) if action.children else (action,)


def places(source: Source, path: Path) -> Iterator[Place]:
    """One place in each line, at its first letter, and the whole text."""
    for line in range(source.lines.count):
        start = source.lines.starts[line] + len(source.indentation(line))
        yield Place(source, path, start, start, lambda _: False)
    yield Place(source, path, 0, len(source.text), lambda _: False)


def committed(text: SourceText, source: Source, edits: tuple[Edit, ...]) -> str:
    """The text as the bridge makes it from the same edits in UTF-16 positions."""
    lines = source.lines
    wire_edits = [
        TextEdit(Range(lines.position_at(edit.start), lines.position_at(edit.end)), edit.text)
        for edit in edits
    ]
    return text.with_edits(wire_edits).text


def test_the_bundled_sample_is_among_the_files() -> None:
    assert any(path.name == "Möhre.cs" for path in FILES)


def outcomes(source: Source, path: Path) -> dict[tuple[str, ...], Outcome]:
    """Everything that can be done anywhere in the text, each once."""
    found: dict[tuple[str, ...], Outcome] = {}
    for place in places(source, path):
        for action in leaves(wire.actions_at(place)):
            assert action.run is not None
            outcome = action.run()
            found[action.title, str(outcome)] = outcome
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_action_leaves_an_intact_text(path: Path) -> None:
    text = SourceText.decode(path.read_bytes())
    source = Source(text.text)
    for (title, _), outcome in outcomes(source, path).items():
        after = apply(source.text, outcome.edits)
        assert after != source.text, title
        assert wire.is_intact(source, outcome, after), title
        assert committed(text, source, outcome.edits) == after


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("fix", FIXES)
def test_every_fix_of_a_document_leaves_an_intact_text_with_nothing_more_to_fix(
    path: Path, fix: DocumentFix
) -> None:
    source = Source(SourceText.decode(path.read_bytes()).text)
    edits = fix(source, path)
    after = Source(apply(source.text, edits))
    assert wire.is_intact(source, Outcome(edits), after.text)
    assert fix(after, path) == ()


def test_a_text_of_ten_thousand_lines_is_answered() -> None:
    member = '    void M{0}()\n    {{\n        if (a{0})\n            b("é");\n    }}\n\n'
    text = (
        "using B;\nusing A;\n\nclass C\n{\n"
        + "".join(member.format(n) for n in range(1700))
        + "}\nclass D { }\n"
    )
    source = Source(text)
    assert source.lines.count > 10_000
    place = Place(source, Path("/nowhere/C.cs"), len(text) - 12, len(text) - 12, lambda _: False)
    assert [action.title for action in wire.actions_at(place)] == ["Move type to D.cs"]
    braces = Place(source, place.path, text.index("if"), text.index("if"), place.exists)
    (group,) = wire.actions_at(braces)
    run = group.children[1].run
    assert run is not None
    assert len(run().edits) == 3400
