"""Mentions of a name in files beside the code: whole words, few folders, and bounds that are said."""

from pathlib import Path

import pytest

from bridge import mentions
from bridge.mentions import in_other_files


def write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_whole_words_are_found_in_the_kinds_of_files_that_speak_of_code(tmp_path: Path) -> None:
    write(tmp_path / "a.razor", b"@Apple Apples\r\n  <p>Apple</p>\n")
    write(tmp_path / "b.resx", "<x>\N{GRINNING FACE} Apple</x>".encode("utf-16"))
    write(tmp_path / "c.txt", b"Apple")
    write(tmp_path / "obj/d.json", b"Apple")
    write(tmp_path / ".git/e.json", b"Apple")
    write(tmp_path / "f.json", b"\0Apple")
    found = [(m.path.name, m.line, m.column, m.text) for m in in_other_files(tmp_path, "Apple").found]
    assert found == [
        ("a.razor", 0, 1, "@Apple Apples"),
        ("a.razor", 1, 5, "<p>Apple</p>"),
        ("b.resx", 0, 6, "<x>\N{GRINNING FACE} Apple</x>"),
    ]


@pytest.mark.parametrize(
    ("bound", "value"), [("MOST_FILES", 2), ("MOST_BYTES", 5), ("MOST_KEPT", 1), ("LARGEST_FILE", 3)]
)
def test_every_bound_is_kept_and_a_search_that_was_cut_short_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    for number in range(4):
        write(tmp_path / f"{number}.json", b"Apple ")
    monkeypatch.setattr(mentions, bound, value)
    found = in_other_files(tmp_path, "Apple")
    assert len(found.found) < 4
    assert found.cut_short is not None


def test_a_long_line_is_shown_in_part(tmp_path: Path) -> None:
    write(tmp_path / "a.json", b"Apple " * 10_000)
    found = in_other_files(tmp_path, "Apple").found
    assert len(found) == mentions.MOST_KEPT
    assert len(found[0].text) <= mentions.LONGEST_LINE
