"""Running scenarios, in one process or shared among several."""

import json
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from tests.faults.judge import NotHeld
from tests.faults.scenarios import NotHeldUnfaulted, Scenario
from tests.faults.skips import SKIPPED
from tests.faults.worlds import Ground

Chosen = Callable[[Ground], Iterator[Scenario]]


@dataclass(slots=True)
class Tally:
    """What came of some scenarios, by kind; `broken` are the names of those that did not hold, with what was seen."""

    distinct: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[str, str]] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)

    def add(self, other: "Tally") -> None:
        """Takes in what another process found."""
        self.distinct.update(other.distinct)
        self.held.update(other.held)
        self.broken += other.broken
        self.skipped |= other.skipped


def run_all(ground: Ground, found: Iterable[Scenario]) -> Tally:
    """Runs each distinct scenario once."""
    tally = Tally()
    seen: set[str] = set()
    for scenario in found:
        if scenario.key in seen:
            continue
        seen.add(scenario.key)
        tally.distinct[scenario.kind] += 1
        try:
            scenario.run(ground)
        except NotHeld as error:
            tally.broken.append((scenario.key, str(error)))
        else:
            tally.held[scenario.kind] += 1
    tally.skipped.update(SKIPPED)
    return tally


def run_shared(ground: Ground, jobs: int, chosen: Chosen) -> Tally:
    """Each of `jobs` processes takes every `jobs`-th scenario. Raises NotHeldUnfaulted when one could not begin."""
    shares = [_start(ground.below(f"job{job}"), job, jobs, chosen) for job in range(jobs)]
    tally = Tally()
    for child, reading in shares:
        with os.fdopen(reading, encoding="utf-8") as stream:
            said = stream.read()
        os.waitpid(child, 0)
        found = json.loads(said or '"a process died"')
        if isinstance(found, str):
            raise NotHeldUnfaulted(found)
        distinct, held, broken, skipped = found
        tally.add(
            Tally(Counter(distinct), Counter(held), [(key, text) for key, text in broken], set(skipped))
        )
    return tally


def _start(ground: Ground, job: int, jobs: int, chosen: Chosen) -> tuple[int, int]:
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        os.close(reading)
        said = _share(ground, islice(_distinct(chosen(ground)), job, None, jobs))
        with os.fdopen(writing, "w", encoding="utf-8") as stream:
            stream.write(said)
    except BaseException as error:  # noqa: BLE001  # a forked child must not go on as its parent
        sys.stderr.write(f"in a process of its own: {error!r}\n")
    finally:
        os._exit(0)


def _distinct(found: Iterator[Scenario]) -> Iterator[Scenario]:
    seen: set[str] = set()
    for scenario in found:
        if scenario.key not in seen:
            seen.add(scenario.key)
            yield scenario


def _share(ground: Ground, found: Iterable[Scenario]) -> str:
    try:
        tally = run_all(ground, found)
    except NotHeldUnfaulted as error:
        return json.dumps(str(error))
    return json.dumps((tally.distinct, tally.held, tally.broken, sorted(tally.skipped)))
