"""Which bridges have a workspace open: status files under its root, for people and agents to coordinate by.

Each open workspace has one file, ``<root>/.vs/roslyn-bridge/instances/<instanceId>.json``, and its bridge holds a lock
(``flock``) on it as long as it lives.  The system drops the lock with the process, however that ends, so a file that
can be locked is stale, and whoever finds it removes it.

A file is never written to while others can find it: Linux lets a read of a page meet the middle of a write to it.
Each state is a new file, a **draft** beside the name.  It is locked, then written, then renamed over the name, and only
then is the old file let go.  So whoever opens the name has one whole state before him, and

* a file that stands at a name is locked as long as its bridge lives, in whatever instant one looks;
* who has opened the old file and can lock it, because its bridge let it go, finds another file at the name by then: it
  was replaced, and he looks again.  Only what can be locked *and* still stands at its name is stale.  Nobody can be at
  its name anew behind his back, since a file that is held open keeps its inode number;
* a draft is removable in the one instant before it is locked.  Its maker looks, after locking, whether it still stands
  at its name; from then on nobody can lock it, and nobody removes it.  A draft that can be locked was left by a bridge
  that was killed, and is removed like a stale file.

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
from collections.abc import Collection, Sequence
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
"""Each further attempt needs somebody who takes our draft for a stale one in the instant before it is locked."""

READ_ATTEMPTS = 5
"""Each further attempt needs a bridge that replaces its file in the instant between our opening and locking it."""

WorkspaceState: TypeAlias = Literal[
    "Ready", "TransactionActive", "TransactionConflicted", "WorkspaceOutOfDate"
]

_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_STATUS_NAME = re.compile(_UUID + r"\.json")
_DRAFT_NAME = re.compile(_UUID + r"(\.[ab])?\.draft")


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
        self._held: int | None = None
        """The descriptor that holds the lock of the file at our name."""
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
                self._replace(places, msgspec.json.encode(self._status))
            self.problem = None
        except OSError as error:
            self._withdraw()  # an old state that stays would be a wrong one
            self.problem = error.strerror or str(error)

    def _replace(self, places: Places, data: bytes) -> None:
        """Put a new file in place of the old one, and let that go.  Raises OSError."""
        draft = f"{self.id}.draft"
        descriptor = _locked_draft(places, draft)
        try:
            _write_whole(descriptor, data)
            folder = places.descriptor(INSTANCES)
            SYSTEM.rename(draft, folder, self.name, folder)
        except BaseException:
            _discard(places, draft, descriptor)
            raise
        old, self._held = self._held, descriptor
        if old is None:
            self.lacks_exchange = _lacks_exchange(places, self.id)
        else:
            SYSTEM.close(old)

    def close(self) -> None:
        """Take the file away, and the folders that it leaves empty."""
        with self._turn:
            self._is_closed = True
            self._withdraw()

    def _withdraw(self) -> None:
        if self._held is None:
            return
        with suppress(OSError), Places(SYSTEM, self._root) as places:
            if _is_at(places, self.name, self._held):
                SYSTEM.remove(self.name, places.descriptor(INSTANCES))
            _tidy(places)
        SYSTEM.close(self._held)
        self._held = None


def _is_at(places: Places, name: str, descriptor: int) -> bool:
    """Whether an open file is the one that a name leads to."""
    return places.inode(INSTANCES, name) == inode_of(SYSTEM.fstat(descriptor))


def _locked_draft(places: Places, name: str) -> int:
    """A new file that nobody else will remove, locked through the descriptor.  Raises OSError."""
    for _ in range(CREATE_ATTEMPTS):
        forget_folders(places, INSTANCES)
        make_folders(places, INSTANCES)
        try:
            _hide(places)
            descriptor = SYSTEM.open_new(name, places.descriptor(INSTANCES), 0o644)
        except FileNotFoundError:  # another bridge that closes has removed the folder
            continue
        try:
            SYSTEM.lock(descriptor)
            if _is_at(places, name, descriptor):
                return descriptor
        except BlockingIOError:  # being looked at, and removed
            pass
        except BaseException:
            _discard(places, name, descriptor)
            raise
        _discard(places, name, descriptor)
    raise OSError(errno.EBUSY, "the status file keeps being removed")


def _write_whole(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[SYSTEM.write(descriptor, rest) :]


def _discard(places: Places, name: str, descriptor: int) -> None:
    """Take one of our own drafts away and let it go, in that order: nobody need look at it."""
    with suppress(OSError):
        SYSTEM.remove(name, places.descriptor(INSTANCES))
    SYSTEM.close(descriptor)


def _lacks_exchange(places: Places, instance_id: str) -> bool:
    """Try it on two files of our own: no answer of the system but this one can be believed.  Raises OSError."""
    drafts: dict[str, int] = {}
    try:
        for name in (f"{instance_id}.a.draft", f"{instance_id}.b.draft"):
            drafts[name] = _locked_draft(places, name)
        folder = places.descriptor(INSTANCES)
        one, other = drafts
        SYSTEM.exchange(one, folder, other, folder)
    except OSError as error:
        if not rename_is_missing(error):
            raise
        return True
    finally:
        for name, descriptor in drafts.items():
            _discard(places, name, descriptor)
    return False


def _hide(places: Places) -> None:
    """Raises OSError."""
    if places.inode(INSTANCES, HIDING) is not None:
        return
    folder = places.descriptor(INSTANCES)
    draft = f"{uuid.uuid4()}.draft"
    descriptor = SYSTEM.open_new(draft, folder, 0o644)
    try:
        _write_whole(descriptor, b"*\n")
        with suppress(FileNotFoundError):  # swept: nobody locks this one, and the next state hides the folder
            SYSTEM.rename(draft, folder, HIDING, folder)
    except BaseException:
        with suppress(OSError):
            SYSTEM.remove(draft, folder)
        raise
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
        _sweep_drafts(places, names, ours)
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
            if data is not None:
                _sort_in(name, data, live, unreadable)
    return Neighbours(tuple(live), tuple(unreadable))


def _sort_in(name: str, data: bytes, live: list[InstanceStatus], unreadable: list[str]) -> None:
    try:
        status = msgspec.json.decode(data, type=InstanceStatus)
    except (msgspec.DecodeError, UnicodeDecodeError):
        unreadable.append(name)
        return
    live.append(status)


def _sweep_drafts(places: Places, names: Sequence[str], ours: Collection[str]) -> None:
    """Remove what bridges left that were killed while they wrote."""
    drafts = [n for n in names if _DRAFT_NAME.fullmatch(n) and n.partition(".")[0] not in ours]
    for name in drafts[:MOST_INSTANCES]:
        with suppress(OSError):  # gone by itself, or another user's
            _live_data(places, name)


def _live_data(places: Places, name: str) -> bytes | None:
    """What a live bridge says; ``None`` when it is gone, and then its file goes too.

    Raises OSError, also for what is no file or far too large.
    """
    for _ in range(READ_ATTEMPTS):
        descriptor = SYSTEM.open_file(name, places.descriptor(INSTANCES))
        try:
            status = SYSTEM.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_STATUS:
                raise OSError(errno.EINVAL, "no status file")
            if _is_locked(descriptor):
                return SYSTEM.read_at(descriptor, LARGEST_STATUS, 0)
            if _is_at(places, name, descriptor):
                with suppress(OSError):  # another user's: it stays, and is passed over every time
                    SYSTEM.remove(name, places.descriptor(INSTANCES))
                return None
        finally:
            SYSTEM.close(descriptor)
    raise OSError(errno.EBUSY, "the status file keeps being replaced")


def _is_locked(descriptor: int) -> bool:
    """Whether somebody else holds the lock; if nobody does, we hold a shared one until the file is closed."""
    try:
        # Shared, so that two who look at once do not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
