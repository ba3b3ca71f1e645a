"""A picture of a tree: every entry and all that must not change about it, but nothing that may (inodes, times).

The judge compares pictures. They are taken with plain system calls, never through the code under test, and names are
bytes, because a name need not be UTF-8.
"""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass

OLD_NS = 1_000_000_000 * 1_000_000_000
"""The modification time (2001) that every file of a plan is given; a file that has another one was touched."""

OURS = b".vs"


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: `kind` is "file", "directory", "link" or "other"; `content` the bytes, or where a link leads.

    `links` is the number of names of a file; directories have 1, as theirs follows from what is in them.
    """

    kind: str
    content: bytes
    mode: int
    owner: int
    group: int
    extended: tuple[tuple[str, bytes], ...] = ()
    links: int = 1


Image = Mapping[bytes, Entry]
"""Entries by their path relative to the root, in bytes."""


def image_of(root: bytes) -> dict[bytes, Entry]:
    """Everything under `root`."""
    found: dict[bytes, Entry] = {}
    _add(root, b"", found)
    return found


def _add(directory: bytes, prefix: bytes, found: dict[bytes, Entry]) -> None:
    with os.scandir(directory) as entries:
        for item in entries:
            name = prefix + item.name
            found[name] = entry_of(item.path)
            if found[name].kind == "directory":
                _add(item.path, name + b"/", found)


def entry_of(path: bytes) -> Entry:
    """What stands at one path, which must exist."""
    status = os.lstat(path)
    mode, owner, group = stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
    if stat.S_ISLNK(status.st_mode):
        return Entry("link", os.readlink(path), mode, owner, group, (), status.st_nlink)
    if stat.S_ISDIR(status.st_mode):
        return Entry("directory", b"", mode, owner, group, extended_of(path))
    if not stat.S_ISREG(status.st_mode):
        return Entry("other", b"", mode, owner, group)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        content = os.read(descriptor, status.st_size + 1)
    finally:
        os.close(descriptor)
    return Entry("file", content, mode, owner, group, extended_of(path), status.st_nlink)


def extended_of(path: bytes) -> tuple[tuple[str, bytes], ...]:
    """The extended attributes of an entry, sorted; none where the file system has none."""
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return tuple(sorted((name, os.getxattr(path, name, follow_symlinks=False)) for name in names))
    except OSError:
        return ()


def without(image: Image, *prefixes: bytes) -> dict[bytes, Entry]:
    """An image less some entries and all below them."""
    return {
        name: entry
        for name, entry in image.items()
        if not any(name == prefix or name.startswith(prefix + b"/") for prefix in prefixes)
    }


def differences(found: Image, wanted: Image) -> list[str]:
    """What `found` has that `wanted` has not, and the other way round, for people; empty when they are equal."""
    said = []
    for name in sorted(found.keys() | wanted.keys()):
        here, there = found.get(name), wanted.get(name)
        if here != there:
            said.append(f"{os.fsdecode(name)!r}: {_shown(here)} instead of {_shown(there)}")
    return said


def _shown(entry: Entry | None) -> str:
    if entry is None:
        return "nothing"
    content = entry.content if len(entry.content) <= 40 else entry.content[:40] + b"..."
    extended = f" {dict(entry.extended)}" if entry.extended else ""
    links = f" {entry.links} names" if entry.links != 1 else ""
    return f"{entry.kind} {entry.mode:o} {entry.owner}:{entry.group} {content!r}{extended}{links}"
