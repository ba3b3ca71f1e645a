"""Several questions at a time, with their answers in the order of the questions.

A task group would raise groups of exceptions, and whoever puts questions knows single ones (``bridge.questions``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

T = TypeVar("T")
U = TypeVar("U")


async def side_by_side(questions: Sequence[Callable[[], Awaitable[T]]], *, at_once: int) -> list[T]:
    """The answers, in the order of the questions, at most ``at_once`` of which wait at a time.

    Raises the first exception that a question raises; the others are cancelled then.
    """
    answers: dict[int, T] = {}
    failures: list[Exception] = []
    waiting = iter(enumerate(questions))

    async def work() -> None:
        for number, question in waiting:
            try:
                answers[number] = await question()
            except Exception as error:  # noqa: BLE001 - carried out of the task group, raised again below
                failures.append(error)
                tasks.cancel_scope.cancel()
                return

    async with anyio.create_task_group() as tasks:
        for _ in range(min(at_once, len(questions))):
            tasks.start_soon(work)
    if failures:
        raise failures[0]
    return [answers[number] for number in range(len(questions))]


async def both(first: Callable[[], Awaitable[T]], second: Callable[[], Awaitable[U]]) -> tuple[T, U]:
    """The results of two pieces of work that go on at the same time.

    Raises what ``first`` raises, whereupon ``second`` is cancelled; what ``second`` raises only when ``first`` has
    ended well, so that of two failures it is always the same one that is told.
    """
    firsts: list[T] = []
    seconds: list[U] = []
    failure_of_first: list[Exception] = []
    failure_of_second: list[Exception] = []

    async def do_first() -> None:
        try:
            firsts.append(await first())
        except Exception as error:  # noqa: BLE001 - carried out of the task group, raised again below
            failure_of_first.append(error)
            tasks.cancel_scope.cancel()

    async def do_second() -> None:
        try:
            seconds.append(await second())
        except Exception as error:  # noqa: BLE001 - carried out of the task group, raised again below
            failure_of_second.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(do_first)
        tasks.start_soon(do_second)
    for failure in (*failure_of_first, *failure_of_second):
        raise failure
    return firsts[0], seconds[0]
