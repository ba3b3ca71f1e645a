"""Bytes come back unchanged, and positions mean what a server means by them."""

import codecs
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transactions.errors import (
    InsideSurrogatePair,
    OutOfRange,
    OverlappingEdits,
    TextError,
    UndecodableText,
    UnusableNewText,
)
from transactions.text import LineEndings, Position, Range, SourceText, TextEdit, TextEncoding

SMILE = "\U0001f642"


def at(line: int, character: int) -> Position:
    return Position(line, character)


def edit(start: tuple[int, int], end: tuple[int, int], new_text: str) -> TextEdit:
    return TextEdit(Range(at(*start), at(*end)), new_text)


@pytest.mark.parametrize(
    ("data", "codec", "text"),
    [
        (b"", "utf-8", ""),
        (b"plain\r\nascii", "utf-8", "plain\r\nascii"),
        ("Größe\n".encode(), "utf-8", "Größe\n"),
        (codecs.BOM_UTF8 + b"a\n", "utf-8", "a\n"),
        (codecs.BOM_UTF8, "utf-8", ""),
        (codecs.BOM_UTF16_LE + f"a{SMILE}\r\n".encode("utf-16-le"), "utf-16-le", f"a{SMILE}\r\n"),
        (codecs.BOM_UTF16_BE + "ä\n".encode("utf-16-be"), "utf-16-be", "ä\n"),
        (codecs.BOM_UTF32_LE + "ä".encode("utf-32-le"), "utf-32-le", "ä"),
        (codecs.BOM_UTF32_BE + "ä".encode("utf-32-be"), "utf-32-be", "ä"),
        (b"Gr\xf6\xdfe \x80 \x93quoted\x94\n", "cp1252", "Größe € “quoted”\n"),
        (b"undefined in Windows-1252: \x81 \xe4", "latin-1", "undefined in Windows-1252: \x81 ä"),
        (codecs.BOM_UTF8 + codecs.BOM_UTF8 + b"twice", "utf-8", "\ufefftwice"),
        (b"mixed\r\nends\nhere\rand\xe2\x80\xa8there", "utf-8", "mixed\r\nends\nhere\rand\u2028there"),
    ],
)
def test_text_of_a_known_encoding_comes_back_byte_for_byte(data: bytes, codec: str, text: str) -> None:
    source = SourceText.decode(data)

    assert source.text == text
    assert source.encoding.codec == codec
    assert source.encode() == data


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF\x00\x01",
        "no mark".encode("utf-16-le"),
        codecs.BOM_UTF8 + b"not utf-8: \xff",
        codecs.BOM_UTF16_LE + b"odd",
        codecs.BOM_UTF16_LE + b"\x00\xd8",  # half of a pair
        codecs.BOM_UTF32_LE + b"\xff\xff\xff\xff",
    ],
    ids=["binary", "utf-16 without mark", "wrong mark", "odd bytes", "half a pair", "no character"],
)
def test_bytes_that_are_no_text_are_refused_with_a_reason(data: bytes) -> None:
    with pytest.raises(UndecodableText) as refusal:
        SourceText.decode(data)

    assert refusal.value.message


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=40),
        st.builds(
            lambda bom, text, codec: bom + text.encode(codec, "ignore"),
            st.sampled_from(
                [b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE]
            ),
            st.text(max_size=20),
            st.sampled_from(["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "cp1252"]),
        ),
    )
)
def test_whatever_decodes_encodes_to_the_same_bytes(data: bytes) -> None:
    try:
        source = SourceText.decode(data)
    except UndecodableText:
        return
    assert source.encode() == data
    assert SourceText.decode(source.encode()) == source


def test_lines_end_where_roslyn_ends_them_and_nowhere_else() -> None:
    text = SourceText("a\nb\rc\r\nd\x85e\u2028f\u2029g\x0bh\x0ci\x1cj")

    assert text.lines() == ["a\n", "b\r", "c\r\n", "d\x85", "e\u2028", "f\u2029", "g\x0bh\x0ci\x1cj"]
    assert text.line_count == 7
    assert text.line_endings == LineEndings(lf=1, crlf=1, cr=1, other=3)
    assert text.line_endings.uniform is None


