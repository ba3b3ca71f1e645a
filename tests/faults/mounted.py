"""Commits where something is mounted: each whole scenario runs in a child with a mount table of its own."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.faults import mounts
from tests.faults.children import fork
from tests.faults.everywhere import everywhere
from tests.faults.judge import AFTER, BEFORE, NotHeld, require
from tests.faults.kills import kill
from tests.faults.plans import Shape
from tests.faults.scenarios import Run, Scenario, at, calls_of, judge_run, settle
from tests.faults.seam import Call, Signals
from tests.faults.skips import skip
from tests.faults.worlds import Ground, World
from transactions.case_rule import CaseRule
from transactions.system import SYSTEM

SMALL_PAGES = range(6, 60, 3)
SMALL_INODES = range(12, 48, 2)
"""Sizes of file systems that are full at another moment each; the largest are large enough."""


def scenarios(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """All of one shape that need mounts; none, and a word of it in the report, where we may not mount."""
    reason = _why_no_mounts()
    if reason is not None:
        skip(f"overlay, bind and read-only mounts, small file systems: no mount table of our own ({reason})")
        return
    for place, make in MOUNTED.items():
        yield from _mounted(ground, place, make, shape)
    yield from read_only(ground, shape)
    yield from full(shape)


BROKEN = "broken: "


class OverlayGround(Ground):
    """Every root is an overlay whose lower layer holds the tree."""

    def lasting_world(self, shape: Shape, case_rule: CaseRule | None = None) -> World:
        root, state = self.next_pair()
        lower, upper, work = (root.with_name(f"{root.name}-{layer}") for layer in ("lower", "upper", "work"))
        for directory in (root, lower, upper, work):
            directory.mkdir()
        shape.build(lower)
        mounts.overlay(lower, upper, work, root)
        return World(shape, root, state, case_rule, is_built=True)


class BindGround(Ground):
    """In every root the directory App is mounted from elsewhere, so nothing can be renamed into or out of it."""

    def lasting_world(self, shape: Shape, case_rule: CaseRule | None = None) -> World:
        root, state = self.next_pair()
        elsewhere = root.with_name(f"{root.name}-elsewhere")
        root.mkdir()
        shape.build(root)
        (root / "App").rename(elsewhere)
        (root / "App").mkdir()
        mounts.bind(elsewhere, root / "App")
        return World(shape, root, state, case_rule, is_built=True)


MOUNTED: dict[str, type[Ground]] = {"overlay": OverlayGround, "bind mount inside": BindGround}


def _mounted(ground: Ground, place: str, make: type[Ground], shape: Shape) -> Iterator[Scenario]:
    calls: list[Call] = []
    numbers = _in_mounts(ground, lambda inner: _counted(make(inner.above), shape))
    if numbers.startswith(BROKEN):
        skip(f"{place}: {numbers.removeprefix(BROKEN)}")
        return
    for line in numbers.splitlines():
        number, name, index, phase = line.split("\t")
        calls.append(Call(int(number), name, int(index), phase))
    yield from everywhere(
        place,
        shape,
        calls,
        lambda run: lambda outer: _run_in_mounts(outer, lambda inner: run(make(inner.above))),
    )


def _counted(ground: Ground, shape: Shape) -> str:
    return "\n".join(
        f"{call.number}\t{call.name}\t{call.index}\t{call.phase}" for call in calls_of(ground, shape)
    )


def _run_in_mounts(ground: Ground, run: Run) -> None:
    def work(inner: Ground) -> str:
        try:
            run(inner)
        except NotHeld as error:
            return f"not held: {error}"
        return "held"

    said = _in_mounts(ground, work)
    if said != "held":
        raise NotHeld(said)


def _in_mounts(ground: Ground, work: Callable[[Ground], str]) -> str:
    """Does `work` in a child with a mount table of its own, and gives what it says."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(dir=ground.above, ignore_cleanup_errors=True) as above:

        def child() -> str:
            os.close(reading)
            try:
                mounts.leave()
                said = work(Ground(Path(above)))
            except Exception as error:  # noqa: BLE001  # told to the parent, which raises
                said = f"{BROKEN}{type(error).__name__}: {error}"
            with os.fdopen(writing, "w", errors="surrogateescape") as stream:
                stream.write(said)
            return "nothing"

        number = fork(child)
        os.close(writing)
        with os.fdopen(reading, errors="surrogateescape") as stream:
            said = stream.read()
        os.waitpid(number, 0)
    return said


