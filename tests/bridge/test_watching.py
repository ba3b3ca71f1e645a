"""A change on disk is told when it happens; the watch that hints at it decides nothing and may fail."""

from __future__ import annotations

import json
import os
import queue
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

import anyio
import pytest

from bridge import watching
from bridge.loading import shapes_a_load
from bridge.recoveries import Recoveries
from bridge.watching import (
    EVERYTHING,
    MANY_EVENTS,
    NOTHING,
    Event,
    Heard,
    Hint,
    Notify,
    Scope,
    Watcher,
    judge,
    scope_of,
)
from tests.bridge.agent import Scene, opened, write_solution
from tests.bridge.promises import keeps
from transactions.baseline import Inputs

BOUND = 20.0
FILE = "Core/Apple.cs"
LISTING: Mapping[str, object] = {"document": {"path": FILE}, "kinds": "All"}
ADDED, MODIFIED, DELETED = 1, 2, 3


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "STEP_MS", 20)
    monkeypatch.setattr(watching, "RESTART_REST", 0.02)


class Looks:
    """What watches have looked at, and when that is over."""

    def __init__(self) -> None:
        self.hints: list[Hint] = []
        self._changed = anyio.Event()

    def recorded(self, look: Callable[[Hint], Awaitable[bool]]) -> Callable[[Hint], Awaitable[bool]]:
        """The same, and it is noted here."""

        async def recorded(hint: Hint) -> bool:
            has_looked = await look(hint)
            self.hints.append(hint)
            self._changed.set()
            self._changed = anyio.Event()
            return has_looked

        return recorded

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for the look after which something holds."""
        with anyio.fail_after(BOUND):
            while not holds():
                await self._changed.wait()

    async def first(self) -> None:
        """Wait until the watch is there, and has looked at what happened before."""
        await self.until(lambda: self.hints)
        self.hints.clear()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """The looks of every watch of a test."""
    looks = Looks()
    usual = Watcher.__init__

    def made(
        self: Watcher,
        root: Path,
        *,
        inputs: Callable[[], AbstractAsyncContextManager[Inputs]],
        look: Callable[[Hint], Awaitable[bool]],
    ) -> None:
        usual(self, root, inputs=inputs, look=looks.recorded(look))

    monkeypatch.setattr(Watcher, "__init__", made)
    return looks


def watcher_of(made: Scene) -> Watcher:
    """The watch over the one open workspace."""
    assert made.workspace.watcher is not None
    return made.workspace.watcher


def status_file(root: Path) -> Mapping[str, object]:
    (file,) = (root / ".vs/roslyn-bridge/instances").glob("*.json")
    said = json.loads(file.read_bytes())
    assert isinstance(said, dict)
    return said


def write_other_text(made: Scene) -> None:
    made.file(FILE).write_text("class Other { }\n", encoding="utf-8")


# --- what is told -------------------------------------------------------------------------------------------


@keeps("external.hinted", "external.conflict")
@pytest.mark.anyio
async def test_a_transaction_is_conflicted_when_the_change_happens_and_not_at_the_next_call(
    tmp_path: Path,
    looks: Looks,
) -> None:
    async with opened(tmp_path, watch="auto") as made:
        await made.agent.start()
        await made.agent.stage_first("Core/Pear.cs")
        staged = made.agent.identity
        await looks.first()
        write_other_text(made)
        await looks.until(lambda: made.workspace.state.value == "TransactionConflicted")
        assert status_file(made.root)["workspaceState"] == "TransactionConflicted"
        status = await made.agent.status()
        assert status.external_change is not None
        assert (status.external_change.kind, status.external_change.path) == ("Changed", FILE)
        assert made.agent.identity == staged
        assert (await made.agent.refused("transaction-commit")).code == "TransactionConflicted"
        assert (await made.agent.roll_back()).state == "Ready"


@keeps("external.hinted", "external.report")
@pytest.mark.anyio
async def test_with_report_the_workspace_is_out_of_date_when_the_change_happens(
    tmp_path: Path, looks: Looks
) -> None:
    async with opened(tmp_path, watch="auto", external_changes="report") as made:
        await looks.first()
        made.file("Core/New.cs").write_text("class New { }\n", encoding="utf-8")
        await looks.until(lambda: made.workspace.state.value == "WorkspaceOutOfDate")
        assert status_file(made.root)["workspaceState"] == "WorkspaceOutOfDate"
        assert (await made.agent.status()).reload_required


@keeps("external.hinted", "external.picked-up")
@pytest.mark.anyio
async def test_what_the_next_call_will_pick_up_is_told_and_not_picked_up_ahead_of_it(
    tmp_path: Path, looks: Looks
) -> None:
    async with opened(tmp_path, watch="auto") as made:
        await looks.first()
        before = made.agent.identity
        write_other_text(made)
        await looks.until(lambda: made.workspace.external_change)
        status = await made.agent.status()
        assert (status.state, status.reload_required) == ("Ready", False)
        assert status.external_change is not None
        assert status.external_change.path == FILE
        assert made.agent.identity == before
        assert (await made.agent.refused("list-code-actions", **LISTING)).code == "SnapshotMismatch"
        assert (await made.agent.status()).external_change is None
        assert made.agent.identity.workspace_epoch == before.workspace_epoch + 1


@keeps("external.hinted", "external.same-bytes")
@pytest.mark.anyio
async def test_a_change_that_is_undone_before_a_call_is_forgotten_and_moves_nothing(
    tmp_path: Path, looks: Looks
) -> None:
    async with opened(tmp_path, watch="auto") as made:
        await looks.first()
        text = made.file(FILE).read_bytes()
        write_other_text(made)
        await looks.until(lambda: made.workspace.external_change)
        made.file(FILE).write_bytes(text)
        await looks.until(lambda: made.workspace.external_change is None)
        await made.agent.actions(FILE)


@keeps("external.own")
@pytest.mark.anyio
async def test_our_own_commit_is_no_change_to_the_watch(tmp_path: Path, looks: Looks) -> None:
    async with opened(tmp_path, watch="auto") as made:
        await looks.first()
        await made.agent.start()
        await made.agent.stage_first(FILE)
        await made.agent.commit()
        await looks.until(lambda: any(hint and made.file(FILE) in hint for hint in looks.hints))
        status = await made.agent.status()
        assert (status.state, status.external_change) == ("Ready", None)
        await made.agent.start()
        assert made.agent.identity.workspace_epoch == 1


@keeps("external.hinted")
@pytest.mark.anyio
async def test_a_folder_that_appears_is_watched_as_well(tmp_path: Path, looks: Looks) -> None:
    async with opened(tmp_path, watch="auto") as made:
        await made.agent.start()
        await looks.first()
        made.file("Core/Sub/Deep").mkdir(parents=True)
        await looks.until(lambda: made.file("Core/Sub/Deep") in watcher_of(made)._scope.folders)
        made.file("Core/Sub/Deep/New.cs").write_text("class New { }\n", encoding="utf-8")
        await looks.until(lambda: made.workspace.external_change)
        assert made.workspace.state.value == "TransactionConflicted"


@keeps("external.hinted")
@pytest.mark.anyio
async def test_a_folder_that_is_replaced_is_watched_anew(tmp_path: Path, looks: Looks) -> None:
    async with opened(tmp_path, watch="auto") as made:
        await looks.first()
        made.file("Core").rename(tmp_path / "away")
        await looks.until(lambda: made.workspace.external_change)
        shutil.copytree(tmp_path / "away", made.file("Core"))
        await looks.until(lambda: made.workspace.external_change is None)
        await made.agent.start()
        write_other_text(made)
        await looks.until(lambda: made.workspace.state.value == "TransactionConflicted")


# --- beside calls -------------------------------------------------------------------------------------------


@keeps("external.hinted", "lease.busy")
@pytest.mark.anyio
async def test_while_a_call_writes_nothing_is_looked_at_and_after_it_the_change_is_told(
    tmp_path: Path,
    looks: Looks,
) -> None:
    async with opened(tmp_path, watch="auto") as made:
        await made.agent.start()
        (action,) = await made.agent.actions(FILE)
        await looks.first()
        async with made.server.held("codeAction/resolve") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.stage, action)
            await held.reached.wait()
            made.file("Core/New.cs").write_text("class New { }\n", encoding="utf-8")
            await looks.until(lambda: looks.hints)
            assert made.workspace.state.value == "TransactionActive"
            held.released.set()
        await looks.until(lambda: made.workspace.state.value == "TransactionConflicted")


@keeps("external.hinted", "lease.busy")
@pytest.mark.anyio
async def test_a_call_that_comes_during_a_look_is_not_told_that_the_workspace_is_busy(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path, watch="auto", lease_wait=0.0, max_concurrent_queries=1) as made:
        await looks.first()
        entered, may_go_on = anyio.Event(), threading.Event()
        changes = Inputs.changes_among

        def slow(self: Inputs, paths: frozenset[Path]) -> object:
            anyio.from_thread.run_sync(entered.set)
            assert may_go_on.wait(BOUND)
            return changes(self, paths)

        monkeypatch.setattr(Inputs, "changes_among", slow)
        write_other_text(made)
        with anyio.fail_after(BOUND):
            await entered.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.start)
            await anyio.wait_all_tasks_blocked()
            may_go_on.set()
        assert made.agent.identity.transaction_revision == 0
        await looks.until(lambda: looks.hints)
        assert made.workspace.state.value == "TransactionActive", "the call has met the change before"


@keeps("external.hinted")
@pytest.mark.anyio
async def test_half_of_another_bridges_commit_is_not_taken_for_a_change(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_clear(_self: Recoveries, _root: Path) -> bool:
        return False

    async with opened(tmp_path, watch="auto") as made:
        await made.agent.start()
        await looks.first()
        with monkeypatch.context() as committing:
            committing.setattr(Recoveries, "is_clear", is_clear)
            write_other_text(made)
            await looks.until(lambda: looks.hints)
            assert made.workspace.state.value == "TransactionActive"
        made.file("Core/Pear.cs").touch()  # the last rename of that commit
        await looks.until(lambda: made.workspace.state.value == "TransactionConflicted")


# --- what fails ---------------------------------------------------------------------------------------------


class PlayedNotify:
    """The library's watch, played: it says what it is told to."""

    def __init__(self) -> None:
        self.batches: queue.SimpleQueue[set[Event] | Exception] = queue.SimpleQueue()
        self.is_closed = False

    def watch(
        self, debounce_ms: int, step_ms: int, timeout_ms: int, stop_event: threading.Event
    ) -> set[Event] | str:
        assert timeout_ms == 0, "the library drops events when its time is out"
        while not stop_event.is_set():
            try:
                batch = self.batches.get(timeout=step_ms / 1000)
            except queue.Empty:
                continue
            if isinstance(batch, Exception):
                raise batch
            return batch
        return "stop"

    def close(self) -> None:
        self.is_closed = True


