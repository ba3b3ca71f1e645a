"""The wire: what arrives on stdin is answered, what leaves on stdout is a message, whatever happens."""

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from bridge.frontends.stdio import SHORT_WRITE_BYTES, Descriptors, open_transport
from tests.bridge.frontends.peer import ERAS, FAKE_BRIDGE, WAIT_SECONDS, Peer, fake_peer

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.fixture(scope="module", params=ERAS)
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    """One served process for the whole module: no test may take it down."""
    with fake_peer(era=request.param) as opened:
        yield opened.open()


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"not json", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"id":"mine","hello":1}', -32600, "mine"),
        (rb'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"\ud800"}}', -32602, 9),
    ],
)
def test_what_the_sdk_drops_in_silence_is_answered_and_the_next_call_works(
    peer: Peer, line: bytes, code: int, request_id: int | str | None
) -> None:
    peer.send_bytes(line + b"\n")
    answer = peer.receive()
    error = answer["error"]
    assert isinstance(error, dict)
    assert (error["code"], answer["id"]) == (code, request_id)
    assert peer.data("echo", still="up") == {"still": "up"}


def test_a_lone_surrogate_in_the_arguments_is_answered_for_its_call(peer: Peer) -> None:
    arguments = rb'{"name":"echo","arguments":{"text":"half \ud83d"}}'
    peer.send_bytes(b'{"jsonrpc":"2.0","id":"s","method":"tools/call","params":' + arguments + b"}\n")
    answer = peer.receive()
    assert answer["id"] == "s"
    assert "surrogate" in str(answer["error"])


def test_blank_lines_and_crlf_are_taken_in_stride(peer: Peer) -> None:
    peer.send_bytes(b"\n\r\n   \r\n")
    request_id = peer.start_call("echo")
    assert peer.receive()["id"] == request_id


def test_ten_megabytes_of_arguments_arrive_whole(peer: Peer) -> None:
    text = "é" * (5 * 1024 * 1024)
    assert peer.data("measure", text=text) == {"length": len(text)}


def test_ten_megabytes_of_answer_arrive_whole(peer: Peer) -> None:
    length = 10 * 1024 * 1024
    assert len(str(peer.data("big", length=length)["text"])) == length


def test_half_a_pair_in_an_answer_is_scrubbed_and_the_writer_lives(peer: Peer) -> None:
    result = peer.call("surrogate")
    assert result["content"] == [{"type": "text", "text": "text \ufffd"}]
    assert result["structuredContent"] == {"ok": True, "data": {"text": "a\ufffdb \u2028"}}
    assert peer.data("echo") == {}


