"""A JSON-RPC connection over two byte streams: one reader, one writer, and nobody left waiting.

What holds, whatever the peer does:

- A request ends in exactly one way: a result, ResponseError, RequestTimedOut, ServerGone, or the caller's own
  cancellation.  In the last but one case all waiters learn of it at once, and later calls fail immediately.
- A caller that stops waiting (cancelled, or over its bound) leaves nothing behind: its entry is gone, and the
  peer is told by ``$/cancelRequest``, unless the request had not left yet; then it never leaves.  The late
  answer is ignored.
- Notifications are handled in the order they came, in the reader itself: handlers are plain functions that
  hand over and return.  A request of the peer is answered by a task of its own, which may take its time while
  other traffic goes on; it begins before the next message is looked at, so what it does before its first
  wait is done in order as well.
- Sending waits for the peer to take bytes.  The frame of a cancelled sender is sent whole or not at all.
- A body that is no JSON object means that the two ends disagree about where messages start.  Going on would
  drop answers in silence, so the channel ends.

The same object serves both ends: towards a language server, and towards an editor.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import ByteReceiveStream, ByteSendStream, TaskGroup, TaskStatus
from msgspec import UNSET, Raw, Struct, UnsetType

from lsp_client.errors import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    REQUEST_CANCELLED,
    LanguageServerError,
    LastWords,
    MethodNotFound,
    ProtocolViolation,
    RequestTimedOut,
    ResponseError,
    ServerGone,
)
from lsp_client.framing import MAX_BODY_BYTES, FrameDecoder
from lsp_client.messages import ABSENT, decode, decode_plain, encode, is_null, parse_tolerantly, raw_of
from lsp_client.outbox import Outbox, Outgoing
from lsp_client.requests import Outcome, PendingRequests

NOTIFY_TIMEOUT = 60.0
"""Seconds a notification may wait for the peer to take it.  A server that reads nothing for this long hangs."""

MAX_UNANSWERED = 5_000
"""Requests of the peer that may be open at a time.  Real bursts (registrations at start) are some thousand
and are answered as fast as they come; a peer over this takes no answers, and the channel ends."""

UNREAD_WAIT = 0.5
"""Seconds for reading what a peer said before it stopped taking input.  It lies in the pipe already; a peer that lives on
and says nothing more must not keep its callers."""

_CHUNK_BYTES = 256 * 1024

RequestHandler: TypeAlias = Callable[[str, Raw], Awaitable[object]]
NotificationHandler: TypeAlias = Callable[[str, Raw], None]
WireTap: TypeAlias = Callable[[str, bytes], None]
"""Called with ``"->"`` (sent) or ``"<-"`` (received) and the body of every message."""

logger = logging.getLogger(__name__)


class _Envelope(Struct):
    """What any message may have around its content.  Unknown members are skipped."""

    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


class _Call(Struct):
    """A request or, without an id, a notification of ours."""

    method: str
    id: int | UnsetType = UNSET
    params: object = UNSET
    jsonrpc: str = "2.0"


class _Result(Struct):
    id: Raw
    result: object
    jsonrpc: str = "2.0"


class _ErrorBody(Struct, omit_defaults=True):
    code: int
    message: str
    data: object = None


class _Error(Struct):
    id: Raw
    error: _ErrorBody
    jsonrpc: str = "2.0"


class _ErrorFields(Struct):
    """The error of an answer, read with patience: what is missing gets a value that says nothing."""

    code: int = 0
    message: str = ""
    data: Raw = ABSENT


class _Slot:
    """Where one caller waits for its outcome."""

    __slots__ = ("arrived", "outcome")

    def __init__(self) -> None:
        self.arrived = anyio.Event()
        self.outcome: Outcome | None = None

    def deliver(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.arrived.set()


async def _no_last_words() -> LastWords:
    return LastWords(None, "")


class Connection:
    """One channel to a peer.  ``run`` must run in a task for as long as the connection is used.

    ``on_request`` answers a request of the peer; what it returns is the result.  It may raise MethodNotFound
    (answered -32601) or ResponseError (answered with its code and message); any other exception is answered
    -32603 without its text, and logged.  ``on_notification`` must not wait.  Both get ``null`` for absent params.
    ``describe_end`` is asked, once, how the peer ended; it must be bounded.
    """

    def __init__(
        self,
        receive: ByteReceiveStream,
        send: ByteSendStream,
        *,
        on_request: RequestHandler,
        on_notification: NotificationHandler,
        describe_end: Callable[[], Awaitable[LastWords]] = _no_last_words,
        wire_tap: WireTap | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        self._receive = receive
        self._send = send
        self._on_request = on_request
        self._on_notification = on_notification
        self._describe_end = describe_end
        self._wire_tap = wire_tap
        self._decoder = FrameDecoder(max_body_bytes)
        self._outbox = Outbox()
        self._pending = PendingRequests()
        self._answering: dict[bytes, anyio.CancelScope] = {}  # by id, for the peer's cancel notices
        self._answering_count = 0  # not the length of the table: a peer may use an id twice
        self._gone: ServerGone | None = None
        self._gone_event = anyio.Event()

    @property
    def pending_count(self) -> int:
        """How many requests of ours wait for an answer."""
        return len(self._pending)

    @property
    def answering_count(self) -> int:
        """How many requests of the peer have not been answered yet."""
        return self._answering_count

    @property
    def ended(self) -> ServerGone | None:
        """How the channel ended; None while it lives."""
        return self._gone

    async def wait_ended(self) -> ServerGone:
        """Wait for the end of the channel, without a bound of its own."""
        await self._gone_event.wait()
        return self._end()

    # --- our side ---------------------------------------------------------------------------------------

    async def request(self, method: str, params: object = UNSET, *, timeout: float) -> Raw:
        """Ask, and return the raw JSON of the result (``null`` when the answer has none).

        ``timeout`` (seconds) bounds the whole of it, sending included.  Raises ResponseError, RequestTimedOut,
        ServerGone; ValueError or TypeError when ``params`` has no JSON (then nothing was sent).
        """
        slot = _Slot()
        request_id = self._pending.register(method, slot.deliver)
        try:
            outgoing = self._put(_Call(method, request_id, params))
        except BaseException:
            self._pending.cancel(request_id)
            raise
        try:
            with anyio.move_on_after(timeout):
                await slot.arrived.wait()
        finally:
            if self._pending.cancel(request_id):
                self._call_off(request_id, outgoing)
        match slot.outcome:
            case None:
                raise RequestTimedOut(method, timeout)
            case LanguageServerError() as error:
                raise error
            case result:
                return result

    async def notify(self, method: str, params: object = UNSET, *, timeout: float = NOTIFY_TIMEOUT) -> None:
        """Send a notification; returns when the peer's pipe has taken it.

        Raises ServerGone; RequestTimedOut when the pipe took nothing for ``timeout`` seconds, in which case
        the peer may or may not see the notification later; ValueError or TypeError as ``request`` does.
        """
        if self._gone is not None:
            raise self._gone.fresh()
        outgoing = self._put(_Call(method, params=params))
        try:
            with anyio.move_on_after(timeout):
                await outgoing.finished.wait()
        finally:
            if not outgoing.finished.is_set():
                self._outbox.withdraw(outgoing)
        if self._gone is not None:
            raise self._gone.fresh()
        if not outgoing.finished.is_set():
            raise RequestTimedOut(method, timeout)

    def _put(self, message: Struct) -> Outgoing:
        body = encode(message)
        if self._wire_tap is not None:
            self._wire_tap("->", body)
        return self._outbox.put(body)

    def _call_off(self, request_id: int, outgoing: Outgoing) -> None:
        """Nobody waits for this request any more: take it back, or tell the peer if it is too late for that."""
        if not self._outbox.withdraw(outgoing):
            self._put(_Call("$/cancelRequest", params={"id": request_id}))

    def _end(self) -> ServerGone:
        return ServerGone("the connection is closed") if self._gone is None else self._gone.fresh()

    # --- their side -------------------------------------------------------------------------------------

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Read and write until the channel ends, then fail every waiter with ServerGone and return."""
        reason = "the connection was closed by us"
        words = LastWords(None, "")
        try:
            async with anyio.create_task_group() as tasks:
                ends: list[str] = []
                tasks.start_soon(self._write, tasks, ends)
                tasks.start_soon(self._read, tasks, ends)
                task_status.started()
            reason = ends[0]
            words = await self._describe_end()
        finally:
            self._close(ServerGone(reason, words.exit_code, words.stderr_tail))

    def _close(self, gone: ServerGone) -> None:
        self._gone = gone
        self._pending.fail_all(gone)
        self._outbox.close()
        self._gone_event.set()

    async def _write(self, tasks: TaskGroup, ends: list[str]) -> None:
        try:
            await self._outbox.run(self._send)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            ends.append("it takes no more input")
            # A peer that has ended may have answered before: what lies in the pipe is read first.  The reader's end of
            # the pipe ends this wait.
            with anyio.move_on_after(UNREAD_WAIT):
                await anyio.sleep_forever()
            tasks.cancel_scope.cancel()

    async def _read(self, tasks: TaskGroup, ends: list[str]) -> None:
        ends.append(await self._read_until_end(tasks))
        tasks.cancel_scope.cancel()

    async def _read_until_end(self, tasks: TaskGroup) -> str:
        """Handle messages as they come; returns why there are no more."""
        try:
            while True:
                for body in self._decoder.feed(await self._receive.receive(_CHUNK_BYTES)):
                    await self._take(body, tasks)
        except anyio.EndOfStream:
            pass
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            return f"its output cannot be read ({type(error).__name__})"
        except ProtocolViolation as error:
            return f"its output is no LSP: {error.detail}"
        try:
            self._decoder.feed_eof()
        except ProtocolViolation as error:
            return error.detail
        return "it closed its output"

    async def _take(self, body: bytes, tasks: TaskGroup) -> None:
        """One message.  Raises ProtocolViolation when it is no JSON object."""
        if self._wire_tap is not None:
            self._wire_tap("<-", body)
        envelope = _open_envelope(body)
        if envelope.method is UNSET:
            self._take_answer(envelope)
        elif envelope.id is UNSET:
            self._take_notification(envelope.method, envelope.params)
        elif self._answering_count >= MAX_UNANSWERED:
            raise ProtocolViolation(f"it has {MAX_UNANSWERED} requests open and takes no answers")
        else:
            scope = anyio.CancelScope()
            self._answering[_id_key(envelope.id)] = scope
            self._answering_count += 1
            tasks.start_soon(self._answer, envelope.id, envelope.method, envelope.params, scope)
            await anyio.lowlevel.checkpoint()  # lets the handler begin before the next message is looked at

    def _take_answer(self, envelope: _Envelope) -> None:
        request_id = None if envelope.id is UNSET else _own_id(envelope.id)
        method = None if request_id is None else self._pending.method_of(request_id)
        if request_id is None or method is None:
            logger.debug("ignored an answer that nobody waits for")
        elif is_null(envelope.error):
            self._pending.complete(request_id, envelope.result)
        else:
            self._pending.fail(request_id, _response_error(method, envelope.error))

    def _take_notification(self, method: str, params: Raw) -> None:
        if method == "$/cancelRequest":
            self._cancel_answer(params)
            return
        try:
            self._on_notification(method, params)
        except Exception:  # the edge to the handler: its mistake must not end the channel
            logger.exception("the handler of the notification %s failed", method)

    def _cancel_answer(self, params: Raw) -> None:
        match decode_plain(params):
            case {"id": int() | str() as request_id}:
                scope = self._answering.get(encode(request_id))
                if scope is not None:
                    scope.cancel()
            case _:
                logger.debug("ignored a cancel notice without an id")

    async def _answer(self, request_id: Raw, method: str, params: Raw, scope: anyio.CancelScope) -> None:
        """Answer one request of the peer, whatever becomes of the handler."""
        try:
            message: Struct = _Error(request_id, _ErrorBody(REQUEST_CANCELLED, "Request cancelled"))
            with scope:
                message = await self._outcome(request_id, method, params)
            await self._send_answer(message, request_id).finished.wait()
        finally:
            self._answering_count -= 1
            if self._answering.get(_id_key(request_id)) is scope:
                del self._answering[_id_key(request_id)]

    async def _outcome(self, request_id: Raw, method: str, params: Raw) -> Struct:
        try:
            return _Result(request_id, await self._on_request(method, params))
        except MethodNotFound:
            return _Error(request_id, _ErrorBody(METHOD_NOT_FOUND, f"Method not found: {method}"))
        except ResponseError as error:
            return _Error(request_id, _ErrorBody(error.code, error.message, error.data))
        except Exception:  # the edge to the handler: the peer is owed an answer, we a traceback
            logger.exception("the handler of the request %s failed", method)
            return _Error(request_id, _ErrorBody(INTERNAL_ERROR, "Internal error"))

    def _send_answer(self, message: Struct, request_id: Raw) -> Outgoing:
        try:
            return self._put(message)
        except (ValueError, TypeError, OverflowError):
            logger.exception("an answer of ours has no JSON")
            return self._put(_Error(request_id, _ErrorBody(INTERNAL_ERROR, "Internal error")))


