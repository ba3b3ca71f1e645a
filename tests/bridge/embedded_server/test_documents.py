"""Open texts over the disk."""

from pathlib import Path

import pytest

from bridge.embedded_server.documents import Change, Documents, TextUnknownError, UnreadableTextError
from transactions.text import Position


def test_an_open_text_hides_the_disk_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "A.cs"
    path.write_text("on disk")
    documents = Documents()
    assert documents.text(path) == "on disk"
    documents.open(path, "open")
    assert documents.text(path) == "open"
    documents.close(path)
    assert documents.text(path) == "on disk"


def test_the_disk_is_read_at_every_question(tmp_path: Path) -> None:
    path = tmp_path / "A.cs"
    documents = Documents()
    assert documents.source(path) is None
    path.write_text("class A { }")
    first = documents.source(path)
    path.write_text("class B { }")
    second = documents.source(path)
    assert first is not None
    assert second is not None
    assert second.text == "class B { }"


def test_an_unchanged_text_keeps_its_tree(tmp_path: Path) -> None:
    path = tmp_path / "A.cs"
    path.write_text("class A { }")
    documents = Documents()
    assert documents.source(path) is documents.source(path)


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + "// é".encode(),
        b"\xff\xfe" + "// é".encode("utf-16-le"),
        b"\xfe\xff" + "// é".encode("utf-16-be"),
        "// é".encode("cp1252"),
    ],
    ids=["UTF-8 with mark", "UTF-16 LE", "UTF-16 BE", "one byte each"],
)
def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "A.cs"
    path.write_bytes(data)
    assert Documents().text(path) == "// é"


@pytest.mark.parametrize("data", [b"\xff\xfea", b"a\0b"], ids=["half a unit", "binary"])
def test_what_is_no_text_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "A.cs"
    path.write_bytes(data)
    with pytest.raises(UnreadableTextError, match=r"A\.cs"):
        Documents().source(path)


def test_a_folder_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(UnreadableTextError):
        Documents().source(tmp_path)


def test_a_file_of_absurd_size_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "A.cs"
    with path.open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    with pytest.raises(UnreadableTextError):
        Documents().source(path)


def test_a_copy_keeps_its_texts_when_the_original_goes_on() -> None:
    documents, path = Documents(), Path("/nowhere/A.cs")
    documents.open(path, "before")
    copy = Documents(documents.open_texts)
    documents.open(path, "after")
    assert copy.text(path) == "before"


def test_changes_apply_one_after_the_other_in_utf16() -> None:
    documents, path = Documents(), Path("/nowhere/A.cs")
    documents.open(path, "😀x\r\nb")
    documents.change(
        path,
        [
            Change("y", Position(0, 2), Position(0, 3)),
            Change("zz", Position(0, 2), Position(0, 3)),
            Change("!", Position(1, 1), Position(1, 1)),
        ],
    )
    assert documents.text(path) == "😀zz\r\nb!"
    documents.change(path, [Change("whole")])
    assert documents.text(path) == "whole"


@pytest.mark.parametrize(
    "change",
    [
        Change("x", Position(7, 0), Position(7, 1)),
        Change("x", Position(0, 1), Position(0, 2)),
        Change("x", Position(0, 3), Position(0, 2)),
    ],
    ids=["outside", "inside a pair", "backwards"],
)
def test_after_an_impossible_change_the_text_is_unknown_until_opened_again(change: Change) -> None:
    documents, path = Documents(), Path("/nowhere/A.cs")
    documents.open(path, "😀x")
    with pytest.raises(TextUnknownError):
        documents.change(path, [change])
    with pytest.raises(TextUnknownError):
        documents.source(path)
    documents.open(path, "new")
    assert documents.text(path) == "new"


def test_a_change_of_a_closed_document_is_refused() -> None:
    with pytest.raises(TextUnknownError):
        Documents().change(Path("/nowhere/A.cs"), [Change("x")])


def test_a_path_is_taken_by_a_file_or_an_open_document(tmp_path: Path) -> None:
    documents = Documents()
    assert not documents.exists(tmp_path / "A.cs")
    documents.open(tmp_path / "A.cs", "")
    assert documents.exists(tmp_path / "A.cs")
    (tmp_path / "B.cs").touch()
    assert documents.exists(tmp_path / "B.cs")
