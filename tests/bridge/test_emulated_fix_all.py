"""The bridge's own fix-all gives what single fixes by hand would give, or a refusal, and leaves nothing behind."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import msgspec
import pytest

from bridge import emulated_fix_all
from bridge.action_references import ActionReference
from bridge.code_actions import offered_at
from bridge.emulated_fix_all import Emulated, emulate, replay
from bridge.emulated_scopes import with_emulated_scopes
from bridge.errors import BridgeError
from bridge.fix_rounds import Rounds
from bridge.progress import to_nobody
from bridge.resolution import documents_at
from lsp_client.dialects.base import LoadMessage, LoadReport, ServerAction
from lsp_client.errors import ResponseError
from tests.bridge.agent import Scene
from tests.bridge.played_fixes import (
    HIDDEN,
    MARKS,
    OLD,
    USINGS,
    PlayedFixer,
    Rule,
    fixing,
    place_of,
    replacing,
)
from tests.bridge.played_server import Json, create, document_edit, rename
from tests.bridge.promises import keeps
from transactions.overlay import Overlay, Staged
from transactions.text import Range, SourceText

pytestmark = pytest.mark.anyio

APPLE, PEAR, PROGRAM = "Core/Apple.cs", "Core/Pear.cs", "App/Program.cs"
TEXTS = {
    APPLE: "old_a old_b\nold_c\n",
    PEAR: "nothing\n",
    PROGRAM: "x old_a\n",
}


def range_of(made: Scene, name: str, words: str) -> Range:
    """The first occurrence of some words in the current text."""
    text = made.workspace.text(made.file(name))
    assert text is not None
    start = text.text.index(words)
    return Range(text.position_at(start), text.position_at(start + len(words)))


async def offered(made: Scene, name: str, words: str) -> tuple[Sequence[ServerAction], int, Range]:
    """What is offered at some words, with the scopes of the bridge's own fix-all."""
    workspace, path, place = made.workspace, made.file(name), range_of(made, name, words)
    offer = await offered_at(workspace, documents_at(workspace, path)[0], place)
    session = await workspace.ready_session()
    diagnostics = await session.diagnostics(path)
    listing = await with_emulated_scopes(workspace, session, path, offer.listing, diagnostics)
    return listing.actions, offer.generation, place


async def found(made: Scene, name: str, words: str, title: str) -> tuple[ActionReference, ServerAction]:
    """List at some words, and take the fix of a title."""
    actions, generation, place = await offered(made, name, words)
    action = next(action for action in actions if action.title == title)
    reference = ActionReference(
        made.workspace.snapshot(),
        generation,
        made.file(name),
        place,
        action.title_path,
        action.kind,
        action.fix_all_scopes,
    )
    return reference, action


async def fixed_all(
    made: Scene, name: str, words: str, title: str, scope: str = "Solution", *, max_documents: int = 100
) -> Emulated:
    """List at some words, and make the fix of a title for a whole scope."""
    async with made.workspace.leases.exclusive():
        reference, action = await found(made, name, words, title)
        return await emulate(
            made.workspace,
            reference,
            action,
            scope,
            max_documents=max_documents,
            line_endings="adapt",
            tell=to_nobody,
        )


async def replayed(made: Scene, name: str, words: str, title: str, answers: Rounds) -> Overlay:
    """List again, and make the tree again from the answers of then."""
    async with made.workspace.leases.exclusive():
        reference, action = await found(made, name, words, title)
        return await replay(
            made.workspace,
            reference,
            action,
            "Solution",
            answers,
            max_documents=100,
            line_endings="adapt",
        )


async def refused(
    made: Scene, name: str, words: str, title: str, scope: str = "Solution", **more: int
) -> str:
    """The same, which is refused; why."""
    with pytest.raises(BridgeError) as refusal:
        await fixed_all(made, name, words, title, scope)
    assert refusal.value.code == "FixAllUnavailable"
    return refusal.value.message


