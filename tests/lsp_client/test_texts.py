"""Text rules: what may leave us, and where a text ends in LSP's count."""

import pytest

from lsp_client.texts import LineRule, console_text, end_position, scrub, utf16_length


def test_lone_surrogates_are_replaced_and_nothing_else() -> None:
    assert scrub("a\ud800b\udfffc 𝄞 é") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c 𝄞 é"


def test_console_text_loses_colours_and_control_characters() -> None:
    assert (
        console_text(b"\x1b[31merror\x1b[0m: \x07x\ty\r\nz\xff") == "error: x\ty\nz\N{REPLACEMENT CHARACTER}"
    )


@pytest.mark.parametrize(("text", "units"), [("", 0), ("abc", 3), ("é", 1), ("𝄞", 2), ("a\ud800", 2)])
def test_length_is_counted_in_utf16_units(text: str, units: int) -> None:
    assert utf16_length(text) == units


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("", (0, 0)),
        ("abc", (0, 3)),
        ("abc\n", (1, 0)),
        ("a\r\nb", (1, 1)),
        ("a\rb", (1, 1)),
        ("a\r\n\r\n", (2, 0)),
        ("a\n\rb", (2, 1)),
        ("a\r\r\nb", (2, 1)),
        ("x\n𝄞é", (1, 3)),
        ("a\fb\vc\x1cd", (0, 7)),
    ],
)
def test_both_rules_agree_on_the_common_line_ends(text: str, end: tuple[int, int]) -> None:
    assert end_position(text, LineRule.LSP) == end
    assert end_position(text, LineRule.ROSLYN) == end


@pytest.mark.parametrize("separator", ["\u0085", "\u2028", "\u2029"])
def test_only_roslyn_ends_a_line_at_the_unicode_separators(separator: str) -> None:
    text = f"ab{separator}c"
    assert end_position(text, LineRule.LSP) == (0, 4)
    assert end_position(text, LineRule.ROSLYN) == (1, 1)
