"""The system calls of a commit, one method each, and nothing else.

Everything that a commit and its restore do to the disk goes through one `System`, so a test can make the n-th call fail
and look at the tree. Names are single path components relative to an open directory: nothing here follows a link in
the last one. Methods raise OSError as the system reports it and decide nothing.

`renameat2`, `syncfs`, `statx` and `name_to_handle_at` are not in Python's `os`. Where the C library or the kernel lacks
them the call raises ENOSYS; `rename_is_missing` tells that answer from a real failure.
"""

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Callable

_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2

_STATX_BIRTH_TIME = 0x800
_STATX_SIZE_BYTES = 256
_STATX_TIME = struct.Struct("=qI")
_STATX_BIRTH_TIME_AT = 80
_NO_FOLLOW = 0x100

_HANDLE_MAX_BYTES = 128
_HANDLE_HEAD = struct.Struct("=Ii")  # bytes, type

_NO_SUCH_RENAME = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP})

_libc = ctypes.CDLL(None, use_errno=True)


def _libc_function(name: str, *argument_types: object) -> Callable[..., int] | None:
    function = getattr(_libc, name, None)
    if function is None:
        return None
    function.argtypes = argument_types
    function.restype = ctypes.c_int

    def call(*arguments: object) -> int:
        return int(function(*arguments))

    return call


