"""Members that the compiler uses by their names although nobody wrote them, and whose uses servers do not tell.

A server tells of the ``foreach`` that calls ``GetEnumerator``, of the ``await`` that calls ``GetAwaiter``, of the
deconstruction into variables and of the collection initializer, and ``bindings`` proves those.  It does not tell (seen
with both servers here) of most other syntax that the language binds by the name of a member: queries, ranges, patterns,
collection expressions, asynchronous loops, what a record writes itself.  To rename a member from or to such a name can
change what they use, without an error.

``TABLE`` says which syntax uses which names.  A name of it is in doubt only where its syntax is in the texts.  Patterns
look a few hundred characters far at most, so that long tables of values take no quadratic time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bridge.code_text import Code


@dataclass(frozen=True, slots=True)
class Syntax:
    """Syntax that uses members by name; ``hints`` are texts without one of which the pattern cannot fit."""

    title: str
    names: frozenset[str]
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _syntax(title: str, names: str, hints: str, pattern: str) -> Syntax:
    return Syntax(title, frozenset(names.split()), tuple(hints.split()), re.compile(pattern))


_INDEXED: Final = "Length Count Slice"
_LOOPED: Final = "GetEnumerator MoveNext Current"
_DISPOSED: Final = "DisposeAsync Dispose"

TABLE: Final = (
    _syntax(
        "a query",
        "Cast GroupBy GroupJoin Join OrderBy OrderByDescending Select SelectMany ThenBy ThenByDescending Where",
        "from",
        r"\bfrom\b[^;(){}=]{0,400}?\bin\b",
    ),
    _syntax("an index from the end", _INDEXED, "^", r"(?:[\[(=,:?>]|\breturn)\s*\^(?!=)"),
    _syntax(
        "a value of type Index or Range", _INDEXED, "Index Range", r"(?<![\w@])(?:Index|Range)\??\s+@?[^\W\d]"
    ),
    _syntax("a range", _INDEXED, "..", r"\.\."),
    _syntax("a list pattern", _INDEXED, "[", r"\b(?:is|case|not|and|or)\s*\[|\w\s*:\s*\["),
    _syntax(
        "a list pattern in a switch",
        _INDEXED,
        "switch",
        r"\bswitch\s*\{\s*\[|,\s*\[[^\[\]{};]*\]\s*(?:@?\w+\s*)?(?:when\b[^;{}]{0,400}?)?=>",
    ),
    _syntax("a spread element", _LOOPED, "..", r"[\[,]\s*\.\.\s*[\w(@]"),
    _syntax(
        "a using statement or declaration",
        _DISPOSED,
        "using",
        r"\busing\s*\(|\busing\s+(?!static\b|unsafe\b)[^;={}]{0,400}?[\w>\])?]\s+@?[^\W\d]\w*\s*=",
    ),
    _syntax("a foreach", _DISPOSED, "foreach", r"\bforeach\s*\("),
    _syntax(
        "an await foreach",
        "GetAsyncEnumerator MoveNextAsync Current DisposeAsync",
        "foreach",
        r"\bawait\s+foreach\b",
    ),
    _syntax(
        "an await",
        "GetAwaiter GetResult IsCompleted OnCompleted UnsafeOnCompleted",
        "await",
        r"\bawait\s+[^\s;,)]",
    ),
    _syntax(
        "an async method builder",
        "Create Start SetResult SetException SetStateMachine AwaitOnCompleted AwaitUnsafeOnCompleted Task",
        "AsyncMethodBuilder",
        r"\bAsyncMethodBuilder(?:Attribute)?\s*\(",
    ),
    _syntax(
        "a collection expression",
        "Add",
        "[",
        # An attribute is followed by what it stands on.
        r"(?:(?<![=!<>])=|=>|\?\?|\?\s|\breturn|[(:,])\s*(?!\[[^\[\]]*\]\s*[\w@\[])\[",
    ),
    _syntax(
        "a positional pattern",
        "Deconstruct",
        "(",
        r"\b(?:is|case|not|and|or)\s*(?:(?<=\s)@?[^\W\d][\w.]*(?:<[^<>();]*>)?\s*)?\(|[{,]\s*@?\w+\s*:\s*\(",
    ),
    _syntax(
        "a positional pattern in a switch",
        "Deconstruct",
        "switch",
        r"\bswitch\s*\{\s*(?:@?[\w.]+\s*)?\(|,\s*(?:@?[\w.]+\s*)?\([^;]{0,400}?\)\s*(?:@?\w+\s*)?(?:when\b[^;]{0,400}?)?=>",
    ),
    _syntax("a deconstruction in a foreach", "Deconstruct", "foreach", r"\bforeach\s*\(\s*(?:var\s*)?\("),
    _syntax(
        "a record",
        "Equals GetHashCode ToString PrintMembers EqualityContract Clone Deconstruct",
        "record",
        r"\brecord\s+(?:(?:class|struct)\s+)?@?[^\W\d]\w*\s*(?:[<({:;]|where\b)",
    ),
    _syntax(
        "an interpolated string handler",
        "AppendFormatted AppendLiteral",
        "InterpolatedStringHandler",
        r"\bInterpolatedStringHandler(?:Attribute)?\s*[\],(]",
    ),
    _syntax("a fixed statement", "GetPinnableReference", "fixed", r"\bfixed\s*\("),
)

NAMES: Final = frozenset().union(*(syntax.names for syntax in TABLE))
"""All names that are in doubt somewhere."""


def untold_use(names: Iterable[str], sources: Iterable[Code]) -> str | None:
    """Why uses of a method or property of one of these names may not be told; ``None`` when they are.  Blocks."""
    wanted = NAMES.intersection(names)
    concerned = [syntax for syntax in TABLE if not wanted.isdisjoint(syntax.names)]
    for source in sources if concerned else ():
        for syntax in concerned:
            if not any(hint in source.text for hint in syntax.hints):
                continue
            found = syntax.pattern.search(source.code)
            if found is not None:
                name = min(wanted & syntax.names)
                return (
                    f"The compiler uses {name!r} by its name for {syntax.title}, and there is one at "
                    f"{source.place(found.start())}"
                )
    return None
