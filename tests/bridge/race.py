"""Two bridges race: both stage "add one to the counter" on the same text, then both commit at the same moment.

Each bridge is a process of its own over MCP stdio, with a state directory and a played C# server of its own; nothing
but the files of the workspace is common to them.  After every round the counter on the disk must be the number of
commits that succeeded, and one must have: ``python -m tests.bridge.race [ROUNDS]``, or ``scripts/race``.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio

from tests.bridge.agent import write_solution
from tests.bridge.played_server import Json, Offer, PlayedServer, document_edit, playing
from tests.real.mcp_agent import Agent, bridge_process

ROUNDS = 100
"""Two commits each: the two hundred that the issue asks for."""

COUNTER = "Core/Counter.cs"
FIRST = "namespace Shop;\r\n\r\nclass Counter\r\n{\r\n    const int Value = 0;\r\n}\r\n"
NUMBER = re.compile(r"Value = (\d+);")


@dataclass
class Outcome:
    """What came of a race."""

    rounds: int
    successes: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    """How often which refusal came."""
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


def add_one(path: Path, text: str) -> Sequence[Json]:
    """The edit of one number, as a server would give it."""
    for line, words in enumerate(text.splitlines()):
        found = NUMBER.search(words)
        if found is not None:
            place = {
                "start": {"line": line, "character": found.start(1)},
                "end": {"line": line, "character": found.end(1)},
            }
            return [document_edit(path, [{"range": place, "newText": str(int(found[1]) + 1)}])]
    raise AssertionError(f"no counter in {text!r}")


def value(root: Path) -> int:
    """The counter on the disk; the rest of the file must be as it was."""
    text = (root / COUNTER).read_bytes().decode("utf-8")
    found = NUMBER.search(text)
    assert found is not None
    assert text == FIRST.replace("Value = 0", f"Value = {found[1]}")
    return int(found[1])


class Barrier:
    """Lets nobody pass before all have come."""

    def __init__(self, members: int) -> None:
        self._missing = members
        self._members = members
        self._open = anyio.Event()

    async def wait(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            gate, self._open, self._missing = self._open, anyio.Event(), self._members
            gate.set()
        else:
            await self._open.wait()


async def race(folder: Path, rounds: int, bound: float, *, share_state: bool = False) -> Outcome:
    """Run it; ``bound``: seconds for all of it.  Bridges of one user share their state directory, others do not."""
    outcome = Outcome(rounds)
    root = folder / "Läden & mehr"
    solution = write_solution(root)
    (root / COUNTER).write_bytes(FIRST.encode())
    started = time.monotonic()
    with anyio.fail_after(bound):
        async with AsyncExitStack() as stack:
            names = ("both", "both") if share_state else ("one", "other")
            agents = [await _opened(stack, folder / f"state of {name}", solution) for name in names]
            barrier = Barrier(len(agents))
            for number in range(rounds):
                before = outcome.successes
                async with anyio.create_task_group() as both:
                    for agent in agents:
                        both.start_soon(_one_commit, agent, barrier, outcome)
                if outcome.successes == before:
                    outcome.problems.append(f"round {number}: nobody succeeded")
                if value(root) != outcome.successes:
                    outcome.problems.append(
                        f"round {number}: the counter is {value(root)} after {outcome.successes} successes"
                    )
    outcome.seconds = time.monotonic() - started
    left = [
        path
        for path in (root / ".vs", *folder.glob("state */roslyn-bridge/recovery/*"))
        if os.path.lexists(path)
    ]
    outcome.problems += [f"{path} was left" for path in left]
    return outcome


async def _opened(stack: AsyncExitStack, state: Path, solution: Path) -> Agent:
    server: PlayedServer = await stack.enter_async_context(playing())
    server.offers = [Offer("Add one", add_one)]
    options = [
        *("--server", "embedded", "--server-path", str(server.path)),
        *("--state-directory", str(state)),
    ]
    agent = await stack.enter_async_context(bridge_process(dict(os.environ), options))
    await agent.do("workspace-open", path=str(solution))
    return agent


async def _one_commit(agent: Agent, barrier: Barrier, outcome: Outcome) -> None:
    await agent.do("transaction-start")
    await agent.stage(COUNTER, 0, "Add one")
    await barrier.wait()
    answer = await agent.ask("transaction-commit", expectedSnapshot=agent.snapshot)
    if answer["ok"]:
        outcome.successes += 1
        return
    error = answer["error"]
    assert isinstance(error, dict)
    outcome.codes[str(error["code"])] += 1
    await agent.do("transaction-rollback")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    problems: list[str] = []
    for share_state in (False, True):
        with tempfile.TemporaryDirectory(prefix="race") as name:
            outcome = anyio.run(
                partial(race, Path(name), rounds, 60.0 + 5.0 * rounds, share_state=share_state)
            )
        refusals = ", ".join(f"{count} {code}" for code, count in sorted(outcome.codes.items())) or "none"
        sys.stdout.write(
            f"{'one state directory' if share_state else 'two state directories'}: {rounds} rounds of two commits in "
            f"{outcome.seconds:.1f} s; {outcome.successes} committed, refused: {refusals}\n"
        )
        problems += outcome.problems
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
