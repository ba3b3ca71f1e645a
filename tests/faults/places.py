"""Commits in unusual places: real disks, a state directory that is gone, a disk that folds letter cases, and those that
need mounts (see `mounted`).
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from tests.faults import mounted
from tests.faults.everywhere import everywhere
from tests.faults.folding import BlindEverywhere, Folding
from tests.faults.images import OURS, without
from tests.faults.judge import AFTER, NotHeld, require, side_of
from tests.faults.kills import allowed_after, kill
from tests.faults.plans import Shape
from tests.faults.scenarios import TIDIED_LATER, Run, Scenario, at, calls_of, commit_with, judge_run
from tests.faults.seam import Call, Fails, ReusedInodes, Signals
from tests.faults.worlds import Ground, World
from transactions.system import SYSTEM

SHAPE_NAMES = ("replace", "move and edit", "swap", "new directories", "mixed", "odd")

FOLDING_NAMES = ("case only", "replace", "move", "swap", "chain")

ON_DISK_MAX = 24
"""Calls tried for each shape where every sync goes to a real disk."""


def scenarios(ground: Ground, shapes: Sequence[Shape]) -> Iterator[Scenario]:
    """All of this kind."""
    chosen = [shape for shape in shapes if shape.name in SHAPE_NAMES]
    for shape in chosen:
        yield from on_disk(ground, shape)
        yield from state_lost(ground, shape)
        yield from moved(ground, shape)
    for shape in shapes:
        if shape.name in FOLDING_NAMES:
            yield from folding(ground, shape)
    for shape in chosen:
        yield from mounted.scenarios(ground, shape)


# -- real disks --------------------------------------------------------------------------------------------------------


def on_disk(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """Everything on a disk; only the state directory there; only the root there."""
    calls = calls_of(ground, shape)
    calls = calls[:: max(1, len(calls) // ON_DISK_MAX)]
    for place, swap in (("disk", None), ("state on another device", False), ("root on another device", True)):
        yield from everywhere(place, shape, calls, partial(_on_disk, swap))


def _on_disk(swap: bool | None, run: Run) -> Run:
    def moved(ground: Ground) -> None:
        with tempfile.TemporaryDirectory(prefix="roslyn-bridge-faults-") as above:
            disk = Path(os.path.realpath(above))
            if swap is None:
                run(Ground(disk))
            else:
                run(Ground(disk, ground.above) if swap else Ground(ground.above, disk))

    return moved


# -- the state directory is gone ---------------------------------------------------------------------------------------


def state_lost(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """A killed commit whose record is gone: the marker keeps others out, and no file's bytes are lost."""
    for call in calls_of(ground, shape):
        if call.changes and call.name != "close" and call.phase in ("applying", "committing", "cleaning"):
            yield at(
                "places", "state directory lost", shape, call, "killed", _run_state_lost(shape, call.number)
            )


def _run_state_lost(shape: Shape, number: int) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            kill(world, Signals(number))
            shutil.rmtree(world.state)
            world.state.mkdir(mode=0o700)
            found = world.image()
            recovered = world.recover(SYSTEM)
            if recovered.kind == "broken":
                raise NotHeld(f"an exception that nobody promised: {recovered.said}")
            if without(world.image(), OURS) != without(found, OURS):
                raise NotHeld("changed the tree without a record")
            if any(name.startswith(OURS + b"/roslyn-bridge/pending/") for name in found):
                outcome = world.commit(SYSTEM)
                if outcome.kind != "pending":
                    raise NotHeld(f"went on beside an unfinished commit: {outcome}")
                _require_no_bytes_lost(world)
            else:
                side_of(without(found, OURS), world.before, world.after)

    return run


def _require_no_bytes_lost(world: World) -> None:
    standing = {entry.content for entry in world.image().values() if entry.kind == "file"}
    lost = [
        os.fsdecode(name)
        for name, entry in world.before.items()
        if entry.kind == "file" and entry.content not in standing
    ]
    if lost and side_of(without(world.image(), OURS), world.before, world.after) != AFTER:
        raise NotHeld(f"the bytes of {lost} stand nowhere")


# -- the workspace is not where it was ---------------------------------------------------------------------------------


def moved(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """A killed commit whose workspace is moved, or replaced by another, before the recovery."""
    for call in calls_of(ground, shape):
        if call.changes and call.name != "close" and call.phase in ("applying", "committing", "cleaning"):
            run = _run_moved(shape, call)
            yield at("places", "workspace moved", shape, call, "killed", run)
            run = _run_made_anew(shape, call)
            yield at("places", "workspace made anew", shape, call, "killed", run)
            for tells_birth, place in ((True, "with its inode"), (False, "with its inode, births unknown")):
                run = _run_made_anew(shape, call, ReusedInodes(tells_birth=tells_birth))
                yield at("places", f"workspace made anew {place}", shape, call, "killed", run)


def _run_moved(shape: Shape, call: Call) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            kill(world, Signals(call.number))
            elsewhere = world.root.with_name(world.root.name + "-moved")
            world.root = world.root.rename(elsewhere)
            _require_untouched_by_recovery(world)
            recovered = world.recover(SYSTEM, moved=True)
            if recovered.kind not in ("nothing", "settled"):
                raise NotHeld(f"told of the new place, the recovery ended as {recovered}")
            require(world, allowed_after(call), lock_may_stay=True)

    return run


def _run_made_anew(shape: Shape, call: Call, reusing: ReusedInodes | None = None) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            kill(world, Signals(call.number))
            deleted = os.lstat(world.root)
            world.root.rename(world.root.with_name(world.root.name + "-moved"))
            world.root.mkdir()
            shape.build(world.root)
            if reusing is None:
                _require_untouched_by_recovery(world)
            else:
                world.system = reusing
                reusing.reused(deleted, os.lstat(world.root))
                # Where only our own folders were left to be removed, there are none, so the record may end.
                _require_untouched_by_recovery(world, may_end=call.phase != "applying")

    return run


def _require_untouched_by_recovery(world: World, *, may_end: bool = False) -> None:
    had_record = any((world.state / "recovery").iterdir())
    found = world.image()
    recovered = world.recover(world.system)
    allowed = {"unusable" if had_record else "nothing"} | ({"settled"} if may_end else set())
    if recovered.kind not in allowed:
        raise NotHeld(f"a recovery without its workspace ended as {recovered}")
    if world.image() != found:
        raise NotHeld("the recovery changed a workspace that is not its own")


# -- a disk that does not tell letter cases apart ----------------------------------------------------------------------


def folding(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """A model of a case-folding file system: every name is looked up without its case, and kept as it was made."""
    run = _run_folding(shape, None)
    yield Scenario("places", "case folding", shape.name, "all", "none", 0, "no fault", run)
    for call in calls_of(ground, shape):
        if call.changes:
            yield at("places", "case folding", shape, call, "EIO once", _run_folding(shape, call))


def _run_folding(shape: Shape, call: Call | None) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape, BlindEverywhere()) as world:
            fault = None if call is None else Fails(call.number, errno.EIO)
            outcome, _ = commit_with(fault, Folding(), world)
            judge_run(world, outcome, lasting=call is not None and call.phase in TIDIED_LATER)
            if call is None and outcome.kind != "committed":
                raise NotHeld(f"ended as {outcome}")

    return run
