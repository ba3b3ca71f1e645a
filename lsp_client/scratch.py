"""A private directory of one server process, gone with it.

It holds what a server in a namespace writes (``lsp_client.namespace``).  While it is in use it is locked (``flock``) by
the guard of that server, and until the guard runs by us; the system lets go of the lock with the last of the two,
however they end.  The guard takes the directory away after everything that could use it has gone.  Where even the guard
was killed, the next bridge finds a directory that nobody holds, and sweeps it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lsp_client.guard import remove_tree

MAKE_ATTEMPTS: Final = 5
"""Each further attempt needs a sweep of another bridge in the instant before the new directory is locked."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scratch:
    """The directory, and the descriptor of its lock, which is handed to the guard."""

    path: Path
    lock: int


@contextmanager
def scratch_in(parent: Path) -> Iterator[Scratch]:
    """A new locked directory in ``parent``; leaving the block lets go of our part of the lock.  Blocks briefly.

    Taking it away is the guard's; without a guard it is left to the next sweep.  Raises ``OSError``.
    """
    scratch = _made(parent)
    try:
        yield scratch
    finally:
        os.close(scratch.lock)


def _made(parent: Path) -> Scratch:
    for _ in range(MAKE_ATTEMPTS):
        path = Path(tempfile.mkdtemp(prefix="", dir=parent))
        lock = _locked(path)
        if lock is not None:
            return Scratch(path, lock)
    raise OSError(f"{parent} is being swept all the time")


def _locked(path: Path) -> int | None:
    """The descriptor of a directory that nobody else holds and that still has its name."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.lstat(path)):
            return lock
    except OSError as error:
        logger.debug("%s is in use: %s", path, error)
    os.close(lock)
    return None


def sweep(parent: Path) -> int:
    """Remove what dead processes have left in ``parent``; how many directories went.  Blocks; never raises."""
    try:
        paths = sorted(parent.iterdir())
    except OSError:
        return 0
    return sum(_swept(path) for path in paths)


def _swept(path: Path) -> bool:
    lock = _locked(path)
    if lock is None:
        return False
    try:
        remove_tree(str(path))
    finally:
        os.close(lock)
    return not path.exists()
