"""Whether a set of files and folders is still as it was: by content, asked cheaply.

A file's content is hashed once and then trusted for as long as its size, times and inode stay; a file that was
changed shortly before it was hashed is hashed again, since a second change within the clock's grain would not show.
A folder counts by the names in it, without the places where builds write.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

GRAIN_NS = 2_000_000_000
"""How coarse a file system's clock may be: FAT counts in two seconds."""

RACE_MARGIN_NS = 50_000_000
"""What changed so shortly before somebody began to read it may have been read half old."""

IGNORED_FOLDERS = frozenset({"bin", "obj", "node_modules"})
"""Folders no default glob looks into, or where builds write; dot folders are ignored as well."""


@dataclass(frozen=True, slots=True)
class _Seen:
    stat: tuple[int, int, int, int]
    hashed_at_ns: int
    digest: bytes


class Fingerprints:
    """Digests of files and folders, remembered by path.  Safe to ask from several threads.

    ``is_inert`` may declare a file's content to mean no more than its absence; both have one digest then.
    """

    def __init__(self, is_inert: Callable[[Path, bytes], bool] = lambda _path, _content: False) -> None:
        self._is_inert = is_inert
        self._seen: dict[Path, _Seen] = {}

    def of(self, files: Iterable[Path], directories: Iterable[Path]) -> bytes:
        """One digest over the content of ``files`` (absent counts as a content) and the names in ``directories``."""
        whole = sha256()
        for path in files:
            whole.update(os.fsencode(path) + b"\0" + self._file(path))
        for path in directories:
            whole.update(os.fsencode(path) + b"\0" + _names(path))
        return whole.digest()

    def _file(self, path: Path) -> bytes:
        try:
            status = path.stat()
        except OSError:
            return b"absent"
        stat = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        seen = self._seen.get(path)
        if seen is not None and seen.stat == stat and seen.hashed_at_ns - status.st_mtime_ns > GRAIN_NS:
            return seen.digest
        now = time.time_ns()
        try:
            content = path.read_bytes()
        except OSError:
            return b"unreadable"
        digest = b"absent" if self._is_inert(path, content) else sha256(content).digest()
        self._seen[path] = _Seen(stat, now, digest)
        return digest


def _names(directory: Path) -> bytes:
    try:
        with os.scandir(directory) as entries:
            names = sorted(
                entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                for entry in entries
                if entry.name not in IGNORED_FOLDERS
            )
    except OSError:
        return b"absent"
    return sha256("\0".join(names).encode("utf-8", "surrogateescape")).digest()


def source_directories(roots: Sequence[Path]) -> tuple[Path, ...]:
    """The ``roots`` and every folder below them that a default glob looks into, sorted, links not followed."""
    found: dict[Path, None] = {}
    waiting = [root for root in roots if root.is_dir()]
    while waiting:
        directory = waiting.pop()
        if directory in found:
            continue
        found[directory] = None
        try:
            with os.scandir(directory) as entries:
                waiting += [
                    Path(entry.path)
                    for entry in entries
                    if entry.name not in IGNORED_FOLDERS
                    and not entry.name.startswith(".")
                    and entry.is_dir(follow_symlinks=False)
                ]
        except OSError:
            continue
    return tuple(sorted(found))


def untouched_since(paths: Iterable[Path], instant_ns: int) -> bool:
    """Whether none of these files and folders was written, replaced or relisted at an instant or later; blocks.

    ``instant_ns`` is of ``time.time_ns``.  What is absent counts as untouched: that it was there is not to be seen here.
    """
    since = instant_ns - RACE_MARGIN_NS
    return all(
        max(status.st_mtime_ns, status.st_ctime_ns) < since for path in paths for status in _statuses(path)
    )


def _statuses(path: Path) -> Iterator[os.stat_result]:
    """Of what is there, and of what it leads to: a link that was led elsewhere is new, and its new end may be old."""
    for look in (path.lstat, path.stat):
        with suppress(OSError):
            yield look()
