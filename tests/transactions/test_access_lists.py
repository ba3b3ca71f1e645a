"""A new file or directory gets the access list that it would get if it were made at its place."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.transactions.crashes import Place, mode_of
from tests.transactions.worlds import write
from transactions.access_lists import DEFAULT_LIST
from transactions.recovery import recover

NewRoot = Callable[[], Path]

OWNER, USER, GROUP, MASK, OTHERS = 0x01, 0x02, 0x04, 0x10, 0x20
NOBODY = 0xFFFFFFFF

FILES = {"App/A.cs": b"a\n", "App/Old.cs": b"old\n"}
STEPS: dict[str, str | tuple[str, str] | None] = {
    "App/A.cs": "a2\n",
    "App/New.cs": "new\n",
    "App/Sub/Deep/New.cs": "new\n",
    "Lib/New.cs": "new\n",
}

LISTS = {
    "with a user of its own": [
        *((OWNER, 7, NOBODY), (USER, 7, 1234), (GROUP, 5, NOBODY), (MASK, 7, NOBODY), (OTHERS, 1, NOBODY)),
    ],
    "of modes alone": [(OWNER, 7, NOBODY), (GROUP, 7, NOBODY), (OTHERS, 7, NOBODY)],
}


def put_list(directory: Path, entries: list[tuple[int, int, int]]) -> None:
    data = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(directory, DEFAULT_LIST, data)
    except OSError as error:
        pytest.skip(f"no access lists here: {error.strerror}")


def look(path: Path) -> tuple[int, dict[str, bytes]]:
    return mode_of(path), {name: os.getxattr(path, name) for name in os.listxattr(path)}


@pytest.mark.parametrize("entries", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("where", ["App", "."], ids=["of one directory", "of the whole workspace"])
def test_new_files_and_directories_get_what_a_plain_create_gives_them(
    new_root: NewRoot, entries: list[tuple[int, int, int]], where: str
) -> None:
    above = new_root()
    place = Place.make(above, FILES, STEPS)
    plain = above / "plain"
    write(plain, FILES)
    for root in (place.root, plain):
        put_list(root / where, entries)
    write(plain, {name: text.encode() for name, text in STEPS.items() if isinstance(text, str)})
    place.commit()

    for path in (path.relative_to(plain) for path in plain.rglob("*")):
        assert look(place.root / path) == look(plain / path), path
    assert recover(place.state) == ()