def test_the_empty_line_after_the_last_line_end_is_a_line_with_a_position() -> None:
    text = SourceText("a\n")

    assert text.line_count == 2
    assert text.end == at(1, 0)
    assert text.offset_at(at(1, 0)) == 2
    assert text.lines() == ["a\n"]


def test_a_position_between_cr_and_lf_is_honoured_as_it_stands() -> None:
    text = SourceText("ab\r\n\r\ncd")

    assert text.offset_at(at(0, 3)) == 3
    assert text.position_at(3) == at(0, 3)
    assert text.offset_at(at(1, 1)) == 5
    assert text.with_edits([edit((0, 2), (0, 3), "X")]).text == "abX\n\r\ncd"


@pytest.mark.parametrize(
    "position",
    [at(0, 3), at(0, 99), at(1, 3), at(2, 0), at(9999, 0), at(-1, 0), at(0, -1)],
    ids=str,
)
def test_a_position_that_the_text_does_not_have_is_refused(position: Position) -> None:
    with pytest.raises(OutOfRange):
        SourceText("ab\ncd").offset_at(position)


def test_columns_count_utf_16_units_and_the_middle_of_a_character_is_refused() -> None:
    text = SourceText(f'var s = "{SMILE}é"; // {SMILE}\nFoo({SMILE});\n')

    assert text.length == len(text.text) + 3
    assert text.offset_at(at(0, 11)) == 11
    assert text.slice(9, 2) == SMILE
    assert text.position_at(text.length) == text.end
    with pytest.raises(InsideSurrogatePair):
        text.offset_at(at(0, 10))
    with pytest.raises(InsideSurrogatePair):
        text.position_at(10)
    with pytest.raises(InsideSurrogatePair):
        text.slice(0, 10)
    renamed = text.with_edits([edit((0, 9), (0, 11), "x"), edit((1, 4), (1, 6), "y")])
    assert renamed.text == f'var s = "xé"; // {SMILE}\nFoo(y);\n'


def test_offsets_outside_the_text_are_refused() -> None:
    text = SourceText("ab")
    for start, length in ((-1, 1), (0, 3), (3, 0), (1, -1)):
        with pytest.raises(OutOfRange):
            text.slice(start, length)
    with pytest.raises(OutOfRange):
        text.position_at(3)


def test_edits_refer_to_the_text_before_and_may_come_in_any_order() -> None:
    text = SourceText("one two three\n")
    edits = [
        edit((0, 8), (0, 13), "3"),
        edit((0, 0), (0, 3), "1"),
        edit((0, 4), (0, 4), "a"),
        edit((0, 4), (0, 4), "b"),
    ]

    assert text.with_edits(edits).text == "1 abtwo 3\n"


def test_an_insert_before_a_replacement_at_the_same_place_comes_first() -> None:
    assert SourceText("abc").with_edits([edit((0, 1), (0, 1), "X"), edit((0, 1), (0, 2), "Y")]).text == "aXYc"


@pytest.mark.parametrize(
    "edits",
    [
        [edit((0, 0), (0, 2), "x"), edit((0, 1), (0, 3), "y")],
        [edit((0, 0), (0, 2), "x"), edit((0, 0), (0, 2), "x")],
        [edit((0, 1), (0, 2), "Y"), edit((0, 1), (0, 1), "X")],
        [edit((0, 0), (0, 3), "x"), edit((0, 1), (0, 1), "y")],
    ],
    ids=["overlapping", "equal replacements", "insert after replacement at its start", "insert inside"],
)
def test_edits_that_claim_the_same_place_are_refused(edits: list[TextEdit]) -> None:
    with pytest.raises(OverlappingEdits):
        SourceText("abc").with_edits(edits)


