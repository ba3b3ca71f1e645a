"""Who may work on a workspace: any number of readers up to a cap, or one writer.

A writer that waits holds new readers back, so that a stream of queries cannot starve a commit.  Every wait is
bounded by the caller's ``--lease-wait``; zero means one try.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from bridge.errors import BridgeError


class Leases:
    """The leases of one workspace.  Not for use by several threads."""

    def __init__(self, *, max_readers: int, wait: float) -> None:
        self._max_readers = max_readers
        self._wait = wait
        self._readers = 0
        self._writing = False
        self._writers = 0
        self._writers_waiting = 0
        self._changed = anyio.Event()

    @property
    def writers(self) -> int | None:
        """How many writers there have been; ``None`` while one is there or waits.  The same twice: nobody wrote between."""
        return None if self._writing or self._writers_waiting else self._writers

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Hold a reader's lease.  Raises ``WorkspaceBusy`` when none is free within the wait."""
        await self._wait_until(self._reader_may_enter)
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1
            self._wake()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Hold the writer's lease.  Raises ``WorkspaceBusy`` when it is not free within the wait."""
        self._writers_waiting += 1
        try:
            await self._wait_until(self._writer_may_enter)
            self._writing = True
            self._writers += 1
        finally:
            self._writers_waiting -= 1
            self._wake()
        try:
            yield
        finally:
            self._writing = False
            self._wake()

    def _reader_may_enter(self) -> bool:
        return not self._writing and not self._writers_waiting and self._readers < self._max_readers

    def _writer_may_enter(self) -> bool:
        return not self._writing and not self._readers

    async def _wait_until(self, may_enter: Callable[[], bool]) -> None:
        with anyio.move_on_after(self._wait):
            while not may_enter():
                await self._changed.wait()
            return
        if not may_enter():
            raise BridgeError(
                "WorkspaceBusy",
                f"Another call holds the workspace; waited {self._wait:g} s for it to finish.",
            )

    def _wake(self) -> None:
        # Everyone who waits looks again: few wait at a time, and a lost wake-up would cost a whole lease wait.
        self._changed.set()
        self._changed = anyio.Event()
