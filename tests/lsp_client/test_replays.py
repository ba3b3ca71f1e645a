"""Recorded servers behind the real client: their very words, on real pipes."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from lsp_client.dialects import CSHARP_LS, ROSLYN, Dialect
from lsp_client.dialects.base import LoadTarget
from lsp_client.discovery import ServerLaunch
from lsp_client.messages import Position, Range
from lsp_client.session import Session
from lsp_client.supervisor import Supervisor
from tests.lsp_client.strict import BOUND, WAITS
from tests.servers.scripts import peer_command, play
from tests.shared import NO_TRANSCRIPTS, TRANSCRIPTS

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _no_long_goodbye(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording that is left before its end does not answer ``shutdown``."""
    monkeypatch.setattr("lsp_client.process.SHUTDOWN_WAIT", 0.2)


@asynccontextmanager
async def replayed(folder: Path, name: str, dialect: Dialect, source: str) -> AsyncGenerator[Session, None]:
    """A session with the server of this recording; ``source`` is the one file that exists in its solution."""
    if not (TRANSCRIPTS / name).is_file():
        pytest.skip(NO_TRANSCRIPTS)
    root = folder / "work"
    (root / source).parent.mkdir(parents=True)
    (root / source).write_text("class C { }\n")
    command = tuple(peer_command(folder, play(TRANSCRIPTS / name, ROOT=str(root))))
    target = LoadTarget(root / "Any.slnx", root)
    supervisor = Supervisor(ServerLaunch(dialect, command, "recorded"), target, dict(os.environ), WAITS)
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(BOUND):
            await tasks.start(supervisor.run)
            yield await supervisor.session()
            await supervisor.stop()


async def test_the_recorded_roslyn_load_is_over_when_the_session_is_there(tmp_path: Path) -> None:
    async with replayed(
        tmp_path, "roslyn-dialect-two-projects.jsonl", ROSLYN, "Lib/Calculator.cs"
    ) as session:
        assert [m.severity for m in session.load_report.messages] == ["info", "info"]
        assert "stand-in" in session.server_name
        assert "a stand-in, not Microsoft's server" in session.limits


async def test_the_recorded_roslyn_diagnostics_and_actions_are_read(tmp_path: Path) -> None:
    async with replayed(
        tmp_path, "roslyn-dialect-two-projects.jsonl", ROSLYN, "Lib/Calculator.cs"
    ) as session:
        path = session.target.root / "Lib/Calculator.cs"
        found = await session.diagnostics(path)
        assert "CS0219" in {item.id for item in found}
        await session.ask("textDocument/diagnostic", {})  # the recording asks twice
        place = Range(Position(25, 12), Position(26, 38))
        listing = await session.list_actions(path, place, found)
        extract = next(a for a in listing.actions if a.title == "Use explicit type instead of 'var'")
        assert extract.fix_all_scopes == ("Document", "Project", "Solution")
        assert not any(a.title.startswith("Fix All: ") for a in listing.actions)


async def test_the_recorded_load_of_csharp_ls_is_proved_by_its_answer(tmp_path: Path) -> None:
    source = "src/Bakery.Core/Orders/Order.cs"
    async with replayed(tmp_path, "10-reload.jsonl", CSHARP_LS, source) as session:
        assert session.watch.ended == 1
        assert session.load_report.errors == ()
        assert session.server_version is not None
        assert session.server_version.startswith("0.28.0")
