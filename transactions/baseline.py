"""What the disk held when we looked, and what has changed on it since.

A **fingerprint** is the stat of a file and the SHA-256 of its bytes. A change is looked for by stat first, which costs
microseconds a file, and the bytes are hashed again only when the stat moved, or when the file had been written within
`RACY_NANOSECONDS` of our last look: a second write in the same tick of the clock would leave the stat as it is.
The bytes decide. Same bytes under a new time, mode, or inode are no change.

`Baseline` is lazy: it reads a file when somebody asks for its text, once, and remembers. A transaction is planned
against it, and a commit demands that the disk still holds those bytes. `Inputs` is eager: all files and directories that
a loaded workspace depends on. In a directory the set of names counts; what is in `.vs`, `.git`, `bin` and `obj` never
does, so our own commits and everybody's builds stay out of it. An input that is a link counts by what it leads to; links to
directories are not walked. Whatever cannot be looked at any more counts as changed.
"""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from transactions.case_rule import CaseRule
from transactions.errors import UndecodableText
from transactions.text import SourceText

RACY_NANOSECONDS = 2_000_000_000
"""File systems stamp times in ticks of up to 2 s (FAT); a younger stamp does not prove that the bytes stayed."""

READ_ATTEMPTS = 3
"""A file that is written while we read it is read again this often before we give up on it."""

IGNORED_DIRECTORIES = frozenset({".vs", ".git", "bin", "obj"})
"""Names (case-folded) of directories whose contents are no input and no target."""

_OPEN_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO must not hang us

ChangeKind = Literal["Created", "Changed", "Deleted", "Renamed", "Unreadable"]
DetectionSource = Literal["Fingerprint", "DirectoryListing"]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Stat and content hash of one file. Times are nanoseconds since the epoch, `size` is bytes."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int
    mode: int
    owner: int
    group: int
    links: int
    sha256: bytes  # empty for what has no bytes of its own, such as a link or a directory

    @classmethod
    def of(cls, status: os.stat_result, sha256: bytes) -> "Fingerprint":
        return cls(
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
            status.st_ino,
            status.st_dev,
            status.st_mode,
            status.st_uid,
            status.st_gid,
            status.st_nlink,
            sha256,
        )

    def matches(self, status: os.stat_result) -> bool:
        """Whether the stat gives no hint of a change."""
        return (
            self.mtime_ns == status.st_mtime_ns
            and self.size == status.st_size
            and self.ctime_ns == status.st_ctime_ns
            and self.inode == status.st_ino
            and self.device == status.st_dev
        )

    def is_racy_at(self, looked_ns: int) -> bool:
        """Whether the file was so young when we looked (at `looked_ns`) that its stat proves nothing."""
        return max(self.mtime_ns, self.ctime_ns) > looked_ns - RACY_NANOSECONDS


@dataclass(frozen=True, slots=True)
class Present:
    """Something is there. Without `text` it is read-only to us, and `unreadable_reason` says why.

    `fingerprint` is None when not even the stat could be had.
    """

    text: SourceText | None
    unreadable_reason: str | None
    fingerprint: Fingerprint | None


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing is there."""


FileState = Present | Absent
ABSENT = Absent()


@dataclass(frozen=True, slots=True)
class ExternalChange:
    """One input that is not what it was. `previous_path` is set for `Renamed`, `error_code` for `Unreadable`."""

    path: Path
    kind: ChangeKind
    detection_source: DetectionSource
    previous_path: Path | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class _Look:
    """What one look at a file gave: bytes and stat, or the reason why there are none. Nothing at all means absent."""

    status: os.stat_result | None
    data: bytes | None
    reason: str | None
    error_code: str | None = None


def _look_at(path: str, *, follow: bool) -> _Look:
    """Reads a file; `follow` is for a link in the last component. Never raises OSError."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS if follow else _OPEN_FLAGS | os.O_NOFOLLOW)
    except FileNotFoundError:
        return _Look(None, None, None)
    except OSError as error:
        return _look_without_opening(path, error, follow=follow)
    try:
        return _read_settled(descriptor)
    except OSError as error:
        return _Look(None, None, _system_reason(error), _error_code(error))
    finally:
        os.close(descriptor)


