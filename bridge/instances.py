"""Which bridges have a workspace open: status files under its root, for people and agents to coordinate by.

Each open workspace has one file, ``<root>/.vs/roslyn-bridge/instances/<instanceId>.json``, and its bridge holds a lock
(``flock``) on it as long as it lives.  The system drops the lock with the process, however that ends, so a file that
can be locked is stale, and whoever finds it removes it.  The file is written in place, padded with blanks so that it
never shrinks: a new name for each state would lose the lock.

All of this is advice.  It never stands in the way of a call, and nothing about commits is decided by it: a root that
cannot be written has no status file, and a warning says so.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import threading
import uuid
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from bridge.states import State
from schemas.surrogates import scrubbed_text
from transactions.folders import OURS, drop_folders, forget_folders, make_folders
from transactions.places import Directory, Places, inode_of
from transactions.system import SYSTEM, rename_is_missing

INSTANCES: Directory = (*OURS, "instances")
HIDING = ".gitignore"
"""Hides the folder from git, itself included."""

LARGEST_STATUS = 64 * 1024
"""Bytes of a status file; ours have a few hundred."""

MOST_INSTANCES = 64
"""Status files that are looked at; a folder with more of them was filled by somebody else."""

CREATE_ATTEMPTS = 5
"""Each further attempt needs somebody who takes our file for a stale one in the instant before it is locked."""

WorkspaceState: TypeAlias = Literal[
    "Ready", "TransactionActive", "TransactionConflicted", "WorkspaceOutOfDate"
]

_STATUS_NAME = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.json")


class InstanceStatus(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What one bridge says about one workspace."""

    instance_id: str
    loaded_path: str
    workspace_root: str
    workspace_state: WorkspaceState
    transaction_revision: int | None = None
    commit_id: str | None = None
    commit_phase: str | None = None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The other live bridges in a root; ``unreadable`` are the files of live ones that say nothing usable."""

    instances: tuple[InstanceStatus, ...] = ()
    unreadable: tuple[str, ...] = ()


class Instance:
    """The status file of one open workspace.  Methods block briefly, never raise, and may be called from any thread."""

    def __init__(self, root: Path, loaded_path: Path) -> None:
        self.id = str(uuid.uuid4())
        self.problem: str | None = None
        """Why others cannot see this workspace, if they cannot."""
        self.lacks_exchange = False
        """Whether the root's file system cannot let two files change places in one step; known once the file is there."""
        self._root = Path(os.path.realpath(root))
        self._status = InstanceStatus(
            instance_id=self.id,
            loaded_path=scrubbed_text(str(loaded_path)),
            workspace_root=scrubbed_text(str(root)),
            workspace_state="Ready",
        )
        self._file: _HeldFile | None = None
        self._turn = threading.Lock()
        self._is_closed = False

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.id}.json"

    def publish_state(self, state: State, revision: int | None) -> None:
        """Say where the workspace stands; ``revision`` is the transaction's.  A new transaction forgets the last commit."""
        with self._turn:
            begins = state is State.TRANSACTION_ACTIVE and self._status.workspace_state != state.value
            self._status = msgspec.structs.replace(
                self._status,
                workspace_state=state.value,
                transaction_revision=revision,
                commit_id=None if begins else self._status.commit_id,
                commit_phase=None if begins else self._status.commit_phase,
            )
            self._write()

    def publish_phase(self, commit_id: str, phase: str) -> None:
        """Say how far a commit is."""
        with self._turn:
            self._status = msgspec.structs.replace(self._status, commit_id=commit_id, commit_phase=phase)
            self._write()

    def _write(self) -> None:
        if self._is_closed:
            return
        try:
            with Places(SYSTEM, self._root) as places:
                if self._file is None or not self._file.is_at_its_name(places):
                    self._drop()
                    self._file = _created(places, self.name)
                    self.lacks_exchange = _lacks_exchange(places, self.id)
            self._file.write(msgspec.json.encode(self._status))
            self.problem = None
        except OSError as error:
            self._drop()
            self.problem = error.strerror or str(error)

    def _drop(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Take the file away, and the folders that it leaves empty."""
        with self._turn:
            self._is_closed = True
            if self._file is None:
                return
            with suppress(OSError), Places(SYSTEM, self._root) as places:
                if self._file.is_at_its_name(places):
                    SYSTEM.remove(self.name, places.descriptor(INSTANCES))
                _tidy(places)
            self._drop()


class _HeldFile:
    """A locked status file."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        self._size = 0

    def is_at_its_name(self, places: Places) -> bool:
        """Whether the file is the one that its name leads to; ``git clean`` may have taken it away."""
        return places.inode(INSTANCES, self._name) == inode_of(os.fstat(self._descriptor))

    def write(self, data: bytes) -> None:
        """One write, never shorter than the last: a reader sees an old status or a new one."""
        self._size = max(self._size, len(data))
        os.pwrite(self._descriptor, data.ljust(self._size), 0)

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._descriptor)


