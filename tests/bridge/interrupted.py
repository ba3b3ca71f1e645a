"""Commits that died half-way, made before or beside a bridge, for tests of what the bridge makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.transactions.worlds import DyingSystem, Killed, staged
from transactions.baseline import Baseline
from transactions.commit import commit
from transactions.file_journal import FileJournal
from transactions.lock import commit_lock

OURS = "roslyn-bridge"
"""The bridge's own folder below the state directory that it is given."""

Steps = Mapping[str, str | tuple[str, str] | None]


class _DeathWatch(list[str]):
    """The calls so far; the system dies at the n-th of one kind."""

    def __init__(self, system: DyingSystem, call: str, nth: int) -> None:
        super().__init__()
        self._system, self._call, self._left = system, call, nth

    def append(self, call: str) -> None:
        super().append(call)
        if call == self._call:
            if self._left == 0:
                self._system.die_at = len(self) - 1
            self._left -= 1


def interrupt(
    root: Path, state: Path, steps: Steps, *, loaded: Path | None = None, call: str = "exchange", nth: int = 0
) -> None:
    """A commit of ``steps`` in ``root`` dies right after its n-th (from 0) call of one kind.

    ``state`` is what ``--state-directory`` was for it.
    """
    system = DyingSystem(after=True)
    system.calls = _DeathWatch(system, call, nth)
    overlay = staged(Baseline(root), steps)
    try:
        with commit_lock(root, system=system) as lock:
            journal = FileJournal(state / OURS, lock, loaded, system)
            commit(root, overlay.changes(), overlay.baseline, journal=journal, system=system)
    except Killed:
        return
    raise AssertionError(f"the commit has no call {call} with number {nth}")
