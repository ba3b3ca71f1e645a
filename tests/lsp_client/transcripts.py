"""Recorded conversations with real servers, when they lie beside the project."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest

from tests.shared import NO_TRANSCRIPTS, TRANSCRIPTS

ROOT = "/work space"


@dataclass(frozen=True)
class Exchange:
    """A request of the client and the server's answer."""

    method: str
    params: dict[str, object]
    result: msgspec.Raw


def _messages(name: str) -> Iterator[tuple[str, dict[str, object]]]:
    path = TRANSCRIPTS / name
    if not path.is_file():
        pytest.skip(NO_TRANSCRIPTS)
    for line in path.read_text(encoding="utf-8").replace("$ROOT", ROOT).splitlines():
        entry = json.loads(line)
        if isinstance(entry.get("msg"), dict):
            yield entry["dir"], entry["msg"]


def exchanges(name: str, method: str) -> list[Exchange]:
    """The answered requests of one method, in order."""
    asked: dict[object, dict[str, object]] = {}
    found: list[Exchange] = []
    for direction, message in _messages(name):
        if direction == "->" and message.get("method") == method:
            asked[message.get("id")] = message
        elif (
            direction == "<-"
            and "method" not in message
            and message.get("id") in asked
            and "result" in message
        ):
            params = asked.pop(message["id"])["params"]
            assert isinstance(params, dict)
            found.append(Exchange(method, params, msgspec.Raw(json.dumps(message["result"]).encode())))
    assert found, f"{name} holds no {method}"
    return found


def said(name: str) -> list[tuple[str, msgspec.Raw]]:
    """The notifications of the server, in order."""
    return [
        (str(message["method"]), msgspec.Raw(json.dumps(message.get("params")).encode()))
        for direction, message in _messages(name)
        if direction == "<-" and "method" in message and "id" not in message
    ]


def sent(name: str) -> list[str]:
    """The methods of the client's notifications, in order."""
    return [
        str(message["method"])
        for direction, message in _messages(name)
        if direction == "->" and "method" in message and "id" not in message
    ]
