"""The strict server behind the real supervisor: a workspace, a launch, and questions about what the server sees."""

import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from lsp_client.dialects import CSHARP_LS, ROSLYN, Dialect
from lsp_client.dialects.base import LoadTarget
from lsp_client.discovery import ServerLaunch
from lsp_client.errors import LanguageServerError
from lsp_client.messages import decode
from lsp_client.session import Session
from lsp_client.supervisor import Supervisor, Waits
from lsp_client.uris import path_to_uri

SERVER = Path(__file__).parents[1] / "servers" / "strict_server.py"
BOUND = 20.0
"""Seconds any wait of a test may take: long beyond every duration seen, so that only a hang reaches it."""

WAITS = Waits(load_timeout=BOUND, request_timeout=BOUND, restart_timeout=BOUND)
DIALECTS: Mapping[str, Dialect] = {"roslyn": ROSLYN, "csharp-ls": CSHARP_LS}


def strict_launch(mode: str, **settings: object) -> ServerLaunch:
    """The strict server in one of its modes, under the dialect of that name."""
    command = (sys.executable, "-I", "-S", str(SERVER), json.dumps({"mode": mode, **settings}))
    return ServerLaunch(DIALECTS[mode], command, "test")


def workspace(folder: Path) -> LoadTarget:
    """A solution of one project with two sources, one of them with a byte order mark."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "App.slnx").write_text("<Solution><Project Path='App.csproj' /></Solution>\n")
    (folder / "App.csproj").write_text("<Project Sdk='Microsoft.NET.Sdk' />\n")
    (folder / "One.cs").write_text("class One { }\n")
    (folder / "Marked.cs").write_bytes(b"\xef\xbb\xbfclass Marked { }\r\n")
    return LoadTarget(folder / "App.slnx", folder, (folder / "App.csproj",))


def supervisor_of(folder: Path, mode: str, waits: Waits = WAITS, **settings: object) -> Supervisor:
    """A supervisor of the strict server; not running yet."""
    return Supervisor(
        strict_launch(mode, **settings),
        workspace(folder),
        dict(os.environ),
        waits,
        log_directory=folder / "logs",
    )


@asynccontextmanager
async def supervised(
    folder: Path, mode: str, waits: Waits = WAITS, **settings: object
) -> AsyncGenerator[Supervisor, None]:
    """A running supervisor whose server is loaded; stopped afterwards."""
    supervisor = supervisor_of(folder, mode, waits, **settings)
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(BOUND):
            await tasks.start(supervisor.run)
        yield supervisor
        with anyio.fail_after(BOUND):
            await supervisor.stop()


async def failure_of(supervisor: Supervisor, seconds: float = BOUND) -> LanguageServerError:
    """The failure with which the first load ends, within ``seconds``."""
    caught: list[LanguageServerError] = []
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(seconds):
            try:
                await tasks.start(supervisor.run)
            except LanguageServerError as error:
                caught.append(error)
        tasks.cancel_scope.cancel()
    assert caught, "the load was expected to fail"
    return caught[0]


@asynccontextmanager
async def session_of(folder: Path, mode: str, **settings: object) -> AsyncGenerator[Session, None]:
    """A loaded session of the strict server."""
    async with supervised(folder, mode, WAITS, **settings) as supervisor:
        yield await supervisor.session()


async def seen(session: Session, *paths: Path) -> list[str | None]:
    """The text the server sees for each of the paths, None for a file it does not have."""
    uris = [path_to_uri(path) for path in paths]
    answer = decode(await session.ask("test/seen", dict.fromkeys(uris)), dict[str, str | None])
    return [answer[uri] for uri in uris]


async def open_texts(session: Session) -> dict[str, str]:
    """URI to text of the documents that are open in the server."""
    return decode(await session.ask("test/open", {}), dict[str, str])


async def notifications(session: Session) -> list[str]:
    """The methods of all notifications the server has got, in order."""
    return decode(await session.ask("test/notifications", {}), list[str])
