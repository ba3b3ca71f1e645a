"""Where a name stands in text that a rename does not reach: comments, strings, code that is not compiled, other files.

Whole words, letter case and all; nothing is concluded from them, a person or an agent has to look.  Bounded in files
and bytes: what was not looked at is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from bridge.spots import Spot, Texts
from bridge.words import whole_words
from transactions.errors import UndecodableText
from transactions.text import Position, SourceText

Kind = Literal["Comment", "String", "InactiveCode", "OtherFile"]

OTHER_FILES: Final = frozenset(
    {".razor", ".cshtml", ".xaml", ".axaml", ".resx", ".json", ".csproj", ".props", ".targets"}
)
"""Files that speak of C# names, and that no C# language server renames in."""

SKIPPED_FOLDERS: Final = frozenset({"bin", "obj", ".git", ".vs", "node_modules"})

MOST_FILES: Final = 20_000
"""Files of all kinds that are met while looking for those that are read."""
MOST_BYTES: Final = 32 * 1024 * 1024
"""Of all files that are read together; about half a second."""
LARGEST_FILE: Final = 4 * 1024 * 1024
MOST_KEPT: Final = 1_000
NOT_ALL: Final = "not all of the files beside the code were searched"
LONGEST_LINE: Final = 160
"""Characters of a line that are shown."""


@dataclass(frozen=True, slots=True)
class Mention:
    """One place; line and column count from zero, columns in UTF-16 units."""

    kind: Kind
    path: Path
    line: int
    column: int
    text: str

    @property
    def position(self) -> Position:
        """The place in the text."""
        return Position(self.line, self.column)


@dataclass(frozen=True, slots=True)
class Mentions:
    """What was found, and why it may not be all."""

    found: tuple[Mention, ...]
    cut_short: str | None = None


def in_code_files(
    texts: Texts, paths: Iterable[Path], name: str, bound: frozenset[Spot]
) -> tuple[Mention, ...]:
    """The mentions in C# files.  ``bound`` are the words of that name that some symbol answers for; blocks.

    Of code between ``#if`` and ``#endif`` that no symbol answers for it is said that it is not compiled.
    """
    return tuple(mention for path in paths for mention in _in_code(texts, path, name, bound))


def _in_code(texts: Texts, path: Path, name: str, bound: frozenset[Spot]) -> Iterator[Mention]:
    text = texts.text(path)
    if text is None:
        return
    scan = texts.scan(path)
    for stretch in scan.stretches:
        kind: Kind = "Comment" if stretch.kind == "comment" else "String"
        for start in whole_words(text.text[stretch.start : stretch.end], name):
            yield _mention(kind, path, text, stretch.start + start)
    for word in scan.words:
        if word.is_conditional and word.value == name and Spot(path, word.end) not in bound:
            yield _mention("InactiveCode", path, text, word.start)


def _mention(kind: Kind, path: Path, text: SourceText, index: int) -> Mention:
    place = text.position_of_index(index)
    begin = max(text.text.rfind("\n", 0, index), text.text.rfind("\r", 0, index)) + 1
    line = text.text[begin : begin + LONGEST_LINE].splitlines() or [""]
    return Mention(kind, path, place.line, place.character, line[0].strip())


def in_other_files(root: Path, name: str) -> Mentions:
    """The mentions in files beside the code, below a folder; blocks."""
    found: list[Mention] = []
    left = MOST_BYTES
    is_whole = True
    for number, path in enumerate(_walk(root)):
        if number == MOST_FILES or len(found) > MOST_KEPT or left < 0:
            is_whole = False
            break
        if path.suffix.casefold() in OTHER_FILES:
            data = _bytes_of(path)
            left -= len(data)
            is_whole = is_whole and len(data) <= LARGEST_FILE
            found += islice(_in_plain(path, data, name), MOST_KEPT + 1 - len(found))
    is_whole = is_whole and len(found) <= MOST_KEPT
    return Mentions(tuple(found[:MOST_KEPT]), None if is_whole else NOT_ALL)


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED_FOLDERS)
        yield from (Path(folder, name) for name in sorted(files))


def _bytes_of(path: Path) -> bytes:
    """The beginning of a file; nothing for what is no file, or gone: mentions are a service."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError:
        return b""


def _in_plain(path: Path, data: bytes, name: str) -> Iterator[Mention]:
    if len(data) > LARGEST_FILE:
        return
    try:
        text = SourceText.decode(data)
    except UndecodableText:
        return
    for start in whole_words(text.text, name):
        yield _mention("OtherFile", path, text, start)
