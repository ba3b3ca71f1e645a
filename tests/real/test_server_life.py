"""Real servers die and hang at any moment: callers are answered, staged work stays, and nothing outlives the bridge."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import anyio
import psutil
import pytest

from tests.bridge.frontends.peer import Peer
from tests.real.conftest import RealServer
from tests.real.mcp_agent import CALL_TIMEOUT, Agent, Json, bridge_process
from tests.real.small import options, small_solution, titles

TEXT = "namespace Small;\n\npublic class First\n{\n    private int _one;\n}\n\npublic class Second\n{\n}\n"
ATTRIBUTE = "Add 'DebuggerDisplay' attribute"
MARK = "ROSLYN_BRIDGE_TEST_MARK"
"""An environment variable that every process of one test inherits, so that none can hide."""

GONE_WAIT = 20.0
"""Seconds until the processes of a bridge that has ended are gone: its own waits and the guard's."""

ANSWER_BOUND = 120.0
"""Seconds for a call that meets a dead or deaf server: request timeout, question of health, and a new load."""


def server_process(status: Json) -> psutil.Process:
    """The server of the only workspace."""
    (server,) = cast("list[Json]", status["languageServers"])
    return psutil.Process(cast("int", server["pid"]))


async def server_of(agent: Agent) -> psutil.Process:
    return server_process(await agent.do("server-status"))


async def snapshot_of(agent: Agent) -> Json:
    await agent.do("workspace-status")
    return dict(agent.snapshot)


async def staged_text(agent: Agent) -> str:
    preview = await agent.do("transaction-preview", document={"path": "Two.cs"}, includeDiff=True)
    lines = TEXT.splitlines()
    for hunk in reversed(cast("list[Json]", cast("Json", preview["diff"])["hunks"])):
        start = cast("int", hunk["originalStartLine"]) - 1
        kept = [line[1:] for line in cast("list[str]", hunk["lines"]) if not line.startswith("-")]
        lines[start : start + cast("int", hunk["originalLineCount"])] = kept
    return "\n".join(lines) + "\n"


@pytest.mark.anyio
async def test_a_server_killed_while_idle_while_listing_and_while_staging_costs_nobody_an_answer_or_staged_work(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "small", {"Two.cs": TEXT})
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(solution))
        await agent.do("transaction-start")
        await agent.stage("Two.cs", TEXT.index("First"), ATTRIBUTE)
        staged = await staged_text(agent)
        second = staged.index("Second")
        before = await snapshot_of(agent)
        offered = await agent.actions("Two.cs", second)

        # Idle.
        first_server = await server_of(agent)
        first_server.kill()
        with anyio.fail_after(ANSWER_BOUND):
            old = await agent.refused(
                "stage-code-action", actionId=offered[0]["actionId"], expectedSnapshot=before
            )
            assert old["code"] == "ActionExpired"
            assert await snapshot_of(agent) == before, "epoch, snapshot and revision stay"
            again = await agent.actions("Two.cs", second)
        assert titles(again) == titles(offered), "the new server sees the staged text"
        assert await staged_text(agent) == staged

        # While listing: a stopped server has the question for sure, and no answer.
        listing = await interrupted(agent, "list-code-actions", second)
        assert listing["ok"], listing
        found = cast("list[Json]", cast("Json", cast("Json", listing["data"])["actions"])["items"])
        assert titles(found) == titles(offered)
        assert await snapshot_of(agent) == before

        # While staging.
        staging = await interrupted(agent, "stage-code-action", second)
        assert cast("Json", staging["error"])["code"] == "ActionExpired"
        assert await snapshot_of(agent) == before
        assert await staged_text(agent) == staged, "all or nothing"
        await agent.stage("Two.cs", second, ATTRIBUTE)
        assert (await staged_text(agent)).count("[DebuggerDisplay") == 2
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    assert (solution.parent / "Two.cs").read_text().count("[DebuggerDisplay") == 2


