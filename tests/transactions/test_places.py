"""Directories are reached without links, and stay the ones they were."""

import errno
from pathlib import Path

import pytest

from transactions.places import OPEN_DIRECTORIES_MAX, Places
from transactions.system import System


@pytest.mark.parametrize("link_at", ["Link", "Real/Link"])
def test_a_link_on_the_way_is_not_followed(tmp_path: Path, link_at: str) -> None:
    (tmp_path / "Real/Inner").mkdir(parents=True)
    (tmp_path / link_at).symlink_to(tmp_path / "Real/Inner")
    with Places(System(), tmp_path) as places, pytest.raises(OSError) as refusal:  # noqa: PT011  # the number is asserted
        places.descriptor(tuple(link_at.split("/")))

    assert refusal.value.errno in (errno.ELOOP, errno.ENOTDIR)


def test_a_directory_that_was_closed_for_others_must_be_the_same_when_it_is_opened_again(
    tmp_path: Path,
) -> None:
    for number in range(OPEN_DIRECTORIES_MAX + 1):
        (tmp_path / f"D{number}").mkdir()
    with Places(System(), tmp_path) as places:
        for number in range(OPEN_DIRECTORIES_MAX + 1):
            places.descriptor((f"D{number}",))
        (tmp_path / "D0").rename(tmp_path / "Elsewhere")
        (tmp_path / "D0").mkdir()
        with pytest.raises(OSError) as refusal:  # noqa: PT011  # the number is asserted
            places.descriptor(("D0",))

    assert refusal.value.errno == errno.ESTALE


def test_a_directory_in_use_is_known_to_have_left_its_place(tmp_path: Path) -> None:
    (tmp_path / "A/B").mkdir(parents=True)
    with Places(System(), tmp_path) as places:
        places.descriptor(("A", "B"))
        places.require_in_place(("A", "B"))
        (tmp_path / "A").rename(tmp_path / "Elsewhere")
        with pytest.raises(OSError) as refusal:  # noqa: PT011  # the number is asserted
            places.require_in_place(("A", "B"))

    assert refusal.value.errno == errno.ESTALE


def test_all_descriptors_are_closed_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "A").mkdir()
    before = sorted(Path("/proc/self/fd").iterdir())
    with Places(System(), tmp_path) as places:
        places.descriptor(("A",))

    assert sorted(Path("/proc/self/fd").iterdir()) == before
