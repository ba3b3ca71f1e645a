"""Calls that the compiler makes by a member's name although nobody wrote it, and that servers do not tell.

A server tells of the ``foreach`` that calls ``GetEnumerator``, the ``await`` that calls ``GetAwaiter``, the ``using``
that calls ``Dispose``, the deconstruction and the collection initializer.  It does not tell (seen with both servers
here) of the clauses of a query, of interpolated strings that a handler takes, nor of a record's printing.  To rename a
method from or to such a name can change what they call, without an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bridge.spots import Texts

QUERY_OPERATORS: Final = frozenset(
    [
        "Cast",
        "GroupBy",
        "GroupJoin",
        "Join",
        "OrderBy",
        "OrderByDescending",
        "Select",
        "SelectMany",
        "ThenBy",
        "ThenByDescending",
        "Where",
    ]
)
"""Called by the clauses of a query; a method of the type is taken before one of LINQ."""

OTHERS: Final = frozenset(
    {"AppendFormatted", "AppendLiteral", "GetPinnableReference", "PrintMembers", "Slice"}
)


def may_be_untold(names: Iterable[str], texts: Texts, files: Iterable[Path]) -> str | None:
    """Why uses of a method of one of these names may not be told; ``None`` when they are.

    ``files`` are all that hold the word ``from``; blocks.
    """
    for name in names:
        if name in OTHERS:
            return f"The compiler calls {name!r} where it is not written"
        if name in QUERY_OPERATORS:
            place = next((path for path in files if _has_query(texts, path)), None)
            if place is not None:
                return f"Queries call {name!r} without writing it, and there is one in {place.name}"
    return None


def _has_query(texts: Texts, path: Path) -> bool:
    words = {word.value for word in texts.scan(path).words}
    return {"from", "in"} <= words and not words.isdisjoint({"select", "group"})
