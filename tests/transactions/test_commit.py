"""A commit writes all or nothing, and never over what somebody else wrote."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transactions.crashes import FILES, STEPS
from tests.transactions.worlds import (
    FOR_EVER,
    FaultySystem,
    FaultyWithoutRenames,
    Picture,
    WithoutRenames,
    picture,
    staged,
    write,
)
from transactions.baseline import Baseline
from transactions.commit import CommitResult, commit
from transactions.errors import CommitConflict, CommitFailed, CommitPreparationFailed, TransactionError
from transactions.journal import CommitPlan, CommitRecord
from transactions.overlay import Overlay
from transactions.places import OPEN_DIRECTORIES_MAX, Directory
from transactions.system import System

AFTER = {
    "App/A.cs": b"class A2 { }\r\n",
    "App/B.cs": b"\xef\xbb\xbfclass B2 { }\n",
    "New/Deep/Moved.cs": b"class Moved { }\n",
    "Lib/Swap1.cs": b"two\n",
    "Lib/Swap2.cs": b"one, edited\n",
    "Lib/Fresh.cs": b"fresh\n",
    "Lib/Untouched.cs": b"\xff\xfeu\x00",
}


def world(root: Path) -> Overlay:
    write(root, FILES)
    (root / "App/A.cs").chmod(0o755)
    (root / "Lib/Old.cs").chmod(0o640)
    return staged(Baseline(root), STEPS)


def commit_overlay(overlay: Overlay, system: System | None = None) -> CommitResult:
    root = overlay.baseline.root
    return commit(root, overlay.changes(), overlay.baseline, system=system or System())


def outcome_of(overlay: Overlay, system: System) -> CommitResult | TransactionError:
    try:
        return commit_overlay(overlay, system)
    except TransactionError as error:
        return error


def files_of(found: Picture) -> dict[str, bytes | str]:
    return {name: content for name, (_, content) in found.items() if name.endswith(".cs")}


def calls_of_a_commit(root: Path, kind: type[FaultySystem]) -> list[str]:
    system = kind()
    commit_overlay(world(root), system)
    return list(system.calls)


def test_every_kind_of_change_arrives_with_mode_and_no_leftovers(tmp_path: Path) -> None:
    result = commit_overlay(world(tmp_path))

    found = picture(tmp_path)
    assert files_of(found) == AFTER
    assert set(found) == {*AFTER, "App", "Lib", "New", "New/Deep"}
    assert found["App/A.cs"][0] == 0o755
    assert found["New/Deep/Moved.cs"][0] == 0o640  # a moved file keeps its mode
    assert not result.kept
    assert not result.leftovers
    assert result.written[tmp_path / "Lib/Gone.cs"] is None


def test_a_swap_of_names_takes_the_modes_along(tmp_path: Path) -> None:
    write(tmp_path, {"A.cs": b"a\n", "B.cs": b"b\n"})
    (tmp_path / "A.cs").chmod(0o600)
    (tmp_path / "B.cs").chmod(0o644)
    commit_overlay(staged(Baseline(tmp_path), {"A.cs": ("B.cs", "b\n"), "B.cs": ("A.cs", "a\n")}))

    assert picture(tmp_path) == {"A.cs": (0o644, b"b\n"), "B.cs": (0o600, b"a\n")}


def test_extended_attributes_survive_a_replacement(tmp_path: Path) -> None:
    write(tmp_path, {"A.cs": b"a\n"})
    try:
        os.setxattr(tmp_path / "A.cs", "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    commit_overlay(staged(Baseline(tmp_path), {"A.cs": "b\n"}))

    assert os.getxattr(tmp_path / "A.cs", "user.note") == b"mine"


def test_a_new_file_gets_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    (tmp_path / "probe").touch()
    usual = stat.S_IMODE((tmp_path / "probe").stat().st_mode)
    commit_overlay(staged(Baseline(tmp_path), {"New.cs": "n\n"}))

    assert picture(tmp_path)["New.cs"] == (usual, b"n\n")


def test_a_directory_takes_the_place_of_a_deleted_file(tmp_path: Path) -> None:
    write(tmp_path, {"A.cs": b"a\n"})
    commit_overlay(staged(Baseline(tmp_path), {"A.cs": None, "A.cs/B.cs": "b\n"}))

    assert files_of(picture(tmp_path)) == {"A.cs": b"", "A.cs/B.cs": b"b\n"}


def test_no_changes_are_a_success_that_touches_nothing(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    system = FaultySystem()
    result = commit(tmp_path, (), Baseline(tmp_path), system=system)

    assert result.written == {}
    assert system.calls == []


def test_the_folder_of_the_editor_is_left_as_it_was(tmp_path: Path) -> None:
    write(tmp_path, {"A.cs": b"a\n", ".vs/editor.db": b"theirs"})
    commit_overlay(staged(Baseline(tmp_path), {"A.cs": "b\n"}))

    assert set(picture(tmp_path)) == {"A.cs", ".vs", ".vs/editor.db"}


@pytest.mark.parametrize(
    ("error", "after", "kind"),
    [
        (errno.EIO, False, FaultySystem),
        (errno.ENOSPC, False, FaultySystem),
        (errno.EACCES, False, FaultySystem),
        (errno.EIO, True, FaultySystem),
        (errno.EIO, True, FaultyWithoutRenames),
    ],
    ids=["EIO", "ENOSPC", "EACCES", "EIO after the effect", "EIO after the effect, old renames"],
)
def test_one_failing_call_leaves_the_whole_before_or_the_whole_after_and_nothing_of_ours(
    new_root: Callable[[], Path], error: int, after: bool, kind: type[FaultySystem]
) -> None:
    for number, name in enumerate(calls_of_a_commit(new_root(), kind)):
        root = new_root()
        overlay = world(root)
        before = picture(root)
        where = f"call {number} ({name})"
        outcome = outcome_of(overlay, kind(fail_at=number, error=error, after=after))
        if isinstance(outcome, CommitResult):
            assert files_of(picture(root)) == AFTER, where
            assert not outcome.leftovers, where
            assert not (root / ".vs").exists(), where
        else:
            assert not isinstance(outcome, CommitFailed) or outcome.restored, where
            assert picture(root) == before, where


def test_a_second_failure_in_a_row_does_not_stop_the_way_back(new_root: Callable[[], Path]) -> None:
    for number, name in enumerate(calls_of_a_commit(new_root(), FaultySystem)):
        root = new_root()
        overlay = world(root)
        before = files_of(picture(root))
        where = f"calls {number} ({name}) and {number + 1}"
        outcome = outcome_of(overlay, FaultySystem(fail_at=number, error=errno.EIO, times=2))
        assert not isinstance(outcome, CommitFailed) or outcome.restored, where
        expected = AFTER if isinstance(outcome, CommitResult) else before
        assert files_of(picture(root)) == expected, where


@pytest.mark.parametrize(
    ("after", "kind"),
    [(False, FaultySystem), (True, FaultyWithoutRenames)],
    ids=["before the effect", "after the effect, old renames"],
)
def test_a_system_that_fails_from_some_call_on_loses_no_file(
    new_root: Callable[[], Path], after: bool, kind: type[FaultySystem]
) -> None:
    for number, name in enumerate(calls_of_a_commit(new_root(), kind)):
        root = new_root()
        overlay = world(root)
        before = picture(root)
        where = f"from call {number} ({name})"
        outcome = outcome_of(overlay, kind(fail_at=number, error=errno.EIO, after=after, times=FOR_EVER))
        found = picture(root)
        if isinstance(outcome, CommitResult):
            assert files_of({name: found[name] for name in AFTER}) == AFTER, where
        elif isinstance(outcome, CommitFailed) and not outcome.restored:
            assert outcome.evidence is not None, where
            assert set(files_of(before).values()) <= {content for _, content in found.values()}, where
        else:
            assert {**found, **before} == found, where


def test_more_directories_than_may_be_open_at_once_are_no_obstacle(new_root: Callable[[], Path]) -> None:
    root = new_root()
    names = [f"Dir{number}/Sub/A.cs" for number in range(OPEN_DIRECTORIES_MAX + 20)]
    write(root, dict.fromkeys(names, b"before\n"))
    deep = "/".join(["d"] * (OPEN_DIRECTORIES_MAX + 20)) + "/A.cs"
    commit_overlay(staged(Baseline(root), {**dict.fromkeys(names, "after\n"), deep: "deep\n"}))

    found = files_of(picture(root))
    assert {found[name] for name in names} == {b"after\n"}
    assert found[deep] == b"deep\n"


def interfered(root: Path, call: str, nth: int, stranger: Callable[[], None]) -> FaultySystem:
    """A system in which a stranger acts just before the n-th call of a kind in the commit of `world`."""
    counted = FaultySystem()
    copy = root.parent / f"{root.name}-count"
    copy.mkdir()
    commit_overlay(world(copy), counted)
    numbers = [number for number, name in enumerate(counted.calls) if name == call]
    return FaultySystem(interfere={numbers[nth]: stranger})


def test_a_file_changed_before_the_commit_is_a_conflict_and_nothing_is_written(tmp_path: Path) -> None:
    overlay = world(tmp_path)
    (tmp_path / "App/A.cs").write_bytes(b"stranger")
    before = picture(tmp_path)
    with pytest.raises(CommitConflict) as conflict:
        commit_overlay(overlay)

    assert conflict.value.paths == (tmp_path / "App/A.cs",)
    assert conflict.value.code == "TransactionConflicted"
    assert picture(tmp_path) == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda root: (root / "App/A.cs").unlink(),
        lambda root: ((root / "App/A.cs").unlink(), (root / "App/A.cs").mkdir()),
        lambda root: ((root / "App/A.cs").unlink(), (root / "App/A.cs").symlink_to("B.cs")),
        lambda root: (root / "App/A2.cs").hardlink_to(root / "App/A.cs"),
        lambda root: (root / "App/A.cs").chmod(0o444),
        lambda root: (root / "Lib/Fresh.cs").write_bytes(b"stranger"),
        lambda root: (root / "New").write_bytes(b"a file where a directory must be made"),
        lambda root: ((root / "App").rename(root / "Elsewhere"), (root / "App").symlink_to("Elsewhere")),
    ],
    ids=[
        "deleted",
        "a directory",
        "a link",
        "hard link",
        "read-only",
        "name taken",
        "parent taken",
        "swapped for a link",
    ],
)
def test_a_tree_that_no_longer_fits_is_a_conflict_and_left_as_found(
    tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    overlay = world(tmp_path)
    changes = overlay.changes()
    spoil(tmp_path)
    before = picture(tmp_path)
    with pytest.raises(CommitConflict):
        commit(tmp_path, changes, overlay.baseline)

    assert picture(tmp_path) == before


@pytest.mark.parametrize("nth", range(4))
def test_a_stranger_who_replaces_a_target_just_before_its_exchange_keeps_his_file(
    tmp_path: Path, nth: int
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)
    before = picture(root)
    target = root / ("App/A.cs", "App/B.cs", "Lib/Swap1.cs", "Lib/Swap2.cs")[nth]

    def safe_save() -> None:
        other = target.with_suffix(".tmp")
        other.write_bytes(b"stranger")
        other.replace(target)

    with pytest.raises(CommitConflict):
        commit_overlay(overlay, interfered(root, "exchange", nth, safe_save))

    name = os.fspath(target.relative_to(root))
    usual = stat.S_IMODE((root / "Lib/Gone.cs").stat().st_mode)
    assert picture(root) == {**before, name: (usual, b"stranger")}


def test_a_stranger_who_writes_the_same_bytes_just_before_the_exchange_is_still_a_stranger(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)
    target = root / "App/B.cs"

    def same_bytes() -> None:
        other = target.with_suffix(".tmp")
        other.write_bytes(FILES["App/B.cs"])
        other.replace(target)

    with pytest.raises(CommitConflict):
        commit_overlay(overlay, interfered(root, "exchange", 1, same_bytes))

    assert files_of(picture(root)) == FILES


def test_a_stranger_who_takes_a_new_name_keeps_it_and_all_else_goes_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)
    before = picture(root)

    def take_name() -> None:
        (root / "Lib/Fresh.cs").write_bytes(b"stranger")

    moves_of_deletes = 2
    with pytest.raises(CommitConflict):
        commit_overlay(overlay, interfered(root, "move", moves_of_deletes, take_name))

    found = picture(root)
    assert found.pop("Lib/Fresh.cs")[1] == b"stranger"
    assert found == before


def test_a_stranger_who_changes_a_target_after_it_was_applied_keeps_his_text_and_the_others_go_back(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)

    def write_in_place() -> None:
        (root / "App/A.cs").write_bytes(b"stranger")

    system = interfered(root, "exchange", 1, write_in_place)  # A.cs was exchanged by the call before
    with pytest.raises(CommitFailed) as failure:
        commit_overlay(overlay, system)

    assert not failure.value.restored
    assert failure.value.paths == (root / "App/A.cs",)
    found = picture(root)
    assert found["App/A.cs"][1] == b"stranger"
    assert {**files_of(found), "App/A.cs": FILES["App/A.cs"]}.items() >= FILES.items()
    assert failure.value.evidence is not None
    assert FILES["App/A.cs"] in [path.read_bytes() for path in failure.value.evidence.iterdir()]


def test_a_stranger_who_replaces_a_file_just_before_it_is_deleted_keeps_his_file(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)

    def safe_save() -> None:
        (root / "tmp").write_bytes(b"stranger")
        (root / "tmp").replace(root / "Lib/Gone.cs")

    with pytest.raises(CommitConflict):
        commit_overlay(overlay, interfered(root, "move", 0, safe_save))

    assert files_of(picture(root)) == {**FILES, "Lib/Gone.cs": b"stranger"}


def test_a_stranger_who_makes_a_deleted_file_anew_keeps_it_and_the_original_is_kept_too(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)

    def make_anew() -> None:
        (root / "Lib/Gone.cs").write_bytes(b"stranger")

    with pytest.raises(CommitFailed) as failure:
        commit_overlay(overlay, interfered(root, "exchange", 0, make_anew))

    assert not failure.value.restored
    assert failure.value.paths == (root / "Lib/Gone.cs",)
    found = files_of(picture(root))
    assert found["Lib/Gone.cs"] == b"stranger"
    assert {**found, "Lib/Gone.cs": b"gone\n"}.items() >= FILES.items()
    assert failure.value.evidence is not None
    assert b"gone\n" in [path.read_bytes() for path in failure.value.evidence.iterdir()]


def test_a_stranger_who_writes_into_a_created_file_keeps_his_text(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)

    def write_and_spoil() -> None:
        (root / "Lib/Fresh.cs").write_bytes(b"stranger")

    calls = calls_of_a_commit(tmp_path, FaultySystem)
    last_move = len(calls) - 1 - calls[::-1].index("move")
    system = FaultySystem(interfere={last_move + 1: write_and_spoil})
    with pytest.raises(CommitFailed) as failure:
        commit_overlay(overlay, system)

    assert failure.value.paths == (root / "Lib/Fresh.cs",)
    assert files_of(picture(root)).items() >= {**FILES, "Lib/Fresh.cs": b"stranger"}.items()


def test_a_directory_made_anew_by_a_stranger_is_not_ours_to_remove(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)

    def replace_directory() -> None:
        (root / "New/Deep").rmdir()
        (root / "spare").mkdir()  # so that the freed inode is not given out again
        (root / "New/Deep").mkdir()
        (root / "App/A.cs").write_bytes(b"stranger")

    with pytest.raises(CommitConflict):
        commit_overlay(overlay, interfered(root, "exchange", 0, replace_directory))

    assert "New/Deep" in picture(root)


@pytest.mark.parametrize("as_link", [False, True], ids=["by another directory", "by a link"])
def test_a_directory_swapped_in_the_middle_is_noticed_and_all_goes_back(
    tmp_path: Path, as_link: bool
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)

    def swap() -> None:
        (root / "App").rename(root / "Elsewhere")
        if as_link:
            (root / "App").symlink_to("Elsewhere")
        else:
            write(root, {"App/A.cs": b"theirs"})

    with pytest.raises(CommitConflict):
        commit_overlay(overlay, interfered(root, "exchange", 3, swap))

    found = picture(root)
    assert found["Elsewhere/A.cs"][1] == FILES["App/A.cs"]
    assert found["Elsewhere/B.cs"][1] == FILES["App/B.cs"]
    assert found["Lib/Old.cs"][1] == FILES["Lib/Old.cs"]
    assert ("App/A.cs" in found) != as_link


def test_a_change_during_the_preparation_is_seen_before_anything_is_touched(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)

    def safe_save() -> None:
        (root / "tmp").write_bytes(b"stranger")
        (root / "tmp").replace(root / "App/A.cs")

    system = interfered(root, "sync", 0, safe_save)
    with pytest.raises(CommitConflict):
        commit_overlay(overlay, system)

    assert not {"exchange", "move"} & set(system.calls)
    assert files_of(picture(root)) == {**FILES, "App/A.cs": b"stranger"}


def test_everything_written_is_synced_before_the_first_target_is_touched(tmp_path: Path) -> None:
    calls = calls_of_a_commit(tmp_path, FaultySystem)
    before = calls[: min(calls.index("move"), calls.index("exchange"))]
    artifacts = before.count("open_new")
    our_directories = before.count("make_directory")

    assert before[-before[::-1].index("write") :].count("sync") >= artifacts + our_directories


def test_a_file_put_into_a_new_directory_survives_the_way_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)

    def put_file() -> None:
        (root / "New/theirs.txt").write_bytes(b"theirs")
        (root / "App/A.cs").write_bytes(b"stranger")

    with pytest.raises(CommitConflict):
        commit_overlay(overlay, interfered(root, "exchange", 0, put_file))

    found = picture(root)
    assert found["New/theirs.txt"][1] == b"theirs"
    assert "New/Deep" not in found
    assert files_of(found) == {**FILES, "App/A.cs": b"stranger"}


def test_a_writer_with_an_open_handle_gets_his_bytes_kept_and_reported(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)
    with (root / "App/A.cs").open("r+b", buffering=0) as handle:

        def write_late() -> None:
            handle.write(b"late")

        result = commit_overlay(overlay, interfered(root, "exchange", 2, write_late))

    assert [kept.path for kept in result.kept] == [root / "App/A.cs"]
    assert result.kept[0].kept_at.read_bytes() == b"lates A { }\r\n"
    assert files_of(picture(root)).items() >= AFTER.items()


def test_an_interrupt_in_the_middle_goes_back_and_comes_through(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = world(root)
    before = picture(root)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commit_overlay(overlay, interfered(root, "exchange", 2, interrupt))

    assert picture(root) == before


@pytest.mark.parametrize("links", [True, False], ids=["with links", "without links"])
def test_a_file_system_without_the_newer_renames_gets_the_same_result(tmp_path: Path, links: bool) -> None:
    system = WithoutRenames()
    system.links = links
    commit_overlay(world(tmp_path), system)

    found = picture(tmp_path)
    assert files_of(found) == AFTER
    assert ".vs" not in found


@pytest.mark.parametrize("links", [True, False], ids=["with links", "without links"])
def test_a_conflict_is_taken_back_without_the_newer_renames_too(tmp_path: Path, links: bool) -> None:
    system = WithoutRenames()
    system.links = links
    overlay = world(tmp_path)
    before = picture(tmp_path)

    class Spoiling(WithoutRenames):
        def sync(self, descriptor: int) -> None:
            if (tmp_path / "Lib/Fresh.cs").exists():
                raise OSError(errno.EIO, "spoiled")
            super().sync(descriptor)

    spoiling = Spoiling()
    spoiling.links = links
    with pytest.raises(CommitFailed) as failure:
        commit_overlay(overlay, spoiling)

    assert failure.value.restored
    assert picture(tmp_path) == before


class OtherMount(System):
    """A world in which one directory cannot exchange files with the workshop, as a bind mount inside the root."""

    def __init__(self, directory: Path) -> None:
        self.inode = directory.stat().st_ino
        self.seen: set[str] = set()
        self.directory = directory

    def _is_other(self, descriptor: int) -> bool:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        return path.is_relative_to(self.directory)

    def _check(self, one: int, another: int) -> None:
        self.seen |= {name for name in os.listdir(self.directory) if name.startswith(".")}  # noqa: PTH208  # names
        if self._is_other(one) != self._is_other(another):
            raise OSError(errno.EXDEV, "other mount")

    def rename(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._check(old_directory, new_directory)
        super().rename(old, old_directory, new, new_directory)

    def move(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._check(old_directory, new_directory)
        super().move(old, old_directory, new, new_directory)

    def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        self._check(old_directory, new_directory)
        super().exchange(old, old_directory, new, new_directory)


def test_a_directory_on_another_mount_is_committed_through_a_hidden_sibling_that_goes_again(
    tmp_path: Path,
) -> None:
    overlay = world(tmp_path)
    system = OtherMount(tmp_path / "Lib")
    commit_overlay(overlay, system)

    found = picture(tmp_path)
    assert files_of(found) == AFTER
    assert len(system.seen) == 1
    assert set(found) == {*AFTER, "App", "Lib", "New", "New/Deep"}


def test_a_link_in_place_of_our_folder_is_not_followed(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    overlay = world(root)
    (root / ".vs").symlink_to(elsewhere)
    before = picture(tmp_path)
    with pytest.raises(CommitPreparationFailed):
        commit_overlay(overlay)

    assert picture(tmp_path) == before


def test_a_root_that_is_gone_is_a_failure_of_the_preparation(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    overlay = staged(Baseline(root), {"A.cs": "a\n"})
    changes = overlay.changes()
    root.rmdir()
    with pytest.raises(CommitPreparationFailed):
        commit(root, changes, overlay.baseline)


class _Record:
    def __init__(self, said: list[str], root: Path, refuse: str) -> None:
        self.said, self.root, self.refuse = said, root, refuse

    def _say(self, word: str) -> None:
        self.said.append(word)
        if word == self.refuse:
            raise OSError(errno.ENOSPC, "no space for the record")

    def workshop(self, directory: Directory) -> None:
        assert not self.root.joinpath(*directory).exists()
        self._say("workshop")

    def prepared(self, plan: CommitPlan) -> None:
        for entry in plan.entries:
            assert (entry.intended is None) == (entry.operation == "Delete")
            if entry.intended is not None:
                assert self.root.joinpath(*entry.workshop, entry.new_name).is_file()
        self._say("prepared")

    def applying(self) -> None:
        assert files_of(picture(self.root)).items() >= FILES.items()
        self._say("applying")

    def committed(self) -> None:
        assert files_of(picture(self.root)).items() >= AFTER.items()
        self._say("committed")

    def restored(self) -> None:
        assert files_of(picture(self.root)).items() >= FILES.items()
        self._say("restored")

    def unrestored(self, paths: object, refused: bool) -> None:
        self._say("unrestored")

    def finished(self) -> None:
        assert not (self.root / ".vs").exists()
        self._say("finished")


class _Journal:
    def __init__(self, refuse: str = "") -> None:
        self.said: list[str] = []
        self.refuse = refuse

    def begin(self, commit_id: str, root: Path) -> CommitRecord:
        return _Record(self.said, root, self.refuse)


def test_the_journal_hears_the_story_in_order(tmp_path: Path) -> None:
    overlay, journal = world(tmp_path), _Journal()
    commit(tmp_path, overlay.changes(), overlay.baseline, journal=journal)

    assert journal.said == ["workshop", "prepared", "applying", "committed", "finished"]


@pytest.mark.parametrize("word", ["workshop", "prepared", "applying"])
def test_a_journal_that_cannot_write_stops_the_commit_before_anything_happened(
    tmp_path: Path, word: str
) -> None:
    overlay, journal = world(tmp_path), _Journal(refuse=word)
    before = picture(tmp_path)
    with pytest.raises(CommitPreparationFailed):
        commit(tmp_path, overlay.changes(), overlay.baseline, journal=journal)

    assert journal.said[-2:] == ["restored", "finished"]
    assert picture(tmp_path) == before


def test_a_change_outside_the_root_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "Outside.cs"
    outside.write_bytes(b"o\n")
    overlay = staged(Baseline(tmp_path), {"Outside.cs": "p\n"})
    with pytest.raises(TransactionError):
        commit(root, overlay.changes(), overlay.baseline)

    assert outside.read_bytes() == b"o\n"
    assert picture(root) == {}
