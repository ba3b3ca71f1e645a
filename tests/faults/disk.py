"""What a power failure leaves: a model of a disk that forgets everything that was not synced.

**Recording.** `Recorder` is a real system that also writes down every change, by inode: which directory entries changed
together, which bytes a file held after each write, what was synced. Nothing is ever really destroyed: what is removed
or replaced moves to an *attic* beside the tree, so every inode that the journal may have written down lives on.

**The disk.** Two file systems, the root's and the state directory's, so that no sync of one orders the other. At a
moment of the failure

- the entries that one call changes are there together or not at all (every journalling file system does that for a
  rename), but different calls may be lost or kept in any combination, except that a later change of the same entry
  cannot stay without the earlier one. A sync of a directory keeps all earlier changes of its entries and what those
  need; a sync of a file system keeps everything earlier on it. A sync of a file does not keep its name;
- bytes and attributes written since the last sync of a file may be all there, not there at all, zeros of the right
  length, or half there.

**Building.** An image of that disk is made by moving the very inodes, from the attic, to where they would be found.
"""

import os
import random
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests.faults.images import extended_of
from transactions.system import System

Slot = tuple[int, str]  # inode of a directory, name in it

IMAGES_MAX = 12
"""So many subsets of unsynced calls are all built; beyond it they are sampled."""

DATA_VARIANTS = ("whole", "old", "zeros", "half")


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


# -- what a failure may leave ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Loss:
    """One way to lose what was not synced: the numbers of the lost calls, and what became of the files' bytes."""

    lost: tuple[int, ...]
    data: tuple[tuple[int, str], ...]
    snapshot: Snapshot

    @property
    def name(self) -> str:
        """Says what was lost, without inodes."""
        counts: dict[str, int] = {}
        for _, variant in self.data:
            counts[variant] = counts.get(variant, 0) + 1
        data = ", ".join(f"{count} {variant}" for variant, count in sorted(counts.items()))
        return f"lost {list(self.lost)}; files {data or 'whole'}".replace("/", " ")


