"""The base protocol, fed whole, byte by byte and with a tail."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_client.errors import ProtocolViolation
from lsp_client.framing import MAX_HEADER_BYTES, MAX_LINE_BYTES, FrameDecoder, encode_frame

TAIL = b"Content-Length: 4\r\n\r\nta"  # a frame that has begun


def decoded(pieces: list[bytes], max_body_bytes: int = 1 << 20) -> list[bytes]:
    decoder = FrameDecoder(max_body_bytes)
    bodies = [body for piece in pieces for body in decoder.feed(piece)]
    decoder.feed_eof()
    return bodies


def check(stream: bytes, *bodies: bytes) -> None:
    """``stream`` holds exactly these bodies, however the pipe cuts it, and whatever begins after it."""
    expected = list(bodies)
    assert decoded([stream]) == expected
    assert decoded([stream[i : i + 1] for i in range(len(stream))]) == expected
    decoder = FrameDecoder()
    assert decoder.feed(stream + TAIL) == expected
    assert decoder.feed(b"il") == [b"tail"]


def test_a_frame_gives_its_body() -> None:
    check(b'Content-Length: 7\r\n\r\n{"a":1}', b'{"a":1}')


def test_frames_back_to_back_give_their_bodies_in_order() -> None:
    check(encode_frame(b"one") + encode_frame(b"") + encode_frame(b"three"), b"one", b"", b"three")


def test_a_length_counts_bytes_not_characters() -> None:
    body = '{"ü":"𝄞"}'.encode()
    check(encode_frame(body), body)


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH: 2\r\n\r\n",
        b"Content-Length:2\r\n\r\n",
        b"Content-Length :\t2 \r\n\r\n",
        b"Content-Length: 2\n\n",
        b"Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc\r\nContent-Length: 2\r\n\r\n",
        b"\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_every_spelling_of_the_header_is_understood(header: bytes) -> None:
    check(header + b"{}", b"{}")


@pytest.mark.parametrize(
    "stray",
    [
        b"Welcome to a language server\n",
        b"Restoring packages...\r\n\r\n",
        b"note: the Content-Length: 99 header was sent\n",
        b"note: sent Content-Length: 99\n",
        b"\xff\xfe\x00 no text at all\n",
        b"without a line end",
        b"x" * (MAX_LINE_BYTES * 3) + b"\n",
        b"x" * (MAX_LINE_BYTES * 3),
    ],
)
def test_stray_text_around_frames_is_skipped(stray: bytes) -> None:
    stream = stray + encode_frame(b"one") + stray + encode_frame(b"two")
    assert decoded([stream]) == [b"one", b"two"]
    assert decoded([stream[i : i + 1000] for i in range(0, len(stream), 1000)]) == [b"one", b"two"]
    if len(stray) < 100:
        check(stream, b"one", b"two")


def test_a_body_that_looks_like_a_header_is_a_body() -> None:
    body = b"Content-Length: 3\r\n\r\nabc\r\n\r\n"
    check(encode_frame(body), body)


def test_of_a_line_without_end_only_a_little_is_held() -> None:
    decoder = FrameDecoder()
    for _ in range(100):
        assert decoder.feed(b"x" * MAX_LINE_BYTES) == []
    assert len(decoder._buffer) <= 2 * MAX_LINE_BYTES


def test_a_length_over_the_limit_is_a_violation_before_any_body_is_held() -> None:
    with pytest.raises(ProtocolViolation, match="limit is 10"):
        FrameDecoder(max_body_bytes=10).feed(b"Content-Length: 11\r\n")


def test_a_length_at_the_limit_is_taken() -> None:
    assert decoded([encode_frame(b"0123456789")], max_body_bytes=10) == [b"0123456789"]


@pytest.mark.parametrize("length", [b"", b"-1", b"abc", b"1.0", b"0x10", b"9" * 30])
def test_a_length_that_is_no_number_is_a_violation(length: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        FrameDecoder().feed(b"Content-Length: " + length + b"\r\n\r\n{}")


def test_a_header_that_never_ends_is_a_violation() -> None:
    decoder = FrameDecoder()
    with pytest.raises(ProtocolViolation, match="header"):
        decoder.feed(b"Content-Length: 2\r\n" + b"More: and more\r\n" * (MAX_HEADER_BYTES // 8))
    with pytest.raises(ProtocolViolation, match="header"):
        FrameDecoder().feed(b"Content-Length: 2\r\n" + b"x" * (MAX_HEADER_BYTES * 2))


@pytest.mark.parametrize(
    "stream", [b"Content-Length: 2\r\n", b"Content-Length: 2\r\n\r\n", b"Content-Length: 2\r\n\r\n{"]
)
def test_an_end_inside_a_frame_is_a_violation(stream: bytes) -> None:
    decoder = FrameDecoder()
    assert decoder.feed(stream) == []
    with pytest.raises(ProtocolViolation, match="ended inside"):
        decoder.feed_eof()


@pytest.mark.parametrize("stream", [b"", b"bye\n", b"no line end", encode_frame(b"{}")])
def test_an_end_between_frames_is_an_end(stream: bytes) -> None:
    decoder = FrameDecoder()
    decoder.feed(stream)
    decoder.feed_eof()


@given(
    st.lists(st.binary(max_size=40)),
    st.lists(st.text(alphabet="abc: \t", max_size=30)),
    st.lists(st.integers(min_value=0, max_value=600)),
)
def test_bodies_survive_any_cutting_and_stray_lines(
    bodies: list[bytes], strays: list[str], cuts: list[int]
) -> None:
    lines = [stray.encode() + b"\n" for stray in strays] + [b""] * len(bodies)
    stream = b"".join(line + encode_frame(body) for line, body in zip(lines, bodies, strict=False))
    ends = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    assert decoded([stream[a:b] for a, b in itertools.pairwise(ends)]) == bodies
