"""Writing a transaction to disk: all of it or nothing, and never over anybody else's work.

**The shape.** First everything is written that can be written without touching a source file: each new text becomes an
artifact in a workshop (see `workshop`), with the mode, owner and extended attributes of the file it follows, and is
synced. From then on *applying is renames only*, so it needs no space and cannot tear a file:

    delete    the file is moved into the workshop
    replace   artifact and file change places in one step (RENAME_EXCHANGE)
    create    the artifact is moved to the free name (RENAME_NOREPLACE)

in this order, all deletes before all creates. A move is a delete and a create whose artifact takes after the file that
was moved; chains, swaps and renames that change only the case of a letter need nothing more, because no name is taken
before its old file has left it.

**Nobody's write is lost.** Each original is compared with what the transaction was built on before anything happens, and
again *after* it has come out of its place, when nobody can reach it by its name any more. If it is not the planned one it
goes back and the commit is a conflict. When all is applied, the directories are synced and every target is read back.
A file is ours only by what `places` says and by hash together: a stranger who writes the same bytes is still a stranger,
and so is one whose file, directory, link or pipe was given the inode of ours.

**The instant** is the call of `CommitRecord.committed`, after the verification; with a `file_journal.FileJournal` it is the
rename that publishes the `Committed` record. Before it every error, of whatever kind, restores the before-image (see
`restore`), and after a crash the next start does (see `recovery`, with the table of what it does when). After it nothing is
undone, not even when the system will not confirm that the record arrived; what remains is to remove the workshops. A
displaced original is hashed once more before it is dropped: if somebody wrote to it through a handle that was open all the
time, it is kept and reported.

**The order on the disk.** Artifacts, new directories, the record with its second copy of the originals, the marker under
the root, and every directory that holds one of them are synced before the record says `Applying`, and no target is touched
before that is synced too. Every directory whose entries changed is synced before the record says `Committed`. The caller
holds the commit lock (`lock`) all the while.

**Not promised.** While the renames go on, a reader of several files can see some old and some new. A writer with an open
handle that writes after the last hash of the displaced file loses that write. Where the file system lacks exchange, a
replaced name is free for an instant; where it lacks links too, a name taken in that instant is overwritten. A disk that
forgets what it said it had synced is beyond us. On an overlay whose upper layer keeps no extended attributes a directory
cannot be renamed, so a commit that makes directories is taken back there, with a sentence that says what to do. Where a
file system tells neither a generation nor a time of birth (`places`), a stranger's file with the freed inode and the very
bytes of ours is taken for ours. And without a journal (`journal.NullJournal`) a crash leaves what it leaves.
"""

import errno
import os
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn, TypeVar

from transactions.baseline import Baseline, Present
from transactions.errors import (
    CommitConflict,
    CommitFailed,
    CommitPreparationFailed,
    CommitUnconfirmed,
    TransactionError,
)
from transactions.journal import (
    CommitPlan,
    CommitRecord,
    Journal,
    NullJournal,
    PlannedDirectory,
    PlannedEntry,
)
from transactions.moving import move
from transactions.overlay import FileChange
from transactions.places import Directory, FileFacts, Inode, Places
from transactions.restore import Restorer, displaced_name, sync_touched, touched
from transactions.system import SYSTEM, System, rename_is_missing
from transactions.workshop import Attributes, Workshops, sync_directories

CLEANING_ATTEMPTS = 2
"""Removing our own files is tried once more when the system refuses; what is left then is reported, not an error."""

# The system's way to say that the tree is not what it was: somebody else changed it.
_TREE_CHANGED = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EEXIST, errno.ESTALE, errno.EISDIR}
)

_WRITE_BITS = 0o222

Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class KeptOriginal:
    """A displaced file that somebody wrote to while it was being replaced, and where it is kept."""

    path: Path
    kept_at: Path


