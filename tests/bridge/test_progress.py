"""Progress is told from code that must not wait, to a caller that may be slow."""

import anyio
import pytest

from bridge.progress import Stage, relayed
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

BOUND = 30.0


class Listener:
    """Takes what is reported; waits at a gate where there is one."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, str]] = []
        self.gate = anyio.Event()
        self.reached = anyio.Event()

    async def report(self, progress: float, total: float | None, message: str) -> None:
        assert total == 100
        self.heard.append((progress, message))
        self.reached.set()
        await self.gate.wait()


@keeps("open.progress")
async def test_progress_never_goes_back() -> None:
    listener = Listener()
    listener.gate.set()
    with anyio.fail_after(BOUND):
        async with relayed(listener.report) as tell:
            for percent in (10.0, 5.0, 20.0, 20.0, 0.0, 50.0):
                tell(percent, f"at {percent:g}")
                await anyio.wait_all_tasks_blocked()
    assert [progress for progress, _ in listener.heard] == [10.0, 20.0, 50.0]


async def test_a_slow_listener_misses_what_came_meanwhile_and_hears_the_newest() -> None:
    listener = Listener()
    with anyio.fail_after(BOUND):
        async with relayed(listener.report) as tell:
            tell(1, "first")
            await listener.reached.wait()
            for percent in range(2, 1000):
                tell(percent / 10, f"step {percent}")
            listener.gate.set()
    assert listener.heard == [(1.0, "first"), (99.9, "step 999")]


async def test_telling_never_waits_and_what_was_told_last_is_still_heard() -> None:
    listener = Listener()
    listener.gate.set()
    with anyio.fail_after(BOUND):
        async with relayed(listener.report) as tell:
            tell(40, "nearly")
            tell(100, "done")
    assert listener.heard[-1] == (100.0, "done")


async def test_a_failure_of_the_work_passes_and_the_listener_is_let_go() -> None:
    listener = Listener()

    async def work() -> None:
        async with relayed(listener.report) as tell:
            tell(1, "first")
            await listener.reached.wait()
            raise ValueError("the work")

    with anyio.fail_after(BOUND), pytest.raises(ExceptionGroup) as failure:
        await work()
    assert failure.group_contains(ValueError, match="the work")


async def test_a_cancelled_work_does_not_wait_for_a_listener_that_hangs() -> None:
    listener = Listener()
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:

            async def work() -> None:
                async with relayed(listener.report) as tell:
                    tell(1, "first")
                    await anyio.sleep_forever()

            tasks.start_soon(work)
            await listener.reached.wait()
            tasks.cancel_scope.cancel()


async def test_a_stage_is_a_stretch_of_the_whole() -> None:
    heard: list[float] = []
    stage = Stage(lambda percent, _message: heard.append(percent), 50, 100)
    for percent in (0, 50, 100, None, -5, 200):
        stage(percent, "")
    assert heard == [50, 75, 100, 50, 50, 100]
