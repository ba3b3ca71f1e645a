"""pygls as a JSON-RPC engine, taught four things that this dialect needs.

1. Parameters stay the JSON that came (as in Roslyn, a member more or less is no fault), and are read by ``messages``.
   pygls would turn them into typed objects at *every* nesting level and drop what does not fit.
2. A notification may be sent without ``params``: ``workspace/projectInitializationComplete`` has none.
3. Errors get Roslyn's codes: -32602 for parameters that do not fit, -32000 for a failure of ours, and the message
   "Missing handler" for a method that does not exist.
4. After ``shutdown`` requests get an error instead of silence.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import cattrs
import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.protocol import JsonRPCProtocol
from pygls.protocol.json_rpc import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
)
from pygls.server import JsonRPCServer

type_of_params = TypeVar("type_of_params")

Json = dict[str, object]

_Incoming = JsonRPCNotification | JsonRPCRequestMessage | JsonRPCResponseMessage | types.ResponseErrorMessage

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INVOCATION_FAILED = -32000
CONTENT_MODIFIED = -32801
REQUEST_FAILED = -30099  # Roslyn's "could not do it, and the user need not be bothered"

_CLIENT_ANSWER_SECONDS = 30.0  # a client that has not answered a small request by then never will

_log = logging.getLogger(__name__)


class Protocol(JsonRPCProtocol):
    """The protocol object of one connection."""

    shutting_down = False

    def structure_message(self, data: Json) -> object:
        """Leave JSON alone: this hook sees every object at every depth."""
        return data

    def handle_message(self, message: object) -> None:
        """Sort a message by its members and hand it on with its parameters untouched."""
        if not isinstance(message, dict):
            raise JsonRpcException("a message must be an object", code=INVALID_PARAMS)
        typed = _typed(message)
        if isinstance(typed, JsonRPCRequestMessage) and self._refuse(typed):
            return
        if isinstance(typed, types.ResponseErrorMessage):
            self._handle_response(typed.id or "", error=typed.error)
            return
        if isinstance(typed, JsonRPCResponseMessage):
            self._result_types.pop(typed.id, None)
        super().handle_message(typed)

    def notify_bare(self, method: str) -> None:
        """Send a notification that has no ``params`` member at all."""
        self._send_data({"jsonrpc": self.VERSION, "method": method})

    async def ask(self, method: str, params: Json) -> object:
        """Ask the client and wait for its answer. Raises JsonRpcException (its error answer) and TimeoutError."""
        return await asyncio.wait_for(self.send_request_async(method, params), _CLIENT_ANSWER_SECONDS)

    def _refuse(self, request: JsonRPCRequestMessage) -> bool:
        """Answer a request that no handler may or can take; returns whether that was so."""
        if self.shutting_down:
            self._answer_error(request, INVOCATION_FAILED, "Server was requested to shut down.")
        elif request.method not in self.fm.builtin_features:
            text = f"Missing handler for {request.method} and language C#"
            self._answer_error(request, METHOD_NOT_FOUND, text)
        else:
            return False
        return True

    def _answer_error(self, request: JsonRPCRequestMessage, code: int, text: str) -> None:
        self._send_response(request.id, error=types.ResponseError(code=code, message=text))


def _typed(message: Json) -> _Incoming:
    """The message as the kind that its members say. Extra members of the envelope are ignored."""
    version, ident = str(message.get("jsonrpc")), message.get("id")
    if "method" in message:
        method, params = str(message["method"]), message.get("params")
        if method == types.CANCEL_REQUEST and isinstance(params, dict):
            params = types.CancelParams(id=params.get("id", ""))
        if ident is None:
            return JsonRPCNotification(method=method, jsonrpc=version, params=params)
        return JsonRPCRequestMessage(id=_identifier(ident), method=method, jsonrpc=version, params=params)
    error = message.get("error")
    if isinstance(error, dict):
        code, text = error.get("code"), str(error.get("message", ""))
        failure = types.ResponseError(code=code if isinstance(code, int) else 0, message=text)
        return types.ResponseErrorMessage(error=failure, id=_identifier(ident))
    return JsonRPCResponseMessage(id=_identifier(ident), jsonrpc=version, result=message.get("result"))


def _identifier(ident: object) -> int | str:
    return ident if isinstance(ident, int) else str(ident)


class Engine(JsonRPCServer):
    """A JSON-RPC server whose handlers take typed parameters and return plain JSON."""

    protocol: Protocol

    def __init__(self) -> None:
        super().__init__(Protocol, cattrs.Converter)

    def on(
        self, method: str, params: type[type_of_params], handler: Callable[[type_of_params, Json], object]
    ) -> None:
        """Answer ``method`` by ``handler(params, raw params)``, at once and in the order of arrival."""

        def handle(raw: object) -> object:
            with _Mishaps(method):
                members = raw if isinstance(raw, dict) else {}
                return handler(msgspec.convert(members, params, strict=False), members)

        self.protocol.fm.add_builtin_feature(method, handle)

    def on_slow(
        self,
        method: str,
        params: type[type_of_params],
        handler: Callable[[type_of_params, Json], Awaitable[object]],
    ) -> None:
        """Like ``on`` for a handler that waits; others go on meanwhile, and it can be cancelled."""

        async def handle(raw: object) -> object:
            with _Mishaps(method):
                members = raw if isinstance(raw, dict) else {}
                return await handler(msgspec.convert(members, params, strict=False), members)

        self.protocol.fm.add_builtin_feature(method, handle)


class _Mishaps:
    """The one place where a handler's exception becomes an error answer."""

    def __init__(self, method: str) -> None:
        self._method = method

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, JsonRpcException) or not isinstance(error, Exception):
            return
        if isinstance(error, msgspec.ValidationError):
            raise JsonRpcException(f"{self._method}: {error}", code=INVALID_PARAMS) from error
        _log.error("%s failed", self._method, exc_info=error)
        raise JsonRpcException(f"{self._method}: {error}", code=INVOCATION_FAILED) from error
