"""All kinds of scenarios by name."""

from collections.abc import Iterator

from tests.faults import errors, kills, places, power, strangers
from tests.faults.scenarios import Generator, Scenario
from tests.faults.worlds import Ground

KINDS: dict[str, Generator] = {
    "errors": errors.scenarios,
    "kills": kills.scenarios,
    "power": power.scenarios,
    "strangers": strangers.scenarios,
    "places": places.scenarios,
}


def scenarios(ground: Ground, kinds: list[str]) -> Iterator[Scenario]:
    """All of some kinds."""
    for kind in kinds:
        yield from KINDS[kind](ground)
