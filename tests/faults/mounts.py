"""Mounts of one's own: a process that leaves the common mount table may mount what it likes and disturbs nobody."""

import ctypes
import os
from pathlib import Path

_NEW_MOUNTS = 0x00020000
_NEW_USERS = 0x10000000
_READ_ONLY = 0x1
_REMOUNT = 0x20
_BIND = 0x1000
_RECURSIVE = 0x4000
_PRIVATE = 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)


def leave() -> None:
    """Gives this process a mount table of its own. Raises OSError where that is not allowed."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        _require(_libc.unshare(_NEW_MOUNTS))
    else:
        _require(_libc.unshare(_NEW_MOUNTS | _NEW_USERS))
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    _mount("none", Path("/"), "", _PRIVATE | _RECURSIVE, "")


def bind(source: Path, target: Path) -> None:
    """Lets a directory be seen in another place too."""
    _mount(os.fspath(source), target, "", _BIND, "")


def bind_read_only(directory: Path) -> None:
    """Makes a directory read-only for this process."""
    bind(directory, directory)
    _mount("none", directory, "", _BIND | _REMOUNT | _READ_ONLY, "")


def remount_writable(directory: Path) -> None:
    """Lifts `bind_read_only`."""
    _mount("none", directory, "", _BIND | _REMOUNT, "")


def overlay(lower: Path, upper: Path, work: Path, target: Path) -> None:
    """A file system whose changes go to `upper`."""
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    is_mapped = Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]
    _mount("overlay", target, "overlay", 0, options + ",userxattr" if is_mapped else options)


def small_memory(target: Path, *, pages: int, inodes: int) -> None:
    """A file system in memory that is full soon."""
    _mount("tmpfs", target, "tmpfs", 0, f"size={pages * 4096},nr_inodes={inodes},mode=0700")


def enlarge(target: Path) -> None:
    """Makes room in a file system that `small_memory` made."""
    _mount("none", target, "", _REMOUNT, "size=16777216,nr_inodes=8192")


def _mount(source: str, target: Path, kind: str, flags: int, options: str) -> None:
    _require(
        _libc.mount(
            source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode()
        )
    )


def _require(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
