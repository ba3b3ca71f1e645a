"""Runs the fault harness: `python -m tests.faults`; see `--help`. `scripts/faults` sets the environment up first.

Exit code 0: everything held (and every seeded defect was caught). 1: something did not. 2: the harness itself could not
run, or an undisturbed commit already went wrong.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faults import defects
from tests.faults.judge import NotHeld
from tests.faults.kinds import KINDS, scenarios
from tests.faults.scenarios import NotHeldUnfaulted, Scenario
from tests.faults.skips import SKIPPED
from tests.faults.worlds import Ground

MEMORY = Path("/dev/shm")
SHOWN_MAX = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the command line and runs what it asks for."""
    options = _parsed(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets decides the order of some calls; a scenario must be the same one in the next run.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.faults", *(arguments or sys.argv[1:])])
    with ground(options.on) as place:
        if options.kind == "defects":
            return _run_defects(place)
        held = _run(place, options)
        caught = (
            _run_defects(place) if options.kind is None and options.sample is None and not options.only else 0
        )
    return max(held, caught)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__)
    parser.add_argument(
        "--kind", choices=[*KINDS, "defects"], help="only this kind (default: all, then the defects)"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="only N scenarios, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0, help="what the sample is drawn by (default 0)")
    parser.add_argument("--only", metavar="TEXT", help="only scenarios whose name contains TEXT")
    parser.add_argument(
        "--on", type=Path, metavar="DIRECTORY", help="where the trees stand (default: in memory)"
    )
    parser.add_argument("--list", action="store_true", help="print the names and run nothing")
    return parser.parse_args(arguments)


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
    kinds = list(KINDS) if options.kind is None else [options.kind]
    found: Iterator[Scenario] | list[Scenario] = scenarios(place, kinds)
    if options.only:
        found = (scenario for scenario in found if options.only in scenario.key)
    if options.sample is not None:
        everything = list(found)
        found = random.Random(options.seed).sample(everything, min(options.sample, len(everything)))
    if options.list:
        for scenario in found:
            print(scenario.key)
        return 0
    try:
        return _judge_all(place, found)
    except NotHeldUnfaulted as error:
        print(f"A commit without any fault is not right: {error}")
        return 2


def _judge_all(place: Ground, found: Iterator[Scenario] | list[Scenario]) -> int:
    started = time.monotonic()
    distinct: Counter[str] = Counter()
    held: Counter[str] = Counter()
    seen: set[str] = set()
    broken: list[tuple[str, str]] = []
    for scenario in found:
        if scenario.key in seen:
            continue
        seen.add(scenario.key)
        distinct[scenario.kind] += 1
        try:
            scenario.run(place)
        except NotHeld as error:
            broken.append((scenario.key, str(error)))
        else:
            held[scenario.kind] += 1
    _report(distinct, held, broken, time.monotonic() - started)
    return 1 if broken else 0


def _report(
    distinct: Counter[str], held: Counter[str], broken: Sequence[tuple[str, str]], seconds: float
) -> None:
    for key, said in broken[:SHOWN_MAX]:
        print(f"NOT HELD  {key}\n    {said}\n    repeat:  scripts/faults --only {key!r}")
    if len(broken) > SHOWN_MAX:
        print(f"... and {len(broken) - SHOWN_MAX} more")
    print(f"{'kind':<18}{'distinct':>10}{'held':>10}")
    for kind in distinct:
        print(f"{kind:<18}{distinct[kind]:>10}{held[kind]:>10}")
    for reason, count in SKIPPED.items():
        print(f"skipped: {reason}" + (f" ({count} times)" if count > 1 else ""))
    print(f"{distinct.total()} distinct scenarios, {held.total()} held, in {seconds:.0f} s")


def _run_defects(place: Ground) -> int:
    started = time.monotonic()
    missed = 0
    for defect in defects.DEFECTS:
        caught = defects.caught(place, defect)
        missed += caught is None
        print(
            f"{'MISSED' if caught is None else 'caught':<8}{defect.name}"
            + (f"  by {caught}" if caught else "")
        )
    number = len(defects.DEFECTS)
    print(f"{number} seeded defects, {number - missed} caught, in {time.monotonic() - started:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
