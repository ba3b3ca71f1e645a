"""Positions as the language server protocol counts them, over a Python string.

Three units meet here. Python indexes *characters* (code points). The protocol counts *UTF-16 units*, so a character
beyond U+FFFF counts twice. tree-sitter counts UTF-8 *bytes*, which is the business of ``syntax``.

Lines are Roslyn's lines: they end at ``\\r\\n``, ``\\n``, ``\\r``, and also at U+0085, U+2028 and U+2029, which
the protocol's own text does not know. Whoever counts differently is wrong by a line from there on.

``transactions.text`` knows the same lines, but it is strict, as befits edits; a question that comes over the wire is
read as the protocol says (a column past the end of its line means that end), and refactorings think in characters.
"""

import re
from bisect import bisect_right

from transactions.text import Position

_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")

LINE_BREAKS = "\r\n\x85\u2028\u2029"
"""Every character that ends a line or is part of what ends it."""


class OutsideTextError(ValueError):
    """A position that does not exist in the text, or stands inside a surrogate pair."""


def utf16_length(text: str) -> int:
    """The number of UTF-16 units that ``text`` takes."""
    if text.isascii():
        return len(text)
    return len(text) + sum(1 for character in text if character > "\uffff")


class LineMap:
    """The lines of one text, and the way between character offsets and UTF-16 positions."""

    __slots__ = ("_text", "starts")

    def __init__(self, text: str) -> None:
        self._text = text
        self.starts: tuple[int, ...] = (0, *(match.end() for match in _LINE_BREAK.finditer(text)))
        """Character offset at which each line begins; a text has at least one line."""

    @property
    def count(self) -> int:
        """The number of lines; a final line break opens one more, empty line."""
        return len(self.starts)

    def line_of(self, offset: int) -> int:
        """The zero-based line that holds the character offset."""
        return bisect_right(self.starts, offset) - 1

    def end_with_break(self, line: int) -> int:
        """The character offset after the line break of ``line``, or the end of the text."""
        return self.starts[line + 1] if line + 1 < len(self.starts) else len(self._text)

    def visible_end(self, line: int) -> int:
        """The character offset where the line break of ``line`` begins, or the end of the text."""
        end = self.end_with_break(line)
        start = self.starts[line]
        while end > start and self._text[end - 1] in LINE_BREAKS:
            end -= 1
        return end

    def line_break(self, line: int) -> str:
        """The characters that end ``line``; empty for the last one."""
        return self._text[self.visible_end(line) : self.end_with_break(line)]

    def position_at(self, offset: int) -> Position:
        """The UTF-16 position of a character offset."""
        line = self.line_of(offset)
        return Position(line, utf16_length(self._text[self.starts[line] : offset]))

    def offset_at(self, position: Position) -> int:
        """The character offset of a UTF-16 position.

        A character past the end of its line means the visible end of the line, as the protocol says; a position
        between ``\\r`` and ``\\n`` is one, though, and stays. The first character of the line after the last one
        means the end of the text (Roslyn accepts that).

        Raises OutsideTextError for lines that do not exist and for the middle of a surrogate pair.
        """
        if position.line == self.count and position.character == 0:
            return len(self._text)
        if not 0 <= position.line < self.count or position.character < 0:
            raise OutsideTextError(f"there is no line {position.line}, character {position.character}")
        start = self.starts[position.line]
        content = self._text[start : self.end_with_break(position.line)]
        if position.character > utf16_length(content):
            return self.visible_end(position.line)
        if content.isascii():
            return start + position.character
        return start + _characters_in(content, position.character)


def _characters_in(text: str, units: int) -> int:
    """How many characters of ``text`` take exactly ``units`` UTF-16 units."""
    taken = 0
    for index, character in enumerate(text):
        if taken >= units:
            if taken > units:
                break
            return index
        taken += 2 if character > "\uffff" else 1
    if taken == units:
        return len(text)
    raise OutsideTextError(f"UTF-16 unit {units} is inside a surrogate pair")
