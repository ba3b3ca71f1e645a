"""What a refactoring is to the rest of the server."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bridge.embedded_server.edits import Edit
from bridge.embedded_server.syntax import Source


@dataclass(frozen=True, slots=True)
class Place:
    """Where actions are asked for: a stretch of one document.

    ``start`` and ``end`` are character offsets. ``exists`` tells whether a path is taken, on disk or by an open
    document; ``language_version`` is the C# version of the project if it can be told (``10.0``), else None.
    """

    source: Source
    path: Path
    start: int
    end: int
    exists: Callable[[Path], bool]
    language_version: float | None = None

    def has_language(self, version: float) -> bool:
        """Whether the project's language is not known to be older than ``version``."""
        return self.language_version is None or self.language_version >= version

    def touches(self, start: int, end: int) -> bool:
        """Whether the asked stretch and the characters from ``start`` to ``end`` meet, ends included."""
        return self.start <= end and start <= self.end


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to be created with this text."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an action does: edits of the document it was asked in, and files to create."""

    edits: tuple[Edit, ...]
    new_files: tuple[NewFile, ...] = ()


DocumentFix = Callable[[Source, Path], tuple[Edit, ...]]
"""The same change everywhere in one document; no edits where there is nothing to do or nothing may be done."""


@dataclass(frozen=True, slots=True)
class Action:
    """One entry of the menu. A group has ``children`` and nothing else; a leaf has ``run``.

    ``fix_all`` is there when the change can be made in a whole document, project or solution; then only in documents of
    projects that are not known to be older than ``language_version``.
    """

    title: str
    tag: str
    run: Callable[[], Outcome] | None = None
    fix_all: DocumentFix | None = None
    language_version: float | None = None
    children: tuple["Action", ...] = ()
