"""The story of a server's loads, put together from what it says in passing.

Servers do not hand out a report.  They log lines, show messages, tell progress, and at some point say that the load
has *ended*, which is not that it has *succeeded*: Roslyn writes "Successfully completed load of X" after "Error while
loading X", and csharp-ls ends its progress with the same words after a failed load.  So within one round of loading a
failure of a project outweighs every success of it, in whichever order they came.  A later round, a reload, replaces
what earlier rounds said about the projects it speaks of.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from lsp_client.dialects.base import Heard, LoadMessage

MAX_MESSAGES = 1000
"""How many messages are kept for one load: a server that never stops complaining must not fill our memory."""


class LoadWatch:
    """What has been heard of the loads of one server process."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0
        self.reloads = 0
        self.loading = False
        """Whether the newest sign was the beginning of a load."""
        self.failure: str | None = None
        self.version: str | None = None
        """What the server calls its version in its log, when it does."""
        self.diagnostic_sources: set[str] = set()
        """The names under which the server has registered kinds of diagnostics that can be asked for one by one."""
        self.activity = 0
        """Grows with every sign of a load going on, so that silence can be told from work."""
        self.on_progress: Callable[[float | None, str], None] | None = None
        """Called with percent (0 to 100, or None) and a text for people, while a load goes on."""
        self._settled: list[LoadMessage] = []
        self._current: list[LoadMessage] = []
        self._changed = anyio.Event()

    @property
    def messages(self) -> tuple[LoadMessage, ...]:
        """All messages that still hold, in the order they came."""
        return tuple(self._merged())

    def take(self, heard: Heard) -> None:
        """Take in the meaning of one notification."""
        self.version = heard.version or self.version
        if heard.message is not None and len(self._current) < MAX_MESSAGES:
            self._current.append(heard.message)
        match heard.signal:
            case "began":
                self.begun += 1
                self.loading = True
                self.failure = None
            case "ended":
                self.ended += 1
                self.loading = False
                self._settle()
            case "reloaded":
                self.reloads += 1
                self._settle()
            case "failed":
                self.failure = heard.message.text if heard.message is not None else "the load failed"
            case None:
                pass
        if heard.progress is not None and self.on_progress is not None:
            self.on_progress(heard.percent, heard.progress)
        if heard.signal is not None or heard.message is not None or heard.progress is not None:
            self.wake()

    def wake(self) -> None:
        """Something happened that waiters may care for."""
        self.activity += 1
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until ``holds()``, looking again at every change.  Not bounded: the caller bounds it."""
        while not holds():
            await self._changed.wait()

    async def ended_beyond(self, count: int) -> None:
        """Wait until more than ``count`` loads have ended, or the newest one has failed."""
        await self.until(lambda: self.ended > count or self.failure is not None)

    async def begun_beyond(self, count: int) -> None:
        """Wait until more than ``count`` loads have begun."""
        await self.until(lambda: self.begun > count)

    async def reloaded_beyond(self, count: int) -> None:
        """Wait until more than ``count`` reloads have been reported."""
        await self.until(lambda: self.reloads > count)

    async def active_beyond(self, count: int) -> None:
        """Wait until ``activity`` has grown beyond ``count``."""
        await self.until(lambda: self.activity > count)

    def _settle(self) -> None:
        self._settled = self._merged()
        self._current = []

    def _merged(self) -> list[LoadMessage]:
        current = _without_contradicted_successes(self._current)
        spoken_of = {message.project for message in current if message.project is not None}
        kept = [message for message in self._settled if message.project not in spoken_of]
        return (kept + current)[-MAX_MESSAGES:]


def _without_contradicted_successes(messages: list[LoadMessage]) -> list[LoadMessage]:
    """The messages of one round, each once, without the successes of projects that also failed."""
    failed = {message.project for message in messages if message.project and message.severity == "error"}
    kept: dict[LoadMessage, None] = {}
    for message in messages:
        if message.severity == "info" and message.project in failed:
            continue
        kept[message] = None
    return list(kept)
