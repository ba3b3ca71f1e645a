"""The journal that survives: a commit that dies at any point is completed or taken back by a later process.

What is on the disk when, for each call of the seam (`journal` says when they come):

| call         | afterwards on the disk                                                                     | a crash from here on   |
|--------------|--------------------------------------------------------------------------------------------|------------------------|
| `begin`      | the record's folder with `owner`                                                           | nothing was applied    |
| `workshop`   | the name of that directory (the main one follows from the commit's id)                     | nothing was applied    |
| `prepared`   | the copy of the originals, `manifest`, `state-…-Prepared`, the marker, all their folders   | nothing was applied    |
| `applying`   | `state-…-Applying`                                                                         | goes back              |
| `committed`  | `state-…-Committed`: its rename is **the instant**                                         | goes forward           |
| `restored`   | `state-…-Restored`                                                                         | only tidying is left   |
| `unrestored` | `state-…-RecoveryConflict` or `…-RecoveryIncomplete`                                       | left, or tried again   |
| `finished`   | no marker, no record                                                                       | there is nothing left  |

Every row is synced before its call returns, so whatever a later row's crash leaves, the earlier rows hold. The file that
`committed` names is written and synced by `applying` already, under a name that nobody believes: a full disk refuses the
commit before a target is touched, and the instant needs no space. As long as the rename was not attempted, a failure takes
the commit back. After the attempt nobody here can know what is on the disk, so nothing is undone: a second file is written
and published, because what a failed sync left of the first cannot be trusted, and if that fails too the commit is
`CommitUnconfirmed` and recovery decides by what it finds.
"""

import errno
import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from transactions.errors import (
    CommitConflict,
    CommitPreparationFailed,
    CommitRecoveryCapacityReached,
    CommitUnconfirmed,
    RecoveryPending,
    TransactionError,
)
from transactions.folders import sync_nearest
from transactions.journal import CommitPlan, CommitRecord, PlannedEntry
from transactions.lock import CommitLock
from transactions.marker import PENDING, markers, note_of, remove_marker, write_marker
from transactions.places import Directory, Inode, Places, inode_of
from transactions.record import (
    Manifest,
    Owner,
    PackedOriginal,
    RootIdentity,
    State,
    StateRecord,
    WorkshopRecord,
    encode,
)
from transactions.records import (
    MANIFEST,
    MANIFEST_MAX_BYTES,
    ORIGINAL_MAX_BYTES,
    ORIGINALS,
    ORIGINALS_MAX_BYTES,
    OWNER,
    OWNER_MAX_BYTES,
    Draft,
    Records,
    made_records,
    state_name,
    unrecordable,
)
from transactions.recovery import blocks, pending
from transactions.system import SYSTEM, System

PUBLISHING_ATTEMPTS = 2
"""The second `Committed` is a new file; a third would meet the same disk."""


@dataclass(frozen=True, slots=True)
class FileJournal:
    """Keeps records below `state_directory` (absolute), for commits in the root that `lock` holds.

    `loaded_path` is the solution or project that the workspace was opened from; people are shown it.
    """

    state_directory: Path
    lock: CommitLock
    loaded_path: Path | None = None
    system: System = SYSTEM

    def begin(self, commit_id: str, root: Path) -> CommitRecord:
        """Opens a record. Raises CommitUnrecordable, RecoveryPending (an unfinished commit is in the way), OSError."""
        self.lock.require_held()
        for item in pending(self.state_directory, system=self.system):
            if blocks(item, root):
                raise RecoveryPending(
                    f"The commit {item.commit_id} is unfinished and must be recovered first. {item.message}",
                    item.paths,
                )
        for place in self.lock.roots:
            with Places(self.system, place) as places:
                found = markers(places)
            if found:
                raise RecoveryPending(
                    f"An unfinished commit must be recovered first; its marker is {found[0].path}.",
                    [found[0].path],
                )
        with Places(self.system, root) as places:
            status = self.system.fstat(places.descriptor(()))
            born = places.born((), ".")
        identity = RootIdentity(os.fspath(root), *inode_of(status), secrets.token_hex(16), born)
        loaded = None if self.loaded_path is None else os.fspath(self.loaded_path)
        record = _FileRecord(self, Owner(commit_id, identity, loaded))
        record.begin()
        return record


