"""The staged history of one transaction.

A revision is a whole overlay with an identity of its own. Staging appends one after the current revision and drops
whatever had been undone; undo and redo only move the current place, so a revision comes back with the very snapshot id
it had. Revision 0 is the baseline under the id it was started from.

The class is a value holder with rules; it does no I/O and knows no locks. Who shares it between tasks guards it.
"""

import uuid
from dataclasses import dataclass

from transactions.baseline import Baseline
from transactions.errors import RevisionCapacityReached, TransactionHistoryUnavailable
from transactions.overlay import FileChange, Overlay

DEFAULT_MAX_REVISIONS = 20


@dataclass(frozen=True, slots=True)
class Revision:
    """One staged state. `operation` is the name of the tool that staged it, `summary` a sentence for people."""

    overlay: Overlay
    snapshot_id: str
    operation: str | None
    summary: str | None


@dataclass(frozen=True, slots=True)
class TransactionInfo:
    """What may be done next; the meanings are those of the published `TransactionInfo`."""

    revision: int
    revision_count: int
    max_revisions: int
    remaining_revisions: int
    can_mutate: bool
    can_undo: bool
    can_redo: bool
    can_commit: bool
    can_rollback: bool


class Transaction:
    """Revisions over one baseline, and the place where we stand among them."""

    def __init__(
        self, baseline: Baseline, base_snapshot_id: str, max_revisions: int = DEFAULT_MAX_REVISIONS
    ) -> None:
        self.baseline = baseline
        self.max_revisions = max_revisions
        self._revisions = [Revision(Overlay(baseline), base_snapshot_id, None, None)]
        self._current = 0

    @property
    def revision(self) -> int:
        """The number of the current revision; 0 is the baseline."""
        return self._current

    @property
    def revision_count(self) -> int:
        """How many revisions are kept, the undone ones included, the baseline not."""
        return len(self._revisions) - 1

    @property
    def current(self) -> Overlay:
        """The tree at the current revision."""
        return self._revisions[self._current].overlay

    @property
    def snapshot_id(self) -> str:
        """The identity of the current revision."""
        return self._revisions[self._current].snapshot_id

    @property
    def revisions(self) -> tuple[Revision, ...]:
        """The staged revisions up to the current one, oldest first; what was undone is not among them."""
        return tuple(self._revisions[1 : self._current + 1])

    def changes(self) -> tuple[FileChange, ...]:
        """What a commit would write, against the baseline."""
        return self.current.changes()

    def info(self, *, conflicted: bool = False) -> TransactionInfo:
        """The published view. `conflicted` is told by the caller, who watches the disk."""
        current, most = self._current, self.max_revisions
        return TransactionInfo(
            revision=current,
            revision_count=self.revision_count,
            max_revisions=most,
            remaining_revisions=max(0, most - current),
            can_mutate=not conflicted and current < most,
            can_undo=current > 0,
            can_redo=current < self.revision_count,
            can_commit=not conflicted and current > 0,
            can_rollback=True,
        )

    def ensure_capacity(self) -> None:
        """Raises RevisionCapacityReached when nothing more can be staged at the current place."""
        if self._current >= self.max_revisions:
            raise RevisionCapacityReached(
                f"The transaction is at revision {self._current} of {self.max_revisions}; undo one to make room."
            )

    def stage(
        self, overlay: Overlay, operation: str, summary: str, *, snapshot_id: str | None = None
    ) -> bool:
        """Makes `overlay` the next revision and drops what had been undone.

        False, and nothing happens, when its content is that of the current revision. Raises RevisionCapacityReached.
        """
        if overlay.has_same_content(self.current):
            return False
        self.ensure_capacity()
        del self._revisions[self._current + 1 :]
        self._revisions.append(Revision(overlay, snapshot_id or str(uuid.uuid4()), operation, summary))
        self._current += 1
        return True

    def undo(self) -> None:
        """Goes back one revision. Raises TransactionHistoryUnavailable at the baseline."""
        if self._current == 0:
            raise TransactionHistoryUnavailable("There is no staged revision to undo.")
        self._current -= 1

    def redo(self) -> None:
        """Goes forward one revision. Raises TransactionHistoryUnavailable when nothing was undone."""
        if self._current == self.revision_count:
            raise TransactionHistoryUnavailable("There is no undone revision to redo.")
        self._current += 1
