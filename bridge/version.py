"""The version of this distribution, as the command line, the tools and the embedded server tell it."""

from __future__ import annotations

from functools import cache

DISTRIBUTION = "roslyn-bridge"


@cache
def bridge_version() -> str:
    """The version that is installed; ``0+unknown`` for a source tree that never was."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # reads the disk; not for --help

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0+unknown"