class _FileRecord:
    """The record of one commit. The state directory is opened anew for each call, so nothing is held in between."""

    def __init__(self, journal: FileJournal, owner: Owner) -> None:
        self._journal = journal
        self._owner = owner
        self._id = owner.commit_id
        self._workshops: list[Directory] = []
        self._states = 0
        self._is_applying = False
        self._committed: Draft | None = None

    @contextmanager
    def _records(self) -> Iterator[Records]:
        with made_records(self._journal.state_directory, self._journal.system) as records:
            yield records

    @contextmanager
    def _recording(self) -> Iterator[Records]:
        """The same for all that comes before the instant: a refusal of the system names the state directory.

        Raises CommitUnrecordable.
        """
        with self._records() as records:
            try:
                yield records
            except OSError as error:
                raise unrecordable(self._journal.state_directory, error) from error

    @contextmanager
    def _root(self) -> Iterator[Places]:
        with Places(self._journal.system, Path(self._owner.root.path)) as places:
            yield places

    def begin(self) -> None:
        data = encode(self._owner)
        _require_fits(len(data), OWNER_MAX_BYTES, "the owner file")
        with self._recording() as records:
            try:
                records.create(self._id)
                records.publish([records.draft(self._id, OWNER, [data])])
            except BaseException:
                with suppress(OSError):
                    records.remove(self._id)
                raise

    def workshop(self, directory: Directory) -> None:
        """The main workshop, which is always the first, follows from the commit's id and needs no word."""
        self._workshops.append(directory)
        number = len(self._workshops) - 1
        if number == 0:
            return
        name = f"workshop-{number:06}"
        with self._recording() as records:
            records.publish([records.draft(self._id, name, [encode(WorkshopRecord(directory))])])

    def prepared(self, plan: CommitPlan) -> None:
        with self._root() as places:
            if inode_of(places.system.fstat(places.descriptor(()))) != self._root_inode():
                raise OSError(errno.ESTALE, "the workspace root was replaced meanwhile")
            with self._recording() as records:
                packed: list[PackedOriginal] = []
                originals = records.draft(self._id, ORIGINALS, _packing(places, plan, packed))
                data = encode(self._manifest(plan, packed))
                _require_fits(len(data), MANIFEST_MAX_BYTES, "the plan")
                manifest = records.draft(self._id, MANIFEST, [data])
                records.publish([originals, manifest, self._state(records, StateRecord("Prepared"))])
            write_marker(places, note_of(self._owner, plan.entries, self._journal.state_directory))

    def _root_inode(self) -> Inode:
        return self._owner.root.device, self._owner.root.inode

    def _manifest(self, plan: CommitPlan, packed: Sequence[PackedOriginal]) -> Manifest:
        return Manifest(
            self._id,
            self._owner.root,
            self._owner.loaded_path,
            plan.entries,
            plan.directories,
            plan.workshops,
            tuple(packed),
        )

    def applying(self) -> None:
        self._journal.lock.require_held()
        self._is_applying = True
        with self._recording() as records:
            applying = self._state(records, StateRecord("Applying"))
            self._committed = self._state(records, StateRecord("Committed"))
            records.publish([applying])

    def committed(self) -> None:
        with self._records() as records:
            for attempt in range(1, PUBLISHING_ATTEMPTS + 1):
                try:
                    draft = self._committed if attempt == 1 else None
                    records.publish([draft or self._state(records, StateRecord("Committed"))])
                    return
                except BaseException as error:
                    if attempt == PUBLISHING_ATTEMPTS or not isinstance(error, OSError):
                        raise CommitUnconfirmed(
                            "Every file is written, but the record of the commit could not be confirmed to be on the disk. "
                            "The next recovery completes the commit, or takes it back if the record did not arrive."
                        ) from error

    def restored(self) -> None:
        self._say("Restored")

    def unrestored(self, paths: Sequence[Path], refused: bool) -> None:  # the seam's signature
        root = Path(self._owner.root.path)
        relative = tuple(os.fspath(path.relative_to(root)) for path in paths)
        self._say("RecoveryIncomplete" if refused else "RecoveryConflict", relative)

    def _state(self, records: Records, state: StateRecord) -> Draft:
        self._states += 1
        return records.draft(self._id, state_name(self._states, state), [encode(state)])

    def _say(self, state: State, paths: tuple[str, ...] = ()) -> None:
        """Before `Applying` was attempted there is nothing to take back, so nothing to say either."""
        if not self._is_applying:
            return
        with suppress(OSError, TransactionError), self._records() as records:
            records.publish([self._state(records, StateRecord(state, None, paths))])

    def finished(self) -> None:
        with suppress(OSError, TransactionError):  # recovery tidies up what stays
            with self._root() as places:
                remove_marker(places, self._id)
                # Before the record goes: without it nobody would know what a power loss brings back.
                sync_nearest(places, {PENDING, *(workshop[:-1] for workshop in self._workshops)})
            with self._records() as records:
                records.remove(self._id)


