"""The private directory of a server: held while it is used, gone with the server, swept where everybody died."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lsp_client.process import spawn
from lsp_client.scratch import scratch_in, sweep

pytestmark = pytest.mark.anyio


async def test_the_guard_removes_it_with_whatever_modes_lie_in_it_and_follows_no_link(tmp_path: Path) -> None:
    parent, outside = tmp_path / "views", tmp_path / "outside"
    parent.mkdir()
    outside.mkdir(mode=0o750)
    (outside / "kept").write_text("kept")
    with scratch_in(parent) as scratch:
        source = "import os; os.makedirs('a/b/c'); os.symlink(os.environ['OUT'], 'a/link'); os.chmod('a/b/c', 0); os.chmod('a/b', 0)"
        command = [sys.executable, "-I", "-S", "-c", source]
        async with spawn(command, cwd=scratch.path, env={"OUT": str(outside)}, scratch=scratch) as server:
            assert await server.wait() == 0
        assert not scratch.path.exists()
    assert (outside / "kept").read_text() == "kept"
    assert outside.stat().st_mode & 0o777 == 0o750


async def test_a_command_that_cannot_be_started_leaves_none(tmp_path: Path) -> None:
    with scratch_in(tmp_path) as scratch, pytest.raises(FileNotFoundError):
        async with spawn(["no-such-server"], cwd=tmp_path, env={"PATH": "/nowhere"}, scratch=scratch):
            pytest.fail("started")
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_takes_what_nobody_holds_and_leaves_what_is_held(tmp_path: Path) -> None:
    with scratch_in(tmp_path) as held:
        with scratch_in(tmp_path) as left:
            (left.path / "deep").mkdir(mode=0)
        (tmp_path / "a file").write_text("not ours")
        (tmp_path / "link").symlink_to(held.path)
        assert sweep(tmp_path) == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([held.path.name, "a file", "link"])
    assert sweep(tmp_path) == 1
    assert sweep(tmp_path / "nowhere") == 0


def test_a_sweep_between_the_making_and_the_locking_costs_another_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open
    swept: list[Path] = []

    def open_after_a_sweep(path: Path, flags: int) -> int:
        if not swept and Path(path).parent == tmp_path:
            swept.append(path)
            path.rmdir()
        return real(path, flags)

    monkeypatch.setattr("lsp_client.scratch.os.open", open_after_a_sweep)
    with scratch_in(tmp_path) as scratch:
        assert swept
        assert scratch.path.is_dir()
        assert scratch.path not in swept
