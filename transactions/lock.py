"""The commit lock: one committer, or one recovery, at a time in a root.

It is `flock` on `<root>/.vs/roslyn-bridge/locks/commit.lock`. The system gives it up when its holder dies, however that
happens; it belongs to the open file, so no other part of this process can lose it by closing something (POSIX record
locks can), and no child inherits it. A root inside a git work tree locks the top of that tree too, so that two roots of
one repository that overlap exclude each other; both are taken in the order of their paths, so two bridges cannot wait
for each other.

The name may lead to another file by the time the lock is taken: `git clean -fdx` removes it, and so does its holder at
the end, to leave nothing behind. So the locked file is compared with the name after locking, and once more right before
the first target is touched (`require_held`). Somebody who cleans up after that takes away this protection; then the
look at every file before and after its exchange still keeps everybody's writes.

Two roots outside of git of which one lies in the other do not exclude each other: nothing tells the outer one of all
that may be inner ones. There the same look is all: of two commits that meet at one file at most one succeeds and nobody's
write is lost, but both may end as conflicts, and if they meet within one exchange a person has to decide.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from transactions.errors import CommitLockFailed, TransactionError, WorkspaceBusy
from transactions.folders import OURS, drop_folders, forget_folders, make_folders
from transactions.places import Directory, Places, inode_of
from transactions.system import SYSTEM, System

LOCKS: Directory = (*OURS, "locks")
LOCK_NAME = "commit.lock"

POLL_SECONDS = 0.02
"""The system has no bounded wait for this kind of lock; asking fifty times a second costs nothing."""

SETTLE_ATTEMPTS = 20
"""How often a lock file that was removed under our hands is opened anew before the place is called unusable."""


class CommitLock:
    """The lock of one root, and of the git work tree around it, while it is held."""

    def __init__(self, holds: "tuple[_Hold, ...]") -> None:
        self._holds = holds

    @property
    def roots(self) -> tuple[Path, ...]:
        """The locked roots, in the order of locking."""
        return tuple(hold.root for hold in self._holds)

    def require_held(self) -> None:
        """Raises CommitLockFailed when a lock file was removed or replaced, so that others could lock it too."""
        for hold in self._holds:
            if not hold.is_at_its_name():
                raise CommitLockFailed(
                    f"The lock file {hold.path} was removed or replaced meanwhile; nothing was written.",
                    [hold.path],
                )


@contextmanager
def commit_lock(root: Path, *, wait: float = 0.0, system: System = SYSTEM) -> Iterator[CommitLock]:
    """Holds the commit lock of `root`. Blocks for at most `wait` seconds; run it in a worker thread.

    Raises WorkspaceBusy when somebody else holds it for longer than that, CommitLockFailed when it cannot be used.
    """
    deadline = time.monotonic() + wait
    with ExitStack() as stack:
        holds = [
            stack.enter_context(_holding(place, deadline, system))
            for place in locked_roots(Path(os.path.realpath(root)))
        ]
        yield CommitLock(tuple(holds))


def is_held(places: Places) -> bool:
    """Whether somebody commits or recovers under a root right now. Looks, and neither takes nor leaves anything.

    Raises OSError when the system refuses to tell.
    """
    forget_folders(places, LOCKS)
    try:
        descriptor = places.system.open_file(LOCK_NAME, places.descriptor(LOCKS))
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who look do not see each other
    except BlockingIOError:
        return True
    finally:
        places.system.close(descriptor)
    return False


def locked_roots(root: Path) -> list[Path]:
    """The root (without links) and the top of the git work tree that it lies in, if any, in path order (the outer one first)."""
    tops = (above for above in (root, *root.parents) if os.path.lexists(above / ".git"))
    top = next(tops, root)
    return [root] if top == root else [top, root]


class _Hold:
    """One locked file."""

    def __init__(self, places: Places, descriptor: int) -> None:
        self.root = places.root
        self.path = places.path(LOCKS, LOCK_NAME)
        self._places = places
        self._descriptor = descriptor

    def is_at_its_name(self) -> bool:
        """Whether the locked file is the one that its name leads to."""
        forget_folders(self._places, LOCKS)
        try:
            found = self._places.inode(LOCKS, LOCK_NAME)
        except OSError:
            return False
        return found == inode_of(self._places.system.fstat(self._descriptor))

    def release(self) -> None:
        """Gives the lock up and leaves nothing behind. A waiter on the removed file sees that and opens a new one."""
        system = self._places.system
        try:
            with suppress(OSError):  # a lock file that stays is found and used by the next holder
                if self.is_at_its_name():
                    system.remove(LOCK_NAME, self._places.descriptor(LOCKS))
        finally:
            with suppress(OSError):
                system.close(self._descriptor)
        with suppress(OSError):
            drop_folders(self._places, LOCKS)


@contextmanager
def _holding(root: Path, deadline: float, system: System) -> Iterator[_Hold]:
    try:
        places = Places(system, root)
    except OSError as error:
        raise _unusable(root, error) from error
    with places:
        try:
            hold = _Hold(places, _taken(places, deadline))
        except TransactionError:
            with suppress(OSError):
                drop_folders(places, LOCKS)
            raise
        try:
            yield hold
        finally:
            hold.release()


def _taken(places: Places, deadline: float) -> int:
    """A locked descriptor of the file that the name leads to."""
    removed = 0
    while True:
        try:
            descriptor = _try_once(places)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise WorkspaceBusy(
                    f"Another process commits or recovers under {places.root}.", [places.root]
                ) from error
            time.sleep(POLL_SECONDS)
            continue
        except FileNotFoundError as error:  # its holder, or somebody who cleaned up, took the folder away
            removed += 1
            if removed == SETTLE_ATTEMPTS:
                raise _unusable(places.root, error) from error
            continue
        except OSError as error:
            raise _unusable(places.root, error) from error
        if descriptor is not None:
            return descriptor
        removed += 1
        if removed == SETTLE_ATTEMPTS:
            raise CommitLockFailed(f"The lock file under {places.root} keeps being removed.", [places.root])


def _try_once(places: Places) -> int | None:
    """A locked descriptor; None when the locked file is no longer the one at its name."""
    system = places.system
    forget_folders(places, LOCKS)
    make_folders(places, LOCKS)
    descriptor = system.open_lock(LOCK_NAME, places.descriptor(LOCKS))
    try:
        system.lock(descriptor)
        if places.inode(LOCKS, LOCK_NAME) == inode_of(system.fstat(descriptor)):
            return descriptor
    except BaseException:
        with suppress(OSError):
            system.close(descriptor)
        raise
    with suppress(OSError):
        system.close(descriptor)
    return None


def _unusable(root: Path, error: OSError) -> CommitLockFailed:
    for length in range(1, len(LOCKS) + 1):
        folder = root.joinpath(*LOCKS[:length])
        if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
            return CommitLockFailed(
                f"{folder} is a link or a file. Commits need a real directory there for their lock and their artifacts: "
                "remove it, or put a directory in its place.",
                [folder],
            )
    path = root.joinpath(*LOCKS, LOCK_NAME)
    return CommitLockFailed(f"The commit lock {path} cannot be used: {error.strerror or error}.", [path])
