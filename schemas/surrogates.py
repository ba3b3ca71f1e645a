"""Lone surrogates: half characters that no UTF-8 text can carry.

C# strings and UTF-16 slices can hold one half of a surrogate pair.  JSON text written from such a string is refused
by the protocol library while it *writes*, which ends the connection instead of one call.  So every answer goes
through ``scrubbed`` on its way out, and each half becomes U+FFFD, the replacement character.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic_core import PydanticSerializationError, to_json

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
    try:
        to_json(value)  # the encoder that a lone surrogate breaks, and five times faster than looking
    except PydanticSerializationError:
        return _scrub(value)  # type: ignore[return-value]  # scrubbing keeps every type
    return value


def _scrub(value: object) -> object:
    if isinstance(value, str):
        return scrubbed_text(value)
    if isinstance(value, dict):
        return {_scrub(name): _scrub(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_scrub(item) for item in value]
    return value