def _open_envelope(body: bytes) -> _Envelope:
    """The parts of a message.  Raises ProtocolViolation when the body is no JSON object."""
    try:
        return _ENVELOPES.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    # The slow way: what msgspec refuses, JSON in the field has all the same (lone surrogates, NaN).
    parsed = parse_tolerantly(body)
    if not isinstance(parsed, dict):
        raise ProtocolViolation("a message is no JSON object")
    method = parsed.get("method", UNSET)
    if not isinstance(method, str | UnsetType):
        raise ProtocolViolation("the method of a message is no string")
    parts = {name: raw_of(parsed[name]) for name in ("id", "params", "result", "error") if name in parsed}
    return _Envelope(method=method, **parts)


def _id_key(request_id: Raw) -> bytes:
    """An id of the peer's, as the key under which its own cancel notice will name it."""
    return bytes(request_id).strip()


def _own_id(request_id: Raw) -> int | None:
    """The id in an answer, when it may be one of ours: those are integers (``1.0`` is one to JSON)."""
    match decode_plain(request_id):
        case int() as number:
            return number
        case float() as number if number.is_integer():
            return int(number)
        case _:
            return None


def _response_error(method: str, raw: Raw) -> ResponseError:
    try:
        fields = decode(raw, _ErrorFields)
        data = decode_plain(fields.data)
    except ProtocolViolation:
        return ResponseError(method, 0, bytes(raw).decode("utf-8", errors="replace"))
    return ResponseError(method, fields.code, fields.message, data)


_ENVELOPES = msgspec.json.Decoder(_Envelope)
