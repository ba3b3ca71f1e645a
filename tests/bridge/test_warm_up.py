"""A server starts while the projects are read, loads when they are known, and compiles a little before anybody asks."""

from pathlib import Path

import pytest

from bridge.loading import Load, Loader, LoadRequest
from bridge.progress import ProgressSink, to_nobody
from lsp_client.dialects import csharp_ls
from tests.bridge.agent import scene
from tests.bridge.played_compiler import evaluated_projects
from tests.bridge.played_fixes import PlayedFixer, fixing
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio


@keeps("open.at-once")
async def test_the_process_starts_while_projects_are_read_and_loads_only_when_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Loader.look
    async with scene(tmp_path) as made:

        async def look(
            loader: Loader, request: LoadRequest, tell: ProgressSink = to_nobody, *, again: bool = False
        ) -> Load:
            await made.server.until(lambda: "initialized" in made.server.heard)
            load = await read(loader, request, tell, again=again)
            assert "solution/open" not in made.server.heard
            return load

        monkeypatch.setattr(Loader, "look", look)
        await made.agent.open(made.solution)
        assert "solution/open" in made.server.heard
        assert len(made.server.processes) == 1


@keeps("warm-up")
async def test_a_warm_server_was_asked_for_a_report_and_nobody_waited_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, server="csharp-ls", restore="never", warm_up="auto") as made:
        evaluated_projects(made, tmp_path, monkeypatch)
        fixer = PlayedFixer(made.server, made.root)
        async with made.server.held("workspace/diagnostic") as held:
            await made.agent.open(made.solution)
            await held.reached.wait()
            assert (await made.agent.list_workspaces()).workspaces
            assert fixer.reports == 0
            held.released.set()
            await made.agent.listing("Core/Apple.cs")
            assert fixer.reports == 1
        await made.agent.close()


@keeps("warm-up")
async def test_a_large_solution_is_not_compiled_before_somebody_asks_and_none_where_that_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path / "off", monkeypatch, {}, warm_up="off") as (made, fixer):
        await made.agent.list_workspaces()
        assert fixer.reports == 0
        assert "workspace/diagnostic" not in made.server.heard
    monkeypatch.setattr(csharp_ls, "WARM_UP_DOCUMENTS", 1)
    async with fixing(tmp_path / "large", monkeypatch, {}, warm_up="auto") as (made, fixer):
        await made.agent.list_workspaces()
        assert "workspace/diagnostic" not in made.server.heard


async def test_a_server_that_dies_while_it_is_warmed_up_is_started_anew_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, server="csharp-ls", restore="never", warm_up="auto") as made:
        evaluated_projects(made, tmp_path, monkeypatch)
        PlayedFixer(made.server, made.root)
        async with made.server.held("workspace/diagnostic") as held:
            await made.agent.open(made.solution)
            await held.reached.wait()
            made.server.kill()
            held.released.set()
        await made.server.until(lambda: len(made.server.processes) == 2)
        await made.workspace.supervisor.session()
