"""Each odd line gets the refusal it deserves; each good one passes."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from bridge.frontends.jsonrpc import Refusal, encode, read_line, scrub

CALL = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%s}'

REFUSED = {
    "no JSON": (b"hello", -32700, None),
    "half an object": (b'{"jsonrpc":"2.0","id":1', -32700, None),
    "two values": (b"{} {}", -32700, None),
    "a byte order mark": (b"\xef\xbb\xbf{}", -32700, None),
    "no UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
    "an overlong encoding": (b'{"jsonrpc":"2.0","id":1,"method":"\xc0\xaf"}', -32700, None),
    "a surrogate in UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}', -32700, None),
    "not a number": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700, None),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
    "an empty batch": (b"[]", -32600, None),
    "a number": (b"5", -32600, None),
    "a string": (b'"ping"', -32600, None),
    "null": (b"null", -32600, None),
    "an empty object": (b"{}", -32600, None),
    "no version": (b'{"id":1,"method":"ping"}', -32600, 1),
    "the old version": (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', -32600, "a"),
    "no method": (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
    "a method that is no string": (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
    "id null": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    "id 1.5": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    "id true": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    "id an array": (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
    "params an array": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32602, 1),
    "a call without a name": ((CALL % '{"arguments":{}}').encode(), -32602, 7),
    "a call of a number": ((CALL % '{"name":5}').encode(), -32602, 7),
    "a call with a list of arguments": ((CALL % '{"name":"a","arguments":[1]}').encode(), -32602, 7),
    "a lone surrogate in a value": ((CALL % r'{"name":"a","arguments":{"x":"\ud83d"}}').encode(), -32602, 7),
    "a lone low surrogate": ((CALL % r'{"name":"a","arguments":{"x":"\ude00"}}').encode(), -32602, 7),
    "a reversed pair": ((CALL % r'{"name":"a","arguments":{"x":"\ude00\ud83d"}}').encode(), -32602, 7),
    "a lone surrogate in a key": ((CALL % r'{"name":"a","arguments":{"\ud83d":1}}').encode(), -32602, 7),
    "a lone surrogate in the tool's name": ((CALL % r'{"name":"\ud83d"}').encode(), -32602, 7),
    "a lone surrogate in the id": (
        rb'{"jsonrpc":"2.0","id":"\ud83d","method":"ping"}',
        -32600,
        None,
    ),
    "a lone surrogate in the method": (rb'{"jsonrpc":"2.0","id":3,"method":"p\ud83d"}', -32600, 3),
    "nesting too deep for the fast parser": (
        (CALL % ('{"name":"a","arguments":{"x":' + "[" * 300 + "]" * 300 + "}}")).encode(),
        -32600,
        7,
    ),
    "nesting too deep for any parser": (b"[" * 1_000_000, -32700, None),
    "a number too long": (b'{"jsonrpc":"2.0","id":' + b"1" * 5000 + b',"method":"ping"}', -32700, None),
    "an answer without a result": (b'{"jsonrpc":"2.0","id":1,"error":5}', -32600, None),
}


@pytest.mark.parametrize(("line", "code", "request_id"), REFUSED.values(), ids=REFUSED.keys())
def test_an_odd_line_is_refused_with_the_code_and_id_it_deserves(
    line: bytes, code: int, request_id: int | str | None
) -> None:
    refusal = read_line(line)
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.id) == (code, request_id)
    wire = json.loads(encode(refusal.to_message()))
    assert wire == {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": refusal.message}}


PASSED: Mapping[bytes, JSONRPCMessage] = {
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}': JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"),
    b' {"jsonrpc":"2.0","id":"x","method":"ping","params":{},"extra":1} ': JSONRPCRequest(
        jsonrpc="2.0", id="x", method="ping", params={}
    ),
    b'{"jsonrpc":"2.0","id":0,"method":"ping","params":null}': JSONRPCRequest(
        jsonrpc="2.0", id=0, method="ping"
    ),
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}': JSONRPCNotification(
        jsonrpc="2.0", method="notifications/initialized"
    ),
    b'{"jsonrpc":"2.0","id":1,"result":{}}': JSONRPCResponse(jsonrpc="2.0", id=1, result={}),
    (CALL % '{"name":"a","arguments":null}').encode(): JSONRPCRequest(
        jsonrpc="2.0", id=7, method="tools/call", params={"name": "a", "arguments": None}
    ),
    (CALL % r'{"name":"a","arguments":{"x":"\ud83d\ude00"}}').encode(): JSONRPCRequest(
        jsonrpc="2.0", id=7, method="tools/call", params={"name": "a", "arguments": {"x": "😀"}}
    ),
}


@pytest.mark.parametrize(("line", "message"), PASSED.items())
def test_a_good_line_becomes_its_message(line: bytes, message: JSONRPCMessage) -> None:
    assert read_line(line) == message


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=()), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers() | JSON,
        "method": st.sampled_from(["ping", "tools/call"]) | JSON,
        "params": st.fixed_dictionaries({"name": JSON, "arguments": JSON}) | JSON,
        "result": JSON,
        "error": JSON,
    },
)


@given(st.binary(max_size=60) | (ENVELOPES | JSON).map(lambda value: json.dumps(value).encode()))
def test_no_line_escapes_judgement_and_each_request_that_is_refused_can_be_answered(line: bytes) -> None:
    judged = read_line(line)
    if judged is None:
        assert not line.strip()
    elif isinstance(judged, Refusal):
        assert json.loads(encode(judged.to_message()))["error"]["code"] in (-32700, -32600, -32602)
    else:
        assert json.loads(encode(judged))["jsonrpc"] == "2.0"


@pytest.mark.parametrize("line", [b"", b" ", b"\t"])
def test_a_blank_line_means_nothing(line: bytes) -> None:
    assert read_line(line) is None


def test_a_notification_with_a_lone_surrogate_is_repaired_because_it_cannot_be_answered() -> None:
    line = rb'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"\ud83d"}}'
    message = read_line(line)
    assert isinstance(message, JSONRPCNotification)
    assert message.params == {"requestId": 5, "reason": "\ufffd"}


def answer_with(**result: object) -> JSONRPCResponse:
    return JSONRPCResponse(jsonrpc="2.0", id=1, result=result)


def test_half_a_pair_in_an_answer_is_scrubbed_and_the_rest_kept() -> None:
    body = encode(answer_with(text="a\ud83db", pair="\ud83d\ude00", number=1.5, nothing=None))
    assert json.loads(body)["result"] == {"text": "a\ufffdb", "pair": "😀", "number": 1.5, "nothing": None}


def test_an_answer_that_is_no_json_becomes_an_error_for_its_request() -> None:
    message = json.loads(encode(answer_with(thing=object())))
    assert message["id"] == 1
    assert message["error"]["code"] == -32603
    assert isinstance(encode(JSONRPCError(jsonrpc="2.0", id=None, error={"code": 1, "message": "m"})), bytes)  # type: ignore[arg-type]  # pydantic makes the ErrorData


def test_a_message_is_one_line_for_every_reader() -> None:
    text = "a\nb\r\u2028\u2029\x85“quoted”"
    body = encode(answer_with(text=text))
    assert body.count(b"\n") == 1
    assert body.endswith(b"\n")
    assert "\u2028" not in body.decode()
    assert "\u2029" not in body.decode()
    assert json.loads(body)["result"]["text"] == text


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("plain", "plain"),
        ("é😀", "é😀"),
        ("\ud83d", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("é\udc00", "é\ufffd"),
    ],
)
def test_scrub_replaces_only_what_is_no_unicode_text(text: str, scrubbed: str) -> None:
    assert scrub(text) == scrubbed