def texts_of(made: Scene, result: Emulated) -> dict[str, str]:
    """What would differ from the current revision."""
    current = made.workspace.overlay
    return {
        made.workspace.relative(path): text.text
        for path in result.planned.touched_paths
        if (text := result.planned.text(path)) is not None and text != current.text(path)
    }


async def write(made: Scene, texts: Mapping[str, str]) -> None:
    """Put texts on the disk, and have them picked up."""
    for name, text in texts.items():
        made.file(name).write_text(text, encoding="utf-8", newline="")
    async with made.workspace.reading():
        pass


async def stage(made: Scene, texts: Mapping[str, str]) -> None:
    """Start a transaction whose first revision has these texts."""
    await made.agent.start()
    draft = made.workspace.overlay.draft()
    for name, text in texts.items():
        draft.put(made.file(name), Staged(SourceText(text), made.file(name)))
    made.workspace.require_transaction().stage(draft.freeze(), "test", "texts of a test")


async def by_hand(made: Scene, fixer: PlayedFixer, rule: Rule, texts: Mapping[str, str]) -> dict[str, str]:
    """The files after one fix after the other, the first one that is left each time."""
    now = dict(texts)
    for name in sorted(now):
        while found := rule.found_in(now[name]):
            (operation,) = rule.edits(made.file(name), now[name], found[0])
            edits = operation["edits"]
            assert isinstance(edits, list)
            for edit in reversed(edits):
                now[name] = applied(now[name], edit)
    return {name: text for name, text in now.items() if text != texts[name]}


def applied(text: str, edit: Mapping[str, object]) -> str:
    place = msgspec.convert(edit["range"], dict[str, dict[str, int]])
    lines = text.splitlines(keepends=True)

    def offset(position: dict[str, int]) -> int:
        return sum(map(len, lines[: position["line"]])) + position["character"]

    return text[: offset(place["start"])] + str(edit["newText"]) + text[offset(place["end"]) :]


# --- what it gives ------------------------------------------------------------------------------------------


@keeps("emulated.generated")
async def test_generated_code_is_neither_changed_nor_counted_nor_a_place_to_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_by_tools = {
        "Core/Form.Designer.cs": "old_a\n",
        "Core/Marked.cs": "// <auto-generated/>\nold_a\n",
        "Core/Told.cs": "old_a\n",
        "Core/.editorconfig": "root = true\n[Told.cs]\ngenerated_code = true\n",
    }
    async with fixing(tmp_path, monkeypatch, {**TEXTS, **made_by_tools}) as (made, _):
        result = await fixed_all(made, APPLE, "old_b", str(OLD.title))
        assert sorted(texts_of(made, result)) == [PROGRAM, APPLE]
        assert (result.affected_before, result.remaining_after) == (4, 0)
        for name in ("Core/Form.Designer.cs", "Core/Marked.cs", "Core/Told.cs"):
            actions, _, _ = await offered(made, name, "old_a")
            assert [action.fix_all_scopes for action in actions if action.title == OLD.title] == [()]
            assert "generated code" in await refused(made, name, "old_a", str(OLD.title))


async def test_every_occurrence_in_the_solution_is_fixed_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, _):
        result = await fixed_all(made, APPLE, "old_b", str(OLD.title))
        assert texts_of(made, result) == {APPLE: "new_a new_b\nnew_c\n", PROGRAM: "x new_a\n"}
        assert (result.affected_before, result.remaining_after, result.reason) == (4, 0, None)


@pytest.mark.parametrize(
    ("scope", "changed", "count"),
    [("Document", {APPLE}, 3), ("Project", {APPLE, PEAR}, 4), ("Solution", {APPLE, PEAR, PROGRAM}, 5)],
)
async def test_a_scope_holds_its_documents_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str, changed: set[str], count: int
) -> None:
    async with fixing(tmp_path, monkeypatch, {**TEXTS, PEAR: "old_p\n"}) as (made, _):
        result = await fixed_all(made, APPLE, "old_c", str(OLD.title), scope)
        assert texts_of(made, result).keys() == changed
        assert (result.affected_before, result.remaining_after) == (count, 0)