def _packing(places: Places, plan: CommitPlan, packed: list[PackedOriginal]) -> Iterator[bytes]:
    """Reads the originals one after the other, and notes where each one lies.

    Raises CommitConflict when one is not what was planned, CommitPreparationFailed when the system refuses to read it,
    CommitRecoveryCapacityReached when there is too much of them.
    """
    offset = 0
    for entry in plan.entries:
        if entry.original is None:
            continue
        try:
            data, extended = _original(places, entry, offset)
        except FileNotFoundError as error:
            path = places.path(entry.directory, entry.name)
            raise CommitConflict(f"{path} was removed by somebody else.", [path]) from error
        except OSError as error:
            path = places.path(entry.directory, entry.name)
            raise CommitPreparationFailed(
                f"{path} cannot be read for its second copy: {error.strerror}.", [path]
            ) from error
        if hashlib.sha256(data).digest() != entry.original.sha256:
            path = places.path(entry.directory, entry.name)
            raise CommitConflict(f"{path} was changed by somebody else.", [path])
        packed.append(PackedOriginal(entry.number, offset, len(data), extended))
        offset += len(data)
        yield data


def _original(places: Places, entry: PlannedEntry, offset: int) -> tuple[bytes, dict[str, bytes]]:
    """The bytes and extended attributes of the file at a target. Raises OSError, CommitRecoveryCapacityReached."""
    descriptor = places.system.open_file(entry.name, places.descriptor(entry.directory))
    try:
        status = places.system.fstat(descriptor)
        _require_fits(
            status.st_size, ORIGINAL_MAX_BYTES, f"the original of {'/'.join((*entry.directory, entry.name))}"
        )
        _require_fits(offset + status.st_size, ORIGINALS_MAX_BYTES, "all originals together")
        data = _contents(places.system, descriptor, status.st_size)
        return data, places.system.attributes(descriptor)
    finally:
        places.system.close(descriptor)


def _contents(system: System, descriptor: int, size: int) -> bytes:
    pieces = []
    while piece := system.read(descriptor, size + 1):
        pieces.append(piece)
    return b"".join(pieces)


def _require_fits(size: int, limit: int, what: str) -> None:
    if size > limit:
        raise CommitRecoveryCapacityReached(
            f"Recovery would have to keep {size} bytes for {what}; the limit is {limit}. Undo some revisions and commit "
            "in smaller steps."
        )
