"""What is tried in every place: a commit, and an error and a kill at each call that changes something."""

import errno
from collections.abc import Callable, Iterator

from tests.faults.judge import AFTER, BEFORE, NotHeld
from tests.faults.kills import kill
from tests.faults.plans import Shape
from tests.faults.scenarios import TIDIED_LATER, Run, Scenario, at, commit_with, judge_run, settle
from tests.faults.seam import Call, Fails, Signals
from tests.faults.worlds import Ground
from transactions.system import SYSTEM


def everywhere(
    place: str, shape: Shape, calls: list[Call], inside: Callable[[Run], Run]
) -> Iterator[Scenario]:
    yield Scenario("places", place, shape.name, "all", "none", 0, "no fault", inside(_run_plain(shape)))
    for call in calls:
        if call.changes and call.name != "close":
            yield at("places", place, shape, call, "EIO once", inside(_run_error(shape, call)))
            yield at("places", place, shape, call, "killed before", inside(_run_kill(shape, call.number)))


def _run_plain(shape: Shape) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            outcome, _ = commit_with(None, SYSTEM, world)
            judge_run(world, outcome, lasting=False)
            if outcome.kind != "committed":
                raise NotHeld(f"ended as {outcome}")

    return run


def _run_error(shape: Shape, call: Call) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            outcome, _ = commit_with(Fails(call.number, errno.EIO), SYSTEM, world)
            judge_run(world, outcome, lasting=call.phase in TIDIED_LATER)

    return run


def _run_kill(shape: Shape, number: int) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            kill(world, Signals(number))
            settle(world, {BEFORE, AFTER})

    return run
