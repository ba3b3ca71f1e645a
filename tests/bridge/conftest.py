"""The toolchain's ``dotnet`` for tests of ``bridge``, and unrestored copies of its samples; skipped where it is not."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.shared import NO_TOOLCHAIN, sample_folder, writable_copy


@pytest.fixture
def dotnet(toolchain: Mapping[str, str]) -> Path:
    """The toolchain's ``dotnet``."""
    return Path(toolchain["DOTNET_ROOT"]) / "dotnet"


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Path]:
    """A function that copies one sample, never restored, to a folder with a space and a letter, and gives the copy."""

    def copy(name: str) -> Path:
        source = sample_folder(name)
        if source is None:
            pytest.skip(NO_TOOLCHAIN)
        (tmp_path / "läden und mehr").mkdir(exist_ok=True)
        return writable_copy(source, tmp_path / "läden und mehr" / name)

    return copy
