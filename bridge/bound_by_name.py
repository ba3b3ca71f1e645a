"""What a rename changes although every use stays bound: names that the compiler takes over into something else.

- The name of an expression becomes that of a member, in ``new { p.X }`` and in the tuple ``(a, b)``.
- A positional parameter of a record becomes a property, unless the record or a base of it has one of that name.
- Attributes name members by strings, and those of native calls take the name of the method itself.
- A static method called ``Main`` becomes the start of a program (which is for the caller to judge by the project).

Each finding is the half of a sentence that begins with the place or the name, like the conflicts of ``bindings``.
Lexical: a doubtful shape counts as one that binds where missing it would be silent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from bridge.code_text import Code

Inferred = Literal["anonymous type", "tuple"]

_GROUPS: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|<[\w\s.,?]*>")
_CHAIN: Final = re.compile(r"(?:(?:new\s+)?@?\w*\s*(?:(?:::|[?!]*\s*\.)\s*@?\w*\s*)*(?:::|[?!]*\s*\.)\s*)?")
_BEFORE_TUPLE: Final = re.compile(
    r"(?:=>|(?<![\w@])(?:return|in|await|select|by|on|equals|else)|[^\w\s)\]>\"@])\s*\Z"
)
_AFTER_TUPLE: Final = re.compile(
    r"\s*(?:(?:switch|is|as|in|with|into|select|where|equals)\b|==|[^\w\s=>\[?@])"
)
_LONGEST_BEFORE: Final = 200
"""Characters before a bracket that are looked at."""


def inferred_name(source: Code, start: int, end: int) -> Inferred | None:
    """Where the word from ``start`` to ``end`` gives its name to a member, without ``X =`` before it."""
    code = source.code
    if source.next_character(end).removeprefix("!") not in ("", ",", "}", ")"):
        return None
    opening = source.opening(start)
    if opening is None or code[opening] == "[" or not _CHAIN.fullmatch(_member_before(code, opening, start)):
        return None
    before = code[max(opening - _LONGEST_BEFORE, 0) : opening]
    if code[opening] == "{":
        return "anonymous type" if re.search(r"(?<![\w@])new\s*\Z", before) else None
    closing = source.closing(opening)
    is_tuple = (
        "," in _without_groups(code[opening + 1 : closing])
        and _BEFORE_TUPLE.search(before) is not None
        and not re.search(r"(?<![\w@])(?:is|case|not|and|or)\s*\Z", before)
        and _AFTER_TUPLE.match(code, closing + 1) is not None
    )
    return "tuple" if is_tuple else None


def _member_before(code: str, opening: int, start: int) -> str:
    """What stands in front of a word in its member of a list, brackets and what is in them left out."""
    return _without_groups(code[opening + 1 : start]).rpartition(",")[2].strip()


def _without_groups(code: str) -> str:
    while (shorter := _GROUPS.sub("", code)) != code:
        code = shorter
    return code


def is_member_access(source: Code, names: Iterable[str]) -> bool:
    """Whether one of the names is used behind a dot or in a property pattern."""
    return any(
        re.search(rf"(?:\.\s*@?{re.escape(n)}|\b{re.escape(n)}\s*:)(?!\w)", source.code) for n in names
    )


# --- records -------------------------------------------------------------------------------------------------

_RECORD: Final = re.compile(
    r"(?P<partial>\bpartial\s+)?\brecord\s+(?:(?:class|struct)\s+)?@?[^\W\d]\w*\s*(?:<[^<>(){};]*>\s*)?(?P<open>\()"
)


def taken_property(
    source: Code, start: int, end: int, names: Iterable[str], others: Iterable[Code]
) -> str | None:
    """Why a positional parameter of a record may come to have, or lose, a property of its own.

    The renamed word is the parameter, or a property that records further down may have for theirs.  ``names`` are the
    old and the new one.  A record with neither base nor body has its parameters for all of its properties.
    """
    record = _record_of(source, start, end)
    if record is None and not _is_in_record(source, start):
        return None
    is_open = record is not None and _is_open(source, record)
    has_base = is_open and _has_base(source, record)
    for other in others:
        for name in (name for name in names if name in other.text):
            is_searched = has_base or (is_open and other.path == source.path)
            place = _property(other, name) if is_searched else None
            if place is None:
                place = _parameter(other, name, is_of_derived=not has_base, but=(source, end))
            if place is not None:
                return (
                    f"{other.place(place)} declares {name!r} too: whether a positional parameter of a record makes a "
                    "property of its own, or means that of its base, depends on the name"
                )
    return None


def _is_open(source: Code, record: re.Match[str]) -> bool:
    """Whether there can be more properties in a record than its list has."""
    after = source.next_character(source.closing(record.start("open")) + 1)
    return record["partial"] is not None or after != ";"


def _has_base(source: Code, record: re.Match[str] | None) -> bool:
    if record is None:
        return False
    after = source.next_character(source.closing(record.start("open")) + 1)
    return record["partial"] is not None or after == ":"


def _is_in_record(source: Code, index: int) -> bool:
    """Whether the innermost braces around a place are the body of a record."""
    opening = source.opening(index)
    if opening is None or source.code[opening] != "{":
        return False
    begin = max(source.code.rfind(character, 0, opening) for character in ";{}") + 1
    return re.search(r"\brecord\s", source.code[begin:opening]) is not None


def is_positional(source: Code, start: int, end: int) -> bool:
    """Whether the word is the name of a positional parameter of a record, and so of a property."""
    return _record_of(source, start, end) is not None


def _record_of(source: Code, start: int, end: int) -> re.Match[str] | None:
    if "record" not in source.text or source.next_character(end) not in (",", ")", "="):
        return None
    opening = source.opening(start)
    return next((found for found in _RECORD.finditer(source.code) if found.start("open") == opening), None)


def _property(source: Code, name: str) -> int | None:
    """Where a property or field of the name is declared."""
    word = rf"(?<=[\w>\])?\s])\s@?{re.escape(name)}(?!\w)\s*"
    accessors = r"\{\s*(?:\[[^\]]*\]\s*)?(?:(?:private|protected|internal|readonly)\s+)*(?:get|set|init)\b"
    modifiers = r"\b(?:public|protected|internal|readonly|private)\b[^;{}()=]*"
    found = re.search(rf"{word}(?:{accessors}|=>)|{modifiers}{word}[;=,]", source.code)
    return None if found is None else source.code.index(name, found.start())


def _parameter(source: Code, name: str, *, is_of_derived: bool, but: tuple[Code, int]) -> int | None:
    """Where a record, or one that has a base, has a positional parameter of the name, other than the one at ``but``."""
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?=\s*[,)=])")
    for record in _RECORD.finditer(source.code) if "record" in source.text else ():
        opening = record.start("open")
        if is_of_derived and not _has_base(source, record):
            continue
        for found in word.finditer(source.code, opening, source.closing(opening) + 1):
            is_same = source.path == but[0].path and found.end() == but[1]
            if source.opening(found.start()) == opening and not is_same:
                return found.start()
    return None


# --- attributes ----------------------------------------------------------------------------------------------

_NATIVE: Final = re.compile(r"\b(DllImport|LibraryImport|UnsafeAccessor)(?:Attribute)?\s*\(")
_GIVEN_NAME: Final = re.compile(r"\b(?:EntryPoint|Name)\s*=|\bUnsafeAccessorKind\s*\.\s*Constructor\b")
_OF_PARAMETERS: Final = frozenset({"CallerArgumentExpression", "InterpolatedStringHandlerArgument"})
_NAMING: Final = ("UnsafeAccessor", "CollectionBuilder", *sorted(_OF_PARAMETERS))
_STRINGS: Final = re.compile(rf"\b(?P<attribute>{'|'.join(_NAMING)})(?:Attribute)?\s*(?P<open>\()")


def native_name(source: Code, start: int, end: int) -> str | None:
    """Why the name of a method without a body is that of something else: an attribute on it takes the name."""
    if source.next_character(end) not in ("(", "<"):
        return None
    begin = max(source.code.rfind(character, 0, start) for character in ";{}") + 1
    before = source.code[begin:start]
    found = _NATIVE.search(before)
    if found is None or _GIVEN_NAME.search(before):
        return None
    return (
        f"{source.place(begin + found.start())} has the attribute {found[1]}, which takes the method's name"
    )


def named_in_attributes(
    names: Iterable[str], sources: Iterable[Code], parameter: tuple[Code, int] | None
) -> Iterator[str]:
    """Attributes that name a member by a string equal to one of the names.

    ``parameter`` is where the renamed symbol is declared, if that may be a parameter: attributes that name parameters
    concern those of the same list only.
    """
    wanted = {f'"{name}"' for name in names}
    for source in sources:
        if not any(attribute in source.text for attribute in _NAMING):
            continue
        for found in _STRINGS.finditer(source.code):
            inside = source.text[found.end() : source.closing(found.start("open"))]
            written = {text for text in re.findall(r'"[^"\r\n]*"', inside) if text in wanted}
            if written and (found["attribute"] not in _OF_PARAMETERS or _same_list(source, found, parameter)):
                yield (
                    f"{source.place(found.start())} has the attribute {found['attribute']}, which names "
                    f"{min(written)} by a string"
                )


def _same_list(source: Code, attribute: re.Match[str], parameter: tuple[Code, int] | None) -> bool:
    if parameter is None or parameter[0].path != source.path:
        return False
    opening = source.opening(parameter[1])
    return opening is not None and opening < attribute.start() < source.closing(opening)
