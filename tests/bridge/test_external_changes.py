"""What happens on disk without us: picked up outside of a transaction, a conflict inside of one, never overwritten."""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import psutil
import pytest

from tests.bridge.agent import APPLE, Scene, opened
from tests.bridge.played_server import Offer, create
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"
LISTING: Mapping[str, object] = {"document": {"path": FILE}, "kinds": "All"}


async def refusals_side_by_side(made: Scene) -> list[str]:
    """The codes with which four listings are refused that are sent at once."""
    codes: list[str] = []

    async def look() -> None:
        codes.append((await made.agent.refused("list-code-actions", **LISTING)).code)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(look)
    return codes


def write_other_text(made: Scene) -> None:
    made.file(FILE).write_text("class Other { }\n", encoding="utf-8")


def add_a_file(made: Scene) -> None:
    made.file("Core/Sub").mkdir()
    made.file("Core/Sub/New.cs").write_text("class New { }\n", encoding="utf-8")


def delete_a_file(made: Scene) -> None:
    made.file("Core/Pear.cs").unlink()


def rename_a_file(made: Scene) -> None:
    made.file("Core/Pear.cs").rename(made.file("Core/Quince.cs"))


def change_a_project(made: Scene) -> None:
    project = made.file("App/App.csproj")
    item = '<ItemGroup><Compile Include="../Core/Pear.cs" /></ItemGroup></Project>'
    project.write_text(project.read_text().replace("</Project>", item), encoding="utf-8")


def change_the_solution(made: Scene) -> None:
    made.solution.write_text('<Solution><Project Path="Core/Core.csproj" /></Solution>', encoding="utf-8")


def add_build_properties(made: Scene) -> None:
    made.file("Directory.Build.props").write_text("<Project />\n", encoding="utf-8")


def add_settings_of_a_folder(made: Scene) -> None:
    made.file("Core/Sub").mkdir()
    made.file("Core/Sub/.editorconfig").write_text("[*.cs]\nindent_size = 2\n", encoding="utf-8")


CHANGES: Mapping[str, tuple[Callable[[Scene], None], str, str, int, int]] = {
    # what happens, its kind and path as told, documents afterwards, server processes afterwards
    "another text": (write_other_text, "Changed", FILE, 3, 1),
    "a new file": (add_a_file, "Created", "Core/Sub/New.cs", 4, 1),
    "a deleted file": (delete_a_file, "Deleted", "Core/Pear.cs", 2, 1),
    "a renamed file": (rename_a_file, "Renamed", "Core/Quince.cs", 3, 1),
    "a changed project": (change_a_project, "Changed", "App/App.csproj", 4, 2),
    "a changed solution": (change_the_solution, "Changed", "Shop.slnx", 2, 2),
    "new settings of a folder": (add_settings_of_a_folder, "Created", "Core/Sub/.editorconfig", 3, 2),
    "new build properties": (add_build_properties, "Created", "Directory.Build.props", 3, 2),
}


# --- outside of a transaction -------------------------------------------------------------------------------


@keeps("external.picked-up", "external.told")
@pytest.mark.parametrize("what", CHANGES)
async def test_a_change_is_picked_up_before_the_next_answer(tmp_path: Path, what: str) -> None:
    change, _, _, documents, processes = CHANGES[what]
    async with opened(tmp_path) as made:
        agent = made.agent
        before = agent.identity
        await agent.actions(FILE)
        change(made)
        asked = made.server.heard.count("textDocument/codeAction")
        refusal = await agent.refused("list-code-actions", **LISTING)
        assert refusal.code == "SnapshotMismatch"
        assert made.server.heard.count("textDocument/codeAction") == asked
        status = await agent.status()
        assert (status.state, status.reload_required, status.external_change) == ("Ready", False, None)
        assert status.document_count == documents
        assert agent.identity.workspace_epoch == before.workspace_epoch + 1
        assert agent.identity.snapshot_id != before.snapshot_id
        (action,) = await agent.actions(FILE)
        assert action.title == ("Add line 1" if what == "another text" else "Add line 5")
        assert len(made.server.processes) == processes
        if processes == 1:
            assert "workspace/didChangeWatchedFiles" in made.server.heard
        assert "syntax only" in [
            d.message for d in (await agent.status(detail="Full")).load_diagnostics or ()
        ]


