"""What a scenario is, and what all kinds of them need."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.faults.images import OURS, without
from tests.faults.judge import AFTER, BEFORE, CLEAN_ENDS, NotHeld, require, require_outcome, side_of
from tests.faults.plans import Shape
from tests.faults.seam import Call, Fault, Seam
from tests.faults.worlds import Ground, Outcome, World
from transactions.system import SYSTEM, System

TIDIED_LATER = frozenset({"committing", "cleaning"})
"""Phases in which an error may leave our own things for the recovery to remove; the tree is right at once."""

Run = Callable[[Ground], None]
"""Plays a scenario on some ground. Raises NotHeld."""

Generator = Callable[[Ground, Sequence[Shape]], Iterator["Scenario"]]
"""All scenarios of one kind for some shapes."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One thing that can go wrong in one place. Two are the same when all of these fields are; seeds do not count.

    `place` is the system or file system it happens on. `run` raises NotHeld.
    """

    kind: str
    place: str
    shape: str
    phase: str
    call: str
    index: int
    fault: str
    run: Run = field(compare=False, repr=False)

    @property
    def key(self) -> str:
        """The name under which it can be repeated."""
        return f"{self.kind}/{self.place}/{self.shape}/{self.phase}/{self.call}#{self.index}/{self.fault}"


def at(  # noqa: PLR0917  # the fields of a scenario, in their order
    kind: str, place: str, shape: Shape, call: Call, fault: str, run: Run
) -> Scenario:
    """A scenario that happens at one call of a commit."""
    return Scenario(kind, place, shape.name, call.phase, call.name, call.index, fault, run)


class NotHeldUnfaulted(Exception):
    """A commit without any fault did not end well: nothing that a harness finds after that means anything."""


def calls_of(ground: Ground, shape: Shape, base: System = SYSTEM) -> list[Call]:
    """The calls of an undisturbed commit. Raises NotHeldUnfaulted when that commit is not right."""
    seam = Seam(base=base)
    with ground.world(shape) as world:
        outcome = world.commit(seam)
        try:
            require_outcome(world, outcome)
        except NotHeld as error:
            raise NotHeldUnfaulted(f"{shape.name}: {error}") from error
        if outcome.kind != "committed":
            raise NotHeldUnfaulted(f"{shape.name}: {outcome}")
    return seam.calls


def judge_run(world: World, outcome: Outcome, *, lasting: bool) -> None:
    """A run with faults but without strangers. After a lasting fault our own folder may wait for the recovery."""
    if outcome.kind == "broken":
        raise NotHeld(f"an exception that nobody promised: {outcome.said}")
    wanted = CLEAN_ENDS.get(outcome.kind)
    if wanted is not None and lasting:
        # A file that could not be taken out of our folder again may have its second name there until then.
        sources = {name: replace(entry, links=1) for name, entry in without(world.image(), OURS).items()}
        if side_of(sources, world.before, world.after) != wanted:
            raise NotHeld(f"said {outcome.kind!r}, and the tree is not the {wanted}-image")
    if outcome.is_clean and not lasting:
        require_outcome(world, outcome)
    settle(world, {BEFORE, AFTER} if wanted is None else {wanted})


def settle(world: World, allowed: set[str]) -> str:
    """A recovery without faults ends at one of the allowed images; a second one finds nothing to do."""
    recovered = world.recover(SYSTEM)
    if recovered.kind not in ("nothing", "settled"):
        raise NotHeld(f"the recovery without faults ended as {recovered.kind!r}: {recovered.said}")
    side = require(world, allowed, lock_may_stay=True)
    again = world.recover(SYSTEM)
    if again.kind != "nothing":
        raise NotHeld(f"a second recovery had something to do: {again.kind!r} {again.said}")
    return side


def commit_with(fault: Fault | None, base: System, world: World) -> tuple[Outcome, Seam]:
    """One commit with a fault."""
    seam = Seam(fault, base)
    return world.commit(seam), seam
