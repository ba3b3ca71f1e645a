"""The proof that a rename changed names and nothing else: every use means afterwards what it meant before.

A rename that compiles may still have changed what code means: a call takes another overload, a field is hidden by a
local.  No server tells.  But a server can tell where a symbol is used, on any texts it is shown.  So the uses of each
symbol that the rename concerns are asked for twice, on the texts before and on those after, and the first answer, carried
through the edits, must be the second.

Concerned are the symbol itself, the symbols of all other words that the edit changes (overloads, when the server
renames them too), and every symbol that bears the new name already.  A word can only begin to mean something else when
it is spelled like the new name or was changed, so these are all.  Each such word is covered by the uses of its symbol;
a word that no symbol answers for is not bound to anything, and if it were afterwards, it would be among the new uses
of one that is.  Uses that are no words of that name are in the sets too, as servers report them: the ``foreach`` that
calls ``GetEnumerator``, the ``using`` that calls ``Dispose``.

What a server does not answer for proves nothing, and ``Unproved`` says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridge.carrying import Carried
from bridge.spots import Spot, Texts
from lsp_client.navigation import references
from lsp_client.session import Session

MOST_SYMBOLS: Final = 300
"""Symbols that are asked for; each costs two searches through the solution."""

MOST_PLACES: Final = 5
"""Places that one sentence names."""


class Unproved(Exception):
    """Whether uses still mean what they meant cannot be told; the message says why."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One symbol by its uses, declarations included, and the word it was asked for by."""

    asked: Spot
    uses: frozenset[Spot]


async def uses_of(session: Session, texts: Texts, spot: Spot) -> frozenset[Spot]:
    """All uses of the symbol at a word, on the texts that the server is shown; empty when it is bound to nothing.

    Raises UnknownPlace, DocumentNotSeen, and the failures of a question.
    """
    path, place = texts.question(spot)
    return texts.spots(await references(session, path, place))


async def symbols_at(
    session: Session, texts: Texts, words: Iterable[Spot], known: Sequence[Bound] = ()
) -> tuple[Bound, ...]:
    """The symbols that some words are bound to, each once, those that are ``known`` first.

    Raises Unproved when there are too many of them.
    """
    found = list(known)
    covered = {use for bound in found for use in bound.uses}
    for word in words:
        if word in covered:
            continue
        uses = await uses_of(session, texts, word)
        if not uses:
            continue  # bound to nothing
        found.append(Bound(word, uses))
        covered |= uses
        if len(found) > MOST_SYMBOLS:
            raise Unproved(f"More than {MOST_SYMBOLS} symbols are concerned by that name.")
    return tuple(found)


def carried_spot(spot: Spot, ways: Mapping[Path, Carried]) -> Spot | None:
    """Where a word is after the edits; ``None`` when it was written over as a part of more."""
    way = ways.get(spot.path)
    if way is None:
        return spot
    end = way.end(spot.end)
    return None if end is None else Spot(spot.path, end)


def carried_uses(uses: Collection[Spot], ways: Mapping[Path, Carried]) -> tuple[frozenset[Spot], int]:
    """Where uses are after the edits, and how many of them were written over as parts of more."""
    places = [carried_spot(use, ways) for use in uses]
    return frozenset(place for place in places if place is not None), places.count(None)


async def changed_bindings(
    session: Session, before: Texts, after: Texts, symbols: Sequence[Bound], ways: Mapping[Path, Carried]
) -> tuple[str, ...]:
    """What is used otherwise after the edits than before, as sentences; the server is shown the texts after.

    Raises Unproved, UnknownPlace, and the failures of a question.
    """
    told: list[str] = []
    for bound in symbols:
        expected, lost = carried_uses(bound.uses, ways)
        asked = carried_spot(bound.asked, ways)
        if asked is None or lost:
            told.append(
                f"the uses of {_named(before, bound)} cannot be followed through code that is rewritten"
            )
            continue
        found = await uses_of(session, after, asked)
        told += _differences(before, after, bound, expected, found)
    return tuple(told)


def _differences(
    before: Texts, after: Texts, bound: Bound, expected: frozenset[Spot], found: frozenset[Spot]
) -> Iterable[str]:
    name = _named(before, bound)
    if gone := expected - found:
        yield f"{_places(after, gone)} would not mean {name} any more"
    if come := found - expected:
        yield f"{_places(after, come)} would mean {name} and did not"


def _named(texts: Texts, bound: Bound) -> str:
    word = texts.word_of(bound.asked)
    return f"{'the symbol' if word is None else repr(word.value)} of {texts.place(bound.asked)}"


def _places(texts: Texts, spots: Collection[Spot]) -> str:
    shown = ", ".join(texts.place(spot) for spot in sorted(spots)[:MOST_PLACES])
    return shown if len(spots) <= MOST_PLACES else f"{shown} and {len(spots) - MOST_PLACES} more"
