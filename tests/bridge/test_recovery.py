"""Commits that were interrupted, and the bridge: it recovers them at its start, and they are in the way until then."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from bridge import recoveries
from bridge.options import Options
from bridge.recover_command import RecoverCommand, quoted
from bridge.workbench import open_workbench
from schemas.server import Recovery, ServerStatusData
from tests.bridge.agent import APPLE, PATIENT, PEAR, Agent, Scene, opened, scene, write_solution
from tests.bridge.interrupted import interrupt
from tests.bridge.played_server import playing
from tests.bridge.promises import keeps
from tests.transactions.worlds import Picture, picture
from transactions.lock import commit_lock
from transactions.recovery import pending, recover
from transactions.resolving import resolve

pytestmark = pytest.mark.anyio

STEPS = {
    "Core/Apple.cs": "class New { }\n",
    "Core/Pear.cs": "class New2 { }\n",
    "Core/Fresh.cs": "class F { }\n",
}
BOUND = 20.0


async def unfinished(agent: Agent) -> tuple[Recovery, ...]:
    found = (await agent.ask(ServerStatusData, "server-status", detail="Standard")).recovery
    assert found is not None
    return found


@asynccontextmanager
async def bridge_on(tmp_path: Path, **options: object) -> AsyncIterator[Scene]:
    """A bridge whose solution was there before it started."""
    root = tmp_path / "Läden & mehr"
    with anyio.fail_after(BOUND):
        async with playing() as server:
            settings = replace(PATIENT, server_path=server.path, state_directory=tmp_path / "state")
            async with open_workbench(replace(settings, **options)) as workbench:  # type: ignore[arg-type]  # names of options, checked by dataclasses
                yield Scene(Agent(workbench), server, root, root / "Shop.slnx")


@keeps("recovery.start")
@pytest.mark.parametrize("call", ["exchange", "move"])
async def test_what_a_crash_left_is_taken_back_before_the_workspace_opens(tmp_path: Path, call: str) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    before = picture(root)
    interrupt(root, tmp_path / "state", STEPS, loaded=solution, call=call)
    assert picture(root) != before
    async with bridge_on(tmp_path) as made:
        await made.agent.open(solution)
        assert (root / "Core/Apple.cs").read_text() == APPLE
        assert (root / "Core/Pear.cs").read_text() == PEAR
        assert await unfinished(made.agent) == ()
    assert picture(root) == before


@keeps("recovery.start")
async def test_what_was_committed_before_the_crash_is_completed(tmp_path: Path) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    interrupt(root, tmp_path / "state", STEPS, call="remove")
    async with bridge_on(tmp_path) as made:
        await made.agent.open(solution)
        assert {name: (root / name).read_text() for name in STEPS} == STEPS
    assert not (root / ".vs").exists()


def without_locks(root: Path) -> Picture:
    """The tree without what a lock leaves when its holder dies."""
    return {name: entry for name, entry in picture(root).items() if "/locks" not in name}


def conflict(root: Path, state: Path) -> None:
    """A crash, and then somebody who writes to one of the files that are to be put back."""
    interrupt(root, state, STEPS, loaded=root / "Shop.slnx", nth=1)
    (root / "Core/Apple.cs").write_text("class Stranger { }\n")


@keeps("recovery.pending", "recovery.status")
async def test_what_only_a_person_can_decide_blocks_its_own_root_and_no_other(tmp_path: Path) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    conflict(root, tmp_path / "state")
    async with bridge_on(tmp_path) as made:
        refusal = await made.agent.refused("workspace-open", path=str(solution))
        assert (refusal.code, refusal.kind) == ("RecoveryPending", "ResolveExternally")
        (item,) = await unfinished(made.agent)
        command = RecoverCommand(tmp_path / "state").line("explain", item.commit_id)
        assert refusal.message.endswith(command), "the way out can be copied into a shell"
        assert (item.state, item.solution_path) == ("RecoveryConflict", str(solution))
        assert item.message
        assert (root / "Core/Apple.cs").read_text() == "class Stranger { }\n"
        assert (root / "Core/Pear.cs").read_text() == PEAR
        inner = await made.agent.refused("workspace-open", path=str(root / "Core/Core.csproj"))
        assert inner.code == "RecoveryPending", "below the blocked root"
        outer = await made.agent.refused("workspace-open", path=str(solution), workspaceRoot=str(tmp_path))
        assert outer.code == "RecoveryPending", "above the blocked root"
        await made.agent.open(write_solution(tmp_path / "elsewhere"))
        await made.agent.start()
        await made.agent.stage_first("Core/Apple.cs")
        assert (await made.agent.commit()).committed


@keeps("recovery.status")
async def test_minimal_status_tells_nothing_of_recovery_and_looks_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "Läden & mehr"
    write_solution(root)
    conflict(root, tmp_path / "state")
    async with bridge_on(tmp_path) as made:
        status = await made.agent.ask(ServerStatusData, "server-status", detail="Minimal")
        assert status.recovery is None


@keeps("recovery.pending")
async def test_a_person_who_decides_while_the_bridge_runs_opens_the_way(tmp_path: Path) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    conflict(root, tmp_path / "state")
    async with bridge_on(tmp_path) as made:
        assert (await made.agent.refused("workspace-open", path=str(solution))).code == "RecoveryPending"
        (item,) = pending(tmp_path / "state/roslyn-bridge")
        await to_thread.run_sync(
            partial(resolve, tmp_path / "state/roslyn-bridge", item.commit_id, (), "keep-disk")
        )
        await made.agent.open(solution)
        assert await unfinished(made.agent) == ()


@keeps("recovery.pending")
async def test_the_marker_of_a_bridge_with_another_state_directory_blocks_opening(tmp_path: Path) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    interrupt(root, tmp_path / "another state", STEPS)
    half = without_locks(root)
    async with bridge_on(tmp_path) as made:
        refusal = await made.agent.refused("workspace-open", path=str(solution))
        assert (refusal.code, refusal.kind) == ("RecoveryPending", "ResolveExternally")
        theirs, ours = RecoverCommand(tmp_path / "another state"), RecoverCommand(tmp_path / "state")
        (marker,) = (root / ".vs/roslyn-bridge/pending").iterdir()
        assert theirs.line("run", marker.name) in refusal.message
        assert ours.line("explain", marker.name, root=root) in refusal.message
        assert getpass.getuser() in refusal.message
        (item,) = await unfinished(made.agent)
        assert (item.commit_id, item.code, item.state) == (marker.name, "RecoveryRecordElsewhere", None)
        assert without_locks(root) == half
        await to_thread.run_sync(recover, tmp_path / "another state/roslyn-bridge")
        await made.agent.open(solution)
        assert await unfinished(made.agent) == ()


@asynccontextmanager
async def stranger_died(made: Scene, tmp_path: Path) -> AsyncIterator[None]:
    """Another bridge's commit is interrupted in the open workspace; at the end that bridge comes back."""
    state = tmp_path / "another state"
    await to_thread.run_sync(partial(interrupt, made.root, state, STEPS))
    half = without_locks(made.root)
    yield
    assert without_locks(made.root) == half, "nothing was written meanwhile"
    assert await to_thread.run_sync(recover, state / "roslyn-bridge") == ()


