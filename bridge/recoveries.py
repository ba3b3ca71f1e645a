"""Commits that crashes left unfinished: recovered in the background at the start, and in the way until they are over.

The front door and ``server-status`` answer at once.  What would work on a root waits a bounded time, and only when an
unfinished commit lies in that root, above or below it; then it is refused with ``RecoveryPending``.  Each such call
tries the recovery again first, so a commit that another bridge died in since then, or a fault that is lifted, needs no
restart.  What is left needs a person: ``roslyn-bridge recover``.

A bridge with another state directory (another user's, or in a container) may die in our root as well.  Its record is not
ours to recover, but its marker is in the root (``strangers``).  Every call that looks at the disk looks for both first: a
tree that is half of one state and half of another is nobody's to analyse, let alone to change.  Where there is neither,
that costs the listing of two folders.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread

from bridge.errors import BridgeError
from bridge.recover_command import RecoverCommand
from bridge.state_directory import StateDirectory
from bridge.strangers import Stranger
from transactions.errors import CommitUnrecordable
from transactions.recovery import RecoveryItem, blocks, foreign_markers, is_going_on, pending, recover

RECOVERY_WAIT = 30.0
"""Seconds that a call waits for the recovery of its own root.  Recovery renames at most a few thousand files."""

START_LOCK_WAIT = 5.0
"""Seconds that the recovery at the start waits for each lock: a bridge that is committing right now is done by then."""

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Recoveries:
    """The unfinished commits of one state directory."""

    def __init__(self, state_directory: StateDirectory, lock_wait: float) -> None:
        """``lock_wait``: seconds that a call may wait for another bridge's commit."""
        self._state = state_directory
        self._lock_wait = lock_wait
        self.command = RecoverCommand(state_directory.given)
        """What a person is told to run."""
        self._items: dict[str, RecoveryItem] = {}
        """What the last recovery said of what it left; that is more than the records say."""
        self._met: set[Path] = set()
        """Roots in which a stranger's marker was in the way."""
        self._ended = anyio.Event()
        self.problem: str | None = None
        """Why nothing could be recovered at all: the state directory cannot be used."""

    async def run(self) -> None:
        """The recovery at the start.  Never raises: what fails here stays in the way, and is told."""
        try:
            await to_thread.run_sync(self._state.mend)
            self._remember(await self._in_thread(partial(pending, self._state.path)))
            self._remember(
                await self._in_thread(partial(recover, self._state.path, wait=START_LOCK_WAIT)), whole=True
            )
        except (BridgeError, CommitUnrecordable) as error:
            self.problem = error.message
            logger.warning("the state directory cannot be used: %s", error.message)
        except Exception:
            logger.exception("the recovery at the start failed in a way that was not foreseen")
        finally:
            self._ended.set()

    async def unfinished(self, roots: Iterable[Path] = ()) -> tuple[RecoveryItem, ...]:
        """What is unfinished now: all of this state directory, and what strangers left in ``roots`` and where we were refused.

        A commit that is going on is not among it.
        """
        self._met.update(roots)
        return await self._in_thread(self._unfinished)

    def _unfinished(self) -> tuple[RecoveryItem, ...]:
        still = [item for item in self._pending() if not is_going_on(item)]
        self._items = {
            item.commit_id: self._items[item.commit_id] for item in still if item.commit_id in self._items
        }
        own = tuple(self._items.get(item.commit_id, item) for item in still)
        found = {root: self._strangers(root) for root in sorted(self._met)}
        self._met = {root for root, strangers in found.items() if strangers}
        strangers = {stranger.commit_id: stranger.item for there in found.values() for stranger in there}
        return (*own, *strangers.values())

    async def require_clear(self, root: Path) -> None:
        """Raises ``RecoveryPending`` while an unfinished commit, of ours or a stranger's, is in the way of ``root``.

        Raises ``WorkspaceBusy`` when another bridge is committing there for longer than the wait.
        """
        own, strangers = await self._in_thread(partial(self._look, root))
        if own:
            await self._recover_in(root)
        if strangers:
            self._met.add(root)
            raise BridgeError(
                "RecoveryPending",
                f"The commit {strangers[0].commit_id} in {os.fspath(strangers[0].root)} is unfinished. {strangers[0].message}",
            )

    async def is_clear(self, root: Path) -> bool:
        """Whether no unfinished commit is in the way of ``root``, not one that is going on either.  Recovers nothing."""
        return not any(await self._in_thread(partial(self._look, root)))

    async def obstacle(self, root: Path) -> str | None:
        """The unfinished commit in the way of ``root``, in words; ``None`` without one.  One that is going on is none."""
        return await self._in_thread(partial(self._obstacle, root))

    def _obstacle(self, root: Path) -> str | None:
        own, strangers = self._look(root)
        waiting = [item for item in own if not is_going_on(item)]
        items = [self._items.get(item.commit_id, item) for item in waiting] or [s.item for s in strangers]
        if not items:
            return None
        return f"The commit {items[0].commit_id} is unfinished; until it is over, only a rollback is possible. {items[0].message}"

    async def _recover_in(self, root: Path) -> None:
        with anyio.move_on_after(RECOVERY_WAIT):
            await self._ended.wait()
            for item in await self._in_thread(partial(self._blocking, root)):
                await self.try_again(item.commit_id, root)
            return
        raise BridgeError(
            "RecoveryPending",
            f"An interrupted commit under {root} is still being recovered; send the request again in a while.",
        )

    async def try_again(self, commit_id: str | None, root: Path) -> None:
        """Recover one commit, or all; raises as ``require_clear`` while one is in the way of ``root``."""
        left = await self._in_thread(partial(recover, self._state.path, wait=self._lock_wait, only=commit_id))
        self._remember(left)
        for item in left:
            if blocks(item, root):
                raise self._in_the_way(item, root)

    async def unknown(self, roots: Iterable[Path]) -> tuple[tuple[Path, str], ...]:
        """The roots of which nobody here can tell whether a stranger's commit is interrupted in them, and why."""
        return await self._in_thread(partial(self._unknown, tuple(roots)))

    def _unknown(self, roots: Iterable[Path]) -> tuple[tuple[Path, str], ...]:
        found = []
        for root in roots:
            try:
                foreign_markers(root, self._state.path)
            except CommitUnrecordable as error:
                found.append((root, error.message))
            except OSError as error:
                found.append((root, f"{error.strerror or error}."))
        return tuple(found)

    def _look(self, root: Path) -> tuple[tuple[RecoveryItem, ...], tuple[Stranger, ...]]:
        return self._blocking(root), self._strangers(root)

    def _strangers(self, root: Path) -> tuple[Stranger, ...]:
        try:
            found = foreign_markers(root, self._state.path)
        except (OSError, CommitUnrecordable):
            return ()  # a commit will meet the same trouble and name it; until then, `unknown` does
        return tuple(Stranger(marker, marker.root, self._state.path, self.command) for marker in found)

    def _blocking(self, root: Path) -> tuple[RecoveryItem, ...]:
        return tuple(item for item in self._pending() if blocks(item, root))

    def _pending(self) -> tuple[RecoveryItem, ...]:
        try:
            return pending(self._state.path)
        except CommitUnrecordable:
            return ()  # the commit that needs the directory is refused by itself

    def _remember(self, items: tuple[RecoveryItem, ...], *, whole: bool = False) -> None:
        """Keep what a recovery said; ``whole``: it looked at every record."""
        if whole:
            self._items.clear()
        # A record under somebody's lock is a commit that is going on, or is being recovered right now.
        self._items |= {item.commit_id: item for item in items if item.code != "WorkspaceBusy"}

    @staticmethod
    async def _in_thread(work: Callable[[], T]) -> T:
        # Recovery may be cut off anywhere, so a caller who stops waiting for it does no harm.
        return await to_thread.run_sync(work, abandon_on_cancel=True)

    def _in_the_way(self, item: RecoveryItem, root: Path) -> BridgeError:
        if item.code == "WorkspaceBusy":
            return BridgeError("WorkspaceBusy", item.message)
        where = "" if item.root is None else f" in {os.fspath(item.root)}"
        return BridgeError(
            "RecoveryPending",
            f"The commit {item.commit_id}{where} is unfinished. {item.message} {self._way_out(item, root)}",
        )

    def _way_out(self, item: RecoveryItem, root: Path) -> str:
        if item.code == "RecoveryRootMoved":
            return f"If it was moved to {root}: {self.command.line('run', item.commit_id, root=root)}"
        return f"For what to do: {self.command.line('explain', item.commit_id)}"
