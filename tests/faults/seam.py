"""A system that stands between the commit and the real one: it writes down every call and lets faults strike.

A *fault* is asked around each call. It may raise instead of the call, after it, shorten it, kill or stop the process,
or let a stranger act. Everything else about the call is the real system's.
"""

import errno
import os
import signal
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from transactions.system import SYSTEM, System

LOOKING = frozenset(
    {
        *("open_directory", "open_file", "read", "read_at", "fstat", "lstat", "names", "attributes"),
        *("handle", "birth_time"),
    }
)
"""Calls that change nothing. A call that nobody has told us about counts as one that changes something."""

FOR_EVER = 1_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its number in the run and among its kind (both from zero), and what was going on."""

    number: int
    name: str
    index: int
    phase: str

    @property
    def changes(self) -> bool:
        """Whether the call changes the disk."""
        return self.name not in LOOKING


Perform = Callable[[], object]


class Fault(Protocol):
    """Something that happens around one call, or around many."""

    def around(self, call: Call, perform: Perform) -> object:
        """Does the call, or not; raises OSError for a failing one."""


@dataclass(frozen=True, slots=True)
class Fails:
    """Call number `at` and those after it, `times` in all, report an error; with `after` they take effect all the same."""

    at: int
    error: int
    after: bool = False
    times: int = 1

    def around(self, call: Call, perform: Perform) -> object:
        if not self.at <= call.number < self.at + self.times:
            return perform()
        if self.after or call.name == "close":  # a descriptor is closed whatever close reports
            result = perform()
            if call.name.startswith("open_") and isinstance(result, int):
                os.close(result)
        raise OSError(self.error, os.strerror(self.error))


@dataclass(frozen=True, slots=True)
class FailsAllOf:
    """Every call of some kinds fails from number `at` on: a disk that is full, or that cannot be written any more."""

    at: int
    error: int
    names: frozenset[str]

    def around(self, call: Call, perform: Perform) -> object:
        if call.number < self.at or call.name not in self.names:
            return perform()
        if call.name == "close":
            perform()
        raise OSError(self.error, os.strerror(self.error))


class Cancelled(BaseException):
    """Somebody ends the work in the middle of it: a signal's handler, or a runtime that cancels."""


@dataclass(frozen=True, slots=True)
class Raises:
    """An exception that is no error of the system's comes out of one call, before or after its effect."""

    at: int
    error: type[BaseException]
    after: bool = False

    def around(self, call: Call, perform: Perform) -> object:
        if call.number != self.at:
            return perform()
        if self.after or call.name == "close":
            result = perform()
            if call.name.startswith("open_") and isinstance(result, int):
                os.close(result)
        raise self.error


@dataclass(frozen=True, slots=True)
class Signals:
    """The process sends itself a signal before or after one call."""

    at: int
    after: bool = False
    number: int = signal.SIGKILL

    def around(self, call: Call, perform: Perform) -> object:
        if call.number != self.at:
            return perform()
        if not self.after:
            os.kill(os.getpid(), self.number)
        try:
            return perform()
        finally:
            if self.after:
                os.kill(os.getpid(), self.number)


@dataclass(frozen=True, slots=True)
class Interferes:
    """A stranger acts just before (or after) one call."""

    at: int
    stranger: Callable[[], None]
    after: bool = False

    def around(self, call: Call, perform: Perform) -> object:
        if call.number == self.at and not self.after:
            self.stranger()
        result = perform()
        if call.number == self.at and self.after:
            self.stranger()
        return result


@dataclass(frozen=True, slots=True)
class Both:
    """Two faults; the second one is nearer to the disk."""

    outer: Fault
    inner: Fault

    def around(self, call: Call, perform: Perform) -> object:
        return self.outer.around(call, lambda: self.inner.around(call, perform))


class Seam(System):
    """The recording system. `phase` is set by who knows what is going on; `calls` grows."""

    def __init__(self, fault: Fault | None = None, base: System = SYSTEM, phase: str = "preparing") -> None:
        self.fault = fault
        self.base = base
        self.phase = phase
        self.calls: list[Call] = []
        self.short_write_at: int | None = None
        self._counts: dict[str, int] = {}

    def through(self, name: str, arguments: tuple[object, ...], keywords: dict[str, object]) -> object:
        """One call."""
        index = self._counts.get(name, 0)
        self._counts[name] = index + 1
        call = Call(len(self.calls), name, index, self.phase)
        self.calls.append(call)
        if call.number == self.short_write_at:
            arguments = _shortened(arguments)
        method = getattr(self.base, name)
        if self.fault is None:
            result: object = method(*arguments, **keywords)
            return result
        return self.fault.around(call, lambda: method(*arguments, **keywords))


def _shortened(arguments: tuple[object, ...]) -> tuple[object, ...]:
    """The arguments of a write with one byte less, or as they are when there is no byte to leave out."""
    return tuple(
        argument[:-1] if isinstance(argument, bytes | memoryview) and len(argument) > 1 else argument
        for argument in arguments
    )


def _wrapper(name: str) -> Callable[..., object]:
    def method(self: Seam, *arguments: object, **keywords: object) -> object:
        return self.through(name, arguments, keywords)

    return method


CALLS = tuple(name for name in vars(System) if not name.startswith("_") and callable(getattr(System, name)))

for _name in CALLS:
    setattr(Seam, _name, _wrapper(_name))


class WithoutRenames(System):
    """A file system that knows no exchange and no rename without replacing; with `links` it knows links."""

    def __init__(self, *, links: bool) -> None:
        self._links = links

    def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        raise OSError(errno.EINVAL, "no exchange here")

    def move(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        raise OSError(errno.EINVAL, "no such rename here")

    def link(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        if not self._links:
            raise OSError(errno.EPERM, "no links here")
        super().link(old, old_directory, new, new_directory)


class ReusedInodes(System):
    """A file system that gave the inode of a removed file to the next thing that was made, as ext4 does at once.

    Said of single entries by `reused`, so that it happens everywhere. With `tells_birth` it still knows one from the other.
    """

    def __init__(self, *, tells_birth: bool) -> None:
        self._tells_birth = tells_birth
        self._had: dict[int, int] = {}

    def reused(self, removed: os.stat_result, made: os.stat_result) -> None:
        """What was `made` has the inode of what was `removed` from now on."""
        self._had[made.st_ino] = removed.st_ino

    def fstat(self, descriptor: int) -> os.stat_result:
        return self._with_inode(super().fstat(descriptor))

    def lstat(self, name: str, directory: int) -> os.stat_result:
        return self._with_inode(super().lstat(name, directory))

    def _with_inode(self, status: os.stat_result) -> os.stat_result:
        if status.st_ino not in self._had:
            return status
        fields = list(status)
        fields[stat.ST_INO] = self._had[status.st_ino]
        return os.stat_result(fields)

    def handle(self, name: str, directory: int) -> tuple[int, bytes]:
        if not self._tells_birth:
            raise OSError(errno.EOPNOTSUPP, "no handles here")
        return super().handle(name, directory)

    def birth_time(self, name: str, directory: int) -> int | None:
        return super().birth_time(name, directory) if self._tells_birth else None