def test_a_range_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(OutOfRange):
        SourceText("abc").with_edits([edit((0, 2), (0, 1), "")])


@pytest.mark.parametrize("new_text", ["\ud83d", "a\ude42", "\ud83d\ude42", "nul\0", "ä\0"], ids=ascii)
def test_new_text_that_no_file_can_hold_is_refused(new_text: str) -> None:
    with pytest.raises(UnusableNewText):
        SourceText("abc").with_edits([edit((0, 0), (0, 0), new_text)])
    with pytest.raises(UnusableNewText):
        SourceText.new(new_text)


def test_a_character_that_the_charset_lacks_is_refused_by_name() -> None:
    legacy = SourceText.decode(b"\xe4\n")
    assert legacy.with_edits([edit((0, 1), (0, 1), "€")]).encode() == b"\xe4\x80\n"
    with pytest.raises(UnusableNewText, match=r"U\+FFFD"):
        legacy.with_edits([edit((0, 1), (0, 1), "\ufffd")])


def test_an_edit_neither_touches_nor_makes_a_byte_order_mark() -> None:
    marked = SourceText.decode(codecs.BOM_UTF8 + b"a\n")
    assert marked.with_edits([edit((0, 0), (0, 1), "b")]).encode() == codecs.BOM_UTF8 + b"b\n"
    with pytest.raises(UnusableNewText):
        SourceText.decode(b"a\n").with_edits([edit((0, 0), (0, 0), "\ufeff")])


def test_a_new_text_is_written_like_its_model_and_takes_no_mark_from_the_server() -> None:
    model = SourceText.decode(codecs.BOM_UTF16_LE + "a".encode("utf-16-le"))
    assert SourceText.new("\ufeffb", like=model).encode() == codecs.BOM_UTF16_LE + "b".encode("utf-16-le")
    assert SourceText.new("\ufeffb").encode() == b"b"
    assert SourceText.new("b").encoding == TextEncoding("utf-8")


@pytest.mark.parametrize(
    ("before", "edits", "after"),
    [
        # csharp-ls takes the CR of a line away, puts LF text in, and leaves the old LF.
        ("{\r\n}\r\n", [edit((0, 1), (0, 2), "\n    x\n")], "{\r\n    x\r\n\r\n}\r\n"),
        # It ends a range between CR and LF of an empty line.
        ("a\r\n\r\nb\r\n", [edit((0, 1), (1, 1), "\n\nX\n")], "a\r\n\r\nX\r\n\r\nb\r\n"),
        ("a\r\nb\r\n", [edit((0, 2), (1, 0), "")], "a\r\nb\r\n"),
        ("a\r\nb\r\n", [edit((0, 1), (0, 2), "")], "a\r\nb\r\n"),
        ("a\r\nb\r\n", [edit((0, 2), (0, 2), "\n")], "a\r\n\r\nb\r\n"),
        ("a\nb\n", [edit((1, 0), (1, 0), "x\r\ny\rz\n")], "a\nx\ny\nz\nb\n"),
        ("a\rb\r", [edit((1, 0), (1, 0), "x\n")], "a\rx\rb\r"),
        ("a\r\nb\n", [edit((1, 0), (1, 0), "x\r\ny\n")], "a\r\nx\r\ny\nb\n"),  # mixed: as the server wrote it
        ("a", [edit((0, 1), (0, 1), "\r\nb\n")], "a\r\nb\n"),  # no line end of its own to take
        ("a\r\n\u2028b\r\n", [edit((0, 0), (0, 0), "x\n\u2029")], "x\r\n\u2029a\r\n\u2028b\r\n"),
    ],
)
def test_new_text_takes_the_line_ends_of_a_file_that_has_one_kind(
    before: str, edits: list[TextEdit], after: str
) -> None:
    assert SourceText(before).with_edits(edits, line_endings="adapt").text == after


