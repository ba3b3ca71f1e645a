r"""Bytes to message bodies and back: the base protocol of LSP, without any input or output.

A frame is header lines, an empty line, and as many bytes of body as ``Content-Length`` says.  The decoder is
fed whatever the pipe gave, in pieces of any size, and returns the bodies that became complete.

What is between frames is not trusted to be empty.  Language servers and the runtimes below them print to
stdout: banners, restore messages, stack traces.  Hence the reading of headers goes line by line, and:

- a line that is no header we need is dropped, however long it is (only its last bytes are kept, below);
- header names are matched without regard to case, and no space need follow the colon;
- a lone LF ends a line as CR LF does;
- text printed without a line end sticks to the front of the next header.  ``Content-Length: 12`` is therefore
  also taken from the *end* of a line, but only of one that ends in CR LF: stray text ends in LF, headers
  in CR LF, and a log line *about* a header must not be taken for one.

Two things end the channel, because going on would mean guessing where the next frame starts: a
``Content-Length`` that is no number, and one over the limit.  The limits bound what a peer can make us hold.
"""

import re

from lsp_client.errors import ProtocolViolation

MAX_BODY_BYTES = 256 * 1024 * 1024
"""The largest body taken.  The largest real ones (a rename over a big solution) are some tens of MB."""

MAX_LINE_BYTES = 64 * 1024
"""How much of a line outside of bodies is held; the rest of a longer one is dropped as it comes."""

MAX_HEADER_BYTES = 64 * 1024
"""How many bytes may lie between a ``Content-Length`` and the empty line that ends its header."""

# Enough of the end of an overlong line to recognise a header that stray text without a line end sticks to.
_KEPT_TAIL_BYTES = 64

_OWN_LINE = re.compile(rb"content-length[ \t]*:[ \t]*(.*?)[ \t]*\Z", re.IGNORECASE)
_AT_END_OF_LINE = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,20})[ \t]*\Z", re.IGNORECASE)
_NUMBER = re.compile(rb"[0-9]{1,20}\Z")


def encode_frame(body: bytes) -> bytes:
    """``body`` with the header in front that makes it a message on the wire."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class FrameDecoder:
    """Takes bytes as they come and gives back the bodies of the frames in them, in order.

    It holds at most one unfinished body of ``max_body_bytes`` and one unfinished line.
    After a ProtocolViolation the decoder must not be fed again: the position in the stream is lost.
    """

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._max_body_bytes = max_body_bytes
        self._buffer = bytearray()
        self._searched = 0  # the buffer holds no line end before this index
        self._line_was_cut = False  # the start of the line in the buffer has been dropped
        self._announced: int | None = None  # Content-Length of the header being read
        self._header_bytes = 0  # read since that Content-Length
        self._in_body = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the stream; return the bodies completed by them.

        Raises ProtocolViolation when a header announces no number or more than the limit.
        """
        self._buffer += data
        bodies: list[bytes] = []
        while self._advance(bodies):
            pass
        return bodies

    def feed_eof(self) -> None:
        """The stream ended.  Raises ProtocolViolation when that happened inside a frame."""
        if self._announced is not None:
            raise ProtocolViolation(
                f"the output ended inside a message: {len(self._buffer)} of {self._announced} bytes came"
            )

    def _advance(self, bodies: list[bytes]) -> bool:
        """Consume one line or one body; False when more bytes are needed first."""
        if self._in_body:
            return self._take_body(bodies)
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._drop_overlong_line()
            return False
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        self._take_line(line)
        self._line_was_cut = False
        return True

    def _take_body(self, bodies: list[bytes]) -> bool:
        length = self._announced
        if length is None or len(self._buffer) < length:
            return False
        bodies.append(bytes(memoryview(self._buffer)[:length]))
        del self._buffer[:length]
        self._announced = None
        self._in_body = False
        return True

    def _take_line(self, line: bytes) -> None:
        """One line outside of a body, without its LF."""
        ends_in_crlf = line.endswith(b"\r")
        line = line.removesuffix(b"\r")
        if self._announced is not None:
            self._header_bytes += len(line) + 1
            if not line and not self._line_was_cut:
                self._in_body = True
                return
            if self._header_bytes > MAX_HEADER_BYTES:
                raise ProtocolViolation(f"a message header is longer than {MAX_HEADER_BYTES} bytes")
        length = self._length_in(line, ends_in_crlf=ends_in_crlf)
        if length is None:
            return
        if length > self._max_body_bytes:
            raise ProtocolViolation(
                f"a message of {length} bytes was announced; the limit is {self._max_body_bytes}"
            )
        self._announced = length
        self._header_bytes = 0

    def _length_in(self, line: bytes, *, ends_in_crlf: bool) -> int | None:
        """The Content-Length that ``line`` announces, or None for any other line."""
        own = None if self._line_was_cut else _OWN_LINE.match(line)
        if own is not None:
            if _NUMBER.match(own[1]) is None:
                raise ProtocolViolation(f"Content-Length is no number: {own[1][:40]!r}")
            return int(own[1])
        stuck = _AT_END_OF_LINE.search(line, max(0, len(line) - _KEPT_TAIL_BYTES)) if ends_in_crlf else None
        return None if stuck is None else int(stuck[1])

    def _drop_overlong_line(self) -> None:
        """Forget the start of an unfinished line that is longer than a header may be."""
        if len(self._buffer) > MAX_LINE_BYTES:
            if self._announced is not None:
                raise ProtocolViolation(f"a message header is longer than {MAX_HEADER_BYTES} bytes")
            del self._buffer[:-_KEPT_TAIL_BYTES]
            self._line_was_cut = True
        self._searched = len(self._buffer)
