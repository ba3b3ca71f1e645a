"""A whole bridge is killed with -9 while it commits; the next one finds the tree before the commit, or makes it so.

The moments are those that the bridge itself tells of in its status file, so each part of a commit is met; where exactly
inside of that part the process dies is the machine's to say.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import psutil
import pytest
from anyio import to_thread

from tests.bridge.agent import write_solution
from tests.bridge.played_server import Json, Offer, PlayedServer, insert, playing
from tests.bridge.promises import keeps
from tests.real.mcp_agent import Agent, bridge_process
from tests.transactions.worlds import Picture, picture

PHASES = ("Staging", "Applying", "Committed")
MANY = 120
BOUND = 90.0
FILE = "Core/Apple.cs"


def many_files(root: Path) -> Offer:
    """Edits every generated file."""

    def edit(_path: Path, _text: str) -> Sequence[Json]:
        return [insert(root / "Core" / f"Many{number:03}.cs", "// edited\n") for number in range(MANY)]

    return Offer("Edit many", edit)


def sources(root: Path) -> Picture:
    return {name: entry for name, entry in picture(root).items() if not name.startswith(".vs")}


def phase_in(root: Path) -> str | None:
    """What the one bridge there says of its commit; it may not have said anything, or be gone."""
    for status in (root / ".vs/roslyn-bridge/instances").glob("*.json"):
        try:
            said = json.loads(status.read_bytes()).get("commitPhase")
        except FileNotFoundError:
            continue
        return said if isinstance(said, str) else None
    return None


def kill_at(root: Path, phase: str) -> None:
    """Ends the bridge as soon as its status file says so; blocks.  Only one bridge is there."""
    (child,) = [p for p in psutil.Process().children() if "bridge" in p.cmdline() and "mcp" in p.cmdline()]
    due = PHASES[PHASES.index(phase) :]  # a busy machine may have let an early one slip by
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
        if phase_in(root) in due:
            os.kill(child.pid, signal.SIGKILL)
            return


def options(server: PlayedServer, tmp_path: Path) -> list[str]:
    return [
        *("--server", "embedded", "--server-path", str(server.path)),
        *("--state-directory", str(tmp_path / "state")),
    ]


async def commit_and_die(agent: Agent, root: Path, phase: str) -> None:
    await agent.do("workspace-open", path=str(root / "Shop.slnx"))
    await agent.do("transaction-start")
    await agent.stage(FILE, 0, "Edit many")
    async with anyio.create_task_group() as tasks:

        async def commit() -> None:
            try:
                await agent.ask("transaction-commit", expectedSnapshot=agent.snapshot)
            except Exception:  # noqa: BLE001  # the connection ends in the SDK's own ways
                return

        tasks.start_soon(partial(to_thread.run_sync, kill_at, root, phase, abandon_on_cancel=True))
        tasks.start_soon(commit)


@keeps("recovery.start")
@pytest.mark.anyio
@pytest.mark.parametrize("phase", PHASES)
async def test_the_tree_is_whole_again_when_the_next_bridge_answers_for_it(
    tmp_path: Path, phase: str
) -> None:
    root = tmp_path / "Läden & mehr"
    write_solution(root)
    for number in range(MANY):
        (root / f"Core/Many{number:03}.cs").write_text(f"class Many{number} {{ }}\n")
    before = sources(root)
    edited = {
        name: (mode, b"// edited\n" + content)
        if "Many" in name and isinstance(content, bytes)
        else (mode, content)
        for name, (mode, content) in before.items()
    }
    with anyio.fail_after(BOUND):
        async with playing() as server:
            server.offers = [many_files(root)]
            async with bridge_process(dict(os.environ), options(server, tmp_path)) as agent:
                await commit_and_die(agent, root, phase)
        async with playing() as server, bridge_process(dict(os.environ), options(server, tmp_path)) as agent:
            await agent.do("workspace-open", path=str(root / "Shop.slnx"))
            status = await agent.do("server-status", detail="Standard")
            assert status["recovery"] == []
            await agent.do("workspace-close")
    now = sources(root)
    assert now in (before, edited)
    assert phase != "Committed" or now == edited
    assert not (root / ".vs").exists()
