"""A server that dies is brought back, a load that fails is told, and whatever happens there is an end in time."""

import os
import signal
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from lsp_client.dialects import ROSLYN
from lsp_client.dialects.base import DocumentView, LoadMessage, LoadTarget, ProjectChoice
from lsp_client.discovery import ServerLaunch
from lsp_client.errors import LanguageServerError, RequestTimedOut, ServerGone
from lsp_client.failures import (
    DocumentNotSeen,
    DotnetSdkNotFound,
    LanguageServerFailed,
    MsBuildPropertiesRejected,
    WorkspaceLoadFailed,
    WorkspaceLoadTimedOut,
)
from lsp_client.messages import Position, Range
from lsp_client.supervisor import Supervisor, Waits
from tests.lsp_client.strict import (
    BOUND,
    SERVER,
    WAITS,
    failure_of,
    seen,
    strict_launch,
    supervised,
    supervisor_of,
    workspace,
)

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("mode", ["roslyn", "csharp-ls"])

LOG = "window/logMessage"


async def killed(supervisor: Supervisor) -> None:
    """Kill the server and wait until its channel has ended."""
    session = await supervisor.session()
    os.kill(session.pid, signal.SIGKILL)
    with anyio.fail_after(BOUND):
        await session.connection.wait_ended()


def log_line(text: str, kind: int = 3) -> list[object]:
    return [LOG, {"type": kind, "message": text}]


# --- a new target -------------------------------------------------------------------------------------------


async def test_a_server_that_dies_comes_back_with_the_newest_target(tmp_path: Path) -> None:
    other = tmp_path / "Other.slnx"
    async with supervised(tmp_path, "csharp-ls") as supervisor:
        other.write_text((tmp_path / "App.slnx").read_text())
        supervisor.retarget(
            LoadTarget(other, tmp_path, (tmp_path / "App.csproj",)), {**os.environ, "NEWEST": "1"}
        )
        assert (await supervisor.session()).target.path == tmp_path / "App.slnx", (
            "the running one stays as it is"
        )
        await killed(supervisor)
        session = await supervisor.session()
        assert supervisor.generation == 2
        assert session.target.path == other
        process = psutil.Process(session.pid)
        assert str(other) in process.cmdline()
        assert process.environ()["NEWEST"] == "1"


# --- the first load -----------------------------------------------------------------------------------------


@both
async def test_a_load_is_over_when_run_has_started(tmp_path: Path, mode: str) -> None:
    async with supervised(tmp_path, mode) as supervisor:
        session = await supervisor.session()
        assert (supervisor.state, supervisor.generation) == ("ready", 1)
        assert await session.is_alive()
        assert psutil.Process(session.pid).is_running()


@pytest.mark.parametrize("complete", [None, [], {}])
async def test_the_end_of_a_load_is_understood_in_each_of_its_forms(tmp_path: Path, complete: object) -> None:
    async with supervised(tmp_path, "roslyn", complete=complete) as supervisor:
        assert supervisor.ready_session is not None


async def test_in_the_load_log_an_error_outweighs_the_success_that_follows_it(tmp_path: Path) -> None:
    bad, good = tmp_path / "Bad.csproj", tmp_path / "App.csproj"
    log = [
        log_line(f"[LanguageServerProjectLoader] Error while loading {bad}: no such import", 1),
        log_line(f"[LanguageServerProjectLoader] Successfully completed load of {bad}"),
        log_line(f"[LanguageServerProjectLoader] Successfully completed load of {good}"),
        ["window/_roslyn_showToast", {"messageType": 1, "message": "There were problems", "commands": []}],
    ]
    async with supervised(tmp_path, "roslyn", log=log) as supervisor:
        report = (await supervisor.session()).load_report
    assert report.errors == (LoadMessage("error", "no such import", bad),)
    assert [m.severity for m in report.messages if m.project == bad] == ["error"]
    assert [m.severity for m in report.messages if m.project == good] == ["info"]
    assert [m.text for m in report.messages if m.severity == "warning"] == ["There were problems"]


async def test_a_project_that_csharp_ls_could_not_load_is_an_error_although_the_solution_finished(
    tmp_path: Path,
) -> None:
    bad = tmp_path / "Bad.csproj"
    text = f"csharp-ls: msbuildWorkspace.Diagnostics: [Failure] Msbuild failed when processing the file '{bad}' with message: x"
    async with supervised(tmp_path, "csharp-ls", log=[log_line(text)]) as supervisor:
        (error,) = (await supervisor.session()).load_report.errors
    assert (error.project, error.severity) == (bad, "error")


