"""The child process that is a language server: start, stderr, and an end that always comes.

What has to hold: whatever happens to the bridge (normal end, cancellation, a crash, ``kill -9``), the server
and everything it has started (build hosts, compiler servers) is gone soon after, also when the server is
wedged and ignores the end of its stdin, as csharp-ls does after a notification it does not know.

Ways that were weighed:

- *Stdin alone.*  A healthy server ends at the end of its stdin; a wedged one does not.
- *A parent-death signal on the server* (``PR_SET_PDEATHSIG``).  Free, but it reaches the server only, not what
  the server started, and it fires when the *thread* that forked ends, which is not always the process.
- *A watchdog beside the server.*  It has to be told whom to watch, so there is a gap after the fork; and a
  grandchild whose parent has died, or that made a session of its own, can no longer be found from outside.
- *A guard between the bridge and the server.*  It is the parent, so there is no gap; it is the subreaper, so
  nothing escapes; it sees the bridge's end through a socket that the kernel closes.  The price is one bare
  Python interpreter a server: about 20 ms before the server starts, and some MB of memory.

The guard is what is used here; its module, ``guard``, says how it works.  Its control socket is also how the
tree is killed in an ordinary stop, so that path is exercised all the time.  Should the guard itself have been
killed or be stuck, the tree is killed from here by psutil.

Linux is the system this is made for.  On macOS the guard can kill the server's process group but not adopt
what left it.  Windows is not supported.
"""

import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psutil
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from lsp_client.errors import LanguageServerError, LastWords
from lsp_client.line_socket import LineSocket
from lsp_client.scratch import Scratch
from lsp_client.texts import console_text

SPAWN_WAIT = 20.0
"""Seconds for the guard to report the server's pid: a Python start, long on a machine that is loaded."""

SHUTDOWN_WAIT = 5.0
"""Seconds for ``shutdown`` and ``exit``.  A healthy server answers in milliseconds, one that loads a solution
in a second or two; VS Code gives 10."""

EXIT_WAIT = 3.0
"""Seconds for the process to end by itself after its stdin was closed (csharp-ls needs 0.5)."""

KILL_WAIT = 8.0
"""Seconds for the guard to kill and reap the tree; more than ``guard.KILL_BOUND``."""

FORCE_WAIT = 5.0
"""Seconds for what psutil killed to be reaped, when the guard did not do its work."""

LAST_WORDS_WAIT = 0.5
"""Seconds to learn the exit code and the rest of stderr after the channel ended.  The two come within
milliseconds unless the process lives on with its stdout closed."""

STDERR_TAIL_BYTES = 16 * 1024
"""How much of the end of stderr is kept: some screens of log, or two .NET stack traces."""

_GUARD = Path(__file__).with_name("guard.py")
_CHUNK_BYTES = 64 * 1024

logger = logging.getLogger(__name__)


class ServerProcess:
    """A running server.  ``stdin`` and ``stdout`` are its pipes; stderr is drained here."""

    def __init__(self, guard: Process, control: LineSocket, server_pid: int) -> None:
        if guard.stdin is None or guard.stdout is None or guard.stderr is None:
            raise ValueError("the guard must have been started with three pipes")
        self.pid = server_pid
        self.stdin: ByteSendStream = guard.stdin
        self.stdout: ByteReceiveStream = guard.stdout
        self._stderr: ByteReceiveStream = guard.stderr
        self._stderr_tail = bytearray()
        self._stderr_cut = False
        self._stderr_ended = anyio.Event()
        self._guard = guard
        self._control = control
        self._returncode: int | None = None
        self._exited = anyio.Event()
        self._tree_gone = anyio.Event()
        self._stopping = anyio.Lock()

    @property
    def returncode(self) -> int | None:
        """The exit code, ``-N`` for a death by signal N, None while the server runs."""
        return self._returncode

    @property
    def guard_pid(self) -> int:
        """The pid of the guard, the parent of the server."""
        return self._guard.pid

    def stderr_tail(self) -> str:
        """The end of what the server said on stderr, as plain text of at most ``STDERR_TAIL_BYTES``."""
        text = console_text(bytes(self._stderr_tail))
        # What was cut may have been cut inside a line, or inside a character.
        return text.partition("\n")[2] if self._stderr_cut and "\n" in text else text

    async def wait(self) -> int:
        """Wait, without a bound of its own, until the server has ended; its exit code."""
        await self._exited.wait()
        return -signal.SIGKILL if self._returncode is None else self._returncode

    async def describe_end(self) -> LastWords:
        """The exit code and the stderr tail, once the channel has ended; waits a moment for both."""
        with anyio.move_on_after(LAST_WORDS_WAIT):
            await self._exited.wait()
            await self._stderr_ended.wait()
        return LastWords(self._returncode, self.stderr_tail())

    async def stop(self, shutdown: Callable[[], Awaitable[None]] | None = None) -> None:
        """End the server and all it started; returns when they are gone, at the latest after the bounds above.

        ``shutdown`` asks in the server's own language (the ``shutdown`` request, then ``exit``); what goes
        wrong in it only makes the end less polite.  Then stdin is closed, and what is left is killed.
        Not interrupted by cancellation.  May be called any number of times.
        """
        with anyio.CancelScope(shield=True):
            async with self._stopping:
                if not self._exited.is_set() and shutdown is not None:
                    await self._ask(shutdown)
                await self.stdin.aclose()
                await self._within(EXIT_WAIT, self._tree_gone)
                if not self._tree_gone.is_set():
                    self.kill()
                    await self._within(KILL_WAIT, self._tree_gone)
                if not self._tree_gone.is_set():
                    await self._kill_by_force()

    def kill(self) -> None:
        """Have the guard kill the whole tree now, without a word; ``wait`` tells when it is done."""
        self._control.close_our_side()

    async def _ask(self, shutdown: Callable[[], Awaitable[None]]) -> None:
        with anyio.move_on_after(SHUTDOWN_WAIT):
            try:
                await shutdown()
            except (LanguageServerError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                logger.debug("the server did not shut down politely: %s", error)
            except Exception:  # the edge to the caller's part: nothing in it may leave a process behind
                logger.exception("asking the server to shut down failed")

    @staticmethod
    async def _within(seconds: float, event: anyio.Event) -> None:
        with anyio.move_on_after(seconds):
            await event.wait()

    async def _kill_by_force(self) -> None:
        """The guard does not do its work (stopped, or stuck): kill it and all below it from here."""
        logger.warning("the guard of server %d does not answer; killing the tree from outside", self.pid)
        tree: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):
            guard = psutil.Process(self._guard.pid)
            tree = [*guard.children(recursive=True), guard]
        for process in tree:
            with contextlib.suppress(psutil.Error):
                process.kill()
        await self._within(FORCE_WAIT, self._tree_gone)

    async def drain_stderr(self) -> None:
        """Read stderr to its end, so that the server never blocks on it, and keep the tail."""
        try:
            while True:
                self._stderr_tail += await self._stderr.receive(_CHUNK_BYTES)
                if len(self._stderr_tail) > STDERR_TAIL_BYTES:
                    del self._stderr_tail[:-STDERR_TAIL_BYTES]
                    self._stderr_cut = True
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            self._stderr_ended.set()

    async def watch(self) -> None:
        """Follow what the guard says until it has left; then everything is gone."""
        while (line := await self._control.next_line()) is not None:
            name, _, value = line.partition(" ")
            if name == "exit":
                self._returncode = int(value)
                self._exited.set()
        if self._returncode is None:
            self._sweep_after_lost_guard()
        await self._guard.wait()
        self._exited.set()
        self._tree_gone.set()

    def _sweep_after_lost_guard(self) -> None:
        """Somebody killed the guard: the server got its death signal, the rest of its group gets one here."""
        self._returncode = -signal.SIGKILL
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)


