"""Workspaces through their tools: opening, listing, status, reload and close, and who may work when."""

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec
import psutil
import pytest

from bridge.tools.call import CallContext
from tests.bridge.agent import PROJECT, Scene, opened, real_bridge, scene, write_solution
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"


def script(path: Path, text: str) -> Path:
    """A program of a few lines of shell."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


# --- what can be opened -------------------------------------------------------------------------------------


def filter_file(made: Scene) -> Path:
    path = made.file("Core.slnf")
    path.write_text('{"solution": {"path": "Shop.slnx", "projects": ["Core/Core.csproj"]}}', encoding="utf-8")
    return path


@keeps("open.accepts", "open.ready")
@pytest.mark.parametrize(
    ("choose", "projects", "documents"),
    [
        (lambda made: made.solution, 2, 3),
        (lambda made: made.root, 2, 3),
        (lambda made: made.file("Core/Core.csproj"), 1, 2),
        (lambda made: made.file("Core"), 1, 2),
        (filter_file, 1, 2),
    ],
    ids=["solution", "its folder", "project", "its folder", "filter"],
)
async def test_a_solution_a_project_and_their_folders_are_opened(
    tmp_path: Path, choose: Callable[[Scene], Path], projects: int, documents: int
) -> None:
    async with scene(tmp_path) as made:
        path = choose(made)
        data = await made.agent.open(path, alias="shop")
        assert (data.project_count, data.document_count) == (projects, documents)
        assert data.workspace is not None
        assert data.workspace.alias == "shop"
        assert Path(data.workspace.loaded_path).is_file()
        assert made.agent.identity.workspace_epoch == data.workspace.workspace_epoch
        assert data.server is not None
        assert data.server.dialect == "embedded"
        assert data.server.limits == ("syntax only",)
        assert "syntax only" in [d.message for d in data.load_diagnostics]
        await made.agent.status(workspace={"path": str(path)})


NOT_OPENED: dict[str, tuple[Callable[[Scene], Path], str, str]] = {
    "missing": (lambda made: made.file("Nowhere/No.sln"), "WorkspacePathInvalid", "nearest folder"),
    "relative": (lambda made: Path("Shop.slnx"), "WorkspacePathInvalid", "not absolute"),
    "no solution": (lambda made: made.file(FILE), "WorkspacePathInvalid", "no solution"),
    "empty folder": (lambda made: _folder(made, "empty"), "WorkspacePathInvalid", "holds no solution"),
    "other language": (lambda made: _file(made, "B.vbproj", "<Project />"), "WorkspaceNotSupported", "C#"),
    "ambiguous": (
        lambda made: _file(made, "Other.sln", "").parent,
        "WorkspacePathAmbiguous",
        "Other.sln, Shop",
    ),
    "garbage": (lambda made: _file(made, "G.sln", "no header"), "WorkspaceLoadFailed", "header"),
    "no project": (lambda made: _file(made, "E.slnx", "<Solution />"), "WorkspaceLoadFailed", "no project"),
    "only others": (
        lambda made: _file(made, "V.slnx", '<Solution><Project Path="V.vbproj" /></Solution>'),
        "WorkspaceNotSupported",
        "V.vbproj",
    ),
    "project gone": (
        lambda made: _file(made, "M.slnx", '<Solution><Project Path="M.csproj" /></Solution>'),
        "WorkspaceLoadFailed",
        "does not exist",
    ),
    "NUL": (lambda made: Path("/a\0b"), "WorkspacePathInvalid", "NUL"),
    "too long": (lambda made: Path("/" + "x" * 5000), "WorkspacePathInvalid", ""),
}


def _folder(made: Scene, name: str) -> Path:
    made.file(name).mkdir()
    return made.file(name)


def _file(made: Scene, name: str, text: str) -> Path:
    made.file(name).write_text(text, encoding="utf-8")
    return made.file(name)


@keeps("open.path-errors", "open.candidates")
@pytest.mark.parametrize("case", NOT_OPENED)
async def test_what_cannot_be_opened_is_named_and_nothing_is_left_open(tmp_path: Path, case: str) -> None:
    choose, code, words = NOT_OPENED[case]
    async with scene(tmp_path) as made:
        refusal = await made.agent.refused("workspace-open", path=str(choose(made)))
        assert refusal.code == code, refusal.message
        assert words in refusal.message
        assert refusal.kind is None
        assert (await made.agent.list_workspaces()).workspaces == ()
        assert made.server.processes == []
        await made.agent.open(made.solution)


@keeps("open.in-use")
async def test_a_path_and_an_alias_are_used_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        other = write_solution(tmp_path / "other")
        await made.agent.open(made.solution, alias="shop")
        link = tmp_path / "link"
        link.symlink_to(made.root, target_is_directory=True)
        for path in (made.solution, made.root, link / "Shop.slnx"):
            refusal = await made.agent.refused("workspace-open", path=str(path))
            assert refusal.code == "WorkspaceAlreadyOpen"
        refusal = await made.agent.refused("workspace-open", path=str(other), alias="shop")
        assert refusal.code == "WorkspaceAlreadyOpen"
        assert "shop" in refusal.message
        await made.agent.open(other)
        assert len(made.server.processes) == 2


@keeps("open.in-use", "parallel.calls")
async def test_of_two_openings_of_one_path_one_is_refused_while_the_other_still_loads(tmp_path: Path) -> None:
    async with scene(tmp_path) as made, made.server.held("initialize") as held:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.open, made.solution)
            await held.reached.wait()
            refusal = await made.agent.refused("workspace-open", path=str(made.solution))
            assert refusal.code == "WorkspaceAlreadyOpen"
            held.released.set()
        assert len((await made.agent.list_workspaces()).workspaces) == 1


@keeps("open.in-use")
async def test_of_two_openings_with_one_alias_the_later_one_ends_its_server(tmp_path: Path) -> None:
    async with scene(tmp_path) as made, made.server.held("initialize") as held:
        other = write_solution(tmp_path / "other")
        codes: list[object] = []

        async def open_both(path: Path) -> None:
            answer = await made.agent.call("workspace-open", path=str(path), alias="same")
            error = answer.envelope.get("error")
            codes.append(error["code"] if isinstance(error, dict) else None)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_both, made.solution)
            tasks.start_soon(open_both, other)
            await held.reached.wait()
            held.released.set()
        assert sorted(codes, key=str) == [None, "WorkspaceAlreadyOpen"]
        assert len((await made.agent.list_workspaces()).workspaces) == 1
        assert sum(psutil.pid_exists(pid) for pid in made.server.processes) == 1


@keeps("open.capacity")
async def test_no_more_workspaces_than_allowed(tmp_path: Path) -> None:
    async with scene(tmp_path, max_workspaces=1) as made:
        other = write_solution(tmp_path / "other")
        await made.agent.open(made.solution)
        refusal = await made.agent.refused("workspace-open", path=str(other))
        assert (refusal.code, refusal.kind) == ("WorkspaceCapacityReached", None)
        await made.agent.close()
        await made.agent.open(other)


# --- root and properties ------------------------------------------------------------------------------------


@keeps("open.root")
async def test_the_root_is_the_git_folder_or_the_folder_of_the_file_or_the_given_one(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        project = made.file("Core/Core.csproj")

        async def root_of(**more: object) -> str:
            data = await made.agent.open(project, **more)
            await made.agent.close()
            assert data.workspace is not None
            return data.workspace.workspace_root

        assert await root_of() == str(project.parent)
        (made.root / ".git").write_text("gitdir: elsewhere", encoding="utf-8")  # a worktree has a file there
        assert await root_of() == str(made.root)
        assert await root_of(workspaceRoot=str(tmp_path)) == str(tmp_path)


@keeps("open.root")
@pytest.mark.parametrize("root", ["App", "relative", "Nowhere", "Shop.slnx", "long", "NUL"])
async def test_a_root_that_cannot_bound_the_workspace_is_refused(tmp_path: Path, root: str) -> None:
    async with scene(tmp_path) as made:
        given = {"relative": "Core", "long": "/" + "x" * 5000, "NUL": "/a\0b"}.get(root, str(made.file(root)))
        path = made.file("Core/Core.csproj")
        refusal = await made.agent.refused("workspace-open", path=str(path), workspaceRoot=given)
        assert (refusal.code, refusal.kind) == ("WorkspaceRootInvalid", None)


@keeps("open.project-outside-root")
async def test_a_project_outside_of_the_root_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        inner = made.file("Inner/In.slnx")
        inner.parent.mkdir()
        inner.write_text('<Solution><Project Path="../Core/Core.csproj" /></Solution>', encoding="utf-8")
        refusal = await made.agent.refused("workspace-open", path=str(inner))
        assert (refusal.code, refusal.kind) == ("WorkspaceProjectOutsideRoot", None)
        assert "Core.csproj" in refusal.message
        await made.agent.open(inner, workspaceRoot=str(made.root))


@keeps("open.properties")
@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"configuration": ""}, "configuration"),
        ({"artifactsPath": "relative"}, "artifactsPath"),
        ({"platform": "$(Evil)"}, "platform"),
        ({"targetFramework": "net9.0"}, "does not evaluate projects"),
    ],
)
async def test_properties_that_cannot_take_effect_are_refused(
    tmp_path: Path, properties: dict[str, str], words: str
) -> None:
    async with scene(tmp_path) as made:
        refusal = await made.agent.refused(
            "workspace-open", path=str(made.solution), msBuildProperties=properties
        )
        assert (refusal.code, refusal.kind) == ("WorkspaceMsBuildPropertiesInvalid", None)
        assert words in refusal.message
        assert (await made.agent.list_workspaces()).workspaces == ()


@keeps("open.properties")
async def test_properties_without_effect_are_said_by_a_server_that_evaluates_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        for properties in ({"configuration": "Release"}, {"targetFramework": "net8.0"}):
            data = await made.agent.open(made.solution, msBuildProperties=properties)
            assert "WorkspacePropertiesWithoutEffect" in [d.id for d in data.load_diagnostics]
            await made.agent.close()
        data = await made.agent.open(made.solution, msBuildProperties={})
        assert "WorkspacePropertiesWithoutEffect" not in [d.id for d in data.load_diagnostics]


@keeps("open.properties", "request.unknown-field")
async def test_a_property_nobody_knows_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        refusal = await made.agent.refused(
            "workspace-open", path=str(made.solution), msBuildProperties={"configuraton": "Release"}
        )
        assert refusal.code == "InvalidRequest"
        assert "'configuration'" in refusal.message


@keeps("open.skipped")
async def test_other_and_old_projects_are_skipped_aloud(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        _file(made, "Old.csproj", '<Project><Import Project="x/Microsoft.CSharp.targets" /></Project>')
        paths = ["Core/Core.csproj", "B.vbproj", "Old.csproj", "Gone.csproj"]
        projects = "".join(f'<Project Path="{path}" />' for path in paths)
        solution = _file(made, "Mixed.slnx", f"<Solution>{projects}</Solution>")
        data = await made.agent.open(solution)
        assert data.project_count == 1
        told = {d.id: d.message for d in data.load_diagnostics if d.severity != "Info"}
        skipped = [d.message for d in data.load_diagnostics if d.id == "WorkspaceProjectSkipped"]
        assert len(skipped) == 2
        assert "Gone.csproj" in told["WorkspaceProjectLoadFailed"]
        assert data.load_diagnostics[0].severity == "Error"


# --- loads that fail ----------------------------------------------------------------------------------------


@keeps("open.load-failures")
async def test_a_server_that_ends_while_it_starts_has_its_last_words_told(tmp_path: Path) -> None:
    server = script(tmp_path / "server", 'echo "no licence for this machine" >&2; exit 3')
    async with real_bridge(tmp_path, server_path=server) as agent:
        refusal = await agent.refused("workspace-open", path=str(write_solution(tmp_path / "shop")))
        assert (refusal.code, refusal.kind) == ("LanguageServerFailed", "RetryRequest")
        assert "no licence for this machine" in refusal.message
        assert (await agent.list_workspaces()).workspaces == ()


@keeps("open.load-failures")
async def test_a_server_that_is_no_program_is_told_so(tmp_path: Path) -> None:
    server = tmp_path / "server"
    server.write_bytes(b"\0\1\2")
    async with real_bridge(tmp_path, server_path=server) as agent:
        refusal = await agent.refused("workspace-open", path=str(write_solution(tmp_path / "shop")))
        assert refusal.code == "LanguageServerFailed"


@keeps("open.load-failures")
async def test_a_load_that_never_ends_is_given_up_in_time_and_its_process_ended(tmp_path: Path) -> None:
    async with scene(tmp_path, load_timeout=4.0) as made:
        made.server.loads = False
        shebang, command = made.server.path.read_text(encoding="utf-8").split("\n", 1)
        words = 'echo "waiting for a lock on the solution" >&2'
        made.server.path.write_text(f"{shebang}\n{words}\n{command}", encoding="utf-8")
        refusal = await made.agent.refused("workspace-open", path=str(made.solution))
        assert (refusal.code, refusal.kind) == ("WorkspaceLoadTimedOut", None)
        assert "4 s" in refusal.message
        assert "waiting for a lock on the solution" in refusal.message
        assert made.server.processes, "the server was there, and loading"
        assert not any(psutil.pid_exists(pid) for pid in made.server.processes)
        made.server.loads = True
        await made.agent.open(made.solution)


@keeps("open.load-failures")
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"server_path": Path("/nowhere/server")}, "LanguageServerNotFound"),
        ({"server": "csharp-ls"}, "LanguageServerNotFound"),
        ({"server": "roslyn", "server_path": Path("/bin/true")}, "DotnetSdkNotFound"),
    ],
)
async def test_a_missing_server_and_a_missing_sdk_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, object], code: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DOTNET_ROOT", "DOTNET_CLI_HOME", "DOTNET_ROSLYN_SERVER_PATH", "MASON", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    async with real_bridge(tmp_path, **options) as agent:
        refusal = await agent.refused("workspace-open", path=str(write_solution(tmp_path / "shop")))
        assert (refusal.code, refusal.kind) == (code, None)


@keeps("open.changed-during-load")
async def test_a_file_that_changes_while_the_server_loads_is_a_reason_to_try_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        made.server.while_loading = lambda: made.file(FILE).write_text("class Changed { }", encoding="utf-8")
        refusal = await made.agent.refused("workspace-open", path=str(made.solution))
        assert (refusal.code, refusal.kind) == ("WorkspaceChangedDuringLoad", "RetryRequest")
        assert FILE in refusal.message
        assert not any(psutil.pid_exists(pid) for pid in made.server.processes)
        made.server.while_loading = lambda: None
        await made.agent.open(made.solution)


@keeps("open.progress")
async def test_opening_tells_progress_that_never_goes_back(tmp_path: Path) -> None:
    told: list[tuple[float, float | None, str]] = []

    async def report(progress: float, total: float | None, message: str) -> None:
        told.append((progress, total, message))

    async with real_bridge(tmp_path, server="embedded") as agent:
        agent.context = CallContext(report)
        await agent.open(write_solution(tmp_path / "shop"))
        values = [progress for progress, _, _ in told]
        assert values
        assert values == sorted(set(values))
        assert all(0 <= value <= 100 and total == 100 for value, total, _ in told)
        assert all(message for _, _, message in told)
        opened_with = len(told)
        await agent.reload()
        assert len(told) > opened_with


@keeps("open.cancelled", "lease.freed")
@pytest.mark.parametrize("method", ["initialize", "load"])
async def test_a_cancelled_opening_leaves_no_workspace_and_no_process(tmp_path: Path, method: str) -> None:
    async with scene(tmp_path) as made:
        server = made.server
        server.loads = method != "load"
        async with server.held("initialize") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.open, made.solution)
            await held.reached.wait()
            if method == "load":
                held.released.set()
                await server.until(lambda: "solution/open" in server.heard)
            tasks.cancel_scope.cancel()
        assert (await made.agent.list_workspaces()).workspaces == ()
        assert not any(psutil.pid_exists(pid) for pid in server.processes)
        server.loads = True
        await made.agent.open(made.solution)


# --- list, status, reload, close ----------------------------------------------------------------------------


@keeps("status.details")
async def test_more_detail_tells_more(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        brief = await made.agent.status(detail="Minimal")
        assert (brief.project_count, brief.load_diagnostics, brief.server) == (None, None, None)
        assert (brief.state, brief.reload_required) == ("Ready", False)
        usual = await made.agent.status()
        assert (usual.project_count, usual.document_count, usual.load_diagnostics) == (2, 3, None)
        full = await made.agent.status(detail="Full")
        assert full.load_diagnostics
        assert full.external_change is None
        await made.agent.start()
        assert (await made.agent.status(detail="Minimal")).transaction is not None


@keeps("close.transaction", "close.releases")
async def test_closing_ends_the_server_unless_a_transaction_is_open(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        refusal = await made.agent.refused("workspace-close")
        assert refusal.code == "TransactionOpen"
        assert (refusal.kind, refusal.tools) == ("ChooseTool", ("transaction-commit", "transaction-rollback"))
        await made.agent.roll_back()
        closed = await made.agent.close()
        assert closed.closed_path == str(made.solution)
        assert not psutil.pid_exists(made.server.processes[0])
        assert made.server.heard[-2:] == ["shutdown", "exit"]
        await made.agent.open(made.solution)
        assert len(made.server.processes) == 2


@keeps("reload.always", "snapshot.reload")
async def test_a_reload_is_a_new_process_a_new_epoch_and_a_new_id(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        before = made.agent.identity
        (action,) = await made.agent.actions(FILE)
        reloaded = await made.agent.reload()
        after = made.agent.identity
        assert reloaded.project_count == 2
        assert after.workspace_id == before.workspace_id
        assert after.workspace_epoch == before.workspace_epoch + 1
        assert after.snapshot_id != before.snapshot_id
        assert len(made.server.processes) == 2
        assert not psutil.pid_exists(made.server.processes[0])
        await made.agent.start()
        assert (
            await made.agent.refused("stage-code-action", actionId=action.action_id)
        ).code == "ActionExpired"


@keeps("reload.always")
async def test_a_reload_that_fails_leaves_nothing_of_the_old_load_behind(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.file(FILE).write_text("class New { }\n", encoding="utf-8")

        async def initialize(_params: msgspec.Raw) -> object:
            made.server.kill()
            return {}

        made.server.answers["initialize"] = initialize
        refusal = await made.agent.refused("workspace-reload")
        assert refusal.code == "LanguageServerFailed"
        del made.server.answers["initialize"]
        await made.agent.status()
        assert made.agent.identity.workspace_epoch == 2
        await made.agent.start()
        await made.agent.stage_first(FILE)
        await made.agent.commit()
        assert made.file(FILE).read_text(encoding="utf-8") == "// line 1\nclass New { }\n"


@keeps("reload.blocked")
async def test_a_transaction_blocks_the_reload(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        refusal = await made.agent.refused("workspace-reload")
        assert (refusal.code, refusal.kind) == ("WorkspaceReloadBlocked", "ChooseTool")
        assert refusal.tools == ("transaction-commit", "transaction-rollback")
        made.file(FILE).write_text("class Changed { }", encoding="utf-8")
        assert (
            await made.agent.refused("transaction-history", direction="Undo")
        ).code == "TransactionConflicted"
        conflicted = await made.agent.refused("workspace-reload")
        assert (conflicted.kind, conflicted.tools) == ("CallTool", ("transaction-rollback",))


@keeps("request.before-and-after")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("workspace-status", {}),
        ("workspace-reload", {}),
        ("workspace-close", {}),
        ("transaction-start", {}),
        ("transaction-preview", {}),
        ("transaction-rollback", {}),
        ("transaction-history", {"direction": "Undo"}),
        ("transaction-commit", {}),
        ("list-code-actions", {"document": {"path": "Core/Apple.cs"}, "kinds": "All"}),
        ("stage-code-action", {"actionId": "01234567-89ab-cdef-0123-456789abcdef"}),
    ],
)
async def test_before_open_and_after_close_the_caller_is_told_to_open(
    tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    async with opened(tmp_path) as made:
        snapshot = dict(made.agent.snapshot)
        await made.agent.close()
        for more in ({}, {"workspace": {"workspaceId": snapshot["workspaceId"]}}):
            made.agent.snapshot = snapshot
            refusal = await made.agent.refused(tool, **arguments, **more)
            assert refusal.code == "WorkspaceNotOpen"
            assert (refusal.kind, refusal.tools) == ("CallTool", ("workspace-open",))


@keeps("request.before-and-after")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("workspace-reload", {}),
        ("workspace-close", {}),
        ("transaction-start", {}),
        ("transaction-preview", {}),
        ("transaction-rollback", {}),
        ("list-code-actions", {"document": {"path": "Core/Apple.cs"}, "kinds": "All"}),
    ],
)
async def test_a_call_that_waited_while_the_workspace_was_closed_is_told_so(
    tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    async with opened(tmp_path) as made:
        codes: list[str] = []
        workspaces, workspace = made.agent.workbench._workspaces, made.workspace

        async def wait_in_line() -> None:
            codes.append((await made.agent.refused(tool, **arguments)).code)

        async with made.server.held("shutdown") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.close)
            await held.reached.wait()
            # Closing takes it out of the list at once, so a call in line has to have found it before.
            workspaces[workspace.id] = workspace
            tasks.start_soon(wait_in_line)
            await anyio.wait_all_tasks_blocked()
            del workspaces[workspace.id]
            held.released.set()
        assert codes == ["WorkspaceNotOpen"]


# --- leases -------------------------------------------------------------------------------------------------


@keeps("lease.busy")
@pytest.mark.parametrize(
    "tool", ["transaction-start", "workspace-close", "workspace-reload", "transaction-rollback"]
)
async def test_with_no_wait_a_call_beside_a_query_is_busy_at_once(tmp_path: Path, tool: str) -> None:
    async with opened(tmp_path, lease_wait=0.0) as made:
        async with made.server.held("textDocument/codeAction") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.actions, FILE)
            await held.reached.wait()
            refusal = await made.agent.refused(tool)
            assert (refusal.code, refusal.kind) == ("WorkspaceBusy", "RetryRequest")
            await made.agent.status()
            held.released.set()
        await made.agent.start()


@keeps("lease.queries")
async def test_one_query_more_than_allowed_is_busy_when_nothing_waits(tmp_path: Path) -> None:
    async with opened(tmp_path, lease_wait=0.0, max_concurrent_queries=2) as made:
        arguments = {"document": {"path": FILE}, "kinds": "All"}
        async with made.server.held("textDocument/codeAction") as held, anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(made.agent.actions, FILE)
            await made.server.until(lambda: made.server.heard.count("textDocument/codeAction") == 2)
            assert (await made.agent.refused("list-code-actions", **arguments)).code == "WorkspaceBusy"
            held.released.set()
        await made.agent.actions(FILE)


@keeps("lease.waits")
async def test_a_call_waits_for_its_turn_and_is_answered(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        order: list[str] = []

        async def query() -> None:
            await made.agent.actions(FILE)
            order.append("query")

        async def start() -> None:
            await made.agent.start()
            order.append("start")

        async with made.server.held("textDocument/codeAction") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(query)
            await held.reached.wait()
            tasks.start_soon(start)
            await anyio.wait_all_tasks_blocked()
            assert order == []
            held.released.set()
        assert order == ["query", "start"]


@keeps("lease.waits")
async def test_a_wait_for_a_lease_ends(tmp_path: Path) -> None:
    async with opened(tmp_path, lease_wait=0.05) as made:
        async with made.server.held("textDocument/codeAction") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.actions, FILE)
            await held.reached.wait()
            refusal = await made.agent.refused("transaction-start")
            assert refusal.code == "WorkspaceBusy"
            assert "0.05" in refusal.message
            held.released.set()
        await made.agent.start()


@keeps("parallel.calls")
async def test_calls_in_parallel_are_all_answered(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        titles: list[str] = []

        async def look(path: str) -> None:
            titles.extend(action.title for action in await made.agent.actions(path))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(look, FILE)
                tasks.start_soon(look, "Core/Pear.cs")
                tasks.start_soon(made.agent.status)
        assert titles == ["Add line 5"] * 20
        assert made.workspace.supervisor.generation == 1


async def test_the_state_directory_is_private(tmp_path: Path) -> None:
    async with opened(tmp_path):
        (ours,) = (tmp_path / "state").iterdir()
        for path in (ours, *(p for p in ours.iterdir() if p.is_dir())):
            assert path.stat().st_mode & 0o777 == 0o700
            assert path.stat().st_uid == os.geteuid()


async def test_a_project_file_that_cannot_be_read_is_told_and_the_others_are_loaded(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        made.file("App/App.csproj").write_text(PROJECT[:-12], encoding="utf-8")
        data = await made.agent.open(made.solution)
        assert data.project_count == 1
        assert data.load_diagnostics[0].id == "WorkspaceProjectLoadFailed"
        assert "App.csproj" in data.load_diagnostics[0].message
