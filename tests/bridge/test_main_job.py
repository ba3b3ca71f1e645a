"""The main job from end to end on the bundled sample, with the embedded server as it is shipped."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from schemas.server import ServerStatusData
from tests.bridge.agent import Agent, opened, real_bridge
from tests.bridge.promises import keeps
from tests.bridge.test_bytes import photograph

pytestmark = pytest.mark.anyio

SAMPLE = Path(__file__).parents[2] / "scripts" / "sample"
WATERING = "src/Greenhouse/Watering.cs"
PLANTS = "src/Greenhouse/Plants.cs"
BED = "src/Greenhouse/Bed.cs"


@asynccontextmanager
async def greenhouse(tmp_path: Path) -> AsyncIterator[tuple[Agent, Path]]:
    root = tmp_path / "Gewächshaus & mehr"
    shutil.copytree(SAMPLE, root)
    async with real_bridge(tmp_path, server="embedded") as agent:
        await agent.open(root / "Sample.slnx")
        yield agent, root


async def stage_two_changes(agent: Agent, root: Path) -> None:
    """Sort the usings of one file, and move a type of another into a file of its own."""
    sort = next(a for a in await agent.actions(WATERING) if "usings" in a.title)
    await agent.stage(sort)
    text = (root / PLANTS).read_bytes().decode("utf-8-sig")
    place = {"start": text.index("class Bed"), "length": 0}
    move = next(a for a in await agent.actions(PLANTS, range=place) if "Bed.cs" in a.title)
    await agent.stage(move)


@keeps("commit.writes", "preview.order")
async def test_a_change_of_text_and_a_new_file_are_listed_staged_previewed_and_committed(
    tmp_path: Path,
) -> None:
    async with greenhouse(tmp_path) as (agent, root):
        before = photograph(root)
        await agent.start()
        await stage_two_changes(agent, root)
        kinds = [(d.change_kind, d.document.path) for d in (await agent.preview()).documents if d.document]
        assert kinds == [("Added", BED), ("Modified", PLANTS), ("Modified", WATERING)]
        for path, line in ((BED, "+    public class Bed"), (PLANTS, "-    public class Bed")):
            diff = (await agent.preview(document={"path": path}, includeDiff=True)).diff
            assert diff is not None
            assert line in [text.rstrip("\r\n") for hunk in diff.hunks for text in hunk.lines]
        assert await agent.actions(BED)
        await agent.undo()
        assert len((await agent.preview()).documents) == 1
        await agent.redo()
        assert photograph(root) == before
        await agent.commit()
        after = photograph(root)
        assert {name for name in after if after[name] != before.get(name)} == {BED, PLANTS, WATERING}
        assert (await agent.status()).document_count == 10
        assert await agent.actions(BED)


@keeps("bytes.kept", "rollback.writes-nothing")
async def test_after_a_rollback_the_whole_sample_is_as_it_was(tmp_path: Path) -> None:
    async with greenhouse(tmp_path) as (agent, root):
        before = photograph(root)
        await agent.start()
        await stage_two_changes(agent, root)
        for path in sorted(p.relative_to(root).as_posix() for p in root.rglob("*.cs")):
            for action in await agent.actions(path):
                if not (await agent.call("stage-code-action", actionId=action.action_id)).is_error:
                    await agent.status()
                    break
        assert len((await agent.preview()).documents) > 5
        await agent.roll_back()
        assert photograph(root) == before


async def test_the_status_names_the_server_of_each_workspace(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        for detail in ("Minimal", "Standard", "Full"):
            status = await made.agent.ask(ServerStatusData, "server-status", detail=detail)
            assert status.tool_count >= 13
            assert status.language_servers is not None
            (server,) = status.language_servers
            assert server.workspace_id == made.workspace.id
            assert (server.state, server.pid) == ("ready", made.server.processes[-1])
            assert (status.configuration is None) is (detail == "Minimal")
        await made.agent.close()
        assert (await made.agent.ask(ServerStatusData, "server-status")).language_servers == ()
