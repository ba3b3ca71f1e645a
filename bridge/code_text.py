"""The code of a C# text with its comments and strings blanked out, so that a pattern finds syntax and never prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from bridge.words import Scan

_NOT_A_LINE_END: Final = re.compile(r"[^\r\n]")
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Code:
    """One document; ``label`` is its path for people.  Places are indices into ``text`` (code points)."""

    path: Path
    label: str
    text: str
    scan: Scan

    @cached_property
    def code(self) -> str:
        """As long as the text, with blanks for comments and for the text of strings; quotes of strings are left."""
        return "".join(self._pieces())

    def _pieces(self) -> Iterator[str]:
        done = 0
        for stretch in sorted(self.scan.stretches, key=lambda part: part.start):
            yield self.text[done : stretch.start]
            yield _NOT_A_LINE_END.sub(" ", self.text[stretch.start : stretch.end])
            done = stretch.end
        yield self.text[done:]

    def place(self, index: int) -> str:
        """A place for people: file and line from one."""
        return f"{self.label}:{self.text.count(chr(10), 0, index) + 1}"

    def next_index(self, index: int) -> int:
        """The first index from ``index`` on that is no blank; the text's length when there is none."""
        while index < len(self.code) and self.code[index].isspace():
            index += 1
        return index

    def next_character(self, index: int) -> str:
        """The first character from ``index`` on that is no blank; empty at the end."""
        place = self.next_index(index)
        return self.code[place : place + 1]

    def closing(self, opening: int) -> int:
        """The index of the bracket that closes the one at ``opening``; the text's length when none does."""
        depth = 0
        for index in range(opening, len(self.code)):
            character = self.code[index]
            depth += (character in _CLOSING) - (character in ")]}")
            if depth == 0:
                return index
        return len(self.code)

    def opening(self, index: int) -> int | None:
        """The index of the innermost bracket that is open at ``index``; ``None`` outside of all."""
        depth = 0
        for place in range(index - 1, -1, -1):
            character = self.code[place]
            if character in _CLOSING:
                if depth == 0:
                    return place
                depth -= 1
            depth += character in ")]}"
        return None
