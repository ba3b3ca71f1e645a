"""MCP's stdio transport, our own around the SDK's streams.

The SDK reads stdin and writes stdout through worker threads: a thread blocked in ``read`` keeps the process from
ending, and each message costs three thread hops.  Here the descriptors are polled by the event loop instead.

*Reading.*  ``anyio.wait_readable`` says when ``os.read`` will not block, so a shared, blocking descriptor stays
blocking (its flags belong to whoever gave it to us).  Regular files and the null device cannot be polled and never
block for long: they are read as they are.

*Writing.*  A short message goes out in the loop when poll says there is room for ``PIPE_BUF`` bytes; anything else is
written in a worker thread, one message at a time.  Until a message is out, the next one waits, and with it whoever
sends it: the peer's slowness reaches the tools as back-pressure, not as memory.

*Descriptors.*  While serving, descriptor 1 is standard error and descriptor 0 the null device, for us and for every
child process: a stray ``print`` cannot tear a message and no child can eat one.  The wire is a private duplicate.

*Ends.*  End of input, ``stop_reading`` (a signal) and a broken output all look the same to the SDK: its input ends.
It then ends the calls in flight, and what it still has to say is written.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, JSONRPCMessage

from bridge.frontends.jsonrpc import Refusal, encode, read_line
from bridge.frontends.lines import MAX_LINE_BYTES, LineSplitter, Oversized

READ_BYTES = 256 * 1024
"""How much is read at once: more than a pipe holds by default, so that one read empties it."""

SHORT_WRITE_BYTES = select.PIPE_BUF
"""What a descriptor that polls writable takes without blocking."""

FLUSH_SECONDS = 2.0
"""How long the last answers may take to leave after the serving has ended; a peer that is gone reads nothing."""

FIRST_FREE_DESCRIPTOR = 3


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Where the wire is: both are ours alone."""

    receive: int
    send: int


@contextmanager
def claimed_stdio() -> Iterator[Descriptors]:
    """Take stdin and stdout for the wire and divert descriptors 0 and 1 while the block runs.

    Raises ``OSError`` if one of them is not open.
    """
    _flush_stdout()
    wire = Descriptors(_private_duplicate(0), _private_duplicate(1))
    _divert(0, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    try:
        elsewhere = _private_duplicate(2)
    except OSError:
        elsewhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    _divert(1, elsewhere)
    try:
        yield wire
    finally:
        _flush_stdout()
        _divert(0, wire.receive)
        _divert(1, wire.send)


def _flush_stdout() -> None:
    """What is still in Python's buffer goes where descriptor 1 points now, not where it points next."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()


def _private_duplicate(descriptor: int) -> int:
    """A duplicate outside the standard three that no child inherits."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_DESCRIPTOR)


def _divert(descriptor: int, target: int) -> None:
    os.dup2(target, descriptor)
    os.close(target)


class Transport:
    """The two ends that the SDK's server runs on, and what its owner must know of the wire."""

    def __init__(
        self,
        incoming: ObjectReceiveStream[SessionMessage | Exception],
        outgoing: ObjectSendStream[SessionMessage],
    ) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self.answered = anyio.Event()
        """Set once the first message went out: the peer has its ``initialize`` answer."""
        self.ended = anyio.Event()
        """Set when nothing more will be read."""
        self._reading = anyio.CancelScope()

    def stop_reading(self) -> None:
        """End the input now, as if the peer had closed it."""
        self._reading.cancel()


@asynccontextmanager
async def open_transport(wire: Descriptors, max_line_bytes: int = MAX_LINE_BYTES) -> AsyncIterator[Transport]:
    """Move messages between ``wire`` and the streams of the ``Transport`` while the block runs.

    On the way out, what was sent is flushed for at most ``FLUSH_SECONDS``.
    """
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception]()
    outgoing, to_peer = anyio.create_memory_object_stream[SessionMessage]()
    refusals = outgoing.clone()
    transport = Transport(incoming, outgoing)
    written = anyio.Event()

    async def read() -> None:
        splitter = LineSplitter(max_line_bytes)
        try:
            async with to_server, refusals:
                with transport._reading:  # the scope is the transport's own business
                    while data := await _read_some(wire.receive):
                        for line in splitter.feed(data):
                            await _pass_on(line, to_server, refusals)
                    for line in splitter.feed_eof():
                        await _pass_on(line, to_server, refusals)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the server has ended; nobody is left to read for
        finally:
            transport.ended.set()

    async def write() -> None:
        try:
            async with to_peer:
                async for item in to_peer:
                    await _write_all(wire.send, encode(item.message))
                    transport.answered.set()
        except OSError:
            transport.stop_reading()  # the peer does not listen any more: an end like any other
        finally:
            written.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield transport
        finally:
            transport.stop_reading()
            outgoing.close()
            with anyio.move_on_after(FLUSH_SECONDS, shield=True):
                await written.wait()
            tasks.cancel_scope.cancel()
            incoming.close()


async def _pass_on(
    line: bytes | Oversized,
    to_server: ObjectSendStream[SessionMessage | Exception],
    refusals: ObjectSendStream[SessionMessage],
) -> None:
    judged: JSONRPCMessage | Refusal | None
    if isinstance(line, Oversized):
        judged = Refusal(INVALID_REQUEST, "Invalid request: the line is longer than this server takes")
    else:
        judged = read_line(line)
    if isinstance(judged, Refusal):
        await refusals.send(SessionMessage(judged.to_message()))
    elif judged is not None:
        await to_server.send(SessionMessage(judged))


async def _read_some(descriptor: int) -> bytes:
    """The next bytes, or none at the end of the input."""
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except PermissionError:  # a regular file or the null device: not pollable, and always ready
            await anyio.lowlevel.checkpoint()
        try:
            return os.read(descriptor, READ_BYTES)
        except BlockingIOError:  # the descriptor was given to us non-blocking, and the wake-up was spurious
            continue
        except OSError:  # the terminal or socket went away
            return b""


async def _write_all(descriptor: int, data: bytes) -> None:
    if len(data) <= SHORT_WRITE_BYTES and _has_room(descriptor):
        with suppress(BlockingIOError):
            data = data[os.write(descriptor, data) :]
    if data:
        # Abandoned on cancellation: only the end of the process cancels a write, and it must not wait for a peer
        # that does not read.
        await anyio.to_thread.run_sync(_write_blocking, descriptor, data, abandon_on_cancel=True)


def _has_room(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return any(events & select.POLLOUT for _, events in poll.poll(0))


def _write_blocking(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # the peer shares the descriptor and made it non-blocking
            poll = select.poll()
            poll.register(descriptor, select.POLLOUT)
            poll.poll()
