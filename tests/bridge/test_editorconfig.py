"""What ``.editorconfig`` files ask of a file's bytes."""

from pathlib import Path

import pytest

from bridge.editorconfig import EditorConfig, editorconfig_for


def config(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".editorconfig").write_text("root = true\n" + text)


def test_the_nearest_file_wins_and_the_root_ends_the_search(tmp_path: Path) -> None:
    (tmp_path / ".editorconfig").write_text("root = true\n[*]\ninsert_final_newline = true\n")
    config(tmp_path / "top", "[*.cs]\nend_of_line = crlf\ncharset = utf-8-bom\n")
    (tmp_path / "top" / "src").mkdir()
    (tmp_path / "top" / "src" / ".editorconfig").write_text("[*.{cs,vb}]\nend_of_line = lf\n")
    asked = editorconfig_for(tmp_path / "top" / "src" / "New.cs")
    assert asked == EditorConfig(charset="utf-8-bom", end_of_line="\n", insert_final_newline=None)


def test_a_section_for_other_files_asks_for_nothing(tmp_path: Path) -> None:
    config(tmp_path, "[*.vb]\nend_of_line = crlf\n")
    assert editorconfig_for(tmp_path / "A.cs") == EditorConfig()


@pytest.mark.parametrize(
    ("text", "value"), [("TRUE", True), ("false", False), ("unset", None), ("maybe", None)]
)
def test_a_final_newline_is_asked_for_refused_or_left_open(
    tmp_path: Path, text: str, *, value: bool | None
) -> None:
    config(tmp_path, f"[*]\ninsert_final_newline = {text}\n")
    assert editorconfig_for(tmp_path / "A.cs").insert_final_newline is value


def test_unknown_values_ask_for_nothing(tmp_path: Path) -> None:
    config(tmp_path, "[*]\nend_of_line = nel\ncharset = klingon\n")
    assert editorconfig_for(tmp_path / "A.cs") == EditorConfig()


@pytest.mark.parametrize(
    "data", [b"[*\nnonsense nonsense\n=\n", b"\xff\xfe\x00[*]", b"[*]\ncharset = \xe4\n"]
)
def test_a_faulty_file_asks_for_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".editorconfig").write_bytes(data)
    assert editorconfig_for(tmp_path / "A.cs").end_of_line is None
    (tmp_path / ".editorconfig").unlink()
    (tmp_path / ".editorconfig").mkdir()
    assert editorconfig_for(tmp_path / "A.cs").end_of_line is None


def test_a_folder_whose_name_looks_like_a_pattern_is_no_pattern(tmp_path: Path) -> None:
    config(tmp_path / "[x] {a,b}", "[/src/*.cs]\nend_of_line = crlf ; windows\n")
    assert editorconfig_for(tmp_path / "[x] {a,b}" / "src" / "A.cs").end_of_line == "\r\n"
    assert editorconfig_for(tmp_path / "[x] {a,b}" / "A.cs").end_of_line is None


@pytest.mark.parametrize(
    ("glob", "matches"),
    [
        ("*", True),
        ("*.{cs,vb}", True),
        ("A{1..3}.cs", True),
        ("A{4..9}.cs", False),
        ("src/**", True),
        ("src/*.cs", False),
        ("src/**/A?.cs", True),
        ("[AB]2.cs", True),
        ("[!A]2.cs", False),
        ("{", False),
        ("[z-a]", False),
    ],
)
def test_section_globs_match_as_the_format_says(tmp_path: Path, glob: str, *, matches: bool) -> None:
    config(tmp_path, f"[{glob}]\nend_of_line = lf\n")
    asked = editorconfig_for(tmp_path / "src" / "deep" / "A2.cs")
    assert (asked.end_of_line == "\n") is matches