@dataclass(frozen=True, slots=True)
class CommitResult:
    """A commit that is done.

    `written` is what now stands on disk: the SHA-256 of each written file, None for a deleted one; it is what
    `Inputs.accept` takes. `kept` and `leftovers` are empty unless something unusual happened (see the module's head);
    `leftovers` are directories of ours that could not be removed, or that something of somebody's is in.
    """

    commit_id: str
    written: Mapping[Path, bytes | None]
    kept: tuple[KeptOriginal, ...] = ()
    leftovers: tuple[Path, ...] = ()


def commit(
    root: Path,
    changes: Sequence[FileChange],
    baseline: Baseline,
    *,
    journal: Journal | None = None,
    system: System = SYSTEM,
) -> CommitResult:
    """Writes `changes`, which were planned on `baseline`, under `root`. Blocks; run it in a worker thread.

    Raises CommitConflict (the disk is not what was read; nothing was overwritten), CommitPreparationFailed (the system
    refused before anything was touched), CommitFailed (it refused later; see `restored`). No changes are a success.
    """
    commit_id = uuid.uuid4().hex
    if not changes:
        return CommitResult(commit_id, {})
    try:
        places = Places(system, Path(os.path.realpath(root)))
    except OSError as error:
        raise CommitPreparationFailed(
            f"The workspace root cannot be opened: {error.strerror}.", [root]
        ) from error
    with places:
        return _Commit(places, commit_id, journal or NullJournal()).run(changes, baseline)


