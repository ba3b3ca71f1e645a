"""Differences between two known texts, for people to look at.

Lines are those of `SourceText`, so the numbers agree with every other answer; a line differs when its text or its line
end does. Equal lines at both ends are cut off first. What is left is split at lines that occur once on both sides
(they anchor the comparison, and keep it fast on large files), and only the small gaps between anchors are compared
line by line.

Counting: where `r` lines are replaced by `a` lines in one place, min(r, a) of them are *changed*, the rest is *added*
or *removed*. So added + changed lines are led by `+` in the full diff, and removed + changed ones by `-`.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from transactions.text import SourceText

DEFAULT_CONTEXT_LINES = 3

MATCHER_CELLS_MAX = 4_000_000
"""Larger gaps (lines before × lines after) without an anchor are shown as replaced whole: comparing them takes seconds."""


class DiffSummary(NamedTuple):
    """Line counts of a difference, as the module's head defines them."""

    added: int
    removed: int
    changed: int


@dataclass(frozen=True, slots=True)
class Hunk:
    """One changed region with its context.

    Start lines count from one; a side without lines names the line before the place, as unified diffs do. `lines` are
    led by a space, `-` or `+` and have no line ends. The two flags say that the last line of that side, shown in this
    hunk, has no line end.
    """

    original_start_line: int
    original_line_count: int
    updated_start_line: int
    updated_line_count: int
    lines: tuple[str, ...]
    original_lacks_final_newline: bool = False
    updated_lacks_final_newline: bool = False


class Block(NamedTuple):
    """Lines `start:end` of the original are replaced by `new_start:new_end` of the updated text."""

    start: int
    end: int
    new_start: int
    new_end: int


def summary(before: SourceText | None, after: SourceText | None) -> DiffSummary:
    """How many lines differ. None stands for a file that is not there."""
    added = removed = changed = 0
    for block in blocks(_lines(before), _lines(after)):
        old, new = block.end - block.start, block.new_end - block.new_start
        changed += min(old, new)
        removed += max(0, old - new)
        added += max(0, new - old)
    return DiffSummary(added, removed, changed)


def hunks(
    before: SourceText | None, after: SourceText | None, context: int = DEFAULT_CONTEXT_LINES
) -> list[Hunk]:
    """The changed regions in order, each with up to `context` unchanged lines around it."""
    old, new = _lines(before), _lines(after)
    return [_hunk(old, new, group, context) for group in grouped(blocks(old, new), context)]


def unified(
    before: SourceText | None,
    after: SourceText | None,
    before_name: str,
    after_name: str,
    context: int = DEFAULT_CONTEXT_LINES,
) -> str:
    """The whole difference as unified text with LF line ends, for people; empty when there is none.

    Names are shown as given. It is not a patch for tools: lines end where C# ends them, and their line ends are left out.
    """
    found = hunks(before, after, context)
    if not found:
        return ""
    heads = (
        "--- " + (before_name if before is not None else "/dev/null"),
        "+++ " + (after_name if after is not None else "/dev/null"),
    )
    return "\n".join((*heads, *(line for hunk in found for line in _unified_lines(hunk)))) + "\n"


def _unified_lines(hunk: Hunk) -> Iterator[str]:
    original = f"-{hunk.original_start_line},{hunk.original_line_count}"
    updated = f"+{hunk.updated_start_line},{hunk.updated_line_count}"
    yield f"@@ {original} {updated} @@"
    last_original = max((i for i, line in enumerate(hunk.lines) if line[0] in " -"), default=-1)
    last_updated = max((i for i, line in enumerate(hunk.lines) if line[0] in " +"), default=-1)
    for index, line in enumerate(hunk.lines):
        yield line
        lacks_original = hunk.original_lacks_final_newline and index == last_original
        lacks_updated = hunk.updated_lacks_final_newline and index == last_updated
        if lacks_original or lacks_updated:
            yield "\\ No newline at end of file"


def _lines(text: SourceText | None) -> list[str]:
    return [] if text is None else text.lines()


def _bare(line: str) -> str:
    return (
        line.removesuffix("\n").removesuffix("\r")
        if line.endswith("\n")
        else line.rstrip("\r\x85\u2028\u2029")
    )


def _lacks_end(line: str) -> bool:
    return _bare(line) == line


