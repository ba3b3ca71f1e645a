"""The code under test behind two calls, so that the rest of the harness does not depend on how it is put together."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from tests.faults.seam import Cancelled, Seam
from transactions import recovery
from transactions.baseline import Baseline
from transactions.commit import CommitResult
from transactions.commit import commit as commit_
from transactions.errors import CommitUnrecordable
from transactions.file_journal import FileJournal
from transactions.journal import CommitPlan, CommitRecord, Journal
from transactions.lock import commit_lock
from transactions.overlay import FileChange
from transactions.places import Directory
from transactions.resolving import resolve
from transactions.system import System


@dataclass(frozen=True, slots=True)
class Recovered:
    """How a recovery ended: "nothing", "settled", "conflict", "incomplete", "busy", "kept" (a displaced
    file that somebody wrote to waits for a person), "unusable" (the record or its root) or "broken".
    """

    kind: str
    said: str = ""


class _PhasedRecord:
    """Tells the seam what is going on."""

    def __init__(self, record: CommitRecord, seam: Seam) -> None:
        self._record = record
        self._seam = seam

    def workshop(self, directory: Directory) -> None:
        self._record.workshop(directory)

    def prepared(self, plan: CommitPlan) -> None:
        self._record.prepared(plan)

    def applying(self) -> None:
        self._record.applying()
        self._seam.phase = "applying"

    def committed(self) -> None:
        self._seam.phase = "committing"
        self._record.committed()
        self._seam.phase = "cleaning"

    def restored(self) -> None:
        self._record.restored()
        self._seam.phase = "cleaning"

    def unrestored(self, paths: Sequence[Path], refused: bool) -> None:
        self._record.unrestored(paths, refused)

    def finished(self) -> None:
        self._record.finished()


class _PhasedJournal:
    def __init__(self, journal: Journal, seam: Seam) -> None:
        self._journal = journal
        self._seam = seam

    def begin(self, commit_id: str, root: Path) -> CommitRecord:
        return _PhasedRecord(self._journal.begin(commit_id, root), self._seam)


def commit(  # noqa: PLR0917  # what a commit needs, and its number
    root: Path, state: Path, changes: Sequence[FileChange], baseline: Baseline, system: System, number: int
) -> CommitResult:
    """One commit under the lock, with the crash journal in `state`, as a bridge does it.

    It gets its id by `number`, not by chance: the order of some calls follows from it, and must be the same next time.
    """
    with (
        patch("transactions.commit.uuid.uuid4", lambda: uuid.UUID(int=number)),
        commit_lock(root, system=system) as lock,
    ):
        journal: Journal = FileJournal(state, lock, system=system)
        if isinstance(system, Seam):
            journal = _PhasedJournal(journal, system)
        return commit_(root, changes, baseline, journal=journal, system=system)


def recover(state: Path, system: System, root: Path | None = None) -> Recovered:
    """What a start of the bridge does with what it finds in `state`; `root` says where a workspace was moved to."""
    had_records = any((state / "recovery").glob("*"))
    try:
        items = recovery.recover(state, root=root, system=system)
    except CommitUnrecordable as error:
        return Recovered("incomplete", error.message)
    except (MemoryError, Cancelled) as error:
        return Recovered("incomplete", type(error).__name__)
    except Exception as error:  # noqa: BLE001  # it becomes a verdict
        return Recovered("broken", f"{type(error).__name__}: {error}")
    if not items:
        return Recovered("settled" if had_records else "nothing")
    return Recovered(_kind_of(items[0]), f"{items[0].state} {items[0].code}: {items[0].message}")


def _kind_of(item: recovery.RecoveryItem) -> str:
    if item.code == "WorkspaceBusy":
        return "busy"
    if not item.is_blocking:
        return "kept"
    if item.code is not None and item.code.startswith("RecoveryR"):
        return "unusable"
    return "conflict" if item.state == "RecoveryConflict" else "incomplete"


def undecided(state: Path) -> set[Path]:
    """The files that a person is asked about."""
    return {path for item in recovery.pending(state) for path in item.paths}


def take_before(state: Path) -> None:
    """What a person does about a conflict: the original everywhere. Raises TransactionError."""
    for item in recovery.pending(state):
        resolve(state, item.commit_id, (), "take-before")


def keep_disk(state: Path) -> None:
    """The other thing that a person does about a conflict: the tree stays. Raises TransactionError."""
    for item in recovery.pending(state):
        resolve(state, item.commit_id, (), "keep-disk")