def test_an_answer_that_is_no_json_is_an_error_and_the_writer_lives(peer: Peer) -> None:
    request_id = peer.start_call("unwritable")
    answer = peer.receive()
    assert answer["id"] == request_id
    error = answer["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32603
    assert peer.data("echo") == {}


def test_prints_of_handlers_and_children_reach_stderr_never_the_wire() -> None:
    with fake_peer() as peer:
        assert peer.open().data("print") == {}
        assert peer.data("read-stdin") == {"read": 0}
        peer.close_input()
        assert peer.wait_end() == 0
        assert peer.rest() == []
        for stray in ("stray print", "stray write", "stray child"):
            assert stray in peer.stderr


def test_the_last_line_counts_without_a_line_end() -> None:
    with fake_peer() as peer:
        peer.open()
        peer.send_bytes(b"no json, no line end")
        peer.close_input()
        [line] = peer.rest()
        assert json.loads(line)["error"]["code"] == -32700
        assert peer.wait_end() == 0


def test_a_file_as_standard_input_is_read_to_its_end(tmp_path: Path) -> None:
    script = tmp_path / "input"
    script.write_bytes(b"nonsense\n" + b"[]\n")
    with script.open("rb") as stdin:
        ended = subprocess.run(
            [sys.executable, str(FAKE_BRIDGE)],
            stdin=stdin,
            capture_output=True,
            timeout=WAIT_SECONDS,
            check=True,
        )
    codes = [json.loads(line)["error"]["code"] for line in ended.stdout.splitlines()]
    assert codes == [-32700, -32600]


def test_the_null_device_as_standard_input_is_an_empty_one() -> None:
    ended = subprocess.run(
        [sys.executable, str(FAKE_BRIDGE)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    assert ended.stdout == b""


def test_a_socket_pair_serves_as_well_as_pipes() -> None:
    """Some clients give their children sockets for standard streams."""
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rwb") as wire:
        ours.settimeout(WAIT_SECONDS)
        with subprocess.Popen(
            [sys.executable, str(FAKE_BRIDGE)], stdin=theirs.fileno(), stdout=theirs.fileno()
        ) as child:
            theirs.close()
            wire.write(b"nonsense\n")
            wire.flush()
            assert json.loads(wire.readline())["error"]["code"] == -32700
            ours.shutdown(socket.SHUT_WR)
            assert child.wait(WAIT_SECONDS) == 0


class Pipes:
    """The two pipes of an in-process transport."""

    def __init__(self) -> None:
        self.their_input, self.our_send = os.pipe()
        self.our_receive, self.their_output = os.pipe()
        self.wire = Descriptors(self.their_input, self.their_output)

    def readable(self) -> bool:
        return bool(select.select([self.our_receive], [], [], 0)[0])

    def close(self, *descriptors: int) -> None:
        for descriptor in descriptors or (
            self.their_input,
            self.our_send,
            self.our_receive,
            self.their_output,
        ):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    made = Pipes()
    yield made
    made.close()


@pytest.mark.anyio
async def test_a_line_over_the_limit_is_refused_and_the_next_one_read(pipes: Pipes) -> None:
    with anyio.fail_after(WAIT_SECONDS):
        async with open_transport(pipes.wire, max_line_bytes=100) as transport:
            os.write(pipes.our_send, b"x" * 1000 + b"\n" + PING + b"\n")
            item = await transport.incoming.receive()
            assert isinstance(item, SessionMessage)
            assert isinstance(item.message, JSONRPCRequest)
            answer = json.loads(os.read(pipes.our_receive, 1000))
            assert (answer["id"], answer["error"]["code"]) == (None, -32600)
            assert transport.answered.is_set()


@pytest.mark.anyio
async def test_the_end_of_input_ends_the_incoming_stream(pipes: Pipes) -> None:
    with anyio.fail_after(WAIT_SECONDS):
        async with open_transport(pipes.wire) as transport:
            pipes.close(pipes.our_send)
            with pytest.raises(anyio.EndOfStream):
                await transport.incoming.receive()
            assert transport.ended.is_set()


@pytest.mark.anyio
async def test_stop_reading_looks_like_the_end_of_input(pipes: Pipes) -> None:
    with anyio.fail_after(WAIT_SECONDS):
        async with open_transport(pipes.wire) as transport:
            transport.stop_reading()
            with pytest.raises(anyio.EndOfStream):
                await transport.incoming.receive()


@pytest.mark.anyio
async def test_a_reader_of_the_wire_that_is_gone_ends_the_transport(pipes: Pipes) -> None:
    with anyio.fail_after(WAIT_SECONDS):
        async with open_transport(pipes.wire) as transport:
            pipes.close(pipes.our_receive)
            await transport.outgoing.send(answer_of(10))
            await transport.ended.wait()
            with pytest.raises(anyio.EndOfStream):
                await transport.incoming.receive()
            with pytest.raises(anyio.BrokenResourceError):
                await transport.outgoing.send(answer_of(10))


def answer_of(length: int) -> SessionMessage:
    return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "x" * length}))


@pytest.mark.anyio
async def test_a_slow_reader_slows_the_sender_down_and_gets_everything(pipes: Pipes) -> None:
    """Back-pressure: with the wire full, a send waits; nothing piles up in memory and nothing is lost."""
    sent = 0
    count, length = 200, SHORT_WRITE_BYTES - 200

    async def send_all() -> None:
        nonlocal sent
        for _ in range(count):
            await transport.outgoing.send(answer_of(length))
            sent += 1

    received = bytearray()

    def drain() -> None:
        while received.count(b"\n") < count:
            received.extend(os.read(pipes.our_receive, 65536))

    with anyio.fail_after(WAIT_SECONDS):
        async with open_transport(pipes.wire) as transport, anyio.create_task_group() as tasks:
            tasks.start_soon(send_all)
            previous = -1
            while sent != previous:  # until the sender makes no more headway
                previous = sent
                for _ in range(50):
                    await anyio.lowlevel.checkpoint()
            assert 0 < sent < count
            reader = threading.Thread(target=drain)
            reader.start()
            await anyio.to_thread.run_sync(reader.join)
    assert sent == count
    assert all(json.loads(line)["id"] == 1 for line in bytes(received).splitlines())


@pytest.mark.anyio
async def test_a_peer_that_reads_nothing_does_not_hold_up_the_end(
    pipes: Pipes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.frontends.stdio.FLUSH_SECONDS", 0.05)
    with anyio.fail_after(WAIT_SECONDS):
        async with open_transport(pipes.wire) as transport, anyio.create_task_group() as tasks:
            tasks.start_soon(transport.outgoing.send, answer_of(1_000_000))
            while not pipes.readable():
                await anyio.lowlevel.checkpoint()
    pipes.close(pipes.our_receive)  # lets the abandoned writer thread go