def _why_no_mounts() -> str | None:
    with tempfile.TemporaryDirectory() as above:
        said = _in_mounts(Ground(Path(above)), lambda inner: "held")
    return None if said == "held" else said


# -- read-only ---------------------------------------------------------------------------------------------------------


def read_only(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """A root that cannot be written: the commit is refused; a recovery waits until it can."""
    run = _run_read_only_commit(shape)
    yield Scenario("places", "read-only mount", shape.name, "all", "none", 0, "commit", _mounted_run(run))
    for call in calls_of(ground, shape):
        if call.changes and call.name != "close" and call.phase in ("applying", "committing", "cleaning"):
            run = _run_read_only_recovery(shape, call.number)
            yield at(
                "places", "read-only mount", shape, call, "killed, recovered read-only", _mounted_run(run)
            )


def _mounted_run(run: Run) -> Run:
    return lambda outer: _run_in_mounts(outer, run)


def _run_read_only_commit(shape: Shape) -> Run:
    def run(ground: Ground) -> None:
        world = ground.lasting_world(shape)
        mounts.bind_read_only(world.root)
        outcome = world.commit(SYSTEM)
        if outcome.kind != "refused":
            raise NotHeld(f"a commit on a read-only mount ended as {outcome}")
        require(world, {BEFORE})
        mounts.remount_writable(world.root)
        outcome = world.commit(SYSTEM)
        if outcome.kind != "committed":
            raise NotHeld(f"once it could be written the commit ended as {outcome}")
        require(world, {AFTER})

    return run


def _run_read_only_recovery(shape: Shape, number: int) -> Run:
    def run(ground: Ground) -> None:
        world = ground.lasting_world(shape)
        kill(world, Signals(number))
        mounts.bind_read_only(world.root)
        found = world.image()
        recovered = world.recover(SYSTEM)
        if recovered.kind == "broken" or world.image() != found:
            raise NotHeld(f"the recovery on a read-only mount ended as {recovered}")
        mounts.remount_writable(world.root)
        settle(world, {BEFORE, AFTER})

    return run


# -- full disks --------------------------------------------------------------------------------------------------------


def full(shape: Shape) -> Iterator[Scenario]:
    """File systems of all small sizes, so that the commit meets the end of its space at every moment."""
    for what in ("root", "state"):
        for pages in SMALL_PAGES:
            run = _run_full(shape, what, pages, 4096)
            yield Scenario(
                "places", f"full {what}", shape.name, "all", "pages", pages, "no space", _mounted_run(run)
            )
        for inodes in SMALL_INODES:
            run = _run_full(shape, what, 4096, inodes)
            yield Scenario(
                "places", f"full {what}", shape.name, "all", "inodes", inodes, "no inodes", _mounted_run(run)
            )


def _run_full(shape: Shape, what: str, pages: int, inodes: int) -> Run:
    def run(ground: Ground) -> None:
        root, state = ground.next_pair()
        small = root if what == "root" else state
        for directory in (root, state):
            directory.mkdir(mode=0o700)
        mounts.small_memory(small, pages=pages, inodes=inodes)
        try:
            world = World(shape, root, state)
        except OSError:
            return  # not even the tree fits
        outcome = world.commit(SYSTEM)
        judge_run(world, outcome, lasting=False)
        if outcome.kind not in ("committed", "refused"):
            raise NotHeld(f"a full disk is no clean refusal: {outcome}")
        if outcome.kind == "committed":
            return
        mounts.enlarge(small)
        again = world.commit(SYSTEM)
        if again.kind != "committed":
            raise NotHeld(f"after space was made the commit ended as {again}")
        require(world, {AFTER})

    return run
