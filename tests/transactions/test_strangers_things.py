"""What is not ours is never taken, never lost and never in the way, whatever it is and whatever inode it was given."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.seam import ReusedInodes
from tests.transactions.crashes import Place, calls_of, number_of
from tests.transactions.worlds import FaultySystem, picture, staged, write
from transactions.baseline import Baseline
from transactions.commit import commit
from transactions.errors import CommitConflict, CommitFailed, RecoveryRefused, TransactionError
from transactions.exporting import export
from transactions.file_journal import FileJournal
from transactions.lock import commit_lock
from transactions.recovery import RecoveryItem, blocks, pending, recover
from transactions.resolving import Choice, discard, discard_marker, resolve

Make = Callable[[Path], None]
NewRoot = Callable[[], Path]

KINDS: dict[str, Make] = {
    "a directory": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link": lambda path: path.symlink_to("nowhere"),
}

COMMITTED = -2
"""The rename that publishes this state, counted from the end."""


@pytest.fixture
def place(new_root: NewRoot) -> Place:
    return Place.make(new_root())


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return calls_of(Place.make(tmp_path_factory.mktemp("calls")))


def the(items: tuple[RecoveryItem, ...]) -> RecoveryItem:
    (item,) = items
    return item


def id_of(place: Place) -> str:
    (record,) = (place.state / "recovery").iterdir()
    return record.name


def workshop_of(place: Place) -> Path:
    return place.root / ".vs/roslyn-bridge/commits" / id_of(place)


def halfway(calls: list[str]) -> int:
    return number_of(calls, "exchange", 2)


def remade(system: ReusedInodes, path: Path, make: Make) -> None:
    """Somebody removes a file, and makes something in its place that is given its inode."""
    before = path.lstat()
    path.unlink()
    make(path)
    system.reused(before, path.lstat())


def removed(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()


# -- in the place of a target ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_what_was_given_the_inode_of_our_file_stays_at_its_place(
    place: Place, calls: list[str], make: Make
) -> None:
    place.die(halfway(calls))
    system = ReusedInodes(tells_birth=False)
    remade(system, place.root / "App/A.cs", make)
    his = (place.root / "App/A.cs").lstat().st_ino
    item = the(recover(place.state, system=system))

    assert (item.state, item.paths) == ("RecoveryConflict", place.paths("App/A.cs"))
    assert (place.root / "App/A.cs").lstat().st_ino == his
    assert resolve(place.state, item.commit_id, [], "take-before", system=system) is None
    assert place.is_before()
    assert place.records() == set()


def test_a_file_of_the_same_bytes_and_inode_is_anothers_where_the_system_tells_its_birth(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))
    system = ReusedInodes(tells_birth=True)
    remade(system, place.root / "App/A.cs", lambda path: write(path.parent, {path.name: b"class A2 { }\r\n"}))
    item = the(recover(place.state, system=system))

    assert (item.state, item.paths) == ("RecoveryConflict", place.paths("App/A.cs"))
    assert (place.root / "App/A.cs").read_bytes() == b"class A2 { }\r\n"


@pytest.mark.parametrize("content", [b"gone\n", b"anew\n"], ids=["the same bytes", "others"])
def test_a_deleted_file_that_somebody_brings_back_while_we_tidy_up_is_not_deleted_again(
    place: Place, calls: list[str], content: bytes
) -> None:
    instant = number_of(calls, "rename", COMMITTED)
    tidied = next(
        number for number, name in enumerate(calls) if number > instant and name == "remove_directory"
    )
    gone = place.root / "Lib/Gone.cs"
    before, system = gone.lstat(), ReusedInodes(tells_birth=True)
    place.die(tidied)
    gone.write_bytes(content)
    system.reused(before, gone.lstat())

    assert recover(place.state, system=system) == ()
    assert gone.read_bytes() == content
    gone.unlink()
    assert place.is_after()


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_what_takes_the_place_of_a_file_right_before_it_is_exchanged_is_given_back(
    place: Place, calls: list[str], make: Make
) -> None:
    path = place.root / "App/A.cs"
    made: list[int] = []

    def replace() -> None:
        path.unlink()
        make(path)
        made.append(path.lstat().st_ino)

    with pytest.raises(CommitConflict):
        place.commit(FaultySystem(interfere={number_of(calls, "exchange", 0): replace}))

    assert [path.lstat().st_ino] == made
    removed(path)
    write(place.root, {"App/A.cs": b"class A { }\r\n"})
    assert place.is_before()
    assert recover(place.state) == ()


def test_a_conflict_whose_file_became_a_directory_can_be_kept_as_it_is(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))
    (place.root / "App/A.cs").unlink()
    write(place.root, {"App/A.cs/theirs.txt": b"theirs"})
    item = the(recover(place.state))
    before = (place.root / "App/A.cs/theirs.txt").lstat().st_ino

    assert resolve(place.state, item.commit_id, [], "keep-disk") is None
    assert (place.root / "App/A.cs/theirs.txt").lstat().st_ino == before
    assert place.records() == set()


# -- in a workshop --------------------------------------------------------------------------------------------------------


def test_what_lies_in_a_workshop_and_is_not_ours_is_copied_out_and_stays(
    place: Place, calls: list[str], tmp_path: Path
) -> None:
    place.die(halfway(calls))
    workshop = workshop_of(place)
    write(workshop, {"000000.old/deep/theirs.txt": b"theirs"})
    (workshop / "000006.new").symlink_to("nowhere")
    os.mkfifo(workshop / "000099.new")
    write(place.root, {"Lib/Gone.cs": b"stranger"})
    item = the(recover(place.state))
    exported = export(place.state, item.commit_id, tmp_path / "out")

    assert exported.unread == (workshop / "000099.new",)
    assert (tmp_path / "out/displaced/Lib/Fresh.cs/deep/theirs.txt").read_bytes() == b"theirs"
    assert (tmp_path / "out/displaced/Lib/Gone.cs").readlink() == Path("nowhere")
    discarded = discard(place.state, item.commit_id)
    assert discarded.left == tuple(workshop / name for name in ("000000.old", "000006.new", "000099.new"))
    assert {path.name for path in workshop.iterdir()} == {
        *("000000.old", "000006.new", "000099.new", ".gitignore")
    }
    assert pending(place.state) == ()


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_a_recovery_that_is_done_ends_in_spite_of_things_in_its_workshop_and_tells_them(
    place: Place, calls: list[str], make: Make
) -> None:
    place.die(number_of(calls, "rename", COMMITTED), after=True)
    thing = workshop_of(place) / "000099.old"
    make(thing)
    item = the(recover(place.state))

    assert (item.code, item.paths, item.is_blocking) == ("RecoveryOriginalKept", (thing,), False)
    assert the(recover(place.state)) == item
    removed(thing)
    assert recover(place.state) == ()
    assert place.is_after()
    assert place.records() == set()


def test_a_discard_ends_the_record_even_if_the_tree_cannot_be_tidied(
    place: Place, calls: list[str], tmp_path: Path
) -> None:
    place.die(halfway(calls))
    commit_id = id_of(place)
    workshop = workshop_of(place)
    export(place.state, commit_id, tmp_path / "out")

    class ReadOnlyRoot(FaultySystem):
        def remove(self, name: str, directory: int) -> None:
            if name.endswith((".new", ".old")):
                raise OSError(errno.EROFS, "read-only")
            super().remove(name, directory)

    discarded = discard(place.state, commit_id, system=ReadOnlyRoot())
    assert workshop in discarded.left
    assert pending(place.state) == ()


def test_a_file_that_a_failing_disk_does_not_give_stays_and_nothing_else_is_kept_from_a_person(
    place: Place, calls: list[str], tmp_path: Path
) -> None:
    place.die(halfway(calls))
    commit_id, workshop = id_of(place), workshop_of(place)
    broken = next(workshop.glob("*.old"))

    class Failing(FaultySystem):
        def open_file(self, name: str, directory: int) -> int:
            if name == broken.name:
                raise OSError(errno.EIO, "unreadable")
            return super().open_file(name, directory)

    exported = export(place.state, commit_id, tmp_path / "out", system=Failing())
    assert exported.unread == (broken,)
    assert (tmp_path / "out/before/App/A.cs").read_bytes() == b"class A { }\r\n"
    assert workshop in discard(place.state, commit_id, system=Failing()).left
    assert broken.exists()
    assert pending(place.state) == ()


def test_a_record_that_cannot_be_read_leaves_its_workshop_and_says_so(
    place: Place, calls: list[str], tmp_path: Path
) -> None:
    place.die(halfway(calls))
    manifest = place.state / "recovery" / id_of(place) / "manifest"
    manifest.write_bytes(manifest.read_bytes()[:-1] + b"#")
    workshop, commit_id = workshop_of(place), id_of(place)
    before = {name: entry for name, entry in picture(workshop).items() if not name.endswith(".dir")}
    export(place.state, commit_id, tmp_path / "out")
    discarded = discard(place.state, commit_id)

    assert picture(workshop).items() >= before.items()
    assert set(discarded.left) == {workshop / name for name in before if name != ".gitignore"}
    assert pending(place.state) == ()
    assert (tmp_path / "out/before/App/A.cs").read_bytes() == b"class A { }\r\n"


# -- a person decides -----------------------------------------------------------------------------------------------------


def test_keeping_the_disk_does_not_drop_what_somebody_wrote_into_a_displaced_file(
    place: Place, calls: list[str]
) -> None:
    with (place.root / "App/A.cs").open("r+b", buffering=0) as handle:
        place.die(halfway(calls))
        handle.write(b"late")
    (place.root / "App/A.cs").unlink()
    write(place.root, {"App/A.cs": b"stranger"})
    item = the(recover(place.state))
    left = resolve(place.state, item.commit_id, [], "keep-disk")

    assert left is not None
    assert (left.code, left.is_blocking) == ("RecoveryOriginalKept", False)
    assert [path.read_bytes() for path in left.paths] == [b"lates A { }\r\n"]
    assert not blocks(left, place.root)
    assert the(recover(place.state)) == left


def test_a_kept_original_is_nothing_to_decide_about(place: Place, calls: list[str]) -> None:
    with (place.root / "App/A.cs").open("r+b", buffering=0) as handle:
        place.die(number_of(calls, "rename", COMMITTED), after=True)
        handle.write(b"late")
    item = the(recover(place.state))
    choices: tuple[Choice, ...] = ("keep-disk", "take-before", "take-after")
    for choice in choices:
        with pytest.raises(RecoveryRefused, match=item.paths[0].name):
            resolve(place.state, item.commit_id, [], choice)

    assert item.paths[0].read_bytes() == b"lates A { }\r\n"
    item.paths[0].unlink()
    assert recover(place.state) == ()
    assert place.is_after()


def test_a_decision_that_can_be_carried_out_in_part_says_for_which_files(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))
    for name in ("App/A.cs", "App/B.cs"):
        (place.root / name).unlink()
    write(place.root, {"App/A.cs": b"stranger", "App/B.cs/theirs.txt": b"theirs"})
    item = the(recover(place.state))
    with pytest.raises(RecoveryRefused) as refused:
        resolve(place.state, item.commit_id, [], "take-before")

    assert "done for 1 files (App/A.cs)" in refused.value.message
    assert "App/B.cs is a directory with files in it" in refused.value.message
    assert refused.value.paths == place.paths("App/B.cs")
    assert the(pending(place.state)).paths == place.paths("App/B.cs")
    assert (place.root / "App/A.cs").read_bytes() == b"class A { }\r\n"
    shutil.rmtree(place.root / "App/B.cs")
    assert resolve(place.state, item.commit_id, [], "take-before") is None
    assert place.is_before()


def test_a_strangers_file_goes_back_when_what_was_decided_cannot_take_its_place(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))
    (place.root / "App/A.cs").unlink()
    write(place.root, {"App/A.cs": b"stranger"})
    item = the(recover(place.state))

    class Refuses(FaultySystem):
        def move(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
            if new == "A.cs" and ".aside" not in old:
                raise OSError(errno.EACCES, "not now")
            super().move(old, old_directory, new, new_directory)

    with pytest.raises(RecoveryRefused, match="Not done for 1"):
        resolve(place.state, item.commit_id, [], "take-before", system=Refuses())
    assert (place.root / "App/A.cs").read_bytes() == b"stranger"


# -- whose workspace it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tells_birth", [True, False])
def test_a_clone_that_was_given_the_inode_of_a_deleted_workspace_is_left_alone(
    place: Place, calls: list[str], tells_birth: bool
) -> None:
    place.die(halfway(calls))
    system = ReusedInodes(tells_birth=tells_birth)
    deleted = place.root.lstat()
    place.root.rename(place.root.parent / "deleted")
    place.root.mkdir()
    write(place.root, {"App/B.cs": b"cloned anew"})
    system.reused(deleted, place.root.lstat())
    before = picture(place.root)
    item = the(recover(place.state, system=system))

    assert item.code == "RecoveryRootMoved"
    assert picture(place.root) == before
    with pytest.raises(RecoveryRefused):
        resolve(place.state, item.commit_id, [], "take-before", system=system)
    assert picture(place.root) == before


def test_a_workspace_that_lost_our_folders_is_known_by_its_birth_or_left_to_a_person(
    place: Place, calls: list[str]
) -> None:
    place.die(number_of(calls, "move", -1), after=True)
    shutil.rmtree(place.root / ".vs")
    before = picture(place.root)

    assert the(recover(place.state, system=ReusedInodes(tells_birth=False))).code == "RecoveryRootMoved"
    assert picture(place.root) == before
    assert recover(place.state) == ()
    assert place.is_before()


def test_a_commit_whose_marker_was_taken_away_is_not_taken_back_over_what_others_built_on_it(
    place: Place, calls: list[str], tmp_path: Path
) -> None:
    place.die(halfway(calls))
    discard_marker(place.root, id_of(place))
    overlay = staged(Baseline(place.root), {"App/B.cs": "built upon it\n"})
    with commit_lock(place.root) as lock:
        other = FileJournal(tmp_path / "other", lock)
        commit(place.root, overlay.changes(), overlay.baseline, journal=other)
    before = picture(place.root)
    item = the(recover(place.state))

    assert item.state == "RecoveryConflict"
    assert "marker" in item.message
    assert set(item.paths) == {
        path for path in place.paths(*place.before | place.after) if path.suffix == ".cs"
    } - set(place.paths("Lib/Untouched.cs"))
    assert picture(place.root) == before
    assert resolve(place.state, item.commit_id, [], "keep-disk") is None
    assert not (place.root / ".vs").exists()


# -- folders that wander, are too many, or too deep ---------------------------------------------------------------------


def test_an_empty_directory_of_ours_is_found_in_a_parent_that_was_moved_away(new_root: NewRoot) -> None:
    files, steps = {"App/A.cs": b"a\n"}, {"App/Sub/New.cs": "new\n"}
    calls = calls_of(Place.make(new_root(), files, steps))
    place = Place.make(new_root(), files, steps)

    def swap() -> None:
        (place.root / "App").rename(place.root / "App.moved")
        (place.root / "App").symlink_to("App.moved")

    with pytest.raises(TransactionError):
        place.commit(FaultySystem(interfere={number_of(calls, "move", -1): swap}))
    assert [path.name for path in (place.root / "App.moved").iterdir()] == ["A.cs"]
    assert recover(place.state) == ()


def test_a_commit_whose_directories_cannot_be_removed_again_is_not_called_taken_back(
    new_root: NewRoot,
) -> None:
    files, steps = {"App/A.cs": b"a\n"}, {"New/B.cs": "b\n"}
    calls = calls_of(Place.make(new_root(), files, steps))
    place = Place.make(new_root(), files, steps)

    class Stuck(FaultySystem):
        def remove_directory(self, name: str, directory: int) -> None:
            if name == "New":
                raise OSError(errno.EROFS, "read-only")
            super().remove_directory(name, directory)

    with pytest.raises(CommitFailed, match="directories") as failed:
        place.commit(Stuck(fail_at=number_of(calls, "move", -1), error=errno.EROFS))
    assert not failed.value.restored
    assert (place.root / "New").is_dir()
    assert recover(place.state) == ()
    assert place.is_before()


def test_out_of_inodes_a_commit_is_refused_and_nothing_is_in_the_way_of_the_next_one(
    new_root: NewRoot, calls: list[str]
) -> None:
    class OutOfInodes(FaultySystem):
        def open_new(self, name: str, directory: int, mode: int) -> int:
            self.require_room()
            return super().open_new(name, directory, mode)

        def make_directory(self, name: str, directory: int, mode: int = 0o777) -> None:
            self.require_room()
            super().make_directory(name, directory, mode)

        def require_room(self) -> None:
            if len(self.calls) > full_at:
                raise OSError(errno.ENOSPC, "no inode")

    for full_at in range(0, number_of(calls, "open_new", -1), 7):
        place = Place.make(new_root())
        with pytest.raises(TransactionError):
            place.commit(OutOfInodes())
        assert pending(place.state) == () if place.state.exists() else True, full_at
        place.commit()
        assert place.is_after(), full_at


def test_a_path_of_nine_hundred_levels_is_committed_and_recovered(new_root: NewRoot) -> None:
    above = new_root()
    deep = Path(*["d"] * 900)

    def made(name: str) -> Place:
        root = above / name
        folder = root
        root.mkdir()
        for part in deep.parts:
            folder /= part
            folder.mkdir()
        (folder / "A.cs").write_bytes(b"a\n")
        overlay = staged(Baseline(root), {f"{deep}/A.cs": "a2\n", f"{deep}/New/B.cs": "b\n"})
        return Place(root, above / "state", overlay, {}, {})

    counted = FaultySystem()
    place = made("counted")
    place.commit(counted)
    assert (place.root / deep / "New/B.cs").read_bytes() == b"b\n"
    crashed = made("crashed")
    crashed.die(number_of(counted.calls, "exchange", 0), after=True)
    assert recover(crashed.state) == ()
    assert [path.name for path in (crashed.root / deep).iterdir()] == ["A.cs"]
    assert (crashed.root / deep / "A.cs").read_bytes() == b"a\n"
