"""Command lines of ``roslyn-bridge recover`` that people are told.  They are complete: copied into a shell, they work.

What a bridge was started with (a state directory of its own) is not what a person's shell knows, so every line says it.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RecoverCommand:
    """The command for one state directory: as it was given, ``None`` for the user's own."""

    state_directory: Path | None = None

    def line(self, *words: str | Path, root: Path | None = None) -> str:
        """``roslyn-bridge recover`` with a command and its arguments; ``root`` is where the workspace is."""
        where = () if self.state_directory is None else ("--state-directory", self.state_directory)
        at = () if root is None else ("--root", root)
        return " ".join(("roslyn-bridge recover", *map(quoted, (*where, *words, *at))))


def quoted(word: str | Path) -> str:
    """One argument as a shell takes it; what a terminal cannot show is written as its bytes."""
    text = os.fspath(word)
    if text.isprintable():
        return shlex.quote(text)
    escaped = (
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"'\\" else f"\\x{byte:02x}"
        for byte in os.fsencode(text)
    )
    return f"$'{''.join(escaped)}'"
