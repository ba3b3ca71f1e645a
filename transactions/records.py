"""The folder of records in the state directory: `<state>/recovery/<commitId>/`.

    owner                     whose commit it is; the first file, synced before anything of ours is under the root
    workshop-NNNNNN           a directory of ours that is about to be made beside the targets of another mount
    originals                 the second copy of every file that the commit displaces, one after the other
    manifest                  the whole plan
    state-NNNNNN-STATE        one for each change of state, counted from 1

A file gets its name by a rename after it was written and synced, so a name never stands for half a file, and the folder is
synced after it. What a call refused is never tried again on the same file: a failed sync may have thrown the data away.
A record is removed by renaming it into `<state>/trash`, in one step, and deleted there.

Everything is private: folders 0700, files 0600, owned by the user. A state directory that is a link, belongs to somebody
else or is open to others is refused rather than mended, because what is read in it is acted on.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from transactions.errors import CommitUnrecordable, RecoveryRefused
from transactions.places import Directory, Places
from transactions.private_directory import OTHERS, refusal, trouble_with
from transactions.record import Corrupt, Manifest, Owner, StateRecord, Torn, Unusable, WorkshopRecord, decode
from transactions.system import System

RECOVERY: Directory = ("recovery",)
TRASH: Directory = ("trash",)
PRIVATE_DIRECTORY = 0o700
PRIVATE_FILE = 0o600

OWNER_MAX_BYTES = 1 << 20
MANIFEST_MAX_BYTES = 16 << 20
ORIGINAL_MAX_BYTES = 128 << 20
ORIGINALS_MAX_BYTES = 2 << 30
"""Reading a record must stay possible on the machine that wrote it; a commit of more is refused before it begins."""

OWNER = "owner"
MANIFEST = "manifest"
ORIGINALS = "originals"

_COMMIT_ID_LENGTH = 32
_DRAFT = "draft-"

Read = TypeVar("Read", Owner, Manifest, StateRecord, WorkshopRecord)


@dataclass(frozen=True, slots=True)
class Draft:
    """A file that is written and synced but has no name yet that anybody believes."""

    commit_id: str
    name: str
    draft_name: str


@dataclass(frozen=True, slots=True)
class Record:
    """All that a record says. `problem` is set when it cannot be acted on; what could be read stands beside it.

    `state` is None when nothing can have been applied: the plan was never written, or never reached the disk.
    """

    commit_id: str
    owner: Owner | None = None
    manifest: Manifest | None = None
    state: StateRecord | None = None
    workshops: tuple[Directory, ...] = ()
    next_number: int = 1
    problem: Unusable | None = None


class Records:
    """The records of one state directory, held open."""

    def __init__(self, places: Places) -> None:
        self._places = places

    @property
    def state_directory(self) -> Path:
        return self._places.root

    def ids(self) -> tuple[str, ...]:
        """The names of the records. Raises OSError."""
        try:
            names = self._places.system.names(self._places.descriptor(RECOVERY))
        except FileNotFoundError:
            return ()
        return tuple(sorted(name for name in names if is_commit_id(name)))

    # -- writing ------------------------------------------------------------------------------------------------------

    def create(self, commit_id: str) -> None:
        """Makes an empty record and puts it on the disk. Raises OSError.

        The trash is made first: where the disk has no room for one more folder, a record must not stay for want of it.
        """
        self._make_folder(TRASH)
        self._make_folder(RECOVERY)
        self._places.sync(())  # also when it was there: who made it may have died before this
        self._make_folder((*RECOVERY, commit_id))

    def draft(self, commit_id: str, name: str, pieces: Iterable[bytes]) -> Draft:
        """Writes and syncs a file that is to be published under `name`. Raises OSError."""
        system = self._places.system
        draft = Draft(
            commit_id, name, f"{_DRAFT}{secrets.token_hex(4)}-{name}"
        )  # a crash may have left others
        descriptor = system.open_new(draft.draft_name, self._folder(commit_id), PRIVATE_FILE)
        try:
            for piece in pieces:
                rest = memoryview(piece)
                while rest:
                    rest = rest[system.write(descriptor, rest) :]
            system.sync(descriptor)
        finally:
            system.close(descriptor)
        return draft

    def publish(self, drafts: Iterable[Draft]) -> None:
        """Gives drafts of one record their names, in this order, and puts the names on the disk. Raises OSError."""
        commit_id = ""
        for draft in drafts:
            commit_id = draft.commit_id
            folder = self._folder(commit_id)
            self._places.system.rename(draft.draft_name, folder, draft.name, folder)
        self.sync(commit_id)

    def sync(self, commit_id: str) -> None:
        """Puts the names of a record's files on the disk. Raises OSError."""
        self._places.sync((*RECOVERY, commit_id))

    def remove(self, commit_id: str) -> None:
        """Removes a record in one step. What is gone already is fine. Raises OSError when it is still there."""
        self._make_folder(TRASH)
        recovery, trash = self._places.pair(RECOVERY, TRASH)
        self._places.forget((*RECOVERY, commit_id))
        with suppress(FileNotFoundError):
            self._places.system.rename(commit_id, recovery, commit_id, trash)
            self._places.sync(RECOVERY)
            self._places.sync(TRASH)
        with suppress(OSError):  # what stays in the trash is deleted another time
            self.empty_trash()

    def empty_trash(self) -> None:
        """Deletes what was removed. Raises OSError."""
        system = self._places.system
        try:
            trash = self._places.descriptor(TRASH)
        except FileNotFoundError:
            return
        for name in system.names(trash):
            folder: Directory = (*TRASH, name)
            with suppress(FileNotFoundError):  # two may be at it
                for file in system.names(self._places.descriptor(folder)):
                    with suppress(FileNotFoundError):
                        system.remove(file, self._places.descriptor(folder))
                self._places.forget(folder)
                system.remove_directory(name, self._places.descriptor(TRASH))

    def _make_folder(self, folder: Directory) -> None:
        parent = self._places.descriptor(folder[:-1])
        if self._places.inode(folder[:-1], folder[-1]) is None:
            with suppress(FileExistsError):
                self._places.system.make_directory(folder[-1], parent, PRIVATE_DIRECTORY)
                self._places.sync(folder[:-1])
        _require_private(
            self._places.system.fstat(self._places.descriptor(folder)), self._places.path(folder)
        )

    def _folder(self, commit_id: str) -> int:
        return self._places.descriptor((*RECOVERY, commit_id))

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, commit_id: str) -> Record | None:
        """What a record says; None when there is none (any more). Raises OSError when the system refuses to tell."""
        self._places.forget((*RECOVERY, commit_id))
        try:
            status = self._places.system.fstat(self._folder(commit_id))
            if status.st_uid != os.geteuid() or status.st_mode & OTHERS:
                raise Unsafe("Its folder belongs to another user or is open to others.")
            return self._read_files(commit_id, set(self._places.system.names(self._folder(commit_id))))
        except FileNotFoundError as error:
            if self._is_there(
                commit_id
            ):  # one of its files is not: unreadable, which is not the same as absent
                raise OSError(errno.ESTALE, "a file of the record vanished while it was read") from error
            return None
        except Unusable as problem:
            owner = None
            with suppress(OSError, Unusable):
                owner = self._value(commit_id, OWNER, Owner, OWNER_MAX_BYTES)
            workshops: tuple[Directory, ...] = ()
            with suppress(OSError, Unusable):
                workshops = self._workshops(commit_id, self.files(commit_id))
            return Record(commit_id, owner, workshops=workshops, problem=problem)

    def _is_there(self, commit_id: str) -> bool:
        try:
            return self._places.inode(RECOVERY, commit_id) is not None
        except OSError:
            return True

    def _read_files(self, commit_id: str, names: set[str]) -> Record:
        states = sorted(name for name in names if name.startswith("state-"))
        applied = any(not name.endswith("-Prepared") for name in states)
        latest = self._value(commit_id, states[-1], StateRecord, MANIFEST_MAX_BYTES) if states else None
        owner = self._unless_torn(commit_id, OWNER, Owner, names, applied)
        manifest = self._unless_torn(commit_id, MANIFEST, Manifest, names, applied)
        if applied and manifest is None:
            raise Corrupt("Its plan is missing although it was being carried out.")
        for said in (owner, manifest):
            if said is not None and said.commit_id != commit_id:
                raise Corrupt("It tells of another commit.")
        return Record(
            commit_id,
            owner,
            manifest,
            None if manifest is None else latest or StateRecord("Prepared"),
            self._workshops(commit_id, names),
            1 + max((_number(name) for name in states), default=0),
        )

    def _workshops(self, commit_id: str, names: Iterable[str]) -> tuple[Directory, ...]:
        announced = (name for name in sorted(names) if name.startswith("workshop-"))
        return tuple(
            self._value(commit_id, name, WorkshopRecord, OWNER_MAX_BYTES).directory for name in announced
        )

    def _unless_torn(
        self, commit_id: str, name: str, kind: type[Read], names: set[str], applied: bool
    ) -> Read | None:
        """A file that is synced before `Applying`: before that it may be torn or missing, after it must be whole."""
        if name not in names:
            return None
        try:
            return self._value(commit_id, name, kind, MANIFEST_MAX_BYTES)
        except Torn as error:
            if applied:
                raise Corrupt(f"Its {name} is cut short although it was on the disk in whole.") from error
            return None

    def _value(self, commit_id: str, name: str, kind: type[Read], limit: int) -> Read:
        system = self._places.system
        descriptor = system.open_file(name, self._folder(commit_id))
        try:
            status = system.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & OTHERS:
                raise Unsafe(f"Its {name} is no file, belongs to another user or is open to others.")
            if status.st_size > limit:
                raise Corrupt(f"Its {name} is larger than this bridge would ever write.")
            return decode(self._all(descriptor, status.st_size, 0), kind)
        finally:
            system.close(descriptor)

    def files(self, commit_id: str) -> tuple[str, ...]:
        """The names of all files of a record. Raises OSError."""
        return tuple(sorted(self._places.system.names(self._folder(commit_id))))

    def raw(self, commit_id: str, name: str) -> bytes:
        """A file of a record as it is. Raises OSError."""
        descriptor = self._places.system.open_file(name, self._folder(commit_id))
        try:
            return self._all(descriptor, self._places.system.fstat(descriptor).st_size, 0)
        finally:
            self._places.system.close(descriptor)

    def has(self, commit_id: str, name: str) -> bool:
        """Whether a record has a file of that name. Raises OSError."""
        return self._places.inode((*RECOVERY, commit_id), name) is not None

    def note(self, commit_id: str, name: str) -> None:
        """Leaves an empty file as a note that reading a record passes over. Raises OSError."""
        if not self.has(commit_id, name):
            self.publish([self.draft(commit_id, name, [])])

    def original(self, commit_id: str, offset: int, length: int) -> bytes:
        """A part of the pack of originals, in bytes. Raises OSError. The caller knows the hash of what it asked for."""
        descriptor = self._places.system.open_file(ORIGINALS, self._folder(commit_id))
        try:
            return self._all(descriptor, length, offset)
        finally:
            self._places.system.close(descriptor)

    def _all(self, descriptor: int, length: int, offset: int) -> bytes:
        pieces = []
        while length > 0 and (piece := self._places.system.read_at(descriptor, length, offset)):
            pieces.append(piece)
            offset += len(piece)
            length -= len(piece)
        return b"".join(pieces)


