"""``roslyn-bridge recover`` as a person runs it: a process of its own, its words and its exit codes."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.recover_command import RecoverCommand
from tests.bridge.interrupted import interrupt
from tests.bridge.promises import keeps
from tests.transactions.worlds import Picture, picture, write
from transactions.lock import commit_lock

WAIT = 60.0

FILES = {
    "Shop.slnx": b"<Solution />",
    "Core/Apple.cs": b"apple\n",
    "Core/Pear.cs": b"pear\n",
    "Core/Old.cs": b"old\n",
}
STEPS = {
    "Core/Apple.cs": "apple, new\n",
    "Core/Pear.cs": "pear, new\n",
    "Core/Old.cs": None,
    "Core/Fresh.cs": "fresh\n",
}
STRANGER = b"somebody else's\n"


@dataclass(frozen=True)
class World:
    """A workspace with an interrupted commit."""

    root: Path
    state: Path
    before: Picture

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """One command; its outcome."""
        return subprocess.run(
            [sys.executable, "-m", "bridge", "recover", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=WAIT,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "ROSLYN_BRIDGE_STATE_DIRECTORY": str(self.state)},
        )

    def tree(self) -> Picture:
        """All but our own folder."""
        return {name: entry for name, entry in picture(self.root).items() if not name.startswith(".vs")}

    def bytes_of(self, name: str) -> bytes:
        return (self.root / name).read_bytes()

    @property
    def commit_id(self) -> str:
        (record,) = (self.state / "roslyn-bridge/recovery").iterdir()
        return record.name


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Killed after both replaced files had their new contents."""
    root = tmp_path / "Läden & mehr"
    write(root, FILES)
    made = World(root, tmp_path / "state", picture(root))
    interrupt(root, made.state, STEPS, loaded=root / "Shop.slnx", nth=1)
    assert made.tree() != made.before
    return made


@pytest.fixture
def conflict(world: World) -> World:
    """The same, and somebody wrote to one of them; the recovery put the rest back."""
    (world.root / "Core/Apple.cs").write_bytes(STRANGER)
    assert world.run("run").returncode == 1
    assert world.bytes_of("Core/Pear.cs") == b"pear\n"
    return world


@keeps("recovery.way-out")
def test_with_nothing_unfinished_it_says_so_and_succeeds(tmp_path: Path) -> None:
    ran = World(tmp_path, tmp_path / "no state", {}).run()
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Nothing is unfinished.\n", "")


@keeps("recovery.way-out")
@pytest.mark.parametrize("arguments", [(), ("list",)])
def test_the_list_names_the_commit_and_its_workspace_and_changes_nothing(
    world: World, arguments: tuple[str, ...]
) -> None:
    before = picture(world.root.parent)
    ran = world.run(*arguments)
    assert ran.returncode == 1
    for expected in (
        "1 commit is unfinished",
        world.commit_id[:8],
        "Applying",
        str(world.root / "Shop.slnx"),
        "explain",
    ):
        assert expected in ran.stdout
    assert picture(world.root.parent) == before


@keeps("recovery.way-out")
def test_a_commit_that_is_going_on_is_not_called_interrupted(world: World) -> None:
    with commit_lock(world.root):
        ran = world.run("list")
        assert "A bridge is at it right now" in ran.stdout
        assert "interrupted" not in ran.stdout
    assert "interrupted" in world.run("list").stdout


@keeps("recovery.way-out")
def test_run_does_what_a_bridge_does_at_its_start(world: World) -> None:
    ran = world.run("run")
    assert ran.returncode == 0, ran.stderr
    assert "1 commit is recovered." in ran.stdout
    assert "Nothing is unfinished." in ran.stdout
    assert picture(world.root) == world.before


@keeps("recovery.way-out")
def test_explain_shows_each_file_and_every_way_out(conflict: World) -> None:
    ran = conflict.run("explain", conflict.commit_id[:6])
    assert ran.returncode == 1
    assert "RecoveryConflict" in ran.stdout
    assert "* changed  Core/Apple.cs: somebody else's" in ran.stdout
    assert "changed  Core/Pear.cs: as before the commit" in ran.stdout
    assert "deleted  Core/Old.cs: as before the commit" in ran.stdout
    assert "created  Core/Fresh.cs: not there, as before the commit" in ran.stdout
    for way in ("--keep-disk", "--take-before", "--take-after", "export", "discard"):
        assert way in ran.stdout


