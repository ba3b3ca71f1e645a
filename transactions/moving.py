"""Renames that never replace anything, on systems that have them and on those that do not.

`RENAME_NOREPLACE` does it in one step. Without it a hard link is the next best: making a link fails when the name is
taken. Where there are no links either (FAT), the name is looked at and then renamed to; somebody who takes the name
between the two is overwritten.
"""

import errno

from transactions.places import Directory, Places
from transactions.system import rename_is_missing

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def move(places: Places, old: Directory, old_name: str, new: Directory, new_name: str) -> None:
    """Moves an entry to a free name. Raises FileExistsError when it is taken, else OSError as the system says."""
    system = places.system
    source, target = places.pair(old, new)
    try:
        system.move(old_name, source, new_name, target)
        return
    except FileExistsError:
        if not _are_one_file(places, old, old_name, new, new_name):
            raise
        _drop_first_name(places, old, old_name, new, new_name)  # a move by link was cut short here
        return
    except OSError as error:
        if not rename_is_missing(error):
            raise
    try:
        system.link(old_name, source, new_name, target)
    except OSError as error:
        if error.errno in _NO_LINKS:
            _move_after_looking(places, old, old_name, new, new_name)
            return
        if not _are_one_file(places, old, old_name, new, new_name):
            raise
        # The link is there, from this call or from a move that was cut short: the second half is still to do.
    _drop_first_name(places, old, old_name, new, new_name)


def _are_one_file(places: Places, old: Directory, old_name: str, new: Directory, new_name: str) -> bool:
    inode = places.inode(old, old_name)
    return inode is not None and inode == places.inode(new, new_name)


def _drop_first_name(places: Places, old: Directory, old_name: str, new: Directory, new_name: str) -> None:
    """Ends a move by link. When the first name cannot be dropped the second one is, so that one name remains."""
    try:
        places.system.remove(old_name, places.descriptor(old))
    except OSError:
        if places.inode(old, old_name) is None:
            return  # it is gone all the same: the move is done
        places.system.remove(new_name, places.descriptor(new))
        raise


def _move_after_looking(places: Places, old: Directory, old_name: str, new: Directory, new_name: str) -> None:
    if places.inode(new, new_name) is not None:
        raise FileExistsError(errno.EEXIST, "the name is taken")
    source, target = places.pair(old, new)
    places.system.rename(old_name, source, new_name, target)
