"""Directories under a root, held open.

The repository is not trusted: any directory in it may be a link, or become one while we work. So a directory is reached
from the root one component at a time, never through a link, and kept as a descriptor; work is done relative to it. Its
device and inode are remembered when it is first opened, and every later opening must find the same ones.

A directory is named by its path relative to the root, as a tuple of components; the root is `()`.
"""

import errno
import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from transactions.system import System

Directory = tuple[str, ...]
Inode = tuple[int, int]  # device, inode

OPEN_DIRECTORIES_MAX = 128
"""Far below the usual limit of 1,024 descriptors, which the whole process shares."""

READ_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one reading of a file found."""

    inode: Inode
    mode: int
    owner: int
    group: int
    links: int
    sha256: bytes


class Places:
    """The open directories of one commit. A context manager; leaving it closes them all."""

    def __init__(self, system: System, root: Path) -> None:
        """`root` is physical (no links in it). Raises OSError when it cannot be opened."""
        self.system = system
        self.root = root
        self._known: dict[Directory, Inode] = {}
        self._open: OrderedDict[Directory, int] = OrderedDict()
        self._root_descriptor = system.open_directory(os.fspath(root))

    def __enter__(self) -> "Places":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in (*self._open.values(), self._root_descriptor):
            with suppress(OSError):  # nothing was written through a directory's descriptor
                self.system.close(descriptor)
        self._open.clear()

    def descriptor(self, directory: Directory) -> int:
        """The descriptor of a directory, good until `OPEN_DIRECTORIES_MAX` others were asked for.

        Raises FileNotFoundError, or OSError: ENOTDIR or ELOOP for a link, ESTALE when it is not the directory it was.
        """
        if not directory:
            return self._root_descriptor
        descriptor = self._open.get(directory)
        if descriptor is not None:
            self._open.move_to_end(directory)
            return descriptor
        descriptor = self.system.open_directory(directory[-1], self.descriptor(directory[:-1]))
        try:
            self._require_same(directory, descriptor)
        except OSError:
            self.system.close(descriptor)
            raise
        self._open[directory] = descriptor
        self._close_surplus()
        return descriptor

    def pair(self, one: Directory, another: Directory) -> tuple[int, int]:
        """The descriptors of two directories, both good at the same time however deep they lie."""
        self.descriptor(one)
        second = self.descriptor(another)
        return self.descriptor(one), second

    def _require_same(self, directory: Directory, descriptor: int) -> None:
        inode = inode_of(self.system.fstat(descriptor))
        if self._known.setdefault(directory, inode) != inode:
            raise OSError(errno.ESTALE, "the directory was replaced meanwhile")

    def _close_surplus(self) -> None:
        while len(self._open) > OPEN_DIRECTORIES_MAX:
            _, surplus = self._open.popitem(last=False)
            self.system.close(surplus)

    def forget(self, directory: Directory) -> None:
        """Closes a directory that is being removed and forgets its identity."""
        self._known.pop(directory, None)
        descriptor = self._open.pop(directory, None)
        if descriptor is not None:
            with suppress(OSError):
                self.system.close(descriptor)

    def device(self, directory: Directory) -> int:
        """The device that a directory lies on."""
        self.descriptor(directory)
        return self._known[directory][0] if directory else self.system.fstat(self._root_descriptor).st_dev

    def inode(self, directory: Directory, name: str) -> Inode | None:
        """Who stands at a name; None for nobody."""
        try:
            return inode_of(self.system.lstat(name, self.descriptor(directory)))
        except FileNotFoundError:
            return None

    def is_directory(self, directory: Directory, name: str) -> bool:
        """Whether a name stands for a directory, and not for a link to one. Raises OSError."""
        return self._is_kind(directory, name, stat.S_ISDIR)

    def is_file(self, directory: Directory, name: str) -> bool:
        """Whether a name stands for a regular file. Raises OSError."""
        return self._is_kind(directory, name, stat.S_ISREG)

    def _is_kind(self, directory: Directory, name: str, is_kind: Callable[[int], bool]) -> bool:
        try:
            return is_kind(self.system.lstat(name, self.descriptor(directory)).st_mode)
        except FileNotFoundError:
            return False

    def facts(self, directory: Directory, name: str) -> FileFacts:
        """Reads a regular file. Raises FileNotFoundError, or OSError (ELOOP for a link, ESTALE for what is no file)."""
        descriptor = self.system.open_file(name, self.descriptor(directory))
        try:
            return self.facts_of(descriptor)
        finally:
            self.system.close(descriptor)

    def facts_of(self, descriptor: int) -> FileFacts:
        """Reads an open regular file from its current place."""
        status = self.system.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.ESTALE, "not a regular file any more")
        digest = hashlib.sha256()
        while chunk := self.system.read(descriptor, READ_CHUNK_BYTES):
            digest.update(chunk)
        mode = stat.S_IMODE(status.st_mode)
        return FileFacts(
            inode_of(status), mode, status.st_uid, status.st_gid, status.st_nlink, digest.digest()
        )

    def require_in_place(self, directory: Directory) -> None:
        """Raises OSError (ESTALE, ENOENT …) when the path of a known directory leads somewhere else by now."""
        for length in range(1, len(directory) + 1):
            part = directory[:length]
            known = self._known.get(part)
            if known is not None and self.inode(part[:-1], part[-1]) != known:
                raise OSError(errno.ESTALE, "the directory was replaced meanwhile")

    def sync(self, directory: Directory) -> None:
        """Puts the entries of a directory on the disk."""
        self.system.sync(self.descriptor(directory))

    def path(self, directory: Directory, name: str = "") -> Path:
        """The absolute path, for messages."""
        return self.root.joinpath(*directory, name)


def inode_of(status: os.stat_result) -> Inode:
    """The identity of a file as long as it exists."""
    return status.st_dev, status.st_ino