async def test_a_solution_that_cannot_be_opened_is_reported_long_before_the_load_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_client.dialects.roslyn.LOAD_ERROR_GRACE", 0.3)
    failure = await failure_of(supervisor_of(tmp_path, "roslyn", load="broken"))
    assert isinstance(failure, WorkspaceLoadFailed)
    assert "Could not find file" in failure.message
    assert "Some.Place" not in failure.message


async def test_a_solution_that_csharp_ls_could_not_load_is_no_success_although_it_answers(
    tmp_path: Path,
) -> None:
    failure = await failure_of(supervisor_of(tmp_path, "csharp-ls", load="failed"))
    assert isinstance(failure, WorkspaceLoadFailed)
    assert "could not be loaded" in failure.message


async def test_a_load_that_never_ends_is_given_up_after_its_bound(tmp_path: Path) -> None:
    waits = Waits(load_timeout=3.0, request_timeout=BOUND)
    failure = await failure_of(supervisor_of(tmp_path, "roslyn", waits, load="never", stderr="last words\n"))
    assert isinstance(failure, WorkspaceLoadTimedOut)
    assert (failure.seconds, failure.stderr_tail) == (3.0, "last words\n")


@both
async def test_a_server_that_dies_while_it_starts_is_reported_with_its_last_words(
    tmp_path: Path, mode: str
) -> None:
    failure = await failure_of(
        supervisor_of(tmp_path, mode, load="die", stderr="Unrecognized command '--x'\n")
    )
    assert isinstance(failure, LanguageServerFailed)
    assert "Unrecognized command" in failure.stderr_tail


async def test_a_missing_runtime_is_told_as_such(tmp_path: Path) -> None:
    words = "noise\nYou must install or update .NET to run this application.\n\nFramework: 'X'\n"
    failure = await failure_of(supervisor_of(tmp_path, "csharp-ls", load="die", stderr=words))
    assert isinstance(failure, DotnetSdkNotFound)
    assert failure.message == "You must install or update .NET to run this application. Framework: 'X'"


async def test_a_program_that_is_not_there_is_reported(tmp_path: Path) -> None:
    target = workspace(tmp_path)
    missing = ServerLaunch(ROSLYN, (str(tmp_path / "no-server"),), "test")
    failure = await failure_of(Supervisor(missing, target, dict(os.environ), WAITS))
    assert isinstance(failure, LanguageServerFailed)
    assert "no-server" in failure.message
    no_dotnet = ServerLaunch(ROSLYN, (str(tmp_path / "dotnet"), "x.dll"), "test")
    assert isinstance(
        await failure_of(Supervisor(no_dotnet, target, dict(os.environ), WAITS)), DotnetSdkNotFound
    )


@pytest.mark.parametrize("said", ["", "Will use MSBuild props: map [(TargetFramework, net10.0)]\n"])
async def test_another_target_framework_than_the_one_asked_for_is_refused(tmp_path: Path, said: str) -> None:
    environment = {**os.environ, "TargetFramework": "netstandard2.0"}
    supervisor = Supervisor(strict_launch("csharp-ls", stderr=said), workspace(tmp_path), environment, WAITS)
    failure = await failure_of(supervisor)
    assert isinstance(failure, MsBuildPropertiesRejected)
    assert "netstandard2.0" in failure.message


async def test_the_target_framework_that_the_server_chose_itself_may_be_asked_for(tmp_path: Path) -> None:
    said = "      Will use MSBuild props: map [(TargetFramework, net10.0)]\n"
    environment = {**os.environ, "TargetFramework": "net10.0"}
    supervisor = Supervisor(strict_launch("csharp-ls", stderr=said), workspace(tmp_path), environment, WAITS)
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run)
        assert supervisor.state == "ready"
        await supervisor.stop()


async def test_a_question_about_a_framework_that_was_not_loaded_is_not_answered_for_another(
    tmp_path: Path,
) -> None:
    said = "      Will use MSBuild props: map [(TargetFramework, net10.0)]\n"
    place = Range(Position(0, 0), Position(0, 0))
    async with supervised(tmp_path, "csharp-ls", stderr=said) as supervisor:
        session = await supervisor.session()
        file = tmp_path / "One.cs"
        for loaded in (ProjectChoice("App", "net10.0"), ProjectChoice("App"), None):
            assert (await session.list_actions(file, place, project=loaded)).actions == ()
        with pytest.raises(DocumentNotSeen, match=r"net10\.0 alone") as refusal:
            await session.list_actions(file, place, project=ProjectChoice("App", "netstandard2.0"))
        assert refusal.value.loaded == "net10.0"


