"""The child process: its end always comes, its tree goes with it, and nothing of it outlives the bridge.

Ends of processes are awaited on pidfds, opened while the process lives: no polling, and a pid that has been
given away again cannot be mistaken.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from lsp_client import process as process_module
from lsp_client.framing import FrameDecoder, encode_frame
from lsp_client.messages import decode
from lsp_client.process import STDERR_TAIL_BYTES, ServerProcess, spawn
from tests.lsp_client.talks import BOUND, talk
from tests.servers import scripts as s

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="the guard of the whole tree needs Linux"),
]

GONE_BOUND = 10.0
"""Seconds after which nothing of a killed tree may be there; it takes some hundredths."""


class Watched:
    """A process whose end can be waited for."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    async def gone(self) -> None:
        """Wait until it has ended; fails after the bound."""
        with anyio.fail_after(GONE_BOUND):
            await anyio.wait_readable(self._fd)
        os.close(self._fd)

    def lives(self) -> bool:
        return psutil.pid_exists(self.pid) and psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE


def python(source: str, *arguments: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", source, *arguments]


@asynccontextmanager
async def running(command: Sequence[str], folder: Path) -> AsyncGenerator[ServerProcess, None]:
    async with spawn(command, cwd=folder, env=dict(os.environ)) as server:
        yield server


async def said(server: ServerProcess) -> bytes:
    """All of its stdout."""
    data = b""
    with anyio.fail_after(BOUND):
        async for chunk in server.stdout:
            data += chunk
    return data


async def first_message(server: ServerProcess) -> dict[str, object]:
    decoder = FrameDecoder()
    with anyio.fail_after(BOUND):
        while not (bodies := decoder.feed(await server.stdout.receive())):
            pass
    return decode(bodies[0], dict[str, object])


async def grandchild(server: ServerProcess) -> Watched:
    """The process that the peer has started with ``spawn_child``."""
    params = (await first_message(server))["params"]
    assert isinstance(params, dict)
    return Watched(params["pid"])


# --- start ------------------------------------------------------------------------------------------------


async def test_the_command_runs_with_exactly_the_folder_the_environment_and_the_pipes(tmp_path: Path) -> None:
    source = (
        "import os, signal, sys\n"
        "fds = [fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')][:-1]\n"
        "print(os.getcwd(), sorted(os.environ), sys.argv[1:], os.getsid(0) == os.getpid(), fds, sep='|')\n"
        "print([line for line in open('/proc/self/status') if line.startswith('SigIgn')])"
    )
    env = {"ONE": "1", "LC_ALL": "C.UTF-8"}
    async with spawn(python(source, "a b", "é", ""), cwd=tmp_path, env=env) as server:
        lines = (await said(server)).decode().splitlines()
    assert lines[0] == f"{tmp_path}|['LC_ALL', 'ONE']|['a b', 'é', '']|True|[]"
    # SIGPIPE (13) and SIGXFSZ (25) are ignored by this very Python, and from 32 on signals are the C library's own;
    # nothing else is ignored.
    ignored = int(re.findall(r"[0-9a-f]{16}", lines[1])[0], 16)
    assert ignored & 0x7FFF_FFFF == 1 << 12 | 1 << 24


async def test_the_pid_is_the_servers_own(tmp_path: Path) -> None:
    async with running(python("import os; print(os.getpid())"), tmp_path) as server:
        assert int(await said(server)) == server.pid


@pytest.mark.parametrize(
    ("program", "error"),
    [("/no/such/program", FileNotFoundError), ("no-such-program", FileNotFoundError), ("/", PermissionError)],
)
async def test_what_cannot_be_started_raises_the_systems_error(
    tmp_path: Path, program: str, error: type[OSError]
) -> None:
    with pytest.raises(error) as caught:
        async with running([program, "--stdio"], tmp_path):
            pass
    assert caught.value.filename == program


async def test_a_folder_that_is_not_there_raises_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        async with running(["true"], tmp_path / "nowhere"):
            pass


async def test_a_program_is_found_on_the_path_of_its_environment(tmp_path: Path) -> None:
    program = tmp_path / "my-server"
    program.write_text("#!/bin/sh\necho found\n")
    program.chmod(0o755)
    async with spawn(["my-server"], cwd=Path("/"), env={"PATH": str(tmp_path)}) as server:
        assert await said(server) == b"found\n"


# --- end by itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "code"), [("pass", 0), ("raise SystemExit(3)", 3), ("import os; os.abort()", -6)]
)
async def test_the_exit_code_is_the_servers(tmp_path: Path, source: str, code: int) -> None:
    async with running(python(source), tmp_path) as server:
        with anyio.fail_after(BOUND):
            assert await server.wait() == code
        assert server.returncode == code
        assert (await server.describe_end()).exit_code == code


