"""A seeded sample of the fault harness, and proof that the harness itself can fail. `scripts/faults` runs all of it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults import defects
from tests.faults.disk import Recorder
from tests.faults.kinds import KINDS
from tests.faults.mutants import changed
from tests.faults.plans import BY_NAME, SHAPES
from tests.faults.seam import CALLS, LOOKING, Seam
from tests.faults.worlds import Ground
from transactions.system import SYSTEM, System

HERE = Path(__file__).resolve().parents[2]
RUN_SECONDS = 120.0
"""Far more than a sample takes, for a machine that does other things too."""

SAMPLES = {"errors": 160, "kills": 80, "power": 160, "strangers": 80, "places": 40}


def harness(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of the harness in a process of its own, which may fork as it likes."""
    return subprocess.run(
        [sys.executable, "-m", "tests.faults", *arguments],
        cwd=HERE,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


@pytest.fixture
def ground() -> Iterator[Ground]:
    above = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="roslyn-bridge-faults-", dir=above) as place:
        yield Ground(Path(os.path.realpath(place)))


@pytest.mark.parametrize("kind", SAMPLES)
def test_a_sample_of_every_kind_of_fault_ends_before_or_after(kind: str) -> None:
    ran = harness("--kind", kind, "--sample", str(SAMPLES[kind]), "--seed", "4")

    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_kind_of_fault_has_a_sample() -> None:
    assert SAMPLES.keys() == KINDS.keys()


SOME_DEFECTS = (
    "the files of a record are not synced",
    "what came out of its place is not compared",
    "recovery takes an interrupted commit for one that had not begun",
    "short writes are taken for whole ones",
)


@pytest.mark.parametrize("name", SOME_DEFECTS)
def test_a_seeded_defect_is_caught(ground: Ground, name: str) -> None:
    defect = next(defect for defect in defects.DEFECTS if defect.name == name)

    assert defects.caught(ground, defect) is not None


@pytest.mark.parametrize("defect", defects.DEFECTS, ids=lambda defect: defect.name)
def test_no_seeded_defect_is_out_of_date(defect: defects.Defect) -> None:
    with changed(defect.module, defect.old, defect.new):
        pass


def test_an_undisturbed_commit_of_every_shape_gives_the_after_image(ground: Ground) -> None:
    for shape in SHAPES:
        with ground.world(shape) as world:
            assert world.commit(SYSTEM).kind == "committed", shape.name
            assert world.image() == world.after, shape.name


def test_the_recorder_knows_every_call_that_changes_the_disk() -> None:
    without_effect_on_a_disk = {"touch", "close", "lock"}
    changing = set(CALLS) - LOOKING - without_effect_on_a_disk

    assert changing <= {name for name in vars(Recorder) if name in vars(System)}


_AUDITED = {
    "os.rename": {"rename"},
    "os.mkdir": {"make_directory"},
    "os.rmdir": {"remove_directory"},
    "os.remove": {"remove"},
    "os.link": {"link"},
    "os.symlink": set[str](),
    "os.chmod": {"set_mode"},
    "os.chown": {"set_owner"},
    "os.utime": {"touch"},
    "os.truncate": set[str](),
    "os.setxattr": {"set_attribute"},
    "os.removexattr": {"remove_attribute"},
}


def test_a_commit_and_a_recovery_change_nothing_but_through_the_seam(ground: Ground) -> None:
    seen: list[str] = []
    listening = False

    def listen(event: str, arguments: tuple[object, ...]) -> None:
        if not listening:
            return
        if event in _AUDITED:
            seen.append(event)
        elif event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            seen.append("open for writing")

    sys.addaudithook(listen)  # for good: Python has no way to take one out, so it is told to be quiet
    seam = Seam()
    with ground.world(BY_NAME["odd"]) as world:
        listening = True
        world.commit(seam)
        world.recover(seam)
        listening = False

    through = [call.name for call in seam.calls]
    expected = [event for name in through for event, names in _AUDITED.items() if name in names]
    expected += ["open for writing" for name in through if name in ("open_new", "open_lock")]
    assert sorted(seen) == sorted(expected)


_TRACED = {
    "openat": "open",
    "write": "write",
    "pwrite64": "write",
    "rename": "rename",
    "renameat": "rename",
    "renameat2": "rename",
    "unlink": "remove",
    "unlinkat": "remove",
    "rmdir": "remove",
    "mkdir": "make",
    "mkdirat": "make",
    "link": "link",
    "linkat": "link",
    "symlinkat": "symlink",
    "fchmod": "mode",
    "fchmodat": "mode",
    "fchown": "owner",
    "fchownat": "owner",
    "utimensat": "touch",
    "fsync": "sync",
    "fdatasync": "sync",
    "syncfs": "syncfs",
    "fsetxattr": "attribute",
    "setxattr": "attribute",
    "fremovexattr": "attribute",
    "removexattr": "attribute",
    "ftruncate": "truncate",
    "truncate": "truncate",
}
_THROUGH = {
    "open_new": "open",
    "open_lock": "open",
    "write": "write",
    "rename": "rename",
    "move": "rename",
    "exchange": "rename",
    "remove": "remove",
    "remove_directory": "remove",
    "make_directory": "make",
    "link": "link",
    "set_mode": "mode",
    "set_owner": "owner",
    "touch": "touch",
    "sync": "sync",
    "sync_file_system": "syncfs",
    "set_attribute": "attribute",
    "remove_attribute": "attribute",
}

_TRACED_COMMIT = """
import collections, json, os, pathlib, sys
from tests.faults.plans import BY_NAME
from tests.faults.seam import Seam
from tests.faults.worlds import Ground
seam = Seam()
with Ground(pathlib.Path(sys.argv[1])).world(BY_NAME["odd"]) as world:
    os.access("/a-commit-begins", os.F_OK)
    world.commit(seam)
    world.recover(seam)
    os.access("/a-commit-ends", os.F_OK)
print(json.dumps(collections.Counter(call.name for call in seam.calls)))
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace here")
def test_the_system_calls_seen_from_outside_are_those_of_the_seam(tmp_path: Path) -> None:
    trace, place = tmp_path / "trace", tmp_path / "place"
    place.mkdir()
    calls = ",".join(f"?{name}" for name in (*_TRACED, "access", "faccessat", "faccessat2"))
    command = ["strace", "-y", "-o", os.fspath(trace), "-e", f"trace={calls}"]
    command += [sys.executable, "-c", _TRACED_COMMIT, os.fspath(place)]
    ran = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=RUN_SECONDS, check=False)
    if "ptrace" in ran.stderr.lower():
        pytest.skip("strace may not trace here")
    assert ran.returncode == 0, ran.stderr

    _, begin, rest = trace.read_text(errors="replace").partition("/a-commit-begins")
    during, end, _ = rest.partition("/a-commit-ends")
    assert begin
    assert end
    seen: Counter[str] = Counter()
    for line in during.splitlines():
        name = line.partition("(")[0].strip()
        writes = name != "openat" or "O_WRONLY" in line or "O_RDWR" in line
        if name in _TRACED and writes and os.fspath(place) in line:
            seen[_TRACED[name]] += 1
    expected: Counter[str] = Counter()
    for name, count in json.loads(ran.stdout).items():
        if name in _THROUGH:
            expected[_THROUGH[name]] += count
    assert seen == expected