async def interrupted(agent: Agent, tool: str, start: int) -> Json:
    """The answer of a call whose server is killed while it works on it."""
    arguments: Json = {"expectedSnapshot": dict(agent.snapshot)}
    if tool == "stage-code-action":
        action = next(a for a in await agent.actions("Two.cs", start) if a["title"] == ATTRIBUTE)
        arguments["actionId"] = action["actionId"]
    else:
        place: Json = {"start": start, "length": 0}
        arguments |= {"document": {"path": "Two.cs"}, "range": place, "kinds": "All", "limit": 200}
    server = await server_of(agent)
    answers: list[Json] = []

    async def call() -> None:
        answers.append(await agent.ask(tool, **arguments))

    with anyio.fail_after(ANSWER_BOUND):
        async with anyio.create_task_group() as calls:
            server.suspend()
            calls.start_soon(call)
            # Calls are read in order, so once a later one is answered this one is under way.
            await agent.do("server-status")
            await agent.do("workspace-list")
            server.kill()
    return answers[0]


@pytest.mark.anyio
async def test_a_server_that_hangs_is_given_up_within_the_bounds_and_replaced(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "small", {"Two.cs": TEXT})
    more = ("--request-timeout", "10")
    async with bridge_process(toolchain, options(real_server, tmp_path, *more)) as agent:
        await agent.do("workspace-open", path=str(solution))
        await agent.do("transaction-start")
        await agent.stage("Two.cs", TEXT.index("First"), ATTRIBUTE)
        staged, before = await staged_text(agent), await snapshot_of(agent)
        server = await server_of(agent)
        server.suspend()
        with anyio.fail_after(ANSWER_BOUND):
            started = time.monotonic()
            hung = await agent.refused_listing("Two.cs", 0)
            assert time.monotonic() - started < 30
            assert hung["code"] == "LanguageServerFailed"
            offered = titles(await agent.actions("Two.cs", staged.index("Second")))
        assert ATTRIBUTE in offered
        assert await snapshot_of(agent) == before
        assert (await server_of(agent)).pid != server.pid
        assert not server.is_running(), "the deaf one is gone"


# --- ends of the bridge -------------------------------------------------------------------------------------


class PatientPeer(Peer):
    """Waits as long as a cold load may take."""

    def receive_line(self) -> bytes | None:
        return self._lines.get(timeout=CALL_TIMEOUT)


@contextmanager
def marked_bridge(
    toolchain: Mapping[str, str], server: RealServer, tmp_path: Path, mark: str
) -> Iterator[Peer]:
    command = [sys.executable, "-m", "bridge", "mcp", *options(server, tmp_path)]
    with PatientPeer(command, environ={**toolchain, MARK: mark}) as peer:
        peer.open()
        yield peer


def marked(mark: str) -> list[psutil.Process]:
    """Every process that inherited the mark, wherever it hangs in the tree by now."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark:
                found.append(process)
        except psutil.Error:
            continue
    return found


ENDS: Mapping[str, Callable[[Peer], None]] = {
    "SIGTERM": lambda peer: peer.process.send_signal(signal.SIGTERM),
    "SIGINT": lambda peer: peer.process.send_signal(signal.SIGINT),
    "end of input": lambda peer: peer.close_input(),
    "kill -9": lambda peer: peer.process.kill(),
}


@pytest.mark.slow
@pytest.mark.parametrize("wedged", [False, True], ids=["healthy", "wedged"])
def test_no_end_of_the_bridge_leaves_a_process(
    wedged: bool, real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "small", {"Two.cs": TEXT})
    chosen = dict(list(ENDS.items())[:2]) if wedged == (real_server.kind == "roslyn") else ENDS
    for number, (name, end) in enumerate(chosen.items()):
        mark = f"{tmp_path}/{number}"
        with marked_bridge(toolchain, real_server, tmp_path, mark) as peer:
            peer.data("workspace-open", path=str(solution))
            server = server_process(peer.data("server-status"))
            family = marked(mark)
            assert server in family
            assert len(family) >= 3, "the bridge, the guard and the server at least"
            if wedged:
                os.kill(server.pid, signal.SIGSTOP)
            end(peer)
            peer.wait_end()
            _, left = psutil.wait_procs(marked(mark), GONE_WAIT)
        assert [process.cmdline() for process in left] == [], name
        assert marked(mark) == [], name
