"""Commits that crashes left unfinished: recovered in the background at the start, and in the way until they are over.

The front door and ``server-status`` answer at once.  What would work on a root waits a bounded time, and only when an
unfinished commit lies in that root, above or below it; then it is refused with ``RecoveryPending``.  Each such call
tries the recovery again first, so a commit that another bridge died in since then, or a fault that is lifted, needs no
restart.  What is left needs a person: ``roslyn-bridge recover``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread

from bridge.errors import BridgeError
from bridge.state_directory import StateDirectory
from transactions.errors import CommitUnrecordable
from transactions.recovery import RecoveryItem, blocks, foreign_markers, pending, recover

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
        self._items: dict[str, RecoveryItem] = {}
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

    async def unfinished(self) -> tuple[RecoveryItem, ...]:
        """What the last recovery left, as far as it is still there.  A commit that is going on is not among it."""
        if not self._items:
            return ()
        still = await self._in_thread(self._pending)
        self._items = {
            item.commit_id: self._items[item.commit_id] for item in still if item.commit_id in self._items
        }
        return tuple(self._items.values())

    async def require_clear(self, root: Path) -> None:
        """Raises ``RecoveryPending`` while an unfinished commit of this state directory is in the way of ``root``.

        Raises ``WorkspaceBusy`` when another bridge is committing there for longer than the wait.
        """
        if not await self._in_thread(partial(self._blocking, root)):
            return
        with anyio.move_on_after(RECOVERY_WAIT):
            await self._ended.wait()
            for item in await self._in_thread(partial(self._blocking, root)):
                await self.try_again(item.commit_id, root)
            return
        raise BridgeError("RecoveryPending", f"An interrupted commit under {root} is still being recovered.")

    async def try_again(self, commit_id: str | None, root: Path) -> None:
        """Recover one commit, or all; raises as ``require_clear`` while one is in the way of ``root``."""
        left = await self._in_thread(partial(recover, self._state.path, wait=self._lock_wait, only=commit_id))
        self._remember(left)
        for item in left:
            if blocks(item, root):
                raise _in_the_way(item)

    async def require_no_stranger(self, root: Path) -> None:
        """Raises ``RecoveryPending`` for the marker of an unfinished commit whose record is another bridge's."""
        try:
            marker = next(iter(await self._in_thread(partial(foreign_markers, root, self._state.path))), None)
        except (OSError, CommitUnrecordable):
            return  # a commit will meet the same trouble and name it
        if marker is not None:
            raise BridgeError(
                "RecoveryPending",
                f"A bridge with another state directory (another user, or a container) left the commit {marker.commit_id} "
                f"unfinished; its marker is {marker.path}. That bridge recovers it when it starts again. If it will not "
                f"come back: roslyn-bridge recover discard {marker.commit_id} --marker --root ROOT",
            )

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


def _in_the_way(item: RecoveryItem) -> BridgeError:
    if item.code == "WorkspaceBusy":
        return BridgeError("WorkspaceBusy", item.message)
    where = "" if item.root is None else f" in {os.fspath(item.root)}"
    return BridgeError(
        "RecoveryPending",
        f"The commit {item.commit_id}{where} is unfinished. {item.message} "
        f"For what to do: roslyn-bridge recover explain {item.commit_id}",
    )
