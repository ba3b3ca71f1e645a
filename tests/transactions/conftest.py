"""Where the trees of these tests stand."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture
def new_root(tmp_path: Path) -> Iterator[Callable[[], Path]]:
    """Makes empty directories, in memory where there is such a place: syncing hundreds of small trees to a disk that
    others are using takes minutes and proves nothing more.
    """
    above = _MEMORY if _MEMORY.is_dir() else tmp_path
    with tempfile.TemporaryDirectory(prefix="roslyn-bridge-test-", dir=above) as directory:
        yield lambda: Path(tempfile.mkdtemp(dir=directory))
