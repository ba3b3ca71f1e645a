"""Edits of one text, as values: sorted, disjoint, in characters of the *old* text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the characters from ``start`` to ``end`` (offsets into the old text) by ``text``."""

    start: int
    end: int
    text: str


class OverlapError(ValueError):
    """Two edits of one list touch the same characters: a mistake of the refactoring that made them."""


def in_order(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits by place, without those that change nothing; insertions at one place keep their order.

    Raises OverlapError.
    """
    ordered = sorted((edit for edit in edits if edit.start != edit.end or edit.text), key=_place)
    for before, after in pairwise(ordered):
        if after.start < before.end:
            raise OverlapError(f"{before} and {after}")
    return tuple(ordered)


def apply(text: str, edits: Sequence[Edit]) -> str:
    """The text after all edits. Raises OverlapError."""
    pieces: list[str] = []
    done = 0
    for edit in in_order(edits):
        pieces += (text[done : edit.start], edit.text)
        done = edit.end
    pieces.append(text[done:])
    return "".join(pieces)


def _place(edit: Edit) -> tuple[int, int]:
    # An insertion at the start of a replaced stretch comes before it.
    return edit.start, edit.end
