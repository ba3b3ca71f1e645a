"""``server-status``."""

from __future__ import annotations

from bridge.tools import answers
from bridge.tools.answers import Outcome, counted
from bridge.tools.call import CallContext
from bridge.version import bridge_version
from bridge.workbench import Workbench
from bridge.workspace import Workspace
from schemas import server as wire
from schemas.catalog import CATALOG
from transactions.recovery import RecoveryItem


async def server_status(
    workbench: Workbench, request: wire.ServerStatusRequest, _context: CallContext
) -> Outcome:
    """The state of this process; at minimal detail nothing is computed."""
    brief = request.detail == "Minimal"
    unfinished = () if brief else await workbench.recoveries.unfinished(w.root for w in workbench.workspaces)
    data = wire.ServerStatusData(
        server_version=bridge_version(),
        tool_count=len(CATALOG),
        configuration=None if brief else _configuration(workbench),
        startup_warnings=None if brief else _warnings(workbench),
        recovery=None if brief else tuple(_recovery(item) for item in unfinished),
        language_servers=tuple(_language_server(w) for w in workbench.workspaces),
        ms_build=None if brief else _msbuild(workbench),
        notes=(*_notes(workbench), *(() if brief else await _unknown(workbench))) or None,
    )
    count = len(unfinished)
    listing = workbench.recoveries.command.line("list")
    waiting = f" Unfinished: {counted(count, 'interrupted commit')} ({listing})." if count else ""
    text = (
        f"Roslyn Bridge {bridge_version()}, {counted(len(workbench.workspaces), 'open workspace')}.{waiting}"
    )
    return Outcome(data, text)


def _warnings(workbench: Workbench) -> tuple[wire.StartupWarning, ...]:
    given = tuple(wire.StartupWarning(code=w.code, message=w.message) for w in workbench.options.warnings)
    problem = workbench.recoveries.problem
    if problem is None:
        return given
    return (*given, wire.StartupWarning(code="StateDirectoryUnusable", message=problem))


def _notes(workbench: Workbench) -> tuple[str, ...]:
    """What cannot be promised for a workspace that is open."""
    return tuple(
        f"{workspace.name}: its file system cannot let two files change places in one step, so during a commit a name "
        "is free for an instant, and what somebody writes there in it can be lost."
        for workspace in workbench.workspaces
        if workspace.instance.lacks_exchange
    )


async def _unknown(workbench: Workbench) -> tuple[str, ...]:
    """Workspaces that may hold an interrupted commit of another bridge without our being able to see it."""
    names = {workspace.root: workspace.name for workspace in workbench.workspaces}
    return tuple(
        f"{names[root]}: whether another bridge's commit was interrupted here cannot be told. {reason}"
        for root, reason in await workbench.recoveries.unknown(names)
    )


def _recovery(item: RecoveryItem) -> wire.Recovery:
    path = item.loaded_path or item.root
    known = {} if item.state is None else {"state": item.state}
    return wire.Recovery(
        commit_id=item.commit_id,
        solution_path="" if path is None else str(path),
        message=item.message,
        code=item.code,
        **known,
    )


def _configuration(workbench: Workbench) -> wire.Configuration:
    options = workbench.options
    return wire.Configuration(
        default_max_results=options.default_max_results,
        code_action_reference_lifetime=wire.duration(options.code_action_reference_lifetime),
        max_transaction_revisions=options.max_transaction_revisions,
        max_concurrent_queries=options.max_concurrent_queries,
        tool_output_schema_mode=options.tool_output_schema_mode,
    )


def _msbuild(workbench: Workbench) -> wire.Component:
    dotnet = workbench.dotnet
    if dotnet is None:
        return wire.Component(
            is_available=False, message="No dotnet command was found; install the .NET SDK."
        )
    return wire.Component(
        is_available=True, message="The dotnet command was found; its SDK is checked at workspace-open."
    )


def _language_server(workspace: Workspace) -> wire.LanguageServerStatus:
    supervisor = workspace.supervisor
    server = supervisor.identity
    return wire.LanguageServerStatus(
        workspace_id=workspace.id,
        name=server.name,
        version=server.version,
        dialect=workspace.request.launch.dialect.name,
        state=supervisor.observed_state,
        pid=server.pid,
        view=answers.server_view(workspace),
        view_refused=server.tree_refused,
        limits=server.limits,
    )
