"""What a person gets out of a commit that cannot be recovered: copies, with and without its record; and giving it up."""

import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.transactions.crashes import Place, calls_of, number_of
from tests.transactions.worlds import picture
from transactions.errors import RecoveryRefused
from transactions.exporting import Exported, export, export_marked
from transactions.marker import PUT_ASIDE
from transactions.recovery import foreign_markers, pending
from transactions.resolving import discard, discard_marker
from transactions.workshop import main_workshop

A_BEFORE, A_AFTER, STRANGER = b"class A { }\r\n", b"class A2 { }\r\n", b"somebody else's\n"


@dataclass(frozen=True)
class Crash:
    """A commit that was killed when both files it replaces had their new contents, and what stands in `App/A.cs` since."""

    place: Place
    commit_id: str

    @property
    def root(self) -> Path:
        return self.place.root

    @property
    def state(self) -> Path:
        return self.place.state

    @property
    def marker(self) -> Path:
        return self.root / ".vs/roslyn-bridge/pending" / self.commit_id

    @property
    def workshop(self) -> Path:
        return self.root.joinpath(*main_workshop(self.commit_id))

    def export(self, directory: Path, root: Path | None = None) -> Exported:
        return export(self.state, self.commit_id, directory, root=root)


@pytest.fixture(scope="module")
def last_exchange(tmp_path_factory: pytest.TempPathFactory) -> int:
    return number_of(calls_of(Place.make(tmp_path_factory.mktemp("calls"))), "exchange", -1)


@pytest.fixture
def crash(new_root: Callable[[], Path], last_exchange: int) -> Crash:
    place = Place.make(new_root())
    place.die(last_exchange, after=True)
    (record,) = (place.state / "recovery").iterdir()
    (place.root / "App/A.cs").unlink()
    (place.root / "App/A.cs").write_bytes(STRANGER)
    return Crash(place, record.name)


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*")) if path.is_dir()}


def test_an_export_holds_before_and_after_and_what_stands_there_now_and_is_for_its_owner_alone(
    crash: Crash, tmp_path: Path
) -> None:
    before = picture(crash.root)
    out = tmp_path / "new" / "out"
    assert crash.export(out) == Exported(has_workspace=True, unread=())
    assert (out / "before/App/A.cs").read_bytes() == A_BEFORE
    assert (out / "disk/App/A.cs").read_bytes() == STRANGER
    assert (out / "after/Lib/Fresh.cs").read_bytes() == b"fresh\n"
    assert not (out / "disk/App/B.cs").exists(), "what the commit put there is no stranger's"
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert modes(out) == {0o700}
    assert picture(crash.root) == before


def test_an_empty_folder_that_was_open_to_others_is_closed_to_them(crash: Crash, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o755)
    crash.export(out)
    assert modes(out) == {0o700}


@pytest.mark.parametrize("where", ["workspace", "workspace itself", "state", "link into the workspace"])
def test_copies_never_go_into_the_workspace_or_the_state_directory(
    crash: Crash, tmp_path: Path, where: str
) -> None:
    (tmp_path / "link").symlink_to(crash.root)
    target = {
        "workspace": crash.root / "out",
        "workspace itself": crash.root,
        "state": crash.state / "out",
        "link into the workspace": tmp_path / "link" / "out",
    }[where]
    before = picture(crash.root.parent)
    with pytest.raises(RecoveryRefused, match="outside of the workspace"):
        crash.export(target)
    with pytest.raises(RecoveryRefused, match="outside of the workspace"):
        export_marked(crash.root, crash.state, crash.commit_id, target)
    assert picture(crash.root.parent) == before


