"""Whatever a commit dies of, the next start finds the whole before-image or the whole after-image."""

import errno
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transactions.crashes import CHANGES_THE_DISK, Place, calls_of, mode_of, number_of
from tests.transactions.worlds import FOR_EVER, DyingSystem, FaultySystem, Killed, picture, write
from transactions.errors import CommitUnconfirmed, RecoveryRefused, TransactionError
from transactions.exporting import export
from transactions.lock import commit_lock
from transactions.recovery import RecoveryItem, blocks, foreign_markers, pending, recover
from transactions.resolving import Choice, discard, discard_marker, resolve

NewRoot = Callable[[], Path]

LATEST = "state-*"

COMMITTED, APPLYING = -2, -3
"""The renames that publish these states, counted from the end; the last one is into the trash."""


@pytest.fixture
def place(new_root: NewRoot) -> Place:
    return Place.make(new_root())


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return calls_of(Place.make(tmp_path_factory.mktemp("calls")))


def halfway(calls: list[str]) -> int:
    """Two files are deleted, two directories made, two files exchanged, two not yet, none created."""
    return number_of(calls, "exchange", 2)


def instant(calls: list[str]) -> int:
    """The rename that publishes `Committed`."""
    return number_of(calls, "rename", COMMITTED)


def record_of(place: Place) -> Path:
    (record,) = (place.state / "recovery").iterdir()
    return record


def workshop_of(place: Place) -> Path:
    return place.root / ".vs/roslyn-bridge/commits" / record_of(place).name


def marker_of(place: Place) -> Path:
    return place.root / ".vs/roslyn-bridge/pending" / record_of(place).name


def the(items: tuple[RecoveryItem, ...]) -> RecoveryItem:
    (item,) = items
    return item


# -- kills and failures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
def test_a_commit_killed_at_any_call_is_there_in_whole_or_not_at_all_after_recovery(
    new_root: NewRoot, calls: list[str], after: bool
) -> None:
    for number, name in enumerate(calls):
        if name not in CHANGES_THE_DISK:
            continue
        where = f"call {number} ({name})"
        place = Place.make(new_root())
        place.die(number, after=after)
        assert recover(place.state) == (), where
        committed = number > instant(calls) or (number == instant(calls) and after)
        assert place.tree() == (place.after if committed else place.before), where
        assert place.records() == set(), where
        if not committed:
            assert place.commit().written, where  # nothing stands in the way of the next one


@pytest.mark.parametrize(
    ("error", "times", "after"),
    [
        (errno.EIO, 1, False),
        (errno.EIO, 1, True),
        (errno.EIO, FOR_EVER, False),
        (errno.ELOOP, FOR_EVER, True),
    ],
)
def test_a_commit_whose_calls_fail_is_whole_or_not_at_all_once_the_fault_is_lifted(
    new_root: NewRoot, calls: list[str], error: int, times: int, after: bool
) -> None:
    for number, name in enumerate(calls):
        if name not in CHANGES_THE_DISK:
            continue
        where = f"call {number} ({name})"
        place = Place.make(new_root())
        success = False
        try:
            place.commit(FaultySystem(fail_at=number, error=error, after=after, times=times))
            success = True
        except TransactionError:
            pass
        assert recover(place.state) == (), where
        assert place.is_after() if success else place.is_before() or place.is_after(), where
        assert place.records() == set(), where


@pytest.mark.parametrize("kind", ["kill before", "kill after", "fails once", "fails from there on"])
def test_a_recovery_that_dies_or_fails_at_any_call_is_done_by_the_next_one(
    new_root: NewRoot, calls: list[str], kind: str
) -> None:
    rng = random.Random(kind)
    changing = [number for number, name in enumerate(calls) if name in CHANGES_THE_DISK]
    for number in (halfway(calls), instant(calls) + 1, rng.choice(changing)):
        counted, twin = FaultySystem(), Place.make(new_root())
        twin.die(number)
        recover(twin.state, system=counted)
        for at, name in enumerate(counted.calls):
            if name not in CHANGES_THE_DISK:
                continue
            where = f"commit died at {number} ({calls[number]}), recovery at {at} ({name})"
            place = Place.make(new_root())
            place.die(number)
            _recover_badly(place, kind, at)
            assert recover(place.state) == (), where
            assert place.tree() == twin.tree(), where
            assert place.records() == set(), where


