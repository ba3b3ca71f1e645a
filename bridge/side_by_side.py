"""Several questions at a time, with their answers in the order of the questions.

A task group would raise groups of exceptions, and whoever puts questions knows single ones (``bridge.questions``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

T = TypeVar("T")


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
