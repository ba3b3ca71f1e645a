"""Building a disk: real inodes are moved to where a snapshot has them, and given what it says that they hold."""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.faults.disk import Bytes, Snapshot, held_at


class Arranger:
    """Moves real inodes to where a snapshot has them. Whatever else is in the tops is thrown away."""

    def __init__(self, tops: Sequence[Path], attic: Path) -> None:
        self._tops = tuple(tops)
        self._attic = attic

    def arrange(self, snapshot: Snapshot, known: frozenset[int]) -> None:
        """Builds a snapshot; `known` are the inodes that must live on for later ones."""
        for top in self._tops:
            self._clear(os.fspath(top), known)
        paths = {inode: os.fspath(top) for inode, top in zip(snapshot.tops, self._tops, strict=True)}
        placed: dict[int, str] = {}
        for (directory, name), inode in snapshot.reachable():
            path = f"{paths[directory]}/{name}"
            if inode in placed:
                os.link(placed[inode], path, follow_symlinks=False)
                continue
            os.rename(self._attic / str(inode), path)
            placed[inode] = path
            if inode in snapshot.directories:
                paths[inode] = path
            else:
                _fill(path, snapshot.contents[inode])

    def _clear(self, directory: str, known: frozenset[int]) -> None:
        for name in os.listdir(directory):
            path = f"{directory}/{name}"
            status = os.lstat(path)
            is_directory = stat.S_ISDIR(status.st_mode)
            if is_directory:
                self._clear(path, known)
            if status.st_ino in known and (is_directory or status.st_nlink == 1):
                os.rename(path, self._attic / str(status.st_ino))
            elif is_directory:
                os.rmdir(path)
            else:
                os.unlink(path)


def _fill(path: str, wanted: Bytes) -> None:
    if stat.S_ISLNK(wanted.mode):
        return
    found = held_at(path)
    if found == wanted:
        return
    if found.content != wanted.content:
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, wanted.content)
        finally:
            os.close(descriptor)
    if (found.owner, found.group) != (wanted.owner, wanted.group):
        os.chown(path, wanted.owner, wanted.group)
    for name, _ in found.extended:
        with suppress(OSError):
            os.removexattr(path, name)
    for name, value in wanted.extended:
        os.setxattr(path, name, value)
    os.chmod(path, stat.S_IMODE(wanted.mode))
