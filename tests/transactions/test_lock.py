"""One committer at a time, whatever happens to the lock file."""

import errno
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transactions.worlds import FaultySystem, picture, staged, write
from transactions.baseline import Baseline
from transactions.commit import commit
from transactions.errors import CommitConflict, CommitLockFailed, WorkspaceBusy
from transactions.file_journal import FileJournal
from transactions.lock import LOCK_NAME, LOCKS, commit_lock

PATIENCE = 30.0
"""Seconds; only a failing test waits so long."""


def lock_file(root: Path) -> Path:
    return root.joinpath(*LOCKS, LOCK_NAME)


def test_a_second_committer_is_told_that_the_workspace_is_busy(tmp_path: Path) -> None:
    with commit_lock(tmp_path), pytest.raises(WorkspaceBusy) as busy, commit_lock(tmp_path):
        pass

    assert busy.value.code == "WorkspaceBusy"
    assert busy.value.paths == (tmp_path,)


def test_a_released_lock_can_be_taken_again_and_leaves_nothing_behind(tmp_path: Path) -> None:
    for _ in range(2):
        with commit_lock(tmp_path) as lock:
            assert lock.roots == (tmp_path,)
            assert lock_file(tmp_path).is_file()
    assert picture(tmp_path) == {}


def test_who_waits_long_enough_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    is_waiting, got_it = threading.Event(), threading.Event()

    class Watched(FaultySystem):
        def lock(self, descriptor: int) -> None:
            is_waiting.set()
            super().lock(descriptor)

    def wait() -> None:
        with commit_lock(tmp_path, wait=PATIENCE, system=Watched()):
            got_it.set()

    waiter = threading.Thread(target=wait)
    with commit_lock(tmp_path):
        waiter.start()
        assert is_waiting.wait(PATIENCE)
        assert not got_it.is_set()
    assert got_it.wait(PATIENCE)
    waiter.join(PATIENCE)
    assert picture(tmp_path) == {}


def test_the_lock_dies_with_its_holder_and_a_living_child_does_not_keep_it(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, signal, pathlib\n"
        "from transactions.lock import commit_lock\n"
        "with commit_lock(pathlib.Path(sys.argv[1])):\n"
        "    child = 'import sys; print(\"child\", flush=True); sys.stdin.read()'\n"
        "    subprocess.Popen([sys.executable, '-c', child], close_fds=False)\n"
        "    print('locked', flush=True)\n"
        "    signal.pause()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    with holder:  # its end closes the pipe that the child reads, and with it the child
        # A child that is still on its way to being another program shares every descriptor, so it must have arrived.
        assert {holder.stdout.readline() for _ in range(2)} == {b"locked\n", b"child\n"}
        with pytest.raises(WorkspaceBusy), commit_lock(tmp_path):
            pass
        holder.kill()  # not by a word through the pipe: the child might read it
        assert holder.wait(PATIENCE) == -9
        with commit_lock(tmp_path):
            pass


@pytest.mark.parametrize("again", [False, True], ids=["removed", "removed and made anew"])
def test_a_lock_file_removed_by_a_clean_up_is_noticed_before_anything_is_written(
    tmp_path: Path, again: bool
) -> None:
    root = tmp_path / "root"
    write(root, {"A.cs": b"a\n"})
    overlay = staged(Baseline(root), {"A.cs": "b\n"})

    def clean() -> None:
        lock_file(root).unlink()
        if again:
            lock_file(root).touch()

    system = FaultySystem()
    with commit_lock(root) as lock:
        system.interfere = {60: clean}
        with pytest.raises(CommitLockFailed) as failure:
            commit(
                root,
                overlay.changes(),
                overlay.baseline,
                journal=FileJournal(tmp_path / "state", lock, system=system),
                system=system,
            )
    assert failure.value.code == "CommitLockFailed"
    assert (root / "A.cs").read_bytes() == b"a\n"
    assert not {"exchange", "move"} & set(system.calls)


def test_two_roots_of_one_repository_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "src" / "App"
    inner.mkdir(parents=True)
    with commit_lock(inner) as lock:
        assert lock.roots == (tmp_path, inner)
        with pytest.raises(WorkspaceBusy), commit_lock(tmp_path):
            pass
        with pytest.raises(WorkspaceBusy), commit_lock(tmp_path / "src"):
            pass
    assert set(picture(tmp_path)) == {".git", "src", "src/App"}


def test_a_link_in_place_of_our_folders_is_not_followed(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / ".vs").symlink_to(elsewhere)
    with pytest.raises(CommitLockFailed), commit_lock(root):
        pass
    assert picture(elsewhere) == {}


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.ENOLCK])
def test_a_lock_that_cannot_be_used_is_told_apart_from_one_that_is_held(
    new_root: Callable[[], Path], error: int
) -> None:
    counted = FaultySystem()
    with commit_lock(new_root(), system=counted):
        pass
    for number in range(counted.calls.index("lock") + 1):
        if counted.calls[number] == "close":
            continue
        system = FaultySystem(fail_at=number, error=error)
        with pytest.raises(CommitLockFailed), commit_lock(new_root(), system=system):
            pass


def _count_up(root: Path, state: Path, goal: int, wins: "multiprocessing.Queue[int]") -> None:
    """Adds 1 to the counter `goal` times, through commits."""
    done = 0
    while done < goal:
        try:
            with commit_lock(root, wait=PATIENCE) as lock:
                baseline = Baseline(root)
                text = baseline.text(root / "Counter.cs")
                assert text is not None
                overlay = staged(baseline, {"Counter.cs": str(int(text.text) + 1)})
                commit(root, overlay.changes(), baseline, journal=FileJournal(state, lock))
        except CommitConflict:
            continue
        done += 1
    wins.put(done)


def test_two_processes_that_count_in_one_file_lose_no_count(new_root: Callable[[], Path]) -> None:
    above = new_root()
    write(above / "root", {"Counter.cs": b"0"})
    context = multiprocessing.get_context("spawn")
    wins: multiprocessing.Queue[int] = context.Queue()
    goal = 40
    processes = [
        context.Process(target=_count_up, args=(above / "root", above / f"state{number}", goal, wins))
        for number in range(2)
    ]
    for process in processes:
        process.start()
    total = sum(wins.get(timeout=PATIENCE) for _ in processes)
    for process in processes:
        process.join(PATIENCE)

    assert (above / "root/Counter.cs").read_bytes() == str(2 * goal).encode()
    assert total == 2 * goal
    assert set(picture(above / "root")) == {"Counter.cs"}
