"""A connection to a scripted peer: a real child process on real pipes, and every bad case that was met.

The first part goes through the table of cases in which a stock LSP client hangs, drops or lies.
"""

import contextlib
import json
import logging
import math
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
import psutil
import pytest
from anyio.abc import ByteReceiveStream, ByteSendStream, ByteStream

from lsp_client.connection import MAX_UNANSWERED, Connection
from lsp_client.errors import (
    LanguageServerError,
    ProtocolViolation,
    RequestTimedOut,
    ResponseError,
    ServerGone,
)
from lsp_client.framing import encode_frame
from lsp_client.messages import DiagnosticReport, decode, decode_plain
from tests.lsp_client.talks import BOUND, Talk, refuse, talk
from tests.servers import scripts as s
from tests.shared import TRANSCRIPTS

pytestmark = pytest.mark.anyio

ASK = s.expect("test/ask")


def member(value: object, name: str) -> object:
    assert isinstance(value, dict)
    return value.get(name)


async def fails_at_once(conversation: Talk) -> ServerGone:
    """A request after the end fails immediately; how."""
    with anyio.fail_after(BOUND), pytest.raises(ServerGone) as caught:
        await conversation.ask()
    with anyio.fail_after(BOUND), pytest.raises(ServerGone):
        await conversation.connection.notify("test/note")
    assert conversation.connection.pending_count == 0
    return caught.value


# --- what a peer may say ----------------------------------------------------------------------------------


async def test_an_answer_reaches_its_request(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.echo()) as peer:
        assert await peer.ask(params={"text": "größer 𝄞"}) == {"text": "größer 𝄞"}


async def test_a_notification_without_params_is_delivered(tmp_path: Path) -> None:
    async with talk(tmp_path, s.notify("workspace/projectInitializationComplete")) as peer:
        assert [bytes(p) for p in await peer.heard("workspace/projectInitializationComplete")] == [b"null"]


@pytest.mark.parametrize("params", [None, [], {}])
async def test_params_that_say_nothing_are_delivered_as_they_are(tmp_path: Path, params: object) -> None:
    async with talk(tmp_path, s.notify("test/done", params=params)) as peer:
        assert decode_plain((await peer.heard("test/done"))[0]) == params


async def test_a_request_without_params_is_answered(tmp_path: Path) -> None:
    async def answer(method: str, params: msgspec.Raw) -> object:
        return [method, decode_plain(params)]

    async with talk(
        tmp_path, s.ask(7, "custom/ask"), s.expect_answer(7), s.report(), on_request=answer
    ) as peer:
        assert await peer.report() == [{"jsonrpc": "2.0", "id": 7, "result": ["custom/ask", None]}]


async def test_extra_members_of_the_envelope_are_ignored(tmp_path: Path) -> None:
    steps = (
        s.notify("test/note", params=1, traceparent="00-ab"),
        ASK,
        s.reply(5, traceparent="00-ab", meta={}),
    )
    async with talk(tmp_path, *steps) as peer:
        assert await peer.ask() == 5
        assert [bytes(p) for p in await peer.heard("test/note")] == [b"1"]


async def test_a_payload_with_a_member_called_jsonrpc_is_a_payload(tmp_path: Path) -> None:
    payload = {"pkg": {"jsonrpc": "^2.0", "id": 1, "method": "m"}}
    async with talk(tmp_path, s.notify("test/note", params=payload), ASK, s.reply(payload)) as peer:
        assert await peer.ask() == payload
        assert decode_plain((await peer.heard("test/note"))[0]) == payload


async def test_an_answer_without_a_result_is_null(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.reply_members()) as peer:
        assert await peer.ask() is None


async def test_a_result_beside_a_null_error_is_the_result(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.reply(5, error=None)) as peer:
        assert await peer.ask() == 5


async def test_an_answer_of_another_form_is_an_exception_at_its_caller_only(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.reply({"kind": 5}), ASK, s.reply({"kind": "full"})) as peer:
        first = await peer.connection.request("test/ask", timeout=BOUND)
        with pytest.raises(ProtocolViolation, match="DiagnosticReport"):
            decode(first, DiagnosticReport)
        second = await peer.connection.request("test/ask", timeout=BOUND)
        assert decode(second, DiagnosticReport).kind == "full"


