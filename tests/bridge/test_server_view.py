"""``--server-view overlay``: what is staged is in the server's folder, and what cannot be had is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import psutil
import pytest

from lsp_client import showing
from lsp_client.dialects import roslyn
from lsp_client.staged_tree import StagedTree, TreeLost
from schemas.server import ServerStatusData
from schemas.workspaces import WorkspaceStatusData
from tests.bridge.agent import Agent, opened, real_bridge, write_solution
from tests.bridge.played_compiler import compiled
from tests.bridge.promises import keeps
from tests.bridge.staged_texts import stage_texts
from tests.lsp_client.inside import views
from tests.lsp_client.test_process import Watched

__all__ = ["views"]  # a fixture, used by its name

pytestmark = pytest.mark.anyio

APPLE, PEAR, PROGRAM, NUT = "Core/Apple.cs", "Core/Pear.cs", "App/Program.cs", "Core/Nut.cs"
USES_NUT = "class Apple { object a = new Nut(); }\n"


def sources(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.cs")}


@keeps("view.members")
async def test_a_created_file_is_a_member_at_once_and_what_depends_on_it_can_be_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async with compiled(tmp_path, monkeypatch, server_view="overlay") as (made, _):
        made.server.reloads = True
        before = sources(made.root)
        await made.agent.start()
        await stage_texts(made, {NUT: "class Nut { }\n"})
        assert made.server.came_and_went == [("Nut.cs", "created")]
        await stage_texts(made, {APPLE: USES_NUT})
        assert (await made.agent.listing(APPLE)).notes is None
        change = (await made.agent.preview()).diagnostics_change
        assert change is not None
        assert change.unreliable is None
        assert (change.document_count, change.new_errors.total_count) == (2, 0)
        assert made.server.came_and_went == [("Nut.cs", "created")], "not taken away for a look at the disk"
        assert sources(made.root) == before
        await made.agent.undo()
        await made.agent.undo()
        await made.agent.listing(PEAR)
        assert made.server.came_and_went[1:] == [("Nut.cs", "deleted")]
        assert not made.server.inside(made.file(NUT)).exists()
        await made.agent.redo()
        await made.agent.listing(PEAR)
        assert made.server.inside(made.file(NUT)).exists()


@keeps("view.members")
async def test_errors_on_disk_are_those_without_the_created_file_also_where_it_stays_in_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    files = {APPLE: USES_NUT}
    async with compiled(tmp_path, monkeypatch, files, server_view="overlay") as (made, _):
        made.server.reloads = True
        await made.agent.start()
        await stage_texts(made, {NUT: "class Nut { }\n"})
        await stage_texts(made, {APPLE: "// one line more\n" + USES_NUT})
        change = (await made.agent.preview()).diagnostics_change
        assert change is not None
        assert [error.id for error in change.fixed_errors.items or ()] == ["CS0246"]


@keeps("view.members")
async def test_a_deleted_file_is_gone_from_the_servers_folder_and_there_again_for_a_look_at_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    files = {NUT: "class Nut { }\n", APPLE: USES_NUT, PEAR: "class Pear { object p = new Nut(); }\n"}
    async with compiled(tmp_path, monkeypatch, files, server_view="overlay") as (made, _):
        made.server.reloads = True
        await made.agent.start()
        await stage_texts(made, {NUT: None})
        assert not made.server.inside(made.file(NUT)).exists()
        assert made.file(NUT).exists()
        await stage_texts(made, {APPLE: USES_NUT.replace("a =", "b =")})
        change = (await made.agent.preview()).diagnostics_change
        assert change is not None
        assert [(e.path, e.id) for e in change.new_errors.items or ()] == [(APPLE, "CS0246")]
        assert made.server.came_and_went == [("Nut.cs", kind) for kind in ("deleted", "created", "deleted")]
        await made.agent.roll_back()
        await made.agent.listing(PEAR)
        assert made.server.inside(made.file(NUT)).read_text() == "class Nut { }\n"


@keeps("view.members")
async def test_the_gate_lets_a_commit_pass_that_creates_a_file_and_the_server_is_told_no_more_than_it_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    gate = "no-new-compiler-errors"
    async with compiled(tmp_path, monkeypatch, server_view="overlay", commit_validation=gate) as (made, _):
        made.server.reloads = True
        await made.agent.start()
        await stage_texts(made, {NUT: "class Nut { }\n", APPLE: USES_NUT, PEAR: None})
        told = list(made.server.came_and_went)
        await made.agent.commit()
        await made.agent.listing(APPLE)
        assert made.server.came_and_went == told, "its folder had both already"
        inside = made.server.inside(made.root)
        assert sorted(p.name for p in inside.rglob("*.cs")) == ["Apple.cs", "Nut.cs", "Program.cs"]
        assert sources(inside) == sources(made.root)


@keeps("view.members")
async def test_a_created_file_that_the_server_does_not_take_in_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    monkeypatch.setattr(roslyn, "SECOND_LOOK", 0.1)
    async with compiled(tmp_path, monkeypatch, server_view="overlay") as (made, compiler):
        made.server.reloads = True
        compiler.strangers = {"Nut.cs"}
        await made.agent.start()
        await stage_texts(made, {NUT: "class Nut { }\n", APPLE: USES_NUT})
        (note,) = (await made.agent.listing(APPLE)).notes or ()
        assert NUT in note
        assert showing.NO_MEMBER in note
        change = (await made.agent.preview()).diagnostics_change
        assert change is not None
        assert change.unreliable == note
        compiler.strangers = set()
        assert (await made.agent.listing(APPLE)).notes is None, "asked again as long as it is not one"


async def test_what_is_staged_survives_the_death_of_the_server_and_is_in_the_folder_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async with compiled(tmp_path, monkeypatch, server_view="overlay") as (made, _):
        made.server.reloads = True
        await made.agent.start()
        await stage_texts(made, {NUT: "class Nut { }\n"})
        private = tmp_path / "state/roslyn-bridge/views"
        (first,) = private.iterdir()
        made.server.kill()
        await made.agent.listing(NUT)
        (second,) = private.iterdir()
        assert first != second
        assert made.server.inside(made.file(NUT)).exists()
        await made.agent.roll_back()
    assert list(private.iterdir()) == []


async def test_a_stage_that_is_cancelled_while_the_server_takes_its_files_in_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async with compiled(tmp_path, monkeypatch, server_view="overlay") as (made, _):
        await made.agent.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage_texts, made, {NUT: "class Nut { }\n"})
            await made.server.until(lambda: made.server.came_and_went)
            tasks.cancel_scope.cancel()
        made.server.reloads = True
        await made.agent.status()
        revision = made.agent.identity.transaction_revision
        assert (await made.agent.listing(PEAR)).notes is None
        told = made.server.came_and_went[1:]
        assert told == [("Nut.cs", "created")], f"told once more; revision {revision}"


async def test_a_server_killed_while_it_takes_staged_files_in_costs_neither_the_stage_nor_the_disk_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async with compiled(tmp_path, monkeypatch, server_view="overlay") as (made, _):
        before = sources(made.root)
        await made.agent.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stage_texts, made, {NUT: "class Nut { }\n"})
            await made.server.until(lambda: made.server.came_and_went)
            made.server.reloads = True
            made.server.kill()
        assert len(made.server.processes) == 2
        assert made.agent.identity.transaction_revision == 1
        assert (await made.agent.listing(NUT)).notes is None
        assert made.server.inside(made.file(NUT)).exists()
        assert sources(made.root) == before


async def test_when_the_keeper_of_the_view_is_gone_the_server_is_started_anew_with_a_view_that_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async with compiled(tmp_path, monkeypatch, server_view="overlay") as (made, _):
        made.server.reloads = True
        await made.agent.start()
        server = psutil.Process(made.server.processes[-1])
        (writer,) = [child for child in psutil.Process(server.ppid()).children() if child.pid != server.pid]
        watched = Watched(writer.pid)
        writer.kill()
        await watched.gone()
        await stage_texts(made, {NUT: "class Nut { }\n"})
        assert len(made.server.processes) == 2
        assert (await made.agent.listing(APPLE)).notes is None
        assert made.server.inside(made.file(NUT)).exists()


async def test_a_view_that_cannot_be_renewed_after_a_commit_costs_a_new_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async def refused(_tree: StagedTree) -> None:
        raise TreeLost("500 views lie upon each other")

    async with compiled(tmp_path, monkeypatch, server_view="overlay") as (made, _):
        made.server.reloads = True
        await made.agent.start()
        await stage_texts(made, {NUT: "class Nut { }\n"})
        monkeypatch.setattr(StagedTree, "renew", refused)
        await made.agent.commit()
        await made.agent.listing(PEAR)
        assert len(made.server.processes) == 2
        assert made.server.inside(made.file(NUT)).exists()


async def test_a_workspace_whose_folder_was_replaced_as_a_whole_gets_a_server_that_looks_at_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async with compiled(tmp_path, monkeypatch, server_view="overlay") as (made, _):
        made.server.reloads = True
        elsewhere = made.root.with_name("elsewhere")
        made.root.rename(elsewhere)
        shutil.copytree(elsewhere, made.root, symlinks=True)
        made.file(APPLE).write_text("class Apple { } // of the new folder\n")
        await made.agent.actions_after_change(APPLE)
        assert len(made.server.processes) == 2
        assert sources(made.server.inside(made.root)) == sources(made.root)
        await made.agent.start()
        await stage_texts(made, {NUT: "class Nut { }\n"})
        assert made.server.inside(made.file(NUT)).exists()
        assert not made.file(NUT).exists()


@keeps("view.fallback")
async def test_where_the_overlay_cannot_be_had_the_reason_is_said_and_everything_works_as_with_texts(
    tmp_path: Path,
) -> None:
    root = tmp_path / "Läden & mehr"
    async with opened(tmp_path, server_view="overlay", state_directory=root / "state") as made:
        agent = made.agent
        status = await agent.ask(ServerStatusData, "server-status")
        (server,) = status.language_servers or ()
        assert (server.view, server.view_refused) == (
            "text",
            "the state directory lies inside the workspace",
        )
        told = [d for d in made.workspace.load.diagnostics if d.id == "WorkspaceServerViewText"]
        assert [d.severity for d in told] == ["Warning"]
        assert "the state directory lies inside the workspace" in told[0].message
        await agent.start()
        await stage_texts(made, {NUT: "class Nut { }\n"})
        assert made.server.open[made.file(NUT)] == "class Nut { }\n"
        await agent.commit()
        assert made.file(NUT).exists()


async def test_by_default_no_server_has_a_view_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        assert await views_told(made.agent) == [("text", None)] * 2
        assert not (tmp_path / "state/roslyn-bridge/views").exists()
        assert made.server.inside(made.root).joinpath("Shop.slnx").exists()


@keeps("view.members")
async def test_the_embedded_server_works_in_a_view_from_end_to_end(tmp_path: Path, views: None) -> None:
    root = tmp_path / "shop"
    solution = tmp_path / "Link to it: a,b" / write_solution(root).name
    solution.parent.symlink_to(root)
    two = "namespace Shop;\n\npublic class Apple\n{\n}\n\npublic class Fig\n{\n}\n"
    (root / APPLE).write_text(two)
    async with real_bridge(tmp_path, server_view="overlay") as agent:
        await agent.open(solution)
        assert await views_told(agent) == [("overlay", None)] * 2
        await move_fig(agent)
        assert not (root / "Core/Fig.cs").exists()
        (action, *_) = await agent.actions("Core/Fig.cs")
        assert action.title
        await agent.commit()
        assert "class Fig" in (root / "Core/Fig.cs").read_text()
        assert "class Fig" not in (root / APPLE).read_text()
    assert list((tmp_path / "state/roslyn-bridge/views").iterdir()) == []


async def move_fig(agent: Agent) -> None:
    await agent.start()
    place = {"start": len("namespace Shop;\n\npublic class Apple\n{\n}\n\npublic class "), "length": 0}
    found = await agent.actions(APPLE, range=place)
    assert (await agent.stage(next(a for a in found if a.title.startswith("Move type")))).staged


async def views_told(agent: Agent) -> list[tuple[str | None, str | None]]:
    """The view of the one server, and why it is not another one, as the two status tools tell them."""
    status = await agent.ask(ServerStatusData, "server-status")
    (one,) = status.language_servers or ()
    other = (await agent.ask(WorkspaceStatusData, "workspace-status")).server
    assert other is not None
    return [(one.view, one.view_refused), (other.view, other.view_refused)]
