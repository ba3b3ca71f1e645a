"""Progress of a long load: told from plain code, reported to the caller by a task of its own.

The teller never waits: only the newest state is kept, and a slow caller misses what it could not take in time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from bridge.tools.call import ReportProgress

ProgressSink = Callable[[float, str], None]
"""Takes a percentage from 0 to 100 and a sentence; never waits, never raises."""


def to_nobody(_percent: float, _message: str) -> None:
    """The sink of a load that nobody watches."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a load, as a stretch of the whole."""

    sink: ProgressSink
    start: float
    end: float

    def __call__(self, percent: float | None, message: str) -> None:
        """Report ``percent`` of this part; ``None`` when it is not known."""
        share = 0.0 if percent is None else min(max(percent, 0.0), 100.0) / 100.0
        self.sink(self.start + share * (self.end - self.start), message)


@asynccontextmanager
async def relayed(report: ReportProgress) -> AsyncIterator[ProgressSink]:
    """A sink whose newest state reaches ``report``; progress never goes back, whatever is told."""
    send, receive = anyio.create_memory_object_stream[tuple[float, str]](1)
    highest = 0.0

    def tell(percent: float, message: str) -> None:
        nonlocal highest
        highest = max(highest, percent)
        if send.statistics().current_buffer_used:
            receive.receive_nowait()
        send.send_nowait((highest, message))

    async def forward() -> None:
        reported = -1.0
        async for percent, message in receive:
            if percent > reported:
                await report(percent, 100.0, message)
                reported = percent

    async with receive, anyio.create_task_group() as tasks:
        tasks.start_soon(forward)
        with send:
            yield tell
