"""Processes that die: SIGKILL around every call of a commit, of its restore and of recovery; two that recover at once;
one that is stopped in the middle, and goes on later.
"""

import errno
import random
import signal
from collections.abc import Callable, Iterator, Sequence

from tests.faults.children import KILLED, STOPPED, fork, in_child, proceed, wait
from tests.faults.errors import IN_FULL
from tests.faults.judge import AFTER, BEFORE, CLEAN_ENDS, NotHeld
from tests.faults.plans import Shape
from tests.faults.scenarios import Run, Scenario, at, calls_of, judge_run, settle
from tests.faults.seam import Both, Call, Fails, FailsAllOf, Fault, Seam, Signals
from tests.faults.worlds import Ground, Outcome, World
from transactions.system import SYSTEM

EITHER = {BEFORE, AFTER}

TOUCHED = frozenset({"applying", "committing", "cleaning"})
"""The phases in which a kill leaves something to recover."""

RENAMES = frozenset({"move", "exchange"})

DOUBLE_MAX = 10
"""Second faults after one kill; with more calls in the recovery than this they are spread over it."""

DOUBLE_IN_FULL = ("replace", "new directories")
"""Shapes that get every second fault after every kill."""


def scenarios(ground: Ground, shapes: Sequence[Shape]) -> Iterator[Scenario]:
    """All of this kind."""
    for shape in shapes:
        yield from in_commit(ground, shape)
        if shape.small:
            yield from in_restore(ground, shape)
            yield from in_recovery(ground, shape)
            yield from stopped(ground, shape)


# -- one kill ----------------------------------------------------------------------------------------------------------


