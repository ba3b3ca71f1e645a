"""A process with a view of its own, which tells a test what it sees there.

It is started as a server is, through the guard and the namespace helper, and evaluates the Python expressions that it
is sent, one a line.  Where the system grants no private mounts, tests that need them are skipped with that reason.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import psutil
import pytest

from lsp_client.dialects.base import DocumentView, FileEvent
from lsp_client.process import ServerProcess, spawn
from lsp_client.staged_tree import StagedTree, enclosed

BOUND = 20.0
"""Seconds for one answer."""

EVALUATE = """
import ctypes, os, sys
def names(folder='.'):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, files in os.walk(folder) for name in files)
def text(path):
    return open(path, encoding='utf-8').read() if os.path.exists(path) else None
def write(path, text):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    open(path, 'w', encoding='utf-8').write(text)
for line in sys.stdin:
    os.chdir(os.getcwd())  # by its name: what lies upon the folder that we were started in is seen from here on
    print(repr(eval(line)), flush=True)
"""


@dataclass
class Inside:
    """The process, its tree, and what it says."""

    server: ServerProcess
    tree: StagedTree
    root: Path
    scratch: Path
    refused: str | None
    _rest: bytes = b""

    async def ask(self, expression: str) -> object:
        """The value of an expression as the process sees it; its folder is the root."""
        with anyio.fail_after(BOUND):
            await self.server.stdin.send(expression.encode() + b"\n")
            while b"\n" not in self._rest:
                self._rest += await self.server.stdout.receive()
        line, _, self._rest = self._rest.partition(b"\n")
        return ast.literal_eval(line.decode())

    async def files(self) -> dict[str, str]:
        """All files below the root with their texts."""
        found = await self.ask("{name: text(name) for name in names()}")
        assert isinstance(found, dict)
        return found

    async def show(
        self, created: Mapping[str, str] | None = None, gone: tuple[str, ...] = ()
    ) -> tuple[FileEvent, ...]:
        """Stage exactly this; paths are relative to the root."""
        texts = {self.root / name: text for name, text in (created or {}).items()}
        deleted = frozenset(self.root / name for name in gone)
        return await self.tree.show(DocumentView(texts, frozenset(texts), deleted))

    @property
    def guard(self) -> psutil.Process:
        return psutil.Process(self.server.guard_pid)

    @property
    def writer(self) -> psutil.Process:
        """The process that stays in the namespace beside the server."""
        (found,) = [child for child in self.guard.children() if child.pid != self.server.pid]
        return found


@asynccontextmanager
async def inside(root: Path, parent: Path, command: tuple[str, ...] = ()) -> AsyncIterator[Inside]:
    """A process that looks at ``root`` through a view, with its private directory in ``parent``."""
    parent.mkdir(exist_ok=True, parents=True)
    source = command or (sys.executable, "-I", "-S", "-c", EVALUATE)
    with enclosed(source, root, parent, [root]) as enclosure:
        async with spawn(
            enclosure.command,
            cwd=root,
            env=dict(os.environ),
            handed=(enclosure.handed.fileno(),),
            scratch=enclosure.scratch,
        ) as server:
            enclosure.handed.close()
            refused = await enclosure.tree.opened()
            yield Inside(server, enclosure.tree, root, enclosure.scratch.path, refused)


@cache
def reason_against() -> str | None:
    """Why this system grants no view of the kind that most tests need; ``None`` when it does."""

    async def tried(folder: Path) -> str | None:
        (folder / "root").mkdir()
        async with inside(folder / "root", folder / "state") as made:
            return made.refused

    if sys.platform != "linux":
        return "views need Linux"
    with TemporaryDirectory() as folder:
        return anyio.run(tried, Path(folder).resolve())


@pytest.fixture
def views() -> None:
    """Skips a test where there are no views, and says why."""
    reason = reason_against()
    if reason is not None:
        pytest.skip(f"no view of its own for a server: {reason}")
