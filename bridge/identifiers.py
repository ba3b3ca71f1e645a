"""Names as C# has them: what is an identifier, and what it is called once decorations are taken away.

Language servers take any text for a new name (``1 bad`` among them), so the bridge judges it.  Two spellings can be
one name: ``@total``, ``total`` and ``\\u0074otal`` are the same identifier to the compiler, and formatting characters
inside of one do not count.  ``value_of`` gives the name that the compiler compares.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

LONGEST_NAME: Final = 512
"""Characters; the compiler takes no longer identifier."""

ATTRIBUTE_SUFFIX: Final = "Attribute"

KEYWORDS: Final = frozenset(
    [
        "abstract",
        "as",
        "base",
        "bool",
        "break",
        "byte",
        "case",
        "catch",
        "char",
        "checked",
        "class",
        "const",
        "continue",
        "decimal",
        "default",
        "delegate",
        "do",
        "double",
        "else",
        "enum",
        "event",
        "explicit",
        "extern",
        "false",
        "finally",
        "fixed",
        "float",
        "for",
        "foreach",
        "goto",
        "if",
        "implicit",
        "in",
        "int",
        "interface",
        "internal",
        "is",
        "lock",
        "long",
        "namespace",
        "new",
        "null",
        "object",
        "operator",
        "out",
        "override",
        "params",
        "private",
        "protected",
        "public",
        "readonly",
        "ref",
        "return",
        "sbyte",
        "sealed",
        "short",
        "sizeof",
        "stackalloc",
        "static",
        "string",
        "struct",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "typeof",
        "uint",
        "ulong",
        "unchecked",
        "unsafe",
        "ushort",
        "using",
        "virtual",
        "void",
        "volatile",
        "while",
    ]
)
"""Reserved everywhere; as names they need ``@``."""

CONTEXTUAL_KEYWORDS: Final = frozenset(
    [
        "add",
        "alias",
        "allows",
        "and",
        "ascending",
        "args",
        "async",
        "await",
        "by",
        "descending",
        "dynamic",
        "equals",
        "extension",
        "field",
        "file",
        "from",
        "get",
        "global",
        "group",
        "init",
        "into",
        "join",
        "let",
        "managed",
        "nameof",
        "nint",
        "not",
        "notnull",
        "nuint",
        "on",
        "or",
        "orderby",
        "partial",
        "record",
        "remove",
        "required",
        "scoped",
        "select",
        "set",
        "unmanaged",
        "value",
        "var",
        "when",
        "where",
        "with",
        "yield",
        "_",
    ]
)
"""Words that mean something in some places only; a type of such a name changes what those places mean."""

_ESCAPE: Final = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")
_FIRST: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"})
_LATER: Final = _FIRST | {"Mn", "Mc", "Nd", "Pc", "Cf"}


class NotAnIdentifier(ValueError):
    """A text is no C# identifier; the message says why, as a whole sentence."""


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier: ``value`` is what the compiler compares, ``is_verbatim`` that it was written with ``@``.

    ``is_composed`` says that the text had letters and marks apart that ``value`` has as one character each (Unicode's
    form C): the language wants names in that form, servers write it, and the compiler compares character by character.
    """

    value: str
    is_verbatim: bool = False
    is_composed: bool = False


def read_name(text: str) -> Name:
    """The identifier that a whole text is.  Raises NotAnIdentifier."""
    verbatim = text.startswith("@")
    written = value_of(text)
    value = unicodedata.normalize("NFC", written)
    if not value:
        raise NotAnIdentifier("A name must not be empty.")
    if len(value) > LONGEST_NAME:
        raise NotAnIdentifier(f"A name has at most {LONGEST_NAME} characters; this one has {len(value)}.")
    for place, character in enumerate(value):
        if not is_part(character, first=place == 0):
            where = "begin with" if place == 0 else "hold"
            raise NotAnIdentifier(f"{text[:80]!r} is no C# identifier: none may {where} {character!r}.")
    if value in KEYWORDS and not verbatim:
        raise NotAnIdentifier(f"{value!r} is a keyword of C#; as a name it is written '@{value}'.")
    return Name(value, verbatim, is_composed=value != written)


def value_of(text: str) -> str:
    """What the compiler compares of an identifier's text: no ``@``, escapes resolved, no formatting characters."""
    plain = text.removeprefix("@")
    if "\\" in plain:
        plain = _ESCAPE.sub(_resolved, plain)
    return plain if plain.isascii() else "".join(c for c in plain if unicodedata.category(c) != "Cf")


def _resolved(found: re.Match[str]) -> str:
    code = int(found[1] or found[2], 16)
    return chr(code) if code <= 0x10FFFF else found[0]


def is_part(character: str, *, first: bool = False) -> bool:
    """Whether a character may stand in an identifier.  The compiler takes none beyond the first 65,536."""
    if character == "_" or character.isascii():
        return character == "_" or character.isalpha() or (character.isdigit() and not first)
    if ord(character) > 0xFFFF:
        return False
    return unicodedata.category(character) in (_FIRST if first else _LATER)


def without_attribute_suffix(name: str) -> str | None:
    """The short form of an attribute's name; ``None`` for a name that has none."""
    short = name.removesuffix(ATTRIBUTE_SUFFIX)
    return short if short and short != name else None
