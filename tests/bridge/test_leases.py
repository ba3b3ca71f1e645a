"""Leases: many readers or one writer, and every wait has an end."""

import anyio
import pytest

from bridge.errors import BridgeError
from bridge.leases import Leases

BOUND = 30.0


@pytest.mark.anyio
async def test_readers_share_up_to_the_cap_and_the_next_one_is_told_that_the_workspace_is_busy() -> None:
    leases = Leases(max_readers=2, wait=0)
    async with leases.shared(), leases.shared():
        with pytest.raises(BridgeError) as refused:
            async with leases.shared():
                pass
    assert refused.value.code == "WorkspaceBusy"


@pytest.mark.anyio
async def test_a_writer_excludes_readers_and_writers() -> None:
    leases = Leases(max_readers=2, wait=0)
    async with leases.exclusive():
        for lease in (leases.shared, leases.exclusive):
            with pytest.raises(BridgeError):
                async with lease():
                    pass
    async with leases.exclusive():
        pass


@pytest.mark.anyio
async def test_a_call_waits_for_the_lease_and_gets_it() -> None:
    leases = Leases(max_readers=1, wait=BOUND)
    order: list[str] = []

    async def read_later() -> None:
        async with leases.shared():
            order.append("reader")

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks, leases.exclusive():
            tasks.start_soon(read_later)
            await anyio.wait_all_tasks_blocked()
            order.append("writer")
    assert order == ["writer", "reader"]


@pytest.mark.anyio
async def test_a_waiting_writer_goes_before_later_readers() -> None:
    leases = Leases(max_readers=5, wait=BOUND)
    order: list[str] = []

    async def write() -> None:
        async with leases.exclusive():
            order.append("writer")

    async def read() -> None:
        async with leases.shared():
            order.append("reader")

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks, leases.shared():
            tasks.start_soon(write)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            order.append("first reader")
    assert order == ["first reader", "writer", "reader"]


@pytest.mark.anyio
async def test_a_cancelled_waiter_leaves_no_trace() -> None:
    leases = Leases(max_readers=1, wait=BOUND)

    async def write() -> None:
        async with leases.exclusive():
            raise AssertionError("was cancelled before")

    async with anyio.create_task_group() as tasks, leases.shared():
        tasks.start_soon(write)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    async with leases.exclusive():
        pass
    async with leases.shared():
        pass


@pytest.mark.anyio
async def test_a_reader_behind_a_writer_that_gave_up_goes_on_at_once() -> None:
    leases = Leases(max_readers=2, wait=60)
    entered = anyio.Event()

    async def write(scope: anyio.CancelScope) -> None:
        with scope:
            async with leases.exclusive():
                raise AssertionError("was cancelled before")

    async def read() -> None:
        async with leases.shared():
            entered.set()

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks, leases.shared():
            writer = anyio.CancelScope()
            tasks.start_soon(write, writer)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            assert not entered.is_set()
            writer.cancel()
            await entered.wait()
