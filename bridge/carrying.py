"""Carrying words of a text through the edits of a rename, and telling renames from rewritten code.

Servers send the smallest difference that does it (``Order`` to ``OrderLine`` is an insert of ``Line``), several words
in one edit, and sometimes more than names (``total`` becomes ``this.total``).  So each edit is widened to whole words
first.  Where then as many words stand as before, with the same text between them, and each is the same or the old name
became the new one, the edit *renames*; else it *rewrites*.  In rewritten code the words are found again by their order,
from the last to the first, because what is written around a name mostly stands before it.

A word is known by its end: an index into the Python string (code points).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from bridge.identifiers import is_part
from bridge.words import Scan, Word
from transactions.text import Span


@dataclass(frozen=True, slots=True)
class Names:
    """How the symbol may be spelled before and after; attributes have a short form as well."""

    old: Set[str]
    new: Set[str]

    @property
    def both(self) -> Set[str]:
        """Before or after."""
        return self.old | self.new

    def fit(self, before: str, after: str) -> bool:
        """Whether a word may have become another: it is the same, or it was renamed."""
        return before == after or (before in self.old and after in self.new)


@dataclass(frozen=True, slots=True)
class Change:
    """A stretch of whole words in the old text, and what stands there in the new one."""

    start: int
    end: int
    new_start: int
    new_end: int
    is_rename: bool
    ends: dict[int, int]
    """The ends of its words, from the old text to the new; words that were written over are missing."""


class Carried:
    """The way of words from one text to another.  Immutable."""

    def __init__(self, changes: Sequence[Change]) -> None:
        """``changes`` in order, without overlaps."""
        self.changes = tuple(changes)
        self._ends = [change.end for change in self.changes]

    def end(self, place: int) -> int | None:
        """Where the word that ends at ``place`` ends now; ``None`` when it was written over."""
        number = bisect_left(self._ends, place)
        if number == len(self.changes) or place <= self.changes[number].start:
            before = self.changes[number - 1] if number else None
            return place if before is None else place + before.new_end - before.end
        change = self.changes[number]
        if place in change.ends:
            return change.ends[place]
        # No word ends here: a server may name a whole expression as a use.
        return change.new_end if place == change.end else None


@dataclass(frozen=True, slots=True)
class Scanned:
    """A text with its words."""

    text: str
    scan: Scan

    def words_in(self, start: int, end: int) -> Sequence[Word]:
        """The words that lie in a stretch."""
        words = self.scan.words
        first = bisect_left(words, start, key=lambda word: word.start)
        last = bisect_left(words, end + 1, key=lambda word: word.end)
        return words[first:last]


def carried(old: Scanned, new: Scanned, spans: Sequence[Span], names: Names) -> Carried | None:
    """The way from ``old`` to ``new`` by ``spans``, sorted and without overlaps; ``None`` when they do not lead there."""
    pieces: list[str] = []
    done = 0
    for start, end, text in spans:
        pieces += (old.text[done:start], text)
        done = end
    if "".join((*pieces, old.text[done:])) != new.text:
        return None
    changes: list[Change] = []
    longer = 0
    for start, end, growth in _widened(old.text, spans):
        changes.append(_change(old, new, (start, end), (start + longer, end + longer + growth), names))
        longer += growth
    return Carried(changes)


def _widened(old: str, spans: Sequence[Span]) -> list[tuple[int, int, int]]:
    """The spans grown to whole words, with how much longer the new text is; those that grow together are one."""
    grown: list[tuple[int, int, int]] = []
    for first, last, text in spans:
        start, end, growth = first, last, len(text) - (last - first)
        while start > 0 and is_part(old[start - 1]):
            start -= 1
        if start > 0 and old[start - 1] == "@":
            start -= 1
        while end < len(old) and is_part(old[end]):
            end += 1
        if grown and start < grown[-1][1]:
            earlier = grown.pop()
            start, end, growth = earlier[0], max(end, earlier[1]), growth + earlier[2]
        grown.append((start, end, growth))
    return grown


def _change(
    old: Scanned, new: Scanned, before: tuple[int, int], after: tuple[int, int], names: Names
) -> Change:
    words, new_words = old.words_in(*before), new.words_in(*after)
    is_rename = (
        len(words) == len(new_words)
        and all(names.fit(word.value, now.value) for word, now in zip(words, new_words, strict=True))
        and _between(old.text, before, words) == _between(new.text, after, new_words)
    )
    ends = (
        {word.end: now.end for word, now in zip(words, new_words, strict=True)}
        if is_rename
        else _found_again(words, new_words, names)
    )
    return Change(*before, *after, is_rename, ends)


def _between(text: str, place: tuple[int, int], words: Sequence[Word]) -> list[str]:
    """What stands around and between words; the ``@`` of a name belongs to it."""
    edges = [place[0], *(edge for word in words for edge in (word.start, word.end)), place[1]]
    return [text[start:end] for start, end in list(pairwise(edges))[::2]]


def _found_again(words: Sequence[Word], new_words: Sequence[Word], names: Names) -> dict[int, int]:
    """Each word at the last place that its successors leave it."""
    found: dict[int, int] = {}
    left = len(new_words)
    for word in reversed(words):
        number = next((n for n in range(left - 1, -1, -1) if names.fit(word.value, new_words[n].value)), None)
        if number is not None:
            found[word.end] = new_words[number].end
            left = number
    return found
