"""What a power failure leaves: a model of a disk that forgets everything that was not synced.

**Recording.** `Recorder` is a real system that also writes down every change, by inode: which directory entries changed
together, which bytes a file held after each write, what was synced. Nothing is ever really destroyed: what is removed
or replaced moves to an *attic* beside the tree, so every inode that the journal may have written down lives on.

**The disk** (`failures`). Two file systems, the root's and the state directory's, so that no sync of one orders the other. At a
moment of the failure

- the entries that one call changes are there together or not at all (every journalling file system does that for a
  rename), but different calls may be lost or kept in any combination, except that a later change of the same entry
  cannot stay without the earlier one. A sync of a directory keeps all earlier changes of its entries and what those
  need; a sync of a file system keeps everything earlier on it. A sync of a file does not keep its name;
- bytes and attributes written since the last sync of a file may be all there, not there at all, zeros of the right
  length, or half there.

**Building** (`arranging`). An image of that disk is made by moving the very inodes, from the attic, to where they would be found.
"""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.faults.images import extended_of
from transactions.system import System

Slot = tuple[int, str]  # inode of a directory, name in it


@dataclass(frozen=True, slots=True)
class Bytes:
    """What a file holds: its bytes and the attributes that a sync of it keeps."""

    content: bytes
    mode: int
    owner: int
    group: int
    extended: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Entries:
    """One call that changed directory entries: for each the inode that stands there afterwards, None for nobody."""

    call: str
    slots: tuple[tuple[Slot, int | None], ...]


@dataclass(frozen=True, slots=True)
class Written:
    """One call that changed a file."""

    inode: int
    now: Bytes


@dataclass(frozen=True, slots=True)
class Synced:
    """A sync: of one inode, or (with `top`) of a whole file system."""

    inode: int
    top: int | None = None


