"""The difference between two states of errors: counting, moving, and who is pardoned."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.diagnostics import Finding, compare, errors_among
from lsp_client.messages import Diagnostic, Position, Range

A, B, C = (Path(f"/s/{name}.cs") for name in "ABC")
Errors = dict[Path, tuple[Finding, ...]]


def found(path: Path, *errors: tuple[int, str]) -> tuple[Finding, ...]:
    return tuple(Finding(path, line, 4, "CS0103", message) for line, message in errors)


def test_a_document_that_one_side_does_not_name_has_no_errors_there() -> None:
    error = found(A, (1, "x"))
    assert compare({}, {A: error}, {A}).new == error
    assert compare({A: error}, {}, {A}).fixed == error


def test_a_shift_of_lines_and_columns_is_no_difference() -> None:
    before = {A: found(A, (1, "x"), (2, "x"), (9, "y"))}
    after = {A: tuple(Finding(A, f.line + 5, 0, f.id, f.message) for f in before[A])}
    assert compare(before, after, {A}) == compare({}, {}, ())


def test_one_more_of_the_same_is_new_and_the_one_at_a_new_place_is_named() -> None:
    difference = compare({A: found(A, (1, "x"), (5, "x"))}, {A: found(A, (1, "x"), (3, "x"), (5, "x"))}, {A})
    assert difference.new == found(A, (3, "x"))
    assert difference.fixed == ()


def test_another_message_or_id_is_another_error() -> None:
    other = (Finding(A, 1, 4, "CS0246", "x"),)
    difference = compare({A: found(A, (1, "x"))}, {A: other}, {A})
    assert (difference.new, difference.fixed) == (other, found(A, (1, "x")))


def test_an_error_may_move_between_changed_documents_only() -> None:
    before, after = {A: found(A, (1, "x"))}, {B: found(B, (7, "x"))}
    assert compare(before, after, {A, B}) == compare({}, {}, ())
    for changed in ({A}, {B}, set[Path]()):
        difference = compare(before, after, changed)
        assert (difference.new, difference.fixed) == (after[B], before[A])


def test_errors_are_the_compilers_and_a_report_for_two_projects_counts_once() -> None:
    place = Range(Position(2, 4), Position(2, 9))
    diagnostics = [
        Diagnostic(place, "not there", 1, "CS0103"),
        Diagnostic(place, "not there", 1, "CS0103"),
        Diagnostic(place, "unused", 2, "CS0168"),
        Diagnostic(place, "style", 1, "IDE0005"),
        Diagnostic(place, "no code", 1),
        Diagnostic(place, "hidden", 4, "CS8019"),
    ]
    assert errors_among(A, diagnostics) == (Finding(A, 2, 4, "CS0103", "not there"),)


def errors_of(path: Path) -> st.SearchStrategy[tuple[Finding, ...]]:
    one = st.tuples(st.integers(0, 4), st.sampled_from("xy"))
    return st.lists(one, max_size=5, unique=True).map(lambda errors: found(path, *errors))


def states() -> st.SearchStrategy[Errors]:
    return st.fixed_dictionaries({path: errors_of(path) for path in (A, B, C)})


def kinds(errors: Mapping[Path, Sequence[Finding]] | Sequence[Finding]) -> Counter[str]:
    listed = errors if isinstance(errors, Sequence) else [f for several in errors.values() for f in several]
    return Counter(finding.message for finding in listed)


@settings(deadline=None)
@given(states(), states(), st.sets(st.sampled_from([A, B, C])))
def test_new_and_fixed_errors_account_for_every_difference(
    before: Errors, after: Errors, changed: set[Path]
) -> None:
    difference = compare(before, after, changed)
    assert kinds(before) - kinds(difference.fixed) == kinds(after) - kinds(difference.new)
    assert set(difference.new) <= {f for several in after.values() for f in several}
    assert set(difference.fixed) <= {f for several in before.values() for f in several}
    back = compare(after, before, changed)
    assert (kinds(back.new), kinds(back.fixed)) == (kinds(difference.fixed), kinds(difference.new))
    if changed == {A, B, C}:
        assert kinds(difference.new) == kinds(after) - kinds(before)
    assert compare(before, before, changed) == compare({}, {}, ())
