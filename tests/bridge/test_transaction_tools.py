"""Transactions through their tools: what is staged, what it is called, and what becomes of it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.bridge.agent import APPLE, PEAR, Agent, Scene, opened, scene, write_solution
from tests.bridge.played_server import Json, Offer, create, delete, insert, rename
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"


async def stage_lines(agent: Agent, count: int, path: str = FILE) -> None:
    for _ in range(count):
        await agent.stage_first(path)


# --- identity -----------------------------------------------------------------------------------------------


@keeps("snapshot.start", "snapshot.stage", "snapshot.undo", "snapshot.rollback")
async def test_each_revision_has_an_id_that_comes_back_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        loaded = agent.identity
        assert loaded.transaction_revision is None
        await agent.start()
        begun = agent.identity
        assert (begun.snapshot_id, begun.transaction_revision) == (loaded.snapshot_id, 0)
        seen = [begun]
        for revision in (1, 2):
            await agent.stage_first(FILE)
            assert agent.identity.transaction_revision == revision
            seen.append(agent.identity)
        assert len({snapshot.snapshot_id for snapshot in seen}) == 3
        for expected in (seen[1], seen[0]):
            await agent.undo()
            assert agent.identity == expected
        for expected in (seen[1], seen[2]):
            await agent.redo()
            assert agent.identity == expected
        await agent.roll_back()
        assert agent.identity == loaded


@keeps("snapshot.branch")
async def test_staging_after_undo_is_a_new_state_and_drops_the_old_branch(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await stage_lines(agent, 2)
        old = agent.identity
        await agent.undo()
        await agent.stage_first(FILE)
        assert agent.identity.transaction_revision == old.transaction_revision
        assert agent.identity.snapshot_id != old.snapshot_id
        refusal = await agent.refused("transaction-history", direction="Redo")
        assert refusal.code == "TransactionHistoryUnavailable"
        stale = await agent.refused(
            "transaction-history", direction="Undo", expectedSnapshot=old.model_dump(mode="json")
        )
        assert stale.code == "SnapshotMismatch"


@keeps("snapshot.commit", "commit.writes")
async def test_a_commit_writes_the_staged_text_under_a_new_id_in_the_same_epoch(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        before = agent.identity
        await agent.start()
        await agent.stage_first(FILE)
        staged = agent.identity
        done = await agent.commit()
        assert done.committed
        after = agent.identity
        assert after.transaction_revision is None
        assert after.workspace_epoch == before.workspace_epoch
        assert len({before.snapshot_id, staged.snapshot_id, after.snapshot_id}) == 3
        assert made.file(FILE).read_text(encoding="utf-8") == f"// line 5\n{APPLE}"
        assert (await agent.status()).state == "Ready"


@keeps("snapshot.echo", "snapshot.null-is-not-zero")
async def test_any_other_member_of_a_snapshot_is_a_mismatch(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        before = dict(agent.snapshot)
        await agent.start()
        await agent.actions(FILE)
        current = dict(agent.snapshot)
        other = "01234567-89ab-cdef-0123-456789abcdef"
        wrong: Sequence[dict[str, object]] = (
            before,  # null is not 0
            {**current, "workspaceId": other},
            {**current, "workspaceEpoch": 2},
            {**current, "snapshotId": other},
            {**current, "transactionRevision": 1},
        )
        for snapshot in wrong:
            for tool, arguments in (
                ("list-code-actions", {"document": {"path": FILE}, "kinds": "All"}),
                ("stage-code-action", {"actionId": other}),
                ("transaction-history", {"direction": "Undo"}),
                ("transaction-commit", {}),
            ):
                refusal = await agent.refused(tool, expectedSnapshot=snapshot, **arguments)
                assert refusal.code == "SnapshotMismatch", (tool, snapshot)
        await agent.actions(FILE, expectedSnapshot=current)


# --- the slot -----------------------------------------------------------------------------------------------


@keeps("transaction.twice")
async def test_a_second_start_is_refused_and_the_first_transaction_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        await made.agent.stage_first(FILE)
        refusal = await made.agent.refused("transaction-start")
        assert refusal.code == "TransactionAlreadyActive"
        assert refusal.tools == ("transaction-commit", "transaction-rollback")
        assert len((await made.agent.preview()).documents) == 1


async def two_workspaces(made: Scene) -> None:
    await made.agent.open(made.solution, alias="first")
    await made.agent.open(write_solution(made.root.parent / "other"), alias="second")


@keeps("transaction.one-slot", "list.owner")
async def test_the_process_has_one_transaction_and_the_refusal_names_its_owner(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        agent = made.agent
        await two_workspaces(made)
        first, second = {"alias": "first"}, {"alias": "second"}
        await agent.start(workspace=first)
        assert (await agent.list_workspaces()).transaction_owner_workspace_id == agent.identity.workspace_id
        refusal = await agent.refused("transaction-start", workspace=second)
        assert refusal.code == "TransactionOwnedByWorkspace"
        assert "first" in refusal.message
        assert refusal.kind == "ChooseTool"
        await agent.status(workspace=second)
        staging = await agent.refused(
            "stage-code-action", workspace=second, actionId="01234567-89ab-cdef-0123-456789abcdef"
        )
        assert staging.code == "TransactionOwnedByWorkspace"
        await agent.roll_back(workspace=first)
        assert (await agent.list_workspaces()).transaction_owner_workspace_id is None
        await agent.start(workspace=second)


@keeps("transaction.one-slot")
async def test_an_owner_without_alias_is_named_by_its_path(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        agent = made.agent
        await agent.open(made.solution)
        await agent.open(write_solution(tmp_path / "other"), alias="second")
        await agent.start(workspace={"path": str(made.solution)})
        refusal = await agent.refused("transaction-start", workspace={"alias": "second"})
        assert str(made.solution) in refusal.message


@keeps("transaction.needed")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("transaction-preview", {}),
        ("transaction-history", {"direction": "Undo"}),
        ("transaction-commit", {}),
        ("transaction-rollback", {}),
        ("stage-code-action", {"actionId": "01234567-89ab-cdef-0123-456789abcdef"}),
    ],
)
async def test_without_a_transaction_the_caller_is_told_to_start_one(
    tmp_path: Path, tool: str, arguments: dict[str, object]
) -> None:
    async with opened(tmp_path) as made:
        refusal = await made.agent.refused(tool, **arguments)
        assert refusal.code == "NoActiveTransaction"
        assert (refusal.kind, refusal.tools) == ("CallTool", ("transaction-start",))


# --- history and its limits ---------------------------------------------------------------------------------


@keeps("transaction.info")
async def test_the_info_says_what_may_be_done_next(tmp_path: Path) -> None:
    async with opened(tmp_path, max_transaction_revisions=2) as made:
        agent = made.agent
        info = await agent.start()
        assert (info.revision, info.revision_count, info.max_revisions, info.remaining_revisions) == (
            0,
            0,
            2,
            2,
        )
        assert (info.can_mutate, info.can_undo, info.can_redo) == (True, False, False)
        assert (info.can_commit, info.can_rollback) == (False, True)
        await stage_lines(agent, 2)
        full = (await agent.preview()).transaction
        assert full is not None
        assert (full.revision, full.revision_count, full.remaining_revisions) == (2, 2, 0)
        assert (full.can_mutate, full.can_undo, full.can_redo, full.can_commit) == (False, True, False, True)
        back = await agent.undo()
        assert (back.revision, back.revision_count, back.remaining_revisions) == (1, 2, 1)
        assert (back.can_mutate, back.can_undo, back.can_redo, back.can_commit) == (True, True, True, True)


@keeps("transaction.capacity")
async def test_at_the_limit_nothing_is_asked_and_undo_makes_room(tmp_path: Path) -> None:
    async with opened(tmp_path, max_transaction_revisions=1) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first(FILE)
        (action,) = await agent.actions(FILE)
        asked = len(made.server.heard)
        refusal = await agent.refused("stage-code-action", actionId=action.action_id)
        assert refusal.code == "RevisionCapacityReached"
        assert refusal.tools == ("transaction-history",)
        assert len(made.server.heard) == asked
        await agent.undo()
        await agent.stage_first("Core/Pear.cs")
        (changed,) = (await agent.preview()).documents
        assert changed.document is not None
        assert changed.document.path == "Core/Pear.cs"


@keeps("transaction.capacity")
async def test_the_limit_is_checked_before_the_snapshot_and_the_action(tmp_path: Path) -> None:
    async with opened(tmp_path, max_transaction_revisions=1) as made:
        await made.agent.start()
        stale = dict(made.agent.snapshot)
        await made.agent.stage_first(FILE)
        refusal = await made.agent.refused(
            "stage-code-action", actionId="01234567-89ab-cdef-0123-456789abcdef", expectedSnapshot=stale
        )
        assert refusal.code == "RevisionCapacityReached"


@keeps("transaction.history-ends")
async def test_there_is_nothing_before_the_first_and_after_the_last_revision(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        for direction in ("Undo", "Redo"):
            refusal = await made.agent.refused("transaction-history", direction=direction)
            assert (refusal.code, refusal.kind) == ("TransactionHistoryUnavailable", None)


@keeps("transaction.no-change", "transaction.no-change-after-branch")
async def test_an_action_that_leaves_the_text_as_it_is_adds_no_revision(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first(FILE)
        await agent.undo()
        before = agent.identity
        everything = {"start": {"line": 0, "character": 0}, "end": {"line": 5, "character": 0}}

        def same(path: Path, text: str) -> list[Json]:
            edit = {"range": everything, "newText": text}
            return [{"textDocument": {"uri": path.as_uri(), "version": None}, "edits": [edit]}]

        made.server.offers = [Offer("Change nothing", same)]
        staged = await agent.stage_first(FILE)
        assert not staged.staged
        assert staged.summary
        assert staged.transaction is not None
        assert staged.transaction.revision == 0
        assert agent.identity == before
        assert (await agent.redo()).revision == 1


# --- preview ------------------------------------------------------------------------------------------------


def changes_of_every_kind(root: Path) -> Offer:
    def edit(path: Path, _text: str) -> list[Json]:
        return [
            delete(root / "App/Program.cs"),
            insert(path, "// changed\n"),
            *create(root / "Core/Zebra.cs", "class Zebra { }\n"),
            *create(root / "Core/Ant.cs", "class Ant { }\n"),
        ]

    return Offer("Everything", edit)


@keeps("preview.order", "commit.writes")
async def test_a_preview_lists_added_then_modified_then_deleted_files_and_the_commit_does_just_that(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        made.server.offers = [changes_of_every_kind(made.root)]
        await agent.start()
        await agent.stage_first(FILE)
        listed = [
            (d.change_kind, d.document.path if d.document else None)
            for d in (await agent.preview()).documents
        ]
        assert listed == [
            ("Added", "Core/Ant.cs"),
            ("Added", "Core/Zebra.cs"),
            ("Modified", "Core/Apple.cs"),
            ("Deleted", "App/Program.cs"),
        ]
        summaries = [d.preview for d in (await agent.preview()).documents]
        assert [(s.added_lines, s.removed_lines) for s in summaries if s] == [(1, 0), (1, 0), (1, 0), (0, 1)]
        await agent.commit()
        assert not made.file("App/Program.cs").exists()
        assert made.file("Core/Zebra.cs").read_text(encoding="utf-8") == "class Zebra { }\n"
        assert made.file(FILE).read_text(encoding="utf-8") == f"// changed\n{APPLE}"
        assert (await agent.status()).document_count == 4


@keeps("preview.order")
async def test_a_preview_is_against_the_disk_not_against_the_revision_before(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await stage_lines(agent, 3)
        (changed,) = (await agent.preview()).documents
        assert changed.preview is not None
        assert changed.preview.added_lines == 3
        diff = (await agent.preview(document={"path": FILE}, includeDiff=True)).diff
        assert diff is not None
        (hunk,) = diff.hunks
        assert hunk.lines[:3] == ("+// line 7", "+// line 6", "+// line 5")
        assert (hunk.original_start_line, hunk.original_line_count) == (1, 3)
        assert (hunk.updated_start_line, hunk.updated_line_count) == (1, 6)


@keeps("preview.diff")
async def test_a_diff_is_of_one_changed_document(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first(FILE)
        missing = await agent.refused("transaction-preview", includeDiff=True)
        assert (missing.code, missing.kind) == ("InvalidRequest", None)
        for stranger in ("Core/Pear.cs", "Core/Nothing.cs"):
            unknown = await agent.refused(
                "transaction-preview", includeDiff=True, document={"path": stranger}
            )
            assert (unknown.code, unknown.kind) == ("InvalidRequest", "ReviseRequest")
        neither = await agent.refused("transaction-preview", includeDiff=True, document={})
        assert neither.code == "DocumentSelectorInvalid"
        without = await agent.preview(document={"path": FILE})
        assert without.diff is None
        (changed,) = without.documents
        assert changed.document is not None
        by_id = await agent.preview(
            document={"documentId": changed.document.document_id}, includeDiff=True, contextLines=0
        )
        assert by_id.diff is not None
        assert [hunk.lines for hunk in by_id.diff.hunks] == [("+// line 5",)]


@keeps("preview.move")
async def test_a_move_is_two_changes_that_know_of_each_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        old, new = made.file("Core/Pear.cs"), made.file("Core/Fruit/Pear.cs")
        made.server.offers = [Offer("Move", lambda _path, _text: [rename(old, new)])]
        await agent.start()
        await agent.stage_first(FILE)
        added, deleted = (await agent.preview()).documents
        assert (added.change_kind, added.moved_from) == ("Added", "Core/Pear.cs")
        assert (deleted.change_kind, deleted.moved_to) == ("Deleted", "Core/Fruit/Pear.cs")
        await agent.commit()
        assert not old.exists()
        assert new.read_text(encoding="utf-8") == PEAR
        assert await agent.actions("Core/Fruit/Pear.cs")


@keeps("preview.still")
async def test_a_preview_asks_the_server_nothing_and_moves_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first(FILE)
        before, asked = agent.identity, len(made.server.heard)
        for _ in range(3):
            await agent.preview(document={"path": FILE}, includeDiff=True)
        assert agent.identity == before
        assert len(made.server.heard) == asked


# --- commit and rollback ------------------------------------------------------------------------------------


@keeps("commit.nothing")
async def test_a_commit_at_revision_zero_writes_nothing_and_leaves_the_transaction_open(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        begun = agent.identity
        for _ in range(2):
            done = await agent.commit()
            assert not done.committed
            assert done.transaction is not None
            assert done.transaction.revision == 0
            assert agent.identity == begun
            await agent.stage_first(FILE)
            await agent.undo()
        assert made.file(FILE).read_text(encoding="utf-8") == APPLE
        assert (await agent.status()).state == "TransactionActive"


@keeps("commit.stale")
async def test_a_commit_of_a_state_that_moved_asks_for_another_preview(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first(FILE)
        reviewed = dict(agent.snapshot)
        await agent.stage_first(FILE)
        refusal = await agent.refused("transaction-commit", expectedSnapshot=reviewed)
        assert refusal.code == "SnapshotMismatch"
        assert (refusal.kind, refusal.tools) == ("CallTool", ("transaction-preview",))
        assert made.file(FILE).read_text(encoding="utf-8") == APPLE
        elsewhere = await agent.refused("transaction-history", direction="Undo", expectedSnapshot=reviewed)
        assert elsewhere.kind == "ReviseRequest"


@keeps("rollback.writes-nothing")
async def test_a_rollback_needs_no_snapshot_and_touches_no_file(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        made.server.offers = [changes_of_every_kind(made.root)]
        before = {p: p.stat() for p in made.root.rglob("*") if ".vs" not in p.parts}
        await agent.start()
        await agent.stage_first(FILE)
        rolled = await agent.roll_back()
        assert rolled.state == "Ready"
        assert {p: p.stat() for p in made.root.rglob("*") if ".vs" not in p.parts} == before
        assert (await agent.refused("transaction-preview")).code == "NoActiveTransaction"
        await agent.start()
        assert (await agent.preview()).documents == ()


@keeps("commit.writes")
async def test_work_goes_on_after_a_commit_without_a_reload(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        made.server.offers = [Offer("New", lambda p, _t: create(p.with_name("New.cs"), "class New { }\n"))]
        await agent.start()
        await agent.stage_first(FILE)
        await agent.commit()
        made.server.offers = None
        await agent.start()
        await agent.stage_first("Core/New.cs")
        await agent.commit()
        assert made.file("Core/New.cs").read_text(encoding="utf-8") == "// line 1\nclass New { }\n"
        assert agent.identity.workspace_epoch == 1
        assert len(made.server.processes) == 1
