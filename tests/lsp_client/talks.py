"""A connection to a scripted peer: real child, real pipes, and waits that have a bound."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from lsp_client.connection import Connection
from lsp_client.errors import MethodNotFound, ServerGone
from lsp_client.framing import MAX_BODY_BYTES
from lsp_client.messages import decode, decode_plain
from lsp_client.process import ServerProcess, spawn
from tests.servers.scripts import Step, peer_command

BOUND = 15.0
"""Seconds any wait of a test may take: long beyond every duration seen, so that only a hang reaches it."""

RequestHandler = Callable[[str, msgspec.Raw], Awaitable[object]]


async def refuse(method: str, _params: msgspec.Raw) -> object:
    """Offers nothing."""
    raise MethodNotFound(method)


class Talk:
    """The connection, the peer's process, and what the peer has said by itself."""

    def __init__(
        self,
        process: ServerProcess,
        on_request: RequestHandler,
        on_notification: Callable[[str, msgspec.Raw], None] | None,
        max_body_bytes: int,
    ) -> None:
        self.process = process
        self.notifications: list[tuple[str, msgspec.Raw]] = []
        self._observer = on_notification
        self._changed = anyio.Event()
        self.wire: list[tuple[str, bytes]] = []
        self.connection = Connection(
            process.stdout,
            process.stdin,
            on_request=on_request,
            on_notification=self._take,
            describe_end=process.describe_end,
            wire_tap=lambda arrow, body: self.wire.append((arrow, body)),
            max_body_bytes=max_body_bytes,
        )

    def _take(self, method: str, params: msgspec.Raw) -> None:
        self.notifications.append((method, params))
        self._changed.set()
        self._changed = anyio.Event()
        if self._observer is not None:
            self._observer(method, params)

    async def ask(self, method: str = "test/ask", params: object = None, *, seconds: float = BOUND) -> object:
        """A request, and its result as plain JSON."""
        return decode_plain(await self.connection.request(method, params, timeout=seconds))

    async def heard(self, method: str, count: int = 1) -> list[msgspec.Raw]:
        """The params of the notifications of this method, once there are ``count``."""
        with anyio.fail_after(BOUND):
            while len(found := [params for name, params in self.notifications if name == method]) < count:
                await self._changed.wait()
        return found

    async def report(self) -> list[dict[str, object]]:
        """What the peer says it has received (its script has a ``report`` step)."""
        params = decode((await self.heard("test/received"))[-1], dict[str, list[dict[str, object]]])
        return params["messages"]

    async def end(self) -> ServerGone:
        """How the channel ended, once it has."""
        with anyio.fail_after(BOUND):
            return await self.connection.wait_ended()


@asynccontextmanager
async def talk(
    folder: Path,
    *steps: Step,
    on_request: RequestHandler = refuse,
    on_notification: Callable[[str, msgspec.Raw], None] | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
) -> AsyncGenerator[Talk, None]:
    """A running peer that follows ``steps``, and a running connection to it; both are gone afterwards."""
    async with spawn(peer_command(folder, *steps), cwd=folder, env=dict(os.environ)) as process:
        conversation = Talk(process, on_request, on_notification, max_body_bytes)
        async with anyio.create_task_group() as tasks:
            await tasks.start(conversation.connection.run)
            yield conversation
            process.kill()
            tasks.cancel_scope.cancel()
