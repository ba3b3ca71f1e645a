"""A full disk refuses a commit; nothing is lost, and when there is room the same commit goes through."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.bridge.agent import APPLE, opened
from tests.bridge.full_disk import NOT_ALLOWED
from tests.bridge.promises import keeps
from transactions.file_journal import FileJournal
from transactions.system import System

WAIT = 90.0
FILE = "Core/Apple.cs"


@keeps("commit.disk-full")
@pytest.mark.parametrize("free", [0, 6])
@pytest.mark.parametrize("place", ["state", "workspace"])
def test_a_file_system_that_is_full_refuses_the_commit_until_there_is_room(
    tmp_path: Path, place: str, free: int
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bridge.full_disk", place, str(free), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    if ran.returncode == NOT_ALLOWED:
        pytest.skip("mounts of one's own are not allowed here; the fault is injected in the next test")
    assert ran.returncode == 0, ran.stderr


class FullDisk(System):
    """No byte can be written from the n-th write on, until there is room."""

    def __init__(self, writes: int) -> None:
        self.writes = writes
        self.has_room = False

    def write(self, descriptor: int, data: memoryview) -> int:
        self.writes -= 1
        if self.writes < 0 and not self.has_room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(descriptor, data)


@keeps("commit.disk-full")
@pytest.mark.anyio
@pytest.mark.parametrize("writes", range(4))
async def test_the_journal_meets_a_full_disk_at_each_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    system = FullDisk(writes)
    monkeypatch.setattr("bridge.committing.FileJournal", partial(FileJournal, system=system))
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        await agent.stage_first(FILE)
        refusal = await agent.refused("transaction-commit")
        assert (refusal.code, refusal.kind) == ("CommitPreparationFailed", "RetryRequest")
        assert made.file(FILE).read_text() == APPLE
        assert not made.file(".vs/roslyn-bridge/commits").exists()
        assert not list((tmp_path / "state/roslyn-bridge/recovery").iterdir())
        system.has_room = True
        assert (await agent.commit()).committed