@keeps("emulated.by-hand")
async def test_the_result_is_that_of_single_fixes_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fixes that stand apart, touch, reach the next place, or mend a document at once."""
    rules = {
        "apart": OLD,
        "touching": MARKS,
        "reaching": Rule("CS0219", r"ab+", "Shorten", replacing(lambda m: "" if m[0] == "ab" else m[0][:-1])),
        "at once": USINGS,
    }
    pieces = [
        "old_x",
        " ",
        "\n",
        "! ",
        "! ! ",
        "ab ",
        "abb ",
        "using UnusedA;\n",
        "using UnusedB;\n",
        "\nusing UnusedC;\n",
    ]
    chance = random.Random(20261130)
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, fixer):
        for rule in list(rules.values()) * 3:
            fixer.rules = [rule]
            texts = {name: "".join(chance.choices(pieces, k=12)) for name in TEXTS}
            sample = next(piece for piece in pieces if rule.found_in(piece))
            texts[APPLE] += "\n" + sample
            await write(made, texts)
            found = rule.found_in(texts[APPLE])[0][0]
            result = await fixed_all(made, APPLE, found, str(rule.title))
            assert texts_of(made, result) == await by_hand(made, fixer, rule, texts)
            assert result.remaining_after == 0


async def test_hidden_diagnostics_are_fixed_and_one_question_mends_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {
        APPLE: "using UnusedA;\nusing Used;\nusing UnusedB;\nclass A;\n",
        PROGRAM: "using UnusedC;\nusing UnusedD;\n",
    }
    async with fixing(tmp_path, monkeypatch, texts, [USINGS]) as (made, fixer):
        fixer.listed.clear()
        result = await fixed_all(made, APPLE, "using UnusedA;\n", str(USINGS.title))
        assert texts_of(made, result) == {APPLE: "using Used;\nclass A;\n", PROGRAM: ""}
        assert (result.affected_before, result.remaining_after) == (4, 0)
        assert fixer.resolved == ["Program.cs", "Apple.cs"]
        assert fixer.reports == 2


async def test_a_title_that_no_other_action_bears_is_resolved_without_a_listing_and_listed_where_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {APPLE: "using UnusedA;\n", PEAR: "using UnusedC;\n", PROGRAM: "using UnusedD;\n"}
    async with fixing(tmp_path, monkeypatch, texts, [USINGS]) as (made, fixer):
        fixer.offers_nothing_in = frozenset({"Pear.cs"})
        result = await fixed_all(made, APPLE, "using UnusedA;\n", str(USINGS.title))
        assert fixer.listed[1:] == ["Pear.cs", "Pear.cs"], (
            "once a round: only a listing tells that it is not offered"
        )
        assert texts_of(made, result) == {APPLE: "", PROGRAM: ""}
        assert (result.affected_before, result.remaining_after) == (3, 1)


@keeps("emulated.titles")
async def test_titles_that_name_their_place_are_one_fix_where_the_list_has_their_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    static = Rule(
        "CS9001",
        r"(?<!static )\bmember_(\w)\b",
        lambda found: f"Make '{found[1]}' static",
        replacing(lambda found: f"static {found[0]}"),
    )
    texts = {APPLE: "member_a\nmember_b\n", PROGRAM: "member_c\n"}
    async with fixing(tmp_path, monkeypatch, texts, [static]) as (made, _):
        result = await fixed_all(made, APPLE, "member_a", "Make 'a' static")
        assert texts_of(made, result) == {
            APPLE: "static member_a\nstatic member_b\n",
            PROGRAM: "static member_c\n",
        }


@keeps("emulated.titles")
async def test_other_titles_are_other_fixes_and_what_they_would_mend_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typo = Rule("CS9002", r"typo_\w", lambda found: f"Change '{found[0]}' to 'right'.", replacing("right"))
    texts = {APPLE: "typo_a typo_b typo_a\n", PROGRAM: "typo_a\n"}
    async with fixing(tmp_path, monkeypatch, texts, [typo]) as (made, _):
        result = await fixed_all(made, APPLE, "typo_a", "Change 'typo_a' to 'right'.")
        assert texts_of(made, result) == {APPLE: "right typo_b right\n", PROGRAM: "right\n"}
        assert (result.affected_before, result.remaining_after) == (4, 1)


async def test_where_the_fix_is_not_offered_the_diagnostic_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, fixer):
        fixer.offers_nothing_in = frozenset({"Apple.cs"})
        result = await fixed_all(made, PROGRAM, "old_a", str(OLD.title))
        assert texts_of(made, result) == {PROGRAM: "x new_a\n"}
        assert (result.affected_before, result.remaining_after) == (4, 3)


async def test_with_a_project_that_was_not_loaded_nobody_knows_the_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, _):
        failure = LoadMessage("error", "Msbuild failed", made.file("App/App.csproj"))
        made.workspace.load = made.workspace.load.reported(LoadReport((failure,), ()))
        why = "App/App.csproj could not be loaded, so its diagnostics are not known."
        known = {}
        for name, scope in ((APPLE, "Solution"), (APPLE, "Project"), (PROGRAM, "Document")):
            result = await fixed_all(made, name, "old_a", str(OLD.title), scope)
            known[scope] = (result.affected_before, result.remaining_after, result.reason)
        assert known == {
            "Solution": (None, None, why),
            "Project": (3, 0, None),
            "Document": (None, None, why),
        }


async def test_what_is_staged_counts_and_not_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, _):
        await stage(made, {PEAR: "old_staged\n", PROGRAM: "clean\n"})
        result = await fixed_all(made, PEAR, "old_staged", str(OLD.title))
        assert texts_of(made, result) == {APPLE: "new_a new_b\nnew_c\n", PEAR: "new_staged\n"}


async def test_more_documents_than_allowed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, _):
        assert (await fixed_all(made, APPLE, "old_b", str(OLD.title), max_documents=2)).remaining_after == 0
        with pytest.raises(BridgeError, match="more than 1 documents") as refusal:
            await fixed_all(made, APPLE, "old_b", str(OLD.title), max_documents=1)
        assert refusal.value.code == "FixAllLimitExceeded"


async def test_made_again_of_the_answers_it_is_the_same_and_the_first_round_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {APPLE: "! \n! \n", PEAR: "! ! \n", PROGRAM: "! \n"}
    async with fixing(tmp_path, monkeypatch, texts, [MARKS]) as (made, fixer):
        await stage(made, {PEAR: "! ! staged\n"})
        result = await fixed_all(made, PEAR, "!", "Mark it")
        assert len(result.answers) == 2
        fixer.resolved.clear()
        tree = await replayed(made, PEAR, "!", "Mark it", result.answers)
        assert tree.has_same_content(result.planned)
        first_round = [answer.path.name for answer in result.answers[0]]
        assert sorted(fixer.resolved) == sorted(first_round)
        assert fixer.reports == 3


async def test_of_many_answers_some_are_asked_for_again_from_the_first_to_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.emulated_fix_all.MOST_ASKED_AGAIN", 3)
    texts = {APPLE: "old_a old_b old_c\n", PEAR: "old_d\n", PROGRAM: "old_e old_f\n"}
    async with fixing(tmp_path, monkeypatch, texts) as (made, fixer):
        result = await fixed_all(made, APPLE, "old_b", str(OLD.title))
        fixer.resolved.clear()
        tree = await replayed(made, APPLE, "old_b", str(OLD.title), result.answers)
        assert tree.has_same_content(result.planned)
        names = [answer.path.name for answer in result.answers[0]]
        assert len(names) == 6
        assert sorted(fixer.resolved) == sorted([names[0], names[2], names[5]])


async def test_a_server_that_would_answer_otherwise_now_refuses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, fixer):
        result = await fixed_all(made, PROGRAM, "old_a", str(OLD.title))
        fixer.rules = [Rule(OLD.id, OLD.pattern, OLD.title, replacing("other"))]
        with pytest.raises(BridgeError, match=r"another change of App/Program\.cs, line 1"):
            await replayed(made, PROGRAM, "old_a", str(OLD.title), result.answers)


# --- what offers it -----------------------------------------------------------------------------------------


async def scopes_at(made: Scene, name: str, words: str) -> dict[str, tuple[str, ...]]:
    async with made.workspace.leases.exclusive():
        actions, _, _ = await offered(made, name, words)
        return {action.title: action.fix_all_scopes for action in actions}


@keeps("emulated.one-diagnostic")
async def test_scopes_are_offered_for_a_fix_of_exactly_one_diagnostic_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Rule("CS0169", r"old_b", "Remove the field", replacing(""))
    suppress = Rule("CS0618", r"old_c", "Suppress CS0618", replacing(""))
    async with fixing(tmp_path, monkeypatch, TEXTS, [OLD, other, suppress]) as (made, fixer):
        fixer.refactorings = ["Extract method"]
        every = ("Document", "Project", "Solution")
        assert await scopes_at(made, PROGRAM, "old_a") == {"Extract method": (), str(OLD.title): every}
        assert (await scopes_at(made, APPLE, "old_b"))[str(OLD.title)] == (), (
            "two diagnostics, and which is it?"
        )
        assert (await scopes_at(made, APPLE, "old_c"))["Suppress CS0618"] == ()


@keeps("emulated.one-diagnostic")
async def test_a_hidden_diagnostic_at_the_place_makes_a_second_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen = Rule("CS9003", r"old_b", "Say it otherwise", replacing(""), HIDDEN)
    async with fixing(tmp_path, monkeypatch, TEXTS, [OLD, unseen]) as (made, _):
        assert "CS0618, CS9003" in await refused(made, APPLE, "old_b", str(OLD.title))


# --- what is refused ----------------------------------------------------------------------------------------


def swapping(found: re.Match[str]) -> str:
    return f"old_{found[1][::-1]}"


def spreading(found: re.Match[str]) -> str:
    return f"old_{found[1]}1 old_{found[1]}2"


@pytest.mark.parametrize("new", [swapping, spreading])
async def test_a_fix_after_which_no_fewer_are_left_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: object
) -> None:
    assert callable(new)
    rule = Rule("CS0618", OLD.pattern, "Use the new name", replacing(new))
    async with fixing(tmp_path, monkeypatch, TEXTS, [rule]) as (made, fixer):
        assert "4 CS0618 were there" in await refused(made, APPLE, "old_b", "Use the new name")
        assert fixer.reports == 2


@keeps("emulated.ends")
async def test_a_fix_that_makes_new_ones_elsewhere_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One place gives way to one in another document, for ever: caught when the count stands still."""

    def move_on(path: Path, text: str, found: re.Match[str]) -> Sequence[Json]:
        other = path.with_name("Pear.cs" if path.name == "Apple.cs" else "Apple.cs")
        start = place_of("", 0, 0)
        return [
            document_edit(path, [{"range": place_of(text, found.start(), found.end()), "newText": "x"}]),
            document_edit(other, [{"range": start, "newText": "old_n "}]),
        ]

    rule = Rule("CS0618", OLD.pattern, "Use the new name", move_on)
    texts = {APPLE: "aaa old_a\n", PEAR: "aaa\n", PROGRAM: "\n"}
    async with fixing(tmp_path, monkeypatch, texts, [rule]) as (made, _):
        assert "1 CS0618 were there, and 1" in await refused(made, APPLE, "old_a", "Use the new name")


