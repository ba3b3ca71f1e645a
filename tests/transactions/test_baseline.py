"""What changed on disk is found by content, told by stat."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transactions.worlds import staged, write
from transactions.baseline import ABSENT, Baseline, ExternalChange, Inputs, Present
from transactions.commit import commit
from transactions.text import SourceText

FILES = {"A.cs": b"a\n", "Sub/B.cs": b"b\n", "Sub/Deep/C.cs": b"c\n", "App.csproj": b"<Project />"}

OLD = 1_000_000_000
"""A modification time (seconds) long before the test, so that a stat alone may be believed."""


def is_source(path: Path) -> bool:
    return path.suffix == ".cs"


def aged(root: Path) -> None:
    for path in root.rglob("*"):
        os.utime(path, (OLD, OLD), follow_symlinks=False)
    os.utime(root, (OLD, OLD))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    aged(tmp_path)
    return tmp_path


@pytest.fixture
def inputs(root: Path) -> Inputs:
    return Inputs.capture([root / name for name in FILES], [root], is_source)


def told(changes: tuple[ExternalChange, ...], root: Path) -> list[tuple[str, str]]:
    return [(change.kind, os.fspath(change.path.relative_to(root))) for change in changes]


def test_a_file_is_read_once_and_the_answer_stays(root: Path) -> None:
    baseline = Baseline(root)
    before = baseline.read(root / "A.cs")
    (root / "A.cs").write_bytes(b"later\n")

    assert isinstance(before, Present)
    assert before.text == SourceText("a\n")
    assert baseline.read(root / "A.cs") is before
    assert told(baseline.changed_since(), root) == [("Changed", "A.cs")]


def test_a_file_that_is_not_there_is_absent_and_its_appearance_is_a_change(root: Path) -> None:
    baseline = Baseline(root)
    assert baseline.read(root / "New.cs") is ABSENT
    assert baseline.read(root / "A.cs/Below.cs") is ABSENT
    assert baseline.changed_since() == ()
    write(root, {"New.cs": b"n\n"})

    assert told(baseline.changed_since(), root) == [("Created", "New.cs")]


def test_what_is_no_readable_text_is_there_and_says_why(root: Path) -> None:
    write(root, {"Binary.cs": b"\0"})
    (root / "Link.cs").symlink_to("A.cs")
    (root / "Dangling.cs").symlink_to("nowhere")
    os.mkfifo(root / "Pipe.cs")
    baseline = Baseline(root)
    for name, word in (
        ("Binary.cs", "binary"),
        ("Link.cs", "link"),
        ("Dangling.cs", "link"),
        ("Pipe.cs", "regular"),
        ("Sub", "regular"),
        ("x" * 300 + ".cs", "refused"),
    ):
        state = baseline.read(root / name)
        assert isinstance(state, Present), name
        assert state.text is None, name
        assert word in (state.unreadable_reason or ""), name
        assert baseline.text(root / name) is None, name
    assert baseline.changed_since() == ()


def test_a_fingerprint_knows_stat_and_hash(root: Path) -> None:
    (root / "A.cs").chmod(0o640)
    state = Baseline(root).read(root / "A.cs")

    assert isinstance(state, Present)
    assert state.fingerprint is not None
    assert state.fingerprint.size == 2
    assert stat.S_IMODE(state.fingerprint.mode) == 0o640
    assert state.fingerprint.links == 1
    assert (
        state.fingerprint.sha256.hex() == "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7"
    )


def test_an_untouched_tree_has_no_changes(inputs: Inputs) -> None:
    assert inputs.is_complete
    assert inputs.changes() == ()
    assert inputs.changes() == ()


@pytest.mark.parametrize(
    "touch",
    [
        os.utime,
        lambda path: path.write_bytes(path.read_bytes()),
        lambda path: path.chmod(0o600),
        lambda path: (shutil.copy2(path, path.with_suffix(".tmp")), path.with_suffix(".tmp").replace(path)),
    ],
    ids=["new time", "written again", "new mode", "replaced by a copy"],
)
def test_the_same_bytes_are_no_change_whatever_the_stat_says(
    root: Path, inputs: Inputs, touch: Callable[[Path], object]
) -> None:
    touch(root / "A.cs")

    assert inputs.changes() == ()
    assert inputs.changes() == ()


def test_other_bytes_of_the_same_size_under_the_old_time_are_a_change(root: Path, inputs: Inputs) -> None:
    (root / "A.cs").write_bytes(b"x\n")
    os.utime(root / "A.cs", (OLD, OLD))

    assert told(inputs.changes(), root) == [("Changed", "A.cs")]


def test_a_file_that_was_young_when_we_looked_is_hashed_again(root: Path) -> None:
    path = root / "A.cs"
    path.write_bytes(b"1\n")
    young = path.stat()
    inputs = Inputs.capture([path], [])
    descriptor = os.open(path, os.O_WRONLY)
    os.write(descriptor, b"2\n")
    os.close(descriptor)
    os.utime(path, ns=(young.st_atime_ns, young.st_mtime_ns))

    assert told(inputs.changes(), root) == [("Changed", "A.cs")]


def test_a_change_that_was_taken_back_is_no_change(root: Path, inputs: Inputs) -> None:
    (root / "A.cs").write_bytes(b"x\n")
    assert inputs.changes()
    (root / "A.cs").write_bytes(b"a\n")

    assert inputs.changes() == ()


def test_deleted_created_and_renamed_files_are_told(root: Path, inputs: Inputs) -> None:
    (root / "A.cs").unlink()
    (root / "Sub/B.cs").rename(root / "Sub/Deep/Moved.cs")
    write(root, {"Sub/New.cs": b"completely new\n", "Sub/notes.txt": b"irrelevant"})
    changes = inputs.changes()

    assert ("Deleted", "A.cs") in told(changes, root)
    assert ("Deleted", "Sub/B.cs") not in told(changes, root)
    renamed = next(change for change in changes if change.path == root / "Sub/Deep/Moved.cs")
    assert renamed.kind == "Renamed"
    assert renamed.previous_path == root / "Sub/B.cs"
    assert {change.path.name for change in changes} == {"A.cs", "Moved.cs", "New.cs"}


def test_a_listed_file_that_is_no_input_itself_is_missed_when_it_goes(root: Path) -> None:
    inputs = Inputs.capture([], [root], is_source)
    (root / "Sub/B.cs").unlink()
    (change,) = inputs.changes()

    assert change == ExternalChange(root / "Sub/B.cs", "Deleted", "DirectoryListing")


def test_an_input_that_was_absent_is_a_change_when_it_comes(root: Path) -> None:
    inputs = Inputs.capture([root / "Directory.Build.props"], [])
    assert inputs.changes() == ()
    write(root, {"Directory.Build.props": b"<Project />"})

    assert told(inputs.changes(), root) == [("Created", "Directory.Build.props")]


def test_a_new_directory_counts_when_it_holds_sources_now_or_later(root: Path, inputs: Inputs) -> None:
    (root / "Fresh/Inner").mkdir(parents=True)
    write(root, {"Fresh/notes.txt": b"irrelevant"})
    assert inputs.changes() == ()
    write(root, {"Fresh/Inner/N.cs": b"n\n"})

    assert told(inputs.changes(), root) == [("Created", "Fresh/Inner/N.cs")]
    write(root, {"Other/O.cs": b"o\n"})
    assert told(inputs.changes(), root) == [("Created", "Fresh/Inner/N.cs"), ("Created", "Other/O.cs")]


def test_a_directory_that_goes_takes_its_files(root: Path) -> None:
    inputs = Inputs.capture([root / "A.cs"], [root], is_source)
    shutil.rmtree(root / "Sub")

    assert ("Deleted", "Sub") in told(inputs.changes(), root)


@pytest.mark.parametrize("name", [".vs", ".git", "bin", "obj", "Sub/obj"])
def test_builds_and_our_own_folder_never_count(root: Path, inputs: Inputs, name: str) -> None:
    write(root, {f"{name}/Generated.cs": b"g\n"})
    assert inputs.changes() == ()
    write(root, {f"{name}/Deeper/More.cs": b"g\n"})

    assert inputs.changes() == ()


def test_an_input_replaced_by_a_directory_or_link_is_a_change(root: Path, inputs: Inputs) -> None:
    (root / "A.cs").unlink()
    (root / "A.cs").mkdir()
    (root / "Sub/B.cs").unlink()
    (root / "Sub/B.cs").symlink_to("Deep/C.cs")

    assert {("Changed", "A.cs"), ("Changed", "Sub/B.cs")} <= set(told(inputs.changes(), root))


def test_an_input_that_is_a_link_counts_by_what_it_leads_to(root: Path) -> None:
    (root / "Link.cs").symlink_to("A.cs")
    (root / "Dangling.cs").symlink_to("Later.cs")
    inputs = Inputs.capture([root / "Link.cs", root / "Dangling.cs"], [])
    assert inputs.changes() == ()
    (root / "A.cs").write_bytes(b"x\n")
    write(root, {"Later.cs": b"l\n"})

    assert told(inputs.changes(), root) == [("Created", "Dangling.cs"), ("Changed", "Link.cs")]
    (root / "Link.cs").unlink()
    (root / "Link.cs").write_bytes(b"a\n")
    assert told(inputs.changes(), root) == [("Created", "Dangling.cs")]


def test_a_link_that_never_led_anywhere_is_no_change_until_it_does(root: Path) -> None:
    loop = root / "Round.cs"
    loop.symlink_to("Round.cs")
    inputs = Inputs.capture([loop], [])
    assert inputs.changes() == ()
    loop.unlink()
    loop.write_bytes(b"class Round;")
    assert [change.path for change in inputs.changes()] == [loop]


def test_what_cannot_be_looked_at_counts_as_changed(root: Path) -> None:
    loop = root / "Loop"
    loop.symlink_to("Loop")
    inputs = Inputs.capture([], [root / "Sub", loop], is_source)

    assert not inputs.is_complete
    (change,) = inputs.changes()
    assert change == ExternalChange(loop, "Unreadable", "DirectoryListing", error_code="ELOOP")


def test_a_directory_replaced_by_a_loop_of_links_is_unreadable_or_gone_never_unchanged(root: Path) -> None:
    inputs = Inputs.capture([root / "Sub/B.cs"], [root / "Sub"], is_source)
    shutil.rmtree(root / "Sub")
    (root / "Sub").symlink_to("Sub")
    kinds = {(change.kind, change.path.name) for change in inputs.changes()}

    assert ("Unreadable", "B.cs") in kinds
    assert ("Unreadable", "Sub") in kinds


def test_our_own_commit_is_accepted_and_a_strangers_write_beside_it_is_not(
    root: Path, inputs: Inputs
) -> None:
    baseline = Baseline(root)
    overlay = staged(
        baseline,
        {
            "A.cs": "a2\n",
            "Sub/B.cs": None,
            "Sub/New.cs": "new\n",
            "Far/Away/N.cs": "n\n",
            "Sub/Deep/C.cs": "c2\n",
        },
    )
    result = commit(root, overlay.changes(), baseline)
    write(root, {"Sub/Theirs.cs": b"t\n", "Sub/Deep/C.cs": b"theirs\n"})
    inputs.accept(result.written)

    assert told(inputs.changes(), root) == [("Changed", "Sub/Deep/C.cs"), ("Created", "Sub/Theirs.cs")]


def test_after_an_accepted_commit_the_new_files_are_inputs(root: Path, inputs: Inputs) -> None:
    baseline = Baseline(root)
    overlay = staged(baseline, {"Sub/B.cs": None, "Far/Away/N.cs": "n\n"})
    result = commit(root, overlay.changes(), baseline)
    inputs.accept(result.written)
    assert inputs.changes() == ()
    (root / "Far/Away/N.cs").write_bytes(b"x\n")
    write(root, {"Far/Away/M.cs": b"m\n", "Sub/B.cs": b"back\n"})

    assert told(inputs.changes(), root) == [
        ("Created", "Far/Away/M.cs"),
        ("Changed", "Far/Away/N.cs"),
        ("Created", "Sub/B.cs"),
    ]
