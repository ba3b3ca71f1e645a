"""Small trees to commit into, a picture of all that is in them, and a system whose calls fail on request."""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from transactions.baseline import Baseline
from transactions.overlay import Overlay, Staged
from transactions.system import System
from transactions.text import SourceText

Picture = dict[str, tuple[int, bytes | str]]

FOR_EVER = 1_000_000

CALLS = tuple(name for name in vars(System) if not name.startswith("_"))


def write(root: Path, files: Mapping[str, bytes]) -> None:
    """Puts files under `root`, with the directories they need."""
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def picture(root: Path) -> Picture:
    """Every entry under `root`: mode, and the bytes of a file, the target of a link, nothing for a directory."""
    found: Picture = {}
    for directory, directories, files in os.walk(root):
        for name in (*directories, *files):
            path = Path(directory) / name
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                content: bytes | str = os.fspath(path.readlink())
            else:
                content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[os.fspath(path.relative_to(root))] = (stat.S_IMODE(status.st_mode), content)
    return found


def staged(baseline: Baseline, steps: Mapping[str, str | tuple[str, str] | None]) -> Overlay:
    """An overlay made by hand: new text for a name, (old name, text) for a move, None for a deletion."""
    draft = Overlay(baseline).draft()
    root = baseline.root
    for name, step in steps.items():
        path = root / name
        if step is None:
            draft.delete(path)
            continue
        origin, text = (name, step) if isinstance(step, str) else step
        like = baseline.text(root / origin)
        known = None if like is None else root / origin
        draft.put(path, Staged(SourceText.new(text, like=like), known))
    return draft.freeze()


@dataclass
class FaultySystem(System):
    """Counts the calls; the one with number `fail_at` (from zero) fails, and so do those after it, `times` in all.

    `after` lets the call take effect before it reports its failure. `interfere` runs before the call with that number.
    """

    fail_at: int | None = None
    error: int = 0
    after: bool = False
    times: int = 1
    interfere: Mapping[int, Callable[[], None]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def __getattribute__(self, name: str) -> object:
        method = object.__getattribute__(self, name)
        if name not in CALLS:
            return method

        def call(*arguments: object, **keywords: object) -> object:
            number = len(self.calls)
            self.calls.append(name)
            if number in self.interfere:
                self.interfere[number]()
            if not self._fails(number):
                return method(*arguments, **keywords)
            # A descriptor is closed whatever close reports, and a test must not run out of them.
            if self.after or name == "close":
                result = method(*arguments, **keywords)
                if name.startswith("open_") and isinstance(result, int):
                    os.close(result)
            raise OSError(self.error, os.strerror(self.error))

        return call

    def _fails(self, number: int) -> bool:
        return self.fail_at is not None and self.fail_at <= number < self.fail_at + self.times


class WithoutRenames(System):
    """A file system that knows no exchange and no rename without replacing."""

    links = True

    def exchange(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        raise OSError(errno.EINVAL, "no exchange here")

    def move(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        raise OSError(errno.EINVAL, "no such rename here")

    def link(self, old: str, old_directory: int, new: str, new_directory: int) -> None:
        if not self.links:
            raise OSError(errno.EPERM, "no links here")
        super().link(old, old_directory, new, new_directory)


class FaultyWithoutRenames(FaultySystem, WithoutRenames):
    """Both at once."""


class Killed(BaseException):
    """The process is dead. Nothing may catch it, and nothing that runs while it flies may change the disk."""


@dataclass
class DyingSystem(System):
    """Dies at the call with number `die_at`: before it takes effect, or after it. From then on no call does anything.

    Only descriptors are still closed, as the real system would do for a dead process; that also gives up its locks.
    """

    die_at: int | None = None
    after: bool = False
    calls: list[str] = field(default_factory=list)
    is_dead: bool = False

    def __getattribute__(self, name: str) -> object:
        method = object.__getattribute__(self, name)
        if name not in CALLS:
            return method

        def call(*arguments: object, **keywords: object) -> object:
            if self.is_dead and name == "close":
                return method(*arguments, **keywords)
            number = len(self.calls)
            self.calls.append(name)
            dies_now = not self.is_dead and number == self.die_at
            if name == "close" or not (self.is_dead or (dies_now and not self.after)):
                try:
                    result = method(*arguments, **keywords)
                except OSError:
                    if not dies_now:
                        raise
                    result = None
                if not dies_now:
                    return result
                if name.startswith("open_") and isinstance(result, int):
                    os.close(result)
            self.is_dead = True
            raise Killed

        return call