@pytest.mark.parametrize("detached", [False, True])
async def test_what_a_server_leaves_behind_when_it_ends_is_killed(tmp_path: Path, detached: bool) -> None:
    command = s.peer_command(tmp_path, s.spawn_child(detached=detached), s.expect("test/go"), s.exit_with(0))
    async with running(command, tmp_path) as server:
        child = await grandchild(server)
        await server.stdin.send(encode_frame(b'{"method":"test/go"}'))
        await child.gone()
        with anyio.fail_after(BOUND):
            await server.wait()
        assert server.returncode == 0


async def test_the_pipes_end_with_the_server_though_something_it_started_holds_them(tmp_path: Path) -> None:
    command = s.peer_command(tmp_path, s.spawn_child(), s.exit_with(0))
    async with running(command, tmp_path) as server:
        assert b"test/child" in await said(server)


# --- stderr -----------------------------------------------------------------------------------------------


async def test_much_stderr_blocks_nothing_and_its_end_is_kept(tmp_path: Path) -> None:
    steps = (s.flood_stderr(1 << 20), s.stderr("\x1b[31mthe reason\x1b[0m\r\n"), s.exit_with(1))
    async with running(s.peer_command(tmp_path, *steps), tmp_path) as server:
        with anyio.fail_after(BOUND):
            await server.wait()
        tail = (await server.describe_end()).stderr_tail
    assert tail.endswith("noise on stderr, one line of it\nthe reason\n")
    assert tail.startswith("noise on stderr")
    assert STDERR_TAIL_BYTES // 2 < len(tail) <= STDERR_TAIL_BYTES


async def test_a_stderr_that_is_no_text_can_still_be_shown(tmp_path: Path) -> None:
    source = "import sys; sys.stderr.buffer.write(b'\\xff\\xfe\\x00bad\\x07'); sys.exit(1)"
    async with running(python(source), tmp_path) as server:
        with anyio.fail_after(BOUND):
            await server.wait()
        tail = (await server.describe_end()).stderr_tail
    assert tail == "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}bad"


# --- stop -------------------------------------------------------------------------------------------------


async def test_a_polite_server_ends_politely_with_code_0(tmp_path: Path) -> None:
    async with talk(tmp_path) as peer:

        async def shutdown() -> None:
            await peer.connection.request("shutdown", timeout=BOUND)
            await peer.connection.notify("exit")

        with anyio.fail_after(BOUND):
            await peer.process.stop(shutdown)
        assert peer.process.returncode == 0
        assert "closed its output" in (await peer.end()).reason


async def test_a_server_that_only_knows_the_end_of_stdin_ends_by_that(tmp_path: Path) -> None:
    async with running(python("import sys; sys.stdin.read(); sys.exit(7)"), tmp_path) as server:
        with anyio.fail_after(BOUND):
            await server.stop()
        assert server.returncode == 7


async def test_a_wedged_server_is_killed_with_all_it_started_within_the_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "SHUTDOWN_WAIT", 0.2)
    monkeypatch.setattr(process_module, "EXIT_WAIT", 0.2)
    steps = (s.spawn_child(detached=True), s.spawn_child(), s.wedge())
    async with talk(tmp_path, *steps) as peer:
        children = [Watched(decode(raw, dict[str, int])["pid"]) for raw in await peer.heard("test/child", 2)]

        async def shutdown() -> None:
            await peer.connection.request("shutdown", timeout=BOUND)

        before = time.monotonic()
        await peer.process.stop(shutdown)
        assert time.monotonic() - before < 8  # what the bounds as they stand sum up to
        assert peer.process.returncode == -signal.SIGKILL
        assert not any(child.lives() for child in children)
        assert (await peer.end()).exit_code == -signal.SIGKILL


