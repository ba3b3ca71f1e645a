"""What is said of a directory that cannot hold private state: what is wrong with it, and what to do."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from transactions.errors import CommitUnrecordable
from transactions.private_directory import refusal, trouble_with, trouble_with_entry
from transactions.recovery import pending

NOBODY = 65534


def link(path: Path) -> None:
    path.with_name("target").mkdir()
    path.symlink_to(path.with_name("target"))


def of_mode(mode: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        path.chmod(mode)

    return make


@pytest.mark.parametrize(
    ("make", "words", "advice"),
    [
        (link, "is a link", "Put a directory in its place"),
        (lambda path: path.symlink_to("nowhere"), "is a link", "Put a directory in its place"),
        (lambda path: path.write_text("file"), "is no directory", "Move it away"),
        (of_mode(0o777), "can be written by other users (mode 0777)", "chmod 700 "),
        (of_mode(0o755), "is open to other users (mode 0755)", "chmod 700 "),
    ],
    ids=["link", "dangling link", "file", "0777", "0755"],
)
def test_what_is_wrong_and_what_to_do_are_said_and_nothing_is_read(
    tmp_path: Path, make: Callable[[Path], None], words: str, advice: str
) -> None:
    path = tmp_path / "our state"
    make(path)
    with pytest.raises(CommitUnrecordable) as refused:
        pending(path)
    assert f"The state directory {path} {words}" in refused.value.message
    assert advice in refused.value.message
    assert refused.value.message.endswith("Nothing was written.")


def test_a_private_directory_has_no_trouble(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert trouble_with(tmp_path, tmp_path.lstat()) is None
    assert trouble_with_entry(tmp_path) is None


def test_the_command_that_closes_a_directory_can_be_copied_into_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "it's ours"
    path.mkdir()
    path.chmod(0o777)
    said = trouble_with(path, path.lstat())
    assert said is not None
    assert os.system(said[said.index("chmod 700 ") :]) == 0  # that this is a shell's line is the point
    assert trouble_with(path, path.lstat()) is None


def test_a_directory_of_another_user_is_refused_by_his_name(tmp_path: Path) -> None:
    others = [place for place in (Path("/"), Path("/proc/1")) if place.stat().st_uid != os.geteuid()]
    if not others:  # we are the one who owns these; then we may give ours away
        os.chown(tmp_path, 12345, -1)
        others = [tmp_path]
    said = trouble_with(others[0], others[0].lstat())
    assert said is not None
    assert said.startswith("belongs to another user (")
    assert "--state-directory" in said
    denied = PermissionError(errno.EACCES, "Permission denied", os.fspath(others[0]))
    assert refusal(others[0], denied) == said, "that it is denied says less than why"


def test_a_folder_that_another_user_has_closed_above_it_is_named_with_its_user(
    new_root: Callable[[], Path],
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    above = new_root()
    for folder in (above.parent, above):
        folder.chmod(0o711)
    closed = above / "closed"
    (closed / "state").mkdir(parents=True)
    closed.chmod(0o700)
    os.seteuid(NOBODY)
    try:
        said = trouble_with_entry(closed / "state")
    finally:
        os.seteuid(0)
    assert said is not None
    assert said.startswith(f"lies in {closed}, which is closed to all but its user (")


def test_what_is_ours_and_denied_all_the_same_is_to_be_given_the_right(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    said = refusal(tmp_path, PermissionError(errno.EACCES, "Permission denied", os.fspath(tmp_path)))
    assert said.startswith("cannot be used: Permission denied. Give yourself the right to write there, or")


def test_a_file_above_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    path = tmp_path / "file" / "state"
    said = refusal(path, NotADirectoryError(errno.ENOTDIR, "Not a directory"))
    assert f"{tmp_path / 'file'} is no directory" in said


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EROFS, "Make that file system writable"),
        (errno.EDQUOT, "Make room"),
        (errno.ENOSPC, "Make room"),
        (errno.EIO, "Mend that, or choose"),
    ],
)
def test_each_refusal_of_the_system_says_what_can_be_done(tmp_path: Path, number: int, words: str) -> None:
    said = refusal(tmp_path, OSError(number, os.strerror(number), os.fspath(tmp_path / "sub")))
    assert words in said
    assert "--state-directory" in said
    assert str(tmp_path / "sub") in said