class Unsafe(Unusable):
    """Open to others, so what it says cannot be believed."""

    code = "RecoveryRecordUnsafe"


@contextmanager
def made_records(state_directory: Path, system: System) -> Iterator[Records]:
    """The records of a state directory (absolute), which is made if it is missing.

    Raises CommitUnrecordable when it is a link, no directory, somebody else's, open to others, or refused by the system.
    """
    try:
        _make_state_directory(state_directory, system)
        places = Places(system, state_directory)
    except OSError as error:
        raise unrecordable(state_directory, error) from error
    with places:
        yield _checked(places)


@contextmanager
def existing_records(state_directory: Path, system: System) -> Iterator[Records | None]:
    """The same without making anything: None when there is no such directory. Raises CommitUnrecordable."""
    try:
        places = Places(system, state_directory)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise unrecordable(state_directory, error) from error
    with places:
        yield _checked(places)


def required(records: Records | None, commit_id: str) -> tuple[Records, Record]:
    """A record that must be there, and the records it is in. Raises RecoveryRefused."""
    if records is None or not is_commit_id(commit_id):
        raise RecoveryRefused(f"There is no record {commit_id}.")
    try:
        record = records.read(commit_id)
    except OSError as error:
        raise RecoveryRefused(f"The record {commit_id} cannot be read: {error.strerror or error}.") from error
    if record is None:
        raise RecoveryRefused(f"There is no record {commit_id}.")
    return records, record


