"""A crash, shown to a visitor: a commit of many files is killed half-way, and what becomes of the tree.

A child carries out a commit on a copy of the sample with the same code that the bridge commits with, on a `System` of
this script's own that ends its process with SIGKILL at one chosen call.  First it dies in the middle of the renames: the
next bridge to start takes everything back.  Then it dies right after the instant of the commit: everything is
completed, this time by ``roslyn-bridge recover run``.  The exit code is 0 only if both trees are right to the byte.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import anyio
from mcp import Client, StdioServerParameters

from scripts.demo_main_job import Bridge, DemoFailedError, Json, copied_sample, headline, say
from transactions.baseline import Baseline
from transactions.commit import commit
from transactions.file_journal import FileJournal
from transactions.lock import commit_lock
from transactions.overlay import FileChange, Overlay, Staged
from transactions.system import SYSTEM, System
from transactions.text import SourceText

BEDS = 60
"""Generated files that the commit changes."""

SOURCES = Path("src/Greenhouse")
CHILD_WAIT = 60.0
"""Seconds for one child; a healthy one takes less than two."""

Tree = Mapping[str, bytes]


class DyingSystem(System):
    """Ends its process with SIGKILL right after the n-th (from 1) call of one kind."""

    def __init__(self, call: str, nth: int) -> None:
        self._call = call
        self._left = nth

    def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        super().exchange(old, old_directory, new, new_directory)
        self._perhaps_die("exchange")

    def remove(self, name: str, directory: int) -> None:
        super().remove(name, directory)
        self._perhaps_die("remove")

    def _perhaps_die(self, call: str) -> None:
        if call == self._call:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


# --- the commit -----------------------------------------------------------------------------------------------


def prepare(root: Path) -> None:
    """Put many small classes beside the sample's own."""
    for number in range(BEDS):
        text = f"namespace Greenhouse;\r\n\r\npublic class Bed{number:02}\r\n{{\r\n    public int Rows => 1;\r\n}}\r\n"
        (root / SOURCES / f"Bed{number:02}.cs").write_bytes(text.encode())


def changes(root: Path) -> tuple[tuple[FileChange, ...], Baseline]:
    """Every bed gets a row more, one file is created in a new folder, one is moved, one is deleted."""
    baseline = Baseline(root)
    draft = Overlay(baseline).draft()
    for number in range(BEDS):
        bed = root / SOURCES / f"Bed{number:02}.cs"
        old = _text(baseline, bed)
        draft.put(bed, Staged(SourceText.new(old.text.replace("=> 1", "=> 2"), like=old), bed))
    created = root / SOURCES / "New beds" / "Bed.cs"
    draft.put(created, Staged(SourceText.new("namespace Greenhouse;\n", like=None), None))
    moved = root / SOURCES / "Compost.cs"
    draft.put(root / SOURCES / "Heap.cs", Staged(_text(baseline, moved), moved))
    draft.delete(moved)
    draft.delete(root / SOURCES / "Season.cs")
    return draft.freeze().changes(), baseline


def _text(baseline: Baseline, path: Path) -> SourceText:
    text = baseline.text(path)
    if text is None:
        raise DemoFailedError(f"{path} cannot be read: the sample is not what this script knows")
    return text


def carry_out(root: Path, state: Path, system: System) -> None:
    """The commit as the bridge does it: lock, journal, write."""
    staged, baseline = changes(root)
    with commit_lock(root, system=system) as lock:
        journal = FileJournal(state, lock, root / "Sample.slnx", system)
        commit(root, staged, baseline, journal=journal, system=system)


def die(root: Path, state: Path, call: str, nth: int) -> None:
    """The same in a child that is killed on the way."""
    command = [sys.executable, "-m", "scripts.demo_crash", "--victim", str(root), str(state), call, str(nth)]
    ended = subprocess.run(command, timeout=CHILD_WAIT, check=False)
    if ended.returncode != -signal.SIGKILL:
        raise DemoFailedError(f"the committing process was not killed but ended with {ended.returncode}")
    say(f"The committing process was killed (SIGKILL) right after its {nth}. call of {call}.")


# --- looking --------------------------------------------------------------------------------------------------


def tree(root: Path) -> Tree:
    """Every file and directory under the root, ours included."""
    return {
        path.relative_to(root).as_posix(): b"a directory" if path.is_dir() else path.read_bytes()
        for path in sorted(root.rglob("*"))
    }


def sources(found: Tree) -> Tree:
    """Without what is ours."""
    return {path: data for path, data in found.items() if not f"{path}/".startswith(".vs/")}


