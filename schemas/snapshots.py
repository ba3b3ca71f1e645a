"""The identity of a state of a workspace, as published and as callers echo it."""

from __future__ import annotations

from pydantic import Field

from schemas.wire import Data, Integer, Request, Uuid


class Snapshot(Data):
    """Which state an answer speaks of.  Two states are the same only if all four members are equal."""

    workspace_id: Uuid
    workspace_epoch: Integer = Field(description="Changes whenever the workspace is loaded anew.")
    snapshot_id: Uuid = Field(description="Opaque; one for each text state.")
    transaction_revision: Integer | None = Field(description="Null outside a transaction.")


class ExpectedSnapshot(Request):
    """A snapshot echoed by a caller: the state its request was made for."""

    workspace_id: Uuid
    workspace_epoch: Integer
    snapshot_id: Uuid
    transaction_revision: Integer | None

    def names(self, snapshot: Snapshot) -> bool:
        """Whether this is that very snapshot."""
        return (
            self.workspace_id == snapshot.workspace_id
            and self.workspace_epoch == snapshot.workspace_epoch
            and self.snapshot_id == snapshot.snapshot_id
            and self.transaction_revision == snapshot.transaction_revision
        )