def grouped(found: Sequence[Block], context: int) -> Iterator[list[Block]]:
    """Blocks whose contexts would meet are shown together."""
    group: list[Block] = []
    for block in found:
        if group and block.start - group[-1].end > 2 * context:
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def _hunk(old: list[str], new: list[str], group: list[Block], context: int) -> Hunk:
    start = max(0, group[0].start - context)
    end = min(len(old), group[-1].end + context)
    new_start = group[0].new_start - (group[0].start - start)
    new_end = group[-1].new_end + (end - group[-1].end)
    lines: list[str] = []
    shown = start
    for block in group:
        lines += (" " + _bare(line) for line in old[shown : block.start])
        lines += ("-" + _bare(line) for line in old[block.start : block.end])
        lines += ("+" + _bare(line) for line in new[block.new_start : block.new_end])
        shown = block.end
    lines += (" " + _bare(line) for line in old[shown:end])
    return Hunk(
        original_start_line=start + 1 if end > start else start,
        original_line_count=end - start,
        updated_start_line=new_start + 1 if new_end > new_start else new_start,
        updated_line_count=new_end - new_start,
        lines=tuple(lines),
        original_lacks_final_newline=end == len(old) and end > start and _lacks_end(old[-1]),
        updated_lacks_final_newline=new_end == len(new) and new_end > new_start and _lacks_end(new[-1]),
    )


def blocks(old: list[str], new: list[str]) -> list[Block]:
    """The replaced regions, in order, disjoint and never touching."""
    merged: list[Block] = []
    for block in _differences(old, new):
        if merged and merged[-1].end == block.start and merged[-1].new_end == block.new_start:
            last = merged.pop()
            block = Block(last.start, block.end, last.new_start, block.new_end)  # noqa: PLW2901  # joined to its neighbour
        merged.append(block)
    return merged


def _differences(old: list[str], new: list[str]) -> Iterator[Block]:
    pending = [Block(0, len(old), 0, len(new))]
    while pending:
        block = _trimmed(old, new, pending.pop())
        if block.start == block.end and block.new_start == block.new_end:
            continue
        if block.start == block.end or block.new_start == block.new_end:
            yield block
            continue
        gaps = _gaps_between_anchors(old, new, block)
        if gaps:
            pending += reversed(gaps)
        else:
            yield from _matched(old, new, block)


def _trimmed(old: list[str], new: list[str], block: Block) -> Block:
    """The block without the lines that are equal at its two ends."""
    start, end, new_start, new_end = block
    while start < end and new_start < new_end and old[start] == new[new_start]:
        start += 1
        new_start += 1
    while start < end and new_start < new_end and old[end - 1] == new[new_end - 1]:
        end -= 1
        new_end -= 1
    return Block(start, end, new_start, new_end)


def _gaps_between_anchors(old: list[str], new: list[str], block: Block) -> list[Block]:
    """What lies between the lines that occur once on both sides, in the longest common order; empty without any."""
    once = {line for line, count in Counter(old[block.start : block.end]).items() if count == 1}
    once &= {line for line, count in Counter(new[block.new_start : block.new_end]).items() if count == 1}
    if not once:
        return []
    where_new = {new[index]: index for index in range(block.new_start, block.new_end) if new[index] in once}
    pairs = [(index, where_new[old[index]]) for index in range(block.start, block.end) if old[index] in once]
    gaps: list[Block] = []
    done, new_done = block.start, block.new_start
    for index, new_index in _longest_rising(pairs):
        gaps.append(Block(done, index, new_done, new_index))
        done, new_done = index + 1, new_index + 1
    gaps.append(Block(done, block.end, new_done, block.new_end))
    return gaps


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of `pairs` (rising in the first number) that also rises in the second."""
    tails: list[int] = []  # the smallest second number that ends a rising run of each length
    tail_pairs: list[int] = []  # the index of the pair that holds it
    before: list[int] = []
    for index, (_, second) in enumerate(pairs):
        length = bisect_left(tails, second)
        before.append(tail_pairs[length - 1] if length else -1)
        tails[length : length + 1] = [second]
        tail_pairs[length : length + 1] = [index]
    chain: list[tuple[int, int]] = []
    index = tail_pairs[-1] if tail_pairs else -1
    while index >= 0:
        chain.append(pairs[index])
        index = before[index]
    return chain[::-1]


def _matched(old: list[str], new: list[str], block: Block) -> Iterator[Block]:
    start, end, new_start, new_end = block
    if (end - start) * (new_end - new_start) > MATCHER_CELLS_MAX:
        yield block
        return
    matcher = SequenceMatcher(None, old[start:end], new[new_start:new_end], autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag != "equal":
            yield Block(start + i, start + j, new_start + k, new_start + m)