@pytest.mark.parametrize(
    "body", [b"Not JSON", b"", b"{", b'{"id":1,}', b'\xff\xfe{"id":1}', b"[]", b"5", b"null"]
)
async def test_a_frame_that_is_no_message_ends_the_channel_for_all(tmp_path: Path, body: bytes) -> None:
    async with talk(tmp_path, ASK, s.framed(body), s.wedge()) as peer:
        with pytest.raises(ServerGone, match="no LSP"):
            await peer.ask()
        assert "no LSP" in (await fails_at_once(peer)).reason


async def test_keys_that_are_no_identifiers_survive(tmp_path: Path) -> None:
    result = {"1": "a", "a-b": {"": [None, True]}, "class": 1.5}
    async with talk(tmp_path, ASK, s.reply(result)) as peer:
        assert await peer.ask() == result


@pytest.mark.parametrize("code", [-30099, -32801, -32802, -32000, 0, 7])
async def test_the_code_the_message_and_the_data_of_an_error_are_kept(tmp_path: Path, code: int) -> None:
    async with talk(tmp_path, ASK, s.reply_error(code, "says the server", {"stack": ["x"]})) as peer:
        with pytest.raises(ResponseError) as caught:
            await peer.ask()
        error = caught.value
        assert (error.method, error.code, error.message) == ("test/ask", code, "says the server")
        assert error.data == {"stack": ["x"]}


@pytest.mark.parametrize("error", ["words", 5, {}, {"code": "x"}, {"code": 1.5, "message": None}, []])
async def test_an_error_of_an_odd_form_is_an_error_all_the_same(tmp_path: Path, error: object) -> None:
    async with talk(tmp_path, ASK, s.reply_members(error=error)) as peer:
        with pytest.raises(ResponseError):
            await peer.ask()


@pytest.mark.parametrize(
    "header", ["content-length: %d", "CONTENT-LENGTH:%d", "Content-Length:%d", "X: y\r\nContent-length : %d"]
)
async def test_headers_are_read_in_any_spelling(tmp_path: Path, header: str) -> None:
    body = b'{"method":"test/note","params":1}'
    async with talk(
        tmp_path, s.raw((header % len(body)).encode() + b"\r\n\r\n" + body), ASK, s.reply(2)
    ) as peer:
        assert await peer.ask() == 2
        assert len(await peer.heard("test/note")) == 1


async def test_stray_lines_on_stdout_are_skipped(tmp_path: Path) -> None:
    stray = s.raw(b"Unhandled something\nat Place.Of.It()\r\n\r\nno line end")
    async with talk(tmp_path, stray, ASK, stray, s.reply(5), stray, ASK, s.reply(6)) as peer:
        assert [await peer.ask(), await peer.ask()] == [5, 6]


async def test_a_stray_line_over_64_kib_is_skipped(tmp_path: Path) -> None:
    async with talk(tmp_path, s.flood_stdout(300_000), ASK, s.flood_stdout(70_000), s.reply(5)) as peer:
        assert await peer.ask() == 5


async def test_a_request_for_an_unknown_method_is_answered_so(tmp_path: Path) -> None:
    async with talk(tmp_path, s.ask("x1", "custom/unknown"), s.expect_answer("x1"), s.report()) as peer:
        (answer,) = await peer.report()
        assert answer["id"] == "x1"
        assert member(answer["error"], "code") == -32601


async def test_a_child_that_exits_fails_the_requests_in_flight_and_all_later_ones(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.stderr("the last words\n"), s.exit_with(3)) as peer:
        with pytest.raises(ServerGone) as caught:
            await peer.ask()
        assert caught.value.exit_code == 3
        assert "the last words" in caught.value.stderr_tail
        assert (await fails_at_once(peer)).exit_code == 3


async def test_a_child_that_dies_by_a_signal_says_which(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.die_by(11)) as peer:
        with pytest.raises(ServerGone) as caught:
            await peer.ask()
        assert caught.value.exit_code == -11


