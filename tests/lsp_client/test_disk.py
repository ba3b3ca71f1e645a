"""What is read from disk by the client itself."""

import codecs
from pathlib import Path

import pytest

from lsp_client.dialects.base import LoadTarget
from lsp_client.disk import has_byte_order_mark, read_text, some_source_file

TEXT = "class É { }\r\n// 𝄞\n"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_marked_file_is_read_without_its_mark(tmp_path: Path, mark: bytes, encoding: str) -> None:
    path = tmp_path / "a.cs"
    path.write_bytes(mark + TEXT.encode(encoding))
    assert read_text(path) == TEXT
    assert has_byte_order_mark(path)


def test_a_file_without_a_mark_is_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "a.cs"
    path.write_bytes(TEXT.encode())
    assert (read_text(path), has_byte_order_mark(path)) == (TEXT, False)


def test_a_file_that_is_no_utf_8_is_read_as_latin_1_and_shown_by_opening_it(tmp_path: Path) -> None:
    path = tmp_path / "a.cs"
    path.write_bytes(b"// \xe9\n")
    assert (read_text(path), has_byte_order_mark(path)) == ("// é\n", True)


def test_a_missing_or_undecodable_file_has_no_text(tmp_path: Path) -> None:
    odd = tmp_path / "odd.cs"
    odd.write_bytes(codecs.BOM_UTF16_LE + b"x")
    assert read_text(odd) is None
    assert read_text(tmp_path / "missing.cs") is None
    assert not has_byte_order_mark(tmp_path / "missing.cs")


def test_a_source_file_is_found_beside_its_project_and_not_among_outputs(tmp_path: Path) -> None:
    project = tmp_path / "src" / "A" / "A.csproj"
    for name in ("bin/X.cs", "obj/Y.cs", ".git/Z.cs", "deep/er/B.cs"):
        path = project.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert (
        some_source_file(LoadTarget(tmp_path / "S.slnx", tmp_path, (project,)))
        == project.parent / "deep/er/B.cs"
    )
    assert some_source_file(LoadTarget(tmp_path / "S.slnx", tmp_path)) == project.parent / "deep/er/B.cs"


def test_a_solution_without_sources_has_none(tmp_path: Path) -> None:
    assert some_source_file(LoadTarget(tmp_path / "S.slnx", tmp_path / "nowhere")) is None
