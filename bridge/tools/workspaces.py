"""The five workspace tools."""

from __future__ import annotations

from pathlib import Path

from bridge.errors import Action, BridgeError
from bridge.msbuild_properties import MsBuildProperties
from bridge.progress import relayed
from bridge.states import State
from bridge.tools import answers
from bridge.tools.answers import Outcome
from bridge.tools.call import CallContext
from bridge.workbench import Workbench
from bridge.workspace import Workspace
from schemas import workspaces as wire


async def open_workspace(
    workbench: Workbench, request: wire.WorkspaceOpenRequest, context: CallContext
) -> Outcome:
    """Load a workspace; progress is reported to callers who ask for it."""
    properties = None
    if request.ms_build_properties is not None:
        properties = MsBuildProperties.check(request.ms_build_properties.model_dump(by_alias=True))
    if request.alias is not None and not request.alias.strip():
        raise BridgeError("InvalidRequest", "The alias must not be empty.")
    async with relayed(context.report_progress) as tell:
        workspace = await workbench.open_workspace(
            Path(request.path),
            alias=request.alias,
            root=answers.path_or_none(request.workspace_root),
            properties=properties,
            tell=tell,
        )
    data = wire.WorkspaceOpenData(
        workspace=answers.identity(workspace),
        project_count=len(workspace.structure.projects),
        document_count=workspace.load.document_count,
        load_diagnostics=(
            *answers.load_diagnostics(workspace.load),
            *answers.advisories(workspace, await workbench.neighbours(workspace)),
        ),
        server=answers.language_server(workspace),
    )
    return Outcome(data, f"Opened {_summary(workspace)}", workspace.snapshot())


async def list_workspaces(
    workbench: Workbench, _request: wire.WorkspaceListRequest, _context: CallContext
) -> Outcome:
    """The open workspaces."""
    owner = workbench.transaction_owner
    data = wire.WorkspaceListData(
        workspaces=tuple(answers.identity(w) for w in workbench.workspaces),
        transaction_owner_workspace_id=owner.id if owner else None,
    )
    names = ", ".join(w.name for w in workbench.workspaces)
    count = answers.counted(len(workbench.workspaces), "open workspace")
    return Outcome(data, f"{count}{': ' + names if names else ''}.")


async def workspace_status(
    workbench: Workbench, request: wire.WorkspaceStatusRequest, _context: CallContext
) -> Outcome:
    """Where a workspace stands.  Takes no lease: it must answer while a load or a commit is running."""
    workspace = workbench.select(request.workspace)
    full = request.detail == "Full"
    brief = request.detail == "Minimal"
    change = workspace.external_change
    others = None if brief else await workbench.neighbours(workspace)
    obstacle = await workbench.recoveries.obstacle(workspace.root)
    told = () if obstacle is None else (answers.unfinished_commit(obstacle),)
    data = wire.WorkspaceStatusData(
        state=workspace.state.value,
        workspace=answers.identity(workspace),
        project_count=None if brief else len(workspace.structure.projects),
        document_count=None if brief else workspace.load.document_count,
        load_diagnostics=(
            *answers.load_diagnostics(workspace.load),
            *answers.advisories(workspace, others),
            *told,
        )
        if full
        else told or None,
        transaction=answers.transaction_info(workspace, is_obstructed=obstacle is not None),
        reload_required=workspace.state is State.OUT_OF_DATE,
        external_change=None
        if change is None
        else wire.ExternalChange(
            detection_source=change.detection_source,
            kind=change.kind,
            path=workspace.relative(change.path),
            previous_path=workspace.relative(change.previous_path) if change.previous_path else None,
            error_code=change.error_code,
        ),
        server=None if brief else answers.language_server(workspace),
    )
    if others is not None:
        data = data.model_copy(update={"instances": tuple(map(answers.instance, others.instances))})
    revision = f", revision {workspace.transaction.revision}" if workspace.transaction else ""
    return Outcome(data, f"{workspace.name}: {workspace.state.value}{revision}.", workspace.snapshot())


async def reload_workspace(
    workbench: Workbench, request: wire.WorkspaceReloadRequest, context: CallContext
) -> Outcome:
    """Load anew; always possible without a transaction."""
    workspace = workbench.select(request.workspace)
    async with workbench.holding(workspace):
        if workspace.transaction is not None:
            conflicted = workspace.state is State.TRANSACTION_CONFLICTED
            raise BridgeError(
                "WorkspaceReloadBlocked",
                f"{workspace.name} has an open transaction.",
                action=Action.ROLL_BACK if conflicted else None,
            )
        async with relayed(context.report_progress) as tell:
            await workspace.reload(tell)
    data = wire.WorkspaceReloadData(
        workspace=answers.identity(workspace),
        project_count=len(workspace.structure.projects),
        document_count=workspace.load.document_count,
        load_diagnostics=answers.load_diagnostics(workspace.load),
    )
    return Outcome(data, f"Reloaded {_summary(workspace)}", workspace.snapshot())


async def close_workspace(
    workbench: Workbench, request: wire.WorkspaceCloseRequest, _context: CallContext
) -> Outcome:
    """Close a workspace and stop its server."""
    workspace = workbench.select(request.workspace)
    await workbench.close_workspace(workspace)
    return Outcome(wire.WorkspaceCloseData(closed_path=str(workspace.path)), f"Closed {workspace.name}.")


def _summary(workspace: Workspace) -> str:
    diagnostics = workspace.load.diagnostics
    errors = sum(d.severity == "Error" for d in diagnostics)
    projects = answers.counted(len(workspace.structure.projects), "project")
    documents = answers.counted(workspace.load.document_count, "document")
    trouble = f"; {answers.counted(errors, 'load error')}: {diagnostics[0].message}" if errors else ""
    return (
        f"{workspace.name} ({projects}, {documents}) with {answers.language_server(workspace).name}{trouble}."
    )