@keeps("recovery.way-out")
@pytest.mark.parametrize(
    ("choice", "expected"),
    [("--keep-disk", STRANGER), ("--take-before", b"apple\n")],
)
def test_a_person_decides_and_the_record_is_over(conflict: World, choice: str, expected: bytes) -> None:
    ran = conflict.run("resolve", conflict.commit_id, choice)
    assert ran.returncode == 0, ran.stderr
    assert conflict.bytes_of("Core/Apple.cs") == expected
    assert conflict.bytes_of("Core/Pear.cs") == b"pear\n"
    assert conflict.run().returncode == 0
    assert not (conflict.root / ".vs").exists()


@keeps("recovery.way-out")
def test_what_the_commit_wanted_is_taken_where_it_is_still_at_hand(world: World) -> None:
    (world.root / "Core/Old.cs").write_bytes(STRANGER)  # the commit had deleted it
    assert world.run("run").returncode == 1
    ran = world.run("resolve", world.commit_id, "--take-after")
    assert ran.returncode == 0, ran.stderr
    assert not (world.root / "Core/Old.cs").exists()
    assert world.run().returncode == 0


@keeps("recovery.way-out")
def test_what_is_not_at_hand_any_more_is_refused_and_nothing_changes(conflict: World) -> None:
    before = conflict.tree()
    ran = conflict.run("resolve", conflict.commit_id, "--take-after")
    assert ran.returncode == 3
    assert "no longer at hand" in ran.stderr
    assert conflict.tree() == before
    assert conflict.run("resolve", conflict.commit_id, "--keep-disk").returncode == 0


@keeps("recovery.way-out")
def test_files_are_decided_one_by_one_named_from_the_root_or_in_full(world: World) -> None:
    for name in ("Core/Apple.cs", "Core/Pear.cs"):
        (world.root / name).write_bytes(STRANGER)
    assert world.run("run").returncode == 1
    first = world.run("resolve", world.commit_id, "Core/Apple.cs", "--take-before")
    assert first.returncode == 1
    assert "Core/Pear.cs" in first.stdout
    assert world.bytes_of("Core/Apple.cs") == b"apple\n"
    second = world.run("resolve", world.commit_id, world.root / "Core/Pear.cs", "--keep-disk")
    assert second.returncode == 0, second.stderr
    assert world.bytes_of("Core/Pear.cs") == STRANGER


@keeps("recovery.way-out")
def test_a_record_is_forgotten_only_after_it_was_copied_out(conflict: World, tmp_path: Path) -> None:
    refused = conflict.run("discard", conflict.commit_id)
    assert refused.returncode == 3
    assert "xport" in refused.stderr
    copied = conflict.run("export", conflict.commit_id, tmp_path / "copy")
    assert copied.returncode == 1, copied.stderr
    assert (tmp_path / "copy/before/Core/Apple.cs").read_bytes() == b"apple\n"
    assert (tmp_path / "copy/before/Core/Old.cs").read_bytes() == b"old\n"
    before = conflict.tree()
    gone = conflict.run("discard", conflict.commit_id)
    assert gone.returncode == 0, gone.stderr
    assert conflict.tree() == before
    assert conflict.run().returncode == 0


@keeps("recovery.way-out")
def test_a_moved_workspace_is_recovered_where_it_is_now(world: World, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    world.root.rename(moved)
    ran = world.run("run")
    assert ran.returncode == 1
    assert "no longer at" in ran.stdout
    assert "--root" in world.run("explain", world.commit_id).stdout
    ran = world.run("--root", moved)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {
        name: entry for name, entry in picture(moved).items() if not name.startswith(".vs")
    } == world.before


@keeps("recovery.way-out")
def test_naming_a_root_leaves_the_commits_of_other_workspaces_alone(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other, FILES)
    before = picture(other)
    interrupt(other, world.state, STEPS, loaded=other / "Shop.slnx", nth=1)
    half = picture(other)
    ran = world.run("--root", world.root)
    assert ran.returncode == 1, "one is left"
    assert "1 commit is recovered." in ran.stdout
    assert picture(other) == half
    assert "is not the workspace" not in ran.stdout, "nothing is wrong with the other one"
    assert world.run("run").returncode == 0
    assert picture(other) == before


@pytest.fixture
def stranger(world: World, tmp_path: Path) -> World:
    """The same workspace, seen by a bridge that has another state directory."""
    return World(world.root, tmp_path / "another state", world.before)


def commands(text: str) -> list[str]:
    """The command lines that a person was told."""
    return [
        line[line.index("roslyn-bridge recover") :]
        for line in text.splitlines()
        if "roslyn-bridge recover" in line
    ]


def in_a_shell(line: str, above: Path) -> subprocess.CompletedProcess[str]:
    """A line as it is copied into a shell that knows nothing of us but the command."""
    folder = above / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / "roslyn-bridge"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bridge "$@"\n')
    script.chmod(0o700)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ROSLYN_BRIDGE_")}
    return subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        text=True,
        timeout=WAIT,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(above / "home")},
    )