async def test_a_child_that_dies_while_its_own_request_is_worked_on_fails_all(tmp_path: Path) -> None:
    cancelled = anyio.Event()

    async def slow(method: str, params: msgspec.Raw) -> object:
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return None

    async with talk(tmp_path, s.ask(1, "custom/slow"), ASK, s.exit_with(4), on_request=slow) as peer:
        with pytest.raises(ServerGone) as caught:
            await peer.ask()
        assert caught.value.exit_code == 4
        await fails_at_once(peer)
        assert cancelled.is_set()
        assert peer.connection.answering_count == 0


async def test_a_closed_stdout_ends_the_channel_though_the_process_lives(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.close("stdout"), s.wedge()) as peer:
        with pytest.raises(ServerGone, match="closed its output") as caught:
            await peer.ask()
        assert caught.value.exit_code is None
        await fails_at_once(peer)
        assert peer.process.returncode is None


class TakesOneFrame(ByteSendStream):
    """The pipe to a peer that reads one frame and ends; ``broken`` once a write has met the end."""

    def __init__(self) -> None:
        self.frames = 0
        self.broken = anyio.Event()

    async def send(self, item: bytes) -> None:
        self.frames += 1
        if self.frames > 1:
            self.broken.set()
            raise anyio.BrokenResourceError

    async def aclose(self) -> None:
        pass


class SaysOnceBroken(ByteReceiveStream):
    """What such a peer had said: it is read only after a write has failed, the worst turn of events."""

    def __init__(self, pipe: TakesOneFrame, said: bytes) -> None:
        self._pipe = pipe
        self._said = [said]

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await self._pipe.broken.wait()
        for _ in range(10):  # whoever fails the waiters at once has the time to do it
            await anyio.lowlevel.checkpoint()
        if not self._said:
            raise anyio.EndOfStream
        return self._said.pop()

    async def aclose(self) -> None:
        pass


async def test_an_answer_given_before_the_peer_stopped_reading_arrives() -> None:
    pipe = TakesOneFrame()
    said = encode_frame(b'{"jsonrpc":"2.0","id":1,"result":5}')
    connection = Connection(SaysOnceBroken(pipe, said), pipe, on_request=refuse, on_notification=ignore)
    answers: list[bytes] = []

    async def ask() -> None:
        answers.append(bytes(await connection.request("test/ask", timeout=BOUND)))

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            await tasks.start(connection.run)
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()  # the question is out
            with pytest.raises(ServerGone, match="no more input"):
                await connection.notify("test/late")
    assert answers == [b"5"]


async def test_a_closed_stdin_ends_the_channel(tmp_path: Path) -> None:
    async with talk(tmp_path, s.close("stdin"), s.notify("test/closed"), s.wedge()) as peer:
        await peer.heard("test/closed")
        with pytest.raises(ServerGone, match="no more input"):
            await stuff(peer)
        await fails_at_once(peer)


async def test_a_flood_on_stderr_does_not_block_the_child(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.flood_stderr(1 << 20), s.stderr("the end\n"), s.reply(5)) as peer:
        assert await peer.ask() == 5


async def test_five_hundred_notifications_come_in_order_and_leave_nothing(tmp_path: Path) -> None:
    steps = [s.notify("test/note", params=i) for i in range(500)]
    async with talk(tmp_path, *steps, ASK, s.reply(5)) as peer:
        assert await peer.ask() == 5
        assert [decode_plain(p) for p in await peer.heard("test/note", 500)] == list(range(500))
        assert (peer.connection.pending_count, peer.connection.answering_count) == (0, 0)


async def test_a_burst_of_requests_from_the_peer_is_answered_while_ours_waits(tmp_path: Path) -> None:
    burst = 2200

    async def answer(method: str, params: msgspec.Raw) -> object:
        return None

    asked = [s.ask(i, "client/registerCapability", params={"registrations": []}) for i in range(burst)]
    answers = [s.expect_answer(i) for i in range(burst)]
    async with talk(tmp_path, ASK, *asked, *answers, s.reply(5, to="test/ask"), on_request=answer) as peer:
        assert await peer.ask() == 5
        assert peer.connection.answering_count == 0


