"""One line in, one message or one refusal out: what the SDK would drop in silence is answered here.

The SDK's own stdio transport throws away a line that is no JSON, JSON that is no message, a batch, an ``id`` that is
``null``, a fraction or a boolean, and a call whose arguments carry half of a surrogate pair; whoever sent it waits
for ever.  ``read_line`` judges each line before the SDK sees it:

    no UTF-8, no JSON                                 -32700, id null
    a batch; no object; a wrong version; a bad id     -32600, with the id when it is one that may be echoed
    a request whose params cannot be right            -32602, with its id
    a lone surrogate in a request's params            -32602, with its id; elsewhere -32600
    a lone surrogate in a notification                repaired (U+FFFD) and passed on: a notification has no answer,
                                                      and a cancellation must not be lost over its reason's spelling
    a malformed answer to a request of ours           -32600, id null: its id is ours, an echo would hit a call of theirs

The other direction is ``encode``: a message becomes one line whatever its strings hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeGuard

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json

RequestId = int | str

_LONE_SURROGATE = "half of a surrogate pair (a lone \\uD800..\\uDFFF escape) is no Unicode text"
_TOO_DEEP = "the message is nested too deeply"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a line is not passed on; ``id`` is ``None`` where JSON-RPC answers ``null``."""

    code: int
    message: str
    id: RequestId | None = None

    def to_message(self) -> JSONRPCError:
        """The error that answers the line."""
        error = ErrorData(code=self.code, message=self.message)
        return JSONRPCError(jsonrpc="2.0", id=self.id, error=error)


def read_line(line: bytes) -> JSONRPCMessage | Refusal | None:
    """Judge one line without its line end; ``None`` for a blank one, which means nothing."""
    if not line.strip():
        return None
    try:
        value: object = from_json(line, allow_inf_nan=False)
    except ValueError:
        return _read_odd_line(line)
    return _read_value(value)


def _read_odd_line(line: bytes) -> JSONRPCMessage | Refusal:
    """The slow path: find out what the strict parser did not like."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return Refusal(PARSE_ERROR, f"Parse error: the line is no UTF-8 (byte {error.start})")
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant)
        odd_params = isinstance(value, dict) and _has_lone_surrogate(value.get("params"))
        odd = odd_params or _has_lone_surrogate(value)
        repaired: object = (
            json.loads(_without_lone_surrogates(json.dumps(value, ensure_ascii=False))) if odd else None
        )
    except json.JSONDecodeError as error:
        return Refusal(PARSE_ERROR, f"Parse error: the line is no JSON ({error.msg}, character {error.pos})")
    except RecursionError:
        return Refusal(PARSE_ERROR, f"Parse error: {_TOO_DEEP}")
    except ValueError as error:
        return Refusal(PARSE_ERROR, f"Parse error: {error}")
    if not odd:
        return Refusal(INVALID_REQUEST, f"Invalid request: {_TOO_DEEP}", _id_of(value))
    message = _read_value(repaired)
    if isinstance(message, JSONRPCRequest):
        # The id may itself have been repaired; then it is not the caller's any more and null is the honest echo.
        code, word = (INVALID_PARAMS, "params") if odd_params else (INVALID_REQUEST, "request")
        return Refusal(code, f"Invalid {word}: {_LONE_SURROGATE}", _id_of(value))
    return message


def _read_value(value: object) -> JSONRPCMessage | Refusal:
    if isinstance(value, list):
        return Refusal(
            INVALID_REQUEST, "Invalid request: batches are not part of MCP; send one message a line"
        )
    if not isinstance(value, dict):
        return Refusal(INVALID_REQUEST, "Invalid request: a message is a JSON object")
    if "method" not in value and ("result" in value or "error" in value):
        return _read_response(value)
    if "id" in value and not _is_id(value["id"]):
        return Refusal(INVALID_REQUEST, "Invalid request: 'id' must be a string or a whole number")
    request_id = _id_of(value)
    if value.get("jsonrpc") != "2.0":
        return Refusal(INVALID_REQUEST, "Invalid request: 'jsonrpc' must be \"2.0\"", request_id)
    method, params = value.get("method"), value.get("params")
    if not isinstance(method, str):
        return Refusal(INVALID_REQUEST, "Invalid request: 'method' must be a string", request_id)
    if params is not None and not isinstance(params, dict):
        return Refusal(INVALID_PARAMS, "Invalid params: 'params' must be an object", request_id)
    if request_id is None:
        return JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
    if method == "tools/call" and (problem := _problem_of_call(params or {})):
        return Refusal(INVALID_PARAMS, f"Invalid params: {problem}", request_id)
    return JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=params)


def _read_response(value: Mapping[str, object]) -> JSONRPCMessage | Refusal:
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        return Refusal(INVALID_REQUEST, "Invalid request: this answer is no JSON-RPC response")


def _problem_of_call(params: Mapping[str, object]) -> str | None:
    if not isinstance(params.get("name"), str):
        return "'name' must be the name of a tool"
    arguments = params.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        return "'arguments' must be an object"
    return None


def _is_id(value: object) -> TypeGuard[RequestId]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _id_of(value: object) -> RequestId | None:
    """The id that an answer may echo, if the message has one."""
    found = value.get("id") if isinstance(value, dict) else None
    return found if _is_id(found) and not _has_lone_surrogate(found) else None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _has_lone_surrogate(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _without_lone_surrogates(text: str) -> str:
    """Join the halves of pairs that stand side by side; put U+FFFD for each half that stands alone."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def scrub(text: str) -> str:
    """``text`` itself when it is Unicode text, else with U+FFFD for each lone surrogate."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _without_lone_surrogates(text)
    return text


def encode(message: JSONRPCMessage) -> bytes:
    """One message as one line with its line end.  Never raises: what cannot be written becomes an error for its id."""
    try:
        body = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except (PydanticSerializationError, UnicodeEncodeError, ValueError):
        body = _encode_odd(message)
    # Legal inside a JSON string, yet some readers split lines there; C# text holds them now and then.
    if b"\xe2\x80" in body:
        body = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return body + b"\n"


def _encode_odd(message: JSONRPCMessage) -> bytes:
    try:
        value = message.model_dump(by_alias=True, exclude_unset=True)
        return _without_lone_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False)).encode()
    except (PydanticSerializationError, TypeError, ValueError, RecursionError):
        found: object = getattr(message, "id", None)
        refusal = Refusal(
            INTERNAL_ERROR, "Internal error: the answer cannot be written as JSON", _id_of({"id": found})
        )
        return refusal.to_message().model_dump_json(by_alias=True, exclude_unset=True).encode()