Event = Entries | Written | Synced


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A disk at rest: who stands where, and what the files hold. Directories in `contents` are those of `modes`."""

    tops: tuple[int, ...]
    entries: Mapping[Slot, int]
    contents: Mapping[int, Bytes]
    directories: frozenset[int]

    def reachable(self) -> tuple[tuple[Slot, int], ...]:
        """The entries that can be reached from the tops, parents first."""
        below: dict[int, list[tuple[Slot, int]]] = {}
        for slot, inode in self.entries.items():
            below.setdefault(slot[0], []).append((slot, inode))
        found: list[tuple[Slot, int]] = []
        waiting = list(self.tops)
        seen = set(waiting)
        while waiting:
            for slot, inode in sorted(below.get(waiting.pop(0), ())):
                found.append((slot, inode))
                if inode in self.directories and inode not in seen:
                    seen.add(inode)
                    waiting.append(inode)
        return tuple(found)

    def identity(self) -> object:
        """Equal for disks that nobody can tell apart."""
        reachable = self.reachable()
        return reachable, tuple(self.contents.get(inode) for _, inode in reachable)


class Recorder(System):
    """The real system, written down. `events` grows; `start` is the disk as it was found."""

    def __init__(self, tops: Sequence[Path], attic: Path) -> None:
        """`tops` are the root and the state directory, `attic` lies on the same file system."""
        self.tops = tuple(tops)
        self.attic = attic
        attic.mkdir(exist_ok=True)
        self.events: list[Event] = []
        self.top_of: dict[int, int] = {}
        self.start = self._scan()

    # -- looking at the disk ------------------------------------------------------------------------------------------

    def _scan(self) -> Snapshot:
        entries: dict[Slot, int] = {}
        contents: dict[int, Bytes] = {}
        directories: set[int] = set()
        tops = tuple(os.lstat(top).st_ino for top in self.tops)
        for top, inode in zip(self.tops, tops, strict=True):
            self.top_of[inode] = inode
            directories.add(inode)
            self._scan_directory(os.fspath(top), inode, entries, contents, directories)
        return Snapshot(tops, entries, contents, frozenset(directories))

    def _scan_directory(
        self,
        path: str,
        directory: int,
        entries: dict[Slot, int],
        contents: dict[int, Bytes],
        directories: set[int],
    ) -> None:
        for name in os.listdir(path):
            below = f"{path}/{name}"
            status = os.lstat(below)
            entries[directory, name] = status.st_ino
            self.top_of[status.st_ino] = self.top_of[directory]
            if stat.S_ISDIR(status.st_mode):
                directories.add(status.st_ino)
                self._scan_directory(below, status.st_ino, entries, contents, directories)
            else:
                contents[status.st_ino] = held_at(below)

    # -- changes that are written down --------------------------------------------------------------------------------

    def _inode(self, name: str, directory: int) -> int | None:
        try:
            return os.stat(name, dir_fd=directory, follow_symlinks=False).st_ino
        except FileNotFoundError:
            return None

    def _entered(self, call: str, *places: tuple[int, str]) -> None:
        """The entries at these places (directory descriptor, name) are what they are now."""
        slots = []
        for descriptor, name in places:
            directory = os.fstat(descriptor).st_ino
            inode = self._inode(name, descriptor)
            if inode is not None:
                self.top_of[inode] = self.top_of[directory]
            slots.append(((directory, name), inode))
        self.events.append(Entries(call, tuple(slots)))

    def _wrote(self, descriptor: int) -> None:
        self.events.append(Written(os.fstat(descriptor).st_ino, held_at(f"/proc/self/fd/{descriptor}")))

    def open_new(self, name: str, directory: int, mode: int) -> int:
        descriptor = super().open_new(name, directory, mode)
        self._wrote(descriptor)
        self._entered("open_new", (directory, name))
        return descriptor

    def open_lock(self, name: str, directory: int) -> int:
        known = self._inode(name, directory)
        descriptor = super().open_lock(name, directory)
        if known is None:
            self._wrote(descriptor)
            self._entered("open_lock", (directory, name))
        return descriptor

    def write(self, descriptor: int, data: memoryview) -> int:
        written = super().write(descriptor, data)
        self._wrote(descriptor)
        return written

    def set_owner(self, descriptor: int, owner: int, group: int) -> None:
        super().set_owner(descriptor, owner, group)
        self._wrote(descriptor)

    def set_mode(self, descriptor: int, mode: int) -> None:
        super().set_mode(descriptor, mode)
        self._wrote(descriptor)

    def set_attribute(self, descriptor: int, name: str, value: bytes) -> None:
        super().set_attribute(descriptor, name, value)
        self._wrote(descriptor)

    def remove_attribute(self, descriptor: int, name: str) -> None:
        super().remove_attribute(descriptor, name)
        self._wrote(descriptor)

    def sync(self, descriptor: int) -> None:
        self.events.append(Synced(os.fstat(descriptor).st_ino))

    def sync_file_system(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        self.events.append(Synced(inode, self.top_of[inode]))

    def make_directory(self, name: str, directory: int, mode: int = 0o777) -> None:
        super().make_directory(name, directory, mode)
        self._entered("make_directory", (directory, name))

    def remove_directory(self, name: str, directory: int) -> None:
        descriptor = self.open_directory(name, directory)
        try:
            if os.listdir(descriptor):
                super().remove_directory(name, directory)  # says what is wrong
        finally:
            os.close(descriptor)
        self._put_away(name, directory)
        self._entered("remove_directory", (directory, name))

    def remove(self, name: str, directory: int) -> None:
        if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            super().remove(name, directory)
        self._put_away(name, directory)
        self._entered("remove", (directory, name))

    def _put_away(self, name: str, directory: int) -> None:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=directory)
        else:
            os.rename(name, self.attic / str(status.st_ino), src_dir_fd=directory)

    def move(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        super().move(old, old_directory, new, new_directory)
        self._entered("move", (old_directory, old), (new_directory, new))

    def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        super().exchange(old, old_directory, new, new_directory)
        self._entered("exchange", (old_directory, old), (new_directory, new))

    def link(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        super().link(old, old_directory, new, new_directory)
        self._entered("link", (new_directory, new))

    def rename(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        source, target = self._inode(old, old_directory), self._inode(new, new_directory)
        if source is not None and target is not None and source != target:
            status = os.stat(new, dir_fd=new_directory, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                self._put_away(new, new_directory)
        super().rename(old, old_directory, new, new_directory)
        self._entered("rename", (old_directory, old), (new_directory, new))


def held_at(path: str) -> Bytes:
    """What the file (or link) at a path holds."""
    is_open = path.startswith("/proc/self/fd/")
    status = os.stat(path) if is_open else os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        content = os.fsencode(os.readlink(path))
    else:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            content = os.read(descriptor, status.st_size + 1)
        finally:
            os.close(descriptor)
    extended = _extended_through(path) if is_open else extended_of(os.fsencode(path))
    return Bytes(content, status.st_mode, status.st_uid, status.st_gid, extended)


def _extended_through(path: str) -> tuple[tuple[str, bytes], ...]:
    try:
        return tuple(sorted((name, os.getxattr(path, name)) for name in os.listxattr(path)))
    except OSError:
        return ()
