"""Seeded defects: mistakes in our own commit that somebody could make, each of which the scenarios must notice.

A harness that finds nothing proves nothing by it. Each defect is a change of a few words of the source (see `mutants`).
"""

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.faults import errors, kills, power, strangers
from tests.faults.judge import NotHeld
from tests.faults.mutants import changed
from tests.faults.plans import BY_NAME
from tests.faults.scenarios import NotHeldUnfaulted, Scenario
from tests.faults.worlds import Ground
from transactions import commit
from transactions.system import SYSTEM

Hunt = Callable[[Ground], Iterator[Scenario]]


@dataclass(frozen=True, slots=True)
class Defect:
    """One mistake: where `old` stands in the source of `module`, `new` is written. `hunts` are tried in turn."""

    name: str
    module: types.ModuleType
    old: str
    new: str
    hunts: tuple[Hunt, ...]


def caught(ground: Ground, defect: Defect) -> str | None:
    """What noticed the defect: the name of a scenario; None when nothing did. Raises OutOfDate."""
    with changed(defect.module, defect.old, defect.new):
        for hunt in defect.hunts:
            try:
                for scenario in hunt(ground):
                    try:
                        scenario.run(ground)
                    except NotHeld:
                        return scenario.key
            except (NotHeldUnfaulted, NotHeld):
                return "an undisturbed commit"
    return None


def _errors(name: str) -> Hunt:
    return lambda ground: errors.of_shape(ground, BY_NAME[name], "real", SYSTEM, few=True)


def _kills(name: str) -> Hunt:
    return lambda ground: kills.in_commit(ground, BY_NAME[name])


def _restores(name: str) -> Hunt:
    return lambda ground: kills.in_restore(ground, BY_NAME[name])


def _recoveries(name: str) -> Hunt:
    return lambda ground: kills.in_recovery(ground, BY_NAME[name])


def _stops(name: str) -> Hunt:
    return lambda ground: kills.stopped(ground, BY_NAME[name])


def _power(name: str) -> Hunt:
    return lambda ground: power.of_shape(ground, BY_NAME[name])


def _strangers(name: str, act: str) -> Hunt:
    return lambda ground: strangers.of_act(ground, BY_NAME[name], act)


DEFECTS: tuple[Defect, ...] = (
    Defect(
        "what came out of its place is not compared",
        commit,
        "if self._places.facts(entry.workshop, kept_name) != entry.original:",
        "if False:",
        (_strangers("replace", "an editor's safe-save"),),
    ),
)
