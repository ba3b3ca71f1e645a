"""Commits that die, and a look at what is there afterwards."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.transactions.worlds import DyingSystem, FaultySystem, Killed, Picture, picture, staged, write
from transactions.baseline import Baseline
from transactions.commit import CommitResult, commit
from transactions.file_journal import FileJournal
from transactions.lock import commit_lock
from transactions.overlay import Overlay
from transactions.system import SYSTEM, System

FILES = {
    "App/A.cs": b"class A { }\r\n",
    "App/B.cs": b"\xef\xbb\xbfclass B { }\n",
    "Lib/Old.cs": b"class Old { }\n",
    "Lib/Swap1.cs": b"one\n",
    "Lib/Swap2.cs": b"two\n",
    "Lib/Gone.cs": b"gone\n",
    "Lib/Untouched.cs": b"\xff\xfeu\x00",
}
STEPS: dict[str, str | tuple[str, str] | None] = {
    "App/A.cs": "class A2 { }\r\n",
    "App/B.cs": "class B2 { }\n",
    "Lib/Old.cs": None,
    "New/Deep/Moved.cs": ("Lib/Old.cs", "class Moved { }\n"),
    "Lib/Swap1.cs": ("Lib/Swap2.cs", "two\n"),
    "Lib/Swap2.cs": ("Lib/Swap1.cs", "one, edited\n"),
    "Lib/Gone.cs": None,
    "Lib/Fresh.cs": "fresh\n",
}

CHANGES_THE_DISK = frozenset(
    {
        "open_new",
        "open_lock",
        "write",
        "set_owner",
        "set_mode",
        "set_attribute",
        "remove_attribute",
        "touch",
        "sync",
        "sync_file_system",
        "make_directory",
        "remove_directory",
        "remove",
        "move",
        "exchange",
        "link",
        "rename",
    }
)

LEFT_BY_A_LOCK = frozenset(
    {".vs", ".vs/roslyn-bridge", ".vs/roslyn-bridge/locks", ".vs/roslyn-bridge/locks/commit.lock"}
)
"""What a crash before there is a record, or after there was one, may leave; the next lock takes it away."""


@dataclass(frozen=True)
class Place:
    """A workspace and a state directory, the pictures of the workspace before and after, and its staged commit."""

    root: Path
    state: Path
    overlay: Overlay
    before: Picture
    after: Picture

    @classmethod
    def make(
        cls,
        above: Path,
        files: Mapping[str, bytes] = FILES,
        steps: Mapping[str, str | tuple[str, str] | None] = STEPS,
    ) -> "Place":
        """Two equal workspaces are made, and the commit is done in one of them to learn what comes of it."""
        twin = cls._world(above / "twin", files, steps)
        commit(twin.baseline.root, twin.changes(), twin.baseline)
        overlay = cls._world(above / "root", files, steps)
        root = overlay.baseline.root
        return cls(root, above / "state", overlay, picture(root), picture(twin.baseline.root))

    @staticmethod
    def _world(
        root: Path, files: Mapping[str, bytes], steps: Mapping[str, str | tuple[str, str] | None]
    ) -> Overlay:
        root.mkdir(parents=True)
        write(root, files)
        if "Lib/Old.cs" in files:
            (root / "Lib/Old.cs").chmod(0o640)
        return staged(Baseline(root), steps)

    def commit(self, system: System = SYSTEM, wait: float = 0.0) -> CommitResult:
        """The staged commit, with lock and journal."""
        with commit_lock(self.root, wait=wait, system=system) as lock:
            journal = FileJournal(self.state, lock, self.root / "App.sln", system)
            return commit(
                self.root, self.overlay.changes(), self.overlay.baseline, journal=journal, system=system
            )

    def die(self, die_at: int, *, after: bool = False) -> None:
        """The staged commit dies at one call."""
        try:
            self.commit(DyingSystem(die_at=die_at, after=after))
        except Killed:
            return

    def tree(self) -> Picture:
        """The workspace without what a lock may leave."""
        return {name: entry for name, entry in picture(self.root).items() if name not in LEFT_BY_A_LOCK}

    def records(self) -> set[str]:
        """What is in the state directory besides its empty folders."""
        return {name for name in picture(self.state) if "/" in name} if self.state.exists() else set()

    def is_before(self) -> bool:
        """Whether the whole before-image is there, and nothing else."""
        return self.tree() == self.before

    def is_after(self) -> bool:
        """Whether the whole after-image is there, and nothing else."""
        return self.tree() == self.after

    def paths(self, *names: str) -> tuple[Path, ...]:
        return tuple(self.root / name for name in names)


def calls_of(place: Place) -> list[str]:
    """The calls of a whole commit with its lock, in order. The place is used up."""
    system = FaultySystem()
    place.commit(system)
    return list(system.calls)


def number_of(calls: list[str], name: str, nth: int) -> int:
    """The number of the n-th call of a kind; negative counts from the end."""
    return [number for number, call in enumerate(calls) if call == name][nth]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)