def _created(places: Places, name: str) -> _HeldFile:
    """A new, locked status file at its name.  Raises OSError."""
    for _ in range(CREATE_ATTEMPTS):
        forget_folders(places, INSTANCES)
        make_folders(places, INSTANCES)
        try:
            _hide(places)
            descriptor = SYSTEM.open_new(name, places.descriptor(INSTANCES), 0o644)
        except FileNotFoundError:  # another bridge that closes has removed the folder
            continue
        held = _HeldFile(descriptor, name)
        try:
            SYSTEM.lock(descriptor)
            if held.is_at_its_name(places):
                return held
        except BlockingIOError:  # being looked at, and removed
            pass
        except BaseException:
            held.close()
            raise
        held.close()
        with suppress(FileNotFoundError):
            SYSTEM.remove(name, places.descriptor(INSTANCES))
    raise OSError(errno.EBUSY, "the status file keeps being removed")


def _lacks_exchange(places: Places, instance_id: str) -> bool:
    """Try it on two files of our own: no answer of the system but this one can be believed.  Raises OSError."""
    folder = places.descriptor(INSTANCES)
    names = (f"{instance_id}.a", f"{instance_id}.b")
    try:
        for name in names:
            SYSTEM.close(SYSTEM.open_new(name, folder, 0o600))
        SYSTEM.exchange(names[0], folder, names[1], folder)
    except OSError as error:
        if not rename_is_missing(error):
            raise
        return True
    finally:
        for name in names:
            with suppress(FileNotFoundError):
                SYSTEM.remove(name, folder)
    return False


def _hide(places: Places) -> None:
    with suppress(FileExistsError):
        descriptor = SYSTEM.open_new(HIDING, places.descriptor(INSTANCES), 0o644)
        try:
            SYSTEM.write(descriptor, memoryview(b"*\n"))
        finally:
            SYSTEM.close(descriptor)


def _tidy(places: Places) -> None:
    """Remove our folders when nothing but the hiding file is left in them.  Raises OSError."""
    folder = places.descriptor(INSTANCES)
    if set(SYSTEM.names(folder)) <= {HIDING}:
        with suppress(FileNotFoundError):
            SYSTEM.remove(HIDING, folder)
        drop_folders(places, INSTANCES)


def neighbours(root: Path, ours: Collection[str]) -> Neighbours:
    """The other live bridges in a root; stale files are removed.  ``ours`` are the ids of this process.

    Blocks.  Raises OSError when the folder cannot be read.
    """
    live: list[InstanceStatus] = []
    unreadable: list[str] = []
    with Places(SYSTEM, Path(os.path.realpath(root))) as places:
        try:
            names = sorted(SYSTEM.names(places.descriptor(INSTANCES)))
        except FileNotFoundError:
            return Neighbours()
        own = {f"{instance_id}.json" for instance_id in ours}
        others = [name for name in names if _STATUS_NAME.fullmatch(name) and name not in own]
        for name in others[:MOST_INSTANCES]:
            try:
                data = _live_data(places, name)
            except FileNotFoundError:
                continue
            except OSError:
                unreadable.append(name)
                continue
            if data:
                _sort_in(name, data, live, unreadable)
    return Neighbours(tuple(live), tuple(unreadable))


def _sort_in(name: str, data: bytes, live: list[InstanceStatus], unreadable: list[str]) -> None:
    try:
        status = msgspec.json.decode(data, type=InstanceStatus)
    except (msgspec.DecodeError, UnicodeDecodeError):
        unreadable.append(name)
        return
    live.append(status)


def _live_data(places: Places, name: str) -> bytes:
    """What a live bridge says; empty when it has not said anything yet, or is gone (then its file goes too).

    Raises OSError, also for what is no file or far too large.
    """
    descriptor = SYSTEM.open_file(name, places.descriptor(INSTANCES))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_STATUS:
            raise OSError(errno.EINVAL, "no status file")
        try:
            # Shared, so that two who look at once do not take each other for the owner.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(descriptor, LARGEST_STATUS, 0)
        with suppress(OSError):  # another user's: it stays, and is passed over every time
            if places.inode(INSTANCES, name) == inode_of(status):
                SYSTEM.remove(name, places.descriptor(INSTANCES))
        return b""
    finally:
        os.close(descriptor)
