"""The text of one source file, and how it maps to bytes and positions.

Three promises:

* **Bytes.** `decode` followed by `encode` gives the same bytes, or `decode` refuses and the file is read-only to us.
  A byte order mark is part of the encoding, never of the text, so no edit can touch it. Bytes without a mark are UTF-8
  if they are valid UTF-8, else one byte a character: Windows-1252, which is what C# sources of that age are written in,
  or Latin-1 when one of the five bytes that Windows-1252 leaves undefined occurs. Both give every byte back, and both
  put one UTF-16 unit where a server that falls back to a replacement character puts one, so columns agree. Bytes with
  a NUL and no UTF-16 or UTF-32 mark are taken for binary and refused.
* **Positions** count UTF-16 units from zero. Lines end at \\n, \\r, \\r\\n, U+0085, U+2028 and U+2029, as Roslyn counts
  them. Servers send positions between CR and LF; they are honoured as they stand, never moved to the visible end of the
  line. What is past a line's last unit, past the last line, or inside a surrogate pair is refused.
* **Edits** all refer to the text before any of them. They must not overlap; inserts at one place keep their order.

Python strings count code points. For most files UTF-16 counts the same, so the index only keeps what differs: the
places of the characters outside the Basic Multilingual Plane (`_Index.wide`), which are few.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, count, pairwise
from operator import add
from typing import Literal

from transactions.errors import (
    InsideSurrogatePair,
    OutOfRange,
    OverlappingEdits,
    UndecodableText,
    UnusableNewText,
)

LineEndingPolicy = Literal["adapt", "keep"]

_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_WIDE = re.compile("[\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_OTHER_LINE_ENDS = ("\x85", "\u2028", "\u2029")
_BYTE_ORDER_MARK = "\ufeff"

# Longest first: the mark of UTF-32 LE begins with that of UTF-16 LE.
_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a text: zero-based line, zero-based column in UTF-16 units."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Range:
    """From `start` up to, not including, `end`."""

    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace what stands in `range` by `new_text`. An empty range inserts, an empty text deletes."""

    range: Range
    new_text: str


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """How text becomes bytes: a Python codec name, and the byte order mark that stands before the text (maybe empty)."""

    codec: str
    bom: bytes = b""


UTF8 = TextEncoding("utf-8")


@dataclass(frozen=True, slots=True)
class LineEndings:
    """How often each line end occurs. `other` counts U+0085, U+2028 and U+2029."""

    lf: int
    crlf: int
    cr: int
    other: int

    @property
    def uniform(self) -> str | None:
        """The one line end that the text uses; None when it has several or none. The `other` ones do not count."""
        used = [end for end, number in self._counted() if number]
        return used[0] if len(used) == 1 else None

    @property
    def dominant(self) -> str | None:
        """The most frequent of LF, CRLF and CR (LF wins a tie); None when the text has none of them."""
        end, number = max(self._counted(), key=lambda pair: pair[1])
        return end if number else None

    def _counted(self) -> tuple[tuple[str, int], ...]:
        return (("\n", self.lf), ("\r\n", self.crlf), ("\r", self.cr))


class _Index:
    """Where lines begin and which characters take two UTF-16 units. Offsets are UTF-16 offsets."""

    __slots__ = ("length", "starts", "wide")

    def __init__(self, text: str) -> None:
        self.wide: list[int] = []  # the offset of the first half of each wide character
        if not text.isascii():
            self.wide = [match.start() + before for before, match in enumerate(_WIDE.finditer(text))]
        self.length = len(text) + len(self.wide)
        starts = _line_starts(text)
        if self.wide:
            indices = [offset - before for before, offset in enumerate(self.wide)]
            starts = [start + bisect_left(indices, start) for start in starts]
        self.starts = starts

    def offset(self, line: int, character: int) -> int:
        """The UTF-16 offset of a position; see `SourceText.offset_at`."""
        starts = self.starts
        if not 0 <= line < len(starts):
            raise OutOfRange(f"Line {line} (from zero) is outside the text, which has {len(starts)} lines.")
        offset = starts[line] + character
        past_line = offset > self.length if line + 1 == len(starts) else offset >= starts[line + 1]
        if character < 0 or past_line:
            raise OutOfRange(f"Column {character} (from zero, UTF-16) is outside line {line} (from zero).")
        return offset

    def to_index(self, offset: int) -> int:
        """The index into the Python string of a UTF-16 offset. Raises InsideSurrogatePair."""
        if not self.wide:
            return offset
        before = bisect_left(self.wide, offset)
        if before and self.wide[before - 1] == offset - 1:
            raise InsideSurrogatePair(f"Offset {offset} lies inside a surrogate pair.")
        return offset - before