def test_a_folder_with_something_in_it_and_a_file_are_refused(crash: Crash, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_bytes(b"mine")
    for target, words in ((tmp_path / "full", "not empty"), (tmp_path / "full/file", "no directory")):
        with pytest.raises(RecoveryRefused, match=words):
            crash.export(target)


def test_what_cannot_be_read_is_told_and_the_rest_is_copied(crash: Crash, tmp_path: Path) -> None:
    (crash.root / "App/A.cs").unlink()
    (crash.root / "App/A.cs").symlink_to("/dev/zero")
    (crash.root / "Lib/Fresh.cs").mkdir()
    exported = crash.export(tmp_path / "out")
    assert exported.has_workspace
    assert (tmp_path / "out/before/App/A.cs").read_bytes() == A_BEFORE
    assert not (tmp_path / "out/disk").exists()


# -- a root that is not the commit's ---------------------------------------------------------------------------------------


def test_a_discard_with_the_root_of_another_workspace_forgets_nothing(crash: Crash, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    crash.export(tmp_path / "out")
    before = picture(crash.root)
    with pytest.raises(RecoveryRefused, match="not the workspace"):
        discard(crash.state, crash.commit_id, root=other)
    assert [item.commit_id for item in pending(crash.state)] == [crash.commit_id]
    assert picture(crash.root) == before
    with pytest.raises(RecoveryRefused, match="not the workspace"):
        crash.export(tmp_path / "out 2", other)


def test_a_workspace_that_moved_is_discarded_where_it_is_only_after_an_export_that_saw_it(
    crash: Crash, tmp_path: Path
) -> None:
    moved = tmp_path / "moved"
    shutil.move(crash.root, moved)
    assert not crash.export(tmp_path / "blind").has_workspace
    assert (tmp_path / "blind/before/App/A.cs").read_bytes() == A_BEFORE
    with pytest.raises(RecoveryRefused, match="exported without its workspace"):
        discard(crash.state, crash.commit_id, root=moved)
    assert crash.export(tmp_path / "seeing", moved).has_workspace
    assert discard(crash.state, crash.commit_id, root=moved).has_workspace
    assert not (moved / ".vs").exists()
    assert pending(crash.state) == ()


def test_a_discard_tells_that_it_did_not_find_the_workspace(crash: Crash, tmp_path: Path) -> None:
    crash.export(tmp_path / "out")
    shutil.move(crash.root, tmp_path / "moved")
    assert not discard(crash.state, crash.commit_id).has_workspace
    assert (tmp_path / "moved/.vs/roslyn-bridge/pending" / crash.commit_id).exists()


# -- without the record ----------------------------------------------------------------------------------------------------


def test_a_workshop_whose_record_is_lost_is_copied_out_by_what_its_marker_tells(
    crash: Crash, tmp_path: Path
) -> None:
    shutil.rmtree(crash.state)
    assert export_marked(crash.root, crash.state, crash.commit_id, tmp_path / "out").unread == ()
    out = picture(tmp_path / "out")
    files = {name for name, (_, data) in out.items() if data}
    assert out["before/App/A.cs"][1] == A_BEFORE
    assert out["before/App/B.cs"][1] == b"\xef\xbb\xbfclass B { }\n"
    assert out["after/Lib/Fresh.cs"][1] == b"fresh\n"
    assert out["disk/App/A.cs"][1] == STRANGER
    assert not any(name.startswith("unassigned") for name in files), files


@pytest.mark.parametrize("spoiled", [b"?", b"", b"roslyn-bridge-record 1 2 00\n[]"])
def test_a_marker_that_tells_nothing_still_leads_to_the_files(
    crash: Crash, tmp_path: Path, spoiled: bytes
) -> None:
    crash.marker.write_bytes(spoiled)
    (marker,) = foreign_markers(crash.root, tmp_path / "other")
    assert marker.note is None
    export_marked(crash.root, tmp_path / "other", crash.commit_id, tmp_path / "out")
    assert A_BEFORE in {path.read_bytes() for path in (tmp_path / "out/unassigned").iterdir()}


@pytest.mark.parametrize("kind", ["link", "directory", "fifo"])
def test_what_stands_at_the_name_of_a_marker_is_one_whatever_it_is(
    crash: Crash, tmp_path: Path, kind: str
) -> None:
    crash.marker.unlink()
    match kind:
        case "link":
            crash.marker.symlink_to("/dev/zero")
        case "directory":
            crash.marker.mkdir()
        case _:
            os.mkfifo(crash.marker)
    (marker,) = foreign_markers(crash.root, tmp_path / "other")
    assert marker.note is None
    discard_marker(crash.root, crash.commit_id)
    assert foreign_markers(crash.root, tmp_path / "other") == ()


def test_a_marker_that_was_taken_away_lies_with_the_files_that_it_explains(
    crash: Crash, tmp_path: Path
) -> None:
    told = crash.marker.read_bytes()
    discard_marker(crash.root, crash.commit_id)
    assert foreign_markers(crash.root, tmp_path / "other") == ()
    assert (crash.workshop / PUT_ASIDE).read_bytes() == told


def test_what_is_no_marker_is_not_exported(crash: Crash, tmp_path: Path) -> None:
    with pytest.raises(RecoveryRefused, match="no marker"):
        export_marked(crash.root, crash.state, "f" * 32, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_record_without_a_plan_that_can_be_read_is_explained_by_the_marker(
    crash: Crash, tmp_path: Path
) -> None:
    manifest = crash.state / "recovery" / crash.commit_id / "manifest"
    manifest.write_bytes(manifest.read_bytes()[:-1] + b"#")
    crash.export(tmp_path / "out")
    assert (tmp_path / "out/before/App/A.cs").read_bytes() == A_BEFORE
    assert discard(crash.state, crash.commit_id).has_workspace


def test_a_marker_of_a_first_bridge_is_read_too(crash: Crash, tmp_path: Path) -> None:
    from transactions.record import Owner, encode  # what such a bridge wrote, in its own words

    (marker,) = foreign_markers(crash.root, tmp_path / "other")
    assert marker.note is not None
    crash.marker.write_bytes(encode(Owner(crash.commit_id, marker.note.root, marker.note.loaded_path)))
    (again,) = foreign_markers(crash.root, tmp_path / "other")
    assert again.note is not None
    assert (again.note.root, again.note.state_directory, again.note.files) == (marker.note.root, None, ())
