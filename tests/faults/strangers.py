"""Somebody else writes to the tree in the middle of a commit, or between a crash and the recovery.

Each stranger says afterwards what he is owed (a `Claim`): the file that he made is where he put it, by inode and bytes.
The names that he had his hands on are left out of the comparison; everything else must be the whole before or the whole
after, and it must be the one that the commit spoke of.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.faults import ours
from tests.faults.acts import ACTS
from tests.faults.claims import Act, Claim
from tests.faults.images import OURS, Image, differences, without
from tests.faults.judge import AFTER, BEFORE, CLEAN_ENDS, NotHeld, require_idle, without_lock
from tests.faults.kills import RENAMES, kill
from tests.faults.plans import Shape
from tests.faults.scenarios import Run, Scenario, at, calls_of
from tests.faults.seam import Call, Interferes, Seam, Signals
from tests.faults.worlds import Ground, World
from transactions.errors import TransactionError

PREPARING_MAX = 5
"""Moments before the first target is touched."""

CRASHES_MAX = 4
"""Moments of a crash besides the renames, after which each stranger comes by before the recovery."""

ENDS = ("nothing", "settled", "conflict", "kept")
"""How a recovery may end after a stranger was there."""

GIT_MOMENTS_MAX = 12
"""Moments at which a git command runs; each costs as much as ten other scenarios."""


def scenarios(ground: Ground, shapes: Sequence[Shape]) -> Iterator[Scenario]:
    """All of this kind."""
    for shape in shapes:
        for act in ACTS if shape.small else ():
            yield from of_act(ground, shape, act.name)


def of_act(ground: Ground, shape: Shape, name: str) -> Iterator[Scenario]:
    """All that one stranger does to one shape."""
    act = next(act for act in ACTS if act.name == name)
    calls = calls_of(ground, shape)
    for target in act.targets(shape):
        yield from _in_commit(shape, act, target, calls)
        yield from _after_crash(shape, act, target, calls)


def _in_commit(shape: Shape, act: Act, target: str, calls: list[Call]) -> Iterator[Scenario]:
    changing = [call for call in calls if call.changes and call.name != "close"]
    moments = _spread([call for call in changing if call.phase == "preparing"], PREPARING_MAX)
    moments += [call for call in changing if call.phase != "preparing"]
    moments += [
        call for call in calls if call.phase in ("applying", "committing") and call.name == "open_file"
    ]
    if act.is_slow:
        moments = [call for call in moments if call.name in RENAMES] + _spread(moments, GIT_MOMENTS_MAX)
    for call in moments:
        run = _run(shape, act, target, call)
        yield at("strangers", "real", shape, call, f"{act.name} at {_shown(target)}", run)


def _after_crash(shape: Shape, act: Act, target: str, calls: list[Call]) -> Iterator[Scenario]:
    if act.needs_handle:
        return
    moments = [call for call in calls if call.changes and call.phase != "preparing"]
    renames = [call for call in moments if call.name in RENAMES]
    others = [call for call in moments if call not in renames]
    applied = next(call for call in others if call.number > renames[-1].number)
    for call in dict.fromkeys((*renames, applied, *_spread(others, CRASHES_MAX))):
        run = _run_crash(shape, act, target, call)
        yield at("strangers", "real", shape, call, f"killed, then {act.name} at {_shown(target)}", run)


def _spread(calls: list[Call], number: int) -> list[Call]:
    return calls[:: max(1, len(calls) // number)]


def _shown(target: str) -> str:
    return target.replace("/", ":")


def _run(shape: Shape, act: Act, target: str, call: Call) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            claims: list[Claim] = []
            perform = act.prepare(world, target)
            seam = Seam(Interferes(call.number, lambda: claims.append(perform())), world.system)
            outcome = world.commit(seam)
            if outcome.kind == "broken":
                raise NotHeld(f"an exception that nobody promised: {outcome.said}")
            recovered = world.recover(world.system)
            if recovered.kind not in ENDS:
                raise NotHeld(f"the recovery ended as {recovered.kind!r}: {recovered.said}")
            tidy = not outcome.evidence and recovered.kind in ("nothing", "settled")
            wanted = CLEAN_ENDS.get(outcome.kind)
            allowed = {BEFORE, AFTER} if wanted is None else {wanted}
            for claim in claims:
                _judge(world, claim, allowed, call.phase, tidy=tidy)
            if recovered.kind == "conflict":
                _decide(world, take_before=call.number % 2 == 0)

    return run


def _run_crash(shape: Shape, act: Act, target: str, call: Call) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            perform = act.prepare(world, target)
            kill(world, Signals(call.number))
            claim = perform()
            recovered = world.recover(world.system)
            if recovered.kind not in ENDS:
                raise NotHeld(f"the recovery ended as {recovered.kind!r}: {recovered.said}")
            _judge(world, claim, {BEFORE, AFTER}, "crashed", tidy=recovered.kind in ("nothing", "settled"))
            if recovered.kind == "conflict":
                _decide(world, take_before=call.number % 2 == 0)

    return run


def _decide(world: World, *, take_before: bool) -> None:
    """A person ends the conflict, one way or the other."""
    undecided = ours.undecided(world.state)
    found = without(world.image(), OURS)
    if take_before:
        try:
            ours.take_before(world.state)
        except TransactionError as error:
            if not _are_cut_off(world, [*world.shape.files, *world.shape.steps]):
                raise NotHeld(f"a person could not take the originals: {error.message}") from error
            take_before = False
    if not take_before:
        try:
            ours.keep_disk(world.state)
        except TransactionError as error:
            raise NotHeld(f"a person could not keep the disk: {error.message}") from error
    image = world.image()
    if OURS in image:
        raise NotHeld(
            f"left behind by the decision: {sorted(name for name in image if name.startswith(OURS))[-3:]}"
        )
    require_idle(world)
    if not take_before:
        if image != found:
            raise NotHeld("keeping the disk changed it: " + "; ".join(differences(image, found)[:3]))
        return
    wrong = [
        os.fsdecode(name)
        for name, entry in world.before.items()
        if world.root / os.fsdecode(name) in undecided
        if entry.kind == "file" and (name not in image or image[name].content != entry.content)
    ]
    if wrong:
        raise NotHeld(f"taking the originals left {wrong} as they were")


def _are_cut_off(world: World, names: list[str]) -> bool:
    """Whether the directory of one of these is a link or a file, or itself a directory: nothing can be put there."""
    paths = [world.root / name for name in names]
    return any(path.is_dir() or path.parent.is_symlink() or path.parent.is_file() for path in paths)


@dataclass(frozen=True, slots=True)
class _Side:
    name: str
    image: Image


def _judge(world: World, claim: Claim, allowed: set[str], moment: str, *, tidy: bool) -> None:
    """`moment` is the phase in which the stranger came. `tidy`: nothing of ours may be left."""
    image = world.image()
    said = claim.verify(image, moment)
    if said is not None:
        raise NotHeld(f"the stranger's work is gone: {said}")
    if tidy:
        if OURS in without_lock(image) if moment == "crashed" else OURS in image:
            raise NotHeld(f"left behind: {sorted(name for name in image if name.startswith(OURS))[-3:]}")
        require_idle(world)
    seen = claim.seen if tidy or claim.seen_in_conflict is None else claim.seen_in_conflict
    found = seen(without(image, OURS))
    sides = (_Side(BEFORE, seen(world.before)), _Side(AFTER, seen(world.after)))
    fits = [side.name for side in sides if not differences(found, side.image)]
    if not fits:
        nearest = min(sides, key=lambda side: len(differences(found, side.image)))
        said = "; ".join(differences(found, nearest.image)[:4])
        raise NotHeld(f"neither before nor after; nearest is {nearest.name}: {said}")
    if not allowed & set(fits):
        raise NotHeld(f"the tree is the {fits[0]}-image, and the commit said {sorted(allowed)}")