@contextmanager
def played(monkeypatch: pytest.MonkeyPatch, *refusals: Exception) -> Iterator[list[PlayedNotify]]:
    """Every watch that is started, after as many failures."""
    started: list[PlayedNotify] = []
    failures = list(refusals)

    def start(_folders: list[str]) -> PlayedNotify:
        if failures:
            raise failures.pop(0)
        started.append(PlayedNotify())
        return started[-1]

    monkeypatch.setattr(watching, "start_notify", start)
    yield started
    assert all(watch.is_closed for watch in started)


async def problem_of(made: Scene) -> str | None:
    """What workspace-status says of the watch."""
    told = (await made.agent.status(detail="Full")).load_diagnostics or ()
    return next((d.message for d in told if d.id == "WorkspaceWatchIncomplete"), None)


@keeps("external.hint-only")
@pytest.mark.anyio
async def test_without_a_watch_the_reason_is_told_and_the_next_call_meets_the_change(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = OSError("OS file watch limit reached.")
    with played(monkeypatch, limit) as watches:
        async with opened(tmp_path, watch="auto") as made:
            await looks.first()
            await looks.until(lambda: watcher_of(made).problem)
            message = await problem_of(made)
            assert message is not None
            assert "OS file watch limit reached" in message
            write_other_text(made)
            await made.agent.actions_after_change(FILE)
            await looks.until(lambda: watches)  # what was picked up is a new chance
            assert await problem_of(made) is None


@keeps("external.hint-only")
@pytest.mark.anyio
async def test_a_watch_that_dies_makes_everything_looked_at_and_is_started_anew(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with played(monkeypatch) as watches:
        async with opened(tmp_path, watch="auto") as made:
            await looks.first()
            await made.agent.start()
            write_other_text(made)
            watches[0].batches.put(RuntimeError("Unable to decode path"))
            await looks.until(lambda: made.workspace.state.value == "TransactionConflicted")
            await looks.until(lambda: len(watches) > 1)
            assert watcher_of(made).problem is None


@keeps("external.hint-only")
@pytest.mark.anyio
async def test_a_watch_that_always_dies_is_given_up_and_told(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlayedNotify, "watch", lambda *_: (_ for _ in ()).throw(RuntimeError("no use")))
    with played(monkeypatch) as watches:
        async with opened(tmp_path, watch="auto") as made:
            await looks.first()
            await looks.until(lambda: "in a row" in (watcher_of(made).problem or ""))
            assert len(watches) == watching.DEATHS
            assert "no use" in (await problem_of(made) or "")
            await made.agent.actions(FILE)


@keeps("external.hint-only")
@pytest.mark.anyio
async def test_a_mistake_in_the_watch_ends_the_watch_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with played(monkeypatch, LookupError("a mistake of ours")):
        async with opened(tmp_path, watch="auto") as made:
            watcher = made.workspace.watcher
            assert watcher is not None
            with anyio.fail_after(BOUND):
                await watcher._ended.wait()
            assert "failed" in (await problem_of(made) or "")
            await made.agent.actions(FILE)
    assert "not foreseen" in caplog.text


@keeps("external.hint-only")
@pytest.mark.anyio
async def test_a_burst_that_may_have_lost_something_makes_everything_looked_at(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with played(monkeypatch) as watches:
        async with opened(tmp_path, watch="auto") as made:
            await looks.first()
            await made.agent.start()
            write_other_text(made)
            noise = {(MODIFIED, str(made.file(f"Core/{n}.log"))) for n in range(MANY_EVENTS)}
            watches[0].batches.put(noise)
            await looks.until(lambda: made.workspace.state.value == "TransactionConflicted")


@keeps("external.hint-only")
@pytest.mark.anyio
async def test_too_many_folders_are_not_watched(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_FOLDERS", 2)
    async with opened(tmp_path, watch="auto") as made:
        await looks.first()
        await looks.until(lambda: watcher_of(made).problem)
        assert "more than 2 folders" in (await problem_of(made) or "")


@keeps("external.hint-only")
@pytest.mark.anyio
async def test_a_watch_that_is_off_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with played(monkeypatch) as watches:
        async with opened(tmp_path, watch="off") as made:
            write_other_text(made)
            await made.agent.actions_after_change(FILE)
            assert made.workspace.watcher is None
    assert watches == []


# --- the end ------------------------------------------------------------------------------------------------


def kernel_watches() -> int:
    """How many watches of the kernel this process holds."""
    return sum(os.path.realpath(entry).endswith("inotify") for entry in Path("/proc/self/fd").iterdir())


async def kernel_watches_are(count: int) -> None:
    """The library closes a watch in a thread of its own, an instant after it was told to."""
    with anyio.fail_after(BOUND):
        while kernel_watches() != count:
            await anyio.lowlevel.checkpoint()


@keeps("external.hint-only")
@pytest.mark.anyio
@pytest.mark.parametrize("way", ["closed", "ended", "cancelled"])
async def test_nothing_of_a_watch_is_left(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    waiting: list[int] = []
    usual = Watcher._wait

    def wait(self: Watcher, notify: Notify, stop: threading.Event) -> Heard | str:
        waiting.append(1)
        try:
            return usual(self, notify, stop)
        finally:
            waiting.pop()

    monkeypatch.setattr(Watcher, "_wait", wait)
    before = kernel_watches()
    with anyio.CancelScope() as scope:
        async with opened(tmp_path, watch="auto") as made:
            await looks.first()
            write_other_text(made)
            await looks.until(lambda: made.workspace.external_change)
            assert kernel_watches() == before + 1
            if way == "closed":
                await made.agent.close()
                assert waiting == []
                await kernel_watches_are(before)
            elif way == "cancelled":
                scope.cancel()
                await anyio.sleep_forever()
    assert waiting == []
    await kernel_watches_are(before)


# --- what matters -------------------------------------------------------------------------------------------

ROOT = Path("/root of all")
SCOPE = Scope(frozenset({ROOT, ROOT / "Core"}), frozenset({ROOT / "Core/words.txt"}))


@keeps("external.own")
@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        (MODIFIED, "Core/Apple.cs", frozenset({ROOT / "Core/Apple.cs"})),
        (DELETED, "Core/Apple.CS", frozenset({ROOT / "Core/Apple.CS"})),
        (ADDED, ".editorconfig", frozenset({ROOT / ".editorconfig"})),
        (ADDED, "Directory.Build.props", frozenset({ROOT / "Directory.Build.props"})),
        (MODIFIED, "Core/words.txt", frozenset({ROOT / "Core/words.txt"})),
        (MODIFIED, "Core/other words.txt", NOTHING),
        (ADDED, "Core/app.log", NOTHING),
        (ADDED, "Core/obj", NOTHING),
        (ADDED, "Core/Bin", NOTHING),
        (ADDED, ".vs", NOTHING),
        (MODIFIED, ".git", NOTHING),
    ],
)
def test_what_can_matter_is_a_hint_and_nothing_else(kind: int, name: str, hint: Hint) -> None:
    assert judge({(kind, str(ROOT / name))}, SCOPE) == Heard(hint)


@keeps("external.hinted")
@pytest.mark.parametrize("kind", [ADDED, MODIFIED, DELETED])
def test_a_watched_folder_that_goes_comes_or_changes_makes_everything_looked_at(kind: int) -> None:
    events = {(kind, str(ROOT / "Core")), (MODIFIED, str(ROOT / "Core/Apple.cs"))}
    assert judge(events, SCOPE) == Heard(EVERYTHING, moved_folders=True)


@keeps("external.hint-only")
def test_links_that_lead_out_of_the_root_and_folders_of_builds_are_not_watched(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_solution(root)
    outside = tmp_path / "root outside"
    (outside / "Deep").mkdir(parents=True)
    (outside / "Deep/Far.cs").touch()
    (root / "Core/obj").mkdir()
    (root / "Core/obj/project.assets.json").touch()
    (root / "out").symlink_to(outside)
    (root / "inside").symlink_to(root / "Core")
    files = [root / "out/Deep/Far.cs", root / "inside/Apple.cs", root / "Core/obj/project.assets.json"]
    scope = scope_of(root, [root, root / "Core", root / "gone"], files)
    assert scope == Scope(
        frozenset({root, root / "Core", root / "inside"}), frozenset({root / "Core/obj/project.assets.json"})
    )


@keeps("external.hint-only")
@pytest.mark.anyio
async def test_a_folder_that_cannot_be_read_is_told_and_the_others_are_watched(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_is_readable", lambda folder: folder.name != "App")
    async with opened(tmp_path, watch="auto") as made:
        await looks.first()
        write_other_text(made)
        await looks.until(lambda: made.workspace.external_change)
        assert str(made.file("App")) in (await problem_of(made) or "")


@keeps("external.hinted")
def test_a_look_at_a_few_paths_finds_what_a_look_at_all_would_find_there(tmp_path: Path) -> None:
    write_solution(tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    inputs = Inputs.capture(files, [tmp_path], shapes_a_load)
    (tmp_path / "Core/Apple.cs").write_text("class Other { }\n")
    (tmp_path / "Core/Pear.cs").rename(tmp_path / "Core/Quince.cs")
    (tmp_path / "App/Sub").mkdir()
    (tmp_path / "App/Sub/New.cs").touch()
    all_paths = {tmp_path / name for name in ("Core/Apple.cs", "Core/Pear.cs", "Core/Quince.cs", "App/Sub")}
    assert inputs.changes_among(all_paths) == inputs.changes()
    assert [c.path.name for c in inputs.changes_among({tmp_path / "App/Sub"})] == ["New.cs"]
    assert inputs.changes_among({tmp_path / "Shop.slnx"}) == ()