def _recover_badly(place: Place, kind: str, at: int) -> None:
    times = FOR_EVER if kind == "fails from there on" else 1
    system = (
        DyingSystem(die_at=at, after=kind == "kill after")
        if kind.startswith("kill")
        else FaultySystem(fail_at=at, error=errno.EIO, times=times)
    )
    try:
        items = recover(place.state, system=system)
    except (Killed, TransactionError):
        return
    assert {item.state for item in items} <= {"RecoveryIncomplete", "Committed", "Prepared", None}


def test_files_that_the_system_will_not_give_back_are_told_and_tried_again(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))

    class NoExchange(FaultySystem):
        def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
            raise OSError(errno.EACCES, "not now")

    item = the(recover(place.state, system=NoExchange()))
    assert item.state == "RecoveryIncomplete"
    assert item.paths == place.paths("App/A.cs", "App/B.cs")
    assert the(pending(place.state)) == item
    assert recover(place.state) == ()
    assert place.is_before()


def test_a_commit_whose_publication_cannot_be_confirmed_is_not_undone(place: Place, calls: list[str]) -> None:
    with pytest.raises(CommitUnconfirmed):
        place.commit(FaultySystem(fail_at=instant(calls) + 1, error=errno.EIO, times=FOR_EVER))

    assert the(pending(place.state)).state == "Committed"
    assert recover(place.state) == ()
    assert place.is_after()


def test_a_publication_that_fails_once_is_made_again_with_a_new_file(place: Place, calls: list[str]) -> None:
    place.commit(FaultySystem(fail_at=instant(calls), error=errno.EIO))

    assert place.is_after()
    assert place.records() == set()


def test_nothing_is_pending_where_nothing_was_ever_committed(tmp_path: Path) -> None:
    assert pending(tmp_path / "state") == ()
    assert recover(tmp_path / "state") == ()
    assert not (tmp_path / "state").exists()


# -- what a pending record says -------------------------------------------------------------------------------------------


def test_an_interrupted_commit_is_told_with_its_workspace_and_blocks_what_overlaps(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))
    item = the(pending(place.state))

    assert (item.state, item.code) == ("Applying", None)
    assert item.root == place.root
    assert item.loaded_path == place.root / "App.sln"
    assert blocks(item, place.root)
    assert blocks(item, place.root / "App")
    assert blocks(item, place.root.parent)
    assert not blocks(item, place.root.parent / "twin")


def test_a_second_recoverer_leaves_the_first_one_alone(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    with commit_lock(place.root):
        item = the(recover(place.state))

    assert item.code == "WorkspaceBusy"
    assert recover(place.state) == ()
    assert place.is_before()


def test_a_record_that_another_recoverer_finished_while_this_one_waited_is_over(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))

    class OtherIsFaster(FaultySystem):
        def lock(self, descriptor: int) -> None:
            if not self.interfere:
                self.interfere = {-1: lambda: None}
                lock = place.root / ".vs/roslyn-bridge/locks/commit.lock"
                lock.unlink()  # as the other one does at its end
                assert recover(place.state) == ()
            super().lock(descriptor)

    assert recover(place.state, system=OtherIsFaster()) == ()
    assert place.is_before()


def test_a_bridge_with_another_state_directory_sees_the_marker_and_not_its_own(
    place: Place, calls: list[str], tmp_path: Path
) -> None:
    place.die(halfway(calls))
    (marker,) = foreign_markers(place.root, tmp_path / "other")

    assert marker.path == marker_of(place)
    assert marker.user == os.geteuid()
    assert marker.note is not None
    assert marker.note.state_directory == str(place.state)
    assert foreign_markers(place.root, place.state) == ()
    with commit_lock(place.root):  # its commit goes on: it is busy, not broken
        assert foreign_markers(place.root, tmp_path / "other") == ()


