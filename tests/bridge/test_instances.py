"""Several bridges on one workspace: each sees the others, as advice, and leaves nothing behind."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.instances import HIDING, Instance, Neighbours, neighbours
from bridge.states import State
from bridge.workbench import open_workbench
from schemas.locations import Diagnostic
from schemas.server import ServerStatusData
from tests.bridge.agent import PATIENT, Agent, Scene, opened, scene, write_solution
from tests.bridge.played_server import playing
from tests.bridge.promises import keeps
from tests.transactions.worlds import picture
from transactions.system import System

FOLDER = ".vs/roslyn-bridge/instances"
WAIT = 30.0
REPOSITORY = Path(__file__).parents[2]


@asynccontextmanager
async def beside(made: Scene, tmp_path: Path) -> AsyncIterator[Agent]:
    """A second bridge, with another state directory."""
    async with playing() as server:
        settings = replace(PATIENT, server_path=server.path, state_directory=tmp_path / "state of the other")
        async with open_workbench(settings) as workbench:
            yield Agent(workbench)


def files(root: Path) -> list[Path]:
    """The status files under a root."""
    return sorted((root / FOLDER).glob("*.json"))


def advice(diagnostics: Sequence[Diagnostic] | None) -> list[str]:
    """The ids that speak of other bridges; all are warnings."""
    assert diagnostics is not None
    told = [d for d in diagnostics if d.id == "WorkspaceInUse" or d.id.startswith("WorkspaceInstance")]
    assert all(d.severity == "Warning" for d in told)
    return [d.id for d in told]


@keeps("instances.told", "instances.advice")
@pytest.mark.anyio
async def test_two_bridges_see_each_other_and_both_may_stage(tmp_path: Path) -> None:
    async with opened(tmp_path) as made, beside(made, tmp_path) as other:
        assert (await made.agent.status()).instances == ()
        opening = await other.open(made.solution)
        assert advice(opening.load_diagnostics) == ["WorkspaceInUse"]
        await other.start()
        await other.stage_first("Core/Apple.cs")
        status = await made.agent.status(detail="Full")
        assert status.instances is not None
        (seen,) = status.instances
        assert seen.loaded_path == str(made.solution)
        assert seen.workspace_root == str(made.root)
        assert (seen.workspace_state, seen.transaction_revision) == ("TransactionActive", 1)
        assert advice(status.load_diagnostics) == ["WorkspaceInUse"]
        assert (await made.agent.status(detail="Minimal")).instances is None
        await made.agent.start()
        await made.agent.stage_first("Core/Pear.cs")


@keeps("instances.told")
@pytest.mark.anyio
async def test_a_commit_shows_its_id_and_its_phase_and_the_next_transaction_forgets_it(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made, beside(made, tmp_path) as other:
        await other.open(made.solution)
        await other.start()
        await other.stage_first("Core/Apple.cs")
        await other.commit()
        (seen,) = (await made.agent.status()).instances or ()
        assert (seen.workspace_state, seen.transaction_revision) == ("Ready", None)
        assert seen.commit_phase == "Committed"
        assert seen.commit_id is not None
        await other.start()
        (seen,) = (await made.agent.status()).instances or ()
        assert (seen.commit_phase, seen.commit_id) == (None, None)


@keeps("commit.one-at-a-time")
@pytest.mark.anyio
async def test_the_second_committer_meets_a_conflict_also_when_it_changed_another_file(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made, beside(made, tmp_path) as other:
        await other.open(made.solution)
        await other.start()
        await other.stage_first("Core/Apple.cs")
        await made.agent.start()
        await made.agent.stage_first("Core/Pear.cs")
        assert (await other.commit()).committed
        refusal = await made.agent.refused("transaction-commit")
        assert (refusal.code, refusal.tools) == ("TransactionConflicted", ("transaction-rollback",))
        assert "Core/Apple.cs" in refusal.message
        (seen,) = (await other.status()).instances or ()
        assert seen.workspace_state == "TransactionConflicted"
        await made.agent.roll_back()
        await made.agent.start()
        await made.agent.stage_first("Core/Pear.cs")
        assert (await made.agent.commit()).committed


@keeps("instances.tidy", "external.own")
@pytest.mark.anyio
async def test_what_is_ours_is_hidden_from_git_counts_as_no_change_and_is_gone_at_the_end(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as made:
        subprocess.run(["git", "init", "-q", str(made.root)], check=True, timeout=WAIT)
        before = picture(made.root)
        await made.agent.open(made.solution)
        (file,) = files(made.root)
        said = json.loads(file.read_text())
        assert said["instanceId"] == file.stem
        assert set(said) >= {"loadedPath", "workspaceRoot", "workspaceState"}
        status = subprocess.run(
            ["git", "-C", str(made.root), "status", "--porcelain", "--", ".vs"],
            capture_output=True,
            check=True,
            timeout=WAIT,
        )
        assert status.stdout == b""
        snapshot = made.agent.snapshot
        await made.agent.actions("Core/Apple.cs")
        assert made.agent.snapshot == snapshot
        await made.agent.close()
        assert picture(made.root) == before


@keeps("instances.tidy")
@pytest.mark.anyio
async def test_the_end_of_a_bridge_takes_its_file_along_and_leaves_the_other_ones(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        async with beside(made, tmp_path) as other:
            await other.open(made.solution)
            assert len(files(made.root)) == 2
        assert [file.stem for file in files(made.root)] == [made.workspace.instance.id]
        assert (made.root / FOLDER / HIDING).exists()


SILENT = """
import sys
from pathlib import Path
from bridge.instances import Instance
from bridge.states import State
instance = Instance(Path(sys.argv[1]), Path(sys.argv[1]) / "Shop.slnx")
instance.publish_state(State.READY, None)
print(instance.id, flush=True)
sys.stdin.read()
"""


@keeps("instances.stale")
@pytest.mark.anyio
async def test_the_file_of_a_bridge_that_was_killed_is_removed_by_who_looks(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        with subprocess.Popen(
            [sys.executable, "-c", SILENT, str(made.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout is not None
            instance_id = child.stdout.readline().decode().strip()
            assert [i.instance_id for i in (await made.agent.status()).instances or ()] == [instance_id]
            os.kill(child.pid, signal.SIGKILL)
            child.wait(WAIT)
        assert instance_id in {file.stem for file in files(made.root)}
        assert (await made.agent.status()).instances == ()
        assert [file.stem for file in files(made.root)] == [made.workspace.instance.id]


RESTLESS = """
import sys
from itertools import cycle
from pathlib import Path
from bridge.instances import Instance
instance = Instance(Path(sys.argv[1]), Path(sys.argv[1]) / "Shop.slnx")
for number, phase in enumerate(cycle(["Staging", "Applying" * 40])):
    instance.publish_phase("0" * 36, phase)
    if number == 1:
        print(instance.name, flush=True)
