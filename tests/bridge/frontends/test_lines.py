"""Bytes become lines: whole, byte by byte, with a tail, and never beyond the limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.frontends.lines import LineSplitter, Oversized

STREAM = b'{"a":1}\r\n\n{"b":"\xc3\xa9"}\nlast'
LINES = [b'{"a":1}', b"", b'{"b":"\xc3\xa9"}']


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_chunks_of_any_size_give_the_same_lines(size: int) -> None:
    splitter = LineSplitter()
    lines = [line for at in range(0, len(STREAM), size) for line in splitter.feed(STREAM[at : at + size])]
    assert lines == LINES
    assert splitter.feed_eof() == [b"last"]


@given(
    st.lists(st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b" ").rstrip(b"\r"))),
    st.integers(1, 9),
)
def test_every_stream_of_short_lines_comes_back_whole(lines: list[bytes], size: int) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter(max_line_bytes=12)
    cut = [line for at in range(0, len(stream), size) for line in splitter.feed(stream[at : at + size])]
    assert cut == lines


def test_the_end_after_a_complete_line_adds_no_line() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"a\n") == [b"a"]
    assert splitter.feed_eof() == []


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_line_over_the_limit_is_reported_once_and_skipped_to_its_end(size: int) -> None:
    splitter = LineSplitter(max_line_bytes=10)
    stream = b"x" * 35 + b"\nnext\n"
    lines = [line for at in range(0, len(stream), size) for line in splitter.feed(stream[at : at + size])]
    assert lines == [Oversized.LINE, b"next"]


def test_a_line_over_the_limit_is_reported_before_it_ends() -> None:
    assert LineSplitter(max_line_bytes=10).feed(b"x" * 11) == [Oversized.LINE]


def test_a_line_of_exactly_the_limit_passes() -> None:
    assert LineSplitter(max_line_bytes=10).feed(b"x" * 10 + b"\n") == [b"x" * 10]


def test_an_oversized_line_cut_by_the_end_leaves_nothing_behind() -> None:
    splitter = LineSplitter(max_line_bytes=10)
    splitter.feed(b"x" * 11)
    splitter.feed(b"y" * 5)
    assert splitter.feed_eof() == []
