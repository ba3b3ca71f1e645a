"""The marker of an unfinished commit, in the workspace itself: `<root>/.vs/roslyn-bridge/pending/<commitId>`.

The record of a commit lies in the state directory of whoever commits. A bridge of another user, or in a container, does
not see that directory, but it sees the marker, and leaves the workspace alone until it is gone. The marker also carries
the random token of the record, by which recovery knows the workspace it belongs to from a copy.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from transactions.folders import OURS, drop_folders, make_folders, sync_folders
from transactions.places import Directory, Places
from transactions.record import Owner, Unusable, decode, encode
from transactions.records import is_commit_id
from transactions.system import System

PENDING: Directory = (*OURS, "pending")

_MARKER_MAX_BYTES = 1 << 20
_DRAFT_SUFFIX = ".draft"


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker that was found. `owner` is None when it cannot be read, which changes nothing about what it means."""

    commit_id: str
    path: Path
    owner: Owner | None


def write_marker(places: Places, owner: Owner) -> None:
    """Puts a marker under the root and on the disk, with every folder that leads to it. Raises OSError."""
    make_folders(places, PENDING)
    system = places.system
    folder = places.descriptor(PENDING)
    draft = owner.commit_id + _DRAFT_SUFFIX
    descriptor = system.open_new(draft, folder, 0o644)
    try:
        rest = memoryview(encode(owner))
        while rest:
            rest = rest[system.write(descriptor, rest) :]
        system.sync(descriptor)
    finally:
        system.close(descriptor)
    system.rename(draft, folder, owner.commit_id, folder)
    sync_folders(places, PENDING)


def remove_marker(places: Places, commit_id: str) -> None:
    """Takes a marker away, and the folders that it leaves empty. What is gone already is fine. Raises OSError.

    That it is gone is on the disk after `sync_nearest` of `PENDING`.
    """
    for name in (commit_id + _DRAFT_SUFFIX, commit_id):
        with suppress(FileNotFoundError):
            places.system.remove(name, places.descriptor(PENDING))
    drop_folders(places, PENDING)


def markers(places: Places) -> tuple[Marker, ...]:
    """The markers under a root. Raises OSError when the system refuses to tell."""
    try:
        names = places.system.names(places.descriptor(PENDING))
    except FileNotFoundError:
        return ()
    return tuple(
        Marker(name, places.path(PENDING, name), read_marker(places, name))
        for name in sorted(names)
        if is_commit_id(name)
    )


def read_marker(places: Places, commit_id: str) -> Owner | None:
    """What a marker says; None when it is absent, or says nothing that can be used. Raises OSError."""
    system: System = places.system
    try:
        descriptor = system.open_file(commit_id, places.descriptor(PENDING))
    except FileNotFoundError:
        return None
    try:
        size = min(system.fstat(descriptor).st_size, _MARKER_MAX_BYTES)
        data = b""
        while len(data) < size and (piece := system.read_at(descriptor, size - len(data), len(data))):
            data += piece
        return decode(data, Owner)
    except Unusable:
        return None
    finally:
        system.close(descriptor)