@keeps("emulated.ends")
async def test_rounds_and_fixes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with fixing(tmp_path, monkeypatch, {APPLE: "! " * 20}, [MARKS]) as (made, _):
        monkeypatch.setattr(emulated_fix_all, "MOST_ROUNDS", 1)
        assert "after 1 rounds" in await refused(made, APPLE, "!", "Mark it")
        monkeypatch.setattr(emulated_fix_all, "MOST_ROUNDS", 2)
        assert (await fixed_all(made, APPLE, "!", "Mark it")).remaining_after == 0
        monkeypatch.setattr(emulated_fix_all, "MOST_FIXES", 12)
        assert "more than 12 single fixes" in await refused(made, APPLE, "!", "Mark it")


@keeps("emulated.ends")
async def test_seconds_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated_fix_all, "LONGEST", 0.2)
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, _), made.server.held("codeAction/resolve"):
        assert "not done after 0.2 s" in await refused(made, APPLE, "old_b", str(OLD.title))


@pytest.mark.parametrize("scope", ["Document", "Project"])
@keeps("fix-all.reach")
async def test_an_edit_outside_of_the_scope_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    def both(path: Path, text: str, found: re.Match[str]) -> Sequence[Json]:
        program = path.parents[1] / PROGRAM
        here: Json = {"range": place_of(text, found.start(), found.end()), "newText": "new"}
        there: Json = {"range": place_of("", 0, 0), "newText": "// new\n"}
        return [document_edit(path, [here]), document_edit(program, [there])]

    rule = Rule("CS0618", OLD.pattern, "Use the new name", both)
    async with fixing(tmp_path, monkeypatch, {**TEXTS, APPLE: "old_a\n", PROGRAM: ""}, [rule]) as (made, _):
        why = await refused(made, APPLE, "old_a", "Use the new name", scope)
        assert "Core/Apple.cs, line 1 it changes App/Program.cs, outside of the scope" in why
        assert (await fixed_all(made, APPLE, "old_a", "Use the new name")).remaining_after == 0


