"""How long a client waits for us, against the least that this MCP SDK allows.

    python scripts/bench_startup.py [--runs N] [--calls N]

Two figures, each beside its floor from the same run:

- *start-up*: from spawning the process to the answer to ``initialize``;
- *a call*: the median round trip of ``server-status`` with minimal detail.

The floor is an empty low-level MCP stdio server of the same SDK (``EMPTY_SERVER`` below): one tool that does nothing.
Both are started in turn, so that a busy moment of the machine hits both. Exit code 1 when a figure is over its limit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

START_LIMIT = 1.4
"""The start-up may take this many times the floor."""
CALL_LIMIT = 2.0
"""A minimal ``server-status`` may take this many times the floor's empty tool."""

EMPTY_SERVER = """
import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

async def list_tools(context, params):
    return types.ListToolsResult(tools=[types.Tool(name="empty", input_schema={"type": "object"})])

async def call_tool(context, params):
    return types.CallToolResult(content=[types.TextContent(text="")])

server = Server("empty", version="0", on_list_tools=list_tools, on_call_tool=call_tool)

async def main():
    async with stdio_server() as (receive, send):
        await server.run(receive, send, server.create_initialization_options())

anyio.run(main)
"""
FLOOR = (sys.executable, "-c", EMPTY_SERVER)
BRIDGE = (sys.executable, "-m", "bridge", "mcp", "--server", "embedded")

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
EMPTY_CALL = {"name": "empty", "arguments": {}}
STATUS_CALL = {"name": "server-status", "arguments": {"detail": "Minimal"}}


@dataclass(frozen=True)
class Figures:
    """Medians in seconds."""

    floor_start: float
    bridge_start: float
    floor_call: float
    bridge_call: float

    @property
    def start_ratio(self) -> float:
        """Our start-up as a multiple of the floor's."""
        return self.bridge_start / self.floor_start

    @property
    def call_ratio(self) -> float:
        """Our call as a multiple of the floor's."""
        return self.bridge_call / self.floor_call


class Client:
    """A client that does as little as possible: it writes lines and reads lines."""

    def __init__(self, command: Sequence[str]) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.round_trip("initialize", INITIALIZE)
        self.start_seconds = time.perf_counter() - began
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def round_trip(self, method: str, params: object) -> float:
        """Send one request, wait for its answer, and return the seconds in between."""
        began = time.perf_counter()
        self._write({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = _pipe(self.process.stdout).readline()
        seconds = time.perf_counter() - began
        message = json.loads(answer or "null")
        if message is None or "result" not in message or message["result"].get("isError"):
            raise RuntimeError(f"{self.process.args!r} answered {method} with {answer[:500]!r}")
        return seconds

    def _write(self, message: object) -> None:
        stdin = _pipe(self.process.stdin)
        stdin.write(json.dumps(message).encode() + b"\n")
        stdin.flush()

    def close(self) -> None:
        """End the server and wait for it."""
        _pipe(self.process.stdin).close()
        self.process.wait()
        _pipe(self.process.stdout).close()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("the process was started without this pipe")
    return stream


def measure_start(runs: int) -> tuple[float, float]:
    """The median start-up of the floor and of the bridge over ``runs`` starts each, in turn."""
    seconds: dict[tuple[str, ...], list[float]] = {FLOOR: [], BRIDGE: []}
    for run in range(runs + 1):
        for command, taken in seconds.items():
            client = Client(command)
            client.close()
            if run:  # the first round only warms the disk's cache
                taken.append(client.start_seconds)
    return statistics.median(seconds[FLOOR]), statistics.median(seconds[BRIDGE])


def measure_calls(calls: int) -> tuple[float, float]:
    """The median round trip of the floor's empty tool and of our ``server-status``, in turn, after a warm-up."""
    floor, bridge = Client(FLOOR), Client(BRIDGE)
    try:
        taken: tuple[list[float], list[float]] = ([], [])
        for call in range(calls + 50):
            both = (floor.round_trip("tools/call", EMPTY_CALL), bridge.round_trip("tools/call", STATUS_CALL))
            if call >= 50:  # the first calls import and build what later ones reuse
                for seconds, into in zip(both, taken, strict=True):
                    into.append(seconds)
    finally:
        floor.close()
        bridge.close()
    return statistics.median(taken[0]), statistics.median(taken[1])


def measure(runs: int, calls: int) -> Figures:
    """Both figures with their floors."""
    floor_start, bridge_start = measure_start(runs)
    floor_call, bridge_call = measure_calls(calls)
    return Figures(floor_start, bridge_start, floor_call, bridge_call)


def main() -> int:
    """Print the figures; the exit code says whether they are within their limits."""
    parser = argparse.ArgumentParser(description="Start-up and call time against an empty MCP server.")
    parser.add_argument("--runs", type=int, default=9, help="starts of each server (default 9)")
    parser.add_argument("--calls", type=int, default=1000, help="calls to each server (default 1000)")
    arguments = parser.parse_args()
    figures = measure(arguments.runs, arguments.calls)
    rows = (
        ("spawn to initialize", figures.floor_start, figures.bridge_start, figures.start_ratio, START_LIMIT),
        ("server-status, minimal", figures.floor_call, figures.bridge_call, figures.call_ratio, CALL_LIMIT),
    )
    print(f"{'':24}{'floor':>12}{'bridge':>12}{'ratio':>8}{'limit':>8}")
    for label, floor, bridge, ratio, limit in rows:
        verdict = "ok" if ratio <= limit else "OVER"
        print(f"{label:24}{floor * 1000:9.2f} ms{bridge * 1000:9.2f} ms{ratio:8.2f}{limit:8.1f}  {verdict}")
    return 0 if all(ratio <= limit for *_, ratio, limit in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