def test_a_marker_whose_bridge_will_not_come_back_can_be_taken_away(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    commit_id = record_of(place).name
    shutil.rmtree(place.state)
    assert len(foreign_markers(place.root, place.state)) == 1
    discard_marker(place.root, commit_id)

    assert foreign_markers(place.root, place.state) == ()
    assert (place.root / ".vs/roslyn-bridge/commits" / commit_id).is_dir()


# -- strangers ------------------------------------------------------------------------------------------------------------


def safe_save(path: Path, data: bytes) -> None:
    other = path.with_suffix(".tmp")
    other.write_bytes(data)
    other.replace(path)


def test_cleaning_up_after_a_crash_costs_nothing_because_there_is_a_second_copy(
    place: Place, calls: list[str]
) -> None:
    place.die(number_of(calls, "move", -1), after=True)
    shutil.rmtree(place.root / ".vs")
    assert recover(place.state) == ()

    assert place.is_before()
    assert mode_of(place.root / "Lib/Old.cs") == 0o640


def test_a_recovery_from_the_second_copy_may_die_at_any_call(new_root: NewRoot, calls: list[str]) -> None:
    counted = FaultySystem()
    for at in range(1_000):
        place = Place.make(new_root())
        place.die(halfway(calls))
        shutil.rmtree(place.root / ".vs")
        if at == 0:
            recover(place.state, system=counted)
            assert place.is_before()
            continue
        if at == len(counted.calls):
            break
        if counted.calls[at] not in CHANGES_THE_DISK:
            continue
        with pytest.raises(Killed):
            recover(place.state, system=DyingSystem(die_at=at))
        assert recover(place.state) == (), at
        assert place.is_before(), at


def test_a_checkout_that_brought_the_originals_back_is_no_conflict(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    safe_save(place.root / "App/A.cs", b"class A { }\r\n")
    write(place.root, {"Lib/Gone.cs": b"gone\n"})
    assert recover(place.state) == ()

    assert place.is_before()


@pytest.mark.parametrize("data", [b"stranger", b"class A2 { }\r\n"], ids=["other bytes", "the same bytes"])
def test_a_file_that_somebody_saved_anew_after_the_crash_is_left_and_all_others_go_back(
    place: Place, calls: list[str], data: bytes
) -> None:
    place.die(halfway(calls))
    safe_save(place.root / "App/A.cs", data)
    item = the(recover(place.state))

    assert item.state == "RecoveryConflict"
    assert item.paths == place.paths("App/A.cs")
    assert (place.root / "App/A.cs").read_bytes() == data
    expected = {name: entry for name, entry in place.before.items() if name != "App/A.cs"}
    assert expected.items() <= place.tree().items()
    assert the(recover(place.state)) == item  # it is not tried again
    assert the(pending(place.state)) == item


def test_a_file_that_somebody_wrote_into_in_place_keeps_what_he_wrote(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    (place.root / "App/A.cs").write_bytes(b"stranger")
    item = the(recover(place.state))

    assert item.state == "RecoveryConflict"
    assert (place.root / "App/A.cs").read_bytes() == b"stranger"


def test_a_file_not_yet_reached_belongs_to_whoever_saves_it(place: Place, calls: list[str]) -> None:
    place.die(number_of(calls, "exchange", 0))
    safe_save(place.root / "App/A.cs", b"stranger")
    assert recover(place.state) == ()

    assert (place.root / "App/A.cs").read_bytes() == b"stranger"


def test_a_file_put_into_our_new_directory_stays_with_it(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    write(place.root, {"New/theirs.txt": b"theirs"})
    assert recover(place.state) == ()

    assert set(place.tree()) == {*place.before, "New", "New/theirs.txt"}


def test_a_directory_swapped_for_a_link_is_not_followed(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    (place.root / "App").rename(place.root.parent / "elsewhere")
    (place.root / "App").symlink_to(place.root.parent / "elsewhere")
    elsewhere = picture(place.root.parent / "elsewhere")
    item = the(recover(place.state))

    assert item.state == "RecoveryConflict"
    assert set(item.paths) == set(place.paths("App/A.cs", "App/B.cs"))
    assert picture(place.root.parent / "elsewhere") == elsewhere
    assert (place.root / "Lib/Gone.cs").read_bytes() == b"gone\n"


def test_a_late_writer_to_a_displaced_original_finds_his_bytes_kept(place: Place, calls: list[str]) -> None:
    with (place.root / "App/A.cs").open("r+b", buffering=0) as handle:
        place.die(instant(calls), after=True)
        handle.write(b"late")
    item = the(recover(place.state))

    assert (item.state, item.code) == ("Committed", "RecoveryOriginalKept")
    assert not blocks(item, place.root)
    assert item.paths[0].read_bytes() == b"lates A { }\r\n"
    assert (place.root / "App/A.cs").read_bytes() == b"class A2 { }\r\n"


def test_what_a_disk_forgot_of_a_committed_change_is_done_again(place: Place, calls: list[str]) -> None:
    place.die(instant(calls), after=True)
    kept = workshop_of(place)
    (place.root / "Lib/Fresh.cs").rename(kept / "000000.new")
    (place.root / "New/Deep/Moved.cs").rename(kept / "000001.new")
    (place.root / "New/Deep").rename(kept / "000001.dir")
    (kept / "000006.old").rename(place.root / "Lib/Gone.cs")
    assert recover(place.state) == ()

    assert place.is_after()


# -- records that cannot be acted on --------------------------------------------------------------------------------------


def spoiled(place: Place, name: str, spoil: Callable[[bytes], bytes]) -> None:
    (file,) = record_of(place).glob(name)
    file.write_bytes(spoil(file.read_bytes()))


@pytest.mark.parametrize("name", ["manifest", "owner", LATEST], ids=["plan", "owner", "state"])
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda data: data.replace(b"record 1 ", b"record 2 "), "RecoveryVersionUnsupported"),
        (lambda data: data[:-3] + b"xyz", "RecoveryRecordCorrupt"),
        (lambda data: data[:-3], "RecoveryRecordCorrupt"),
        (lambda data: b"", "RecoveryRecordCorrupt"),
    ],
    ids=["newer", "changed", "cut short", "empty"],
)
def test_a_record_that_makes_no_sense_is_reported_and_nothing_is_touched(
    place: Place, calls: list[str], name: str, spoil: Callable[[bytes], bytes], code: str
) -> None:
    place.die(halfway(calls))
    for file in sorted(record_of(place).glob(name))[-1:]:
        file.write_bytes(spoil(file.read_bytes()))
    root, state = picture(place.root), picture(place.state)
    item = the(recover(place.state))

    assert item.state is None
    assert item.code in {code, "RecoveryRecordTorn"}
    assert blocks(item, place.root)
    assert picture(place.root) == root
    assert picture(place.state) == state


@pytest.mark.parametrize(
    "spoil",
    [lambda data: data[:100], lambda data: data[:100] + b"\0" * 50, lambda data: b""],
    ids=["prefix", "zeros", "empty"],
)
@pytest.mark.parametrize("has_state", [True, False])
def test_a_plan_torn_before_anything_was_applied_means_that_nothing_was(
    place: Place, calls: list[str], spoil: Callable[[bytes], bytes], has_state: bool
) -> None:
    place.die(number_of(calls, "rename", APPLYING))
    spoiled(place, "manifest", spoil)
    if not has_state:
        (record_of(place) / "state-000001-Prepared").unlink()
    assert recover(place.state) == ()

    assert place.is_before()
    assert place.records() == set()


def test_a_plan_that_cannot_be_read_is_not_a_plan_that_is_absent(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    root = picture(place.root)

    class Unreadable(FaultySystem):
        def open_file(self, name: str, directory: int) -> int:
            if name == "manifest":
                raise OSError(errno.EIO, "unreadable")
            return super().open_file(name, directory)

    item = the(recover(place.state, system=Unreadable()))
    assert (item.state, item.code) == (None, "RecoveryRecordUnreadable")
    assert blocks(item, place.root)
    assert picture(place.root) == root
    assert recover(place.state) == ()
    assert place.is_before()


@pytest.mark.parametrize("mode", [0o755, 0o770])
def test_a_record_open_to_others_is_not_believed(place: Place, calls: list[str], mode: int) -> None:
    place.die(halfway(calls))
    record_of(place).chmod(mode)
    root = picture(place.root)

    assert the(recover(place.state)).code == "RecoveryRecordUnsafe"
    assert picture(place.root) == root


def test_a_link_in_place_of_a_record_is_not_followed(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    record = record_of(place)
    record.rename(place.state / "elsewhere")
    record.symlink_to(place.state / "elsewhere")

    assert the(recover(place.state)).code == "RecoveryRecordUnreadable"


# -- workspaces that are not where they were --------------------------------------------------------------------------------


def test_a_moved_workspace_is_left_alone_until_its_new_place_is_named(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    moved = place.root.parent / "moved"
    place.root.rename(moved)
    before = picture(moved)
    item = the(recover(place.state))

    assert item.code == "RecoveryRootMoved"
    assert picture(moved) == before
    assert recover(place.state, root=moved) == ()
    moved.rename(place.root)
    assert place.is_before()


def test_a_workspace_made_anew_at_the_same_place_is_left_alone(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    place.root.rename(place.root.parent / "old")
    place.root.mkdir()
    write(place.root, {"App/A.cs": b"cloned anew"})
    before = picture(place.root)

    assert the(recover(place.state)).code == "RecoveryRootMoved"
    assert picture(place.root) == before


def test_a_copy_that_carries_the_marker_along_is_no_moved_workspace(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    place.root.rename(place.root.parent / "old")
    shutil.copytree(place.root.parent / "old", place.root, symlinks=True)
    before = picture(place.root)

    assert the(recover(place.state)).code == "RecoveryRootMoved"
    assert picture(place.root) == before


def test_a_copy_that_a_person_names_is_left_alone_and_the_workspace_itself_is_still_recovered(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))
    copy, moved = place.root.parent / "copy", place.root.parent / "moved"
    place.root.rename(moved)
    shutil.copytree(moved, copy, symlinks=True)
    before = picture(copy)
    item = the(recover(place.state, root=copy))

    assert item.code == "RecoveryRootMoved"
    assert "copy" in item.message
    assert picture(copy) == before
    with pytest.raises(RecoveryRefused, match="copy"):
        resolve(place.state, item.commit_id, [], "take-before", root=copy)
    assert recover(place.state, root=moved) == ()
    moved.rename(place.root)
    assert place.is_before()


def test_a_moved_or_copied_workspace_is_blocked_by_the_marker_that_came_along(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))
    copy, moved, other = (place.root.parent / name for name in ("copy", "moved", "other"))
    shutil.copytree(place.root, copy, symlinks=True)
    place.root.rename(moved)
    other.mkdir()
    item = the(recover(place.state))

    assert [blocks(item, root) for root in (place.root, moved, copy, other)] == [True, True, True, False]


def test_a_workspace_that_a_link_at_its_old_place_leads_to_is_recovered(
    place: Place, calls: list[str]
) -> None:
    place.die(halfway(calls))
    real = place.root.parent / "real"
    place.root.rename(real)
    place.root.symlink_to(real)

    assert recover(place.state) == ()
    place.root.unlink()
    real.rename(place.root)
    assert place.is_before()


# -- a person decides -------------------------------------------------------------------------------------------------------


def in_conflict(place: Place, calls: list[str]) -> str:
    place.die(halfway(calls))
    safe_save(place.root / "App/A.cs", b"stranger")
    return the(recover(place.state)).commit_id


@pytest.mark.parametrize(
    ("choice", "content"),
    [("keep-disk", b"stranger"), ("take-before", b"class A { }\r\n"), ("take-after", b"class A2 { }\r\n")],
)
def test_a_person_decides_a_conflict_and_that_ends_it(
    place: Place, calls: list[str], choice: Choice, content: bytes
) -> None:
    commit_id = in_conflict(place, calls)
    if choice == "take-after":  # what we had put there was replaced, so that text is in nobody's hands
        with pytest.raises(RecoveryRefused):
            resolve(place.state, commit_id, [], choice)
        return
    assert resolve(place.state, commit_id, [], choice) is None

    assert (place.root / "App/A.cs").read_bytes() == content
    assert set(place.tree()) == set(place.before)
    assert place.records() == set()


def test_one_file_is_decided_and_the_other_stays_to_be_decided(place: Place, calls: list[str]) -> None:
    place.die(halfway(calls))
    safe_save(place.root / "App/A.cs", b"stranger")
    safe_save(place.root / "App/B.cs", b"stranger too")
    commit_id = the(recover(place.state)).commit_id
    item = resolve(place.state, commit_id, place.paths("App/A.cs"), "take-before")

    assert item is not None
    assert item.paths == place.paths("App/B.cs")
    assert (place.root / "App/A.cs").read_bytes() == b"class A { }\r\n"
    assert resolve(place.state, commit_id, [Path("App/B.cs")], "keep-disk") is None
    assert (place.root / "App/B.cs").read_bytes() == b"stranger too"


def test_a_file_that_is_not_in_question_cannot_be_decided(place: Place, calls: list[str]) -> None:
    commit_id = in_conflict(place, calls)
    with pytest.raises(RecoveryRefused):
        resolve(place.state, commit_id, place.paths("App/B.cs"), "take-before")
    with pytest.raises(RecoveryRefused):
        resolve(place.state, "0" * 32, [], "keep-disk")
    with pytest.raises(RecoveryRefused):
        resolve(place.state, "../../etc", [], "keep-disk")


def test_a_record_is_discarded_only_after_an_export_that_holds_everything(
    place: Place, calls: list[str], tmp_path: Path
) -> None:
    commit_id = in_conflict(place, calls)
    with pytest.raises(RecoveryRefused):
        discard(place.state, commit_id)
    export(place.state, commit_id, tmp_path / "out")
    before = place.tree()
    discard(place.state, commit_id)

    out = picture(tmp_path / "out")
    assert out["before/App/A.cs"][1] == b"class A { }\r\n"
    assert out["after/Lib/Fresh.cs"][1] == b"fresh\n"
    assert "record/manifest" in out
    assert place.records() == set()
    assert place.tree() == {name: entry for name, entry in before.items() if not name.startswith(".vs")}


def test_a_record_that_makes_no_sense_can_be_exported_and_discarded(
    place: Place, calls: list[str], tmp_path: Path
) -> None:
    place.die(halfway(calls))
    spoiled(place, "manifest", lambda data: data[:-1] + b"#")
    commit_id = record_of(place).name
    export(place.state, commit_id, tmp_path / "out")
    discard(place.state, commit_id)

    assert recover(place.state) == ()
    assert foreign_markers(place.root, place.state) == ()
    assert (tmp_path / "out/record/originals").is_file()


def test_a_deleted_workspace_leaves_a_record_that_can_be_exported_and_discarded(
    place: Place, calls: list[str], tmp_path: Path
) -> None:
    place.die(halfway(calls))
    shutil.rmtree(place.root)
    item = the(recover(place.state))
    assert item.code == "RecoveryRootMoved"
    export(place.state, item.commit_id, tmp_path / "out")
    discard(place.state, item.commit_id)

    assert (tmp_path / "out/before/Lib/Gone.cs").read_bytes() == b"gone\n"
    assert recover(place.state) == ()


def test_names_that_are_not_text_survive_record_and_recovery(new_root: NewRoot, calls: list[str]) -> None:
    odd = [os.fsdecode(b"caf\xe9.cs"), "a\nb.cs", "%20.cs", "u\u0308.cs", "\u00fc.cs", "dot..cs"]
    files = {f"D {number}/{name}": b"before\n" for number, name in enumerate(odd)}
    place = Place.make(new_root(), files, dict.fromkeys(files, "after\n"))
    place.die(number_of(calls, "exchange", 3))
    assert recover(place.state) == ()

    assert place.is_before() or place.is_after()
    assert place.records() == set()