_renameat2 = _libc_function(
    "renameat2", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint
)
_syncfs = _libc_function("syncfs", ctypes.c_int)
_statx = _libc_function("statx", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
_name_to_handle_at = _libc_function(
    "name_to_handle_at", ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int
)


def rename_is_missing(error: OSError) -> bool:
    """Whether `error` says that the system or the file system does not know this kind of rename."""
    return error.errno in _NO_SUCH_RENAME


class System:
    """The real system. A harness derives from it and lets calls fail."""

    # -- looking ------------------------------------------------------------------------------------------------------

    def open_directory(self, name: str, directory: int | None = None) -> int:
        """A descriptor of a directory; ENOTDIR or ELOOP for a link."""
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)

    def open_file(self, name: str, directory: int) -> int:
        """A descriptor for reading; ELOOP for a link. A FIFO does not block it."""
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=directory)

    def read(self, descriptor: int, size: int) -> bytes:
        """Up to `size` bytes from the current place; empty at the end."""
        return os.read(descriptor, size)

    def read_at(self, descriptor: int, size: int, offset: int) -> bytes:
        """Up to `size` bytes from `offset`; empty at the end."""
        return os.pread(descriptor, size, offset)

    def fstat(self, descriptor: int) -> os.stat_result:
        """The stat of an open file."""
        return os.fstat(descriptor)

    def lstat(self, name: str, directory: int) -> os.stat_result:
        """The stat of an entry, of a link itself."""
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def handle(self, name: str, directory: int) -> tuple[int, bytes]:
        """The file system's own handle of an entry, of a link itself: its type and its bytes. EOPNOTSUPP where it has none."""
        if _name_to_handle_at is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        buffer = ctypes.create_string_buffer(_HANDLE_HEAD.size + _HANDLE_MAX_BYTES)
        _HANDLE_HEAD.pack_into(buffer, 0, _HANDLE_MAX_BYTES, 0)
        mount = ctypes.c_int()
        if _name_to_handle_at(directory, os.fsencode(name), buffer, ctypes.byref(mount), 0) != 0:
            raise _last_error()
        size, kind = _HANDLE_HEAD.unpack_from(buffer)
        return kind, buffer.raw[_HANDLE_HEAD.size : _HANDLE_HEAD.size + size]

    def birth_time(self, name: str, directory: int) -> int | None:
        """When an entry was made, in nanoseconds since 1970; None where the file system does not keep it."""
        if _statx is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        buffer = ctypes.create_string_buffer(_STATX_SIZE_BYTES)
        if _statx(directory, os.fsencode(name), _NO_FOLLOW, _STATX_BIRTH_TIME, buffer) != 0:
            raise _last_error()
        (mask,) = struct.unpack_from("=I", buffer)
        seconds, nanoseconds = _STATX_TIME.unpack_from(buffer, _STATX_BIRTH_TIME_AT)
        return seconds * 10**9 + nanoseconds if mask & _STATX_BIRTH_TIME else None

    def names(self, directory: int) -> list[str]:
        """The entries of an open directory."""
        return os.listdir(directory)

    def attributes(self, descriptor: int) -> dict[str, bytes]:
        """The extended attributes of an open file; none where the file system has none."""
        try:
            return {name: os.getxattr(descriptor, name) for name in os.listxattr(descriptor)}
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS):
                return {}
            raise

    # -- locking ------------------------------------------------------------------------------------------------------

    def open_lock(self, name: str, directory: int) -> int:
        """A descriptor of a lock file, made if it is missing; ELOOP for a link. No child process inherits it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o666, dir_fd=directory)

    def lock(self, descriptor: int) -> None:
        """Takes the exclusive lock of an open file, or raises BlockingIOError at once. Closing it gives the lock up."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    # -- changing -----------------------------------------------------------------------------------------------------

    def open_new(self, name: str, directory: int, mode: int) -> int:
        """A descriptor for writing a file that must not exist yet; `mode` is before the umask."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, mode, dir_fd=directory)

    def write(self, descriptor: int, data: memoryview) -> int:
        """Writes some of `data` and tells how many bytes."""
        return os.write(descriptor, data)

    def set_owner(self, descriptor: int, owner: int, group: int) -> None:
        """Gives an open file away."""
        os.fchown(descriptor, owner, group)

    def set_mode(self, descriptor: int, mode: int) -> None:
        """Sets the permission bits of an open file."""
        os.fchmod(descriptor, mode)

    def set_attribute(self, descriptor: int, name: str, value: bytes) -> None:
        """Sets one extended attribute of an open file."""
        os.setxattr(descriptor, name, value)

    def remove_attribute(self, descriptor: int, name: str) -> None:
        """Takes one extended attribute from an open file or directory."""
        os.removexattr(descriptor, name)

    def touch(self, name: str, directory: int) -> None:
        """Sets an entry's times to now."""
        os.utime(name, dir_fd=directory, follow_symlinks=False)

    def close(self, descriptor: int) -> None:
        """Closes; the descriptor is gone even when this raises."""
        os.close(descriptor)

    def sync(self, descriptor: int) -> None:
        """Puts one file or directory on the disk."""
        os.fsync(descriptor)

    def sync_file_system(self, descriptor: int) -> None:
        """Puts everything of one file system on the disk."""
        if _syncfs is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if _syncfs(descriptor) != 0:
            raise _last_error()

    def make_directory(self, name: str, directory: int, mode: int = 0o777) -> None:
        """Makes a directory; `mode` is before the umask."""
        os.mkdir(name, mode, dir_fd=directory)

    def remove_directory(self, name: str, directory: int) -> None:
        """Removes an empty directory."""
        os.rmdir(name, dir_fd=directory)

    def remove(self, name: str, directory: int) -> None:
        """Removes a file or link."""
        os.unlink(name, dir_fd=directory)

    def move(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        """Renames without ever replacing; EEXIST when something stands there, ENOSYS or EINVAL when it cannot be done."""
        self._rename(old, old_directory, new, new_directory, _RENAME_NOREPLACE)

    def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        """Lets two entries change places in one step; ENOENT when one is missing, ENOSYS or EINVAL as for `move`."""
        self._rename(old, old_directory, new, new_directory, _RENAME_EXCHANGE)

    def link(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        """Gives a file a second name that must not exist yet."""
        os.link(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory, follow_symlinks=False)

    def rename(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        """The plain rename, which replaces; only for places where nothing better exists."""
        os.rename(old, new, src_dir_fd=old_directory, dst_dir_fd=new_directory)

    @staticmethod
    def _rename(old: str, old_directory: int, new: str, new_directory: int, flag: int) -> None:
        if _renameat2 is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        if _renameat2(old_directory, os.fsencode(old), new_directory, os.fsencode(new), flag) != 0:
            raise _last_error()


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


SYSTEM = System()
"""The one that is used when nobody asks for another."""
