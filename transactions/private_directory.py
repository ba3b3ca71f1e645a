"""What makes a directory for private state unusable, in words that say what to do about it.

What is read in it is acted on, so it must be a real directory, the user's own, and closed to everybody else.
"""

import errno
import os
import pwd
import shlex
import stat
from pathlib import Path

OTHERS = 0o077
WRITABLE_BY_OTHERS = 0o022

ANOTHER_PLACE = "choose another place with --state-directory"

_OFTEN_FOR_WHAT_STANDS_THERE = frozenset(
    {errno.ENOTDIR, errno.ELOOP, errno.EEXIST, errno.EACCES, errno.EPERM}
)
"""Refusals that say less than a look at the place does."""

_ADVICE = {
    errno.EROFS: "Make that file system writable",
    errno.EACCES: "Give yourself the right to write there",
    errno.EPERM: "Give yourself the right to write there",
    errno.ENOSPC: "Make room there",
    errno.EDQUOT: "Make room there",
}


def trouble_with(path: Path, status: os.stat_result) -> str | None:
    """Why a directory (or what stands in its place) is not private, continuing a sentence about it; None if it is."""
    if stat.S_ISLNK(status.st_mode):
        return f"is a link, which is not followed. Put a directory in its place, or {ANOTHER_PLACE}."
    if not stat.S_ISDIR(status.st_mode):
        return f"is no directory. Move it away, or {ANOTHER_PLACE}."
    if status.st_uid != os.geteuid():
        return f"belongs to another user ({user_name(status.st_uid)}). Run this as that user, or {ANOTHER_PLACE}."
    mode = f"(mode {stat.S_IMODE(status.st_mode):04o})"
    closing = f"chmod 700 {shlex.quote(os.fspath(path))}"
    if status.st_mode & WRITABLE_BY_OTHERS:
        return f"can be written by other users {mode}, so what is in it may be theirs. Look at it, then: {closing}"
    if status.st_mode & OTHERS:
        return f"is open to other users {mode}. Close it: {closing}"
    return None


def is_only_readable_by_others(status: os.stat_result) -> bool:
    """Whether a directory has no other trouble than that others may look into it, so that its owner may just close it."""
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & WRITABLE_BY_OTHERS
    )


def refusal(path: Path, error: OSError) -> str:
    """Why the system refuses a directory, continuing a sentence about it."""
    said = trouble_with_entry(path) if error.errno in _OFTEN_FOR_WHAT_STANDS_THERE else None
    if said is not None:
        return said
    advice = _ADVICE.get(error.errno or 0, "Mend that")
    return f"cannot be used{_named(path, error)}: {error.strerror or error}. {advice}, or {ANOTHER_PLACE}."


def trouble_with_entry(path: Path) -> str | None:
    """The same for whatever stands at a path now; None also where nothing does.

    A file above it is named, and so is another user's folder that hides it.
    """
    is_hidden = False
    for place in (path, *path.parents):
        try:
            status = place.lstat() if place == path else place.stat()
        except OSError as error:
            is_hidden = isinstance(error, PermissionError)
            continue
        return trouble_with(path, status) if place == path else _trouble_above(place, status, is_hidden)
    return None


def _trouble_above(place: Path, status: os.stat_result, is_hidden: bool) -> str | None:
    if not stat.S_ISDIR(status.st_mode):
        return f"cannot be made: {place} is no directory. {ANOTHER_PLACE.capitalize()}."
    if is_hidden and status.st_uid != os.geteuid():
        owner = user_name(status.st_uid)
        return f"lies in {place}, which is closed to all but its user ({owner}). Run this as {owner}, or {ANOTHER_PLACE}."
    return None


def _named(path: Path, error: OSError) -> str:
    """The place that the system names, if it is another one."""
    named = error.filename
    is_another = isinstance(named, str) and Path(named).is_absolute() and Path(named) != path
    return f" ({named})" if is_another else ""


def user_name(number: int) -> str:
    """The name of a user; the number where the system knows none, as for users of a container."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
