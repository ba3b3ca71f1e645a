"""Documents say what is true: every command, option, tool and module they name exists, and the other way round."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.options import Options, environment_name, option_names
from schemas.catalog import CATALOG

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
DOCUMENTS = {"README.md": README, "CONTRIBUTING.md": CONTRIBUTING, "ARCHITECTURE.md": ARCHITECTURE}
COMMAND_WAIT = 60.0
"""Seconds for printing a help text on a busy machine."""


def commands_of(text: str) -> list[str]:
    """The commands of all shell blocks, comments taken off."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line.split("#")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_the_readme_has_exactly_two_set_up_commands_and_both_are_there() -> None:
    commands = commands_of(README)
    assert commands == ["./scripts/demo", "./scripts/test"]
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)


def test_every_command_line_of_ours_in_the_documents_is_understood() -> None:
    named = {
        match for text in DOCUMENTS.values() for match in re.findall(r"`roslyn-bridge ([a-z-][^`]*)`", text)
    } | {"mcp --help"}
    for arguments in sorted(named):
        help_of = shlex.split(arguments)
        if "--help" not in help_of and "--version" not in help_of:
            help_of.append("--help")
        done = subprocess.run(
            [sys.executable, "-m", "bridge", *help_of],
            capture_output=True,
            text=True,
            timeout=COMMAND_WAIT,
            check=False,
        )
        assert done.returncode == 0, f"roslyn-bridge {arguments}: {done.stderr}"


def test_the_readme_lists_every_option_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `--([a-z-]+)` \| ([^|]*) \|", README, re.MULTILINE))
    assert sorted(rows) == sorted(name.replace("_", "-") for name in option_names())
    defaults = Options()
    for name, shown in rows.items():
        value = getattr(defaults, name.replace("-", "_"))
        if value is not None:
            assert shown.strip().strip("`") == (f"{value:g}" if isinstance(value, float) else str(value)), (
                name
            )
    assert environment_name("load_timeout") in README


def test_the_readme_lists_every_tool_and_no_other() -> None:
    table = README[README.index("| tool |") : README.index("The usual round")]
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", table)) == set(CATALOG)


@pytest.mark.parametrize("script", sorted(p.name for p in (ROOT / "scripts").iterdir() if p.is_file()))
def test_every_script_is_named_in_a_document(script: str) -> None:
    assert f"scripts/{script}" in README + CONTRIBUTING


def test_every_file_named_in_the_documents_exists() -> None:
    places = ("", "bridge/", "lsp_client/", "transactions/", "schemas/")
    missing = [
        f"{document}: {name}"
        for document, text in DOCUMENTS.items()
        for name in re.findall(r"`([\w./-]+\.(?:py|md|toml|txt))`", text)
        if not any((ROOT / place / name).exists() for place in places)
        and not list(ROOT.glob(f"*/{name}"))
        and not list(ROOT.glob(f"*/*/{name}"))
    ]
    assert missing == []


def test_the_architecture_page_stays_a_few_screens() -> None:
    assert len(ARCHITECTURE.splitlines()) < 150