async def test_fixes_that_create_or_move_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {
        "creates": lambda path, _text, _found: create(path.with_name("New.cs"), "class New;\n"),
        "inserts": lambda path, _text, _found: create(path.with_name("New.cs"), "class New;\n")[1:],
        "moves": lambda path, _text, _found: [rename(path, path.with_name("Moved.cs"))],
    }
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, fixer):
        for name, edits in kinds.items():
            fixer.rules = [Rule("CS0618", OLD.pattern, "Use the new name", edits)]
            why = await refused(made, APPLE, "old_b", "Use the new name")
            assert ("New.cs, outside" if name == "inserts" else "creates, moves or deletes") in why


@keeps("emulated.linked")
async def test_a_file_of_two_projects_refuses_the_whole_when_it_is_affected_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {**TEXTS, "Core/Shared.cs": "clean\n"}
    async with fixing(tmp_path, monkeypatch, texts) as (made, fixer):
        fixer.shared = frozenset({"Shared.cs"})
        assert (await fixed_all(made, APPLE, "old_b", str(OLD.title))).affected_before == 4
        await write(made, {"Core/Shared.cs": "old_shared\n"})
        assert "Core/Shared.cs" in await refused(made, APPLE, "old_b", str(OLD.title))
        assert (await fixed_all(made, APPLE, "old_b", str(OLD.title), "Document")).affected_before == 3


