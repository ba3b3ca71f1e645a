"""Selectors of workspaces, documents, projects and places: which code each mistake has, and in which order it is seen."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.bridge.agent import Agent, Scene, opened, scene, write_solution
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"
NOBODY = "01234567-89ab-cdef-0123-456789abcdef"


async def two(made: Scene) -> Mapping[str, str]:
    await made.agent.open(made.solution, alias="first")
    first = made.agent.identity.workspace_id
    await made.agent.open(write_solution(made.root.parent / "second"), alias="second")
    return {"first": first, "second": made.agent.identity.workspace_id}


@keeps("select.workspace")
async def test_each_wrong_workspace_selector_has_its_code(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        ids = await two(made)

        async def code(selector: object) -> str:
            refusal = await made.agent.refused("workspace-status", workspace=selector)
            assert refusal.kind == "ReviseRequest"
            return refusal.code

        assert await code(None) == "WorkspaceSelectorRequired"
        assert await code({}) == "WorkspaceSelectorInvalid"
        for unknown in (
            {"alias": "third"},
            {"alias": "First"},
            {"workspaceId": NOBODY},
            {"path": "/nowhere"},
            {"path": "relative"},
            {"path": "/a\0b"},
            {"path": "/" + "x" * 5000},
            {"alias": "first", "path": "/nowhere"},
        ):
            assert await code(unknown) == "WorkspaceSelectorNotFound", unknown
        assert await code({"alias": "first", "workspaceId": ids["second"]}) == "WorkspaceSelectorMismatch"
        assert await code({"alias": "second", "path": str(made.solution)}) == "WorkspaceSelectorMismatch"


@keeps("select.workspace")
async def test_every_name_of_a_workspace_finds_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        ids = await two(made)
        link = tmp_path / "link"
        link.symlink_to(made.root, target_is_directory=True)
        for selector in (
            {"alias": "first"},
            {"workspaceId": ids["first"]},
            {"workspaceId": ids["first"].upper()},
            {"path": str(made.solution)},
            {"path": str(made.root)},
            {"path": str(link / "Shop.slnx")},
            {"alias": "first", "workspaceId": ids["first"], "path": str(made.solution)},
        ):
            await made.agent.status(workspace=selector)
            assert made.agent.identity.workspace_id == ids["first"], selector
        names = (await made.agent.list_workspaces()).workspaces
        assert [identity.alias for identity in names] == ["first", "second"]


@keeps("select.workspace")
async def test_a_folder_that_stands_for_two_open_workspaces_names_neither(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        await made.agent.open(made.solution)
        made.file("Also.slnx").write_text('<Solution><Project Path="Core/Core.csproj" /></Solution>')
        await made.agent.open(made.file("Also.slnx"))
        refusal = await made.agent.refused("workspace-status", workspace={"path": str(made.root)})
        assert refusal.code == "WorkspaceSelectorNotFound"
        await made.agent.status(workspace={"path": str(made.solution)})


async def listing_code(agent: Agent, document: object, **more: object) -> str:
    refusal = await agent.refused("list-code-actions", document=document, kinds="All", **more)
    assert refusal.kind == (None if refusal.code == "InvalidRange" else "ReviseRequest")
    return refusal.code


@keeps("select.document")
async def test_each_wrong_document_selector_has_its_code(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        known = (await agent.actions(FILE))[0].location.document
        for invalid in (
            {},
            {"path": FILE, "documentId": known.document_id},
            {"path": ""},
            {"path": "."},
            {"path": "../elsewhere/A.cs"},
            {"path": "Core/../Core/Apple.cs"},
            {"path": str(made.file(FILE))},
            {"path": "Core/\0.cs"},
        ):
            assert await listing_code(agent, invalid) == "DocumentSelectorInvalid", invalid
        for missing in (
            {"path": "Core/Nothing.cs"},
            {"path": "Core"},
            {"path": "Core/Core.csproj"},
            {"path": "core/apple.cs"},
            {"path": "x" * 5000},
            {"documentId": NOBODY},
            {"documentId": ""},
            {"path": FILE, "project": {"name": "App"}},
        ):
            assert await listing_code(agent, missing) == "DocumentNotFound", missing
        for project in (
            {"name": "Nothing"},
            {"name": "Core", "targetFramework": "net1.0"},
            {"projectId": NOBODY},
        ):
            assert await listing_code(agent, {"path": FILE, "project": project}) == "ProjectNotFound", project
        assert await listing_code(agent, {"path": FILE, "project": {}}) == "ProjectSelectorInvalid"


@keeps("select.document")
async def test_every_name_of_a_document_finds_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        known = (await made.agent.actions(FILE))[0].location.document
        for selector in (
            {"path": "Core\\Apple.cs"},
            {"path": "./Core/Apple.cs"},
            {"documentId": known.document_id},
            {"path": FILE, "project": {"name": "Core"}},
            {"path": FILE, "project": {"projectId": known.project_id, "path": "Core/Core.csproj"}},
            {"path": FILE, "project": {"path": "Core\\Core.csproj", "targetFramework": "net8.0"}},
        ):
            (action,) = await made.agent.actions(FILE, document=selector)
            assert action.location.document == known


@keeps("select.document")
async def test_a_missing_document_is_refused_with_those_of_its_name(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        refusal = await made.agent.refused("list-code-actions", document={"path": "Apple.cs"}, kinds="All")
        assert refusal.code == "DocumentNotFound"
        assert FILE in refusal.message


@keeps("select.document")
async def test_a_file_of_two_projects_needs_its_project_named(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        project = made.file("App/App.csproj")
        item = '<ItemGroup><Compile Include="../Core/Apple.cs" /></ItemGroup></Project>'
        project.write_text(project.read_text().replace("</Project>", item))
        await made.agent.open(made.solution)
        refusal = await made.agent.refused("list-code-actions", document={"path": FILE}, kinds="All")
        assert (refusal.code, refusal.kind) == ("DocumentAmbiguous", "ReviseRequest")
        assert "App (net8.0), Core (net8.0)" in refusal.message
        ids = set()
        for name in ("App", "Core"):
            (action,) = await made.agent.actions(FILE, document={"path": FILE, "project": {"name": name}})
            ids.add(action.location.document.document_id)
        assert len(ids) == 2


@keeps("select.range")
async def test_a_range_must_lie_in_the_text_and_between_characters(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.file(FILE).write_text("// 🍎\r\nclass A { }", encoding="utf-8")
        await made.agent.actions_after_change(FILE)
        length = len("// 🍎\r\nclass A { }".encode("utf-16-le")) // 2
        for start, stretch in ((length + 1, 0), (0, length + 1), (4, 0), (0, 4), (2**31 - 1, 2**31 - 1)):
            code = await listing_code(made.agent, {"path": FILE}, range={"start": start, "length": stretch})
            assert code == "InvalidRange", (start, stretch)
        for start, stretch in ((length, 0), (0, length), (3, 2), (5, 0)):
            await made.agent.actions(FILE, range={"start": start, "length": stretch})


@keeps("select.snapshot-first")
async def test_a_stale_snapshot_is_seen_before_document_and_range(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        stale = {**made.agent.snapshot, "workspaceEpoch": 7}
        for document, place in (({"path": "Core/Nothing.cs"}, None), ({"path": FILE}, {"start": 10**6})):
            refusal = await made.agent.refused(
                "list-code-actions", document=document, kinds="All", range=place, expectedSnapshot=stale
            )
            assert (refusal.code, refusal.kind) == ("SnapshotMismatch", "ReviseRequest")