class Failure:
    """The disks that a power failure after the first `moment` events may leave."""

    def __init__(
        self, start: Snapshot, events: Sequence[Event], moment: int, top_of: Mapping[int, int]
    ) -> None:
        self._start = start
        self._events = events[:moment]
        self.top_of = top_of
        self._changes = [
            (number, event) for number, event in enumerate(self._events) if isinstance(event, Entries)
        ]
        self._needs = self._needed()
        self._kept = self._synced_changes()
        self._versions = self._file_versions()

    def _needed(self) -> dict[int, set[int]]:
        """For each change the earlier ones of the same entries, which it cannot be without."""
        last: dict[Slot, int] = {}
        needs: dict[int, set[int]] = {}
        for number, event in self._changes:
            own: set[int] = set()
            for slot, _ in event.slots:
                if slot in last:
                    own.add(last[slot])
                    own |= needs[last[slot]]
                last[slot] = number
            needs[number] = own
        return needs

    def _synced_changes(self) -> set[int]:
        kept: set[int] = set()
        for moment, event in enumerate(self._events):
            if not isinstance(event, Synced):
                continue
            for number, change in self._changes:
                if number < moment and any(self._covers(event, slot[0]) for slot, _ in change.slots):
                    kept |= {number} | self._needs[number]
        return kept

    def _covers(self, sync: Synced, directory: int) -> bool:
        return self.top_of[directory] == sync.top if sync.top is not None else directory == sync.inode

    def _file_versions(self) -> dict[int, tuple[Bytes, ...]]:
        """For each file written to: what it held at its last sync, and each state since."""
        versions: dict[int, list[Bytes]] = {}
        for event in self._events:
            if isinstance(event, Written):
                before = self._start.contents.get(event.inode)
                nothing = Bytes(b"", event.now.mode, event.now.owner, event.now.group, ())
                versions.setdefault(event.inode, [before or nothing]).append(event.now)
            elif isinstance(event, Synced):
                for inode, known in versions.items():
                    if inode == event.inode or (event.top is not None and self.top_of[inode] == event.top):
                        del known[:-1]
        return {inode: tuple(known) for inode, known in versions.items()}

    def losses(self, choice: random.Random, limit: int = IMAGES_MAX) -> Iterator[Loss]:
        """Every distinct disk when there are few, else those with the simplest losses and a sample of the others."""
        seen: set[object] = set()
        for lost in self._subsets(choice, limit):
            entries = self._entries_without(lost)
            for data in self._data_choices(entries, choice):
                snapshot = self._snapshot(entries, data)
                identity = snapshot.identity()
                if identity not in seen:
                    seen.add(identity)
                    yield Loss(tuple(sorted(lost)), tuple(sorted(data.items())), snapshot)

    def _subsets(self, choice: random.Random, limit: int) -> Iterator[frozenset[int]]:
        open_ = [number for number, _ in self._changes if number not in self._kept]
        if len(open_) <= 12:
            every = list(self._all_subsets(open_))
            if len(every) <= limit:
                yield from every
                return
        seen: set[frozenset[int]] = set()
        simple = [frozenset[int](), frozenset(open_)]
        simple += [self._closed({number}, open_) for number in open_]
        simple += [frozenset(set(open_) - {number} - self._needs[number]) for number in open_]
        for lost in simple:
            if lost not in seen:
                seen.add(lost)
                yield lost
        for _ in range(limit):
            chance = choice.random()
            lost = self._closed({number for number in open_ if choice.random() < chance}, open_)
            if lost not in seen:
                seen.add(lost)
                yield lost

    def _closed(self, lost: set[int], open_: Sequence[int]) -> frozenset[int]:
        """With every later change that cannot be without a lost one."""
        return frozenset(number for number in open_ if number in lost or self._needs[number] & lost)

    def _all_subsets(self, open_: Sequence[int]) -> Iterator[frozenset[int]]:
        for bits in product((False, True), repeat=len(open_)):
            lost = {number for number, bit in zip(open_, bits, strict=True) if bit}
            if self._closed(lost, open_) == lost:
                yield frozenset(lost)

    def _entries_without(self, lost: frozenset[int]) -> dict[Slot, int]:
        entries = dict(self._start.entries)
        for number, event in self._changes:
            if number in lost:
                continue
            for slot, inode in event.slots:
                if inode is None:
                    entries.pop(slot, None)
                else:
                    entries[slot] = inode
        return entries

    def _data_choices(self, entries: Mapping[Slot, int], choice: random.Random) -> Iterator[dict[int, str]]:
        standing = set(entries.values())
        open_ = [inode for inode, known in self._versions.items() if len(known) > 1 and inode in standing]
        yield {}
        if not open_:
            return
        yield dict.fromkeys(open_, choice.choice(DATA_VARIANTS[1:]))
        if len(open_) > 1:
            yield {choice.choice(open_): "old"}
            yield {inode: choice.choice(DATA_VARIANTS) for inode in open_}

    def _snapshot(self, entries: Mapping[Slot, int], data: Mapping[int, str]) -> Snapshot:
        contents = dict(self._start.contents)
        for inode, known in self._versions.items():
            contents[inode] = _variant(known, data.get(inode, "whole"))
        made = {
            inode
            for _, event in self._changes
            if event.call == "make_directory"
            for _, inode in event.slots
            if inode is not None
        }
        return Snapshot(self._start.tops, entries, contents, self._start.directories | made)


def _variant(known: tuple[Bytes, ...], variant: str) -> Bytes:
    old, new = known[0], known[-1]
    if len(known) == 1 or variant == "whole":
        return new
    if variant == "old":
        return old
    length = len(new.content)
    content = bytes(length) if variant == "zeros" else new.content[: length // 2]
    return Bytes(content, old.mode, old.owner, old.group, old.extended)


# -- building ----------------------------------------------------------------------------------------------------------


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