class _Commit:
    """One run. The methods follow the story of the module's head."""

    def __init__(self, places: Places, commit_id: str, journal: Journal) -> None:
        self._places = places
        self._commit_id = commit_id
        self._journal = journal
        self._displaced: set[int] = set()

    def run(self, changes: Sequence[FileChange], baseline: Baseline) -> CommitResult:
        try:
            record = self._journal.begin(self._commit_id, self._places.root)
        except OSError as error:
            raise CommitPreparationFailed(f"The commit cannot be recorded: {error.strerror}.") from error
        workshops = Workshops(self._places, self._commit_id, record)
        plan = self._prepare(changes, baseline, workshops, record)
        try:
            self._apply(plan)
            self._verify(plan)
            record.committed()
        except CommitUnconfirmed as error:
            error.evidence = self._places.path(workshops.main)
            raise
        except BaseException as error:  # noqa: BLE001  # whatever it is, the tree must not stay half-applied
            self._go_back(error, plan, workshops, record)
        return self._finish(plan, workshops, record)

    # -- before anything is touched -----------------------------------------------------------------------------------

    def _prepare(
        self, changes: Sequence[FileChange], baseline: Baseline, workshops: Workshops, record: CommitRecord
    ) -> CommitPlan:
        try:
            workshops.open()
            planner = _Planner(self._places, workshops, changes, baseline)
            plan = planner.plan(self._commit_id)
            workshops.sync()
            record.prepared(plan)
            planner.require_untouched(plan)
            record.applying()
        except BaseException as error:
            record.restored()
            if not self._clean(workshops):
                record.finished()
            if isinstance(error, OSError):
                raise CommitPreparationFailed(f"The commit could not be prepared: {_said(error)}.") from error
            raise
        return plan

    # -- applying -----------------------------------------------------------------------------------------------------

    def _apply(self, plan: CommitPlan) -> None:
        for entry in _of(plan, "Delete"):
            self._touching(entry, self._displace)
        for planned in plan.directories:
            self._make(planned)
        for entry in _of(plan, "Replace"):
            self._touching(entry, self._replace)
        for entry in _of(plan, "Create"):
            self._touching(entry, self._place)
        sync_directories(self._places, touched(plan))

    def _touching(self, entry: PlannedEntry, step: Callable[[PlannedEntry], None]) -> None:
        try:
            step(entry)
        except OSError as error:
            if error.errno in _TREE_CHANGED:
                raise self._conflict(entry, "was changed") from error
            raise

    def _displace(self, entry: PlannedEntry) -> None:
        move(self._places, entry.directory, entry.name, entry.workshop, entry.old_name)
        self._displaced.add(entry.number)
        self._require_original(entry, entry.old_name)

    def _replace(self, entry: PlannedEntry) -> None:
        places = self._places
        workshop, directory = places.pair(entry.workshop, entry.directory)
        places.system.touch(entry.new_name, workshop)
        try:
            places.system.exchange(entry.new_name, workshop, entry.name, directory)
        except OSError as error:
            if not rename_is_missing(error):
                raise
            self._displace(entry)
            self._place(entry)
            return
        self._displaced.add(entry.number)
        self._require_original(entry, entry.new_name)

    def _place(self, entry: PlannedEntry) -> None:
        self._places.system.touch(entry.new_name, self._places.descriptor(entry.workshop))
        move(self._places, entry.workshop, entry.new_name, entry.directory, entry.name)

    def _make(self, planned: PlannedDirectory) -> None:
        parent, name = planned.directory[:-1], planned.directory[-1]
        try:
            move(self._places, planned.workshop, planned.staged_name, parent, name)
        except FileExistsError:
            return  # somebody else made it meanwhile; it serves, and it is theirs
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            path = self._places.path(planned.directory)
            raise OSError(
                errno.EXDEV,
                f"the file system cannot move the new directory {path} into its place, as some overlays cannot; make it "
                "yourself and commit again",
            ) from error

    def _require_original(self, entry: PlannedEntry, kept_name: str) -> None:
        """What came out of the target must be what was planned, in every respect that we give to its successor."""
        if self._places.facts(entry.workshop, kept_name) != entry.original:
            raise self._conflict(entry, "was changed")

    # -- verifying ----------------------------------------------------------------------------------------------------

    def _verify(self, plan: CommitPlan) -> None:
        """Reads every target back, by its path from the root."""
        ours = {entry.intended.inode for entry in plan.entries if entry.intended is not None}
        ours.update(planned.inode for planned in plan.directories)
        for directory in {entry.directory for entry in plan.entries}:
            self._require_in_place(directory)
        for entry in plan.entries:
            self._touching(entry, lambda entry: self._require_applied(entry, ours))

    def _require_applied(self, entry: PlannedEntry, ours: Collection[Inode]) -> None:
        if entry.intended is None:
            # The place of a deleted file may be a new directory's, and on a case-blind disk a moved file still answers.
            found = self._places.inode(entry.directory, entry.name)
            if found is not None and found not in ours:
                raise self._conflict(entry, "was created again")
            return
        facts = self._places.facts(entry.directory, entry.name)
        if (facts.inode, facts.sha256) != (entry.intended.inode, entry.intended.sha256):
            raise self._conflict(entry, "was changed right after it was written")

    def _require_in_place(self, directory: Directory) -> None:
        try:
            self._places.require_in_place(directory)
        except OSError as error:
            if error.errno not in _TREE_CHANGED:
                raise
            path = self._places.path(directory)
            raise CommitConflict(f"The directory {path} was replaced during the commit.", [path]) from error

    def _conflict(self, entry: PlannedEntry, what: str) -> CommitConflict:
        path = self._path(entry)
        return CommitConflict(f"{path} {what} by somebody else.", [path])

    def _path(self, entry: PlannedEntry) -> Path:
        return self._places.path(entry.directory, entry.name)

    # -- after it -----------------------------------------------------------------------------------------------------

    def _go_back(
        self, error: BaseException, plan: CommitPlan, workshops: Workshops, record: CommitRecord
    ) -> NoReturn:
        left = Restorer(self._places, plan, self._displaced).run()
        is_on_disk = self._sync_restored(plan)
        paths = sorted(self._path(entry) for entry in left.entries)
        if paths:
            record.unrestored(paths, left.is_refused)
            evidence = self._places.path(workshops.main)
            raise CommitFailed(
                f"The commit failed ({_said(error)}), and {len(paths)} files could not be put back, the first of them "
                f"{paths[0]}. Their originals are in {evidence}.",
                paths,
                restored=False,
                evidence=evidence,
            ) from error
        if is_on_disk and not left.is_refused:
            record.restored()
            if not self._clean(workshops):
                record.finished()
        else:  # all is back as far as anybody can see; recovery confirms it, with the originals still at hand
            record.unrestored((), refused=True)
        if left.directories_refused:
            raise CommitFailed(
                f"The commit failed ({_said(error)}). Every file is back, but the system would not remove empty directories "
                "that it had made; recovery will.",
                restored=False,
            ) from error
        if isinstance(error, OSError):
            raise CommitFailed(
                f"The commit failed and was taken back: {_said(error)}.", restored=True
            ) from error
        raise error

    def _sync_restored(self, plan: CommitPlan) -> bool:
        """Whether the before-image, which is in place, is confirmed to be on the disk."""
        try:
            sync_touched(self._places, plan)
        except OSError:
            return False
        return True

    def _finish(self, plan: CommitPlan, workshops: Workshops, record: CommitRecord) -> CommitResult:
        kept = [(entry, name) for entry in plan.entries if (name := self._rewritten_name(entry)) is not None]
        leftovers = self._clean(workshops, [(entry.workshop, name) for entry, name in kept])
        if not leftovers and not kept:
            record.finished()
        return CommitResult(
            self._commit_id,
            {
                self._path(entry): None if entry.intended is None else entry.intended.sha256
                for entry in plan.entries
            },
            tuple(
                KeptOriginal(self._path(entry), self._places.path(entry.workshop, name))
                for entry, name in kept
            ),
            leftovers,
        )

    def _rewritten_name(self, entry: PlannedEntry) -> str | None:
        """The name of a displaced original that is not what it was when it came out, or that cannot be read any more."""
        if entry.original is None:
            return None
        for _ in range(CLEANING_ATTEMPTS):
            try:
                name = displaced_name(self._places, entry)
                if name is None or self._places.facts(entry.workshop, name).sha256 == entry.original.sha256:
                    return None
                return name
            except OSError:
                continue
        return entry.new_name if entry.operation == "Replace" else entry.old_name

    def _clean(self, workshops: Workshops, keep: Collection[tuple[Directory, str]] = ()) -> tuple[Path, ...]:
        left = tuple(workshops.all)
        for _ in range(CLEANING_ATTEMPTS):
            with suppress(OSError):
                left = workshops.remove(keep)
                break
        return tuple(self._places.path(directory) for directory in left)


