"""What a crash left of a commit, and how it ends: completed or taken back, as a whole.

**The theory.** A commit writes its whole plan down, with a second copy of every original, before it touches a file; from then
on it only renames (`commit`). So whatever instant a crash picks, each file of the plan is in one of a few places that the
plan names, and can be put where it belongs by another rename. **The instant** is the rename that gives `Committed` its
name (`file_journal`). A record in which it is found goes forward (`redo`), every other one goes back (`restore`). Both look
at the disk and at nothing else, each of their steps may be cut short, and running them again does no harm. So recovery may
crash as well, and two recoveries may meet: they take the commit lock and read the record again under it.

| the record says                    | what it means                                 | what recovery does                              |
|------------------------------------|-----------------------------------------------|-------------------------------------------------|
| no plan, or a torn one; `Prepared` | nothing was applied                           | our folders, marker and record go               |
| `Applying`                         | any part may be applied                       | restore; then as for the state that comes of it |
| `RecoveryIncomplete`               | a restore that the system refused in part     | the same again                                  |
| `RecoveryConflict`                 | restored but for files that somebody changed, | nothing; a person decides (`resolving`)         |
|                                    | or our marker was taken away                  |                                                 |
| `Restored`                         | the before-image is back and on the disk      | our folders, marker and record go               |
| `Committed`                        | all was applied, verified and synced          | redo; then our folders, marker and record go    |
| what makes no sense, is unreadable | unknown, so not the same as nothing           | nothing is touched; it is reported              |
| a version that we do not know      | a newer bridge's                              | nothing is touched; it is reported              |

A file is ours by what `places` says and by hash together. What is anybody else's is left where it is and reported, and all
other files are restored. Where our workshop was removed (`git clean -fdx`) the second copy takes the place of the originals in it.

A record belongs to the root it was made for, told by the random token in the marker under it, or by inode and birth (see
`places`) where the marker was removed with our folders. Device and inode alone prove nothing: a clone at the place of a
deleted workspace may have been given them. At another root, at none, and where there is no proof, nothing is touched.
`root=` says where a workspace was moved to; it must carry the marker, and be the same directory: in a copy no file is
known to be ours, so nothing is put back there, and nothing is noted about it. A marker that is missing while the workshop is there
was taken away by somebody who lets others commit here in spite of this record (`resolving.discard_marker`), so
restoring would undo what they built upon: a person decides.

**What is left at the end.** What lies in a workshop and is not ours, or was written to by somebody, is never removed, not
even when a person ends the record: it is told, and stays.

**Not promised.** The disk must keep what it said it had synced, and a rename must be one step for it (as on every journaling
or copying file system). While a commit goes on, and until recovery is done after a crash, a reader can see some files old and
some new. Who writes through a handle that was open all the time, after the last look at that file, writes into a file that has
left the tree. Recovery needs the user it ran as, and the state directory; without it the marker still warns, and the originals
are in the workshop under the root. An empty `.vs` and the empty lock file may be left by a crash before the record existed,
and an empty directory of ours in a parent that somebody moved away after it. Where the file system tells no births
(`places`), a workspace that lost marker and workshop (`git clean -fdx`) is not recovered by itself: a person names it.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from transactions.errors import CommitLockFailed, CommitUnrecordable, TransactionError, WorkspaceBusy
from transactions.folders import drop_folders, forget_folders, make_folders, sync_nearest
from transactions.journal import CommitPlan, NullJournal, PlannedEntry
from transactions.lock import CommitLock, commit_lock, is_held, locked_roots
from transactions.marker import PENDING, Marker, markers, read_marker, remove_marker
from transactions.moving import move
from transactions.places import Directory, Places, is_same_birth
from transactions.record import Manifest, RootIdentity, State, StateRecord, encode
from transactions.records import PRIVATE_DIRECTORY, Record, Records, existing_records, state_name
from transactions.redo import Redoer
from transactions.restore import Restorer, Unrestored, displaced_name, is_obstructed, sync_touched
from transactions.system import SYSTEM, System
from transactions.workshop import (
    HOME,
    Attributes,
    Workshops,
    hand_nothing_down,
    main_workshop,
    remove_workshop,
)

_AGAIN = "-again"
"""Ends the name of a workshop that takes the place of one that was removed."""


@dataclass(frozen=True, slots=True)
class RecoveryItem:
    """A commit that is not over.

    `state` is None when it cannot be told. `code` is None when the state says it all. `paths` are absolute: the files
    that are not as they should be. `is_blocking` is false when nothing is left to do but to look at what was kept.
    """

    commit_id: str
    root: Path | None
    loaded_path: Path | None
    state: State | None
    code: str | None
    message: str
    paths: tuple[Path, ...] = ()
    is_blocking: bool = True


def pending(state_directory: Path, *, system: System = SYSTEM) -> tuple[RecoveryItem, ...]:
    """The unfinished commits of a state directory, as their records tell. Changes nothing and waits for nobody.

    The commit that another process is in the middle of is among them. Raises CommitUnrecordable when the directory cannot
    be used.
    """
    with existing_records(state_directory, system) as records:
        if records is None:
            return ()
        items = (_item_of(records, commit_id) for commit_id in _ids(records))
        return tuple(item for item in items if item is not None)


def recover(
    state_directory: Path,
    *,
    wait: float = 0.0,
    only: str | None = None,
    root: Path | None = None,
    system: System = SYSTEM,
) -> tuple[RecoveryItem, ...]:
    """Completes or takes back what crashes left, and tells what is still unfinished. Blocks; run it in a worker thread.

    Waits at most `wait` seconds for each lock. `only` is the id of one commit, `root` the place its workspace was moved to.
    Never raises for what one record or one root holds. Raises CommitUnrecordable when the directory cannot be used.
    """
    with existing_records(state_directory, system) as records:
        if records is None:
            return ()
        with suppress(OSError):  # the trash can wait
            records.empty_trash()
        ids = [commit_id for commit_id in _ids(records) if only in (None, commit_id)]
        items = [_Recovery(records, commit_id, root, wait, system).run() for commit_id in ids]
        return tuple(item for item in items if item is not None)


def blocks(item: RecoveryItem, root: Path) -> bool:
    """Whether nothing may be done under `root` while `item` is unfinished: their roots overlap, or its marker is there."""
    if not item.is_blocking:
        return False
    here = Path(os.path.realpath(root))
    if item.root is not None and (here.is_relative_to(item.root) or item.root.is_relative_to(here)):
        return True
    # Where a workspace was moved or copied to, its marker came along.
    return any(os.path.lexists(place.joinpath(*PENDING, item.commit_id)) for place in locked_roots(here))


def foreign_markers(root: Path, state_directory: Path, *, system: System = SYSTEM) -> tuple[Marker, ...]:
    """The markers of unfinished commits in the way of `root` whose records are not ours; none while their commit goes on.

    They lie under it, or under the top of the git work tree around it. Costs one look at a folder each when there is none.
    Raises OSError when a place cannot be looked at, CommitUnrecordable.
    """
    return tuple(
        marker
        for place in locked_roots(Path(os.path.realpath(root)))
        for marker in _foreign_under(place, state_directory, system)
    )


def _foreign_under(root: Path, state_directory: Path, system: System) -> tuple[Marker, ...]:
    with Places(system, root) as places:
        before = markers(places)
        if not before:
            return ()
        known = _known_ids(state_directory, system)
        if is_held(places):
            return ()
        forget_folders(places, PENDING)
        after = markers(places)  # without what was over before we looked at the lock
    # A commit that begins meanwhile has its record before its marker, and one that ends loses its marker first.
    known |= _known_ids(state_directory, system) | {marker.commit_id for marker in after}.difference(
        marker.commit_id for marker in before
    )
    return tuple(marker for marker in after if marker.commit_id not in known)


def _known_ids(state_directory: Path, system: System) -> set[str]:
    with existing_records(state_directory, system) as records:
        return set() if records is None else set(_ids(records))


def is_going_on(item: RecoveryItem, *, system: System = SYSTEM) -> bool:
    """Whether somebody commits or recovers in the root of a commit right now, so that it is not interrupted."""
    if item.root is None:
        return False
    try:
        with Places(system, item.root) as places:
            return is_held(places)
    except OSError:
        return False


def _ids(records: Records) -> tuple[str, ...]:
    try:
        return records.ids()
    except OSError as error:
        raise CommitUnrecordable(
            f"The records in {records.state_directory} cannot be listed: {error.strerror or error}.",
            [records.state_directory],
        ) from error


# -- telling ------------------------------------------------------------------------------------------------------------

_MEANING: dict[State | None, str] = {
    None: "It had not begun to change files; what it prepared is to be removed.",
    "Prepared": "It had not begun to change files; what it prepared is to be removed.",
    "Applying": "It was interrupted while files were being replaced; they are to be put back.",
    "RecoveryIncomplete": "The system refused to put all files back; it will be tried again.",
    "RecoveryConflict": "Files were changed by somebody else, so they were left as they are; all others are put back.",
    "Restored": "All files are put back; what it prepared is to be removed.",
    "Committed": "It is complete; what it kept is to be removed.",
}


_ORIGINAL_KEPT = (
    "It is complete. Somebody wrote to files while they were being replaced; what was written there is kept in these "
    "files, which may be deleted."
)

LEFT_IN_WORKSHOP = "It is over. Somebody's files, which had stood in the place of its own, are kept here. Move them away, or delete them."

_MARKER_TAKEN = (
    "Its marker was taken away from the workspace, so that others could commit there; taking this commit back could undo "
    "what they built upon it. Nothing was touched."
)

_IS_OVER = frozenset({"Restored", "Committed"})


def _item_of(records: Records, commit_id: str) -> RecoveryItem | None:
    """What a record says about itself; None when it is gone."""
    try:
        record = records.read(commit_id)
    except OSError as error:
        return _unreadable(commit_id, error)
    return None if record is None else item_from(record)


def _unreadable(commit_id: str, error: OSError) -> RecoveryItem:
    return RecoveryItem(
        commit_id,
        None,
        None,
        None,
        "RecoveryRecordUnreadable",
        f"Its record cannot be read: {error.strerror or error}.",
    )


def item_from(record: Record) -> RecoveryItem:
    """The item of a record that was read."""
    said = record.manifest or record.owner
    root = None if said is None else Path(said.root.path)
    loaded = None if said is None or said.loaded_path is None else Path(said.loaded_path)
    if record.problem is not None:
        return RecoveryItem(
            record.commit_id,
            root,
            loaded,
            None,
            record.problem.code,
            f"Its record is unusable. {record.problem}",
        )
    state = record.state
    paths = () if state is None or root is None else tuple(root / path for path in state.paths)
    name = None if state is None else state.state
    message = (state.message if state is not None else None) or _MEANING[name]
    is_kept = name in _IS_OVER and bool(paths)  # said when nothing but these files is left
    code = "RecoveryOriginalKept" if is_kept else None
    return RecoveryItem(
        record.commit_id, root, loaded, name or "Prepared", code, message, paths, is_blocking=not is_kept
    )


# -- doing --------------------------------------------------------------------------------------------------------------


class RootUnavailable(Exception):
    """The workspace of a record is not where it was."""


class RecordRoot:
    """The workspace of one record, opened and known to be the one that the record was made for."""

    def __init__(self, places: Places, lock: CommitLock) -> None:
        self.places = places
        self.lock = lock


_WRITING_STATES = frozenset({"Applying", "RecoveryIncomplete"})


@contextmanager
def record_root(
    record: Record,
    root: Path | None,
    wait: float,
    system: System,
    *,
    is_written: bool,
    may_be_copy: bool = False,
) -> Iterator[RecordRoot]:
    """Opens and locks the workspace of a record, at `root` if it was moved. `is_written`: files in it may be changed.
    `may_be_copy`: a directory that carries the marker will do (see `is_root_of`).

    Raises RootUnavailable, WorkspaceBusy, CommitLockFailed, OSError.
    """
    said = record.manifest or record.owner
    if said is None:
        raise RootUnavailable("It does not say which workspace it belongs to.")
    path = Path(os.path.realpath(said.root.path if root is None else root))
    try:
        places = Places(system, path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RootUnavailable(f"Its workspace is no longer at {path}.") from error
    with places:
        if not is_root_of(
            places,
            record.commit_id,
            said.root,
            was_moved=root is not None,
            is_written=is_written,
            may_be_copy=may_be_copy,
        ):
            raise RootUnavailable(_other_root(places, record.commit_id))
        with commit_lock(path, wait=wait, system=system) as lock:
            yield RecordRoot(places, lock)


def _other_root(places: Places, commit_id: str) -> str:
    if places.inode(PENDING, commit_id) is not None:
        return (
            f"What is at {places.root} is a copy of the workspace that it was made in, or was moved from another disk. "
            "There, files of the commit cannot be told from files that somebody changed, so nothing was touched. "
            "Name the original, or copy everything out (export) and put the files back by hand."
        )
    return f"What is at {places.root} is not the workspace that it was made in: that was moved, deleted or made anew."


def is_root_of(
    places: Places,
    commit_id: str,
    identity: RootIdentity,
    *,
    was_moved: bool,
    is_written: bool,
    may_be_copy: bool = False,
) -> bool:
    """Whether a directory is the workspace of a commit (see the module's head). Raises OSError.

    `was_moved`: a person says that it is there now. It must be the same directory still, because in a copy all files have
    other inodes and none is known to be ours; `may_be_copy` is for who only reads it or removes what is named by the
    commit. Unless it is to be written to, the inode is enough: our folders are named by the commit, and where they are
    not, nothing is found.
    """
    status = places.system.fstat(places.descriptor(()))
    note = read_marker(places, commit_id)
    has_token = note is not None and note.root.token == identity.token
    if was_moved and has_token and may_be_copy:
        return True
    born = places.born((), ".")
    if status.st_ino != identity.inode or not is_same_birth(identity.born, born):
        return False
    is_proven = born is not None and born == identity.born
    return has_token or (status.st_dev == identity.device and (is_proven or was_moved or not is_written))


def _marker_was_taken(places: Places, record: Record) -> bool:
    workshop = main_workshop(record.commit_id)
    try:
        if places.inode(PENDING, record.commit_id) is not None:
            return False
    except NotADirectoryError:
        return False
    return not is_obstructed(places, workshop)


class _Recovery:
    """The recovery of one record."""

    def __init__(
        self, records: Records, commit_id: str, root: Path | None, wait: float, system: System
    ) -> None:
        self._records = records
        self._id = commit_id
        self._root = root
        self._wait = wait
        self._system = system

    def run(self) -> RecoveryItem | None:
        """What is still unfinished; None when it is over."""
        try:
            record = self._records.read(self._id)
        except OSError as error:
            return _unreadable(self._id, error)
        if record is None:
            return None
        item = item_from(record)
        if record.problem is not None or item.state == "RecoveryConflict":
            return item
        if record.owner is None and record.manifest is None:
            return self._remove_empty(item)
        try:
            is_written = item.state in _WRITING_STATES
            with record_root(record, self._root, self._wait, self._system, is_written=is_written) as opened:
                return self._run_locked(opened.places)
        except RootUnavailable as error:
            advice = "Nothing was touched; name the place it was moved to, or discard the record."
            return replace(item, code="RecoveryRootMoved", message=f"{error} {advice}")
        except WorkspaceBusy as error:
            return replace(item, code=error.code, message=error.message)
        except CommitLockFailed as error:
            return replace(item, state="RecoveryIncomplete", code=error.code, message=error.message)
        except OSError as error:
            return self._refused(item, error)

    def _remove_empty(self, item: RecoveryItem) -> RecoveryItem | None:
        """A folder whose owner file never reached the disk: nothing of ours was ever anywhere else."""
        try:
            self._records.remove(self._id)
        except OSError as error:
            return self._refused(item, error)
        return None

    @staticmethod
    def _refused(item: RecoveryItem, error: OSError) -> RecoveryItem:
        state: State | None = item.state if item.state == "Committed" else "RecoveryIncomplete"
        return replace(
            item,
            state=state,
            message=f"The system refused ({error.strerror or error}); it will be tried again.",
        )

    def _run_locked(self, places: Places) -> RecoveryItem | None:
        record = self._records.read(self._id)  # somebody may have recovered it while we waited
        if record is None:
            return None
        item = item_from(record)
        if record.problem is not None or item.state == "RecoveryConflict":
            return item
        if item.state in _WRITING_STATES and _marker_was_taken(places, record):
            return self._leave(record)
        self._records.sync(self._id)  # what is acted on must be what a power loss leaves
        try:
            match item.state:
                case "Applying" | "RecoveryIncomplete":
                    return self._go_back(places, record)
                case "Committed":
                    return self._go_forward(places, record, item)
                case _:
                    return self._tidy(places, record)
        except OSError as error:
            return self._refused(item, error)

    def _go_back(self, places: Places, record: Record) -> RecoveryItem | None:
        manifest = _manifest_of(record)
        plan, gone = with_workshops(places, manifest.plan(places))
        copy = Copies(self._records, manifest)
        left = Restorer(places, plan, second_copy=copy, workshops_gone=gone).run()
        is_on_disk = True
        try:
            sync_touched(places, plan)
        except OSError:
            is_on_disk = False
        state = state_after(left, is_on_disk)
        said = say(self._records, record, state)
        if state.state != "Restored":
            return item_from(said)
        return self._tidy(places, said)

    def _leave(self, record: Record) -> RecoveryItem:
        paths = tuple(sorted(relative_path(entry) for entry in _manifest_of(record).entries))
        return item_from(say(self._records, record, StateRecord("RecoveryConflict", _MARKER_TAKEN, paths)))

    def _go_forward(self, places: Places, record: Record, item: RecoveryItem) -> RecoveryItem | None:
        plan = _manifest_of(record).plan(places)
        left = Redoer(places, plan).run()
        sync_touched(places, plan)
        if left.entries or left.is_refused:
            code = "RecoveryIncomplete" if left.is_refused else "RecoveryConflict"
            paths = tuple(sorted(places.path(entry.directory, entry.name) for entry in left.entries))
            return replace(
                item,
                code=code,
                paths=paths,
                message="It is complete but for files that could not be put in place.",
            )
        rewritten = {
            (entry.workshop, name): entry
            for entry in plan.entries
            if (name := rewritten_name(places, entry)) is not None
        }
        if not rewritten:
            return self._tidy(places, record)
        kept = tidy_root(places, record, (*rewritten, *_kept_so_far(record)))
        return item_from(say(self._records, record, StateRecord("Committed", _ORIGINAL_KEPT, kept)))

    def _tidy(self, places: Places, record: Record) -> RecoveryItem | None:
        return end(self._records, places, record)


def state_after(left: Unrestored, is_on_disk: bool) -> StateRecord:  # one fact beside another
    """The state that a restore has led to."""
    paths = tuple(sorted(relative_path(entry) for entry in left.entries))
    if left.is_refused or not is_on_disk:
        return StateRecord("RecoveryIncomplete", None, paths)
    return StateRecord("RecoveryConflict", None, paths) if paths else StateRecord("Restored")


def say(records: Records, record: Record, state: StateRecord) -> Record:
    """Publishes a state, unless it is the last one already; the record as it reads then. Raises OSError."""
    if state == record.state:
        return record
    name = state_name(record.next_number, state)
    records.publish([records.draft(record.commit_id, name, [encode(state)])])
    return replace(record, state=state, next_number=record.next_number + 1)


def end(
    records: Records, places: Places, record: Record, keep: Sequence[tuple[Directory, str]] = ()
) -> RecoveryItem | None:
    """Ends a record that is over; the item of one that stays, because files are kept. Raises OSError.

    What it has kept so far it goes on keeping.
    """
    left = tidy_root(places, record, (*keep, *_kept_so_far(record)))
    if left and record.state is not None and record.state.state in _IS_OVER:
        return item_from(say(records, record, StateRecord(record.state.state, LEFT_IN_WORKSHOP, left)))
    records.remove(record.commit_id)
    return None


def _kept_so_far(record: Record) -> Iterator[tuple[Directory, str]]:
    """What a record that is over says that it keeps."""
    if record.state is not None and record.state.state in _IS_OVER:
        for path in record.state.paths:
            parts = Path(path).parts
            yield parts[:-1], parts[-1]


def tidy_root(places: Places, record: Record, keep: Sequence[tuple[Directory, str]] = ()) -> tuple[str, ...]:
    """Removes all of ours from under the root, but for the files to keep, and puts that on the disk. Raises OSError.

    Gives what is left, relative to the root: the files to keep, and what is not ours.
    """
    reachable = [
        workshop for workshop in workshops_of(record) if not is_obstructed(places, workshop[:-1])
    ]  # one that lies where a directory was swapped for a link is out of our hands
    left = []
    for workshop in reachable:
        kept = {name for directory, name in keep if directory == workshop}
        staying = remove_workshop(places, workshop, kept)
        left += [os.path.join(*workshop, name) for name in staying]  # noqa: PTH118  # text
    drop_folders(places, HOME)
    remove_marker(places, record.commit_id)
    sync_nearest(places, {PENDING, HOME, *(workshop[:-1] for workshop in reachable)})
    return tuple(sorted(left))


def workshops_of(record: Record) -> tuple[Directory, ...]:
    """Every directory that a commit or its recovery can have made to work in."""
    planned = () if record.manifest is None else record.manifest.workshops
    known = dict.fromkeys((*planned, *record.workshops, main_workshop(record.commit_id)))
    return tuple(place for workshop in known for place in (again(workshop), workshop))


def again(workshop: Directory) -> Directory:
    """The workshop that takes the place of one that somebody removed."""
    return (*workshop[:-1], workshop[-1] + _AGAIN)


def with_workshops(places: Places, plan: CommitPlan) -> tuple[CommitPlan, frozenset[Directory]]:
    """The plan with other workshops in the place of those that somebody removed, and which those are. Raises OSError."""
    instead: dict[Directory, Directory] = {}
    for workshop in plan.workshops:
        if places.is_directory(workshop[:-1], workshop[-1]):
            continue
        instead[workshop] = again(workshop)
        with suppress(FileNotFoundError):  # its parent is gone too: what belongs there is in somebody's way
            make_folders(places, again(workshop), PRIVATE_DIRECTORY)
            hand_nothing_down(places, again(workshop))
    if not instead:
        return plan, frozenset()
    entries = tuple(
        replace(entry, workshop=instead.get(entry.workshop, entry.workshop)) for entry in plan.entries
    )
    return replace(plan, entries=entries), frozenset(instead.values())


def rewritten_name(places: Places, entry: PlannedEntry) -> str | None:
    """The name of a displaced original that is not what it was when it came out. Raises OSError."""
    if entry.original is None:
        return None
    name = displaced_name(places, entry)
    if name is None or places.facts(entry.workshop, name).sha256 == entry.original.sha256:
        return None
    return name


def relative_path(entry: PlannedEntry) -> str:
    """The path of a target as state records hold it."""
    return os.path.join(*entry.directory, entry.name)  # noqa: PTH118  # text


def _manifest_of(record: Record) -> Manifest:
    if record.manifest is None:  # reading gives no state beyond `Prepared` without a plan
        raise TransactionError("A record without a plan has nothing to restore.")
    return record.manifest


class Copies:
    """The second copy of the originals, in the state directory."""

    def __init__(self, records: Records, manifest: Manifest) -> None:
        self._records = records
        self._id = manifest.commit_id
        self._packed = {packed.number: packed for packed in manifest.originals}

    def bytes_of(self, entry: PlannedEntry) -> bytes | None:
        """The original's bytes; None when the copy is not good. Raises OSError."""
        packed = self._packed.get(entry.number)
        if packed is None or entry.original is None:
            return None
        data = self._records.original(self._id, packed.offset, packed.length)
        return data if hashlib.sha256(data).digest() == entry.original.sha256 else None

    def put(self, places: Places, entry: PlannedEntry) -> bool:
        """Writes the original into the workshop under its old name; False when there is no good copy. Raises OSError."""
        data = self.bytes_of(entry)
        if data is None or entry.original is None:
            return False
        draft = f"{entry.number:06}.copy"
        with suppress(FileNotFoundError):
            places.system.remove(draft, places.descriptor(entry.workshop))
        facts = entry.original
        attributes = Attributes(facts.mode, facts.owner, facts.group, self._packed[entry.number].extended)
        record = NullJournal().begin(self._id, places.root)
        Workshops(places, self._id, record).write(entry.workshop, draft, data, attributes)
        descriptor = places.system.open_file(draft, places.descriptor(entry.workshop))
        try:
            places.system.sync(descriptor)
        finally:
            places.system.close(descriptor)
        move(places, entry.workshop, draft, entry.workshop, entry.old_name)
        return True