@keeps("recovery.way-out")
def test_the_marker_of_another_state_directory_is_shown_and_can_be_taken_away(
    world: World, stranger: World
) -> None:
    short = world.commit_id[:8]
    ran = stranger.run("list", "--root", world.root)
    assert ran.returncode == 1
    assert short in ran.stdout
    assert f"with the state directory {world.state / 'roslyn-bridge'}" in ran.stdout
    assert stranger.run("discard", short, "--marker").returncode == 3, "without --root"
    refused = stranger.run("discard", short, "--root", world.root)
    assert (refused.returncode, "only its marker" in refused.stderr) == (3, True)
    done = stranger.run("discard", short, "--marker", "--root", world.root)
    assert done.returncode == 0, done.stderr
    assert "Core/Apple.cs" in done.stdout, "which file that is kept belongs where"
    assert stranger.run("list", "--root", world.root).returncode == 0


@keeps("recovery.way-out")
def test_a_commit_whose_state_directory_is_lost_is_explained_and_copied_out_by_its_marker(
    world: World, stranger: World, tmp_path: Path
) -> None:
    short = world.commit_id[:6]
    shutil.rmtree(world.state)
    before = picture(world.root)
    ran = in_a_shell(RecoverCommand(stranger.state).line("explain", short, root=world.root), tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert "changed  Core/Apple.cs: as the commit wants it" in ran.stdout
    assert "as before the commit in" in ran.stdout
    assert picture(world.root) == before
    copying, discarding = commands(ran.stdout)[-2:]
    (tmp_path / "home").mkdir()
    copied = in_a_shell(copying, tmp_path)
    assert copied.returncode == 1, copied.stderr
    (folder,) = (tmp_path / "home").iterdir()
    assert (folder / "before/Core/Apple.cs").read_bytes() == b"apple\n"
    assert (folder / "before/Core/Pear.cs").read_bytes() == b"pear\n"
    assert in_a_shell(discarding, tmp_path).returncode == 0
    assert stranger.run("list", "--root", world.root).returncode == 0


@keeps("recovery.way-out")
@pytest.mark.parametrize("arguments", [("run",), ("resolve", "--take-before")])
def test_what_needs_the_record_is_refused_for_a_commit_of_another_bridge(
    world: World, stranger: World, arguments: tuple[str, ...]
) -> None:
    before = picture(world.root)
    ran = stranger.run(arguments[0], world.commit_id[:8], *arguments[1:], "--root", world.root)
    assert ran.returncode == 3
    assert "is not in the state directory" in ran.stderr
    assert picture(world.root) == before


@keeps("recovery.way-out")
def test_the_marker_of_a_commit_whose_record_is_here_is_not_taken_away(world: World) -> None:
    ran = world.run("discard", world.commit_id, "--marker", "--root", world.root)
    assert ran.returncode == 3
    assert "record of commit" in ran.stderr
    assert world.run("run").returncode == 0
    assert picture(world.root) == world.before


@keeps("recovery.way-out")
def test_a_discard_with_the_root_of_another_workspace_forgets_nothing(
    conflict: World, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    assert conflict.run("export", conflict.commit_id, tmp_path / "copy").returncode == 1
    before = picture(conflict.root)
    ran = conflict.run("discard", conflict.commit_id, "--root", wrong)
    assert (ran.returncode, "not the workspace" in ran.stderr) == (3, True)
    assert picture(conflict.root) == before
    assert conflict.commit_id[:8] in conflict.run("list").stdout


@keeps("recovery.way-out")
def test_every_command_that_is_told_can_be_copied_into_a_shell(conflict: World, tmp_path: Path) -> None:
    listed = in_a_shell(commands(conflict.run("list").stdout)[-1], tmp_path)
    assert listed.returncode == 1, listed.stderr
    told = [line for line in commands(listed.stdout) if not line.endswith("PATH")]
    assert all(f"--state-directory {conflict.state}" in line for line in told)
    (tmp_path / "home").mkdir()
    (copying,) = (line for line in told if " export " in line)
    copied = in_a_shell(copying, tmp_path)
    assert copied.returncode == 1, copied.stderr
    (folder,) = (tmp_path / "home").iterdir()
    assert (folder / "disk/Core/Apple.cs").read_bytes() == STRANGER
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "disk/Core/Apple.cs").stat().st_mode) == 0o600
    one_alone = next(line for line in told if "Core/Apple.cs" in line)
    assert in_a_shell(one_alone, tmp_path).returncode == 0
    assert conflict.run("list").returncode == 0


