"""The crash that visitors are shown holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEMO_WAIT = 120.0
"""Seconds for six children, one after the other, on a busy machine."""


def test_the_crash_demo_holds_and_shows_the_tree_before_and_after_recovery() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "scripts.demo_crash"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEMO_WAIT,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "killed (SIGKILL)" in ran.stdout
    assert "Every byte is as before the commit" in ran.stdout
    assert "Every byte is as after the commit" in ran.stdout