def test_keep_leaves_the_line_ends_of_the_server() -> None:
    text = SourceText("{\r\n}\r\n")
    assert (
        text.with_edits([edit((0, 1), (0, 2), "\n    x\n")], line_endings="keep").text == "{\n    x\n\n}\r\n"
    )


class Reference:
    """Edits done the slow and plain way, on a list of UTF-16 units."""

    def __init__(self, text: str) -> None:
        data = text.encode("utf-16-le")
        self.units = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]
        self.starts = [0]
        for index, unit in enumerate(self.units):
            is_crlf = unit == 0x0D and self.units[index + 1 : index + 2] == [0x0A]
            if unit in (0x0A, 0x0D, 0x85, 0x2028, 0x2029) and not is_crlf:
                self.starts.append(index + 1)

    def offset(self, position: Position) -> int | None:
        """None for a place that is not there or is inside a pair."""
        if not 0 <= position.line < len(self.starts):
            return None
        is_last = position.line + 1 == len(self.starts)
        limit = len(self.units) if is_last else self.starts[position.line + 1] - 1
        offset = self.starts[position.line] + position.character
        if not self.starts[position.line] <= offset <= limit:
            return None
        inside = 0 < offset < len(self.units) and 0xDC00 <= self.units[offset] <= 0xDFFF
        return None if inside else offset

    def edited(self, edits: list[TextEdit]) -> str | None:
        """None where the edits must be refused."""
        placed: list[tuple[int, int, int, str]] = []
        for number, one in enumerate(edits):
            start, end = self.offset(one.range.start), self.offset(one.range.end)
            if start is None or end is None or start > end:
                return None
            placed.append((start, number, end, one.new_text))
        placed.sort()
        if any(later[0] < earlier[2] for earlier, later in pairwise(placed)):
            return None
        units = list(self.units)
        for start, _, end, new_text in reversed(placed):
            data = new_text.encode("utf-16-le")
            units[start:end] = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]
        return b"".join(unit.to_bytes(2, "little") for unit in units).decode("utf-16-le")


_PIECES = ["a", "ä", SMILE, "\n", "\r", "\r\n", "\u2028", "\x85", "\x0b"]
TEXTS = st.lists(st.sampled_from(_PIECES), max_size=14).map("".join)
POSITIONS = st.builds(Position, st.integers(0, 4), st.integers(0, 5))
EDITS = st.lists(
    st.builds(lambda a, b, new: TextEdit(Range(min(a, b), max(a, b)), new), POSITIONS, POSITIONS, TEXTS),
    max_size=3,
)


@settings(max_examples=600, deadline=None)
@given(TEXTS, EDITS)
def test_random_edits_agree_with_a_plain_model_on_utf_16_units(text: str, edits: list[TextEdit]) -> None:
    expected = Reference(text).edited(edits)
    try:
        found = SourceText(text).with_edits(edits).text
    except TextError:
        assert expected is None
    else:
        assert found == expected


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_offsets_and_positions_are_inverse_wherever_a_character_begins(text: str) -> None:
    source, reference = SourceText(text), Reference(text)
    assert source.length == len(reference.units)
    assert source.line_count == len(reference.starts)
    assert "".join(source.lines()) == text
    for offset in range(source.length + 1):
        try:
            position = source.position_at(offset)
        except InsideSurrogatePair:
            continue
        assert source.offset_at(position) == offset
        assert reference.offset(position) == offset


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.sampled_from(["", "a", SMILE]), min_size=2, max_size=5),
    EDITS,
)
def test_a_file_with_one_kind_of_line_end_keeps_one_kind(
    line_end: str, lines: list[str], edits: list[TextEdit]
) -> None:
    source = SourceText(line_end.join(lines))
    try:
        found = source.with_edits(edits, line_endings="adapt")
    except TextError:
        return
    assert found.line_endings.uniform in (line_end, None)
    if found.line_endings.uniform is None:
        assert found.line_endings.dominant is None
