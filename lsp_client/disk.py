"""The little that this package reads from disk by itself: source texts for going back to, and one file to ask about."""

from __future__ import annotations

import codecs
from collections import deque
from pathlib import Path
from typing import Final

from lsp_client.dialects.base import LoadTarget

MAX_DIRECTORIES: Final = 400
"""How many directories are looked through for a source file; the first one found will do."""

_SKIPPED: Final = frozenset({"bin", "obj", "node_modules"})
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16 LE, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_text(path: Path) -> str | None:
    """The text of a file without its byte order mark; ``None`` when it is missing or cannot be decoded.

    The encoding is that of the mark, else UTF-8, else Latin-1, which is how Roslyn reads a file that is no UTF-8.
    """
    try:
        data = path.read_bytes()
    except OSError:
        return None
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def has_byte_order_mark(path: Path) -> bool:
    """Whether the file starts with a byte order mark, or is no UTF-8."""
    try:
        data = path.read_bytes()
    except OSError:
        return False
    if any(data.startswith(mark) for mark, _ in _MARKS):
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def some_source_file(target: LoadTarget) -> Path | None:
    """A C# file that probably belongs to the solution: the first one in the nearest folders of its projects."""
    starts = [project.parent for project in target.projects if project.suffix.lower() == ".csproj"]
    waiting = deque([*dict.fromkeys(starts), target.root])
    for _ in range(MAX_DIRECTORIES):
        if not waiting:
            return None
        try:
            entries = sorted(waiting.popleft().iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.suffix.lower() == ".cs" and entry.is_file():
                return entry
        waiting.extend(
            entry
            for entry in entries
            if entry.name not in _SKIPPED and not entry.name.startswith(".") and entry.is_dir()
        )
    return None
