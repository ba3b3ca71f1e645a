"""Diffs tell what changed, and can be checked by putting them together again."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from transactions.diff import DiffSummary, Hunk, hunks, summary, unified
from transactions.text import SourceText


def text(*lines: str) -> SourceText:
    return SourceText("".join(line + "\n" for line in lines))


def patched(before: SourceText, found: list[Hunk], after: SourceText) -> list[str]:
    """The lines of `before` with the hunks applied, checking every line that a hunk claims to be there."""
    old = [line.rstrip("\r\n\x85\u2028\u2029") for line in before.lines()]
    result: list[str] = []
    done = 0
    for hunk in found:
        start = hunk.original_start_line - 1 if hunk.original_line_count else hunk.original_start_line
        result += old[done:start]
        new_start = hunk.updated_start_line - 1 if hunk.updated_line_count else hunk.updated_start_line
        assert len(result) == new_start
        theirs = [line[1:] for line in hunk.lines if line[0] in " -"]
        assert theirs == old[start : start + hunk.original_line_count]
        ours = [line[1:] for line in hunk.lines if line[0] in " +"]
        assert len(ours) == hunk.updated_line_count
        result += ours
        done = start + hunk.original_line_count
    return result + old[done:]


def test_a_changed_line_is_shown_with_its_context_and_counted_as_changed() -> None:
    before = text("a", "b", "c", "d", "e", "f", "g", "h", "i")
    after = text("a", "b", "c", "d", "E", "f", "g", "h", "i")

    assert summary(before, after) == DiffSummary(added=0, removed=0, changed=1)
    assert hunks(before, after, 1) == [Hunk(4, 3, 4, 3, (" d", "-e", "+E", " f"))]
    assert hunks(before, after)[0].lines == (" b", " c", " d", "-e", "+E", " f", " g", " h")
    assert hunks(before, after, 0) == [Hunk(5, 1, 5, 1, ("-e", "+E"))]


def test_surplus_lines_count_as_added_or_removed() -> None:
    assert summary(text("a", "b"), text("a", "x", "y", "b")) == DiffSummary(2, 0, 0)
    assert summary(text("a", "x", "y", "b"), text("a", "z", "b")) == DiffSummary(0, 1, 1)
    assert summary(None, text("a", "b")) == DiffSummary(2, 0, 0)
    assert summary(text("a"), None) == DiffSummary(0, 1, 0)
    assert summary(text("a"), text("a")) == DiffSummary(0, 0, 0)


def test_an_added_file_starts_after_line_zero_and_a_deleted_one_too() -> None:
    assert hunks(None, text("a", "b")) == [Hunk(0, 0, 1, 2, ("+a", "+b"))]
    assert hunks(text("a"), None) == [Hunk(1, 1, 0, 0, ("-a",))]
    assert hunks(None, SourceText("")) == []


def test_a_missing_final_newline_is_said() -> None:
    before, after = SourceText("a\nb"), SourceText("a\nb\n")

    (hunk,) = hunks(before, after)
    assert hunk.lines == (" a", "-b", "+b")
    assert hunk.original_lacks_final_newline
    assert not hunk.updated_lacks_final_newline
    assert unified(before, after, "a.cs", "b.cs") == (
        "--- a.cs\n+++ b.cs\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
    )


def test_a_context_line_without_final_newline_is_said_once() -> None:
    shown = unified(SourceText("a\nb"), SourceText("x\nb"), "a", "a")

    assert shown == "--- a\n+++ a\n@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n"


def test_a_changed_line_end_is_a_changed_line() -> None:
    assert summary(SourceText("a\r\nb\r\n"), SourceText("a\r\nb\n")) == DiffSummary(0, 0, 1)


def test_hunks_whose_contexts_meet_are_one() -> None:
    lines = [str(number) for number in range(20)]
    changed = [*lines]
    changed[3], changed[10], changed[17] = "x", "y", "z"

    assert len(hunks(text(*lines), text(*changed), 3)) == 1
    assert len(hunks(text(*lines), text(*changed), 2)) == 3


def test_unified_of_equal_texts_is_empty_and_a_new_file_comes_from_nowhere() -> None:
    assert unified(text("a"), text("a"), "a", "a") == ""
    assert unified(None, text("a"), "a", "a") == "--- /dev/null\n+++ a\n@@ -0,0 +1,1 @@\n+a\n"


LINES = st.lists(st.sampled_from(["", "a", "b", "c", "{", "}"]), max_size=25)


@settings(max_examples=300, deadline=None)
@given(LINES, LINES, st.integers(0, 4), st.booleans(), st.sampled_from(["\n", "\r\n", "\u2028"]))
def test_hunks_put_together_give_the_new_lines(
    old: list[str], new: list[str], context: int, is_open: bool, line_end: str
) -> None:
    before, after = (
        SourceText(line_end.join([*old, ""])),
        SourceText(line_end.join(new if is_open else [*new, ""])),
    )
    found = hunks(before, after, context)

    assert patched(before, found, after) == [line.rstrip("\r\n\u2028") for line in after.lines()]
    counts = summary(before, after)
    body = [line for hunk in found for line in hunk.lines]
    assert counts.added + counts.changed == sum(line[0] == "+" for line in body)
    assert counts.removed + counts.changed == sum(line[0] == "-" for line in body)


def test_a_large_file_with_many_edits_is_compared_exactly() -> None:
    chosen = random.Random(3)
    old = [f"line {number} {'{' if number % 7 else ''}" for number in range(20_000)]
    new = [*old]
    for number in chosen.sample(range(20_000), 2_000):
        new[number] += " changed"
    before, after = text(*old), text(*new)

    assert summary(before, after) == DiffSummary(0, 0, 2_000)
    assert patched(before, hunks(before, after), after) == new


def test_a_large_gap_without_anything_in_common_is_replaced_whole() -> None:
    before, after = text(*["a"] * 3_000), text(*["b"] * 3_000)

    assert summary(before, after) == DiffSummary(0, 0, 3_000)
