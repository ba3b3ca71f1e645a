"""Which files an edit may touch, and which file a path really means.

Every refusal here is made when the edit is staged, and names the file: what a commit could not write back faithfully is
better said before anybody works on it. A path is followed to its physical place first (the repository is not trusted:
any directory in it may be a link), and that place must lie under the root, outside `.git`, `.vs`, `obj` and `bin`.
A text edit through a link changes the file that the link leads to and leaves the link alone. Renaming or deleting a link
itself is refused: the text of a link is not ours to keep.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from transactions.baseline import IGNORED_DIRECTORIES, Absent, Baseline, Fingerprint, Present
from transactions.errors import EditRefused

_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH

# Attributes of these name spaces come back by themselves or can be copied by anybody; all others need privileges.
_COPYABLE_ATTRIBUTES = ("user.", "system.posix_acl_", "security.selinux", "security.ima", "security.evm")


class Targets:
    """The gate of one planned edit. It remembers what it found out about directories, so use a new one for each plan."""

    def __init__(
        self,
        root: Path,
        baseline: Baseline,
        is_source: Callable[[Path], bool],
        is_generated: Callable[[Path], bool],
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._baseline = baseline
        self._is_source = is_source
        self._is_generated = is_generated
        self._directories: dict[str, Path] = {}
        self._writable: dict[str, str | None] = {}

    def for_edit(self, path: Path) -> Path:
        """The physical file that a text edit of `path` changes. Raises EditRefused."""
        target = self._physical(path)
        for _ in range(2):  # `realpath` gives the last link's target, so a second link means a race or a loop
            if not self._is_link(target):
                return target
            target = self._physical(Path(os.path.realpath(target)))
        raise self._refusal(path, "is a link that leads nowhere definite")

    def for_entry(self, path: Path) -> Path:
        """The physical place of the entry `path` itself, for creating, renaming and deleting. Raises EditRefused."""
        target = self._physical(path)
        if self._is_link(target):
            raise self._refusal(
                path, "is a symbolic link, which can be edited through but not moved, deleted or replaced"
            )
        return target

    def require_changeable(self, target: Path) -> None:
        """Refuses a file of the baseline that a commit could not replace faithfully. Raises EditRefused."""
        state = self._baseline.read(target)
        if isinstance(state, Absent):
            return
        reason = self._unchangeable(state) or self._unwritable_directory(target)
        if reason is not None:
            raise self._refusal(target, reason)

    def require_creatable(self, target: Path) -> None:
        """Refuses a place where a commit could not make a file. Raises EditRefused."""
        reason = self._unwritable_directory(target)
        if reason is not None:
            raise self._refusal(target, reason)

    def _physical(self, path: Path) -> Path:
        name = path.name
        if name in ("", "..") or "\0" in name:
            raise EditRefused(f"{str(path)!r} is not the path of a file.", [path])
        target = self._real_directory(path) / name
        if not self._is_source(target):
            raise self._refusal(path, "is not a C# source file")
        if self._is_generated(target):
            raise self._refusal(path, "is generated, so an edit would not last")
        return target

    def _real_directory(self, path: Path) -> Path:
        """The physical directory of a path, checked once for all files in it."""
        name = os.path.dirname(path)  # noqa: PTH120  # the cache key of a hot loop
        known = self._directories.get(name)
        if known is not None:
            return known
        if not path.is_absolute() or "\0" in name:
            raise EditRefused(f"{path} is not an absolute path of a file.", [path])
        real = Path(os.path.realpath(name))
        if not real.is_relative_to(self._root):
            raise EditRefused(f"{path} lies outside the workspace root.", [path])
        forbidden = [
            part for part in real.relative_to(self._root).parts if part.casefold() in IGNORED_DIRECTORIES
        ]
        if forbidden:
            raise self._refusal(path, f"lies under {forbidden[0]}, where nothing is edited")
        self._directories[name] = real
        return real

    def _is_link(self, target: Path) -> bool:
        state = self._baseline.read(target)
        return (
            isinstance(state, Present)
            and state.text is None
            and state.fingerprint is not None
            and stat.S_ISLNK(state.fingerprint.mode)
        )

    def _unchangeable(self, state: Present) -> str | None:
        if state.text is None or state.fingerprint is None:
            return f"is read-only to us: {state.unreadable_reason}"
        if not state.fingerprint.mode & _WRITE_BITS:
            return "is read-only: it has no write permission"
        if state.fingerprint.links > 1:
            return f"has {state.fingerprint.links} names (hard links), and a commit would part them"
        return _unowned(state.fingerprint)

    def _unwritable_directory(self, target: Path) -> str | None:
        """Why nothing can be made or replaced in the directory of `target`; None when it can."""
        name = os.path.dirname(target)  # noqa: PTH120  # the cache key of a hot loop
        if name not in self._writable:
            self._writable[name] = self._directory_reason(Path(name))
        return self._writable[name]

    def _directory_reason(self, directory: Path) -> str | None:
        try:
            status = directory.stat()
        except FileNotFoundError:
            return self._unwritable_directory(directory)
        except OSError as error:
            return f"is in a directory that cannot be looked at ({error.strerror})"
        if not stat.S_ISDIR(status.st_mode):
            return f"would stand below {directory.name}, which is not a directory"
        if not os.access(directory, os.W_OK | os.X_OK):
            return "is in a directory that we may not write to"
        return None

    def require_copyable_attributes(self, target: Path) -> None:
        """Refuses a file with extended attributes that only a privileged process could put on its successor."""
        if os.geteuid() == 0:
            return
        try:
            names = os.listxattr(target, follow_symlinks=False)
        except OSError:
            return  # a file system without extended attributes
        foreign = [name for name in names if not name.startswith(_COPYABLE_ATTRIBUTES)]
        if foreign:
            raise self._refusal(target, f"has the extended attribute {foreign[0]}, which cannot be kept")

    def _refusal(self, path: Path, reason: str) -> EditRefused:
        shown = path.relative_to(self._root) if path.is_relative_to(self._root) else path
        return EditRefused(f"{shown} {reason}.", [path])


def _unowned(fingerprint: Fingerprint) -> str | None:
    """Why the successor of a file could not be given the file's owner and group."""
    user = os.geteuid()
    if user == 0:
        return None
    if fingerprint.owner != user:
        return "belongs to another user, whose ownership a commit could not keep"
    if fingerprint.group != os.getegid() and fingerprint.group not in os.getgroups():
        return "belongs to a group that we are not in, which a commit could not keep"
    return None
