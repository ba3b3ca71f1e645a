"""Small rules about text that several modules share: what may leave us, and how LSP counts lines and columns."""

import enum
import re

# An escape sequence for colours or cursor moves, as console programs print them.
_ANSI_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-_]")
# Control characters that are neither tab nor line feed.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


class LineRule(enum.Enum):
    """Where a line of a document ends, by the dialect of the server.  CR LF is one end everywhere."""

    LSP = ""
    """The protocol's own rule: LF, CR LF, CR."""
    ROSLYN = "\u0085\u2028\u2029"
    """Roslyn's text counts NEL, LINE SEPARATOR and PARAGRAPH SEPARATOR as well, and so do its positions."""


def scrub(text: str) -> str:
    """``text`` with each lone surrogate replaced by U+FFFD, so that it can be encoded as UTF-8."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def console_text(data: bytes) -> str:
    """What a process printed, as plain text: UTF-8 with replacements, no escape sequences, LF line ends."""
    text = data.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", _ANSI_ESCAPE.sub("", text))


def utf16_length(text: str) -> int:
    """The length of ``text`` in UTF-16 code units, the unit of LSP columns."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", errors="surrogatepass")) // 2


def end_position(text: str, rule: LineRule = LineRule.LSP) -> tuple[int, int]:
    """The end of ``text`` as (line, character): both zero-based, the character in UTF-16 units."""
    breaks = text.count("\n") + text.count("\r") - text.count("\r\n")
    last_line_start = max(text.rfind("\n"), text.rfind("\r")) + 1
    for separator in rule.value:
        breaks += text.count(separator)
        last_line_start = max(last_line_start, text.rfind(separator) + 1)
    return breaks, utf16_length(text[last_line_start:])
