"""The staged changes as a patch of bytes, which `patch -p1` and `git apply` turn into the bytes of a commit.

This is another thing than the diff for people (`transactions.diff`): there lines are those of C#, here a line ends at
LF and nowhere else, because that is how the tools count. A CR stays in its line, a file in UTF-16 is cut in the middle
of its line ends, and what comes out is no text in any one encoding. Headers are git's: they alone can say a move, a
mode and an empty file.

- A move is `rename from` and `rename to`, with the hunks of what was edited besides. Only a plain one is: where names
  change hands (chains, swaps), each path is patched or made or removed for itself, as tools differ over the order.
- Removals come first and new files last, so that a directory can stand where a file was (git takes that; GNU patch
  removes files only at its end, and refuses).
- Modes are git's two: may be run, or not.
- Names that hold anything but plain characters are quoted as git does, with the octal numbers of their bytes.
  (GNU patch takes no name with a line end in it at all; git does.)
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from transactions.baseline import Baseline, Present
from transactions.diff import DEFAULT_CONTEXT_LINES, Block, blocks, grouped
from transactions.overlay import FileChange
from transactions.text import SourceText

PLAIN_MODE = 0o100644
PROGRAM_MODE = 0o100755

_PLAIN_NAME = re.compile(rb"[A-Za-z0-9_./+@%=:,~^(){}\[\]#&$!;*?<>|'-]+")
_ESCAPES = {
    7: rb"\a",
    8: rb"\b",
    9: rb"\t",
    10: rb"\n",
    11: rb"\v",
    12: rb"\f",
    13: rb"\r",
    34: rb"\"",
    92: rb"\\",
}
_NO_NEWLINE = b"\n\\ No newline at end of file\n"
_ORDER = {"Deleted": 0, "Moved": 1, "Modified": 2, "Added": 3}


def git_patch(
    changes: Sequence[FileChange], baseline: Baseline, context: int = DEFAULT_CONTEXT_LINES
) -> bytes:
    """The patch of these changes against the baseline they were made on; paths are relative to its root.

    Empty when there are none. `context` is the number of unchanged lines around each hunk.
    """
    deleted = {change.path: change for change in changes if change.kind == "Deleted"}
    moved = {
        change.moved_from
        for change in changes
        if _is_plain_move(change, None if change.moved_from is None else deleted.get(change.moved_from))
    }
    parts = []
    for change in changes:
        if change.kind == "Deleted" and change.path in moved:
            continue
        is_move = change.kind == "Added" and change.moved_from in moved
        origin = deleted[change.moved_from] if is_move and change.moved_from is not None else change
        section = b"".join(_section(origin, change, baseline, context))
        parts.append((_ORDER["Moved" if is_move else change.kind], os.fspath(change.path), section))
    return b"".join(section for _, _, section in sorted(parts))


def _is_plain_move(change: FileChange, origin: FileChange | None) -> bool:
    return change.kind == "Added" and origin is not None and origin.moved_to == change.path


def _section(origin: FileChange, change: FileChange, baseline: Baseline, context: int) -> Iterator[bytes]:
    """Everything about one file: from `origin.before` at its path to `change.after` at the other."""
    old_name, new_name = (_name(path, baseline.root) for path in (origin.path, change.path))
    old_path, new_path = _quoted(b"a/" + old_name), _quoted(b"b/" + new_name)
    old_data, new_data = _bytes(origin.before), _bytes(change.after)
    old_mode = _mode(baseline, origin.path)
    new_mode = _mode(baseline, change.moved_from or change.path) or PLAIN_MODE
    yield b"diff --git %s %s\n" % (old_path, new_path)
    if old_data is None:
        yield b"new file mode %o\n" % new_mode
    elif new_data is None:
        yield b"deleted file mode %o\n" % (old_mode or PLAIN_MODE)
    elif old_mode is not None and old_mode != new_mode:
        yield b"old mode %o\nnew mode %o\n" % (old_mode, new_mode)
    if origin is not change:
        if old_data == new_data:
            yield b"similarity index 100%\n"
        yield b"rename from %s\nrename to %s\n" % (_quoted(old_name), _quoted(new_name))
    if old_data == new_data:
        return
    unchanged_mode = b" %o" % new_mode if old_mode == new_mode and None not in (old_data, new_data) else b""
    yield b"index %s..%s%s\n" % (_blob(old_data), _blob(new_data), unchanged_mode)
    if not old_data and not new_data:
        return  # an empty file that came or went: the mode line says all
    yield b"--- %s\n" % (b"/dev/null" if old_data is None else old_path)
    yield b"+++ %s\n" % (b"/dev/null" if new_data is None else new_path)
    yield from _hunks(_lines(old_data or b""), _lines(new_data or b""), context)


def _hunks(old: list[str], new: list[str], context: int) -> Iterator[bytes]:
    for group in grouped(blocks(old, new), context):
        yield from _hunk(old, new, group, context)


def _hunk(old: list[str], new: list[str], group: Sequence[Block], context: int) -> Iterator[bytes]:
    start, end = max(0, group[0].start - context), min(len(old), group[-1].end + context)
    new_start = group[0].new_start - (group[0].start - start)
    new_end = group[-1].new_end + (end - group[-1].end)
    yield b"@@ -%s +%s @@\n" % (_place(start, end), _place(new_start, new_end))
    shown = start
    for block in group:
        yield from (_line(b" ", line) for line in old[shown : block.start])
        yield from (_line(b"-", line) for line in old[block.start : block.end])
        yield from (_line(b"+", line) for line in new[block.new_start : block.new_end])
        shown = block.end
    yield from (_line(b" ", line) for line in old[shown:end])


def _place(start: int, end: int) -> bytes:
    """Counted from one; a side without lines names the line before the place."""
    return b"%d,%d" % (start + 1 if end > start else start, end - start)


def _lines(data: bytes) -> list[str]:
    """Lines that end at LF, each byte as the character of that number: the comparison takes strings."""
    lines = data.decode("latin-1").split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _line(lead: bytes, line: str) -> bytes:
    data = lead + line.encode("latin-1")
    return data if data.endswith(b"\n") else data + _NO_NEWLINE


def _bytes(text: SourceText | None) -> bytes | None:
    return None if text is None else text.encode()


def _mode(baseline: Baseline, path: Path) -> int | None:
    """The mode of a file as git would say it; None for a file that is not there."""
    state = baseline.read(path)
    if not isinstance(state, Present) or state.fingerprint is None:
        return None
    return PROGRAM_MODE if state.fingerprint.mode & stat.S_IXUSR else PLAIN_MODE


def _blob(data: bytes | None) -> bytes:
    """The name that git gives to a content, so that `git apply --3way` can find it."""
    if data is None:
        return b"0" * 40
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest().encode()


def _name(path: Path, root: Path) -> bytes:
    return os.fsencode(path.relative_to(root).as_posix())


def _quoted(name: bytes) -> bytes:
    """A name that no reader can cut in two: in C's quotes, unless it is plain."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return b'"%s"' % b"".join(_escaped(byte) for byte in name)


def _escaped(byte: int) -> bytes:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte  # printable ASCII
