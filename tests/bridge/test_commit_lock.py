"""The commit lock as callers meet it: a bounded wait, a way out of it, and places that cannot be locked."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from tests.bridge.agent import APPLE, opened
from tests.bridge.full_disk import NOT_ALLOWED
from tests.bridge.promises import keeps
from transactions.lock import commit_lock

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"
SOON = 30.0
WAIT = 90.0


@keeps("commit.lock", "lease.busy")
@pytest.mark.parametrize("lease_wait", [0.0, 0.4])
async def test_a_held_lock_is_busy_after_the_wait_and_the_transaction_stays(
    tmp_path: Path, lease_wait: float
) -> None:
    async with opened(tmp_path, lease_wait=lease_wait) as made:
        await made.agent.start()
        await made.agent.stage_first(FILE)
        with commit_lock(made.root):
            refusal = await made.agent.refused("transaction-commit")
            assert (refusal.code, refusal.kind) == ("WorkspaceBusy", "RetryRequest")
            assert (await made.agent.status()).state == "TransactionActive"
        assert (await made.agent.commit()).committed


@keeps("commit.lock")
async def test_a_commit_waits_for_the_lock_and_goes_on_when_it_is_free(tmp_path: Path) -> None:
    async with opened(tmp_path, lease_wait=SOON) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first(FILE)
        with ExitStack() as held:
            held.enter_context(commit_lock(made.root))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.commit)
                await anyio.wait_all_tasks_blocked()
                assert made.file(FILE).read_text() == APPLE
                held.close()
        assert made.file(FILE).read_text() != APPLE


@keeps("commit.lock", "call.cancelled")
async def test_a_caller_who_gives_up_while_waiting_for_the_lock_is_heard_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, lease_wait=3 * SOON) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first(FILE)
        with commit_lock(made.root):
            with anyio.fail_after(SOON):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(agent.commit)
                    await anyio.wait_all_tasks_blocked()
                    tasks.cancel_scope.cancel()
            assert made.file(FILE).read_text() == APPLE
            assert (await agent.status()).state == "TransactionActive"
        assert (await agent.commit()).committed


@keeps("commit.lock", "instances.advice", "recovery.state-directory")
@pytest.mark.parametrize("place", ["workspace", "state"])
def test_what_a_read_only_mount_cannot_hold_is_refused_and_committed_when_it_can_be_written(
    tmp_path: Path, place: str
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bridge.read_only", place, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    if ran.returncode == NOT_ALLOWED:
        pytest.skip("mounts of one's own are not allowed here")
    assert ran.returncode == 0, ran.stderr
