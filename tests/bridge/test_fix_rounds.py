"""Which fixes of a round are made together."""

from pathlib import Path

import pytest

from bridge.fix_rounds import Fix, NotOneChange, fix_from, merged
from lsp_client import messages
from transactions.edits import CreateFile, DeleteFile, DocumentEdit, Operation, RenameFile, WorkspaceEdit
from transactions.text import Position, Range, TextEdit

A, B = Path("/w/A.cs"), Path("/w/B.cs")


def edit(start: int, end: int, text: str = "x") -> TextEdit:
    """In the first line."""
    return TextEdit(Range(Position(0, start), Position(0, end)), text)


def starts(made: WorkspaceEdit) -> dict[str, list[int]]:
    """Where the edits of a round begin, by file."""
    found: dict[str, list[int]] = {}
    for operation in made.operations:
        assert isinstance(operation, DocumentEdit)
        found[operation.path.name] = [one.range.start.character for one in operation.edits]
    return found


@pytest.mark.parametrize(
    ("second", "taken"),
    [((5, 6), True), ((4, 6), True), ((3, 6), False), ((2, 6), False), ((0, 0), False), ((3, 3), False)],
)
def test_a_fix_that_overlaps_or_touches_an_earlier_one_waits(second: tuple[int, int], taken: bool) -> None:
    made = merged([Fix({A: (edit(0, 3),)}), Fix({A: (edit(*second),)})])
    assert starts(made) == {"A.cs": [0, second[0]] if taken else [0]}


def test_a_fix_is_taken_as_a_whole_or_not_at_all() -> None:
    both = Fix({A: (edit(1, 2),), B: (edit(0, 1),)})
    assert starts(merged([Fix({A: (edit(0, 3),)}), both])) == {"A.cs": [0]}
    assert starts(merged([both, Fix({A: (edit(0, 3),)})])) == {"A.cs": [1], "B.cs": [0]}


def test_what_waits_is_in_nobody_s_way() -> None:
    fixes = [Fix({A: (edit(n, n + 1),)}) for n in range(6)]
    assert starts(merged(fixes)) == {"A.cs": [0, 2, 4]}


def test_the_same_fix_for_two_places_is_made_once() -> None:
    fix = Fix({A: (edit(0, 0), edit(4, 5))})
    assert starts(merged([fix, fix, Fix({})])) == {"A.cs": [0, 4]}


@pytest.mark.parametrize(
    "operation", [CreateFile(B), RenameFile(A, B), DeleteFile(A), DocumentEdit(A, None, (edit(9, 9),))]
)
def test_what_is_more_than_edits_of_documents_named_once_is_no_fix(operation: Operation) -> None:
    with pytest.raises(NotOneChange):
        fix_from(WorkspaceEdit((DocumentEdit(A, None, (edit(0, 1),)), operation)))


def test_a_fix_reaches_what_it_overlaps_or_touches_in_its_own_document() -> None:
    fix = Fix({A: (edit(2, 4),)})

    def reaches(path: Path, start: int, end: int) -> bool:
        return fix.reaches(path, messages.Range(messages.Position(0, start), messages.Position(0, end)))

    assert [reaches(A, *place) for place in ((0, 1), (0, 2), (3, 3), (4, 9), (5, 9))] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert not reaches(B, 3, 3)
