"""Runs the fault harness: every call of a commit fails, dies, loses its unsynced data or meets a stranger.

Exit code 0: everything held (and every seeded defect was caught). 1: something did not; its name is printed, and
`--only NAME` repeats it. 2: an undisturbed commit already went wrong, so nothing else would mean anything.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faults import defects
from tests.faults.kinds import KINDS, scenarios
from tests.faults.plans import BY_NAME, SHAPES, Shape
from tests.faults.runs import Tally, run_all, run_shared
from tests.faults.scenarios import NotHeldUnfaulted, Scenario
from tests.faults.worlds import Ground

MEMORY = Path("/dev/shm")
SHOWN_MAX = 20
SAMPLED_SHAPES = 4
"""A sample is drawn from so many shapes, because listing the scenarios of all takes longer than running a few."""

HELD, NOT_HELD, UNUSABLE = range(3)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs what it asks for; gives the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parsed(given)
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets decides the order of some calls; a scenario must be the same one in the next run.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.faults", *given])
    is_all = not (options.kind or options.only or options.shape or options.sample is not None or options.list)
    with ground(options.on) as place:
        code = HELD
        if options.kind != "defects":
            try:
                code = _run(place, options)
            except NotHeldUnfaulted as error:
                print(f"A commit without any fault is not right: {error}")
                return UNUSABLE
        if is_all or options.kind == "defects":
            code = max(code, _run_defects(place))
    return code


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--kind", choices=[*KINDS, "defects"], help="only this kind (default: all, then the seeded defects)"
    )
    parser.add_argument("--shape", choices=BY_NAME, help="only commits of this shape")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="only N scenarios of each kind, drawn by the seed"
    )
    parser.add_argument("--seed", type=int, default=0, help="what the sample is drawn by (default 0)")
    parser.add_argument("--only", metavar="TEXT", help="only scenarios whose name contains TEXT")
    parser.add_argument(
        "--on", type=Path, metavar="DIRECTORY", help="where the trees stand (default: in memory)"
    )
    parser.add_argument(
        "--jobs", type=int, default=_processors(), help="processes at once (default: %(default)s)"
    )
    parser.add_argument("--list", action="store_true", help="print the names and run nothing")
    return parser.parse_args(arguments)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def ground(above: Path | None) -> Iterator[Ground]:
    """A directory for the trees: in memory where there is such a place, as thousands of them are made."""
    if above is None and MEMORY.is_dir():
        above = MEMORY
    with tempfile.TemporaryDirectory(
        prefix="roslyn-bridge-faults-", dir=above, ignore_cleanup_errors=True
    ) as place:
        yield Ground(Path(os.path.realpath(place)))


def _run(place: Ground, options: argparse.Namespace) -> int:
    started = time.monotonic()
    if options.list:
        for scenario in _chosen(place, options):
            print(scenario.key)
        return HELD
    if options.jobs > 1 and options.sample is None and not options.only:
        tally = run_shared(place, options.jobs, lambda own: _chosen(own, options))
    else:
        tally = run_all(place, _chosen(place, options))
    _report(tally, time.monotonic() - started)
    return NOT_HELD if tally.broken else HELD


def _chosen(place: Ground, options: argparse.Namespace) -> Iterator[Scenario]:
    """What the command line asks for. The same, in the same order, in every process."""
    choice = random.Random(options.seed)
    for kind in KINDS if options.kind is None else [options.kind]:
        found = scenarios(place, [kind], _shapes(options, choice))
        if options.only:
            found = (scenario for scenario in found if options.only in scenario.key)
        if options.sample is None:
            yield from found
        else:
            everything = list(found)
            yield from choice.sample(everything, min(options.sample, len(everything)))


def _shapes(options: argparse.Namespace, choice: random.Random) -> Sequence[Shape]:
    if options.shape is not None:
        return [BY_NAME[options.shape]]
    if options.only:
        return [shape for shape in SHAPES if f"/{shape.name}/" in options.only] or SHAPES
    return SHAPES if options.sample is None else choice.sample(SHAPES, SAMPLED_SHAPES)


def _report(tally: Tally, seconds: float) -> None:
    for key, said in tally.broken[:SHOWN_MAX]:
        print(f"NOT HELD  {key}\n    {said}\n    repeat:  scripts/faults --only {key!r}")
    if len(tally.broken) > SHOWN_MAX:
        print(f"... and {len(tally.broken) - SHOWN_MAX} more")
    print(f"{'kind':<18}{'distinct':>10}{'held':>10}")
    for kind in tally.distinct:
        print(f"{kind:<18}{tally.distinct[kind]:>10}{tally.held[kind]:>10}")
    for reason in tally.skipped:
        print(f"skipped: {reason}")
    print(f"{tally.distinct.total()} distinct scenarios, {tally.held.total()} held, in {seconds:.0f} s")


def _run_defects(place: Ground) -> int:
    started = time.monotonic()
    missed = 0
    for defect in defects.DEFECTS:
        try:
            caught = defects.caught(place, defect)
        except defects.OutOfDate as error:
            caught = None
            print(f"out of date: {error}")
        missed += caught is None
        print(
            f"MISSED  {defect.name}" if caught is None else f"caught  {defect.name}\n            by {caught}"
        )
    number = len(defects.DEFECTS)
    print(f"{number} seeded defects, {number - missed} caught, in {time.monotonic() - started:.0f} s")
    return NOT_HELD if missed else HELD


if __name__ == "__main__":
    sys.exit(main())
