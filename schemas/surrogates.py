"""Lone surrogates: half characters that no UTF-8 text can carry.

C# strings and UTF-16 slices can hold one half of a surrogate pair.  JSON text written from such a string is refused
by the protocol library while it *writes*, which ends the connection instead of one call.  So every answer goes
through ``scrubbed`` on its way out, and each half becomes U+FFFD, the replacement character.
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def is_well_formed(text: str) -> bool:
    """Whether the text can be written as UTF-8, that is, holds no lone surrogate."""
    if text.isascii():  # known from the string's header; no scan
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def scrubbed_text(text: str) -> str:
    """The same text with U+FFFD in the place of each lone surrogate; the same object when there is none.

    Two halves that stand next to each other in the right order are one character, and become it.
    """
    if is_well_formed(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def scrubbed(value: T) -> T:
    """A JSON value (dict, list, str, number, bool, None) without lone surrogates, in names as well.

    The value itself comes back when it is clean already; nothing is changed in place.
    """
    clean = _scrub(value)
    return value if clean is value else clean  # type: ignore[return-value]  # scrubbing keeps every type


def _scrub(value: object) -> object:
    if isinstance(value, str):
        return scrubbed_text(value)
    if isinstance(value, dict):
        dirty = False
        members: dict[object, object] = {}
        for name, member in value.items():
            clean_name = name if type(name) is str and name.isascii() else _scrub(name)
            clean = member if member is None or type(member) in _PLAIN else _scrub(member)
            dirty = dirty or clean is not member or clean_name is not name
            members[clean_name] = clean
        return members if dirty else value
    if isinstance(value, list):
        items = [_scrub(item) for item in value]
        dirty = any(clean is not item for clean, item in zip(items, value, strict=True))
        return items if dirty else value
    return value


_PLAIN = frozenset({int, bool, float})