async def test_a_server_that_cannot_resolve_one_of_them_refuses_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, fixer):
        fixer.broken = True
        with pytest.raises(BridgeError) as refusal:
            await fixed_all(made, APPLE, "old_b", str(OLD.title))
        assert refusal.value.code == "ActionUnavailable"


async def test_a_title_offered_twice_at_a_place_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = Rule("CS0612", r"old_c", str(OLD.title), replacing("other"))
    async with fixing(tmp_path, monkeypatch, TEXTS, [OLD, twice]) as (made, _):
        why = await refused(made, APPLE, "old_a", str(OLD.title))
        assert "more than once at Core/Apple.cs, line 2" in why


# --- nothing is left behind ---------------------------------------------------------------------------------


def sees_the_current_revision(made: Scene, fixer: PlayedFixer) -> bool:
    """Whether the server sees every file as the workspace has it."""
    texts = {name: made.workspace.text(made.file(name)) for name in TEXTS}
    return all(
        text is not None and made.server.seen(made.file(name)) == text.text for name, text in texts.items()
    )


async def ask_something(made: Scene) -> None:
    async with made.workspace.leases.exclusive():
        await made.workspace.ready_session()
        # What the bridge has told is on its way: a question is answered after it.
        await offered(made, PEAR, "staged")