class _Planner:
    """Compares the disk with the baseline, and writes the artifacts."""

    def __init__(
        self, places: Places, workshops: Workshops, changes: Sequence[FileChange], baseline: Baseline
    ) -> None:
        self._places = places
        self._workshops = workshops
        self._changes = changes
        self._baseline = baseline
        self._originals: dict[Path, tuple[FileFacts, Attributes]] = {}
        self._missing: set[Directory] = set()
        self._known: dict[Path, tuple[Directory, str]] = {}

    def plan(self, commit_id: str) -> CommitPlan:
        """Raises CommitConflict when a target is not what was read, OSError when the system refuses."""
        for change in self._changes:
            if change.kind != "Added":
                self._originals[change.path] = self._looking_at(change, self._original)
        for change in self._changes:
            if change.kind == "Added":
                self._looking_at(change, self._require_free)
        entries = tuple(self._entry(number, change) for number, change in enumerate(self._changes))
        directories = tuple(
            self._directory(number, directory)
            for number, directory in enumerate(
                sorted(self._missing, key=lambda directory: (len(directory), directory))
            )
        )
        return CommitPlan(commit_id, self._places.root, entries, directories, tuple(self._workshops.all))

    def _directory(self, number: int, directory: Directory) -> PlannedDirectory:
        parent = self._existing(directory)
        workshop = self._workshops.for_directory(parent)
        draft = PlannedDirectory(number, directory, (0, 0), workshop)
        inode, born = self._workshops.make_directory(workshop, draft.staged_name, parent)
        return replace(draft, inode=inode, born=born)

    def require_untouched(self, plan: CommitPlan) -> None:
        """A last look at every target, now that all is written and synced. Raises CommitConflict."""
        for entry, change in zip(plan.entries, self._changes, strict=True):
            if entry.original is not None and self._looking_at(change, self._inode) != entry.original.inode:
                raise _changed(change.path)
            if entry.original is None and entry.directory not in self._missing:
                self._looking_at(change, self._require_free)

    @staticmethod
    def _looking_at(change: FileChange, look: Callable[[FileChange], Seen]) -> Seen:
        try:
            return look(change)
        except OSError as error:
            if error.errno in _TREE_CHANGED:
                raise _changed(change.path) from error
            raise

    def _original(self, change: FileChange) -> tuple[FileFacts, Attributes]:
        directory, name = self._place(change.path)
        system = self._places.system
        descriptor = system.open_file(name, self._places.descriptor(directory))
        try:
            facts = self._places.facts_of(descriptor)
            extended = system.attributes(descriptor)
        finally:
            system.close(descriptor)
        state = self._baseline.read(change.path)
        known = state.fingerprint if isinstance(state, Present) else None
        if known is None or facts.sha256 != known.sha256:
            raise _changed(change.path)
        if not facts.mode & _WRITE_BITS or facts.links > 1:
            raise CommitConflict(
                f"{change.path} was made read-only or given a second name meanwhile.", [change.path]
            )
        known_by = replace(facts, born=self._places.generation(directory, name))
        return known_by, Attributes(facts.mode, facts.owner, facts.group, extended)

    def _require_free(self, change: FileChange) -> None:
        directory, name = self._place(change.path)
        for length in range(1, len(directory) + 1):
            part = directory[:length]
            if part in self._missing or self._is_missing(part):
                self._missing.update(directory[:longer] for longer in range(length, len(directory) + 1))
                return
        found = self._places.inode(directory, name)
        # Under another spelling on a case-blind disk this may be the very file that is moved here.
        if found is not None and found not in {facts.inode for facts, _ in self._originals.values()}:
            raise _changed(change.path)

    def _is_missing(self, directory: Directory) -> bool:
        """Whether a directory has to be made. A file that this very commit deletes does not stand in the way."""
        if self._places.path(directory) in self._originals:
            return True
        try:
            self._places.descriptor(directory)
        except FileNotFoundError:
            return True
        return False

    def _inode(self, change: FileChange) -> Inode | None:
        return self._places.inode(*self._place(change.path))

    def _entry(self, number: int, change: FileChange) -> PlannedEntry:
        directory, name = self._place(change.path)
        workshop = self._workshops.for_directory(self._existing(directory))
        original = self._originals[change.path][0] if change.path in self._originals else None
        draft = PlannedEntry(
            number,
            directory,
            name,
            "Delete" if change.after is None else "Create" if original is None else "Replace",
            original,
            None,
            workshop,
            None
            if change.moved_from is None
            else os.fspath(change.moved_from.relative_to(self._places.root)),
        )
        if change.after is None:
            return draft
        attributes = self._attributes(change)
        data = change.after.encode()
        intended = self._workshops.write(
            workshop, draft.new_name, data, attributes, self._existing(directory)
        )
        return replace(draft, intended=intended)

    def _attributes(self, change: FileChange) -> Attributes | None:
        """Those of the file that is moved here, else of the one that is replaced, else those of a new file."""
        follows = change.path if change.moved_from is None else change.moved_from
        if follows in self._originals:
            return self._originals[follows][1]
        if change.path in self._originals:
            return self._originals[change.path][1]
        return None

    def _existing(self, directory: Directory) -> Directory:
        while directory in self._missing:
            directory = directory[:-1]
        return directory

    def _place(self, path: Path) -> tuple[Directory, str]:
        """Where a path is, worked out once: each is asked for several times, and paths are slow."""
        known = self._known.get(path)
        if known is None:
            try:
                parts = path.relative_to(self._places.root).parts
            except ValueError as error:
                raise TransactionError(f"{path} lies outside the workspace root.", [path]) from error
            known = self._known[path] = parts[:-1], parts[-1]
        return known


def _of(plan: CommitPlan, operation: str) -> list[PlannedEntry]:
    return [entry for entry in plan.entries if entry.operation == operation]


def _changed(path: Path) -> CommitConflict:
    return CommitConflict(f"{path} is not what the transaction was built on.", [path])


def _said(error: BaseException) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) or type(error).__name__