class SourceText:
    """An immutable text with its encoding. Two are equal when they give the same bytes."""

    __slots__ = ("_index_cache", "_line_endings_cache", "encoding", "text")

    text: str
    encoding: TextEncoding

    def __init__(self, text: str, encoding: TextEncoding = UTF8) -> None:
        """`text` is without a byte order mark. For bytes use `decode`, for text of a server `new`."""
        self.text = text
        self.encoding = encoding
        self._index_cache: _Index | None = None
        self._line_endings_cache: LineEndings | None = None

    @classmethod
    def decode(cls, data: bytes) -> "SourceText":
        """The text of a file's bytes. Raises UndecodableText when encoding it would not give the same bytes back."""
        for bom, codec in _MARKS:
            if data.startswith(bom):
                return cls._decode_marked(data, TextEncoding(codec, bom))
        if b"\0" in data:
            raise UndecodableText(
                "it holds NUL bytes and no UTF-16 or UTF-32 byte order mark, so it is taken for binary"
            )
        for codec in ("utf-8", "cp1252"):
            try:
                return cls(data.decode(codec), TextEncoding(codec))
            except UnicodeDecodeError:
                continue
        return cls(data.decode("latin-1"), TextEncoding("latin-1"))

    @classmethod
    def _decode_marked(cls, data: bytes, encoding: TextEncoding) -> "SourceText":
        try:
            text = data[len(encoding.bom) :].decode(encoding.codec)
        except UnicodeDecodeError as error:
            raise UndecodableText(
                f"its byte order mark says {encoding.codec}, but its bytes are not valid in it"
            ) from error
        return cls(text, encoding)

    @classmethod
    def new(cls, text: str, like: "SourceText | None" = None) -> "SourceText":
        """A text for a file that does not exist yet, in the encoding of `like`, else in UTF-8 without a mark.

        A leading byte order mark in `text` is dropped, as the encoding decides about marks. Raises UnusableNewText.
        """
        encoding = UTF8 if like is None else like.encoding
        text = text.removeprefix(_BYTE_ORDER_MARK)
        _check_new_text(text, encoding)
        return cls(text, encoding)._checked_start()

    def encode(self) -> bytes:
        """The bytes of the file: byte order mark, then the encoded text."""
        return self.encoding.bom + self.text.encode(self.encoding.codec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SourceText):
            return NotImplemented
        return self is other or (self.encoding == other.encoding and self.text == other.text)

    def __hash__(self) -> int:
        return hash((self.text, self.encoding))

    def __repr__(self) -> str:
        return f"SourceText({len(self.text)} characters, {self.encoding.codec})"

    @property
    def _index(self) -> _Index:
        if self._index_cache is None:
            self._index_cache = _Index(self.text)
        return self._index_cache

    @property
    def length(self) -> int:
        """How many UTF-16 units the text has."""
        return self._index.length

    @property
    def line_count(self) -> int:
        """How many lines there are; what follows the last line end is a line too, even when it is empty."""
        return len(self._index.starts)

    @property
    def end(self) -> Position:
        """The position after the last unit."""
        index = self._index
        return Position(len(index.starts) - 1, index.length - index.starts[-1])

    @property
    def line_endings(self) -> LineEndings:
        """How often each kind of line end occurs."""
        if self._line_endings_cache is None:
            self._line_endings_cache = _count_line_endings(self.text)
        return self._line_endings_cache

    @property
    def dominant_line_ending(self) -> str | None:
        """The most frequent of LF, CRLF and CR; None in a text without any."""
        return self.line_endings.dominant

    def lines(self) -> list[str]:
        """The lines with their line ends; the last one has none and is left out when it is empty."""
        text = self.text
        starts = [self._index.to_index(start) for start in self._index.starts]
        ends = [*starts[1:], len(text)]
        return [text[start:end] for start, end in zip(starts, ends, strict=True) if end > start]

    def position_at(self, offset: int) -> Position:
        """The position of a UTF-16 offset (zero-based). Raises OutOfRange, InsideSurrogatePair."""
        index = self._index
        if not 0 <= offset <= index.length:
            raise OutOfRange(f"Offset {offset} is outside the text, which has {index.length} UTF-16 units.")
        index.to_index(offset)
        line = bisect_right(index.starts, offset) - 1
        return Position(line, offset - index.starts[line])

    def offset_at(self, position: Position) -> int:
        """The UTF-16 offset (zero-based) of a position. Raises OutOfRange, InsideSurrogatePair.

        A column may stand between CR and LF. It may not be the one after the line's last unit, except at the end of
        the text: that place has a name of its own, the start of the next line, and every Roslyn uses it.
        """
        index = self._index
        offset = index.offset(position.line, position.character)
        index.to_index(offset)
        return offset

    def slice(self, start: int, length: int) -> str:
        """`length` UTF-16 units from the UTF-16 offset `start`. Raises OutOfRange, InsideSurrogatePair."""
        index = self._index
        if start < 0 or length < 0 or start + length > index.length:
            raise OutOfRange(
                f"{length} units from offset {start} are outside the text of {index.length} UTF-16 units."
            )
        return self.text[index.to_index(start) : index.to_index(start + length)]

    def with_edits(
        self, edits: Sequence[TextEdit], *, line_endings: LineEndingPolicy = "keep"
    ) -> "SourceText":
        """The text after `edits`, all of which refer to this text. The encoding stays.

        `adapt` brings line ends to the file's own where the file has only one kind; see `_adapted`.
        Raises OutOfRange, InsideSurrogatePair, OverlappingEdits, UnusableNewText.
        """
        return self.with_spans(self.spans_of(edits), line_endings=line_endings)

    def spans_of(self, edits: Sequence[TextEdit]) -> "list[Span]":
        """The edits as spans of the Python string, in the order of their places; inserts at one place keep theirs.

        Raises OutOfRange, InsideSurrogatePair, OverlappingEdits, UnusableNewText.
        """
        index = self._index
        spans = [self._span_of(edit, index) for edit in edits]
        # Stable, so inserts at one place keep the order they were given in.
        spans.sort(key=_span_start)
        for earlier, later in pairwise(spans):
            if later[0] < earlier[1]:
                raise OverlappingEdits(
                    f"Two edits overlap at line {self.position_of_index(later[0]).line + 1} (from one)."
                )
        return spans

    def _span_of(self, edit: TextEdit, index: _Index) -> "Span":
        first, last = edit.range.start, edit.range.end
        start, end = index.offset(first.line, first.character), index.offset(last.line, last.character)
        if start > end:
            raise OutOfRange("An edit's range ends before it starts.")
        _check_new_text(edit.new_text, self.encoding)
        if index.wide:
            start, end = index.to_index(start), index.to_index(end)
        return start, end, edit.new_text

    def position_of_index(self, index: int) -> Position:
        """The position of an index into the Python string (code points)."""
        wide = self._index.wide
        if not wide:
            return self.position_at(index)
        return self.position_at(
            index + sum(1 for before, offset in enumerate(wide) if offset - before < index)
        )

    def with_spans(self, spans: "Sequence[Span]", *, line_endings: LineEndingPolicy = "keep") -> "SourceText":
        """The text after `spans`, which are as `spans_of` makes them. Raises UnusableNewText."""
        if not spans:
            return self
        text = self.text
        pieces: list[str] = []
        done = 0
        for start, end, new_text in spans:
            pieces += (text[done:start], new_text)
            done = end
        pieces.append(text[done:])
        changed = "".join(pieces)
        # Without a CR before and after there is nothing but LF.
        if line_endings == "adapt" and ("\r" in text or "\r" in changed):
            own = self.line_endings.uniform
            changed = changed if own is None else _adapted(changed, own)
        return SourceText(changed, self.encoding)._checked_start()

    def with_line_endings(self, line_ending: str) -> "SourceText":
        """The same text with every LF, CRLF and CR written as `line_ending`."""
        return SourceText(_adapted(self.text, line_ending), self.encoding)

    def _checked_start(self) -> "SourceText":
        # Encoded without a mark of its own, this text would come back from disk as another one.
        if (
            self.encoding.codec == "utf-8"
            and not self.encoding.bom
            and self.text.startswith(_BYTE_ORDER_MARK)
        ):
            raise UnusableNewText(
                "The edit would put a byte order mark at the start of a file that has none."
            )
        return self