@keeps("recovery.way-out")
def test_explain_names_the_files_in_which_a_decision_would_destroy_what_somebody_wrote(
    conflict: World,
) -> None:
    told = conflict.run("explain", conflict.commit_id).stdout
    warning = told[told.index("destroy what somebody else wrote into") :]
    assert "Core/Apple.cs" in warning
    assert "Core/Pear.cs" not in warning
    assert "Copy all to a folder first" in warning


@keeps("recovery.way-out")
@pytest.mark.parametrize("where", ["workspace", "state directory"])
def test_copies_are_refused_where_they_could_be_built_committed_or_taken_for_state(
    conflict: World, where: str
) -> None:
    target = (conflict.root if where == "workspace" else conflict.state / "roslyn-bridge") / "copy"
    ran = conflict.run("export", conflict.commit_id, target)
    assert (ran.returncode, "name another folder" in ran.stderr) == (3, True)
    assert not target.exists()


@keeps("recovery.way-out")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("explain", "ffffffff"), 3, "No unfinished commit begins with"),
        (("explain",), 2, "Missing argument"),
        (("resolve", "ffffffff"), 2, "--keep-disk, --take-before or --take-after"),
        (("run", "--root", "/no/such/place"), 2, "does not exist"),
        (("list", "--state-directory", "relative"), 2, "absolute"),
        (("unheard-of",), 2, "No such command"),
    ],
)
def test_a_wrong_command_line_is_told_by_its_exit_code_and_a_sentence(
    world: World, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = world.run(*arguments)
    assert (ran.returncode, "Traceback" in ran.stderr) == (code, False)
    assert words in ran.stderr


def test_two_decisions_at_once_and_an_empty_id_decide_nothing(conflict: World, tmp_path: Path) -> None:
    before = conflict.tree()
    (commit_id,) = (path.name for path in (conflict.state / "roslyn-bridge" / "recovery").iterdir())
    assert conflict.run("resolve", commit_id, "--take-before", "--keep-disk").returncode == 2
    for words in (("explain", ""), ("export", "", tmp_path / "copy"), ("resolve", " ", "--take-before")):
        done = conflict.run(*words)
        assert done.returncode == 3
        assert "empty id" in done.stderr + done.stdout
    assert conflict.tree() == before
    assert not (tmp_path / "copy").exists()


@keeps("recovery.way-out")
def test_what_is_not_to_be_decided_is_refused_by_name(conflict: World) -> None:
    ran = conflict.run("resolve", conflict.commit_id, "Core/Pear.cs", "--keep-disk")
    assert ran.returncode == 3
    assert "Core/Pear.cs" in ran.stderr


@keeps("recovery.way-out")
def test_a_state_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/roslyn-bridge").symlink_to(tmp_path)
    ran = World(tmp_path, tmp_path / "state", {}).run()
    assert ran.returncode == 3
    assert "is a link" in ran.stderr


@keeps("recovery.way-out")
def test_a_record_of_a_newer_bridge_is_left_alone_and_said_to_be(world: World) -> None:
    (manifest,) = (world.state / "roslyn-bridge/recovery").glob("*/manifest")
    manifest.write_bytes(
        manifest.read_bytes().replace(b"roslyn-bridge-record 1 ", b"roslyn-bridge-record 9 ", 1)
    )
    before = picture(world.root)
    ran = world.run("run")
    assert ran.returncode == 1
    assert "RecoveryVersionUnsupported" in ran.stdout
    assert picture(world.root) == before


@keeps("recovery.way-out")
def test_names_that_a_terminal_cannot_show_are_escaped(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    name = "Core/A\nb\udcff.cs"
    write(root, {"Core/X.cs": b"x\n", name: b"a\n"})
    world = World(root, tmp_path / "state", picture(root))
    interrupt(root, world.state, {name: "b\n", "Core/X.cs": "y\n"}, nth=1)
    (root / name).write_bytes(STRANGER)
    ran = world.run("run")
    assert ran.returncode == 1
    assert "A\\nb\\udcff.cs" in ran.stdout
    assert world.run("resolve", world.commit_id, "--take-before").returncode == 0
    assert picture(root) == world.before