async def test_the_ids_of_the_peer_are_not_mixed_up_with_ours(tmp_path: Path) -> None:
    async def answer(method: str, params: msgspec.Raw) -> object:
        return "ours"

    steps = (ASK, s.ask(1, "m"), s.expect_answer(1), s.report(), s.reply("theirs", to="test/ask"))
    async with talk(tmp_path, *steps, on_request=answer) as peer:
        assert await peer.ask() == "theirs"
        assert [(m["id"], m.get("result")) for m in await peer.report()] == [(1, None), (1, "ours")]


async def test_lone_surrogates_are_taken_anywhere(tmp_path: Path) -> None:
    steps = (
        s.notify("test/note", params={"text": "a\ud800"}),
        ASK,
        s.reply({"\udc00": "b\udfff"}),
        ASK,
        s.reply_error(1, "c\ud800", {"d": "\ud801"}),
    )
    async with talk(tmp_path, *steps) as peer:
        assert await peer.ask() == {"\udc00": "b\udfff"}
        assert decode_plain((await peer.heard("test/note"))[0]) == {"text": "a\ud800"}
        with pytest.raises(ResponseError) as caught:
            await peer.ask()
        assert str(caught.value).encode("utf-8").endswith(b"c\xef\xbf\xbd")


async def test_nan_and_huge_numbers_are_taken(tmp_path: Path) -> None:
    async with talk(
        tmp_path, ASK, s.reply_text('{"jsonrpc":"2.0","id":$ID,"result":[NaN,1180591620717411303424]}')
    ) as peer:
        result = await peer.ask()
        assert isinstance(result, list)
        assert math.isnan(result[0])
        assert result[1] == 2**70


async def test_an_id_written_as_a_float_is_still_ours(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.reply_text('{"id":$ID.0,"result":5}')) as peer:
        assert await peer.ask() == 5


async def test_answers_nobody_asked_for_are_ignored(tmp_path: Path) -> None:
    strays = [
        s.framed(body)
        for body in (
            b'{"id":99,"result":1}',
            b'{"id":"x","result":1}',
            b'{"id":null,"error":{}}',
            b'{"result":1}',
            b"{}",
        )
    ]
    async with talk(tmp_path, *strays, ASK, s.reply(5), *strays, ASK, s.reply(6)) as peer:
        assert [await peer.ask(), await peer.ask()] == [5, 6]


async def test_a_message_byte_by_byte_is_a_message(tmp_path: Path) -> None:
    async with talk(tmp_path, s.byte_by_byte(), s.notify("test/note", params="é"), ASK, s.reply("𝄞")) as peer:
        assert await peer.ask() == "𝄞"
        assert len(await peer.heard("test/note")) == 1


async def test_big_messages_pass_both_ways(tmp_path: Path) -> None:
    text = "x𝄞" * 1_000_000
    async with talk(tmp_path, ASK, s.echo()) as peer:
        assert await peer.ask(params={"text": text}) == {"text": text}


async def test_a_message_over_the_limit_ends_the_channel(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.reply("x" * 2000), max_body_bytes=1000) as peer:
        with pytest.raises(ServerGone, match="limit is 1000"):
            await peer.ask()


async def test_an_end_inside_a_message_says_so(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.raw(b'Content-Length: 100\r\n\r\n{"id"'), s.exit_with(0)) as peer:
        with pytest.raises(ServerGone, match="inside a message"):
            await peer.ask()


# --- callers that stop waiting ----------------------------------------------------------------------------


def cancels(messages: list[dict[str, object]]) -> list[object]:
    return [message["params"] for message in messages if message.get("method") == "$/cancelRequest"]


async def test_a_cancelled_request_is_called_off_and_leaves_nothing(tmp_path: Path) -> None:
    steps = (ASK, s.notify("test/asked"), s.expect("$/cancelRequest"), s.report(), ASK, s.reply(6))
    async with talk(tmp_path, *steps) as peer:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.ask)
            await peer.heard("test/asked")
            tasks.cancel_scope.cancel()
        assert peer.connection.pending_count == 0
        messages = await peer.report()
        assert cancels(messages) == [{"id": messages[0]["id"]}]
        assert await peer.ask() == 6