@pytest.mark.parametrize("failure", [RuntimeError("a mistake"), anyio.ClosedResourceError(), OSError("x")])
async def test_a_failure_in_the_polite_part_leaves_nothing_behind(
    tmp_path: Path, failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def shutdown() -> None:
        raise failure

    async with running(s.peer_command(tmp_path), tmp_path) as server:
        watched = Watched(server.pid)
        await server.stop(shutdown)
        await watched.gone()


async def test_stopping_twice_and_at_once_is_stopping(tmp_path: Path) -> None:
    async with running(s.peer_command(tmp_path), tmp_path) as server:
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(server.stop)
            await server.stop()
        assert server.returncode == 0


async def test_a_stop_is_not_interrupted_by_cancellation(tmp_path: Path) -> None:
    async with running(s.peer_command(tmp_path), tmp_path) as server:
        with anyio.move_on_after(0):
            await server.stop()
        assert server.returncode == 0


async def test_an_exception_of_the_block_leaves_as_itself_and_the_server_is_gone(tmp_path: Path) -> None:
    watched: list[Watched] = []

    async def fail() -> None:
        async with running(s.peer_command(tmp_path), tmp_path) as server:
            watched.append(Watched(server.pid))
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await fail()
    await watched[0].gone()


async def test_a_cancelled_block_leaves_no_server_and_takes_no_longer_than_any_other(tmp_path: Path) -> None:
    before = time.monotonic()
    with anyio.CancelScope() as scope:
        async with running(s.peer_command(tmp_path), tmp_path) as server:
            watched = Watched(server.pid)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    await watched.gone()
    assert server.returncode == 0
    assert time.monotonic() - before < process_module.KILL_WAIT  # nothing had to wait for a bound


async def test_kill_ends_the_tree_at_once(tmp_path: Path) -> None:
    async with running(s.peer_command(tmp_path, s.spawn_child(), s.wedge()), tmp_path) as server:
        child = await grandchild(server)
        server.kill()
        await child.gone()
        with anyio.fail_after(BOUND):
            assert await server.wait() == -signal.SIGKILL


async def test_a_server_killed_from_outside_is_seen_and_its_children_are_killed(tmp_path: Path) -> None:
    async with running(s.peer_command(tmp_path, s.spawn_child(), s.wedge()), tmp_path) as server:
        child = await grandchild(server)
        os.kill(server.pid, signal.SIGKILL)
        with anyio.fail_after(BOUND):
            assert await server.wait() == -signal.SIGKILL
        await child.gone()


# --- the guard itself fails -------------------------------------------------------------------------------


async def test_when_the_guard_is_killed_the_server_and_its_group_go_too(tmp_path: Path) -> None:
    async with running(s.peer_command(tmp_path, s.spawn_child(), s.wedge()), tmp_path) as server:
        child, watched = await grandchild(server), Watched(server.pid)
        os.kill(server.guard_pid, signal.SIGKILL)
        await watched.gone()
        await child.gone()
        with anyio.fail_after(BOUND):
            assert await server.wait() == -signal.SIGKILL


async def test_when_the_guard_is_stuck_the_tree_is_killed_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "EXIT_WAIT", 0.1)
    monkeypatch.setattr(process_module, "KILL_WAIT", 0.1)
    async with running(s.peer_command(tmp_path, s.spawn_child(), s.wedge()), tmp_path) as server:
        child, watched = await grandchild(server), Watched(server.pid)
        os.kill(server.guard_pid, signal.SIGSTOP)
        with anyio.fail_after(BOUND):
            await server.stop()
        await watched.gone()
        await child.gone()


async def test_polite_signals_to_the_guard_do_not_take_the_server_away(tmp_path: Path) -> None:
    async with running(s.peer_command(tmp_path), tmp_path) as server:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(server.guard_pid, number)
        with anyio.fail_after(BOUND):
            await server.stop()
        assert server.returncode == 0


