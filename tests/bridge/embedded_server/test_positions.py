"""Lines and UTF-16 positions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.embedded_server.positions import LineMap, OutsideTextError, utf16_length
from transactions.text import Position, SourceText

TEXTS = st.text(st.sampled_from("ab \r\n\x85\u2028\u2029\x0b\x0cé😀"), max_size=30)


@given(TEXTS)
def test_lines_are_those_of_the_texts_that_are_committed(text: str) -> None:
    lines, committed = LineMap(text), SourceText(text)
    assert lines.count == committed.line_count
    for offset in range(len(text) + 1):
        assert lines.position_at(offset) == committed.position_of_index(offset)


@given(TEXTS)
def test_every_position_leads_back_to_its_offset(text: str) -> None:
    lines = LineMap(text)
    assert [lines.offset_at(lines.position_at(offset)) for offset in range(len(text) + 1)] == list(
        range(len(text) + 1)
    )


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"])
def test_roslyns_line_ends_end_a_line(ending: str) -> None:
    lines = LineMap(f"a{ending}b")
    assert lines.count == 2
    assert lines.position_at(1 + len(ending)) == Position(1, 0)
    assert lines.line_break(0) == ending


@pytest.mark.parametrize("character", ["\x0b", "\x0c", "\x1c", "\x1e"])
def test_what_only_python_takes_for_a_line_end_ends_no_line(character: str) -> None:
    assert LineMap(f"a{character}b").count == 1


def test_a_character_beyond_the_basic_plane_counts_twice() -> None:
    lines = LineMap("😀x")
    assert lines.position_at(1) == Position(0, 2)
    assert lines.offset_at(Position(0, 2)) == 1
    assert utf16_length("😀x") == 3


def test_a_position_between_cr_and_lf_stays_there() -> None:
    lines = LineMap("ab\r\ncd")
    assert lines.offset_at(Position(0, 3)) == 3


def test_a_column_past_its_line_means_the_visible_end() -> None:
    lines = LineMap("ab\r\ncd")
    assert lines.offset_at(Position(0, 2_147_483_647)) == 2
    assert lines.offset_at(Position(1, 9)) == 6


def test_the_line_after_the_last_means_the_end_at_its_first_column_only() -> None:
    lines = LineMap("ab")
    assert lines.offset_at(Position(1, 0)) == 2
    with pytest.raises(OutsideTextError):
        lines.offset_at(Position(1, 1))


@pytest.mark.parametrize("position", [Position(2, 0), Position(-1, 0), Position(0, -1)])
def test_a_position_that_does_not_exist_is_refused(position: Position) -> None:
    with pytest.raises(OutsideTextError):
        LineMap("ab").offset_at(position)


def test_the_middle_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(OutsideTextError):
        LineMap("x😀y").offset_at(Position(0, 2))
