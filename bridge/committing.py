"""One commit of the bridge, from the lock to the last word of its record.  All of it blocks: it runs in a worker thread.

The order matters.  The lock comes first, so that of two bridges which commit at once the second one sees what the
first one wrote.  Under the lock every input is compared once more: a change anywhere in the workspace, not only in a
target, is a conflict.  Then the journal and the write (``transactions.commit``), which know nothing of workspaces.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transactions.baseline import Baseline, ExternalChange, Inputs
from transactions.commit import CommitResult, commit
from transactions.errors import CommitConflict
from transactions.file_journal import FileJournal
from transactions.journal import CommitPlan, CommitRecord, Journal
from transactions.lock import commit_lock
from transactions.overlay import FileChange
from transactions.places import Directory

Phase = Literal["Staging", "Applying", "Committed", "Restoring", "RecoveryConflict", "RecoveryIncomplete"]
TellPhase = Callable[[str, Phase], None]
"""Takes the id of a commit and how far it is."""

logger = logging.getLogger(__name__)


class InputsChanged(CommitConflict):
    """Under the lock, an input of the workspace was not what the transaction was built on."""

    def __init__(self, change: ExternalChange) -> None:
        super().__init__(f"{change.path} is {change.kind.lower()} on disk.", [change.path])
        self.change = change


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be written, and on what it was planned."""

    root: Path
    loaded_path: Path
    changes: Sequence[FileChange]
    baseline: Baseline
    inputs: Inputs
    state_directory: Path


def write(order: Order, wait: float, tell: TellPhase) -> CommitResult:
    """Commit, waiting at most ``wait`` seconds for the lock.

    Raises ``InputsChanged``, ``WorkspaceBusy``, ``CommitLockFailed``, ``RecoveryPending`` and what ``commit`` raises.
    """
    with commit_lock(order.root, wait=wait) as lock:
        changed = order.inputs.changes()
        if changed:
            raise InputsChanged(changed[0])
        journal = FileJournal(order.state_directory, lock, order.loaded_path)
        return commit(order.root, order.changes, order.baseline, journal=ToldJournal(journal, tell))


def intended(changes: Sequence[FileChange]) -> Mapping[Path, bytes | None]:
    """The SHA-256 that each target has after the commit; ``None`` for a deleted file."""
    return {
        change.path: None if change.after is None else hashlib.sha256(change.after.encode()).digest()
        for change in changes
    }


def is_written(targets: Mapping[Path, bytes | None]) -> bool:
    """Whether every target is on disk as it was intended."""
    return all(_hash(path) == sha256 for path, sha256 in targets.items())


def _hash(path: Path) -> bytes | None:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except FileNotFoundError:
        return None
    except OSError:
        return b""


class ToldJournal:
    """A journal that also says how far a commit is, for other bridges to read."""

    def __init__(self, journal: Journal, tell: TellPhase) -> None:
        self._journal = journal
        self._tell = tell

    def begin(self, commit_id: str, root: Path) -> CommitRecord:
        """Opens the record."""
        record = self._journal.begin(commit_id, root)
        told = _ToldRecord(record, commit_id, self._tell)
        told.say("Staging")
        return told


class _ToldRecord:
    def __init__(self, record: CommitRecord, commit_id: str, tell: TellPhase) -> None:
        self._record = record
        self._id = commit_id
        self._tell = tell

    def say(self, phase: Phase) -> None:
        """Nothing that goes wrong here may reach the commit: after the instant it would be taken back."""
        try:
            self._tell(self._id, phase)
        except Exception:
            logger.exception("the phase of a commit could not be told")

    def workshop(self, directory: Directory) -> None:
        self._record.workshop(directory)

    def prepared(self, plan: CommitPlan) -> None:
        self._record.prepared(plan)

    def applying(self) -> None:
        self._record.applying()
        self.say("Applying")

    def committed(self) -> None:
        self._record.committed()
        self.say("Committed")

    def restored(self) -> None:
        self._record.restored()
        self.say("Restoring")

    def unrestored(self, paths: Sequence[Path], refused: bool) -> None:  # the seam's signature
        self._record.unrestored(paths, refused)
        self.say("RecoveryIncomplete" if refused else "RecoveryConflict")

    def finished(self) -> None:
        self._record.finished()