async def test_a_request_over_its_bound_is_called_off_and_leaves_nothing(tmp_path: Path) -> None:
    steps = (ASK, s.expect("$/cancelRequest"), s.report(), ASK, s.reply(6))
    async with talk(tmp_path, *steps) as peer:
        with pytest.raises(RequestTimedOut) as caught:
            await peer.ask(seconds=0.05)
        assert (caught.value.method, caught.value.seconds) == ("test/ask", 0.05)
        assert peer.connection.pending_count == 0
        assert len(cancels(await peer.report())) == 1
        assert await peer.ask() == 6


async def test_a_late_answer_is_ignored(tmp_path: Path) -> None:
    steps = (ASK, s.expect("$/cancelRequest"), s.reply("late", to="test/ask"), ASK, s.reply(6))
    async with talk(tmp_path, *steps) as peer:
        with pytest.raises(RequestTimedOut):
            await peer.ask(seconds=0.05)
        assert await peer.ask() == 6


async def test_a_request_that_never_left_is_taken_back_and_not_called_off(tmp_path: Path) -> None:
    async with talk(tmp_path, s.notify("test/ready"), s.wedge()) as peer:
        await peer.heard("test/ready")
        await fill(peer)
        with pytest.raises(RequestTimedOut):
            await peer.ask(seconds=0.05)
        assert (peer.connection.pending_count, len(peer.connection._outbox)) == (0, 0)
        assert not any(b"cancelRequest" in body for _, body in peer.wire)


async def stuff(peer: Talk) -> None:
    """Send until that fails."""
    while True:
        await peer.connection.notify("test/stuff", "x" * 50_000)


async def fill(peer: Talk) -> None:
    """Send to a peer that does not read, until nothing more goes out."""
    with contextlib.suppress(RequestTimedOut):
        while True:
            await peer.connection.notify("test/stuff", "x" * 50_000, timeout=0.2)


async def test_sending_waits_for_a_peer_that_does_not_read(tmp_path: Path) -> None:
    async with talk(tmp_path, s.notify("test/ready"), s.wedge()) as peer:
        await peer.heard("test/ready")
        sent = 0
        with anyio.move_on_after(0.5) as scope:
            while True:
                await peer.connection.notify("test/stuff", "x" * 50_000)
                sent += 1
        assert scope.cancelled_caught
        assert sent < 40  # some pipe buffers, not all that was offered
        assert len(peer.connection._outbox) == 0


async def test_a_notification_nobody_takes_ends_by_its_bound(tmp_path: Path) -> None:
    async with talk(tmp_path, s.notify("test/ready"), s.wedge()) as peer:
        await peer.heard("test/ready")
        await fill(peer)
        assert len(peer.connection._outbox) == 0


async def test_waiting_senders_fail_when_the_channel_ends(tmp_path: Path) -> None:
    failures: list[ServerGone] = []

    async def stuff_until_it_fails() -> None:
        try:
            await stuff(peer)
        except ServerGone as gone:
            failures.append(gone)

    async with talk(tmp_path, s.notify("test/ready"), s.wedge()) as peer:
        await peer.heard("test/ready")
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stuff_until_it_fails)
                tasks.start_soon(stuff_until_it_fails)
                with pytest.raises(RequestTimedOut):
                    await peer.ask(seconds=0.2)
                peer.process.kill()
        assert len(failures) == 2


async def test_the_frame_of_a_cancelled_sender_is_whole(tmp_path: Path) -> None:
    big = "y" * 500_000
    async with talk(tmp_path, s.expect("test/go"), s.report(), ASK, s.echo()) as peer:
        # Stopped, so that both are cancelled on their way, however fast the peer would read.
        os.kill(peer.process.pid, signal.SIGSTOP)
        with anyio.move_on_after(0.05):
            await peer.connection.notify("test/big", big)
        with anyio.move_on_after(0):
            await peer.connection.notify("test/never")
        os.kill(peer.process.pid, signal.SIGCONT)
        await peer.connection.notify("test/go")
        received = await peer.report()
        assert received[-1]["method"] == "test/go"
        assert [m["params"] for m in received[:-1]] in ([big], [])
        assert await peer.ask(params="still in step") == "still in step"


