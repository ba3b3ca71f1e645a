"""The record of a commit is on the disk before what it is about, and refuses cleanly when it cannot be."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transactions.crashes import FILES, Place, calls_of, number_of
from tests.transactions.worlds import FaultySystem, picture
from transactions import file_journal
from transactions.errors import (
    CommitFailed,
    CommitPreparationFailed,
    CommitRecoveryCapacityReached,
    CommitUnrecordable,
    RecoveryPending,
    TransactionError,
)
from transactions.record import (
    Corrupt,
    Owner,
    RootIdentity,
    Torn,
    VersionUnsupported,
    decode,
    encode,
    seal,
    unseal,
)
from transactions.recovery import pending, recover
from transactions.system import System

OWNER = Owner("0" * 32, RootIdentity("/r\udce9\n", 1, 2, "token"), "/r/App.sln")


@pytest.fixture
def place(new_root: Callable[[], Path]) -> Place:
    return Place.make(new_root())


class Log(System):
    """Writes down what happens, with the full paths of what it happens to."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []

    def _note(self, what: str, descriptor: int, name: str = "") -> None:
        self.log.append((what, os.path.join(os.readlink(f"/proc/self/fd/{descriptor}"), name).rstrip("/")))  # noqa: PTH115, PTH118

    def open_new(self, name: str, directory: int, mode: int) -> int:
        self._note("new", directory, name)
        return super().open_new(name, directory, mode)

    def make_directory(self, name: str, directory: int, mode: int = 0o777) -> None:
        self._note("directory", directory, name)
        super().make_directory(name, directory, mode)

    def rename(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._note("named", new_directory, new)
        super().rename(old, old_directory, new, new_directory)

    def sync(self, descriptor: int) -> None:
        self._note("sync", descriptor)
        super().sync(descriptor)

    def sync_file_system(self, descriptor: int) -> None:
        self.log.append(("sync all", ""))
        super().sync_file_system(descriptor)

    def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._note("touched", new_directory, new)
        super().exchange(old, old_directory, new, new_directory)

    def move(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._note("touched", old_directory, old)
        super().move(old, old_directory, new, new_directory)

    def place_of(self, what: str, ending: str) -> int:
        return next(
            number for number, (kind, path) in enumerate(self.log) if kind == what and path.endswith(ending)
        )


def test_each_step_is_on_the_disk_before_the_next_one_is_taken(place: Place) -> None:
    log = Log()
    place.commit(log)
    record = next(path for what, path in log.log if what == "named" and path.endswith("/owner"))
    record = record.removesuffix("/owner")
    order = [
        ("sync", str(place.state)),
        ("sync", str(place.state / "recovery")),
        ("named", "/owner"),
        ("sync", record),
        ("directory", "/commits/" + record[-32:]),
        ("named", "/originals"),
        ("named", "/manifest"),
        ("named", "-Prepared"),
        ("named", "/pending/" + record[-32:]),
        ("sync", "/pending"),
        ("sync", str(place.root)),
        ("named", "-Applying"),
        ("touched", ".cs"),
        ("named", "-Committed"),
        ("named", "/trash/" + record[-32:]),
    ]
    numbers = [log.place_of(*step) for step in order]
    assert numbers == sorted(numbers)
    applying, committed = log.place_of("named", "-Applying"), log.place_of("named", "-Committed")
    touched = [number for number, (what, _) in enumerate(log.log) if what == "touched"]
    assert log.log[applying + 1] == ("sync", record)
    assert min(touched) > applying + 1
    for directory in {os.path.dirname(log.log[number][1]) for number in touched}:  # noqa: PTH120
        assert ("sync", directory) in log.log[max(touched) : committed] or ("sync all", "") in log.log[
            max(touched) : committed
        ]


def test_every_file_that_is_named_in_the_record_was_synced_right_before(place: Place) -> None:
    log = Log()
    place.commit(log)
    new = [path for what, path in log.log if what == "new" and str(place.state) in path]
    assert len(new) == 6  # owner, originals, manifest and three states
    for path in new:
        assert ("sync", path) in log.log


def test_the_record_is_private_and_never_written_twice(place: Place) -> None:
    calls = calls_of(Place.make(place.root.parent / "other"))
    place.die(number_of(calls, "exchange", 1))
    found = picture(place.state)

    assert {mode for mode, content in found.values() if content} == {0o600}
    assert {mode for mode, content in found.values() if not content} == {0o700}
    names = {name.rpartition("/")[2] for name, (_, content) in found.items() if content}
    (waiting,) = (name for name in names if name.startswith("draft-"))
    assert waiting.endswith("-Committed")
    assert names - {waiting} == {
        "owner",
        "originals",
        "manifest",
        "state-000001-Prepared",
        "state-000002-Applying",
    }


def test_an_unfinished_commit_stands_in_the_way_of_the_next_one(place: Place) -> None:
    calls = calls_of(Place.make(place.root.parent / "other"))
    place.die(number_of(calls, "exchange", 1))
    with pytest.raises(RecoveryPending):
        place.commit()

    assert recover(place.state) == ()
    place.commit()
    assert place.is_after()


# -- what cannot be recorded -------------------------------------------------------------------------------------------------


def test_a_disk_that_is_full_while_the_record_is_written_leaves_all_as_it_was_until_there_is_room(
    new_root: Callable[[], Path],
) -> None:
    calls = calls_of(Place.make(new_root()))
    for number in range(number_of(calls, "rename", -3)):
        if calls[number] not in {"write", "open_new", "make_directory", "sync"}:
            continue
        place = Place.make(new_root())
        with pytest.raises(TransactionError) as refusal:
            place.commit(FaultySystem(fail_at=number, error=errno.ENOSPC))
        assert refusal.value.code in {"CommitPreparationFailed", "CommitLockFailed"}, number
        assert not isinstance(refusal.value, CommitFailed), number
        assert place.is_before(), number
        assert pending(place.state) == (), number
        place.commit()
        assert place.is_after(), number


@pytest.mark.parametrize(
    "limit", ["ORIGINAL_MAX_BYTES", "ORIGINALS_MAX_BYTES", "MANIFEST_MAX_BYTES", "OWNER_MAX_BYTES"]
)
def test_a_commit_too_large_to_be_recovered_is_refused_before_anything_is_touched(
    place: Place, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(file_journal, limit, 14)
    with pytest.raises(CommitRecoveryCapacityReached) as refusal:
        place.commit()

    assert refusal.value.code == "CommitRecoveryCapacityReached"
    assert place.is_before()
    assert place.records() == set()


def test_a_state_directory_that_is_a_link_is_refused(place: Place, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    place.state.symlink_to(tmp_path / "real")
    with pytest.raises(CommitUnrecordable) as refusal:
        place.commit()

    assert "is a link" in refusal.value.message
    assert place.is_before()
    assert picture(tmp_path / "real") == {}
    with pytest.raises(CommitUnrecordable):
        pending(place.state)


def test_a_state_directory_that_is_open_to_others_is_refused(place: Place) -> None:
    place.state.mkdir()
    place.state.chmod(0o750)
    with pytest.raises(CommitUnrecordable) as refusal:
        place.commit()

    assert "0750" in refusal.value.message
    assert refusal.value.code == "CommitPreparationFailed"
    assert place.is_before()


def test_a_file_in_place_of_the_state_directory_is_refused(place: Place) -> None:
    place.state.write_bytes(b"")
    with pytest.raises(CommitUnrecordable):
        place.commit()
    assert place.is_before()


def test_a_state_directory_of_somebody_else_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.state.mkdir(mode=0o700)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(CommitUnrecordable) as refusal:
        place.commit()
    assert "another user" in refusal.value.message
    assert place.is_before()


def test_a_state_directory_on_another_device_is_the_normal_case(place: Place, tmp_path: Path) -> None:
    other = Place(place.root, tmp_path / "deep" / "state", place.overlay, place.before, place.after)
    if tmp_path.stat().st_dev == place.root.stat().st_dev:
        pytest.skip("there is one device only")
    other.commit()

    assert other.is_after()
    assert stat.S_IMODE((tmp_path / "deep/state").stat().st_mode) == 0o700


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES])
def test_a_state_directory_that_cannot_be_written_is_refused_with_its_path(place: Place, error: int) -> None:
    class Refusing(System):
        def make_directory(self, name: str, directory: int, mode: int = 0o777) -> None:
            if name in {"state", "recovery"}:
                raise OSError(error, os.strerror(error))
            super().make_directory(name, directory, mode)

    with pytest.raises(CommitPreparationFailed) as refusal:
        place.commit(Refusing())
    assert os.strerror(error) in refusal.value.message
    assert place.is_before()


# -- the files of a record ---------------------------------------------------------------------------------------------------


def test_what_was_written_is_read_back_whatever_bytes_the_names_have() -> None:
    assert decode(encode(OWNER), Owner) == OWNER


def test_every_way_in_which_a_crash_cuts_a_file_short_is_torn_and_nothing_else_is() -> None:
    data = encode(OWNER)
    for length in range(len(data)):
        with pytest.raises(Torn):
            decode(data[:length], Owner)
        with pytest.raises(Torn):
            decode(data[:length] + bytes(len(data) - length), Owner)


def test_every_changed_byte_is_noticed_and_is_not_taken_for_a_crash() -> None:
    data = encode(OWNER)
    for number, byte in enumerate(data):
        with pytest.raises((Corrupt, VersionUnsupported, Torn)):
            decode(data[:number] + bytes([byte ^ 1]) + data[number + 1 :], Owner)


def test_a_path_that_leads_out_of_the_root_is_not_believed(place: Place) -> None:
    calls = calls_of(Place.make(place.root.parent / "other"))
    place.die(number_of(calls, "exchange", 1))
    (manifest,) = place.state.glob("recovery/*/manifest")
    manifest.write_bytes(seal(unseal(manifest.read_bytes()).replace(b'["Lib"]', b'[".."]')))
    (item,) = recover(place.state)

    assert item.code == "RecoveryRecordCorrupt"
    assert set(FILES) - set(picture(place.root)) <= {"Lib/Old.cs", "Lib/Gone.cs"}
