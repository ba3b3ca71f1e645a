"""A bridge with tools made for tests: the real front door, serving on this process's stdin and stdout.

Run as a child process.  ``python fake_bridge.py [behaviour ...]`` where a behaviour changes what the tools' context
does: ``fails-to-open``, ``never-closes``, ``wedged`` (it holds
a language server that ignores everything); ``short-end`` shortens the bound of the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from bridge.frontends import mcp
from bridge.options import Options
from bridge.tools.call import Answer, CallContext, ToolCaller, UnknownTool
from lsp_client.process import spawn

Arguments = Mapping[str, object]


def good(**data: object) -> Answer:
    return Answer({"ok": True, "data": data}, "done", is_error=False)


class FakeTools:
    """Tools that show what reaches a tool and what a tool may do to the front door."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.gate = anyio.Event()
        self.waiting = 0
        self.children: list[subprocess.Popen[bytes]] = []
        self.family: list[int] = []
        self.tools: dict[str, Callable[[Arguments, CallContext], Awaitable[Answer]]] = {
            "echo": self.echo,
            "measure": self.measure,
            "meet": self.meet,
            "wait": self.wait,
            "cancelled": self.tell_cancelled,
            "raise": self.fail,
            "refuse": self.refuse,
            "print": self.print_everywhere,
            "surrogate": self.surrogate,
            "big": self.big,
            "unwritable": self.unwritable,
            "progress": self.progress,
            "commit": self.commit,
            "child": self.child,
            "read-stdin": self.read_stdin,
            "family": self.tell_family,
        }

    async def call(self, name: str, arguments: Arguments | None, context: CallContext) -> Answer:
        tool = self.tools.get(name)
        if tool is None:
            raise UnknownTool(name, "echo")
        return await tool(arguments or {}, context)

    async def echo(self, arguments: Arguments, _context: CallContext) -> Answer:
        return good(**arguments)

    async def measure(self, arguments: Arguments, _context: CallContext) -> Answer:
        return good(length=len(str(arguments["text"])))

    async def meet(self, arguments: Arguments, _context: CallContext) -> Answer:
        """Returns once as many callers as ``count`` are inside at the same time."""
        self.waiting += 1
        if self.waiting == arguments["count"]:
            self.gate.set()
        await self.gate.wait()
        return good(met=self.waiting)

    async def wait(self, arguments: Arguments, context: CallContext) -> Answer:
        await context.report_progress(0, None, "waiting")
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled.append(str(arguments.get("label", "")))
            raise
        raise AssertionError("sleep_forever does not return")

    async def tell_cancelled(self, _arguments: Arguments, _context: CallContext) -> Answer:
        return good(cancelled=self.cancelled)

    async def fail(self, _arguments: Arguments, _context: CallContext) -> Answer:
        raise ValueError("secret: /home/somebody/.key")

    async def refuse(self, _arguments: Arguments, _context: CallContext) -> Answer:
        error = {"code": "WorkspaceNotOpen", "message": "no workspace is open"}
        return Answer({"ok": False, "error": error}, "WorkspaceNotOpen: no workspace is open", is_error=True)

    async def print_everywhere(self, _arguments: Arguments, _context: CallContext) -> Answer:
        print("stray print", flush=True)  # noqa: T201  # the very thing under test
        os.write(1, b"stray write\n")
        await anyio.run_process([sys.executable, "-c", "print('stray child')"], stdout=None)
        return good()

    async def read_stdin(self, _arguments: Arguments, _context: CallContext) -> Answer:
        return good(read=len(os.read(0, 100)))

    async def surrogate(self, _arguments: Arguments, _context: CallContext) -> Answer:
        return Answer({"ok": True, "data": {"text": "a\ud83db \u2028"}}, "text \ud83d", is_error=False)

    async def big(self, arguments: Arguments, _context: CallContext) -> Answer:
        return good(text="x" * int(str(arguments["length"])))

    async def unwritable(self, _arguments: Arguments, _context: CallContext) -> Answer:
        return good(thing=object())

    async def progress(self, _arguments: Arguments, context: CallContext) -> Answer:
        for step in range(3):
            await context.report_progress(step, 2, f"step {step}")
        return good()

    async def commit(self, arguments: Arguments, context: CallContext) -> Answer:
        """Past its instant: shielded, and finishes whatever happens to its caller."""
        with anyio.CancelScope(shield=True):
            await context.report_progress(0, None, "past the instant")
            async with await anyio.open_file(
                str(arguments["gate"]), "rb"
            ) as gate:  # a FIFO: opens with its writer
                await gate.read()
            await anyio.Path(str(arguments["path"])).write_text("committed")
        return good()

    async def child(self, _arguments: Arguments, _context: CallContext) -> Answer:
        """A child in the manner of a language server: it lives as long as its stdin."""
        process = subprocess.Popen(  # returns at once
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
        )
        self.children.append(process)
        return good(pid=process.pid)

    async def tell_family(self, _arguments: Arguments, _context: CallContext) -> Answer:
        return good(pids=self.family)

    def close(self) -> None:
        for process in self.children:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()


WEDGED_SERVER = """
import os, signal, subprocess, sys
for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(signum, signal.SIG_IGN)
if len(sys.argv) == 1:
    build_host = subprocess.Popen([sys.executable, __file__, "grandchild"], start_new_session=True)
    print(os.getpid(), build_host.pid, flush=True)
while True:
    signal.pause()
"""
"""A language server that listens to nothing any more, with a build host that has left its session."""


@asynccontextmanager
async def wedged_family() -> AsyncIterator[list[int]]:
    """Start the wedged server as language servers are started; gives the ids of its processes."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "wedged.py"
        script.write_text(WEDGED_SERVER)
        async with spawn([sys.executable, str(script)], cwd=Path(folder), env=os.environ) as server:
            line = BufferedByteReceiveStream(server.stdout)
            pids = (await line.receive_until(b"\n", 100)).split()
            yield [server.guard_pid, *map(int, pids)]


@asynccontextmanager
async def open_fakes(_options: Options) -> AsyncIterator[ToolCaller]:
    if "fails-to-open" in sys.argv:
        raise RuntimeError("secret: no room in /home/somebody")
    tools = FakeTools()
    try:
        if "wedged" in sys.argv:
            async with wedged_family() as tools.family:
                yield tools
        else:
            yield tools
    finally:
        tools.close()
        if "never-closes" in sys.argv:
            sys.stderr.write("closing\n")
            sys.stderr.flush()
            with anyio.CancelScope(shield=True):
                await anyio.sleep_forever()
        closed = os.environ.get("FAKE_CLOSED")
        if closed is not None:
            Path(closed).write_text("closed")  # a few bytes, at the end


def publish(_options: Options) -> list[dict[str, object]]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in FakeTools().tools]


async def main() -> int:
    if "short-end" in sys.argv:
        mcp.END_SECONDS = 0.2
    return await mcp.serve(Options(), open_fakes, publish, version="1.2.3")


if __name__ == "__main__":
    code = anyio.run(main)
    sys.stdout.flush()
    os._exit(code)