async def test_params_without_json_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.report(), s.reply(5)) as peer:
        with pytest.raises(ValueError, match="surrogates"):
            await peer.ask(params="\ud800")
        with pytest.raises(TypeError):
            await peer.connection.notify("test/note", object())
        assert peer.connection.pending_count == 0
        assert await peer.ask() == 5
        assert len(await peer.report()) == 1


async def test_params_are_left_out_when_none_are_given_and_null_when_null(tmp_path: Path) -> None:
    async with talk(tmp_path, s.expect("test/b"), s.report()) as peer:
        await peer.connection.notify("test/a")
        await peer.connection.notify("test/b", None)
        assert await peer.report() == [
            {"jsonrpc": "2.0", "method": "test/a"},
            {"jsonrpc": "2.0", "method": "test/b", "params": None},
        ]


async def test_many_callers_each_get_their_own_answer(tmp_path: Path) -> None:
    count = 100
    results: dict[int, object] = {}
    async with talk(tmp_path, *[step for _ in range(count) for step in (ASK, s.echo())]) as peer:

        async def one(i: int) -> None:
            results[i] = await peer.ask(params=i)

        async with anyio.create_task_group() as tasks:
            for i in range(count):
                tasks.start_soon(one, i)
    assert results == {i: i for i in range(count)}


