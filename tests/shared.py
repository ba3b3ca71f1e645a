"""What may lie beside the project, in ``../shared``: the .NET toolchain, corpora, contracts, recorded conversations.

Nothing here demands that it is there.  A test that needs a part of it is skipped with a reason that names the part.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
TOOLCHAIN = SHARED / "toolchain"
SAMPLES = TOOLCHAIN / "samples"
CORPORA = SHARED / "corpora"
CONTRACTS = SHARED / "contracts"
TRANSCRIPTS = SHARED / "transcripts"

NO_TOOLCHAIN = "the .NET toolchain does not lie beside the project (../shared/toolchain)"
NO_TRANSCRIPTS = "the recorded conversations do not lie beside the project (../shared/transcripts)"

UNPACK_WAIT = 300.0
"""Seconds for unpacking the toolchain on two busy cores; it is done once for a machine."""

RUN_VARIABLE = "ROSLYN_BRIDGE_TEST_RUN"
RUN = uuid.uuid4().hex
"""Marks the .NET processes of this run: others may run on the machine at the same time."""


def has_toolchain() -> bool:
    """Whether the .NET toolchain can be had."""
    return (TOOLCHAIN / "unpack.py").is_file()


def dotnet_environment() -> Mapping[str, str]:
    """The whole environment for the toolchain's processes, marked as this run's; unpacks it on the first call."""
    unset = _unset_names()
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    return {**inherited, **_toolchain_variables(), RUN_VARIABLE: RUN}


def _toolchain_variables() -> Mapping[str, str]:
    printed = subprocess.run(
        [sys.executable, str(TOOLCHAIN / "unpack.py"), "--json"],
        check=True,
        capture_output=True,
        timeout=UNPACK_WAIT,
    )
    variables = json.loads(printed.stdout)
    return {name: str(value) for name, value in variables.items()}


def _unset_names() -> tuple[str, ...]:
    spec = importlib.util.spec_from_file_location("toolchain_unpack", TOOLCHAIN / "unpack.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return tuple(module.UNSET)


def sample_folder(name: str) -> Path | None:
    """The original of a sample of the toolchain, or of a corpus; ``None`` where it is not."""
    return next((place for place in (SAMPLES / name, CORPORA / name) if place.is_dir()), None)


def writable_copy(source: Path, target: Path) -> Path:
    """A copy whose files may all be written, also where the originals are read-only."""
    shutil.copytree(source, target, symlinks=True)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o200)
    return target.resolve()