@keeps("recovery.pending", "recovery.status")
async def test_an_open_workspace_in_which_another_bridge_died_answers_nothing_until_that_is_over(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        known = agent.identity
        apple: dict[str, object] = {"document": {"path": "Core/Apple.cs"}, "kinds": "All"}
        async with stranger_died(made, tmp_path):
            calls: dict[str, dict[str, object]] = {
                "transaction-start": {},
                "list-code-actions": apple,
                "workspace-reload": {},
            }
            for tool, arguments in calls.items():
                refusal = await agent.refused(tool, **arguments)
                assert (refusal.code, refusal.kind) == ("RecoveryPending", "ResolveExternally"), tool
                assert "roslyn-bridge recover --state-directory" in refusal.message
            (item,) = await unfinished(agent)
            assert item.code == "RecoveryRecordElsewhere"
            status = await agent.status()
            assert status.state == "Ready"
            assert [told.id for told in status.load_diagnostics or ()] == ["RecoveryPending"]
        assert await unfinished(agent) == ()
        assert "RecoveryPending" not in [told.id for told in (await agent.status()).load_diagnostics or ()]
        await agent.start()
        await agent.stage_first("Core/Apple.cs")
        assert (await agent.commit()).committed
        assert agent.identity.workspace_epoch == known.workspace_epoch, "what was half written was never read"


@keeps("recovery.pending")
async def test_a_transaction_outlives_the_death_of_another_bridge_in_its_workspace(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first("App/Program.cs")
        (action, *_) = await agent.actions("Core/Pear.cs")
        async with stranger_died(made, tmp_path):
            calls: dict[str, dict[str, object]] = {
                "stage-code-action": {"actionId": action.action_id},
                "transaction-history": {"direction": "Undo"},
                "transaction-commit": {},
            }
            for tool, arguments in calls.items():
                assert (await agent.refused(tool, **arguments)).code == "RecoveryPending", tool
            assert [d.change_kind for d in (await agent.preview()).documents] == ["Modified"]
        await agent.stage(action)
        assert (await agent.commit()).committed
        assert made.file("Core/Apple.cs").read_text() == APPLE


@keeps("recovery.pending")
async def test_rolling_back_beside_a_dead_bridge_reads_nothing_half_written(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        made.file("Core/Pear.cs").write_text("class External { }\n")
        assert (
            await agent.refused("list-code-actions", document={"path": "Core/Pear.cs"}, kinds="All")
        ).code in (
            "TransactionConflicted",
            "SnapshotMismatch",
        )
        state = tmp_path / "another state"
        await to_thread.run_sync(partial(interrupt, made.root, state, {"Core/Apple.cs": "class Half { }\n"}))
        assert (await agent.roll_back()).state == "WorkspaceOutOfDate"
        await to_thread.run_sync(recover, state / "roslyn-bridge")
        await agent.start()
        assert made.workspace.text(made.file("Core/Pear.cs")) is not None
        assert (await agent.status()).state == "TransactionActive"


@keeps("recovery.pending")
async def test_a_bridge_that_died_in_the_whole_repository_is_in_the_way_of_a_part_of_it(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as made:
        made.file(".git").mkdir()
        part = made.file("Core")
        await made.agent.open(part / "Core.csproj", workspaceRoot=str(part))
        state = tmp_path / "another state"
        await to_thread.run_sync(partial(interrupt, made.root, state, STEPS))
        refusal = await made.agent.refused("transaction-start")
        assert refusal.code == "RecoveryPending"
        assert refusal.message.endswith(f" --root {quoted(made.root)}"), (
            "where the marker is, not where we are"
        )
        (item,) = await unfinished(made.agent)
        assert item.code == "RecoveryRecordElsewhere"
        await to_thread.run_sync(recover, state / "roslyn-bridge")
        await made.agent.start()


@keeps("recovery.pending")
async def test_another_bridges_commit_that_is_going_on_is_in_nobodys_way(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        marker = made.file(".vs/roslyn-bridge/pending") / ("a" * 32)
        marker.parent.mkdir(parents=True)
        with commit_lock(made.root):
            marker.write_text("?")
            await agent.actions("Core/Apple.cs")
            assert await unfinished(agent) == ()
        refusal = await agent.refused("transaction-start")
        assert refusal.code == "RecoveryPending", "its holder is gone, and the marker is not"
        marker.unlink()
        await agent.start()


@keeps("recovery.pending", "recovery.start")
async def test_a_bridge_of_ours_that_dies_beside_an_open_workspace_is_recovered_by_the_next_call(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await to_thread.run_sync(partial(interrupt, made.root, tmp_path / "state", STEPS))
        assert [item.state for item in await unfinished(agent)] == ["Applying"]
        await agent.actions("Core/Apple.cs")
        assert made.file("Core/Apple.cs").read_text() == APPLE
        assert await unfinished(agent) == ()


@keeps("recovery.status")
async def test_where_nobody_can_tell_status_says_so_and_calls_are_answered(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        pending_folder = made.file(".vs/roslyn-bridge/pending")
        pending_folder.symlink_to(tmp_path)
        status = await agent.ask(ServerStatusData, "server-status", detail="Standard")
        assert status.notes is not None
        (note,) = (note for note in status.notes if "interrupted here cannot be told" in note)
        assert note.startswith(str(made.solution))
        await agent.actions("Core/Apple.cs")
        pending_folder.unlink()
        notes = (await agent.ask(ServerStatusData, "server-status", detail="Standard")).notes or ()
        assert not any("cannot be told" in note for note in notes)


@keeps("recovery.status")
async def test_status_shows_every_unfinished_commit_and_none_that_is_going_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        elsewhere = [tmp_path / name for name in ("first", "second")]
        for root in elsewhere:
            write_solution(root)
            await to_thread.run_sync(
                partial(interrupt, root, tmp_path / "state", STEPS, loaded=root / "Shop.slnx")
            )
        expected = {str(root / "Shop.slnx") for root in elsewhere}
        assert {item.solution_path for item in await unfinished(agent)} == expected
        with commit_lock(elsewhere[0]):
            (item,) = await unfinished(agent)
            assert item.solution_path == str(elsewhere[1] / "Shop.slnx")
        assert len(await unfinished(agent)) == 2


@keeps("recovery.pending")
async def test_a_crash_of_another_bridge_is_recovered_before_our_commit_and_the_commit_stands(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first("App/Program.cs")
        # The same state directory, as two bridges of one user have it.
        await to_thread.run_sync(partial(interrupt, made.root, tmp_path / "state", STEPS))
        assert (await agent.commit()).committed
        assert made.file("Core/Apple.cs").read_text() == APPLE
        assert not made.file("Core/Fresh.cs").exists()
        assert made.file("App/Program.cs").read_text().startswith("// line")
        assert not made.file(".vs/roslyn-bridge/pending").exists()


@keeps("recovery.pending")
async def test_a_foreign_marker_that_appears_later_blocks_the_commit_and_the_transaction_stays(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first("App/Program.cs")
        marker = made.file(".vs/roslyn-bridge/pending") / ("a" * 32)
        marker.parent.mkdir(parents=True)
        marker.write_text("?")
        refusal = await agent.refused("transaction-commit")
        assert (refusal.code, refusal.kind) == ("RecoveryPending", "ResolveExternally")
        marker.unlink()
        assert (await agent.commit()).committed


@keeps("recovery.background")
async def test_the_start_waits_for_no_recovery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    interrupt(root, tmp_path / "state", STEPS, loaded=solution)
    may_recover = anyio.Event()

    def slow_recover(state: Path, **options: object) -> object:
        anyio.from_thread.run(may_recover.wait)
        return recover(state, **options)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr("bridge.recoveries.recover", slow_recover)
    monkeypatch.setattr("bridge.recoveries.RECOVERY_WAIT", 0.2)
    async with bridge_on(tmp_path) as made:
        agent = made.agent
        assert (await agent.call("server-status", detail="Minimal")).is_error is False
        while not await unfinished(agent):
            await anyio.lowlevel.checkpoint()
        (item,) = await unfinished(agent)
        assert item.state == "Applying"
        await agent.open(write_solution(tmp_path / "elsewhere"))
        refusal = await agent.refused("workspace-open", path=str(solution))
        assert (refusal.code, refusal.kind) == ("RecoveryPending", "ResolveExternally")
        assert "still being recovered" in refusal.message
        may_recover.set()
        monkeypatch.setattr("bridge.recoveries.RECOVERY_WAIT", BOUND)
        await agent.open(solution)
        assert (root / "Core/Apple.cs").read_text() == APPLE


@keeps("recovery.state-directory")
@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ("a link", "Put a directory in its place"),
        ("a dangling link", "Put a directory in its place"),
        ("open to others", "chmod 700"),
        ("a file", "Move it away"),
        ("below a file", "is no directory"),
    ],
)
async def test_a_state_directory_that_cannot_be_trusted_is_told_and_nothing_is_written(
    tmp_path: Path, wrong: str, advice: str
) -> None:
    state = tmp_path / "state"
    ours = state / "roslyn-bridge"
    if wrong == "below a file":
        state.write_text("no directory")
    else:
        state.mkdir()
    match wrong:
        case "a link":
            (tmp_path / "target").mkdir()
            ours.symlink_to(tmp_path / "target")
        case "a dangling link":
            ours.symlink_to(tmp_path / "nowhere")
        case "a file":
            ours.write_text("no directory")
        case "open to others":
            ours.mkdir()
            ours.chmod(0o777)
    async with scene(tmp_path) as made:
        before = picture(made.root)
        refusal = await made.agent.refused("workspace-open", path=str(made.solution))
        assert refusal.code == "WorkspaceLoadFailed"
        assert str(ours) in refusal.message
        assert advice in refusal.message
        status = await made.agent.ask(ServerStatusData, "server-status", detail="Full")
        assert status.startup_warnings is not None
        told = {w.code: w.message for w in status.startup_warnings}
        if (
            wrong != "below a file"
        ):  # where there is none yet, that there can be none is found when it is needed
            assert advice in told["StateDirectoryUnusable"]
        assert picture(made.root) == before


def test_the_wait_for_recovery_is_bounded_and_named() -> None:
    assert 0 < recoveries.START_LOCK_WAIT < recoveries.RECOVERY_WAIT <= 60
    assert Options().lease_wait < recoveries.RECOVERY_WAIT


@keeps("recovery.pending", "recovery.status")
async def test_a_write_through_an_open_handle_is_kept_told_and_in_nobodys_way(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first("Core/Apple.cs")
        with made.file("Core/Apple.cs").open("a", encoding="utf-8") as handle:
            usual = made.workspace.instance.publish_phase

            def write_late(commit_id: str, phase: str) -> None:
                if phase == "Committed" and not handle.closed:
                    handle.write("// late\n")
                    handle.flush()
                usual(commit_id, phase)

            made.workspace.instance.publish_phase = write_late  # type: ignore[method-assign]  # the instant cannot be met otherwise
            answer = await agent.commit()
        assert answer.notes is not None
        (item,) = await unfinished(agent)
        assert item.code == "RecoveryOriginalKept"
        (kept,) = made.file(".vs/roslyn-bridge/commits").glob("*/*.new")
        assert kept.read_text() == APPLE + "// late\n"
        await agent.start()
        await agent.stage_first("Core/Pear.cs")
        assert (await agent.commit()).committed
        await agent.close()
        await agent.open(made.solution)
        assert kept.exists()
    async with bridge_on(tmp_path) as again:
        await again.agent.open(again.solution)
        (item,) = await unfinished(again.agent)
        assert item.code == "RecoveryOriginalKept"