async def staged_scene(made: Scene) -> None:
    await stage(made, {PEAR: "staged old_p\n", APPLE: "old_a ! !\n"})


async def test_after_success_the_server_is_back_at_the_current_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS) as (made, fixer):
        await staged_scene(made)
        await fixed_all(made, APPLE, "old_a", str(OLD.title))
        assert made.server.seen(made.file(PROGRAM)) == "x new_a\n", "it was shown the result to count"
        await ask_something(made)
        assert sees_the_current_revision(made, fixer)


async def test_after_an_error_the_server_is_back_at_the_current_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS, [MARKS]) as (made, fixer):
        await staged_scene(made)

        async def fail_on_what_is_new(params: msgspec.Raw) -> object:
            if "?" in made.server.seen(made.file(APPLE)):
                raise ResponseError("workspace/diagnostic", -32603, "Internal error: Exception")
            return await report(params)

        report = made.server.answers["workspace/diagnostic"]
        made.server.answers["workspace/diagnostic"] = fail_on_what_is_new
        with pytest.raises(ResponseError):
            await fixed_all(made, APPLE, "!", "Mark it")
        assert "?" in made.server.seen(made.file(APPLE))
        await ask_something(made)
        assert sees_the_current_revision(made, fixer)


async def in_the_second_round(made: Scene, act: object) -> None:
    """Do something while a fix-all is at a text of its own."""
    reached = anyio.Event()
    report = made.server.answers["workspace/diagnostic"]
    held = anyio.Event()

    async def wait_on_what_is_new(params: msgspec.Raw) -> object:
        if "?" in made.server.seen(made.file(APPLE)) and not reached.is_set():
            reached.set()
            await held.wait()
        return await report(params)

    made.server.answers["workspace/diagnostic"] = wait_on_what_is_new
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_fix_all_of_marks, made)
        await reached.wait()
        assert callable(act)
        act(tasks)
        held.set()


results: list[Emulated] = []


async def _fix_all_of_marks(made: Scene) -> None:
    results.append(await fixed_all(made, APPLE, "!", "Mark it"))


@keeps("fix-all.way-back")
async def test_after_a_cancel_the_server_is_back_at_the_current_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS, [MARKS]) as (made, fixer):
        await staged_scene(made)
        results.clear()
        await in_the_second_round(made, lambda tasks: tasks.cancel_scope.cancel())
        assert results == []
        await ask_something(made)
        assert sees_the_current_revision(made, fixer)


@keeps("fix-all.way-back")
async def test_a_server_killed_under_it_is_shown_the_same_text_and_then_the_current_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, TEXTS, [MARKS]) as (made, fixer):
        await staged_scene(made)
        results.clear()
        await in_the_second_round(made, lambda _tasks: made.server.kill())
        (result,) = results
        assert texts_of(made, result) == {APPLE: "old_a ? ? "}
        assert (result.affected_before, result.remaining_after) == (2, 0)
        await ask_something(made)
        assert sees_the_current_revision(made, fixer)