@keeps("external.picked-up")
@pytest.mark.parametrize("tool", ["transaction-start", "workspace-reload"])
async def test_the_first_call_after_a_change_works_on_the_new_text(tmp_path: Path, tool: str) -> None:
    async with opened(tmp_path) as made:
        await made.agent.actions(FILE)
        write_other_text(made)
        await (made.agent.start() if tool == "transaction-start" else made.agent.reload())
        assert made.agent.identity.workspace_epoch == 2
        if tool == "workspace-reload":
            await made.agent.start()
        await made.agent.stage_first(FILE)
        await made.agent.commit()
        assert made.file(FILE).read_text(encoding="utf-8") == "// line 1\nclass Other { }\n"


@keeps("external.told")
@pytest.mark.parametrize(("late", "documents"), [("Pear.cs", 3), ("New.cs", 4)])
async def test_a_change_that_comes_while_another_is_read_reaches_the_server_as_well(
    tmp_path: Path, late: str, documents: int
) -> None:
    async with opened(tmp_path) as made:
        loader = made.workspace._loader
        capture = loader.capture_again

        async def slow_capture(load: object) -> object:
            made.file(f"Core/{late}").write_text("class Late { }\n", encoding="utf-8")
            loader.capture_again = capture  # type: ignore[method-assign]  # the moment between two looks cannot be met otherwise
            return await capture(load)  # type: ignore[arg-type]

        loader.capture_again = slow_capture  # type: ignore[method-assign,assignment]
        write_other_text(made)
        await made.agent.actions_after_change(FILE)
        assert {path.name for path in made.server.files_changed} == {"Apple.cs", late}
        assert (await made.agent.status()).document_count == documents
        assert await made.agent.actions(f"Core/{late}")
        assert made.agent.identity.workspace_epoch == 2


@keeps("external.same-bytes", "external.own")
@pytest.mark.parametrize("touched", ["time", "rewritten", "builds", "elsewhere"])
async def test_the_same_bytes_and_files_of_builds_are_no_change(tmp_path: Path, touched: str) -> None:
    async with opened(tmp_path) as made:
        await made.agent.actions(FILE)
        before = made.agent.identity
        path = made.file(FILE)
        if touched == "time":
            os.utime(path, (1, 1))
        elif touched == "rewritten":
            copy = path.with_suffix(".new")
            copy.write_bytes(path.read_bytes())
            copy.replace(path)
        elif touched == "builds":
            for folder in ("Core/bin/Debug", "Core/obj", ".vs", ".git"):
                made.file(folder).mkdir(parents=True, exist_ok=True)
                made.file(f"{folder}/Generated.cs").write_text("class G { }")
        else:
            made.file("Core/notes.txt").write_text("no input")
            made.file("README.md").write_text("no input")
        await made.agent.actions(FILE)
        assert made.agent.identity == before