def _look_without_opening(path: str, error: OSError, *, follow: bool) -> _Look:
    if error.errno == errno.ENOTDIR:  # a parent is a file now, so there is nothing under it
        return _Look(None, None, None)
    try:
        status = os.lstat(path)
    except OSError:
        return _Look(None, None, _system_reason(error), _error_code(error))
    if stat.S_ISLNK(status.st_mode):
        if follow:  # the link's own stat says nothing about what it leads to
            return _Look(None, None, "it is a link that cannot be followed", _error_code(error))
        return _Look(status, None, "it is a symbolic link")
    return _Look(status, None, _system_reason(error), _error_code(error))


def _read_settled(descriptor: int) -> _Look:
    """The bytes of an open file, read between two equal stats."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return _Look(status, None, "it is not a regular file")
    for _ in range(READ_ATTEMPTS):
        data = os.pread(descriptor, status.st_size + 1, 0)
        while len(data) < status.st_size and (more := os.pread(descriptor, status.st_size + 1, len(data))):
            data += more
        after = os.fstat(descriptor)
        if len(data) == after.st_size and after.st_mtime_ns == status.st_mtime_ns:
            return _Look(after, data, None)
        status = after
    return _Look(status, None, "it kept changing while it was read", "Busy")


def _system_reason(error: OSError) -> str:
    return f"the system refused to read it ({error.strerror or error})"


def _error_code(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "EIO")


def _state_of(look: _Look) -> FileState:
    if look.status is None and look.reason is None:
        return ABSENT
    if look.status is None or look.data is None:
        fingerprint = None if look.status is None else Fingerprint.of(look.status, b"")
        return Present(None, look.reason, fingerprint)
    fingerprint = Fingerprint.of(look.status, hashlib.sha256(look.data).digest())
    try:
        return Present(SourceText.decode(look.data), None, fingerprint)
    except UndecodableText as error:
        return Present(None, error.message, fingerprint)


class Baseline:
    """The files under `root` as they were when first asked for.

    `read` is given absolute paths without links in them (edits resolve links before they ask). It reads each file once;
    the state it gave stays its answer, whatever happens on disk. `changed_since` tells what happened.
    """

    def __init__(self, root: Path, case_rule: CaseRule | None = None) -> None:
        self.root = root
        self.case_rule = case_rule or CaseRule()
        self._states: dict[Path, FileState] = {}
        self._looked_ns: dict[Path, int] = {}

    def read(self, path: Path) -> FileState:
        """The state of one file. Never raises for what the disk holds: a file that cannot be read is `Present` with a reason."""
        state = self._states.get(path)
        if state is None:
            self._looked_ns[path] = time.time_ns()
            state = self._states[path] = self._read_now(path)
        return state

    def _read_now(self, path: Path) -> FileState:
        if self._is_other_spelling(path):
            return ABSENT
        return _state_of(_look_at(os.fspath(path), follow=False))

    def text(self, path: Path) -> SourceText | None:
        """The text of one file; None when there is none or it is read-only to us."""
        state = self.read(path)
        return state.text if isinstance(state, Present) else None

    @property
    def entries(self) -> Mapping[Path, FileState]:
        """What has been read so far."""
        return self._states

    def changed_since(self) -> tuple[ExternalChange, ...]:
        """Which of the files read so far hold something else now, in path order."""
        changes = (self._change_of(path, state) for path, state in self._states.items())
        found = [change for change in changes if change is not None]
        return tuple(sorted(found, key=lambda change: os.fspath(change.path)))

    def _change_of(self, path: Path, state: FileState) -> ExternalChange | None:
        if isinstance(state, Absent) and self._is_other_spelling(path):
            return None
        return _compare(path, _fingerprint_of(state), self._looked_ns[path], follow=False)[0]

    def _is_other_spelling(self, path: Path) -> bool:
        """Whether the disk, which does not tell cases apart, would answer for another entry of the tree."""
        return self.case_rule.is_blind_for(path) and self.case_rule.spelling(path) != path.name


def _fingerprint_of(state: FileState) -> Fingerprint | None:
    if isinstance(state, Absent):
        return None
    return state.fingerprint or _UNKNOWN


_UNKNOWN = Fingerprint(-1, 0, 0, 0, 0, 0, 0, 0, 0, b"")
"""Stands for a file that is there but could not be looked at."""


def _compare(
    path: Path, known: Fingerprint | None, looked_ns: int, *, follow: bool
) -> tuple[ExternalChange | None, Fingerprint | None]:
    """The change of one file, if any, and the fingerprint to remember from now on. None stands for absent."""
    try:
        status = path.stat() if follow else path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return (None if known is None else ExternalChange(path, "Deleted", "Fingerprint")), known
    except OSError as error:
        unreadable = ExternalChange(path, "Unreadable", "Fingerprint", error_code=_error_code(error))
        return (None if known == _UNKNOWN else unreadable), known
    if known is None:
        return ExternalChange(path, "Created", "Fingerprint"), known
    if known.matches(status) and not known.is_racy_at(looked_ns):
        return None, known
    return _compare_bytes(path, known, follow=follow)


def _compare_bytes(
    path: Path, known: Fingerprint, *, follow: bool
) -> tuple[ExternalChange | None, Fingerprint | None]:
    look = _look_at(os.fspath(path), follow=follow)
    if look.data is None or look.status is None:
        if look.error_code is not None:
            unreadable = ExternalChange(path, "Unreadable", "Fingerprint", error_code=look.error_code)
            return (None if known == _UNKNOWN else unreadable), known
        if look.status is None:
            return ExternalChange(path, "Deleted", "Fingerprint"), known
        now = Fingerprint.of(look.status, b"")
        same = (
            not known.sha256 and known.inode == now.inode and stat.S_IFMT(known.mode) == stat.S_IFMT(now.mode)
        )
        return (None if same else ExternalChange(path, "Changed", "Fingerprint")), known
    now = Fingerprint.of(look.status, hashlib.sha256(look.data).digest())
    if now.sha256 == known.sha256:
        return None, now
    return ExternalChange(path, "Changed", "Fingerprint"), known


@dataclass(slots=True)
class _Watched:
    """One input file: what it was (None: absent) and when we last looked at it."""

    fingerprint: Fingerprint | None
    looked_ns: int


@dataclass(slots=True)
class _Listing:
    """The names that count in one directory, and the times of the directory when they were listed."""

    files: set[str]
    directories: set[str]
    mtime_ns: int
    looked_ns: int

    def is_current(self, status: os.stat_result) -> bool:
        young = status.st_mtime_ns > self.looked_ns - RACY_NANOSECONDS
        return status.st_mtime_ns == self.mtime_ns and not young


def _everything(_: Path) -> bool:
    return True


class Inputs:
    """The manifest of everything a loaded workspace depends on. Make it with `capture`, ask it with `changes`."""

    def __init__(self, relevant: Callable[[Path], bool]) -> None:
        self._relevant = relevant
        self._files: dict[Path, _Watched] = {}
        self._listings: dict[Path, _Listing] = {}
        self._unreadable: dict[Path, str] = {}

    @classmethod
    def capture(
        cls,
        files: Iterable[Path],
        directories: Iterable[Path],
        relevant: Callable[[Path], bool] = _everything,
    ) -> "Inputs":
        """Looks at every file and lists every directory with all below it, except `IGNORED_DIRECTORIES`.

        A file that is absent now is an input too: its appearance is a change. `relevant` says which new names in a
        directory count. A directory that cannot be listed makes the manifest incomplete, which counts as changed.
        """
        inputs = cls(relevant)
        for path in files:
            inputs._files[path] = inputs._watched(path)
        for directory in directories:
            for found, listing in inputs._walk(directory):
                inputs._listings[found] = listing
        return inputs

    @property
    def is_complete(self) -> bool:
        """False when a directory could not be listed."""
        return not self._unreadable

    @property
    def files(self) -> Iterable[Path]:
        """The input files."""
        return self._files.keys()

    @property
    def directories(self) -> Iterable[Path]:
        """The directories in which the names count."""
        return self._listings.keys()

    def changes(self) -> tuple[ExternalChange, ...]:
        """Every input that is not what it was when captured, in path order. Empty means: nothing changed."""
        return self._changes(self._files, tuple(self._listings))

    def changes_among(self, paths: Iterable[Path]) -> tuple[ExternalChange, ...]:
        """The same, looking at these paths and at the names in their directories only. Empty proves nothing else."""
        named = dict.fromkeys(paths)
        directories = dict.fromkeys(parent for path in named for parent in (path, path.parent))
        return self._changes(
            [path for path in named if path in self._files],
            [directory for directory in directories if directory in self._listings],
        )

    def _changes(self, files: Iterable[Path], directories: Iterable[Path]) -> tuple[ExternalChange, ...]:
        changes = [
            *self._changed_files(files),
            *self._changed_listings(directories),
            *self._unreadable_directories(),
        ]
        return tuple(sorted(self._renames_joined(changes), key=lambda change: os.fspath(change.path)))

    def accept(self, written: Mapping[Path, bytes | None]) -> None:
        """Takes a commit of our own as known: each path now holds bytes of that SHA-256, or None for a deleted file.

        What differs from that on disk stays a change, and so does every other name in those directories.
        """
        for path, sha256 in written.items():
            self._accept_file(path, sha256)
            self._accept_name(path, exists=sha256 is not None)

    def _accept_file(self, path: Path, sha256: bytes | None) -> None:
        if sha256 is None:
            if path in self._files:
                self._files[path] = _Watched(None, time.time_ns())
            return
        now = self._watched(path)
        if now.fingerprint is None or now.fingerprint.sha256 != sha256:
            # Somebody wrote here after us. What we wrote is what we know, so the difference will be seen.
            now = _Watched(replace(now.fingerprint or _UNKNOWN, sha256=sha256, mtime_ns=-1), 0)
        self._files[path] = now

    def _accept_name(self, path: Path, *, exists: bool) -> None:
        listing = self._listings.get(path.parent)
        if listing is None:
            if not exists or not self._is_watched_below(path.parent):
                return
            listing = self._adopt_directory(path.parent)
        if not exists:
            listing.files.discard(path.name)
        elif self._relevant(path):
            listing.files.add(path.name)

    def _is_watched_below(self, directory: Path) -> bool:
        return any(parent in self._listings for parent in directory.parents)

    def _adopt_directory(self, directory: Path) -> _Listing:
        """Remembers a directory that our commit made, with nothing in it yet; its next look lists it."""
        listing = self._listings[directory] = _Listing(set(), set(), -1, 0)
        parent = self._listings.get(directory.parent) or self._adopt_directory(directory.parent)
        parent.directories.add(directory.name)
        return listing

    def _watched(self, path: Path) -> _Watched:
        looked_ns = time.time_ns()
        look = _look_at(os.fspath(path), follow=True)
        if look.status is None:
            return _Watched(None if look.reason is None else _UNKNOWN, looked_ns)
        sha256 = b"" if look.data is None else hashlib.sha256(look.data).digest()
        return _Watched(Fingerprint.of(look.status, sha256), looked_ns)

    def _walk(self, directory: Path) -> Iterator[tuple[Path, _Listing]]:
        pending = [directory]
        while pending:
            found = pending.pop()
            if found in self._listings:
                continue
            try:
                listing = self._list(found)
            except OSError as error:
                self._unreadable[found] = _error_code(error)
                continue
            yield found, listing
            pending += [found / name for name in listing.directories]

    def _list(self, directory: Path) -> _Listing:
        looked_ns = time.time_ns()
        mtime_ns = (
            directory.stat().st_mtime_ns
        )  # before the listing: a change in between is seen the next time
        listing = _Listing(set(), set(), mtime_ns, looked_ns)
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name.casefold() not in IGNORED_DIRECTORIES:
                        listing.directories.add(entry.name)
                elif self._relevant(directory / entry.name):
                    listing.files.add(entry.name)
        return listing

    def _changed_files(self, paths: Iterable[Path]) -> Iterator[ExternalChange]:
        for path in paths:
            watched = self._files[path]
            looked_ns = time.time_ns()
            change, fingerprint = _compare(path, watched.fingerprint, watched.looked_ns, follow=True)
            if change is not None:
                yield change
            elif fingerprint is not watched.fingerprint or watched.looked_ns < looked_ns - RACY_NANOSECONDS:
                watched.fingerprint, watched.looked_ns = fingerprint, looked_ns

    def _changed_listings(self, directories: Iterable[Path]) -> Iterator[ExternalChange]:
        for directory in directories:
            listing = self._listings[directory]
            try:
                status = directory.stat()
                if listing.is_current(status):
                    continue
                now = self._list(directory)
            except (FileNotFoundError, NotADirectoryError):
                if listing.files:
                    yield ExternalChange(directory, "Deleted", "DirectoryListing")
                continue
            except OSError as error:
                yield ExternalChange(
                    directory, "Unreadable", "DirectoryListing", error_code=_error_code(error)
                )
                continue
            differences = list(self._differences(directory, listing, now))
            if not differences:
                self._listings[directory] = now
            yield from differences

    def _differences(self, directory: Path, before: _Listing, now: _Listing) -> Iterator[ExternalChange]:
        for name in now.files - before.files:
            if directory / name not in self._files:
                yield ExternalChange(directory / name, "Created", "DirectoryListing")
        for name in before.files - now.files:
            if directory / name not in self._files:
                yield ExternalChange(directory / name, "Deleted", "DirectoryListing")
        for name in now.directories - before.directories:
            yield from self._new_directory(directory / name)

    def _new_directory(self, directory: Path) -> Iterator[ExternalChange]:
        """A new directory is a change when something that counts is in it; else it is watched from now on."""
        found = list(self._walk(directory))
        created = [path / name for path, listing in found for name in listing.files]
        if not created:
            self._listings.update(found)
        for path in created:
            yield ExternalChange(path, "Created", "DirectoryListing")

    def _unreadable_directories(self) -> Iterator[ExternalChange]:
        for directory, error_code in self._unreadable.items():
            yield ExternalChange(directory, "Unreadable", "DirectoryListing", error_code=error_code)

    def _renames_joined(self, changes: list[ExternalChange]) -> Iterator[ExternalChange]:
        """A file that vanished and one that appeared with the same inode, size and time are one rename.

        The inode alone proves nothing: file systems give a freed one to the next file.
        """
        gone: dict[tuple[int, ...], Path] = {}
        for change in changes:
            watched = self._files.get(change.path)
            if change.kind == "Deleted" and watched is not None and watched.fingerprint is not None:
                known = watched.fingerprint
                gone[known.device, known.inode, known.size, known.mtime_ns] = change.path
        joined = [
            replace(change, kind="Renamed", previous_path=gone[mark]) if mark in gone else change
            for change in changes
            for mark in [_mark(change.path) if change.kind == "Created" else ()]
        ]
        renamed = {change.previous_path for change in joined}
        return (change for change in joined if change.path not in renamed)


def _mark(path: Path) -> tuple[int, ...]:
    """What a rename leaves as it is; empty when nothing is there."""
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
