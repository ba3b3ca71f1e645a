"""A server that dies, hangs, or is not waited for: every caller gets an answer in time, and nothing staged is lost."""

import asyncio
import gc
import logging
import os
import signal
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import msgspec
import psutil
import pytest

from lsp_client import process, session, supervisor
from schemas.server import LanguageServerStatus, ServerStatusData
from schemas.workspaces import LanguageServer
from tests.bridge.agent import (
    APPLE,
    TEST_BOUND,
    Agent,
    Scene,
    UnexpectedRefusal,
    opened,
    real_bridge,
    scene,
    write_solution,
)
from tests.bridge.played_server import Offer, insert
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"
LISTING: Mapping[str, object] = {"document": {"path": FILE}, "kinds": "All"}


async def dead(made: Scene) -> None:
    """Kill the server, and wait until the bridge has seen it."""
    made.server.kill()
    keeper = made.workspace.supervisor
    while keeper.ready_session is not None:
        await keeper._changed.wait()


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds for a server that does nothing at all are longer than a test wants to see them run out."""
    monkeypatch.setattr(session, "ALIVE_TIMEOUT", 0.2)
    monkeypatch.setattr(process, "SHUTDOWN_WAIT", 0.2)
    monkeypatch.setattr(process, "EXIT_WAIT", 0.2)


# --- dying --------------------------------------------------------------------------------------------------


@keeps("death.restart", "death.ids")
@pytest.mark.parametrize("seen", [True, False], ids=["noticed", "not noticed yet"])
async def test_a_server_killed_while_idle_is_there_again_for_the_next_call(
    tmp_path: Path, seen: bool
) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        before = agent.identity
        (action,) = await agent.actions(FILE)
        if seen:
            await dead(made)
        else:
            made.server.kill()
        (again,) = await agent.actions(FILE)
        assert again.title == action.title
        assert agent.identity == before
        assert len(made.server.processes) == 2
        refusal = await agent.refused("stage-code-action", actionId=action.action_id)
        assert (refusal.code, refusal.kind) == ("ActionExpired", "ReviseRequest")
        assert (await agent.stage(again)).staged


@keeps("death.staged")
async def test_staged_work_outlives_the_server_and_is_shown_to_the_new_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        for _ in range(2):
            await agent.stage_first(FILE)
        before, preview = agent.identity, await agent.preview()
        await dead(made)
        assert await agent.preview() == preview
        (action,) = await agent.actions(FILE)
        assert action.title == "Add line 7"
        assert agent.identity == before
        await agent.undo()
        await dead(made)
        (action,) = await agent.actions(FILE)
        assert action.title == "Add line 6"
        await agent.redo()
        await dead(made)
        await agent.commit()
        assert made.file(FILE).read_text(encoding="utf-8") == f"// line 6\n// line 5\n{APPLE}"
        (action,) = await agent.actions(FILE)
        assert action.title == "Add line 7"
        assert agent.identity.workspace_epoch == 1


@keeps("death.restart")
@pytest.mark.parametrize("deaths", [1, 2])
async def test_a_listing_is_put_to_the_new_server_once_more(tmp_path: Path, deaths: int) -> None:
    async with opened(tmp_path) as made:
        usual = made.server._usual("textDocument/codeAction")
        before = made.agent.identity

        async def die_at_first(params: msgspec.Raw) -> object:
            if len(made.server.processes) <= deaths:
                made.server.kill()
                await anyio.sleep_forever()
            return await usual(params)

        made.server.answers["textDocument/codeAction"] = die_at_first
        if deaths == 2:
            refusal = await made.agent.refused("list-code-actions", **LISTING)
            assert (refusal.code, refusal.kind) == ("LanguageServerFailed", "RetryRequest")
            assert "started anew" in refusal.message
        assert await made.agent.actions(FILE)
        assert len(made.server.processes) == deaths + 1
        assert made.agent.identity == before


@keeps("death.restart", "death.ids")
@pytest.mark.parametrize("method", ["textDocument/codeAction", "codeAction/resolve"])
async def test_an_action_whose_server_dies_while_it_is_staged_is_expired_and_not_staged(
    tmp_path: Path, method: str
) -> None:
    async with opened(tmp_path) as made:

        async def die(_params: msgspec.Raw) -> object:
            made.server.kill()
            await anyio.sleep_forever()
            raise AssertionError("killed before")

        await made.agent.start()
        (action,) = await made.agent.actions(FILE)
        before = made.agent.identity
        made.server.answers[method] = die
        refusal = await made.agent.refused("stage-code-action", actionId=action.action_id)
        assert (refusal.code, refusal.kind) == ("ActionExpired", "ReviseRequest")
        del made.server.answers[method]
        assert (await made.agent.preview()).documents == ()
        (again,) = await made.agent.actions(FILE)
        assert made.agent.identity == before
        assert (await made.agent.stage(again)).staged


@keeps("death.restart", "open.load-failures")
async def test_a_server_killed_while_it_loads_is_told_and_the_next_open_works(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        made.server.loads = False
        codes: list[str] = []

        async def open_it() -> None:
            codes.append((await made.agent.refused("workspace-open", path=str(made.solution))).code)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(open_it)
            await made.server.until(lambda: "solution/open" in made.server.heard)
            made.server.kill()
        assert codes == ["LanguageServerFailed"]
        made.server.loads = True
        await made.agent.open(made.solution)


@keeps("death.restart", "death.staged")
@pytest.mark.parametrize("moment", range(14))
async def test_at_whatever_message_the_server_dies_the_work_gets_done(tmp_path: Path, moment: int) -> None:
    """Each call is answered or may be sent again; in the end the disk has what was staged, once."""
    async with scene(tmp_path) as made:
        agent = made.agent
        heard = 0
        codes: set[str] = set()
        note = made.server._heard

        def die_at_the_moment(method: str) -> None:
            nonlocal heard
            heard += 1
            if heard == moment + 1:
                made.server.kill()
            note(method)

        made.server._heard = die_at_the_moment  # type: ignore[method-assign]  # counts the messages

        async def insist(step: Callable[[], Awaitable[object]]) -> None:
            for _ in range(3):
                try:
                    await step()
                except UnexpectedRefusal as refused:
                    codes.add(refused.code)
                else:
                    return
            raise AssertionError("the call never came through")

        async def stage() -> None:
            await agent.stage_first(FILE)

        await insist(lambda: agent.open(made.solution))
        before = agent.identity
        await insist(agent.start)
        await insist(stage)
        await insist(stage)
        await insist(agent.undo)
        await insist(lambda: agent.actions("Core/Pear.cs"))
        await insist(stage)
        await insist(agent.commit)
        assert codes <= {"LanguageServerFailed", "ActionExpired"}
        assert heard > moment, "the story is shorter than that"
        assert made.file(FILE).read_text(encoding="utf-8") == f"// line 6\n// line 5\n{APPLE}"
        assert agent.identity.workspace_epoch == before.workspace_epoch
        assert len(made.server.processes) <= 3


@keeps("death.restart")
async def test_callers_in_parallel_with_a_death_are_all_answered(tmp_path: Path) -> None:
    async with opened(tmp_path, max_concurrent_queries=8) as made:
        titles: list[str] = []

        async def look() -> None:
            titles.extend(action.title for action in await made.agent.actions(FILE))

        async with made.server.held("textDocument/codeAction") as held, anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(look)
            await made.server.until(lambda: made.server.heard.count("textDocument/codeAction") == 8)
            made.server.kill()
            held.released.set()
        assert titles == ["Add line 5"] * 8
        assert len(made.server.processes) == 2


@keeps("death.restart")
async def test_a_server_that_does_not_come_back_is_told_within_the_bound_and_asked_for_again_later(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, restart_timeout=0.3) as made:
        made.server.loads = False
        await dead(made)
        refusal = await made.agent.refused("list-code-actions", **LISTING)
        assert (refusal.code, refusal.kind) == ("LanguageServerFailed", "RetryRequest")
        assert "0.3 s" in refusal.message
        await made.agent.status()
        made.server.loads = True
        made.server.finish_load()
        while (await made.agent.call("list-code-actions", **LISTING)).is_error:
            assert made.workspace.supervisor.state == "restarting", "each call waits for it, and asks again"


async def who_answers(made: Scene) -> tuple[LanguageServer, LanguageServerStatus]:
    """The server as both status tools tell it."""
    status = (await made.agent.status()).server
    servers = (await made.agent.ask(ServerStatusData, "server-status")).language_servers
    assert status is not None
    assert servers is not None
    (server,) = servers
    assert (server.name, server.version, server.limits) == (status.name, status.version, status.limits)
    assert server.state == status.state
    return status, server


@keeps("death.restart")
async def test_a_server_that_is_gone_keeps_its_name_version_and_mark_and_is_said_to_be_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "RESTART_DELAYS", (0.0,))
    async with scene(tmp_path) as made:

        async def initialize(_params: msgspec.Raw) -> object:
            return {"capabilities": {}, "serverInfo": {"name": "played", "version": "9.9 (stand-in)"}}

        made.server.answers["initialize"] = initialize
        await made.agent.open(made.solution)
        before, process_before = await who_answers(made)
        assert "stand-in" in before.name
        assert (before.version, before.state) == ("9.9 (stand-in)", "ready")
        assert process_before.pid == made.server.processes[-1]
        async with made.server.held("initialize") as held:
            await dead(made)
            await held.reached.wait()
            restarting, process = await who_answers(made)
            assert restarting == before.model_copy(update={"state": "restarting"})
            assert process.pid is None
        keeper = made.workspace.supervisor
        await keeper.session()
        assert (await who_answers(made))[0] == before
        made.server.path.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
        made.server.kill()
        while keeper.state != "failed":
            await keeper._changed.wait()
        failed, process = await who_answers(made)
        assert failed == before.model_copy(update={"state": "failed"})
        assert process.pid is None


@keeps("death.close")
@pytest.mark.parametrize("how", ["dead", "silent", "restarting"])
async def test_a_workspace_is_closed_whatever_its_server_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    hurry(monkeypatch)
    async with opened(tmp_path) as made:
        if how == "silent":
            os.kill(made.server.processes[-1], signal.SIGSTOP)
        else:
            made.server.loads = how != "restarting"
            await dead(made)
        with anyio.fail_after(TEST_BOUND):
            await made.agent.close()
        assert (await made.agent.list_workspaces()).workspaces == ()
        assert not any(psutil.pid_exists(pid) for pid in made.server.processes)


@keeps("death.restart", "death.staged")
async def test_the_embedded_server_is_killed_and_its_work_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with real_bridge(tmp_path, server="embedded") as agent:
        solution = write_solution(tmp_path / "shop")
        path = solution.parent / "App/Program.cs"
        path.write_text("if (args.Length > 0)\n    System.Console.WriteLine();\n", encoding="utf-8")
        await agent.open(solution)
        await agent.start()
        caret: Mapping[str, object] = {"range": {"start": 3, "length": 0}}
        offered = await agent.actions("App/Program.cs", **caret)
        before = agent.identity
        session = agent.workspace.supervisor.ready_session
        assert session is not None
        os.kill(session.pid, signal.SIGKILL)
        again = await agent.actions("App/Program.cs", **caret)
        assert [a.title_path for a in again] == [a.title_path for a in offered]
        assert agent.identity == before
        await agent.stage(next(a for a in again if a.title_path and a.title_path[0] == "Add braces"))
        await agent.commit()
        assert "{" in path.read_text(encoding="utf-8")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@keeps("death.restart")
async def test_a_server_that_dies_more_often_than_it_is_brought_back_unasked_comes_back_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "RESTART_DELAYS", (0.0, 0.0))
    async with opened(tmp_path) as made:
        for death in range(5):
            assert await made.agent.actions(FILE)
            assert len(made.server.processes) == death + 1
            await dead(made)


# --- hanging ------------------------------------------------------------------------------------------------


@keeps("death.hang")
@pytest.mark.parametrize("method", ["textDocument/codeAction", "codeAction/resolve"])
async def test_a_server_that_never_answers_ends_in_a_failure_within_the_bound(
    tmp_path: Path, method: str
) -> None:
    async with opened(tmp_path, request_timeout=1.5) as made:
        await made.agent.start()
        (action,) = await made.agent.actions(FILE)
        before = made.agent.identity
        async with made.server.held(method):
            refusal = await made.agent.refused("stage-code-action", actionId=action.action_id)
            assert (refusal.code, refusal.kind) == ("LanguageServerFailed", "RetryRequest")
            assert method in refusal.message
            assert "1.5 s" in refusal.message
        (again,) = await made.agent.actions(FILE)
        assert made.agent.identity == before
        assert (await made.agent.stage(again)).staged


@keeps("death.hang")
async def test_a_server_that_is_stopped_is_found_out_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurry(monkeypatch)
    async with opened(tmp_path, request_timeout=1.5) as made:
        os.kill(made.server.processes[-1], signal.SIGSTOP)
        refusal = await made.agent.refused("list-code-actions", **LISTING)
        assert refusal.code == "LanguageServerFailed"
        (action,) = await made.agent.actions(FILE)
        assert action.title == "Add line 5"
        assert len(made.server.processes) == 2


# --- cancelled calls ----------------------------------------------------------------------------------------


@keeps("call.cancelled", "lease.freed")
@pytest.mark.parametrize("method", ["textDocument/codeAction", "codeAction/resolve"])
async def test_a_cancelled_stage_leaves_no_lease_no_question_and_nothing_staged(
    tmp_path: Path, method: str
) -> None:
    async with opened(tmp_path, lease_wait=0.0) as made:
        await made.agent.start()
        (action,) = await made.agent.actions(FILE)
        before = made.agent.identity
        async with made.server.held(method) as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.stage, action)
            await held.reached.wait()
            tasks.cancel_scope.cancel()
        session = made.workspace.supervisor.ready_session
        assert session is not None
        assert session.pending_request_count == 0
        await made.server.until(lambda: session.open_document_count == 0)
        assert (await made.agent.preview()).documents == ()
        assert made.agent.identity == before
        assert (await made.agent.stage(action)).staged


@keeps("call.cancelled", "lease.freed")
async def test_a_cancelled_listing_leaves_no_lease_and_no_question(tmp_path: Path) -> None:
    async with opened(tmp_path, lease_wait=0.0, max_concurrent_queries=1) as made:
        for _ in range(5):
            async with (
                made.server.held("textDocument/codeAction") as held,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(made.agent.actions, FILE)
                await held.reached.wait()
                tasks.cancel_scope.cancel()
        session = made.workspace.supervisor.ready_session
        assert session is not None
        assert session.pending_request_count == 0
        assert await made.agent.actions(FILE)
        await made.agent.start()


@keeps("call.cancelled", "lease.freed")
async def test_a_call_cancelled_while_it_looks_at_the_disk_frees_its_lease(tmp_path: Path) -> None:
    async with opened(tmp_path, lease_wait=0.0) as made:
        looked = anyio.Event()
        look = made.workspace._changed_inputs

        async def noted_look(inputs: object) -> object:
            looked.set()
            await anyio.sleep_forever()
            raise AssertionError("was cancelled before")

        made.workspace._changed_inputs = noted_look  # type: ignore[method-assign,assignment]  # a look that lasts
        for tool, arguments in (("list-code-actions", LISTING), ("transaction-start", {})):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(made.agent.call, tool, **arguments))
                await looked.wait()
                looked = anyio.Event()
                tasks.cancel_scope.cancel()
        made.workspace._changed_inputs = look  # type: ignore[method-assign]
        await made.agent.actions(FILE)
        await made.agent.start()


@keeps("call.cancelled", "lease.freed")
async def test_a_cancelled_reload_is_made_up_for_by_the_next_call(tmp_path: Path) -> None:
    async with opened(tmp_path, lease_wait=0.0) as made:
        write_solution(made.root)
        made.file(FILE).write_text("class New { }\n", encoding="utf-8")
        async with made.server.held("initialize") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.reload)
            await held.reached.wait()
            tasks.cancel_scope.cancel()
        await made.agent.status()
        (action,) = await made.agent.actions(FILE)
        assert action.title == "Add line 1"
        assert sum(psutil.pid_exists(pid) for pid in made.server.processes) == 1


@keeps("call.cancelled", "close.releases")
async def test_a_cancelled_close_is_still_a_close(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        async with made.server.held("shutdown") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.close)
            await held.reached.wait()
            tasks.cancel_scope.cancel()
            held.released.set()
        assert (await made.agent.list_workspaces()).workspaces == ()
        assert not any(psutil.pid_exists(pid) for pid in made.server.processes)
        await made.agent.open(made.solution)


@keeps("call.cancelled", "external.picked-up")
async def test_a_cancelled_pick_up_is_made_up_for_by_the_next_call(tmp_path: Path) -> None:
    async with opened(tmp_path, lease_wait=0.0) as made:
        await made.agent.actions(FILE)
        project = made.file("App/App.csproj")
        project.write_text(project.read_text(encoding="utf-8") + "<!-- -->", encoding="utf-8")
        await made.agent.refused("list-code-actions", **LISTING)
        await made.agent.status()
        async with made.server.held("initialize") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.actions, FILE)
            await held.reached.wait()
            tasks.cancel_scope.cancel()
        assert await made.agent.actions(FILE)
        assert sum(psutil.pid_exists(pid) for pid in made.server.processes) == 1
        await made.agent.start()


@keeps("call.cancelled")
async def test_a_commit_that_has_begun_is_not_cut_short(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        await made.agent.stage_first(FILE)
        end = made.workspace.end_committed

        with anyio.CancelScope() as scope:

            async def cancelled_end(*arguments: object) -> None:
                scope.cancel()
                await end(*arguments)  # type: ignore[arg-type]

            made.workspace.end_committed = cancelled_end  # type: ignore[method-assign,assignment]  # the moment of the cancel
            await made.agent.commit()
        made.workspace.end_committed = end  # type: ignore[method-assign]
        assert made.file(FILE).read_text(encoding="utf-8") == f"// line 5\n{APPLE}"
        assert (await made.agent.status()).state == "Ready"
        await made.agent.start()


@keeps("death.restart", "external.told")
async def test_a_server_that_dies_before_it_was_told_of_changed_projects_loads_the_new_ones(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        await made.agent.actions(FILE)
        made.solution.write_text('<Solution><Project Path="Core/Core.csproj" /></Solution>', encoding="utf-8")
        assert (await made.agent.refused("list-code-actions", **LISTING)).code == "SnapshotMismatch"
        await made.agent.status()
        made.server.kill()
        await made.server.until(lambda: len(made.server.processes) == 2)
        assert await made.agent.actions(FILE)
        supervisor = made.workspace.supervisor
        assert (supervisor.generation, len(made.server.processes)) == (2, 2)
        session = supervisor.ready_session
        assert session is not None
        assert session.target.projects == (made.file("Core/Core.csproj"),)


# --- leaks --------------------------------------------------------------------------------------------------


GROWTH_BYTES = 1_000_000
"""What a hundred listings may keep: their action ids, which have a bound of their own, and noise."""


def counted() -> Mapping[str, int]:
    """What must not grow."""
    gc.collect()
    ours = psutil.Process()
    return {
        "files": ours.num_fds(),
        "tasks": len(asyncio.all_tasks()),
        "threads": ours.num_threads(),
        "processes": len(ours.children(recursive=True)),
    }


async def hundred_listings_leak_nothing(agent: Agent) -> None:
    """Some calls to get everything going, then a hundred that may leave nothing."""
    session = agent.workspace.supervisor.ready_session
    assert session is not None
    for _ in range(10):
        await agent.actions(FILE)
    before = counted()
    tracemalloc.start()
    start, _ = tracemalloc.get_traced_memory()
    for _ in range(100):
        await agent.actions(FILE)
    gc.collect()
    end, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counted() == before
    assert end - start < GROWTH_BYTES
    assert (session.open_document_count, session.pending_request_count) == (0, 0)
    assert agent.workspace.supervisor.generation == 1


@keeps("leak.none")
async def test_a_hundred_listings_leak_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await hundred_listings_leak_nothing(made.agent)


@keeps("leak.none")
async def test_a_hundred_listings_of_the_embedded_server_leak_nothing(tmp_path: Path) -> None:
    async with real_bridge(tmp_path, server="embedded") as agent:
        await agent.open(write_solution(tmp_path / "shop"))
        await hundred_listings_leak_nothing(agent)


def numbered(number: int) -> Offer:
    return Offer(f"Edit {number}", lambda path, _text: [insert(path, f"// {number}\n")])


@keeps("leak.none")
async def test_stages_and_undos_leave_no_more_open_than_the_last_state_needs(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        for number in range(30):
            made.server.offers = [numbered(number)]
            await made.agent.stage_first(FILE)
            await made.agent.undo()
        await made.agent.actions(FILE)
        session = made.workspace.supervisor.ready_session
        assert session is not None
        assert session.open_document_count == 0
        assert (await made.agent.preview()).documents == ()
