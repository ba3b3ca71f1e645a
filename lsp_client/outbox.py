"""The one writer of a connection: frames go out whole, in order, and only as fast as the peer takes them.

Callers do not write; they queue a frame and may wait until it is on its way.  So a caller that is cancelled
never leaves half a frame behind, and a frame that has not begun can still be withdrawn.  What can pile up is
bounded by the callers that wait, plus one cancel notice for each request that was already sent.
"""

from collections import deque

import anyio
from anyio.abc import ByteSendStream

from lsp_client.framing import encode_frame


class Outgoing:
    """One frame on its way: ``begun`` once its first byte may have left, ``finished`` when it need not be
    waited for any more (written, or the channel ended)."""

    __slots__ = ("begun", "body", "finished")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.begun = False
        self.finished = anyio.Event()


class Outbox:
    """The queue in front of the send stream, and the task that empties it."""

    def __init__(self) -> None:
        self._queue: deque[Outgoing] = deque()
        self._current: Outgoing | None = None
        self._filled = anyio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, body: bytes) -> Outgoing:
        """Queue a message.  After ``close`` it is dropped, already finished: the caller asks how it ended."""
        outgoing = Outgoing(body)
        if self._closed:
            outgoing.finished.set()
        else:
            self._queue.append(outgoing)
            self._filled.set()
        return outgoing

    def withdraw(self, outgoing: Outgoing) -> bool:
        """Take back a frame that has not begun.  False: the peer has it, or may have it."""
        if outgoing.begun or self._closed:
            return False
        self._queue.remove(outgoing)
        return True

    async def run(self, stream: ByteSendStream) -> None:
        """Write what is queued, for ever.  Raises what the stream raises when it takes no more."""
        while True:
            while self._queue:
                outgoing = self._current = self._queue.popleft()
                outgoing.begun = True
                await stream.send(encode_frame(outgoing.body))
                outgoing.finished.set()
            self._filled = anyio.Event()
            await self._filled.wait()

    def close(self) -> None:
        """The channel ended: nobody waits for a frame any more."""
        self._closed = True
        if self._current is not None:
            self._current.finished.set()
        while self._queue:
            self._queue.popleft().finished.set()
