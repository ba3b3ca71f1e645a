"""All kinds of scenarios by name."""

from collections.abc import Iterator, Sequence

from tests.faults import errors, kills, places, power, strangers
from tests.faults.plans import Shape
from tests.faults.scenarios import Generator, Scenario
from tests.faults.worlds import Ground

KINDS: dict[str, Generator] = {
    "errors": errors.scenarios,
    "kills": kills.scenarios,
    "power": power.scenarios,
    "strangers": strangers.scenarios,
    "places": places.scenarios,
}


def scenarios(ground: Ground, kinds: Sequence[str], shapes: Sequence[Shape]) -> Iterator[Scenario]:
    """All of some kinds for some shapes."""
    for kind in kinds:
        yield from KINDS[kind](ground, shapes)