async def test_progress_is_told_while_it_loads(tmp_path: Path) -> None:
    told: list[tuple[float | None, str]] = []
    supervisor = supervisor_of(tmp_path, "roslyn")
    supervisor.on_progress = lambda percent, text: told.append((percent, text))
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run)
        await supervisor.stop()
    assert told == [(0, "Loading")]


# --- death and return ---------------------------------------------------------------------------------------


@both
async def test_a_killed_server_is_back_with_a_new_generation_and_sees_the_staged_text(
    tmp_path: Path, mode: str
) -> None:
    view = DocumentView({tmp_path / "One.cs": "class Staged { }"})
    async with supervised(tmp_path, mode) as supervisor:
        first = await supervisor.session()
        await first.synchronise(view)
        os.kill(first.pid, signal.SIGKILL)
        with pytest.raises(ServerGone):
            await first.ask("test/seen", {})
        with anyio.fail_after(BOUND):
            second = await supervisor.session()
        assert (supervisor.generation, second.open_document_count) == (2, 0)
        await second.synchronise(view)
        assert await seen(second, tmp_path / "One.cs") == ["class Staged { }"]
        assert not psutil.pid_exists(first.pid)


@both
async def test_all_who_wait_are_answered_when_the_server_dies(tmp_path: Path, mode: str) -> None:
    ended: list[type[Exception]] = []

    async with supervised(tmp_path, mode, deaf=["workspace/symbol"]) as supervisor:
        session = await supervisor.session()

        async def ask() -> None:
            try:
                await session.ask("workspace/symbol", {"query": "x"})
            except ServerGone as gone:
                ended.append(type(gone))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
            await anyio.lowlevel.checkpoint()
            os.kill(session.pid, signal.SIGKILL)
        assert ended == [ServerGone] * 5
        assert session.pending_request_count == 0


async def test_a_server_that_cannot_come_back_is_reported_and_tried_again_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is gone when the server dies, and there again later."""
    monkeypatch.setattr("lsp_client.supervisor.RESTART_DELAYS", (0.0, 0.05, 0.1))
    program = tmp_path / "server"
    program.symlink_to(sys.executable)
    launch = ServerLaunch(ROSLYN, (str(program), "-I", "-S", str(SERVER), '{"mode": "roslyn"}'), "test")
    supervisor = Supervisor(launch, workspace(tmp_path), dict(os.environ), WAITS)
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run)
        program.unlink()
        await killed(supervisor)
        with anyio.fail_after(BOUND), pytest.raises(LanguageServerFailed):
            await supervisor.session()
        assert supervisor.state == "failed"
        assert supervisor.failure is not None
        program.symlink_to(sys.executable)
        with anyio.fail_after(BOUND):
            again = await supervisor.session()
        assert (supervisor.state, await again.is_alive()) == ("ready", True)
        await supervisor.stop()


async def test_whoever_asks_while_the_restart_takes_too_long_gets_an_answer_in_time(tmp_path: Path) -> None:
    waits = Waits(load_timeout=BOUND, request_timeout=BOUND, restart_timeout=0.3)
    how = tmp_path / "how"
    async with supervised(tmp_path, "roslyn", waits, load_file=str(how)) as supervisor:
        how.write_text("never")
        await killed(supervisor)
        with anyio.fail_after(BOUND), pytest.raises(LanguageServerFailed, match="did not come back within"):
            await supervisor.session()
        assert supervisor.state == "restarting"


async def test_a_deaf_server_is_replaced_when_it_is_doubted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_client.session.ALIVE_TIMEOUT", 0.3)
    monkeypatch.setattr("lsp_client.process.SHUTDOWN_WAIT", 0.3)
    async with supervised(tmp_path, "csharp-ls") as supervisor:
        first = await supervisor.session()
        assert await supervisor.doubt()
        await first.connection.notify("$/madeUp", {})
        assert not await supervisor.doubt()
        with anyio.fail_after(BOUND):
            second = await supervisor.session()
        assert second.pid != first.pid
        assert await second.is_alive()


@both
async def test_a_server_that_takes_no_bytes_any_more_is_replaced(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it sees is not known any more: the pipe holds a part of what the ledger has noted."""
    monkeypatch.setattr("lsp_client.process.SHUTDOWN_WAIT", 0.3)
    monkeypatch.setattr("lsp_client.process.EXIT_WAIT", 0.3)
    new = tmp_path / "New.cs"
    view = DocumentView({new: "// long\n" * 100_000}, frozenset({new}))
    async with supervised(tmp_path, mode) as supervisor:
        first = await supervisor.session()
        await first.ask("test/wedge", {})
        with monkeypatch.context() as hurried:  # a busy machine may need longer for the one that replaces it
            hurried.setattr("lsp_client.session.NOTIFY_TIMEOUT", 0.3)
            with anyio.fail_after(BOUND), pytest.raises(RequestTimedOut):
                await first.synchronise(view)
        assert first.broken.is_set()
        with anyio.fail_after(BOUND):
            second = await supervisor.session()
            await second.synchronise(view)
        assert (second.pid != first.pid, await seen(second, new)) == (True, [view.texts[new]])


