"""The .NET toolchain for tests of ``bridge``, and writable copies of its samples; tests that need it are skipped without."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared"


@pytest.fixture(scope="session")
def toolchain() -> dict[str, str]:
    """The environment of the offline toolchain, as a complete environment of a process."""
    script = SHARED / "toolchain" / "unpack.py"
    if not script.is_file():
        pytest.skip("the .NET toolchain is not beside the project")
    done = subprocess.run([sys.executable, script, "--json"], capture_output=True, timeout=300, check=True)
    chosen: Mapping[str, str] = json.loads(done.stdout)
    return {**os.environ, **chosen}


@pytest.fixture
def dotnet(toolchain: Mapping[str, str]) -> Path:
    return Path(toolchain["DOTNET_ROOT"]) / "dotnet"


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    """A function that copies one sample folder and gives the copy, under a folder with a space and a letter."""

    def copy(name: str) -> Path:
        places = (SHARED / "toolchain" / "samples" / name, SHARED / "corpora" / name)
        source = next((place for place in places if place.is_dir()), None)
        if source is None:
            pytest.skip(f"the sample {name} is not beside the project")
        target = tmp_path / "läden und mehr" / name
        shutil.copytree(source, target)
        for path in [target, *target.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        return target

    return copy
