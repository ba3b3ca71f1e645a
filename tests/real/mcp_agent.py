"""An agent that speaks to the bridge over MCP stdio, as a client program does, and judges the tree on disk."""

from __future__ import annotations

import hashlib
import stat
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from mcp import Client, StdioServerParameters

from bridge.options import environment_name

Json = dict[str, object]

CALL_TIMEOUT = 240.0
"""Seconds for one call; a cold load on two busy cores takes tens of seconds."""

BUILD_FOLDERS = frozenset({"bin", "obj", ".vs"})


@dataclass
class Agent:
    """Tools by name over one connection; echoes the newest snapshot by itself."""

    client: Client
    view: str = "text"
    """How the servers of this bridge are to see staged files; every workspace that is opened is held to it."""
    snapshot: Json = field(default_factory=dict)
    progress: list[tuple[float, str | None]] = field(default_factory=list)

    async def ask(self, tool: str, **arguments: object) -> Json:
        """The whole envelope of one answer."""

        async def reported(progress: float, total: float | None, message: str | None) -> None:
            self.progress.append((progress, message))

        result = await self.client.call_tool(
            tool, arguments, read_timeout_seconds=CALL_TIMEOUT, progress_callback=reported
        )
        envelope = cast("Json", result.structured_content)
        assert result.is_error == (not envelope["ok"])
        if envelope.get("snapshot"):
            self.snapshot = cast("Json", envelope["snapshot"])
        if tool == "workspace-open" and envelope["ok"]:
            server = cast("Json", cast("Json", envelope["data"])["server"])
            assert server["view"] == self.view, server
        return envelope

    async def do(self, tool: str, **arguments: object) -> Json:
        """The data of an answer that must be a success."""
        envelope = await self.ask(tool, **arguments)
        assert envelope["ok"], envelope
        return cast("Json", envelope["data"])

    async def refused(self, tool: str, **arguments: object) -> Json:
        """The error of an answer that must be a refusal."""
        envelope = await self.ask(tool, **arguments)
        assert not envelope["ok"], envelope
        return cast("Json", envelope["error"])

    async def actions(self, path: str, start: int, length: int = 0, **more: object) -> list[Json]:
        """What is offered at a place of the current text."""
        data = await self.listing(path, start, length, **more)
        return cast("list[Json]", cast("Json", data["actions"])["items"])

    async def listing(self, path: str, start: int, length: int = 0, **more: object) -> Json:
        """The whole answer of one listing."""
        arguments: Json = {"kinds": "All", "limit": 200, **more}
        return await self.do(
            "list-code-actions",
            document={"path": path},
            range={"start": start, "length": length},
            expectedSnapshot=self.snapshot,
            **arguments,
        )

    async def refused_listing(self, path: str, start: int, length: int = 0) -> Json:
        """The error of a listing that must be refused."""
        return await self.refused(
            "list-code-actions",
            document={"path": path},
            range={"start": start, "length": length},
            expectedSnapshot=self.snapshot,
            kinds="All",
            limit=200,
        )

    async def stage(self, path: str, start: int, title: str, length: int = 0) -> Json:
        """Stage the one action whose title starts with ``title``."""
        offered = await self.actions(path, start, length)
        action = next((a for a in offered if str(a["title"]).startswith(title)), None)
        assert action is not None, f"{title!r} is not among {[a['title'] for a in offered]}"
        return await self.do("stage-code-action", actionId=action["actionId"], expectedSnapshot=self.snapshot)

    async def diff_lines(self, path: str) -> list[str]:
        """The lines of a staged document's diff."""
        preview = await self.do("transaction-preview", document={"path": path}, includeDiff=True)
        hunks = cast("list[Json]", cast("Json", preview["diff"])["hunks"])
        return [line for hunk in hunks for line in cast("list[str]", hunk["lines"])]


@asynccontextmanager
async def bridge_process(environment: Mapping[str, str], options: Sequence[str]) -> AsyncIterator[Agent]:
    """A bridge as a child over stdio, and an agent at its other end.

    All options have environment twins: with ``ROSLYN_BRIDGE_SERVER_VIEW=overlay`` the tests run in that view, and an agent
    fails where a server fell back to the other one.
    """
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "bridge", "mcp", *options], env=dict(environment)
    )
    view = environment.get(environment_name("server_view"), "text")
    if "--server-view" in options:
        view = options[options.index("--server-view") + 1]
    async with Client(command, mode="legacy") as client:
        yield Agent(client, view)


def offset_of(path: Path, needle: str, encoding: str = "utf-8-sig") -> int:
    """The zero-based UTF-16 offset of ``needle`` in a file, its byte order mark not counted."""
    text = path.read_bytes().decode(encoding)
    return len(text[: text.index(needle)].encode("utf-16-le")) // 2


def tree_of(root: Path) -> dict[str, tuple[str, str]]:
    """Every entry under ``root`` outside build folders: its kind and mode, and its content or link target."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if BUILD_FOLDERS & set(relative.parts):
            continue
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            content = str(path.readlink())
        elif stat.S_ISREG(status.st_mode):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            content = ""
        found[relative.as_posix()] = (stat.filemode(status.st_mode), content)
    return found