# --- reload and stop ----------------------------------------------------------------------------------------


@both
async def test_a_reload_is_a_new_process_with_the_new_target_and_environment(
    tmp_path: Path, mode: str
) -> None:
    async with supervised(tmp_path / "a", mode) as supervisor:
        old = await supervisor.session()
        target = workspace(tmp_path / "b")
        with anyio.fail_after(BOUND):
            report = await supervisor.reload(target, {**os.environ, "Configuration": "Release"})
        new = await supervisor.session()
        assert (supervisor.generation, new.target, report.errors) == (2, target, ())
        assert psutil.Process(new.pid).environ()["Configuration"] == "Release"
        assert not psutil.pid_exists(old.pid)


async def test_a_reload_that_fails_says_why_and_the_next_one_may_succeed(tmp_path: Path) -> None:
    async with supervised(tmp_path, "roslyn") as supervisor:
        nowhere = LoadTarget(tmp_path / "App.slnx", tmp_path / "nowhere")
        with anyio.fail_after(BOUND), pytest.raises(LanguageServerFailed):
            await supervisor.reload(nowhere, dict(os.environ))
        with anyio.fail_after(BOUND):
            await supervisor.reload(workspace(tmp_path), dict(os.environ))
        assert supervisor.state == "ready"


async def test_a_reload_that_is_asked_for_while_a_restart_loads_wins_over_it(tmp_path: Path) -> None:
    how = tmp_path / "how"
    loading = anyio.Event()
    async with supervised(tmp_path, "roslyn", load_file=str(how)) as supervisor:
        how.write_text("never")
        supervisor.on_progress = lambda _percent, _text: loading.set()
        await killed(supervisor)
        with anyio.fail_after(BOUND):
            await loading.wait()
            how.write_text("ok")
            await supervisor.reload(workspace(tmp_path), dict(os.environ))
        assert (supervisor.state, supervisor.generation) == ("ready", 3)


@both
async def test_after_a_stop_no_process_is_left_and_every_call_is_refused(tmp_path: Path, mode: str) -> None:
    async with supervised(tmp_path, mode) as supervisor:
        session = await supervisor.session()
        with anyio.fail_after(BOUND):
            await supervisor.stop()
        assert not psutil.pid_exists(session.pid)
        assert supervisor.state == "stopped"
        with pytest.raises(LanguageServerFailed, match="stopped"):
            await supervisor.session()
        with pytest.raises(LanguageServerFailed, match="stopped"):
            await supervisor.reload(workspace(tmp_path), dict(os.environ))


async def test_a_stop_while_the_first_load_goes_on_ends_it(tmp_path: Path) -> None:
    supervisor = supervisor_of(tmp_path, "roslyn", load="never")
    failures: list[LanguageServerError] = []

    async def run() -> None:
        try:
            await supervisor.run()
        except LanguageServerError as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with anyio.fail_after(BOUND):
            while supervisor.generation == 0:
                await anyio.lowlevel.checkpoint()
            await supervisor.stop()
    assert [str(failure) for failure in failures] == ["The language server was stopped while it started."]


async def test_a_cancelled_run_leaves_no_process(tmp_path: Path) -> None:
    supervisor = supervisor_of(tmp_path, "roslyn")
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run)
        pid = (await supervisor.session()).pid
        tasks.cancel_scope.cancel()
    assert not psutil.pid_exists(pid)
