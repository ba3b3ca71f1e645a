"""Short-lived child processes: started, drained, bounded, and never left behind.

For tools that run and end (``dotnet restore``, ``dotnet msbuild``); the long-lived language server has its own
home in ``lsp_client``.  Such a tool starts helpers of its own (build nodes, a compiler server), so whatever ends
early is ended as a tree: the child leads its own session, and on timeout or cancellation the whole group is killed
together with those descendants that left the group.  If the bridge itself dies without a chance to clean up
(kill -9), the kernel ends the child: a tiny wrapper asks for that before it becomes the tool.

Output is read while the child runs, or it would block on a full pipe; what is kept of it is bounded.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING, Protocol

import anyio

if TYPE_CHECKING:
    from anyio.abc import Process

OUTPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of standard output kept whole; JSON of a project with 50,000 files is about 40 MB."""
TAIL_LIMIT = 16 * 1024
"""Bytes of output kept for people: the end, where tools say what went wrong."""
KILL_WAIT = 5.0
"""Seconds until a killed child must be gone; it cannot refuse, only the kernel can be slow."""
DRAIN_WAIT = 2.0
"""Seconds to read the rest after the child ended: a helper of it may hold the pipe open for minutes."""

_BECOME = """
import os, sys
parent = int(sys.argv[1])
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() != parent:
        sys.exit(137)
try:
    os.execvpe(sys.argv[2], sys.argv[2:], os.environ)
except OSError as error:
    sys.stderr.write(f"{sys.argv[2]}: {error.strerror}\\n")
    sys.exit(127)
"""
"""Asks for SIGKILL at the death of the bridge (PR_SET_PDEATHSIG = 1), then becomes the tool.

A program and not a hook between fork and exec: such hooks can deadlock in a process with threads.
"""


class ChildFailed(Exception):
    """A child process gave no usable answer.  ``message`` is a sentence; ``output_tail`` its last words."""

    def __init__(self, message: str, output_tail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.output_tail = output_tail


class ChildNotStarted(ChildFailed):
    """The program is not there, or may not be run."""


class ChildTimedOut(ChildFailed):
    """The child was killed at the end of its time."""


class ChildTooTalkative(ChildFailed):
    """The child wrote more than is kept, so its answer would be cut."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A child that ended by itself.  ``output_tail`` holds the end of both streams, ``seconds`` its duration."""

    returncode: int
    stdout: bytes
    output_tail: str
    seconds: float


class _Tail:
    """The last ``TAIL_LIMIT`` bytes of everything put in."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, chunk: bytes) -> None:
        self._data += chunk
        if len(self._data) > 2 * TAIL_LIMIT:
            del self._data[:-TAIL_LIMIT]

    def text(self) -> str:
        return bytes(self._data[-TAIL_LIMIT:]).decode("utf-8", "replace").strip()


class _ByteSource(Protocol):
    async def receive(self, max_bytes: int = 65536) -> bytes: ...


async def run(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    seconds: float,
    output_limit: int = OUTPUT_LIMIT,
) -> Completed:
    """Run ``command`` to its end, without standard input, in its own session.

    ``seconds`` bounds the run.  Raises ``ChildNotStarted``, ``ChildTimedOut`` or ``ChildTooTalkative`` (more than
    ``output_limit`` bytes of standard output).  On every early end, cancellation included, the tree is dead when
    this returns.
    """
    name = Path(command[0]).name
    if not await anyio.Path(cwd).is_dir():
        raise ChildNotStarted(f"{name} was not started: the directory {cwd} does not exist.")
    wrapper = (sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()))
    started = time.monotonic()
    try:
        process = await anyio.open_process(
            [*wrapper, *map(str, command)],
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise ChildNotStarted(f"{name} was not started: {error.strerror or error}.") from error

    kept = bytearray()
    tail = _Tail()
    too_much = False
    with anyio.move_on_after(seconds) as bound:
        try:
            too_much = await _drain_until_end(process, kept, tail, output_limit)
        finally:
            await _leave_nothing(process)
    if bound.cancelled_caught:
        raise ChildTimedOut(f"{name} did not end within {seconds:g} seconds and was killed.", tail.text())
    if too_much:
        raise ChildTooTalkative(f"{name} wrote more than {output_limit} bytes.", tail.text())
    returncode = process.returncode
    if returncode is None:
        raise ChildFailed(f"{name} could not be ended.", tail.text())
    if returncode == 127 and not kept:
        raise ChildNotStarted(f"{name} was not started.", tail.text())
    return Completed(returncode, bytes(kept), tail.text(), time.monotonic() - started)


async def _drain_until_end(process: Process, kept: bytearray, tail: _Tail, limit: int) -> bool:
    """Read both streams until the child ends; true when it wrote more than ``limit`` (it is left running then)."""
    too_much = False

    async def keep(source: _ByteSource, *, whole: bool) -> None:
        nonlocal too_much
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while True:
                chunk = await source.receive()
                tail.add(chunk)
                if whole:
                    kept.extend(chunk)
                    if len(kept) > limit:
                        too_much = True
                        readers.cancel_scope.cancel()

    async with anyio.create_task_group() as readers:
        if process.stdout is None or process.stderr is None:  # cannot be: both were asked for as pipes
            raise ChildFailed("the child has no output pipes.")
        readers.start_soon(lambda source: keep(source, whole=True), process.stdout)
        readers.start_soon(lambda source: keep(source, whole=False), process.stderr)
        await process.wait()
        readers.cancel_scope.deadline = anyio.current_time() + DRAIN_WAIT
    return too_much


async def _leave_nothing(process: Process) -> None:
    """Kill what is left of the tree and give back the pipes; not to be cancelled, but bounded."""
    with anyio.CancelScope(shield=True), anyio.move_on_after(KILL_WAIT):
        if process.returncode is None:
            _kill_tree(process.pid)
        else:
            _kill_group(process.pid)
        await process.wait()
        await process.aclose()


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _kill_tree(root: int) -> None:
    """Kill the group of ``root`` and those of its descendants that lead a group of their own."""
    import psutil  # noqa: PLC0415  # only needed when something went wrong

    descendants: list[psutil.Process] = []
    with suppress(psutil.Error):
        descendants = psutil.Process(root).children(recursive=True)
    _kill_group(root)
    for descendant in descendants:
        with suppress(psutil.Error):
            descendant.kill()
