"""The main job over MCP stdio on both real servers: list, stage, preview, undo, redo, commit, roll back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from tests.real.conftest import RealServer, run_dotnet
from tests.real.mcp_agent import Agent, Json, bridge_process, offset_of, tree_of

INVENTORY = "src/Library/Inventory.cs"
SHAPES = "src/Library/Shapes.cs"


def options(server: RealServer, tmp_path: Path) -> list[str]:
    return [
        "--server",
        server.kind,
        "--server-path",
        str(server.path),
        "--state-directory",
        str(tmp_path / "state"),
    ]


async def opened(agent: Agent, folder: Path) -> Json:
    return await agent.do("workspace-open", path=str(folder / "TwoProjects.slnx"), alias="two")


async def stage_text_and_file(agent: Agent, folder: Path) -> None:
    """One action that only edits text, and one that creates a file."""
    await agent.do("transaction-start")
    text_only = await agent.stage(
        INVENTORY, offset_of(folder / INVENTORY, "class ") + 6, "Add 'DebuggerDisplay' attribute"
    )
    assert text_only["staged"] is True
    creating = await agent.stage(SHAPES, offset_of(folder / SHAPES, "class ") + 6, "Move type to")
    assert creating["staged"] is True
    assert cast("Json", creating["transaction"])["revision"] == 2


@pytest.mark.anyio
async def test_a_text_action_and_a_creating_action_are_staged_previewed_undone_redone_and_committed(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    before = tree_of(two_projects)
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        data = await opened(agent, two_projects)
        assert data["projectCount"] == 3
        assert [d for d in cast("list[Json]", data["loadDiagnostics"]) if d["severity"] == "Error"] == []
        assert agent.progress, "opening streams progress to callers who ask for it"
        assert [p for p, _ in agent.progress] == sorted(p for p, _ in agent.progress)

        await stage_text_and_file(agent, two_projects)
        preview = await agent.do("transaction-preview")
        kinds = [
            (d["changeKind"], cast("Json", d["document"])["path"])
            for d in cast("list[Json]", preview["documents"])
        ]
        assert kinds == [("Added", "src/Library/Shape.cs"), ("Modified", INVENTORY), ("Modified", SHAPES)]
        added = await agent.diff_lines("src/Library/Shape.cs")
        assert any("abstract class Shape" in line for line in added)
        assert all(line.startswith("+") for line in added)
        assert any(line.startswith("-") and "class Shape" in line for line in await agent.diff_lines(SHAPES))
        assert tree_of(two_projects) == before, "nothing is on disk before the commit"

        staged_snapshot = agent.snapshot
        await agent.do("transaction-history", direction="Undo", expectedSnapshot=agent.snapshot)
        assert agent.snapshot != staged_snapshot
        await agent.do("transaction-history", direction="Redo", expectedSnapshot=agent.snapshot)
        assert agent.snapshot == staged_snapshot
        committed = await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
        assert committed["committed"] is True
        assert agent.snapshot["workspaceEpoch"] == staged_snapshot["workspaceEpoch"]
        assert agent.snapshot["snapshotId"] != staged_snapshot["snapshotId"]

        created = await agent.actions("src/Library/Shape.cs", 0)
        assert isinstance(created, list), "the committed file is a document that can be asked about"
    after = tree_of(two_projects)
    assert {path for path in after if after[path] != before.get(path)} == {
        "src/Library/Shape.cs",
        INVENTORY,
        SHAPES,
    }
    run_dotnet(toolchain, two_projects, "build", "TwoProjects.slnx", "-p:UseSharedCompilation=false")


@pytest.mark.anyio
async def test_a_rolled_back_transaction_leaves_every_file_as_it_was(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    before = tree_of(two_projects)
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await opened(agent, two_projects)
        await stage_text_and_file(agent, two_projects)
        assert (await agent.do("transaction-rollback"))["state"] == "Ready"
        await agent.do("workspace-close")
    assert tree_of(two_projects) == before


@pytest.mark.anyio
async def test_listing_answers_for_the_staged_text_and_undo_takes_the_server_back(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await opened(agent, two_projects)
        await agent.do("transaction-start")
        place = offset_of(two_projects / SHAPES, "class") + 6
        offered = {a["title"] for a in await agent.actions(SHAPES, place)}
        assert "Move type to Shape.cs" in offered
        await agent.stage(SHAPES, place, "Move type to Shape.cs")
        # What stood at this place has moved to the new file, which has no other type to move out.
        now = {a["title"] for a in await agent.actions(SHAPES, place)}
        assert "Move type to Shape.cs" not in now
        moved = await agent.listing("src/Library/Shape.cs", 0)
        if real_server.kind == "roslyn":
            assert moved["notes"], (
                "a created file is no project member of Roslyn before the commit, and that is said"
            )
        await agent.do("transaction-history", direction="Undo", expectedSnapshot=agent.snapshot)
        assert {a["title"] for a in await agent.actions(SHAPES, place)} == offered


ODD_FILES = (
    "CrLfFile.cs",
    "BomFile.cs",
    "MixedEol.cs",
    "NoFinalNewline.cs",
    "Emoji.cs",
    "Tabs.cs",
    "Utf16File.cs",
)


@pytest.mark.anyio
async def test_an_edit_keeps_encoding_byte_order_mark_and_line_ends_of_odd_files(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    folder = "src/Library/Encodings/"
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await opened(agent, two_projects)
        await agent.do("transaction-start")
        for name in ODD_FILES:
            encoding = "utf-16" if name == "Utf16File.cs" else "utf-8-sig"
            place = offset_of(two_projects / folder / name, "class ", encoding) + 6
            await agent.stage(folder + name, place, "Add 'DebuggerDisplay' attribute")
        originals = {name: (two_projects / folder / name).read_bytes() for name in ODD_FILES}
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    for name, original in originals.items():
        now = (two_projects / folder / name).read_bytes()
        assert now != original, name
        _assert_only_inserted(original, now, name)


def _assert_only_inserted(original: bytes, now: bytes, name: str) -> None:
    """All bytes of the original are still there, in order, around what was inserted; byte order mark and line ends too."""
    wide = name == "Utf16File.cs"
    text, changed = (data.decode("utf-16" if wide else "utf-8") for data in (original, now))
    assert now[:2] == original[:2]
    old, new = text.splitlines(keepends=True), changed.splitlines(keepends=True)
    kept = iter(new)
    missing = [line for line in old if not any(line == candidate for candidate in kept)]
    assert missing == [], f"{name}: lines changed that were not edited: {missing}"
    ends = {line[len(line.rstrip("\r\n")) :] for line in old} - {""}
    if len(ends) == 1:
        assert {line[len(line.rstrip("\r\n")) :] for line in new} - {""} == ends, f"{name}: line ends mixed"
