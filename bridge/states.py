"""The life of a workspace as a table: what may happen in which state, and where it leads."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class State(Enum):
    """Where a workspace stands; the values are the names of the contract."""

    READY = "Ready"
    TRANSACTION_ACTIVE = "TransactionActive"
    TRANSACTION_CONFLICTED = "TransactionConflicted"
    OUT_OF_DATE = "WorkspaceOutOfDate"


class Event(Enum):
    """What moves a workspace from one state to another."""

    TRANSACTION_STARTED = "a transaction was started"
    COMMITTED = "the transaction was committed"
    ROLLED_BACK = "the transaction was rolled back"
    EXTERNAL_CHANGE = "an input changed on disk"
    PICKED_UP = "the change on disk was picked up, or the workspace was reloaded"
    READ_FAILED = "the change on disk could not be read"


TRANSITIONS: Mapping[tuple[State, Event], State] = {
    (State.READY, Event.TRANSACTION_STARTED): State.TRANSACTION_ACTIVE,
    (State.READY, Event.EXTERNAL_CHANGE): State.OUT_OF_DATE,
    (State.READY, Event.PICKED_UP): State.READY,
    (State.TRANSACTION_ACTIVE, Event.COMMITTED): State.READY,
    (State.TRANSACTION_ACTIVE, Event.ROLLED_BACK): State.READY,
    (State.TRANSACTION_ACTIVE, Event.EXTERNAL_CHANGE): State.TRANSACTION_CONFLICTED,
    # The disk is newer than what is loaded, so a rolled back conflict still has to be read in.
    (State.TRANSACTION_CONFLICTED, Event.ROLLED_BACK): State.OUT_OF_DATE,
    (State.OUT_OF_DATE, Event.PICKED_UP): State.READY,
    (State.OUT_OF_DATE, Event.READ_FAILED): State.OUT_OF_DATE,
}


def next_state(state: State, event: Event) -> State:
    """The state after ``event``.  Raises ``KeyError`` for a move the table does not allow: a mistake of ours."""
    return TRANSITIONS[state, event]