async def test_where_nothing_can_be_adopted_the_group_of_the_server_is_killed(tmp_path: Path) -> None:
    """The guard as it is on a system without prctl: told that it is elsewhere, it must do without."""
    elsewhere = "import runpy, sys; sys.platform = 'darwin'; runpy.run_path({!r}, run_name='__main__')"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = ["sh", "-c", "sleep 1000 & sleep 1000 & echo $! $$; wait"]
        wrapper = elsewhere.format(str(process_module._GUARD))
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", wrapper, str(theirs.fileno()), "", "", *command],
            stdout=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        with guard:
            assert guard.stdout is not None
            watched = [Watched(int(pid)) for pid in guard.stdout.readline().split()]
            ours.shutdown(socket.SHUT_WR)
            for process in watched:
                await process.gone()
            assert guard.wait(GONE_BOUND) == 0
        assert ours.recv(100) == b"pid %d\nexit -9\n" % watched[1].pid


# --- the bridge dies --------------------------------------------------------------------------------------

BRIDGE = """
import os, sys, anyio
from pathlib import Path
from lsp_client.process import spawn

async def main():
    async with spawn(sys.argv[1:], cwd=Path.cwd(), env=dict(os.environ)) as server:
        print(server.pid, server.guard_pid, flush=True)
        async for data in server.stdout:
            os.write(1, data)

anyio.run(main)
"""


@asynccontextmanager
async def bridge(
    folder: Path, *steps: s.Step
) -> AsyncGenerator[tuple[anyio.abc.Process, list[Watched]], None]:
    """A process that uses ``spawn`` as the bridge does, with its server and all that the server has started."""
    command = [sys.executable, "-c", BRIDGE, *s.peer_command(folder, *steps)]
    children = sum(step["do"] == "spawn-child" for step in steps)
    async with await anyio.open_process(command, start_new_session=True) as parent:
        assert parent.stdout is not None
        said = b""
        with anyio.fail_after(BOUND):
            while said.count(b"\n") < 1 or said.count(b'"pid"') < children:
                said += await parent.stdout.receive()
        first, _, rest = said.partition(b"\n")
        pids = [int(word) for word in first.split()]
        for body in FrameDecoder().feed(rest):
            params = decode(body, dict[str, object])["params"]
            assert isinstance(params, dict)
            pids.append(params["pid"])
        watched = [Watched(pid) for pid in pids]
        assert len(watched) == 2 + children
        assert all(process.lives() for process in watched)
        yield parent, watched


TREE = (s.spawn_child(), s.spawn_child(detached=True))


@pytest.mark.parametrize("ending", [(), (s.wedge(),)], ids=["healthy", "wedged"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
async def test_a_bridge_that_is_killed_leaves_nothing(
    tmp_path: Path, ending: tuple[s.Step, ...], number: signal.Signals
) -> None:
    async with bridge(tmp_path, *TREE, *ending) as (parent, watched):
        parent.send_signal(number)
        for process in watched:
            await process.gone()


async def test_a_bridge_killed_with_its_whole_group_leaves_nothing(tmp_path: Path) -> None:
    async with bridge(tmp_path, *TREE, s.wedge()) as (parent, watched):
        os.killpg(parent.pid, signal.SIGKILL)
        for process in watched:
            await process.gone()


async def test_a_bridge_and_a_guard_killed_together_take_the_server_along(tmp_path: Path) -> None:
    async with bridge(tmp_path, s.wedge()) as (parent, watched):
        server, guard = watched
        os.kill(guard.pid, signal.SIGKILL)
        parent.send_signal(signal.SIGKILL)
        await server.gone()


async def test_a_server_that_forks_while_it_is_killed_does_not_get_away(tmp_path: Path) -> None:
    source = (
        "import os, signal, sys\n"
        "for i in range(300):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        while True: signal.pause()\n"
        "    os.write(1, b'.')\n"
    )
    async with running(python(source, str(tmp_path)), tmp_path) as server:
        with anyio.fail_after(BOUND):
            await server.stdout.receive()
            server.kill()
            await server.wait()
    left = [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(tmp_path) in (process.info["cmdline"] or [])
    ]
    assert left == []
