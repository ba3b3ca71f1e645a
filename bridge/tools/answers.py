"""From the bridge's own values to the models that callers see; used by several tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bridge.diagnostics import Finding
from bridge.instances import InstanceStatus, Neighbours
from bridge.loading import Load
from bridge.projects import Document
from bridge.snapshots import SnapshotId
from bridge.states import State
from bridge.workspace import Workspace
from schemas import locations, snapshots, transactions, workspaces
from schemas.wire import Data

PROJECT_HAS_NO_PLACE = None
"""Load diagnostics speak of projects and servers, not of a place in a document."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool found or did: its data, the state it speaks of, and the same for people."""

    data: Data
    text: str
    snapshot: SnapshotId | None = None


def snapshot_answer(snapshot: SnapshotId) -> snapshots.Snapshot:
    """The published form of a snapshot."""
    return snapshots.Snapshot(
        workspace_id=snapshot.workspace_id,
        workspace_epoch=snapshot.epoch,
        snapshot_id=snapshot.snapshot_id,
        transaction_revision=snapshot.revision,
    )


def snapshot_expected(expected: snapshots.ExpectedSnapshot) -> SnapshotId:
    """The snapshot a caller echoed."""
    return SnapshotId(
        expected.workspace_id,
        expected.workspace_epoch,
        expected.snapshot_id,
        expected.transaction_revision,
    )


def identity(workspace: Workspace) -> workspaces.WorkspaceIdentity:
    """Which workspace an answer is about."""
    return workspaces.WorkspaceIdentity(
        workspace_id=workspace.id,
        alias=workspace.alias,
        workspace_epoch=workspace.epoch,
        loaded_path=str(workspace.path),
        workspace_root=str(workspace.root),
    )


def language_server(workspace: Workspace) -> workspaces.LanguageServer:
    """Who answers for a workspace, or did last; a stand-in is called one as soon as it has said so."""
    supervisor = workspace.supervisor
    server = supervisor.identity
    return workspaces.LanguageServer(
        name=server.name,
        version=server.version,
        dialect=workspace.request.launch.dialect.name,
        state=supervisor.observed_state,
        view=server_view(workspace),
        view_refused=server.tree_refused,
        limits=server.limits,
    )


def server_view(workspace: Workspace) -> workspaces.ServerView | None:
    """How the server sees staged files, or saw them last; ``None`` until it has been ready once."""
    has_tree = workspace.supervisor.identity.has_tree
    if has_tree is None:
        return None
    return "overlay" if has_tree else "text"


def load_diagnostics(load: Load) -> tuple[locations.Diagnostic, ...]:
    """What a load had to say."""
    return tuple(
        locations.Diagnostic(id=d.id, severity=d.severity, message=d.message, location=PROJECT_HAS_NO_PLACE)
        for d in load.diagnostics
    )


def instance(status: InstanceStatus) -> workspaces.OtherInstance:
    """Another live bridge, as it describes itself."""
    return workspaces.OtherInstance(
        instance_id=status.instance_id,
        loaded_path=status.loaded_path,
        workspace_root=status.workspace_root,
        workspace_state=status.workspace_state,
        transaction_revision=status.transaction_revision,
        commit_id=status.commit_id,
        commit_phase=status.commit_phase,
    )


def advisories(workspace: Workspace, others: Neighbours | None) -> tuple[locations.Diagnostic, ...]:
    """What there is to know about other bridges in the same root; warnings, and never a reason to refuse."""
    told: list[tuple[str, str]] = []
    if others is not None and others.instances:
        paths = ", ".join(sorted({status.loaded_path for status in others.instances}))
        told.append(
            (
                "WorkspaceInUse",
                f"{counted(len(others.instances), 'other bridge has', 'other bridges have')} this workspace open ({paths}). "
                "Both may stage; after the first commit the other transaction is conflicted.",
            )
        )
    if workspace.instance.problem is not None:
        told.append(
            (
                "WorkspaceInstanceStatusUnavailable",
                f"Other bridges cannot see that this workspace is open here: {workspace.instance.problem}.",
            )
        )
    if others is None:
        told.append(
            (
                "WorkspaceInstanceStatusUnavailable",
                "Whether other bridges have this workspace open is unknown.",
            )
        )
    elif others.unreadable:
        names = ", ".join(others.unreadable)
        told.append(
            (
                "WorkspaceInstanceStatusUnreadable",
                f"Other bridges have this workspace open, but what they say about it cannot be read: {names}.",
            )
        )
    if workspace.watcher is not None and workspace.watcher.problem is not None:
        told.append(
            (
                "WorkspaceWatchIncomplete",
                f"A change on disk may be told only when the next call meets it: {workspace.watcher.problem}.",
            )
        )
    return tuple(_warning(code, message) for code, message in told)


def unfinished_commit(message: str) -> locations.Diagnostic:
    """That an unfinished commit stands in the way of a workspace."""
    return _warning("RecoveryPending", message)


def _warning(code: str, message: str) -> locations.Diagnostic:
    return locations.Diagnostic(id=code, severity="Warning", message=message, location=PROJECT_HAS_NO_PLACE)


def transaction_info(
    workspace: Workspace, *, is_obstructed: bool = False
) -> transactions.TransactionInfo | None:
    """Where the transaction stands; ``None`` without one.  ``is_obstructed``: an unfinished commit is in its way."""
    if workspace.transaction is None:
        return None
    info = workspace.transaction.info(conflicted=workspace.state is State.TRANSACTION_CONFLICTED)
    return transactions.TransactionInfo(
        revision=info.revision,
        revision_count=info.revision_count,
        max_revisions=info.max_revisions,
        remaining_revisions=info.remaining_revisions,
        can_mutate=info.can_mutate and not is_obstructed,
        can_undo=info.can_undo and not is_obstructed,
        can_redo=info.can_redo and not is_obstructed,
        can_commit=info.can_commit and not is_obstructed,
        can_rollback=info.can_rollback,
    )


def document_reference(workspace: Workspace, document: Document) -> locations.DocumentReference:
    """A document by its ids and its path."""
    return locations.DocumentReference(
        document_id=document.id,
        path=workspace.relative(document.path),
        project_id=document.project_id,
    )


def document_error(workspace: Workspace, error: Finding) -> locations.DocumentError:
    """One error of a document, with its place counted from one."""
    return locations.DocumentError(
        id=error.id,
        message=error.message,
        path=workspace.relative(error.path),
        line=error.line + 1,
        column=error.character + 1,
    )


def counted(count: int, one: str, several: str | None = None) -> str:
    """``1 file``, ``2 files``."""
    return f"{count} {one if count == 1 else several or one + 's'}"


def path_or_none(text: str | None) -> Path | None:
    """A path a caller gave."""
    return None if text is None else Path(text)