def _checked(places: Places) -> Records:
    try:
        status = places.system.fstat(places.descriptor(()))
    except OSError as error:
        raise unrecordable(places.root, error) from error
    _require_private(status, places.root)
    return Records(places)


def _make_state_directory(path: Path, system: System) -> None:
    """Makes what is missing of an absolute path, and puts each new name on the disk. Raises OSError."""
    missing = []
    while not path.is_dir() and not path.is_symlink() and path != path.parent:
        missing.append(path.name)
        path = path.parent
    for name in reversed(missing):
        descriptor = os.open(
            path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        )  # links above it are the user's choice
        try:
            with suppress(FileExistsError):
                system.make_directory(name, descriptor, PRIVATE_DIRECTORY)
                system.sync(descriptor)
        finally:
            system.close(descriptor)
        path /= name


def _require_private(status: os.stat_result, path: Path) -> None:
    trouble = trouble_with(path, status)
    if trouble is not None:
        raise _unrecordable(path, trouble)


def unrecordable(path: Path, error: OSError) -> CommitUnrecordable:
    """The refusal of a state directory that the system does not let us use."""
    return _unrecordable(path, refusal(path, error))


def _unrecordable(path: Path, reason: str) -> CommitUnrecordable:
    return CommitUnrecordable(f"The state directory {path} {reason} Nothing was written.", [path])


def is_commit_id(name: str) -> bool:
    """Whether a name is one that commits are given."""
    return len(name) == _COMMIT_ID_LENGTH and all(letter in "0123456789abcdef" for letter in name)


def state_name(number: int, state: StateRecord) -> str:
    """The name of the file of a state."""
    return f"state-{number:06}-{state.state}"


def _number(name: str) -> int:
    word = name.split("-")[1]
    if not word.isdigit():
        raise Corrupt(f"Its file {name} was not written by a bridge.")
    return int(word)