@keeps("external.own")
async def test_our_own_commit_is_no_change(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        new = made.file("Core/Deep/Down/New.cs")
        made.server.offers = [Offer("Create", lambda _path, _text: create(new, "class New { }\n"))]
        await agent.start()
        await agent.stage_first(FILE)
        await agent.commit()
        after = agent.identity
        for _ in range(2):
            await agent.actions(FILE)
            await agent.actions("Core/Deep/Down/New.cs")
            assert agent.identity == after
        new.write_text("class Foreign { }\n", encoding="utf-8")
        assert (await agent.refused("list-code-actions", **LISTING)).code == "SnapshotMismatch"


@keeps("external.report", "reload.always")
@pytest.mark.parametrize("what", CHANGES)
async def test_with_report_a_change_is_said_until_a_reload(tmp_path: Path, what: str) -> None:
    change, kind, path, documents, _ = CHANGES[what]
    async with opened(tmp_path, external_changes="report") as made:
        agent = made.agent
        change(made)
        for tool, arguments in (("list-code-actions", LISTING), ("transaction-start", {})):
            refusal = await agent.refused(tool, **arguments)
            assert refusal.code == "WorkspaceOutOfDate"
            assert (refusal.kind, refusal.tools) == ("CallTool", ("workspace-reload",))
            assert path in refusal.message
        status = await agent.status()
        assert (status.state, status.reload_required) == ("WorkspaceOutOfDate", True)
        assert status.external_change is not None
        assert (status.external_change.kind, status.external_change.path) == (kind, path)
        reloaded = await agent.reload()
        assert reloaded.document_count == documents
        status = await agent.status()
        assert (status.state, status.external_change) == ("Ready", None)
        assert agent.identity.workspace_epoch == 2
        await agent.start()
        await agent.stage_first(FILE)


@keeps("external.picked-up")
async def test_a_change_that_cannot_be_read_is_said_until_it_can(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        good = made.solution.read_text(encoding="utf-8")
        for bad in ("<Solution", "<Solution />"):
            made.solution.write_text(bad, encoding="utf-8")
            for _ in range(2):
                refusal = await agent.refused("list-code-actions", **LISTING)
                assert (refusal.code, refusal.tools) == ("WorkspaceOutOfDate", ("workspace-reload",))
            assert (await agent.status()).state == "WorkspaceOutOfDate"
        reload = await agent.refused("workspace-reload")
        assert reload.code == "WorkspaceLoadFailed"
        made.solution.write_text(good, encoding="utf-8")
        assert (await agent.refused("list-code-actions", **LISTING)).code == "SnapshotMismatch"
        assert (await agent.status()).state == "Ready"
        assert await agent.actions(FILE)


async def test_a_whole_tree_that_vanishes_is_said_and_the_workspace_can_be_closed(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        shutil.rmtree(made.root)
        assert (await made.agent.refused("list-code-actions", **LISTING)).code == "WorkspaceOutOfDate"
        assert (await made.agent.refused("transaction-start")).code == "WorkspaceOutOfDate"
        await made.agent.close()
        assert not psutil.pid_exists(made.server.processes[-1])


# --- inside of a transaction --------------------------------------------------------------------------------


@keeps("external.conflict", "preview.conflicted", "workspace.states")
@pytest.mark.parametrize("what", CHANGES)
async def test_in_a_transaction_any_change_is_a_conflict_and_rolling_back_leads_on(
    tmp_path: Path, what: str
) -> None:
    change, kind, path, documents, _ = CHANGES[what]
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first(FILE)
        (action,) = await agent.actions(FILE)
        staged = agent.identity
        change(made)
        for tool, arguments in (
            ("list-code-actions", LISTING),
            ("stage-code-action", {"actionId": action.action_id}),
            ("transaction-history", {"direction": "Undo"}),
            ("transaction-commit", {}),
            ("transaction-start", {}),
        ):
            refusal = await agent.refused(tool, **arguments)
            assert refusal.code == "TransactionConflicted", tool
            assert (refusal.kind, refusal.tools) == ("CallTool", ("transaction-rollback",))
            assert path in refusal.message
        status = await agent.status()
        assert status.state == "TransactionConflicted"
        assert status.external_change is not None
        assert status.external_change.kind == kind
        assert status.transaction is not None
        assert (status.transaction.can_mutate, status.transaction.can_commit) == (False, False)
        assert status.transaction.can_rollback
        preview = await agent.preview(document={"path": FILE}, includeDiff=True)
        assert preview.diff is not None
        assert preview.diff.hunks[0].lines[0] == "+// line 5"
        assert agent.identity == staged
        assert (await agent.roll_back()).state == "Ready"
        assert (await agent.status()).document_count == documents
        assert agent.identity.workspace_epoch == 2
        await agent.start()
        await agent.stage_first(FILE)
        await agent.commit()


@keeps("external.conflict", "external.report")
async def test_with_report_a_rolled_back_conflict_still_needs_its_reload(tmp_path: Path) -> None:
    async with opened(tmp_path, external_changes="report") as made:
        await made.agent.start()
        write_other_text(made)
        assert (await made.agent.refused("list-code-actions", **LISTING)).code == "TransactionConflicted"
        assert (await made.agent.roll_back()).state == "WorkspaceOutOfDate"
        assert (await made.agent.refused("transaction-start")).code == "WorkspaceOutOfDate"
        await made.agent.reload()
        await made.agent.start()


@keeps("external.conflict")
async def test_a_conflict_that_cannot_be_read_after_the_rollback_is_out_of_date(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        good = made.solution.read_text(encoding="utf-8")
        await made.agent.start()
        await made.agent.stage_first(FILE)
        made.solution.write_text("<Solution", encoding="utf-8")
        assert (await made.agent.refused("transaction-commit")).code == "TransactionConflicted"
        assert (await made.agent.roll_back()).state == "WorkspaceOutOfDate"
        made.solution.write_text(good, encoding="utf-8")
        await made.agent.start()


@keeps("external.conflict", "parallel.calls")
async def test_two_queries_that_meet_a_change_side_by_side_are_both_told(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        write_other_text(made)
        assert await refusals_side_by_side(made) == ["TransactionConflicted"] * 4


@keeps("external.picked-up", "parallel.calls")
async def test_queries_that_meet_a_change_side_by_side_pick_it_up_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        write_other_text(made)
        assert await refusals_side_by_side(made) == ["SnapshotMismatch"] * 4
        await made.agent.status()
        assert made.agent.identity.workspace_epoch == 2


@keeps("commit.conflict")
@pytest.mark.parametrize("what", ["changed", "deleted", "created", "directory"])
async def test_a_target_that_is_not_what_was_read_is_never_overwritten(tmp_path: Path, what: str) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        new = made.file("Core/New.cs")
        made.server.offers = [
            Offer("Both", lambda path, _text: [*create(new, "class New { }\n"), *_edit(path)])
        ]
        await agent.start()
        await agent.stage_first(FILE)
        path = made.file(FILE)
        if what == "changed":
            path.write_text("// theirs\n", encoding="utf-8")
        elif what == "deleted":
            path.unlink()
        elif what == "created":
            new.write_text("// theirs\n", encoding="utf-8")
        else:
            new.mkdir()
        before = tree(made.root)
        refusal = await agent.refused("transaction-commit")
        assert (refusal.code, refusal.tools) == ("TransactionConflicted", ("transaction-rollback",))
        assert tree(made.root) == before
        assert (await agent.status()).state == "TransactionConflicted"
        assert (await agent.preview()).transaction is not None
        assert (await agent.roll_back()).state == "Ready"
        assert tree(made.root) == before


def _edit(path: Path) -> list[dict[str, object]]:
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    edits = [{"range": place, "newText": "// ours\n"}]
    return [{"textDocument": {"uri": path.as_uri(), "version": None}, "edits": edits}]


def tree(root: Path) -> dict[str, bytes | None]:
    """All entries below a root, except in the folder where commits keep their artifacts."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
        if ".vs" not in path.parts
    }


@keeps("commit.conflict")
async def test_a_file_outside_of_all_inputs_is_compared_as_well(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        stray = made.file("Stray.cs")
        stray.write_text(APPLE, encoding="utf-8")
        made.server.offers = [Offer("Stray", lambda _path, _text: _edit(stray))]
        await made.agent.start()
        await made.agent.stage_first(FILE)
        stray.write_text("// theirs\n", encoding="utf-8")
        refusal = await made.agent.refused("transaction-commit")
        assert refusal.code == "TransactionConflicted"
        assert "Stray.cs" in refusal.message
        assert stray.read_text(encoding="utf-8") == "// theirs\n"
        await made.agent.roll_back()
        await made.agent.start()
        await made.agent.stage_first(FILE)
        await made.agent.commit()
        assert stray.read_text(encoding="utf-8") == "// ours\n// theirs\n"


@keeps("external.conflict", "external.picked-up")
@pytest.mark.parametrize(
    "name",
    ["Directory.Build.targets", "Core/Directory.Packages.props", "global.json", ".editorconfig"],
)
async def test_a_file_that_governs_projects_is_an_input_without_msbuild_too(
    tmp_path: Path, name: str
) -> None:
    async with opened(tmp_path) as made:
        agent, path = made.agent, made.file(name)
        await agent.start()
        path.write_text("one", encoding="utf-8")
        refusal = await agent.refused("list-code-actions", **LISTING)
        assert (refusal.code, name in refusal.message) == ("TransactionConflicted", True)
        await agent.roll_back()
        for change in (lambda: path.write_text("two", encoding="utf-8"), path.unlink):
            before = agent.identity.workspace_epoch
            change()
            await agent.actions_after_change(FILE)
            assert agent.identity.workspace_epoch == before + 1