@asynccontextmanager
async def spawn(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    handed: Sequence[int] = (),
    scratch: Scratch | None = None,
) -> AsyncGenerator[ServerProcess, None]:
    """Start ``command`` in ``cwd`` with exactly ``env``; leaving the block stops it and all it started.

    ``handed`` are descriptors that it inherits besides its pipes.  ``scratch`` is removed when all of it has ended.
    Raises OSError (FileNotFoundError, PermissionError ...) when it cannot be started, and
    TimeoutError when that took longer than ``SPAWN_WAIT`` seconds.
    """
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)  # noqa: FBT003 - the standard library's signature
        with theirs:
            place = "" if scratch is None else f"{scratch.lock}:{scratch.path}"
            numbers = ",".join(map(str, handed))
            kept = () if scratch is None else (scratch.lock,)
            guard = await anyio.open_process(
                [sys.executable, "-I", "-S", str(_GUARD), str(theirs.fileno()), numbers, place, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=env,
                start_new_session=True,  # a Ctrl-C in the terminal is for the bridge alone
                pass_fds=[theirs.fileno(), *handed, *kept],
            )
        try:
            control = LineSocket(ours)
            server = ServerProcess(guard, control, await _reported_pid(control, command[0]))
            async with _attended(server):
                yield server
        finally:
            ours.close()  # whatever went wrong above: the guard sees this, and ends
            await _reap(guard)


@asynccontextmanager
async def _attended(server: ServerProcess) -> AsyncGenerator[None, None]:
    """Stderr is drained and the guard listened to while the block runs; at its end the server is stopped.

    An exception of the block leaves as itself, not inside a group.
    """
    failure: Exception | None = None
    # Shielded: while a cancelled block is being left, the stop still has to hear what the guard says.
    background = anyio.CancelScope(shield=True)

    async def attend() -> None:
        with background:
            async with anyio.create_task_group() as attending:
                attending.start_soon(server.drain_stderr)
                attending.start_soon(server.watch)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(attend)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - carried out of the task group, raised again below
            failure = error
        finally:
            await server.stop()
            background.cancel()
    if failure is not None:
        raise failure


async def _reported_pid(control: LineSocket, program: str) -> int:
    """The pid the guard reports, or the error it met."""
    with anyio.fail_after(SPAWN_WAIT):
        line = await control.next_line()
    name, _, value = (line or "").partition(" ")
    if name == "pid":
        return int(value)
    number = int(value) if name == "error" else 0
    raise OSError(number, os.strerror(number) if number else "the guard process did not start", program)


async def _reap(guard: Process) -> None:
    """Close the pipes and collect the guard, which ends by itself once its control socket has."""
    with anyio.CancelScope(shield=True):
        with anyio.move_on_after(FORCE_WAIT) as scope:
            await guard.wait()
        if scope.cancelled_caught:
            with contextlib.suppress(ProcessLookupError):
                guard.kill()
        await guard.aclose()
