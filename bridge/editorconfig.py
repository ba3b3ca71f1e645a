"""What ``.editorconfig`` files ask of the bytes of one file.

Matching is the EditorConfig project's own library; only three of its answers matter here.  A file that cannot be read
asks for nothing: a mistake in it must not stop a commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Charset = Literal["utf-8", "utf-8-bom", "utf-16le", "utf-16be", "latin1"]
EndOfLine = Literal["\n", "\r\n", "\r"]

_LINE_ENDS: Mapping[str, EndOfLine] = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
_CHARSETS: Mapping[str, Charset] = {name: name for name in get_args(Charset)}
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class EditorConfig:
    """The wishes for one file; ``None`` where nothing is asked, or something that is not known."""

    charset: Charset | None = None
    """``utf-8`` asks for no byte order mark, ``utf-8-bom`` for one."""
    end_of_line: EndOfLine | None = None
    """The characters themselves."""
    insert_final_newline: bool | None = None


def editorconfig_for(path: Path) -> EditorConfig:
    """The wishes for the absolute ``path``, which need not exist: nearest files win, up to ``root = true``.

    Reads the disk each time.  Never raises for a faulty ``.editorconfig``.
    """
    from editorconfig import EditorConfigError, get_properties  # noqa: PLC0415  # most processes never commit a file

    try:
        wishes = get_properties(str(path))
    except (EditorConfigError, OSError, UnicodeError):
        return EditorConfig()
    return EditorConfig(
        charset=_CHARSETS.get(wishes.get("charset", "")),
        end_of_line=_LINE_ENDS.get(wishes.get("end_of_line", "")),
        insert_final_newline=_BOOLEANS.get(wishes.get("insert_final_newline", "")),
    )
