"""How the files of an unfinished commit stand: on the disk now, and in the workshop that keeps contents of theirs."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from transactions.marker import KeptFile


def did(file: KeptFile) -> str:
    """What the commit wanted to do, in the past tense."""
    if file.before is None:
        return "created"
    return "deleted" if file.after is None else "changed"


def _hash_at(path: Path) -> str | None:
    """In hex digits; ``None`` where there is nothing.  Raises ``OSError``, also for what is no file."""
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        raise OSError(errno.EINVAL, "no file")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def standing(path: Path, file: KeptFile) -> str:
    """How the file on the disk compares with what the commit found, and with what it wanted."""
    try:
        now = _hash_at(path)
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    if now == file.before:
        return "as before the commit" if now is not None else "not there, as before the commit"
    if now == file.after:
        return "as the commit wants it" if now is not None else "gone, as the commit wants it"
    return "somebody else's" if now is not None else "missing"


def is_strangers(path: Path, file: KeptFile) -> bool:
    """Whether what stands there is neither of the two, or cannot be looked at."""
    try:
        return _hash_at(path) not in (None, file.before, file.after)
    except OSError:
        return True


def contents_kept(root: Path, file: KeptFile) -> Iterator[tuple[str, str]]:
    """The names in the workshop under which contents of a target are kept, and what each one is."""
    for name in file.kept_names:
        try:
            found = _hash_at(root.joinpath(*file.workshop, name))
        except OSError as error:
            yield name, f"what cannot be read ({error.strerror or error})"
            continue
        if found == file.before and found is not None:
            yield name, "as before the commit"
        elif found == file.after and found is not None:
            yield name, "as the commit wants it"
        elif found is not None:
            yield name, "somebody else's"
