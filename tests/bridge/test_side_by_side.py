"""Questions side by side: answers in order, never too many at a time, and a failure is a single exception."""

from functools import partial

import anyio
import pytest

from bridge.side_by_side import side_by_side

pytestmark = pytest.mark.anyio


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
    cancelled = []

    async def fails() -> None:
        await anyio.lowlevel.checkpoint()
        raise LookupError("first")

    async def waits() -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            cancelled.append(True)
            raise

    with pytest.raises(LookupError, match="first"):
        await side_by_side([waits, fails, waits], at_once=2)
    assert cancelled == [True]
