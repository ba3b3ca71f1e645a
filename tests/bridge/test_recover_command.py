"""Lines that people copy into a shell: what arrives there is what was meant."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bridge.recover_command import RecoverCommand, quoted


@pytest.mark.parametrize(
    "word",
    [
        "plain",
        "Läden & mehr",
        'it\'s \\ $HOME `x` "y"',
        "~/here",
        "-x",
        "line\nbreak\ttab",
        "it's\na \\ line",
        os.fsdecode(b"caf\xe9.cs"),
        "\u202e",
    ],
    ids=ascii,
)
def test_a_shell_reads_what_was_quoted_and_a_terminal_can_show_it(word: str) -> None:
    line = quoted(word)
    assert line.isprintable()
    bash = shutil.which("bash")
    assert bash is not None
    told = subprocess.run([bash, "-c", f"printf %s {line}"], capture_output=True, check=True, timeout=30)
    assert told.stdout == os.fsencode(word)


def test_a_line_says_where_its_state_is_and_where_the_workspace_is() -> None:
    line = RecoverCommand(Path("/my state")).line("explain", "abc", root=Path("/my work"))
    assert line == "roslyn-bridge recover --state-directory '/my state' explain abc --root '/my work'"
    assert RecoverCommand().line("list") == "roslyn-bridge recover list"
