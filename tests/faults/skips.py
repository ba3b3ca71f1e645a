"""What could not be tried on this machine, and why; the report names it."""

from collections import Counter

SKIPPED: Counter[str] = Counter()


def skip(reason: str) -> None:
    """Counts one thing that was not tried."""
    SKIPPED[reason] += 1
