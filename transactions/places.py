"""Directories under a root, held open.

The repository is not trusted: any directory in it may be a link, or become one while we work. So a directory is reached
from the root one component at a time, never through a link, and kept as a descriptor; work is done relative to it. Its
device and inode are remembered when it is first opened, and every later opening must find the same ones.

A directory is named by its path relative to the root, as a tuple of components; the root is `()`.

**Who is who.** An inode number tells files apart only as long as both exist: the file system gives the number of a removed
file to the next one that is made, be it a file, a directory or a pipe. So what we make ourselves is known by more: its
kind, its inode, and what `born` says, which no later file shares. That is the file system's handle where it holds a
generation number that is drawn anew with each use of an inode and kept on the disk (ext4, xfs, tmpfs and others), else the
time of birth, else nothing. Originals are known by inode and generation only, because on an overlay the birth of a file
changes when it is first written to. Nothing is ever done to a file without a look at its bytes before and after.
"""

import errno
import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from transactions.system import System

Directory = tuple[str, ...]
Inode = tuple[int, int]  # device, inode

Told = TypeVar("Told")

OPEN_DIRECTORIES_MAX = 128
"""Far below the usual limit of 1,024 descriptors, which the whole process shares."""

READ_CHUNK_BYTES = 1 << 20

_GENERATION_HANDLE = 1
"""The type of handles that hold inode and generation. Others may hold what changes with a rename or a restart."""

_TELLS_NO_BIRTH = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM, errno.EOVERFLOW, errno.EINVAL})


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one reading of a file found. What `born` says (see the module's head) is noted when a commit is planned."""

    inode: Inode
    mode: int
    owner: int
    group: int
    links: int
    sha256: bytes
    born: str | None = field(default=None, compare=False)


class Places:
    """The open directories of one commit. A context manager; leaving it closes them all."""

    def __init__(self, system: System, root: Path) -> None:
        """`root` is physical (no links in it). Raises OSError when it cannot be opened."""
        self.system = system
        self.root = root
        self._known: dict[Directory, Inode] = {}
        self._open: OrderedDict[Directory, int] = OrderedDict()
        self._pinned: Directory | None = None
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
        length = len(directory)
        while length and directory[:length] not in self._open:
            length -= 1
        descriptor = self._root_descriptor
        if length:
            descriptor = self._open[directory[:length]]
            self._open.move_to_end(directory[:length])
        for longer in range(length + 1, len(directory) + 1):
            descriptor = self._opened(directory[:longer], descriptor)
        return descriptor

    def _opened(self, directory: Directory, parent: int) -> int:
        descriptor = self.system.open_directory(directory[-1], parent)
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
        first = self.descriptor(one)
        self._pinned = one
        try:
            return first, self.descriptor(another)
        finally:
            self._pinned = None

    def _require_same(self, directory: Directory, descriptor: int) -> None:
        inode = inode_of(self.system.fstat(descriptor))
        if self._known.setdefault(directory, inode) != inode:
            raise OSError(errno.ESTALE, "the directory was replaced meanwhile")

    def _close_surplus(self) -> None:
        while len(self._open) > OPEN_DIRECTORIES_MAX:
            oldest = next(directory for directory in self._open if directory != self._pinned)
            self.system.close(self._open.pop(oldest))

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

    def born(self, directory: Directory, name: str) -> str | None:
        """What tells an entry from every later one that is given its inode; None where the system does not tell."""
        generation = self.generation(directory, name)
        if generation is not None:
            return generation
        descriptor = self.descriptor(directory)
        time = _unless_unknown(lambda: self.system.birth_time(name, descriptor))
        return None if time is None else f"time:{time}"

    def generation(self, directory: Directory, name: str) -> str | None:
        """The same, but None where only a time of birth is told: on an overlay that changes when a file is first written."""
        descriptor = self.descriptor(directory)
        told = _unless_unknown(lambda: self.system.handle(name, descriptor))
        return f"handle:{told[1].hex()}" if told is not None and told[0] == _GENERATION_HANDLE else None

    def is_file_of(self, facts: FileFacts | None, directory: Directory, name: str) -> bool:
        """Whether at a name stands the very file that `facts` tell of, whatever is in it by now. Raises OSError."""
        return facts is not None and self._is_the(stat.S_ISREG, facts.inode, facts.born, directory, name)

    def is_directory_of(self, inode: Inode, born: str | None, directory: Directory, name: str) -> bool:
        """The same of a directory that we made. Raises OSError."""
        return self._is_the(stat.S_ISDIR, inode, born, directory, name)

    def _is_the(
        self, is_kind: Callable[[int], bool], inode: Inode, born: str | None, directory: Directory, name: str
    ) -> bool:
        try:
            status = self.system.lstat(name, self.descriptor(directory))
            if not is_kind(status.st_mode) or inode_of(status) != inode:
                return False
            return born is None or is_same_birth(born, self.born(directory, name))
        except FileNotFoundError:
            return False

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


def is_same_birth(one: str | None, other: str | None) -> bool:
    """Whether nothing speaks against two entries of one inode being one; what is told in different ways does not."""
    if one is None or other is None or one.partition(":")[0] != other.partition(":")[0]:
        return True
    return one == other


def _unless_unknown(ask: Callable[[], Told]) -> Told | None:
    """What the system tells; None where it has no such word. Raises any other OSError."""
    try:
        return ask()
    except OSError as error:
        if error.errno in _TELLS_NO_BIRTH:
            return None
        raise


def inode_of(status: os.stat_result) -> Inode:
    """The identity of a file as long as it exists."""
    return status.st_dev, status.st_ino
