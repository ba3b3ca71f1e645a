"""Our end of a socket to a helper process: lines there and back, and an end that the helper sees whatever becomes of us."""

from __future__ import annotations

import contextlib
import socket

import anyio

_CHUNK_BYTES = 64 * 1024


class LineSocket:
    """A non-blocking socket read and written by lines.  Waits are not bounded here; one reader and one writer at a time."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = ours
        self._buffer = b""

    def close_our_side(self) -> None:
        """Let the helper see the end of us, while it can still tell something."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    async def next_line(self) -> str | None:
        """The next line without its end, None when the helper has left."""
        while b"\n" not in self._buffer:
            await anyio.wait_readable(self._socket)
            try:
                data = self._socket.recv(_CHUNK_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                return None
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", errors="replace")

    async def send_line(self, line: str) -> None:
        """Raises ``OSError`` when the helper has left."""
        rest = memoryview(line.encode() + b"\n")
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)
