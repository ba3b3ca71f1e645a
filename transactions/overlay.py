"""The tree as it would be after a commit: the baseline, and what differs from it.

An overlay never changes; each step makes a new one, and whoever holds the old one is safe. It is a small map from path
to what stands there, so a step costs as much as it changes, not as much as the workspace holds.

A file in the overlay remembers its `origin`, the baseline file that it is (after a rename: under another path). The
texts decide what changed; the origin decides what the change is called, and whose mode and owner the file on disk gets.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from transactions.baseline import Absent, Baseline
from transactions.text import SourceText

FileChangeKind = Literal["Added", "Modified", "Deleted"]

_KIND_ORDER = {"Added": 0, "Modified": 1, "Deleted": 2}


@dataclass(frozen=True, slots=True)
class Staged:
    """A file of the overlay that differs from the baseline. `origin` is None for a file that was created."""

    text: SourceText
    origin: Path | None


@dataclass(frozen=True, slots=True)
class FileChange:
    """How one path differs from the baseline.

    A move is `Deleted` at the old path (with `moved_to`) and `Added` at the new one (with `moved_from`). Where a moved
    file takes the place of another one the change is `Modified` and has `moved_from`.
    """

    path: Path
    kind: FileChangeKind
    before: SourceText | None
    after: SourceText | None
    moved_from: Path | None = None
    moved_to: Path | None = None


class Tree:
    """What an overlay and a draft of one have in common: looking at paths."""

    __slots__ = ("_entries", "baseline")

    _entries: Mapping[Path, Staged | None]
    baseline: Baseline

    def text(self, path: Path) -> SourceText | None:
        """The text at a path; None when nothing is there, or something whose text we cannot read."""
        if path in self._entries:
            staged = self._entries[path]
            return None if staged is None else staged.text
        return self.baseline.text(path)

    def exists(self, path: Path) -> bool:
        """Whether anything stands at a path."""
        if path in self._entries:
            return self._entries[path] is not None
        return not isinstance(self.baseline.read(path), Absent)

    def is_deleted(self, path: Path) -> bool:
        """Whether the path was there in the baseline and is not any more."""
        return (
            path in self._entries
            and not self.exists(path)
            and not isinstance(self.baseline.read(path), Absent)
        )

    def is_touched(self, path: Path) -> bool:
        """Whether the overlay holds something of its own for a path (which may still equal the baseline)."""
        return path in self._entries

    def origin(self, path: Path) -> Path | None:
        """The baseline file that stands at a path; None for a created file, and when nothing is there."""
        if path in self._entries:
            staged = self._entries[path]
            return None if staged is None else staged.origin
        return path if self.exists(path) else None

    @property
    def entries(self) -> Mapping[Path, Staged | None]:
        """What differs from the baseline, or was touched and may still equal it."""
        return self._entries

    @property
    def touched_paths(self) -> tuple[Path, ...]:
        """The paths that have an entry of their own, in path order."""
        return tuple(sorted(self._entries, key=os.fspath))


class Overlay(Tree):
    """An immutable virtual tree over a baseline. `Overlay(baseline)` is the baseline itself."""

    __slots__ = ()

    def __init__(self, baseline: Baseline, entries: Mapping[Path, Staged | None] | None = None) -> None:
        """`entries` maps a path to what stands there now, None for "deleted"."""
        self.baseline = baseline
        self._entries = MappingProxyType(dict(entries or {}))

    def draft(self) -> "Draft":
        """A copy that can be changed until it is frozen into the next overlay."""
        return Draft(self.baseline, dict(self._entries))

    def changes(self, baseline: Baseline | None = None) -> tuple[FileChange, ...]:
        """How the overlay differs from the baseline: added, then modified, then deleted files, each in path order."""
        over = self.baseline if baseline is None else baseline
        where_now = {
            staged.origin: path
            for path, staged in self._entries.items()
            if staged is not None and staged.origin is not None and staged.origin != path
        }
        changes = (
            self._change(over, path, staged, where_now.get(path)) for path, staged in self._entries.items()
        )
        found = [change for change in changes if change is not None]
        return tuple(sorted(found, key=lambda change: (_KIND_ORDER[change.kind], os.fspath(change.path))))

    @property
    def created(self) -> tuple[Path, ...]:
        """The files that the baseline does not have, in path order."""
        return tuple(change.path for change in self.changes() if change.kind == "Added")

    @staticmethod
    def _change(
        baseline: Baseline, path: Path, staged: Staged | None, moved_to: Path | None
    ) -> FileChange | None:
        before = baseline.text(path)
        if staged is None:
            if isinstance(baseline.read(path), Absent):
                return None
            return FileChange(path, "Deleted", before, None, moved_to=moved_to)
        moved_from = staged.origin if staged.origin != path else None
        if isinstance(baseline.read(path), Absent):
            return FileChange(path, "Added", None, staged.text, moved_from=moved_from)
        if before == staged.text:
            return None
        return FileChange(path, "Modified", before, staged.text, moved_from=moved_from, moved_to=moved_to)

    def has_same_content(self, other: "Overlay") -> bool:
        """Whether both give the same bytes at every path. How they came to it does not matter."""
        return all(self.text(path) == other.text(path) for path in self._paths_with(other))

    def _paths_with(self, other: "Overlay") -> Iterator[Path]:
        yield from self._entries
        yield from other.entries.keys() - self._entries.keys()


class Draft(Tree):
    """An overlay in the making. It checks nothing; whoever plans an edit does."""

    __slots__ = ("_own",)

    def __init__(self, baseline: Baseline, entries: dict[Path, Staged | None]) -> None:
        self.baseline = baseline
        self._entries = self._own = entries

    def put(self, path: Path, staged: Staged) -> None:
        """Lets `staged` stand at `path`."""
        self._own[path] = staged

    def delete(self, path: Path) -> None:
        """Lets nothing stand at `path`."""
        if isinstance(self.baseline.read(path), Absent):
            self._own.pop(path, None)
        else:
            self._own[path] = None

    def freeze(self) -> Overlay:
        """The overlay as it is now."""
        return Overlay(self.baseline, self._own)