def in_commit(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """A kill before each call that changes something, and for one shape before and after every call."""
    for call in calls_of(ground, shape):
        if not call.changes and shape.name not in IN_FULL:
            continue
        # What a call did is seen before the next one that changes something, too; after each is for one shape.
        for after in (False, True) if call.changes and shape.name in IN_FULL else (False,):
            name = "killed after" if after else "killed before"
            fault = Signals(call.number, after)
            yield at("kills", "real", shape, call, name, _run_kill(shape, fault, allowed_after(call)))


def allowed_after(call: Call) -> set[str]:
    """What a commit may become that dies at a call of an undisturbed run: once the instant is past, only one thing."""
    return {AFTER} if call.phase == "cleaning" else EITHER


def _run_kill(shape: Shape, fault: Fault, allowed: set[str]) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            kill(world, fault)
            settle(world, allowed)

    return run


def kill(world: World, fault: Fault) -> None:
    """Commits in a process that does not survive it. Raises NotHeld when it did."""
    end = in_child(lambda: world.commit(Seam(fault)).kind)
    if end != KILLED:
        raise NotHeld(f"the process was not killed but ended as {end!r}")


def in_restore(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """An error in the middle or at the end of applying, and a kill at each call of the way back."""
    applying = [call for call in calls_of(ground, shape) if call.phase == "applying"]
    middle = [call for call in applying if call.name in ("move", "exchange")]
    moments = [("error half-way", middle[len(middle) // 2])]
    if shape.name in (*IN_FULL, *DOUBLE_IN_FULL):
        moments.append(("late error", applying[-1]))
    for name, first in moments:
        error = Fails(first.number, errno.EIO)
        with ground.world(shape) as world:
            seam = Seam(error)
            world.commit(seam)
        for call in seam.calls[first.number + 1 :]:
            if call.changes:
                fault = Both(error, Signals(call.number))
                yield at(
                    "kills",
                    "real",
                    shape,
                    call,
                    f"{name}, killed in the restore",
                    _run_kill(shape, fault, {BEFORE}),
                )
                fails = Both(error, Fails(call.number, errno.EIO))
                yield at(
                    "kills", "real", shape, call, f"{name}, EIO in the restore", _run_error(shape, fails)
                )


def _run_error(shape: Shape, fault: Fault) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            judge_run(world, world.commit(Seam(fault)), lasting=True)

    return run


# -- faults in recovery ------------------------------------------------------------------------------------------------


def _kill_points(ground: Ground, shape: Shape) -> list[Call]:
    """Kills that leave different things to recover: before each changing call from the first target on."""
    return [
        call
        for call in calls_of(ground, shape)
        if call.phase in TOUCHED and call.changes and call.name != "close"
    ]


def in_recovery(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """A kill in the commit, then a kill or an error at each call of the recovery, or a second recoverer."""
    points = _kill_points(ground, shape)
    if shape.name not in DOUBLE_IN_FULL:
        points = points[:: max(1, len(points) // 6)]
    for call in points:
        first = Signals(call.number)
        for second in _spread(_recovery_calls(ground, shape, first)):
            where = f"killed, then in recovery {second.name}#{second.index}"
            faults: list[tuple[str, Callable[[int], Fault]]] = [("EIO", lambda n: Fails(n, errno.EIO))]
            if second.changes:
                faults.append(("killed", Signals))
                faults.append(("EIO after the effect", lambda n: Fails(n, errno.EIO, after=True)))
                faults.append(("no renames from here on", lambda n: FailsAllOf(n, errno.EIO, RENAMES)))
                faults.append(("ENOSPC", lambda n: Fails(n, errno.ENOSPC)))
            for name, make in faults:
                fault = make(second.number)
                run = _run_double(shape, first, fault, allowed_after(call), killed=name == "killed")
                yield at("double faults", "real", shape, call, f"{where}: {name}", run)
            if second.changes:
                run = _run_two(shape, first, second.number, allowed_after(call))
                yield at(
                    "two recoverers",
                    "real",
                    shape,
                    call,
                    f"the second one at {second.name}#{second.index}",
                    run,
                )


def _spread(calls: list[Call]) -> list[Call]:
    """The first call that changes something, every rename, and some of the others."""
    if len(calls) <= DOUBLE_MAX:
        return calls
    changing = [call for call in calls if call.changes]
    chosen = {call.number: call for call in changing if call.name in RENAMES or call is changing[0]}
    others = [call for call in calls if call.number not in chosen]
    chosen.update((call.number, call) for call in random.Random(len(calls)).sample(others, DOUBLE_MAX - 2))
    return [chosen[number] for number in sorted(chosen)]


def _recovery_calls(ground: Ground, shape: Shape, first: Fault) -> list[Call]:
    seam = Seam()
    with ground.world(shape) as world:
        kill(world, first)
        world.recover(seam)
    return seam.calls


def _run_double(shape: Shape, first: Fault, second: Fault, allowed: set[str], *, killed: bool) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            kill(world, first)
            if killed:
                end = in_child(lambda: world.recover(Seam(second)).kind)
                if end != KILLED:
                    raise NotHeld(f"the recovery was not killed but ended as {end!r}")
            else:
                end = world.recover(Seam(second)).kind
                if end not in ("nothing", "settled", "incomplete", "unusable"):
                    raise NotHeld(f"a recovery with an error ended as {end!r}")
            settle(world, allowed)

    return run


def _run_two(shape: Shape, first: Fault, number: int, allowed: set[str]) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            kill(world, first)
            stop = Signals(number, number=signal.SIGSTOP)
            child = fork(lambda: world.recover(Seam(stop)).kind)
            if wait(child) != STOPPED:
                raise NotHeld("the first recovery was not stopped")
            before = world.image()
            second = world.recover(SYSTEM)
            if second.kind not in ("busy", "nothing", "settled"):
                proceed(child)
                raise NotHeld(f"the second recovery ended as {second.kind!r}: {second.said}")
            if second.kind == "busy" and world.image() != before:
                proceed(child)
                raise NotHeld("the second recovery had no lock and changed the tree")
            end = proceed(child)
            if end not in ("nothing", "settled"):
                raise NotHeld(f"the first recovery ended as {end!r}")
            settle(world, allowed)

    return run


# -- stopped and continued ---------------------------------------------------------------------------------------------


def stopped(ground: Ground, shape: Shape) -> Iterator[Scenario]:
    """A commit is stopped before each changing call; another bridge starts and recovers; the commit goes on."""
    for call in calls_of(ground, shape):
        if call.changes and call.name != "close":
            run = _run_stopped(shape, call.number)
            yield at("stopped", "real", shape, call, "another bridge starts meanwhile", run)
            run = _run_stopped_unlocked(shape, call.number)
            yield at("stopped", "real", shape, call, "its lock is unlinked and another bridge recovers", run)


def _run_stopped(shape: Shape, number: int) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            stop = Signals(number, number=signal.SIGSTOP)
            child = fork(lambda: world.commit(Seam(stop)).kind)
            if wait(child) != STOPPED:
                raise NotHeld("the commit was not stopped")
            before = world.image()
            meanwhile = world.recover(SYSTEM)
            changed = world.image() != before
            end = proceed(child)
            if meanwhile.kind not in (
                "busy",
                "nothing",
                "settled",
            ):  # settled: there was no owner in the record yet
                raise NotHeld(f"recovered a commit that is alive: {meanwhile.kind!r} {meanwhile.said}")
            if changed:
                raise NotHeld("changed the tree of a commit that is alive")
            judge_run(world, Outcome(end), lasting=False)

    return run


def _run_stopped_unlocked(shape: Shape, number: int) -> Run:
    """The lock protects nobody any more; what each of both sees on the disk must do."""

    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            stop = Signals(number, number=signal.SIGSTOP)
            child = fork(lambda: world.commit(Seam(stop)).kind)
            if wait(child) != STOPPED:
                raise NotHeld("the commit was not stopped")
            (world.root / ".vs/roslyn-bridge/locks/commit.lock").unlink(missing_ok=True)
            meanwhile = world.recover(SYSTEM)
            end = proceed(child)
            if "broken" in (end, meanwhile.kind):
                raise NotHeld(f"an exception that nobody promised: {meanwhile.said}")
            wanted = CLEAN_ENDS.get(end)
            settle(world, EITHER if wanted is None else {wanted})

    return run
