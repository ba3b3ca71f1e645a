"""The identity of one exact state of a workspace, which callers echo so that nothing is done to another state."""

from __future__ import annotations

import uuid
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """Workspace, load, state and transaction revision.

    Epoch and revision alone do not name a state (stage, undo and stage again gives another text at the same
    revision): the id is compared too.  ``revision`` is ``None`` outside a transaction, which differs from 0.
    """

    workspace_id: str
    epoch: int
    snapshot_id: str
    revision: int | None


def new_snapshot_id() -> str:
    """An id no other state has had."""
    return str(uuid.uuid4())
