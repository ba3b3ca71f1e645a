"""Ends: orderly ones leave nothing behind and say so in the exit code; forced ones leave nothing behind either."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import psutil
import pytest

from bridge.frontends.signals import watch_signals
from tests.bridge.frontends.peer import ERAS, WAIT_SECONDS, Peer, fake_peer


def end_by_eof(peer: Peer) -> None:
    peer.close_input()


def end_by_sigterm(peer: Peer) -> None:
    peer.process.send_signal(signal.SIGTERM)


def end_by_sigint(peer: Peer) -> None:
    peer.process.send_signal(signal.SIGINT)


def end_by_broken_output(peer: Peer) -> None:
    """Close our end of the child's stdout while the child has something to say."""
    peer.stop_listening()
    deadline = time.monotonic() + WAIT_SECONDS
    with contextlib.suppress(BrokenPipeError):
        while peer.process.poll() is None and time.monotonic() < deadline:
            peer.send_bytes(b"not json\n")


ORDERLY = {
    "end of input": (end_by_eof, 0),
    "SIGTERM": (end_by_sigterm, 0),
    "SIGINT": (end_by_sigint, 130),
    "broken output": (end_by_broken_output, 0),
}


def wait_for_death(pid: int) -> None:
    try:
        psutil.Process(pid).wait(WAIT_SECONDS)
    except psutil.NoSuchProcess:
        return


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ORDERLY)
def test_an_orderly_end_closes_the_tools_and_leaves_no_child(way: str, era: str, tmp_path: Path) -> None:
    end, exit_code = ORDERLY[way]
    closed = tmp_path / "closed"
    with fake_peer(era=era, environ={"FAKE_CLOSED": str(closed)}) as peer:
        pid = int(str(peer.open().data("child")["pid"]))
        peer.start_call("wait", {"progressToken": 1})  # a call in flight does not hold up the end
        assert peer.receive()["method"] == "notifications/progress"
        end(peer)
        assert peer.wait_end() == exit_code
        assert closed.read_text() == "closed"
        wait_for_death(pid)
        assert "Traceback" not in peer.stderr


@pytest.mark.parametrize("way", ["end of input", "SIGTERM"])
def test_calls_in_flight_at_the_end_are_answered(way: str) -> None:
    with fake_peer() as peer:
        peer.open()
        request_id = peer.start_call("wait", {"progressToken": 1})
        peer.receive()
        ORDERLY[way][0](peer)
        answer = peer.receive()
        assert answer["id"] == request_id
        assert "error" in answer
        assert peer.rest() == []


@pytest.mark.parametrize("way", ["end of input", "SIGTERM", "SIGINT"])
def test_an_end_before_the_first_message_is_orderly(way: str) -> None:
    end, exit_code = ORDERLY[way]
    with fake_peer() as peer:
        peer.send_bytes(b"x\n")
        peer.receive()  # it serves
        end(peer)
        assert peer.wait_end() == exit_code


@pytest.mark.parametrize("way", ["end of input", "SIGTERM", "cancellation"])
def test_a_call_past_its_instant_finishes(way: str, tmp_path: Path) -> None:
    gate, path = tmp_path / "gate", tmp_path / "committed"
    os.mkfifo(gate)
    with fake_peer() as peer:
        peer.open()
        request_id = peer.start_call("commit", {"progressToken": 1}, gate=str(gate), path=str(path))
        assert peer.receive()["method"] == "notifications/progress"
        if way == "cancellation":
            peer.send(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
            )
        else:
            ORDERLY[way][0](peer)
        gate.write_bytes(b"go")  # the call waits for this, past its instant
        if way == "cancellation":
            peer.close_input()
        assert peer.wait_end() == 0
        assert path.read_text() == "committed"


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_a_clean_up_that_hangs(second: signal.Signals) -> None:
    with fake_peer("never-closes") as peer:
        pid = int(str(peer.open().data("child")["pid"]))
        peer.process.send_signal(signal.SIGTERM)
        peer.wait_for_stderr("closing")
        peer.process.send_signal(second)
        assert peer.wait_end() == 128 + second
        wait_for_death(pid)


def test_a_clean_up_that_hangs_is_bounded() -> None:
    with fake_peer("never-closes", "short-end") as peer:
        peer.open()
        peer.data("echo")
        peer.process.send_signal(signal.SIGINT)
        assert peer.wait_end() == 130


def end_by_kill(peer: Peer) -> None:
    peer.process.kill()


@pytest.mark.parametrize(
    ("end", "exit_code"),
    [(end_by_eof, 0), (end_by_sigterm, 0), (end_by_sigint, 130), (end_by_kill, -signal.SIGKILL)],
)
def test_a_wedged_language_server_and_its_build_host_outlive_no_end(
    end: Callable[[Peer], None], exit_code: int
) -> None:
    with fake_peer("wedged") as peer:
        pids = peer.open().data("family")["pids"]
        assert isinstance(pids, list)
        assert len(pids) == 3
        assert all(psutil.pid_exists(pid) for pid in pids)
        end(peer)
        assert peer.wait_end() == exit_code
        for pid in pids:
            wait_for_death(pid)


def test_kill_9_leaves_no_child_that_listens_to_its_stdin() -> None:
    with fake_peer() as peer:
        pid = int(str(peer.open().data("child")["pid"]))
        peer.process.kill()
        assert peer.wait_end() == -signal.SIGKILL
        wait_for_death(pid)


@pytest.mark.anyio
async def test_the_first_signal_asks_and_every_further_one_forces() -> None:
    asked: list[int] = []
    forced: list[int] = []
    async with anyio.create_task_group() as tasks:
        await tasks.start(watch_signals, asked.append, forced.append)
        with anyio.fail_after(WAIT_SECONDS):
            for signum, expected in (
                (signal.SIGTERM, ([0], [])),
                (signal.SIGINT, ([0], [130])),
                (signal.SIGTERM, ([0], [130, 143])),
            ):
                os.kill(os.getpid(), signum)
                while (asked, forced) != expected:
                    await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
