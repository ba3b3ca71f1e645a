"""The marker of an unfinished commit, in the workspace itself: `<root>/.vs/roslyn-bridge/pending/<commitId>`.

The record of a commit lies in the state directory of whoever commits. A bridge of another user, or in a container, does
not see that directory, but it sees the marker, and leaves the workspace alone until it is gone. The marker also carries
the random token of the record, by which recovery knows the workspace it belongs to from a copy.

It says where its record is, and to which path each file in the workshops belongs, with the hashes of what stood there and
of what the commit wanted: should the record be lost, a person can still tell what is kept, and copy it out. A marker lies
in a tree that is not trusted, so all of it is only ever read, shown and copied, never acted on.
"""

import json
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from transactions.folders import OURS, drop_folders, make_folders, sync_folders
from transactions.journal import PlannedEntry
from transactions.places import Directory, Places
from transactions.record import Corrupt, Owner, RootIdentity, Unusable, require_inside, seal, unseal
from transactions.records import MANIFEST_MAX_BYTES, is_commit_id
from transactions.system import System

PENDING: Directory = (*OURS, "pending")

_MARKER_MAX_BYTES = MANIFEST_MAX_BYTES
"""The manifest says more of the same plan, and a commit whose manifest is larger is refused."""

_DRAFT_SUFFIX = ".draft"
PUT_ASIDE = "marker"
"""The name in the workshop of a marker that a person took away."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """One target of the commit. `path` is its place, `workshop` the directory that may hold its contents.

    `before` and `after` are SHA-256 in hex digits; None where there was, or was to be, no file. Paths are relative to the
    root, component by component.
    """

    number: int
    path: Directory
    workshop: Directory
    before: str | None
    after: str | None

    @property
    def name(self) -> str:
        """The relative path as text."""
        return os.path.join(*self.path)  # noqa: PTH118  # text that may be no path of this system

    @property
    def kept_names(self) -> tuple[str, str]:
        """The names that its contents can have in the workshop."""
        return f"{self.number:06}.new", f"{self.number:06}.old"


@dataclass(frozen=True, slots=True)
class Note:
    """What a marker says. Markers of the first bridges say nothing of state directory and files."""

    commit_id: str
    root: RootIdentity
    loaded_path: str | None
    state_directory: str | None = None
    files: tuple[KeptFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker that was found. `note` is None when it cannot be read, which changes nothing about what it means.

    `user` is the number of the user it belongs to.
    """

    commit_id: str
    path: Path
    user: int
    note: Note | None

    @property
    def root(self) -> Path:
        """The workspace that it stands in."""
        return self.path.parents[len(PENDING)]


def kept_files(entries: Sequence[PlannedEntry]) -> tuple[KeptFile, ...]:
    """The targets of a plan, as a marker tells of them."""
    return tuple(
        KeptFile(
            entry.number,
            (*entry.directory, entry.name),
            entry.workshop,
            None if entry.original is None else entry.original.sha256.hex(),
            None if entry.intended is None else entry.intended.sha256.hex(),
        )
        for entry in entries
    )


def note_of(owner: Owner, entries: Sequence[PlannedEntry], state_directory: Path) -> Note:
    """What the marker of a commit is to say."""
    files = kept_files(entries)
    return Note(owner.commit_id, owner.root, owner.loaded_path, os.fspath(state_directory), files)


def write_marker(places: Places, note: Note) -> None:
    """Puts a marker under the root and on the disk, with every folder that leads to it. Raises OSError."""
    make_folders(places, PENDING)
    system = places.system
    folder = places.descriptor(PENDING)
    draft = note.commit_id + _DRAFT_SUFFIX
    descriptor = system.open_new(draft, folder, 0o644)
    try:
        rest = memoryview(_encoded(note))
        while rest:
            rest = rest[system.write(descriptor, rest) :]
        system.sync(descriptor)
    finally:
        system.close(descriptor)
    system.rename(draft, folder, note.commit_id, folder)
    sync_folders(places, PENDING)


def put_marker_aside(places: Places, commit_id: str, workshop: Directory) -> None:
    """Moves a marker into a workshop, where it blocks nobody; stays where it is when there is no workshop. Raises OSError."""
    if places.is_directory(workshop[:-1], workshop[-1]):
        pending, aside = places.pair(PENDING, workshop)
        places.system.rename(commit_id, pending, PUT_ASIDE, aside)
        places.sync(workshop)


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
    found = []
    for name in sorted(filter(is_commit_id, names)):
        with suppress(FileNotFoundError):  # its commit, or its recovery, has ended meanwhile
            found.append(_marker(places, name))
    return tuple(found)


def read_marker(places: Places, commit_id: str) -> Note | None:
    """What a marker says; None when it is absent, or says nothing that can be used. Raises OSError."""
    try:
        return _marker(places, commit_id).note
    except FileNotFoundError:
        return None


def _marker(places: Places, commit_id: str) -> Marker:
    """Raises FileNotFoundError, OSError."""
    system: System = places.system
    path = places.path(PENDING, commit_id)
    status = system.lstat(commit_id, places.descriptor(PENDING))
    unread = Marker(commit_id, path, status.st_uid, None)
    if not stat.S_ISREG(status.st_mode):
        return unread
    try:
        descriptor = system.open_file(commit_id, places.descriptor(PENDING))
    except PermissionError:  # another user's, and not for us to read
        return unread
    try:
        size = min(system.fstat(descriptor).st_size, _MARKER_MAX_BYTES)
        data = b""
        while len(data) < size and (piece := system.read_at(descriptor, size - len(data), len(data))):
            data += piece
    finally:
        system.close(descriptor)
    try:
        return replace(unread, note=_decoded(data))
    except Unusable:
        return unread


def _encoded(note: Note) -> bytes:
    return seal(json.dumps(msgspec.to_builtins(note), separators=(",", ":")).encode("ascii"))


def _decoded(data: bytes) -> Note:
    """Raises Unusable."""
    try:
        note = msgspec.convert(json.loads(unseal(data)), Note)
    except (ValueError, msgspec.ValidationError, RecursionError) as error:
        raise Corrupt("Its checksum is right but its contents make no sense.") from error
    for file in note.files:
        require_inside(file.path)
        require_inside(file.workshop)
    return note
