"""What ``.editorconfig`` files ask of the bytes of one file, and whether they call it generated.

Matching a section's glob is left to the EditorConfig project's own library; the rest of the format is so small that it
is read here: the library leaves files open when they are faulty, and takes brackets in a folder's name for a pattern.
A file that cannot be read asks for nothing: a mistake in it must not stop a commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Charset = Literal["utf-8", "utf-8-bom", "utf-16le", "utf-16be", "latin1"]
EndOfLine = Literal["\n", "\r\n", "\r"]
IndentStyle = Literal["tab", "space"]

SIZE_LIMIT = 1024 * 1024
"""Bytes read of one ``.editorconfig``; the longest ones known have a tenth of it."""

_LINE_ENDS: Mapping[str, EndOfLine] = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
_CHARSETS: Mapping[str, Charset] = {name: name for name in get_args(Charset)}
_INDENT_STYLES: Mapping[str, IndentStyle] = {name: name for name in get_args(IndentStyle)}
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}

_COLUMNS = re.compile(r"[1-9][0-9]?", re.ASCII)
_SECTION = re.compile(r"\[(.+)\]\s*(?:[#;].*)?")
_PAIR = re.compile(r"([^:=\s][^:=]*?)\s*[:=]\s*(.*?)\s*(?:\s[#;].*)?")


@dataclass(frozen=True, slots=True)
class EditorConfig:
    """The wishes for one file; ``None`` where nothing is asked, or something that is not known."""

    charset: Charset | None = None
    """``utf-8`` asks for no byte order mark, ``utf-8-bom`` for one."""
    end_of_line: EndOfLine | None = None
    """The characters themselves."""
    insert_final_newline: bool | None = None
    trim_trailing_whitespace: bool | None = None
    indent_style: IndentStyle | None = None
    indent_size: int | None = None
    """Columns of one step; what ``tab`` means is told already."""
    tab_width: int | None = None
    """Columns of one tab."""
    generated_code: bool | None = None
    """Whether the file counts as generated, whatever it is called."""


def editorconfig_for(path: Path) -> EditorConfig:
    """The wishes for the absolute ``path``, which need not exist: nearest files win, up to ``root = true``.

    Reads the disk each time.  Never raises for a faulty ``.editorconfig``.
    """
    wishes: dict[str, str] = {}
    for folder in path.parents:
        text = _text(folder / ".editorconfig")
        if text is None:
            continue
        here: dict[str, str] = {}
        is_root = False
        for section, name, value in _pairs(text):
            if section is None:
                is_root = is_root or (name, value) == ("root", "true")
            elif _matches(path.relative_to(folder), section):
                here[name] = value
        wishes = here | wishes
        if is_root:
            break
    tab_width = _columns(wishes.get("tab_width"))
    size = wishes.get("indent_size")
    return EditorConfig(
        charset=_CHARSETS.get(wishes.get("charset", "")),
        end_of_line=_LINE_ENDS.get(wishes.get("end_of_line", "")),
        insert_final_newline=_BOOLEANS.get(wishes.get("insert_final_newline", "")),
        trim_trailing_whitespace=_BOOLEANS.get(wishes.get("trim_trailing_whitespace", "")),
        indent_style=_INDENT_STYLES.get(wishes.get("indent_style", "")),
        indent_size=tab_width if size == "tab" else _columns(size),
        tab_width=tab_width or _columns(size),
        generated_code=_BOOLEANS.get(wishes.get("generated_code", "")),
    )


def _columns(value: str | None) -> int | None:
    if value is None or _COLUMNS.fullmatch(value) is None:
        return None
    return int(value)


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(SIZE_LIMIT).decode("utf-8-sig", "replace")
    except OSError:
        return None


def _pairs(text: str) -> Iterator[tuple[str | None, str, str]]:
    """Section (``None`` above the first one), name and value in lower case; lines of no known form are passed over."""
    section: str | None = None
    for line in (line.strip() for line in text.splitlines()):
        if not line or line[0] in "#;":
            continue
        header = _SECTION.fullmatch(line)
        if header is not None:
            section = header[1]
            continue
        pair = _PAIR.fullmatch(line)
        if pair is not None:
            yield section, pair[1].lower(), pair[2].lower()


def _matches(path: Path, section: str) -> bool:
    """Whether a section's glob, relative to the folder of its file, takes ``path``, relative to the same."""
    from editorconfig.fnmatch import fnmatchcase  # noqa: PLC0415  # most processes never commit a file

    glob = "/" + section.removeprefix("/") if "/" in section else "**/" + section
    try:
        return bool(fnmatchcase("/" + path.as_posix(), glob))
    except (re.error, ValueError, OverflowError, RecursionError):
        return False
