"""The main job over MCP stdio on both real servers: list, stage, preview, undo, redo, commit, roll back."""

from __future__ import annotations

import codecs
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
    run_dotnet(toolchain, two_projects, "build", "TwoProjects.slnx")


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
        is_outside = real_server.kind == "roslyn" and agent.view == "text"
        assert ("notes" in moved) == is_outside, (
            "a created file that is no project member before the commit is named"
        )
        await agent.do("transaction-history", direction="Undo", expectedSnapshot=agent.snapshot)
        assert {a["title"] for a in await agent.actions(SHAPES, place)} == offered


ATTRIBUTE = ("class ", "Add 'DebuggerDisplay' attribute")
USINGS = ("using ", "Remove unnecessary usings")
ODD_FILES = {
    "CrLfFile.cs": ATTRIBUTE,
    "MixedEol.cs": ATTRIBUTE,
    "NoFinalNewline.cs": ATTRIBUTE,
    "BomFile.cs": USINGS,
    "Emoji.cs": USINGS,
    "Utf16File.cs": USINGS,
}
"""Each odd file with the place and title of an action that both servers offer there: one inserts, one deletes."""


@pytest.mark.anyio
async def test_an_edit_keeps_encoding_byte_order_mark_and_line_ends_of_odd_files(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    folder = "src/Library/Encodings/"
    originals = {name: (two_projects / folder / name).read_bytes() for name in ODD_FILES}
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await opened(agent, two_projects)
        await agent.do("transaction-start")
        for name, (needle, title) in ODD_FILES.items():
            place = offset_of(two_projects / folder / name, needle, encoding_of(name)) + len(needle)
            await agent.stage(folder + name, place, title)
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    for name, original in originals.items():
        now = (two_projects / folder / name).read_bytes()
        assert now != original, name
        assert_untouched_lines_kept(original, now, name)


def encoding_of(name: str) -> str:
    return "utf-16" if name == "Utf16File.cs" else "utf-8-sig"


def assert_untouched_lines_kept(original: bytes, now: bytes, name: str) -> None:
    """One side's lines, line ends included, are all found in order on the other; mark and uniform ends stay."""
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16_LE):
        assert now.startswith(mark) == original.startswith(mark), f"{name}: the byte order mark changed"
    if name == "MixedEol.cs":
        # The servers replace the line end next to their insert; in a mixed file there is no right one to adapt it to.
        body = original[original.index(b"private int value") : original.index(b"return result;")]
        assert body in now, f"{name}: line ends changed away from the edit"
        return
    old, new = (data.decode(encoding_of(name)).splitlines(keepends=True) for data in (original, now))
    shorter, longer = sorted((old, new), key=len)
    assert [line for line in shorter if line not in longer] == [], (
        f"{name}: lines changed that no edit touched"
    )
    ends = line_ends(old)
    if len(ends) == 1:
        assert line_ends(new) == ends, f"{name}: line ends are mixed now"


def line_ends(lines: list[str]) -> set[str]:
    return {line[len(line.rstrip("\r\n")) :] for line in lines} - {""}