"""
LOOKS = 4000
KILLS = 12


@contextmanager
def restless(root: Path) -> Iterator[Path]:
    """A bridge that says something short and something long in turn, as fast as it can; its file.  Ends killed."""
    with subprocess.Popen(
        [sys.executable, "-c", RESTLESS, str(root)], stdout=subprocess.PIPE, cwd=REPOSITORY
    ) as child:
        try:
            assert child.stdout is not None
            yield root / FOLDER / child.stdout.readline().decode().strip()
        finally:
            child.kill()


@keeps("instances.whole")
def test_a_status_file_is_whole_whenever_it_is_read(tmp_path: Path) -> None:
    lengths = Counter[int]()
    until = time.monotonic() + WAIT
    with restless(tmp_path) as file:
        while (lengths.total() < LOOKS or len(lengths) < 2) and time.monotonic() < until:
            data = file.read_bytes()
            assert json.loads(data)["instanceId"] == file.stem
            lengths[len(data)] += 1
    assert len(lengths) == 2, "both states were met"


@keeps("instances.whole")
def test_a_bridge_that_replaces_its_file_is_never_taken_for_a_dead_one(tmp_path: Path) -> None:
    with restless(tmp_path) as file:
        for _ in range(LOOKS // 2):
            found = neighbours(tmp_path, ())
            assert [i.instance_id for i in found.instances] == [file.stem]
            assert found.unreadable == ()


@keeps("instances.stale")
def test_what_a_bridge_leaves_that_is_killed_while_it_writes_is_removed_by_who_looks(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    for _ in range(KILLS):
        with restless(tmp_path):
            pass
    left = "01234567-89ab-cdef-0123-456789abcdef"
    for name in (f"{left}.draft", f"{left}.a.draft", f"{left}.b.draft"):
        (folder / name).write_text("half of a st")
    assert neighbours(tmp_path, ()) == Neighbours()
    assert [path.name for path in folder.iterdir()] == [HIDING]


@keeps("instances.stale")
def test_a_draft_that_its_maker_has_locked_stays(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    draft = tmp_path / FOLDER / "01234567-89ab-cdef-0123-456789abcdef.draft"
    with draft.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        neighbours(tmp_path, ())
        assert draft.exists()
    neighbours(tmp_path, ())
    assert not draft.exists()


@keeps("instances.advice")
@pytest.mark.anyio
async def test_a_live_bridge_that_says_nonsense_is_a_warning(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        stranger = Instance(made.root, made.solution)
        stranger.publish_state(State.READY, None)
        (made.root / FOLDER / stranger.name).write_text('{"instanceId": 5}')
        status = await made.agent.status(detail="Full")
        assert status.instances == ()
        assert advice(status.load_diagnostics) == ["WorkspaceInstanceStatusUnreadable"]
        stranger.close()


@keeps("instances.advice")
@pytest.mark.anyio
async def test_a_root_that_cannot_be_written_still_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ReadOnly(System):
        def make_directory(self, name: str, directory: int, mode: int = 0o777) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("bridge.instances.SYSTEM", ReadOnly())
    async with scene(tmp_path) as made:
        opening = await made.agent.open(made.solution)
        assert advice(opening.load_diagnostics) == ["WorkspaceInstanceStatusUnavailable"]
        await made.agent.actions("Core/Apple.cs")
        await made.agent.close()


@keeps("instances.advice")
@pytest.mark.anyio
@pytest.mark.parametrize("way", ["a link", "a file"])
async def test_a_hostile_folder_is_no_way_out_of_the_root(tmp_path: Path, way: str) -> None:
    async with scene(tmp_path) as made:
        if way == "a link":
            (tmp_path / "outside").mkdir()
            made.file(".vs").symlink_to(tmp_path / "outside")
        else:
            made.file(".vs").write_text("in the way")
        opening = await made.agent.open(made.solution)
        assert set(advice(opening.load_diagnostics)) == {"WorkspaceInstanceStatusUnavailable"}
        assert way == "a file" or list((tmp_path / "outside").iterdir()) == []


@keeps("instances.advice")
def test_what_is_no_status_file_of_ours_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    name = "01234567-89ab-cdef-0123-456789abcdef.json"
    os.mkfifo(folder / name)
    (folder / "notes.json").write_text("{}")
    found = neighbours(tmp_path, ())
    assert (found.instances, found.unreadable) == ((), (name,))
    assert sorted(path.name for path in folder.iterdir()) == [name, "notes.json"]


@keeps("instances.told")
def test_a_file_that_git_clean_took_away_comes_back_with_the_next_change(tmp_path: Path) -> None:
    write_solution(tmp_path)
    instance = Instance(tmp_path, tmp_path / "Shop.slnx")
    instance.publish_state(State.READY, None)
    (file,) = files(tmp_path)
    file.unlink()
    instance.publish_state(State.TRANSACTION_ACTIVE, 0)
    (seen,) = neighbours(tmp_path, ()).instances
    assert seen.workspace_state == "TransactionActive"
    instance.close()
    assert not (tmp_path / ".vs").exists()


@keeps("commit.exchange")
@pytest.mark.anyio
async def test_a_file_system_that_cannot_exchange_files_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    async with opened(tmp_path) as made:
        assert (await made.agent.ask(ServerStatusData, "server-status")).notes is None
        await made.agent.close()
        monkeypatch.setattr(System, "exchange", missing)
        await made.agent.open(made.solution)
        (note,) = (await made.agent.ask(ServerStatusData, "server-status")).notes or ()
        assert "change places" in note
        left = {path.name for path in (made.root / FOLDER).iterdir()}
        assert left == {HIDING, *(path.name for path in files(made.root))}, "nothing of the try is left"
