"""A raw MCP client for tests: bytes into a child's stdin, lines out of its stdout, every wait bounded."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

FAKE_BRIDGE = Path(__file__).with_name("fake_bridge.py")
WAIT_SECONDS = 30.0
"""The common bound of every wait: only a hang reaches it, a slow machine does not."""

MODERN_META: Mapping[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
ERAS = ("handshake", "modern")

Message = dict[str, object]


class Peer:
    """One child process that speaks MCP, and the two ends of its wire."""

    def __init__(
        self, command: Sequence[str], *, era: str = "handshake", environ: Mapping[str, str] | None = None
    ) -> None:
        self.era = era
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environ or {})},
        )
        self._ids = iter(range(1, 1_000_000))
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._errors = bytearray()
        self._said = threading.Condition()
        self._pumps = [
            threading.Thread(target=self._pump, daemon=True),
            threading.Thread(target=self._collect_errors, daemon=True),
        ]
        for pump in self._pumps:
            pump.start()

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait(WAIT_SECONDS)
        for pump in self._pumps:
            pump.join(WAIT_SECONDS)
        for stream in (self._stdin, self._stdout, self._stderr):
            try:
                stream.close()
            except BrokenPipeError:
                continue

    @property
    def _stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def _stderr(self) -> IO[bytes]:
        assert self.process.stderr is not None
        return self.process.stderr

    def _pump(self) -> None:
        for line in self._stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _collect_errors(self) -> None:
        while data := self._stderr.read1(65536):  # type: ignore[attr-defined]  # a BufferedReader, typed as IO
            with self._said:
                self._errors += data
                self._said.notify_all()

    @property
    def stderr(self) -> str:
        """What the child has said on stderr so far; complete once it has ended."""
        if self.process.poll() is not None:
            self._pumps[1].join(WAIT_SECONDS)
        return self._errors.decode(errors="replace")

    def send_bytes(self, data: bytes) -> None:
        self._stdin.write(data)
        self._stdin.flush()

    def send(self, message: object) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def receive_line(self) -> bytes | None:
        """The next line of the child, or ``None`` at the end of its output."""
        return self._lines.get(timeout=WAIT_SECONDS)

    def receive(self) -> Message:
        line = self.receive_line()
        assert line is not None, f"the child closed its output; stderr:\n{self.stderr}"
        message = json.loads(line)
        assert isinstance(message, dict)
        return message

    def rest(self) -> list[bytes]:
        """Everything until the child closes its output."""
        lines = []
        while (line := self.receive_line()) is not None:
            lines.append(line)
        return lines

    def start_request(self, method: str, params: Mapping[str, object] | None = None) -> int:
        """Send a request and return its id."""
        request_id = next(self._ids)
        sent = dict(params or {})
        if self.era == "modern":
            meta = sent.get("_meta")
            sent["_meta"] = {**MODERN_META, **(meta if isinstance(meta, dict) else {})}
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": sent})
        return request_id

    def request(self, method: str, params: Mapping[str, object] | None = None) -> Message:
        """Send a request and return its answer; no other message may come in between."""
        request_id = self.start_request(method, params)
        answer = self.receive()
        assert answer.get("id") == request_id, answer
        return answer

    def open(self) -> Peer:
        """Shake hands, in the era that has a handshake."""
        if self.era == "handshake":
            client = {"name": "test", "version": "1"}
            params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
            assert "result" in self.request("initialize", params)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def start_call(self, tool: str, _meta: Mapping[str, object] | None = None, **arguments: object) -> int:
        params: dict[str, object] = {"name": tool, "arguments": arguments}
        if _meta is not None:
            params["_meta"] = _meta
        return self.start_request("tools/call", params)

    def call(self, tool: str, **arguments: object) -> Message:
        """Call a tool and return the ``result`` member of its answer."""
        request_id = self.start_call(tool, None, **arguments)
        answer = self.receive()
        assert answer.get("id") == request_id, answer
        result = answer.get("result")
        assert isinstance(result, dict), answer
        return result

    def data(self, tool: str, **arguments: object) -> Message:
        """Call a tool that succeeds and return its data."""
        content = self.call(tool, **arguments)["structuredContent"]
        assert isinstance(content, dict)
        assert content["ok"] is True, content
        data = content["data"]
        assert isinstance(data, dict)
        return data

    def wait_end(self) -> int:
        """Wait for the child's end and return its exit code."""
        return self.process.wait(WAIT_SECONDS)

    def close_input(self) -> None:
        self._stdin.close()

    def stop_listening(self) -> None:
        """Close our end of the child's stdout."""
        # Not through the file object: the pump is inside its read and holds its lock.
        listener = self._stdout.fileno()
        elsewhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(elsewhere, listener)
        os.close(elsewhere)

    def wait_for_stderr(self, text: str) -> None:
        """Return once the child has said ``text`` on stderr."""
        with self._said:
            assert self._said.wait_for(lambda: text in self._errors.decode(errors="replace"), WAIT_SECONDS)


def fake_peer(*behaviours: str, era: str = "handshake", environ: Mapping[str, str] | None = None) -> Peer:
    """A peer of the fake bridge, not yet opened."""
    return Peer([sys.executable, str(FAKE_BRIDGE), *behaviours], era=era, environ=environ)
