"""What the tests on real C# servers share: the two servers of the toolchain, and restored copies of its samples.

Without the toolchain beside the project every test here is skipped, and the summary says how many and why.

The options of a bridge have environment twins, so all of these tests can be run in the other view of staged files::

    ROSLYN_BRIDGE_SERVER_VIEW=overlay ./scripts/test -n0 tests/real

What depends on the view asks ``Agent.view``; a server that has another view than was wished fails the test that opened it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.shared import RUN, RUN_VARIABLE, sample_folder, writable_copy

BUILD_WAIT = 300.0
"""Seconds for one restore or build of a sample on two busy cores."""


@dataclass(frozen=True)
class RealServer:
    """One real server: its kind as an option, and the path to give as ``--server-path``."""

    kind: str
    path: Path


@pytest.fixture(scope="session")
def roslyn_dll(toolchain: Mapping[str, str]) -> Path:
    """The Roslyn-dialect server: real Roslyn refactorings over Microsoft's wire dialect."""
    return Path(toolchain["ROSLYN_LS"])


@pytest.fixture(scope="session")
def csharp_ls_dll(toolchain: Mapping[str, str]) -> Path:
    """csharp-ls."""
    return Path(toolchain["CSHARP_LS"])


@pytest.fixture(params=["roslyn", "csharp-ls"])
def real_server(request: pytest.FixtureRequest, toolchain: Mapping[str, str]) -> RealServer:
    """Both real servers in turn."""
    kind = str(request.param)
    return RealServer(kind, Path(toolchain[{"roslyn": "ROSLYN_LS", "csharp-ls": "CSHARP_LS"}[kind]]))


def run_dotnet(toolchain: Mapping[str, str], folder: Path, *arguments: str) -> str:
    """Run ``dotnet`` to its end; its output.  Fails the test when it fails."""
    done = subprocess.run(
        ["dotnet", *arguments],
        cwd=folder,
        # A compiler server would outlive the test.
        env={**toolchain, "UseSharedCompilation": "false"},
        capture_output=True,
        text=True,
        timeout=BUILD_WAIT,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, (
        f"dotnet {' '.join(arguments)}:\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}"
    )
    return done.stdout


CopySample = Callable[[str], Path]


@pytest.fixture(scope="session")
def restored_samples(
    toolchain: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Samples of the toolchain (or ``bakery`` of the corpora), each restored once for the session."""
    done: dict[str, Path] = {}

    def restored(name: str) -> Path:
        if name not in done:
            source = sample_folder(name)
            assert source is not None, f"there is no sample {name}"
            folder = writable_copy(source, tmp_path_factory.mktemp("restored") / name)
            solution = next(path for path in sorted(folder.iterdir()) if path.suffix in {".slnx", ".sln"})
            if name != "Broken":
                run_dotnet(toolchain, folder, "restore", solution.name)
            done[name] = folder
        return done[name]

    return restored


@pytest.fixture
def sample(restored_samples: Callable[[str], Path], tmp_path: Path) -> CopySample:
    """A fresh copy of a restored sample for one test."""

    def copy(name: str) -> Path:
        folder = writable_copy(restored_samples(name), tmp_path / name)
        if name == "TwoProjects":
            (folder / "src/Library/ReadOnlyFile.cs").chmod(0o444)
        return folder

    return copy


@pytest.fixture
def two_projects(sample: CopySample) -> Path:
    """A fresh copy of TwoProjects."""
    return sample("TwoProjects")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here needs the toolchain."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.real)


@pytest.fixture
def no_dotnet_left() -> Iterator[None]:
    """Fails a test that leaves .NET processes of its own behind."""
    import psutil

    def is_ours(process: psutil.Process) -> bool:
        try:
            return process.environ().get(RUN_VARIABLE) == RUN
        except psutil.Error:
            return False

    def running() -> set[int]:
        found = psutil.process_iter(["name"])
        return {p.pid for p in found if (p.info["name"] or "").startswith("dotnet") and is_ours(p)}

    before = running()
    yield
    gone, left = psutil.wait_procs(
        [psutil.Process(pid) for pid in running() - before if psutil.pid_exists(pid)], 10
    )
    del gone
    assert not left, f"left behind: {[p.cmdline() for p in left]}"