async def test_every_waiter_fails_with_an_exception_of_its_own(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    async with talk(tmp_path, ASK, ASK, ASK, s.exit_with(1)) as peer:

        async def one() -> None:
            try:
                await peer.ask()
            except LanguageServerError as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(one)
    assert len({id(failure) for failure in failures}) == 3
    assert all(isinstance(failure, ServerGone) for failure in failures)


async def test_a_connection_that_is_cancelled_fails_its_waiters(tmp_path: Path) -> None:
    failures: list[ServerGone] = []
    async with streams(tmp_path) as (ours, _theirs), anyio.create_task_group() as tasks:
        connection = Connection(ours, ours, on_request=refuse, on_notification=ignore)

        async def one() -> None:
            try:
                await connection.request("test/ask", timeout=BOUND)
            except ServerGone as gone:
                failures.append(gone)

        async with anyio.create_task_group() as running:
            await running.start(connection.run)
            tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            assert connection.pending_count == 1
            running.cancel_scope.cancel()
        assert connection.ended is not None
    assert [gone.reason for gone in failures] == ["the connection was closed by us"]


# --- requests of the peer ---------------------------------------------------------------------------------


async def answers_to(
    folder: Path, handler: Callable[[str, msgspec.Raw], Awaitable[object]]
) -> dict[str, object]:
    """What the peer gets for one request that ``handler`` answers."""
    async with talk(
        folder, s.ask(1, "m", params={"a": 1}), s.expect_answer(1), s.report(), on_request=handler
    ) as peer:
        return (await peer.report())[0]


async def test_the_failure_of_a_handler_is_answered_without_its_text(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(method: str, params: msgspec.Raw) -> object:
        raise RuntimeError("a secret path")

    with caplog.at_level(logging.ERROR):
        answer = await answers_to(tmp_path, broken)
    assert member(answer["error"], "code") == -32603
    assert "secret" not in json.dumps(answer)
    assert "a secret path" in caplog.text


async def test_a_handler_may_answer_with_an_error_of_its_choice(tmp_path: Path) -> None:
    async def choosy(method: str, params: msgspec.Raw) -> object:
        raise ResponseError(method, -32602, "wrong params", {"why": 1})

    answer = await answers_to(tmp_path, choosy)
    assert answer["error"] == {"code": -32602, "message": "wrong params", "data": {"why": 1}}


async def test_a_result_without_json_is_answered_as_our_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def odd(method: str, params: msgspec.Raw) -> object:
        return {"text": "\ud800"}

    answer = await answers_to(tmp_path, odd)
    assert member(answer["error"], "code") == -32603
    assert "no JSON" in caplog.text


async def test_a_raw_result_goes_back_byte_for_byte(tmp_path: Path) -> None:
    async def same(method: str, params: msgspec.Raw) -> object:
        return params

    answer = await answers_to(tmp_path, same)
    assert answer["result"] == {"a": 1}


async def test_the_failure_of_a_notification_handler_does_not_end_the_channel(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(method: str, params: msgspec.Raw) -> None:
        raise RuntimeError("a mistake of ours")

    async with talk(tmp_path, s.notify("test/note"), ASK, s.reply(5), on_notification=broken) as peer:
        assert await peer.ask() == 5
    assert "a mistake of ours" in caplog.text


async def test_a_handler_begins_before_the_next_message_is_looked_at(tmp_path: Path) -> None:
    order: list[str] = []

    async def create(method: str, params: msgspec.Raw) -> object:
        order.append(method)
        return None

    steps = [
        step
        for i in range(20)
        for step in (s.ask(i, "window/workDoneProgress/create"), s.notify("$/progress", params={"token": i}))
    ]
    async with talk(
        tmp_path, *steps, on_request=create, on_notification=lambda method, _: order.append(method)
    ) as peer:
        await peer.heard("$/progress", 20)
    assert order == ["window/workDoneProgress/create", "$/progress"] * 20


async def test_a_slow_handler_holds_up_nothing_else(tmp_path: Path) -> None:
    release = anyio.Event()

    async def slow_once(method: str, params: msgspec.Raw) -> object:
        if method == "custom/slow":
            await release.wait()
        return method

    steps = (
        s.ask(1, "custom/slow"),
        s.ask(2, "custom/fast"),
        s.expect_answer(2),
        ASK,
        s.reply(5),
        s.expect_answer(1),
        s.report(),
    )
    async with talk(tmp_path, *steps, on_request=slow_once) as peer:
        assert await peer.ask() == 5
        release.set()
        assert [m["id"] for m in await peer.report() if "method" not in m] == [2, 1]


async def test_a_request_of_the_peer_that_it_cancels_is_answered_as_cancelled(tmp_path: Path) -> None:
    started = anyio.Event()

    async def endless(method: str, params: msgspec.Raw) -> object:
        started.set()
        await anyio.sleep_forever()
        return None

    steps = (
        s.ask("a-1", "custom/endless"),
        s.notify("$/cancelRequest", params={"id": "unknown"}),
        s.notify("$/cancelRequest", params=None),
        s.notify("$/cancelRequest", params={"id": "a-1"}),
        s.expect_answer("a-1"),
        s.report(),
    )
    async with talk(tmp_path, *steps, on_request=endless) as peer:
        (answer,) = await peer.report()
        assert member(answer["error"], "code") == -32800
        assert started.is_set()
        assert peer.connection.answering_count == 0
        assert peer.notifications[0][0] == "test/received"


async def test_two_requests_of_the_peer_under_one_id_are_both_answered(tmp_path: Path) -> None:
    async def answer(method: str, params: msgspec.Raw) -> object:
        await anyio.lowlevel.checkpoint()
        return method

    steps = (s.ask(1, "a"), s.ask(1, "b"), s.expect_answer(1), s.expect_answer(1), s.report())
    async with talk(tmp_path, *steps, on_request=answer) as peer:
        assert [message["result"] for message in await peer.report()] == ["a", "b"]
        assert peer.connection.answering_count == 0


async def test_a_peer_that_asks_without_end_and_takes_no_answers_loses_the_channel(tmp_path: Path) -> None:
    asked = b'{"id":1,"method":"m"}'
    flood = b"".join(
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        for body in (asked.replace(b"1", b"%d" % i, 1) for i in range(MAX_UNANSWERED + 10))
    )

    async def endless(method: str, params: msgspec.Raw) -> object:
        await anyio.sleep_forever()
        return None

    async with talk(tmp_path, s.raw(flood), s.wedge(), on_request=endless) as peer:
        assert "takes no answers" in (await peer.end()).reason
        assert peer.connection.answering_count == 0


# --- the whole ---------------------------------------------------------------------------------------------


async def test_the_wire_is_shown_with_arrows_when_asked_for(tmp_path: Path) -> None:
    async with talk(tmp_path, ASK, s.reply(5)) as peer:
        await peer.ask()
        assert [(arrow, json.loads(body)) for arrow, body in peer.wire] == [
            ("->", {"jsonrpc": "2.0", "id": 1, "method": "test/ask", "params": None}),
            ("<-", {"jsonrpc": "2.0", "id": 1, "result": 5}),
        ]


def ignore(_method: str, _params: msgspec.Raw) -> None:
    """Takes notice of nothing."""


@asynccontextmanager
async def streams(folder: Path) -> AsyncGenerator[tuple[ByteStream, ByteStream], None]:
    """Two ends of one channel of the system."""
    async with await anyio.create_unix_listener(folder / "s") as listener:
        one = await anyio.connect_unix(folder / "s")
        accepted: list[ByteStream] = []

        async def take(stream: ByteStream) -> None:
            accepted.append(stream)
            arrived.set()
            await leave.wait()

        arrived, leave = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, take)
            await arrived.wait()
            try:
                yield one, accepted[0]
            finally:
                leave.set()
                with anyio.CancelScope(shield=True):
                    await one.aclose()
                    await accepted[0].aclose()
                tasks.cancel_scope.cancel()


async def test_two_connections_talk_to_each_other_as_client_and_server(tmp_path: Path) -> None:
    async def ask_back(method: str, params: msgspec.Raw) -> object:
        return await server.request("client/name", timeout=BOUND)

    async def name(method: str, params: msgspec.Raw) -> object:
        return "a client"

    async with streams(tmp_path) as (client_end, server_end), anyio.create_task_group() as tasks:
        client = Connection(client_end, client_end, on_request=name, on_notification=ignore)
        server = Connection(server_end, server_end, on_request=ask_back, on_notification=ignore)
        await tasks.start(client.run)
        await tasks.start(server.run)
        assert bytes(await client.request("server/greeting", timeout=BOUND)) == b'"a client"'
        await client_end.aclose()
        with anyio.fail_after(BOUND):
            await server.wait_ended()
            await client.wait_ended()


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the recorded conversations are not here")
@pytest.mark.parametrize("name", ["01-initialize-load", "roslyn-dialect-two-projects"])
async def test_a_recorded_conversation_can_be_played_back(tmp_path: Path, name: str) -> None:
    recording = [
        json.loads(line)
        for line in (TRANSCRIPTS / f"{name}.jsonl")
        .read_text(encoding="utf-8")
        .replace("$ROOT", "/work")
        .splitlines()
    ]
    asked = [line["msg"] for line in recording if line["dir"] == "->" and "method" in line["msg"]]
    answered = {
        line["msg"]["id"]: line["msg"]
        for line in recording
        if line["dir"] == "<-" and "method" not in line["msg"]
    }

    async def configuration(method: str, params: msgspec.Raw) -> object:
        return None

    answers: dict[object, object] = {}

    async with talk(
        tmp_path, s.play(TRANSCRIPTS / f"{name}.jsonl", ROOT="/work"), on_request=configuration
    ) as peer:

        async def ask(message: dict[str, object]) -> None:
            try:
                answers[message["id"]] = await peer.ask(str(message["method"]), message.get("params"))
            except ResponseError as error:
                answers[message["id"]] = error.code

        async with anyio.create_task_group() as tasks:
            for message in asked:
                if "id" in message:
                    tasks.start_soon(ask, message)
                    await anyio.lowlevel.checkpoint()  # it is sent before what comes next
                else:
                    await peer.connection.notify(message["method"], message.get("params"))
        told = [line["msg"] for line in recording if line["dir"] == "<-" and "id" not in line["msg"]]
        assert [method for method, _ in peer.notifications] == [message["method"] for message in told]
    assert answers == {
        request_id: message["error"]["code"] if "error" in message else message.get("result")
        for request_id, message in answered.items()
    }


async def test_nothing_is_left_after_many_requests(tmp_path: Path) -> None:
    before = psutil.Process().num_fds()
    async with talk(tmp_path, *[step for _ in range(200) for step in (ASK, s.echo())]) as peer:
        for i in range(200):
            assert await peer.ask(params=i) == i
        assert (peer.connection.pending_count, len(peer.connection._outbox)) == (0, 0)
    assert psutil.Process().num_fds() <= before