Span = tuple[int, int, str]
"""Start and end as indices into the Python string (code points), and the new text between them."""


def _span_start(span: Span) -> int:
    return span[0]


def _check_new_text(text: str, encoding: TextEncoding) -> None:
    if text.isascii():
        if "\0" in text:
            raise UnusableNewText("New text holds a NUL character.")
        return
    if _SURROGATE.search(text):
        raise UnusableNewText("New text holds half of a surrogate pair.")
    if "\0" in text:
        raise UnusableNewText("New text holds a NUL character.")
    try:
        text.encode(encoding.codec)
    except UnicodeEncodeError as error:
        character = f"U+{ord(text[error.start]):04X}"
        raise UnusableNewText(
            f"New text holds {character}, which the file's charset {encoding.codec} lacks."
        ) from error


def _line_starts(text: str) -> list[int]:
    """Indices at which lines begin. Most files end their lines with LF or CRLF only, and `split` is fastest there."""
    plain = text.isascii() or not any(end in text for end in _OTHER_LINE_ENDS)
    if plain and ("\r" not in text or text.count("\r") == text.count("\r\n")):
        lengths = map(len, text.split("\n"))
        starts = list(map(add, accumulate(lengths, initial=0), count()))  # each line end before adds one
        del starts[-1]  # the end of the text begins no line
        return starts
    return list(chain((0,), (match.end() for match in _LINE_END.finditer(text))))


def _count_line_endings(text: str) -> LineEndings:
    crlf = text.count("\r\n")
    other = 0 if text.isascii() else sum(text.count(end) for end in _OTHER_LINE_ENDS)
    return LineEndings(text.count("\n") - crlf, crlf, text.count("\r") - crlf, other)


def _adapted(text: str, line_ending: str) -> str:
    """`text` with every LF, CRLF and CR written as `line_ending`.

    Done on the whole result, not on the inserted pieces: an edit that takes away one half of a CRLF leaves the other
    half behind, and an insert between the halves makes two line ends of one. The file had one kind of line end before,
    so only what the edits touched can change here.
    """
    if "\r" in text:
        if line_ending == "\r\n" and text.count("\r") == text.count("\n") == text.count("\r\n"):
            return text
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if line_ending == "\n" else text.replace("\n", line_ending)
