"""Folders of ours under a root: `<root>/.vs/roslyn-bridge/...`.

Several bridges use them at once, and whoever is done removes what is empty, so a folder may vanish between being made
and being opened. Then it is made again. An empty `.vs` goes as well: nobody can tell who made it, and nobody misses it.
"""

import errno
from collections.abc import Iterable
from contextlib import suppress

from transactions.places import Directory, Places

OURS: Directory = (".vs", "roslyn-bridge")

MAKE_ATTEMPTS = 5
"""Each further attempt needs another bridge that ends its work in the same instant."""

_STAYS = frozenset({errno.ENOTEMPTY, errno.EEXIST})


def make_folders(places: Places, directory: Directory, mode: int = 0o777) -> None:
    """Makes a folder of ours with all above it; those that are there are fine. Raises OSError, also for a link.

    `mode` is that of the last one, before the umask.
    """
    for attempt in range(1, MAKE_ATTEMPTS + 1):
        try:
            for length in range(1, len(directory) + 1):
                parent = places.descriptor(directory[: length - 1])
                if places.inode(directory[: length - 1], directory[length - 1]) is None:
                    with suppress(FileExistsError):
                        last = length == len(directory)
                        places.system.make_directory(directory[length - 1], parent, mode if last else 0o777)
            places.descriptor(directory)
            return
        except OSError as error:
            forget_folders(places, directory)
            if error.errno not in (errno.ENOENT, errno.ESTALE) or attempt == MAKE_ATTEMPTS:
                raise


def forget_folders(places: Places, directory: Directory) -> None:
    """Closes a folder of ours and those above it, which somebody else may have removed and made again."""
    for length in range(len(directory), 0, -1):
        places.forget(directory[:length])


def drop_folders(places: Places, directory: Directory) -> None:
    """Removes a folder of ours and those above it as far as they are empty. Raises OSError when the system refuses."""
    for length in range(len(directory), 0, -1):
        parent = directory[: length - 1]
        try:
            places.system.remove_directory(directory[length - 1], places.descriptor(parent))
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno in _STAYS:
                return
            raise
        finally:
            places.forget(directory[:length])


def sync_nearest(places: Places, directories: Iterable[Directory]) -> None:
    """Puts on the disk that directories, or what was in them, are gone: syncs the nearest one above that is there.

    Raises OSError.
    """
    nearest = set()
    for directory in directories:
        there = directory
        while there and not places.is_directory(there[:-1], there[-1]):
            places.forget(there)
            there = there[:-1]
        nearest.add(there)
    for there in nearest:
        places.sync(there)


def sync_folders(places: Places, directory: Directory) -> None:
    """Puts a folder of ours, and every folder that leads to it from the root, on the disk. Raises OSError."""
    for length in range(len(directory), -1, -1):
        places.sync(directory[:length])
