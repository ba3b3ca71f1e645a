"""Questions side by side: answers in order, never too many at a time, and a failure is a single exception."""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import pytest

from bridge.side_by_side import both, side_by_side

pytestmark = pytest.mark.anyio


async def fail() -> None:
    await anyio.lowlevel.checkpoint()
    raise LookupError("first")


async def wait_for_the_end(cancelled: list[bool]) -> None:
    """Forever; a cancellation is noted."""
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        cancelled.append(True)
        raise


async def test_answers_come_in_the_order_of_the_questions_whichever_ends_first() -> None:
    last_is_done = anyio.Event()

    async def first() -> int:
        await last_is_done.wait()
        return 1

    async def last() -> int:
        last_is_done.set()
        return 2

    assert await side_by_side([first, last], at_once=2) == [1, 2]
    assert await side_by_side([], at_once=2) == []


async def test_no_more_are_asked_at_a_time_than_allowed() -> None:
    waiting = most = 0

    async def question(number: int) -> int:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await anyio.lowlevel.checkpoint()
        waiting -= 1
        return number

    assert await side_by_side([partial(question, n) for n in range(20)], at_once=3) == list(range(20))
    assert most == 3


async def test_the_first_failure_is_raised_alone_and_the_others_are_cancelled() -> None:
    cancelled: list[bool] = []
    waits: Callable[[], Awaitable[None]] = partial(wait_for_the_end, cancelled)
    with pytest.raises(LookupError, match="first"):
        await side_by_side([waits, fail, waits], at_once=2)
    assert cancelled == [True]


async def test_of_two_pieces_of_work_both_results_come_back_and_neither_waits_for_the_other() -> None:
    met = anyio.Event()

    async def first() -> int:
        await met.wait()
        return 1

    async def second() -> str:
        met.set()
        return "two"

    assert await both(first, second) == (1, "two")


async def test_a_failure_of_the_first_is_told_and_ends_the_second() -> None:
    cancelled: list[bool] = []
    with pytest.raises(LookupError, match="first"):
        await both(fail, partial(wait_for_the_end, cancelled))
    assert cancelled == [True]


async def test_a_failure_of_the_second_waits_for_the_first_which_has_the_say() -> None:
    failed = anyio.Event()

    async def fails() -> None:
        failed.set()
        raise LookupError("second")

    async def good() -> int:
        await failed.wait()
        await anyio.lowlevel.checkpoint()
        return 1

    async def bad() -> None:
        await failed.wait()
        raise KeyError("first")

    with pytest.raises(LookupError, match="second"):
        await both(good, fails)
    failed = anyio.Event()
    with pytest.raises(KeyError, match="first"):
        await both(bad, fails)