def show(now: Tree, before: Tree, after: Tree) -> None:
    """Say how many files are as before the commit, how many as it wanted them, and what is ours."""
    touched = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    old = [path for path in touched if now.get(path) == before.get(path)]
    new = [path for path in touched if now.get(path) == after.get(path)]
    say(
        f"    of {len(touched)} paths of the commit: {len(old)} as before it, {len(new)} as it wanted them, "
        f"{len(touched) - len(old) - len(new)} neither"
    )
    for path in (*new[:3], *old[:3]) if old and new else ():
        say(f"        {'new' if path in new else 'old'}  {path}")
    ours = len(now) - len(sources(now))
    say(f"    entries of ours under .vs: {ours}")


def require(now: Tree, wanted: Tree, what: str) -> None:
    """Raises DemoFailedError unless the tree is exactly that one."""
    wrong = sorted(path for path in now.keys() | wanted.keys() if now.get(path) != wanted.get(path))
    if wrong:
        raise DemoFailedError(f"the tree is not the one {what} the commit: {', '.join(wrong[:5])}")
    say(f"    Every byte is as {what} the commit, and nothing of ours is left.")


def recover(state: Path, *arguments: str) -> int:
    """Run the command that a person would, and show what it says."""
    say(f"$ roslyn-bridge {' '.join(('recover', *arguments))}")
    command = [sys.executable, "-m", "bridge", "recover", "--state-directory", str(state.parent), *arguments]
    ran = subprocess.run(command, timeout=CHILD_WAIT, check=False, capture_output=True, text=True)
    for line in (ran.stdout + ran.stderr).splitlines():
        say(f"    {line}")
    return ran.returncode


async def start_bridge(root: Path, state: Path) -> None:
    """Start the bridge as an agent's client would, and open the workspace."""
    arguments = ["-m", "bridge", "mcp", "--server", "embedded", "--state-directory", str(state.parent)]
    command = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    failures: list[DemoFailedError] = []
    async with Client(command, mode="legacy") as client:
        try:
            bridge = Bridge(client, root, {})
            await bridge.call("workspace-open", path=str(root / "Sample.slnx"))
            say("workspace-open: answered, so the interrupted commit is out of the way")
            status = await bridge.call("server-status", detail="Standard")
            unfinished = cast("list[Json]", status["recovery"])
            say(f"server-status: {len(unfinished)} unfinished commits")
            if unfinished:
                failures.append(DemoFailedError(f"unfinished: {unfinished}"))
            await bridge.call("workspace-close")
        except DemoFailedError as failure:
            failures.append(failure)  # raised outside, where no task group wraps it
    if failures:
        raise failures[0]


# --- the story ------------------------------------------------------------------------------------------------


def half_way(folder: Path, before: Tree, after: Tree) -> None:
    """Killed in the middle of the renames; the next bridge takes everything back."""
    headline("Killed half-way through the renames")
    root, state = copied_sample(folder), folder / "state" / "roslyn-bridge"
    prepare(root)
    die(root, state, "exchange", BEDS // 2)
    now = tree(root)
    show(now, before, after)
    if sources(now) in (before, after):
        raise DemoFailedError("the commit was not killed in the middle")
    if recover(state) != 1:
        raise DemoFailedError("the interrupted commit is not listed")
    say("\nA bridge starts:")
    anyio.run(start_bridge, root, state)
    now = tree(root)
    show(now, before, after)
    require(now, before, "before")


def after_the_instant(folder: Path, before: Tree, after: Tree) -> None:
    """Killed when the commit stood already; it is completed."""
    headline("Killed right after the instant of the commit")
    root, state = copied_sample(folder), folder / "state" / "roslyn-bridge"
    prepare(root)
    die(root, state, "remove", 1)
    show(tree(root), before, after)
    if recover(state, "run") != 0:
        raise DemoFailedError("the recovery left something")
    now = tree(root)
    show(now, before, after)
    require(now, after, "after")


def main() -> None:
    if sys.argv[1:2] == ["--victim"]:
        victim, state, call, nth = sys.argv[2:]
        carry_out(Path(victim), Path(state), DyingSystem(call, int(nth)))
        return
    with tempfile.TemporaryDirectory(prefix="roslyn-bridge-crash-") as name:
        folders = {part: Path(name) / part for part in ("whole", "half", "instant")}
        for folder in folders.values():
            folder.mkdir()
        try:
            headline("A commit that nobody disturbs")
            root = copied_sample(folders["whole"])
            prepare(root)
            before = tree(root)
            carry_out(root, folders["whole"] / "state", SYSTEM)
            after = tree(root)
            say(f"{len(before)} entries before; {BEDS} changed, one created, one moved, one deleted.")
            half_way(folders["half"], before, after)
            after_the_instant(folders["instant"], before, after)
        except DemoFailedError as failure:
            raise SystemExit(f"The demo did not hold: {failure}") from failure
    say("\nThe demo held: before or after, never in between.")


if __name__ == "__main__":
    main()
