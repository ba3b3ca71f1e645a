"""SIGTERM and SIGINT as events of the program, not as exceptions in the middle of it.

The first signal asks for an orderly end: calls are ended, language servers stopped, answers flushed.  The second one
is a person who does not want to wait: the process ends at once and takes its children along.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping

import anyio
from anyio.abc import TaskStatus

from bridge.frontends.forced_end import end_now

EXIT_CODES: Mapping[int, int] = {signal.SIGTERM: 0, signal.SIGINT: 130}
"""The exit code after an orderly end: being told to stop is no failure; an interrupt is reported as shells do."""

FORCED_EXIT_BASE = 128
"""Shells report a process that a signal ended as 128 plus the signal's number."""


async def watch_signals(
    on_first: Callable[[int], None],
    force: Callable[[int], None] = end_now,
    *,
    task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Call ``on_first`` with the exit code at the first signal and ``force`` at every further one.

    Runs until cancelled; ``started`` means that the handlers are in place.
    """
    with anyio.open_signal_receiver(*map(signal.Signals, EXIT_CODES)) as signals:
        task_status.started()
        asked = False
        async for signum in signals:
            if asked:
                force(FORCED_EXIT_BASE + signum)
            else:
                asked = True
                on_first(EXIT_CODES[signum])
