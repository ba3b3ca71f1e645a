"""Child processes that run and end: whole output, bounds, and nothing left behind.

Liveness is watched through a named pipe that the whole tree holds open for writing: its end comes when the last of
them is dead, so nothing has to be polled.
"""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from bridge.children import ChildNotStarted, ChildTimedOut, ChildTooTalkative, run

BOUND = 20.0
"""Seconds for anything in these tests; they take well under one."""

TREE = 'exec 9>"$1"; sleep 1000 & setsid sleep 1000 & echo started >&9; wait'
"""A shell with two children, one of them in a session of its own; all hold the pipe."""


class Pipe:
    """The reading end of the named pipe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    async def next(self) -> bytes:
        with anyio.fail_after(BOUND):
            await anyio.wait_readable(self._fd)
        return os.read(self._fd, 1000)

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
async def pipe(tmp_path: Path) -> AsyncIterator[Pipe]:
    pipe = Pipe(tmp_path / "alive")
    yield pipe
    pipe.close()


def shell(script: str, *arguments: str | Path) -> list[str]:
    return ["/bin/sh", "-c", script, "sh", *map(str, arguments)]


@pytest.mark.anyio
async def test_a_child_that_ends_gives_its_code_its_output_and_its_last_words(tmp_path: Path) -> None:
    done = await run(
        shell("pwd; echo $WORD; echo wrong >&2; exit 3"),
        cwd=tmp_path,
        environment={"WORD": "ä"},
        seconds=BOUND,
    )
    assert done.returncode == 3
    assert done.stdout.decode() == f"{tmp_path.resolve()}\nä\n"
    assert "wrong" in done.output_tail


@pytest.mark.anyio
async def test_large_output_on_both_streams_does_not_block_the_child(tmp_path: Path) -> None:
    script = "import sys; sys.stderr.write('e' * 3000000); sys.stdout.write('o' * 3000000)"
    done = await run([sys.executable, "-c", script], cwd=tmp_path, environment={}, seconds=BOUND)
    assert len(done.stdout) == 3_000_000
    assert len(done.output_tail) < 100_000


@pytest.mark.anyio
async def test_standard_input_is_at_its_end(tmp_path: Path) -> None:
    done = await run(shell("cat; echo end"), cwd=tmp_path, environment=dict(os.environ), seconds=BOUND)
    assert done.stdout == b"end\n"


@pytest.mark.anyio
async def test_a_program_that_is_not_there_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(ChildNotStarted):
        await run([tmp_path / "none"], cwd=tmp_path, environment={}, seconds=BOUND)
    with pytest.raises(ChildNotStarted):
        await run(shell("true"), cwd=tmp_path / "none", environment={}, seconds=BOUND)


@pytest.mark.anyio
async def test_too_much_output_is_refused_and_its_writer_killed(tmp_path: Path, pipe: Pipe) -> None:
    script = 'exec 9>"$1"; while :; do echo 0123456789012345678901234567890123456789; done'
    with pytest.raises(ChildTooTalkative):
        await run(shell(script, pipe.path), cwd=tmp_path, environment={}, seconds=BOUND, output_limit=100_000)
    assert await pipe.next() == b""


@pytest.mark.anyio
async def test_a_timeout_kills_the_whole_tree_and_keeps_its_last_words(tmp_path: Path, pipe: Pipe) -> None:
    script = f"echo thinking; {TREE}"
    with pytest.raises(ChildTimedOut) as caught:
        await run(shell(script, pipe.path), cwd=tmp_path, environment=dict(os.environ), seconds=0.5)
    assert "thinking" in caught.value.output_tail
    assert await pipe.next() == b"started\n"
    assert await pipe.next() == b""


@pytest.mark.anyio
async def test_cancelling_kills_the_whole_tree(tmp_path: Path, pipe: Pipe) -> None:
    async with anyio.create_task_group() as tasks:

        async def work() -> None:
            await run(shell(TREE, pipe.path), cwd=tmp_path, environment=dict(os.environ), seconds=BOUND)

        tasks.start_soon(work)
        assert await pipe.next() == b"started\n"
        tasks.cancel_scope.cancel()
    assert await pipe.next() == b""


@pytest.mark.anyio
async def test_a_helper_that_stays_behind_does_not_hold_the_answer(tmp_path: Path, pipe: Pipe) -> None:
    script = 'exec 9>"$1"; sleep 1000 & echo answer'
    with anyio.fail_after(BOUND):
        done = await run(shell(script, pipe.path), cwd=tmp_path, environment=dict(os.environ), seconds=1000)
    assert (done.returncode, done.stdout) == (0, b"answer\n")
    assert await pipe.next() == b""


@pytest.mark.anyio
async def test_killing_the_bridge_outright_ends_the_child(tmp_path: Path, pipe: Pipe) -> None:
    bridge = subprocess.Popen([sys.executable, "-c", _BRIDGE, str(pipe.path)], cwd=Path(__file__).parents[2])
    try:
        assert await pipe.next() == b"started\n"
    finally:
        bridge.send_signal(signal.SIGKILL)
        bridge.wait(BOUND)
    assert await pipe.next() == b""


_BRIDGE = """
import sys, anyio
from functools import partial
from pathlib import Path
from bridge.children import run
script = 'exec 9>"$1"; echo started >&9; exec sleep 1000'
anyio.run(partial(run, ["/bin/sh", "-c", script, "sh", sys.argv[1]], cwd=Path("/"), environment={"PATH": "/usr/bin:/bin"}, seconds=1000))
"""
