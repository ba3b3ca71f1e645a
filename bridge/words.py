"""The words of a C# text: identifiers in code, and the stretches that are comments or strings.

Not a parser.  It knows just enough of C#'s lexical grammar to say of each word where it stands: in code (holes of
interpolated strings and ``cref`` values of documentation comments included), in a comment, or in the text of a string.
What a word *means* is the server's to say.  Code between ``#if`` and ``#endif`` is read like any other and marked as
*conditional*: whether it is compiled depends on the project.

Places are indices into the Python string (code points).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from bridge.identifiers import value_of

Kind = Literal["code", "comment", "string"]

_IDENTIFIER: Final = r"@?(?:[^\W\d]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})(?:\w|[\u200c\u200d\u00ad]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*"

_TOKEN: Final = re.compile(
    rf"""
      (?P<directive>^[ \t]*\#[^\r\n]*)
    | (?P<comment>//[^\r\n]*|/\*(?s:.*?)(?:\*/|\Z))
    | (?P<opening>\$*"{{3,}}|\$@"|@\$"|@"|\$"|")
    | (?P<character>'(?:\\.|[^'\\\r\n])*'?)
    | (?P<word>{_IDENTIFIER})
    | (?P<number>\d\w*)
    | (?P<brace>[{{}}()\[\]:])
    """,
    re.VERBOSE | re.MULTILINE,
)
_DIRECTIVE: Final = re.compile(r"[ \t]*#[ \t]*(\w*)")
_CREF: Final = re.compile(r"""\b(?:cref|name)\s*=\s*(["'])(.*?)\1""")
_WORD: Final = re.compile(_IDENTIFIER)
_BRACES: Final = re.compile(r"\{+")


@dataclass(frozen=True, slots=True)
class Word:
    """One identifier of the text; ``value`` is the name as the compiler compares it."""

    value: str
    start: int
    end: int
    is_conditional: bool


@dataclass(frozen=True, slots=True)
class Stretch:
    """A comment, or the text of a string without its holes."""

    kind: Literal["comment", "string"]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What a text consists of."""

    words: tuple[Word, ...]
    stretches: tuple[Stretch, ...]


def scan(text: str) -> Scan:
    """The words and stretches of a C# text.  Never fails: an unfinished string ends where the text does."""
    scanner = _Scanner(text)
    scanner.code(0, in_hole=False)
    return Scan(tuple(scanner.words), tuple(scanner.stretches))


def whole_words(text: str, value: str) -> Iterator[int]:
    """The places where ``value`` stands as a whole word, whatever the text is."""
    for found in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text):
        yield found.start()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = []
        self.stretches: list[Stretch] = []
        self._depth = 0
        """How many ``#if`` are open."""

    def code(self, at: int, *, in_hole: bool) -> int:
        """Read code from ``at``; the index after it.  A hole ends before its ``}`` or format, code at the text's end."""
        nesting = 0
        while found := _TOKEN.search(self.text, at):
            at = found.end()
            match found.lastgroup:
                case "directive":
                    self._directive(found[0])
                case "comment":
                    self._comment(found.start(), at)
                case "opening":
                    at = self._string(found[0], at)
                case "character":
                    self.stretches.append(Stretch("string", found.start(), at))
                case "word":
                    self._word(found.start(), at)
                case "brace" if in_hole:
                    if nesting == 0 and found[0] in "}:" and not self._is_alias_colon(found.start()):
                        return found.start()
                    nesting += (found[0] in "{([") - (found[0] in "})]")
                case _:
                    pass
        return len(self.text)

    def _is_alias_colon(self, at: int) -> bool:
        return "::" in (self.text[at : at + 2], self.text[max(at - 1, 0) : at + 1])

    def _word(self, start: int, end: int) -> None:
        self.words.append(Word(value_of(self.text[start:end]), start, end, self._depth > 0))

    def _directive(self, line: str) -> None:
        found = _DIRECTIVE.match(line)
        name = found[1] if found else ""
        if name == "if":
            self._depth += 1
        elif name == "endif" and self._depth:
            self._depth -= 1

    def _comment(self, start: int, end: int) -> None:
        """A comment; what a documentation comment refers to is code."""
        done = start
        if self.text.startswith(("///", "/**"), start):
            for reference in _CREF.finditer(self.text, start, end):
                self.stretches.append(Stretch("comment", done, reference.start(2)))
                done = reference.end(2)
                for word in _WORD.finditer(self.text, reference.start(2), done):
                    self._word(word.start(), word.end())
        self.stretches.append(Stretch("comment", done, end))

    def _string(self, opening: str, at: int) -> int:
        """A string whose opening quotes end at ``at``; the index after its closing ones."""
        quotes = opening.lstrip("$@")
        holes = opening.count("$")
        if len(quotes) >= 3:
            return self._body(at, closing=quotes, holes=holes, escape="")
        return self._body(at, closing='"', holes=min(holes, 1), escape='"' if "@" in opening else "\\")

    def _body(self, at: int, *, closing: str, holes: int, escape: str) -> int:
        """The text of a string, and the code in its holes.

        ``holes`` is how many braces open one (0: none do); ``escape`` is a backslash, a quote for a doubled one, or
        empty in raw strings.
        """
        text, done = self.text, at
        while at < len(text):
            character = text[at]
            if (escape == "\\" and character == "\\") or (escape == '"' and text.startswith('""', at)):
                at += 2
            elif escape == "\\" and character in "\r\n" and not holes:
                break  # unfinished: it ends with its line
            elif text.startswith(closing, at):
                self.stretches.append(Stretch("string", done, at))
                return self._after_quotes(at, closing)
            elif holes and character == "{":
                braces = _BRACES.match(text, at)
                run = 1 if braces is None else braces.end() - at
                at += run
                if run >= holes and (holes > 1 or run % 2):
                    self.stretches.append(Stretch("string", done, at))
                    done = at = self.code(at, in_hole=True)
            else:
                at += 1
        self.stretches.append(Stretch("string", done, min(at, len(text))))
        return min(at, len(text))

    def _after_quotes(self, at: int, closing: str) -> int:
        end = at + len(closing)
        if len(closing) >= 3:
            while end < len(self.text) and self.text[end] == '"':
                end += 1
        return end
