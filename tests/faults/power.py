"""Power failures: every disk that one may leave during and after a commit, recovered (and failing again in that).

The commit runs once for each shape, on a `Recorder`. Then the disks that a failure at each moment may leave are built
from the very inodes and recovered. Disks that nobody can tell apart count once.
"""

import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.faults.arranging import Arranger
from tests.faults.disk import Entries, Event, Recorder, Snapshot, Synced
from tests.faults.failures import IMAGES_MAX, Failure, Loss
from tests.faults.images import OURS, without
from tests.faults.judge import AFTER, BEFORE, NotHeld, side_of
from tests.faults.plans import Shape
from tests.faults.scenarios import Run, Scenario, settle
from tests.faults.seam import Seam
from tests.faults.worlds import Ground, World

AGAIN_EVERY = 9
"""Every so many-th disk is recovered on a disk that fails a second time."""

PENDING = OURS + b"/roslyn-bridge/pending/"

AGAIN_MAX = 6
"""Second failures tried for such a disk."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A recorded commit, and the means to put its tree into any state that it may have been found in."""

    world: World
    recorder: Recorder
    arranger: Arranger
    events: tuple[Event, ...]
    phases: tuple[str, ...]
    returned: int  # the number of events when the commit returned
    known: frozenset[int]

    def arrange(self, snapshot: Snapshot) -> None:
        """Makes the disk hold `snapshot`."""
        self.arranger.arrange(snapshot, self.known)


def stage(ground: Ground, shape: Shape) -> Stage:
    """Runs and records the commit of a shape. The world stays until the ground is removed."""
    world = ground.lasting_world(shape)
    attic = world.root.with_name(world.root.name + "-attic")
    recorder = Recorder((world.root, world.state), attic)
    seam = _PhasedSeam(recorder)
    outcome = world.commit(seam)
    if outcome.kind != "committed":
        raise NotHeld(f"a recorded commit of {shape.name!r} ended as {outcome}")
    events = tuple(recorder.events)
    return Stage(
        world,
        recorder,
        Arranger(recorder.tops, attic),
        events,
        tuple(seam.phases),
        len(events),
        _known(recorder, events),
    )


class _PhasedSeam(Seam):
    """Remembers the phase of each recorded event."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(base=recorder)
        self._recorder = recorder
        self.phases: list[str] = []

    def through(self, name: str, arguments: tuple[object, ...], keywords: dict[str, object]) -> object:
        try:
            return super().through(name, arguments, keywords)
        finally:
            self.phases += [self.calls[-1].phase] * (len(self._recorder.events) - len(self.phases))


def _known(recorder: Recorder, events: tuple[Event, ...]) -> frozenset[int]:
    made = {
        inode
        for event in events
        if isinstance(event, Entries)
        for _, inode in event.slots
        if inode is not None
    }
    return frozenset({*recorder.start.entries.values(), *made})


def scenarios(ground: Ground, shapes: Sequence[Shape]) -> Iterator[Scenario]:
    """All of this kind."""
    for shape in shapes:
        yield from of_shape(ground, shape)


def of_shape(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """All failures during and after one commit."""
    stage_ = stage(ground, shape)
    choice = random.Random(zlib.crc32(shape.name.encode()))
    seen: set[object] = set()
    for moment in range(1, len(stage_.events) + 1):
        allowed = {AFTER} if moment >= stage_.returned else {BEFORE, AFTER}
        failure = Failure(stage_.recorder.start, stage_.events, moment, stage_.recorder.top_of)
        for loss in failure.losses(choice, IMAGES_MAX if shape.small else IMAGES_MAX // 6):
            identity = (loss.snapshot.identity(), len(allowed))
            if identity in seen:
                continue
            seen.add(identity)
            again = len(seen) % AGAIN_EVERY == 0
            yield _scenario(stage_, moment, loss, _run(stage_, loss, allowed, again=again), again=again)


def _scenario(stage_: Stage, moment: int, loss: Loss, run: Run, *, again: bool) -> Scenario:
    event = stage_.events[moment - 1]
    call = event.call if isinstance(event, Entries) else "sync" if isinstance(event, Synced) else "write"
    return Scenario(
        "power",
        "model",
        stage_.world.shape.name,
        stage_.phases[moment - 1],
        call,
        moment,
        loss.name + ("; again in the recovery" if again else ""),
        run,
    )


def _run(stage_: Stage, loss: Loss, allowed: set[str], *, again: bool) -> Run:
    def run(_: Ground) -> None:
        stage_.arrange(loss.snapshot)
        require_marker(stage_.world)
        if not again:
            settle_on(stage_.world, allowed)
            return
        recorder = Recorder(stage_.recorder.tops, stage_.recorder.attic)
        stage_.world.recover(recorder)
        settle(stage_.world, allowed)
        _fail_again(stage_, recorder, allowed)

    return run


def require_marker(world: World) -> None:
    """A half-applied tree must say so itself, to bridges that do not see our state directory. Raises NotHeld."""
    image = world.image()
    if any(name.startswith(PENDING) and not name.endswith(b".draft") for name in image):
        return
    try:
        side_of(without(image, OURS), world.before, world.after)
    except NotHeld as error:
        raise NotHeld(f"half-applied, and no marker tells it: {error}") from error


def settle_on(world: World, allowed: set[str]) -> None:
    """Recovers with a system that destroys no inode, so that the next disk can be built from them."""
    recorder = Recorder((world.root, world.state), world.root.with_name(world.root.name + "-attic"))
    recovered = world.recover(recorder)
    if recovered.kind not in ("nothing", "settled"):
        raise NotHeld(f"the recovery ended as {recovered.kind!r}: {recovered.said}")
    settle(world, allowed)


def _fail_again(stage_: Stage, recorder: Recorder, allowed: set[str]) -> None:
    """The disk fails once more during that recovery."""
    events = tuple(recorder.events)
    if not events:
        return
    arranger = Arranger(recorder.tops, recorder.attic)
    known = stage_.known | _known(recorder, events)
    choice = random.Random(len(events))
    for _ in range(AGAIN_MAX):
        failure = Failure(recorder.start, events, choice.randint(1, len(events)), recorder.top_of)
        losses = list(failure.losses(choice, 6))
        arranger.arrange(choice.choice(losses).snapshot, known)
        settle_on(stage_.world, allowed)
