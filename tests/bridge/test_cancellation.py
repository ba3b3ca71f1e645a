"""A call may be cancelled at any moment: what it leaves is the state before it or the state after it, and free leases."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import psutil
import pytest

from tests.bridge.agent import Agent, Scene, opened
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"
LONGEST = 20_000
"""Turns of the event loop after which every call here is over."""


def moments() -> Iterator[int]:
    """Turns of the event loop to wait before the cancel: each of the first ones, then further and further apart."""
    turn = 0
    while turn < LONGEST:
        yield turn
        turn += 1 + turn // 4


async def cancelled_after(turns: int, call: Callable[[], Awaitable[object]]) -> bool:
    """Start the call, and cancel it after so many turns; whether it was over by then."""
    over = False

    async def run() -> None:
        nonlocal over
        await call()
        over = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
            if over:
                return True
        tasks.cancel_scope.cancel()
    return over


async def require_whole(made: Scene) -> None:
    """All leases are free, one server runs, nobody waits for it, and it sees the text that we have."""
    agent, workspace = made.agent, made.workspace
    async with workspace.leases.exclusive():
        pass
    await agent.status()
    answer = await agent.call("list-code-actions", document={"path": FILE}, kinds="All")
    if answer.is_error:  # a change on disk that the cancelled call did not get to
        assert "SnapshotMismatch" in answer.text
        await agent.status()
    (action,) = await agent.actions(FILE)
    text = workspace.text(made.file(FILE))
    assert text is not None
    assert action.title == f"Add line {text.text.count(chr(10))}"
    session = workspace.supervisor.ready_session
    assert session is not None
    assert session.pending_request_count == 0
    assert sum(psutil.pid_exists(pid) for pid in made.server.processes) == 1


async def stage(made: Scene) -> None:
    """The revision is there, or it is not."""
    agent = made.agent
    await agent.start()
    for turns in moments():
        (action,) = await agent.actions(FILE)
        before = agent.identity.transaction_revision
        assert before is not None
        over = await cancelled_after(turns, lambda action=action: agent.stage(action))  # type: ignore[misc]
        await require_whole(made)
        assert agent.identity.transaction_revision in ({before + 1} if over else {before, before + 1})
        if over:
            return


async def listing(made: Scene) -> None:
    for turns in moments():
        over = await cancelled_after(turns, lambda: made.agent.actions(FILE))
        await require_whole(made)
        if over:
            return


async def history(made: Scene) -> None:
    agent = made.agent
    await agent.start()
    await agent.stage_first(FILE)
    for turns in moments():
        revision = agent.identity.transaction_revision
        move = agent.undo if revision == 1 else agent.redo
        over = await cancelled_after(turns, move)
        await require_whole(made)
        if over:
            assert agent.identity.transaction_revision != revision
            return


async def commit(made: Scene) -> None:
    """Everything is written and the transaction over, or neither."""
    agent, path = made.agent, made.file(FILE)
    for turns in moments():
        if agent.workspace.transaction is None:
            await agent.start()
        await agent.stage_first(FILE)
        before = path.read_bytes()
        staged = agent.workspace.overlay.text(path)
        assert staged is not None
        over = await cancelled_after(turns, agent.commit)
        committed = agent.workspace.transaction is None
        assert committed or not over
        assert path.read_bytes() == (staged.encode() if committed else before)
        await require_whole(made)
        if over:
            return


async def roll_back(made: Scene) -> None:
    for turns in moments():
        if made.workspace.transaction is None:
            await made.agent.start()
        await made.agent.stage_first(FILE)
        over = await cancelled_after(turns, made.agent.roll_back)
        await require_whole(made)
        if over:
            assert made.workspace.transaction is None
            return


async def reload(made: Scene) -> None:
    for turns in moments():
        if turns % 3:  # a reload is dear, so not every moment
            continue
        over = await cancelled_after(turns, made.agent.reload)
        await require_whole(made)
        if over:
            return


async def pick_up(made: Scene) -> None:
    """A change on disk is met by a call that is cancelled."""
    path = made.file(FILE)
    for turns in moments():
        path.write_text(f"// {turns}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
        over = await cancelled_after(turns, lambda: _met(made.agent))
        await require_whole(made)
        if over:
            return


async def _met(agent: Agent) -> None:
    refusal = await agent.refused("list-code-actions", document={"path": FILE}, kinds="All")
    assert refusal.code == "SnapshotMismatch"


@keeps("call.cancelled", "lease.freed")
@pytest.mark.parametrize("story", [stage, listing, history, commit, roll_back, reload, pick_up])
async def test_a_call_cancelled_at_any_moment_leaves_the_state_before_or_after_it(
    tmp_path: Path, story: Callable[[Scene], Awaitable[None]]
) -> None:
    async with opened(tmp_path, lease_wait=0.0, max_transaction_revisions=1000) as made:
        await story(made)
