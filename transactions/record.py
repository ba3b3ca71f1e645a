"""What a record of a commit says, and the bytes that say it.

A record is a folder of small files that are written once and never changed. Each begins with one line,

    roslyn-bridge-record VERSION LENGTH SHA256

and goes on with a body of LENGTH bytes that has that hash. The version is read before anything else is believed. A file
that is shorter than it says, or holds NULs where JSON has none, is **torn**: it is what a crash leaves of data that had
not reached the disk. Any other disagreement is **corruption**, because it cannot come from a crash.

Paths are relative to the root, component by component, and each component is checked on reading: a record is private,
but what it names is acted on. Names that are not UTF-8 survive, because JSON escapes the halves that stand for them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import msgspec

from transactions.journal import CommitPlan, PlannedDirectory, PlannedEntry
from transactions.places import Directory, FileFacts, Inode, Places

VERSION = 1
MAGIC = b"roslyn-bridge-record"

_HEADER_MAX_BYTES = 256

State = Literal["Prepared", "Applying", "Committed", "Restored", "RecoveryConflict", "RecoveryIncomplete"]


class Unusable(Exception):
    """A file of a record that cannot be used; `code` says in which way."""

    code = "RecoveryRecordUnreadable"


class Torn(Unusable):
    """What a crash left of a file that was never synced."""

    code = "RecoveryRecordTorn"


class Corrupt(Unusable):
    """Not what was written, and no crash explains it."""

    code = "RecoveryRecordCorrupt"


class VersionUnsupported(Unusable):
    """Written by a bridge that knows more than this one."""

    code = "RecoveryVersionUnsupported"


@dataclass(frozen=True, slots=True)
class RootIdentity:
    """A root as it was when the commit began. `token` is random and also stands in the marker under the root.

    `born` tells it from a directory that was given its inode later (see `places`).
    """

    path: str
    device: int
    inode: int
    token: str
    born: str | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """The first file of a record: whose commit it is. It is on the disk before anything of ours is under the root."""

    commit_id: str
    root: RootIdentity
    loaded_path: str | None


@dataclass(frozen=True, slots=True)
class PackedOriginal:
    """Where the copy of one entry's original lies in the pack, in bytes, and the attributes that went with it."""

    number: int
    offset: int
    length: int
    extended: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole plan of a commit, and where the second copy of its originals lies."""

    commit_id: str
    root: RootIdentity
    loaded_path: str | None
    entries: tuple[PlannedEntry, ...]
    directories: tuple[PlannedDirectory, ...]
    workshops: tuple[Directory, ...]
    originals: tuple[PackedOriginal, ...]

    def plan(self, places: Places) -> CommitPlan:
        """The plan as of today. Inode numbers last, but a device may have another number after a restart."""
        devices = _devices_today(self, places)

        def moved_facts(facts: FileFacts | None) -> FileFacts | None:
            return None if facts is None else replace(facts, inode=moved(facts.inode))

        def moved(inode: Inode) -> Inode:
            return devices.get(inode[0], inode[0]), inode[1]

        return CommitPlan(
            self.commit_id,
            places.root,
            tuple(
                replace(entry, original=moved_facts(entry.original), intended=moved_facts(entry.intended))
                for entry in self.entries
            ),
            tuple(replace(directory, inode=moved(directory.inode)) for directory in self.directories),
            self.workshops,
        )


@dataclass(frozen=True, slots=True)
class StateRecord:
    """One step in the life of a record. `paths` are relative to the root: the files that are not as they should be."""

    state: State
    message: str | None = None
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkshopRecord:
    """The announcement of a directory of ours that is about to be made."""

    directory: Directory


Body = TypeVar("Body", Owner, Manifest, StateRecord, WorkshopRecord)


def encode(body: Owner | Manifest | StateRecord | WorkshopRecord) -> bytes:
    """The bytes of one file of a record."""
    text = json.dumps(msgspec.to_builtins(body), separators=(",", ":")).encode("ascii")
    return seal(text)


def seal(body: bytes) -> bytes:
    """Any body with the line before it."""
    return b"%s %d %d %s\n%s" % (MAGIC, VERSION, len(body), hashlib.sha256(body).hexdigest().encode(), body)


def decode(data: bytes, kind: type[Body]) -> Body:
    """Raises Torn, Corrupt or VersionUnsupported."""
    body = unseal(data)
    try:
        value = msgspec.convert(json.loads(body), kind)
    except (ValueError, msgspec.ValidationError) as error:
        raise Corrupt("Its checksum is right but its contents make no sense.") from error
    _require_safe(value)
    return value


def unseal(data: bytes) -> bytes:
    """The body of sealed bytes. Raises Torn, Corrupt or VersionUnsupported."""
    line, newline, body = data.partition(b"\n")
    if not newline or len(line) > _HEADER_MAX_BYTES:
        if b"\0" in data[:_HEADER_MAX_BYTES] or _is_start_of_header(data):
            raise Torn("It ends, or turns to zeros, inside its first line.")
        raise Corrupt("It does not begin like a record.")
    words = line.split(b" ")
    if words[0] != MAGIC or len(words) < 2 or not words[1].isdigit():
        raise Corrupt("It does not begin like a record.")
    if int(words[1]) != VERSION:
        raise VersionUnsupported(f"It is of version {int(words[1])}; this bridge knows version {VERSION}.")
    if len(words) != 4 or not words[2].isdigit():
        raise Corrupt("Its first line makes no sense.")
    if len(body) == int(words[2]) and hashlib.sha256(body).hexdigest().encode() == words[3]:
        return body
    if len(body) < int(words[2]) or body.endswith(b"\0"):
        raise Torn("It ends, or turns to zeros, before its end.")
    raise Corrupt("Its checksum is wrong.")


def _is_start_of_header(data: bytes) -> bool:
    return len(data) <= _HEADER_MAX_BYTES and (data.startswith(MAGIC) or MAGIC.startswith(data))


def _devices_today(manifest: Manifest, places: Places) -> Mapping[int, int]:
    devices = {manifest.root.device: places.device(())}
    for entry in manifest.entries:
        facts = entry.original or entry.intended
        if facts is not None and facts.inode[0] not in devices:
            devices[facts.inode[0]] = places.device(_existing(places, entry.directory))
    return devices


def _existing(places: Places, directory: Directory) -> Directory:
    """As much of a directory's path as still leads somewhere without a link."""
    for length in range(1, len(directory) + 1):
        if not places.is_directory(directory[: length - 1], directory[length - 1]):
            return directory[: length - 1]
    return directory


def _require_safe(value: Owner | Manifest | StateRecord | WorkshopRecord) -> None:
    """Raises Corrupt when a path would lead out of the root."""
    if isinstance(value, WorkshopRecord):
        require_inside(value.directory)
    if isinstance(value, Manifest):
        for entry in value.entries:
            require_inside((*entry.directory, entry.name))
            require_inside(entry.workshop)
        for planned in value.directories:
            require_inside(planned.directory)
            require_inside(planned.workshop)
        for workshop in value.workshops:
            require_inside(workshop)


def require_inside(directory: Directory) -> None:
    """Raises Corrupt when a path that was read leads out of the root, or nowhere."""
    if not directory or any(part in ("", ".", "..") or "/" in part or "\0" in part for part in directory):
        raise Corrupt("It names a path that leads out of the root.")
