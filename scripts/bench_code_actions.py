"""Our own time for listing code actions and for staging one, beside what the language server itself takes.

    python scripts/bench_code_actions.py SOLUTION FILE --server KIND [--server-path PATH] [--runs N] [--find TEXT]
                                         [--title TITLE]

The solution is opened once.  Then, in turn, so that a busy moment of the machine hits both:

- *floor*: the requests that the answer is made of, put to the same server process by ``lsp_client.Session`` at the same
  place on the same text (diagnostics and the list; for a stage the resolve as well);
- *total*: the tool, called as a front door calls it.

*Over the floor* is the difference.  A part of it may be the server's again: a stage also asks for the errors that its
edit makes and mends.  *Ours* is what is left of the total without every moment in which a question was with the
server: leases, the look at every input on disk, planning the edit, the checks of the answer, showing the staged text.
SOLUTION is not written to.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio
import msgspec

from bridge.options import Options, read_options
from bridge.tools.call import CallContext
from bridge.tools.registry import Tools
from bridge.workbench import Workbench, open_workbench
from lsp_client.connection import Connection
from lsp_client.messages import Position, Range

Json = Mapping[str, object]


@dataclass(frozen=True)
class Figure:
    """The medians of one comparison, in milliseconds."""

    name: str
    floor: float
    total: float
    ours: float

    def __str__(self) -> str:
        return (
            f"{self.name:6} floor {self.floor:8.1f} ms   total {self.total:8.1f} ms   "
            f"over the floor {self.total - self.floor:8.1f} ms   ours {self.ours:8.1f} ms"
        )


class Questions:
    """How long a server has had at least one question of ours."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._open = 0
        self._since = 0.0

    def watch(self, connection: Connection) -> None:
        """Count the questions of this connection from now on."""
        request = connection.request

        async def watched(method: str, params: object = msgspec.UNSET, *, timeout: float) -> msgspec.Raw:
            if self._open == 0:
                self._since = time.perf_counter()
            self._open += 1
            try:
                return await request(method, params, timeout=timeout)
            finally:
                self._open -= 1
                if self._open == 0:
                    self.seconds += time.perf_counter() - self._since

        connection.request = watched  # type: ignore[method-assign]  # a clock around it, in this script only


class Bench:
    """One open workspace, asked at one place."""

    def __init__(self, workbench: Workbench, path: Path, needle: str, title: str) -> None:
        self._workbench = workbench
        self._tools = Tools(workbench)
        self._path = path
        self._title = title
        self._text = path.read_bytes().decode("utf-8-sig")
        self._start = self._text.index(needle) + len(needle)
        line = self._text.count("\n", 0, self._start)
        column = self._start - (self._text.rfind("\n", 0, self._start) + 1)
        self._place = Range(Position(line, column), Position(line, column))
        self._snapshot: Json = {}
        self.questions = Questions()

    async def call(self, tool: str, **arguments: object) -> Json:
        """One call that must succeed; its data."""
        answer = await self._tools.call(tool, arguments, CallContext())
        if answer.is_error:
            sys.exit(f"{tool}: {answer.text}")
        self._snapshot = cast("Json", answer.envelope.get("snapshot", self._snapshot))
        return cast("Json", answer.envelope["data"])

    async def list_once(self) -> str:
        """The tool; the id of the action to stage."""
        start = len(self._text[: self._start].encode("utf-16-le")) // 2
        workspace = self._workbench.workspaces[0]
        data = await self.call(
            "list-code-actions",
            document={"path": workspace.relative(self._path)},
            range={"start": start, "length": 0},
            expectedSnapshot=self._snapshot,
            kinds="All",
            limit=200,
        )
        items = cast("list[Json]", cast("Json", data["actions"])["items"])
        found = next((i for i in items if str(i["title"]).startswith(self._title)), None)
        if found is None:
            sys.exit(f"{self._title!r} is not among {[i['title'] for i in items]}")
        return str(found["actionId"])

    async def floor_once(self, *, resolve: bool) -> None:
        """The same questions, without the bridge."""
        session = await self._workbench.workspaces[0].supervisor.session()
        async with session.looking_at({self._path: self._text}):
            diagnostics = await session.diagnostics(self._path)
            listing = await session.list_actions(self._path, self._place, diagnostics)
            if resolve:
                action = next(a for a in listing.actions if a.title.startswith(self._title))
                await session.resolve(action)

    async def measure_list(self, runs: int) -> Figure:
        """Listing."""
        floors, totals, ours = [], [], []
        for _ in range(runs):
            floors.append(await timed(lambda: self.floor_once(resolve=False)))
            asked = self.questions.seconds
            totals.append(await timed(self.list_once))
            ours.append(totals[-1] - (self.questions.seconds - asked) * 1000)
        return Figure("list", *map(statistics.median, (floors, totals, ours)))

    async def measure_stage(self, runs: int) -> Figure:
        """Staging; undone after each run, which is not counted."""
        floors, totals, ours = [], [], []
        await self.call("transaction-start")
        for _ in range(runs):
            floors.append(await timed(lambda: self.floor_once(resolve=True)))
            action_id = await self.list_once()
            snapshot = self._snapshot

            async def stage(action_id: str = action_id, snapshot: Json = snapshot) -> None:
                await self.call("stage-code-action", actionId=action_id, expectedSnapshot=snapshot)

            asked = self.questions.seconds
            totals.append(await timed(stage))
            ours.append(totals[-1] - (self.questions.seconds - asked) * 1000)
            await self.call("transaction-history", direction="Undo", expectedSnapshot=self._snapshot)
            await self.list_once()  # the server has the text of the disk again
        await self.call("transaction-rollback")
        return Figure("stage", *map(statistics.median, (floors, totals, ours)))


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds of one piece of work."""
    started = time.perf_counter()
    await work()
    return (time.perf_counter() - started) * 1000


async def measure(
    options: Options, solution: Path, path: Path, *, needle: str, title: str, runs: int
) -> tuple[Figure, Figure]:
    """Open, warm up, and measure both."""
    async with open_workbench(options) as workbench:
        bench = Bench(workbench, path, needle, title)
        started = time.perf_counter()
        data = await bench.call("workspace-open", path=str(solution))
        server = cast("Json", data["server"])
        seconds = time.perf_counter() - started
        print(f"{server['name']} {server['version']}: {data['documentCount']} documents in {seconds:.1f} s")
        bench.questions.watch((await workbench.workspaces[0].supervisor.session()).connection)
        await bench.list_once()
        await bench.floor_once(resolve=True)
        return await bench.measure_list(runs), await bench.measure_stage(runs)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Our own time for code actions, beside the server's.")
    parser.add_argument("solution", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--server", default="auto")
    parser.add_argument("--server-path")
    parser.add_argument("--state-directory")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--find", default="public class ")
    parser.add_argument("--title", default="Add 'DebuggerDisplay' attribute")
    given = parser.parse_args()
    options = read_options(
        {
            "server": given.server,
            "server_path": given.server_path,
            "state_directory": given.state_directory,
        }
    )
    figures = anyio.run(
        lambda: measure(
            options,
            given.solution.absolute(),
            given.file.absolute(),
            needle=given.find,
            title=given.title,
            runs=given.runs,
        )
    )
    for figure in figures:
        print(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
