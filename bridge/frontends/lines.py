"""Bytes in, lines out: the framing of MCP over stdio, without any I/O.

One message is one line that ends with ``\\n``; a ``\\r`` before it belongs to the line end.  No line is held beyond a
limit, so that a peer that never ends its line cannot fill the memory: such a line is reported once, when it passes
the limit, and skipped up to its end.
"""

from __future__ import annotations

from enum import Enum

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest message line we hold.  Far above every real call (a 10 MB argument is one), far below the memory."""


class Oversized(Enum):
    """Stands in for a line that was longer than the limit."""

    LINE = "oversized"


class LineSplitter:
    """Cuts a byte stream into lines; feed it chunks of any size."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._pending = bytearray()
        self._searched = 0  # how much of _pending is known to hold no line end: keeps long lines linear
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Take the next bytes and return the lines they complete, without their line ends."""
        self._pending += data
        lines: list[bytes | Oversized] = []
        start = 0
        while (end := self._pending.find(b"\n", max(start, self._searched))) >= 0:
            if self._skipping:
                self._skipping = False
            elif end - start > self._max_line_bytes:
                lines.append(Oversized.LINE)
            else:
                lines.append(bytes(self._pending[start:end]).removesuffix(b"\r"))
            start = end + 1
        del self._pending[:start]
        if self._skipping:
            self._pending.clear()
        elif len(self._pending) > self._max_line_bytes:
            lines.append(Oversized.LINE)
            self._skipping = True
            self._pending.clear()
        self._searched = len(self._pending)
        return lines

    def feed_eof(self) -> list[bytes | Oversized]:
        """The stream ended: return the last line if it came without a line end."""
        rest, skipping = bytes(self._pending), self._skipping
        self._pending.clear()
        self._searched = 0
        self._skipping = False
        return [rest.removesuffix(b"\r")] if rest and not skipping else []
