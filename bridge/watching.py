"""A watch over the folders of one workspace, as a hint that it may be time to look at the disk.

**The watch decides nothing.**  Every call compares fingerprints before it works, with a watch or without one.  What the
watch adds is that nobody has to call first: a hint makes an idle workspace look at once, so ``workspace-status`` and the
status file tell of a conflict when it happens.  So an event that is lost costs time and no truth, and whatever is unclear
is answered by a look at everything: the start of a watch (what happened before it is unknown), its death, a burst so
large that the kernel may have dropped a part of it, and a folder that went, came back, or changed its permissions.

**What is watched.**  The folders whose names count as inputs, and those in which input files lie, each by itself and not
recursively: the library's recursive watch follows links, and nothing of ours may leave the root.  A folder that appears is
a hint like any other; once the inputs know it, the watch is started anew over all folders, and that start is followed by a
look.  ``bin``, ``obj``, ``.git`` and ``.vs`` are not watched, so builds and our own records make no noise.  Our own commits
do make events, for files that hold what we wrote: the look at these few finds nothing.

**What it costs.**  A watch of the kernel for each folder (about 15 microseconds and no more than 20,000 of them, since the
user's other programs share the kernel's limit), one thread that wakes five times a second, and looks, after each of which
the watch rests ten times as long as the look took.

**Not promised.**  The library does not tell that the kernel's queue overflowed; a burst of more than 16,384 events about
fewer than a thousand names of which none matters can hide one that does, until the next call.  An input that is a link
is not watched where it leads to.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from bridge.loading import shapes_a_load
from transactions.baseline import IGNORED_DIRECTORIES, Inputs

logger = logging.getLogger(__name__)

STEP_MS = 200
"""Milliseconds between two looks of the thread at what has come: a batch ends with a step that brought nothing new."""

DEBOUNCE_MS = 2_000
"""Milliseconds after which a batch ends although more is coming."""

MANY_EVENTS = 1_000
"""Events in one batch from which on some may have been dropped: the kernel's queue holds 16,384."""

MOST_FOLDERS = 20_000
"""Folders that are watched; the kernel's limit for all programs of a user is often 65,536 or less."""

DEATHS = 5
"""How often in a row a watch that dies is started anew."""

RESTART_REST = 2.0
"""Seconds before a watch is started anew: folders come in crowds."""

REST_FACTOR = 10
LONGEST_REST = 60.0
"""Seconds of rest after a look: ten times what it took, at most a minute."""

POLL_DELAY_MS = 5_000
"""Where the kernel has no events the library polls; this often, in milliseconds."""

_ADDED = 1  # as the library numbers its events

Event: TypeAlias = tuple[int, str]
Hint: TypeAlias = frozenset[Path] | None
"""Paths that may have changed; ``None`` for all."""

EVERYTHING: Hint = None
NOTHING: Hint = frozenset()


class Notify(Protocol):
    """The library's watch over a few folders."""

    def watch(
        self, debounce_ms: int, step_ms: int, timeout_ms: int, stop_event: threading.Event
    ) -> set[Event] | str:
        """Block until events came, or ``stop_event`` is set.  Raises ``RuntimeError`` when the watch is dead."""
        ...

    def close(self) -> None:
        """End it."""
        ...


def start_notify(folders: list[str]) -> Notify:
    """A real watch; blocks.  Raises ``OSError`` (no such folder, no permission, too many) and ``RuntimeError``."""
    from watchfiles._rust_notify import RustNotify  # noqa: PLC0415  # start-up is a promise: 30 ms for the first workspace

    return RustNotify(
        folders,
        debug=False,
        force_polling=False,
        poll_delay_ms=POLL_DELAY_MS,
        recursive=False,
        ignore_permission_denied=False,
    )


# --- what is watched ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scope:
    """The folders to watch, by the names that inputs have for them, and the input files that no rule knows by name."""

    folders: frozenset[Path] = frozenset()
    files: frozenset[Path] = frozenset()
    unreadable: frozenset[Path] = frozenset()
    """Folders that exist and cannot be watched."""


def scope_of(root: Path, folders: Iterable[Path], files: Collection[Path]) -> Scope:
    """Choose among the ``folders`` of inputs and those of their ``files``; blocks for microseconds a folder."""
    places = _Places(root)
    inside = [path for path in {*folders, *(file.parent for file in files)} if places.is_ours(path)]
    readable = frozenset(path for path in inside if _is_readable(path))
    odd = frozenset(file for file in files if not shapes_a_load(file))
    return Scope(readable, odd, frozenset(inside) - readable)


class _Places:
    """Where folders really lie; every one is looked at once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._real_root = os.path.realpath(root)
        self._known: dict[str, str] = {}

    def is_ours(self, folder: Path) -> bool:
        """Whether it is a folder inside of the root, also after links, and none where builds and tools write."""
        if not folder.is_relative_to(self._root):
            return False
        if any(part.casefold() in IGNORED_DIRECTORIES for part in folder.relative_to(self._root).parts):
            return False
        real = self._real(os.fspath(folder))
        return (real + "/").startswith(self._real_root.rstrip("/") + "/") and Path(real).is_dir()

    def _real(self, path: str) -> str:
        known = self._known.get(path)
        if known is None:
            parent, name = os.path.split(path)
            known = os.path.join(self._real(parent), name) if name else path  # noqa: PTH118  # a hundred thousand times
            if os.path.islink(known):  # noqa: PTH114
                known = os.path.realpath(known)
            self._known[path] = known
        return known


def _is_readable(folder: Path) -> bool:
    try:
        os.fspath(folder).encode()  # the library takes no other names
    except UnicodeEncodeError:
        return False
    return os.access(folder, os.R_OK | os.X_OK)


# --- what is heard ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heard:
    """What a batch of events means; ``moved_folders`` when the watch does not fit the folders any more."""

    hint: Hint
    moved_folders: bool = False


def judge(events: Collection[Event], scope: Scope) -> Heard:
    """Which of the events can matter; looks at what was added, and blocks for microseconds an event."""
    if len(events) >= MANY_EVENTS:
        return Heard(EVERYTHING, moved_folders=True)
    hinted: set[Path] = set()
    moved = False
    for kind, name in events:
        path = Path(name)
        if path in scope.folders:
            return Heard(EVERYTHING, moved_folders=True)
        if path.name.casefold() in IGNORED_DIRECTORIES:
            continue
        is_folder = kind == _ADDED and not path.is_symlink() and path.is_dir()
        moved = moved or is_folder
        if is_folder or path in scope.files or shapes_a_load(path):
            hinted.add(path)
    return Heard(frozenset(hinted), moved)


def both(one: Hint, other: Hint) -> Hint:
    """Two hints as one."""
    return EVERYTHING if one is None or other is None else one | other


# --- the watch ----------------------------------------------------------------------------------------------


class Watcher:
    """Watches for one workspace, as long as ``run`` runs.  Belongs to the event loop.

    ``inputs`` lends the inputs while nobody else looks at them.  ``look`` looks at the disk because of a hint; it answers
    False when it was no time for that, and is asked again after the next ``nudge``.
    """

    def __init__(
        self,
        root: Path,
        *,
        inputs: Callable[[], AbstractAsyncContextManager[Inputs]],
        look: Callable[[Hint], Awaitable[bool]],
    ) -> None:
        self.problem: str | None = None
        """Why there is no watch, or not over everything, as half a sentence."""
        self._root = root
        self._inputs = inputs
        self._look = look
        self._thread = anyio.CapacityLimiter(1)  # ours waits for ever and must not take one from the calls
        self._life = anyio.CancelScope()
        self._ended = anyio.Event()
        self._due = anyio.Event()
        self._owed: Hint = NOTHING
        self._is_looking = False
        self._deaths = 0
        self._misfits = False
        self._seen: tuple[Inputs | None, frozenset[Path]] = (None, frozenset())
        """The inputs, and their folders, from which the scope was made."""
        self._scope = Scope()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Watch until ``stop``, or until cancelled.  Never raises an error of its own: then there is no watch."""
        task_status.started()
        try:
            with self._life:
                while True:
                    await self._watch_a_while()
                    await _rest(RESTART_REST)
        except Exception:
            logger.exception("the watch over %s ended in a way that was not foreseen", self._root)
            self.problem = "the watch over its folders failed"
        finally:
            self._ended.set()

    async def stop(self) -> None:
        """End the watch and wait until its thread is gone: a step at most."""
        self._life.cancel()
        await self._ended.wait()

    def nudge(self, inputs: Inputs) -> None:
        """A call has left the workspace with these inputs: time for what is due, and for other folders."""
        if self._owed != NOTHING or self._is_looking or inputs is not self._seen[0]:
            self._due.set()

    # --- one watch ----------------------------------------------------------------------------------------

    async def _watch_a_while(self) -> None:
        """Watch the folders as they are now, until they are others or the watch dies."""
        self._scope = await self._survey()
        self._misfits = False
        try:
            notify = await self._started()
        except (OSError, RuntimeError) as error:
            await self._go_without(str(error))
            return
        try:
            self.problem = _lacking(self._scope)
            self._owe(EVERYTHING)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hear, notify)
                await self._serve()
                tasks.cancel_scope.cancel()
        finally:
            notify.close()

    async def _started(self) -> Notify:
        if self._deaths >= DEATHS:
            raise RuntimeError(f"{self.problem}, {DEATHS} times in a row")
        if len(self._scope.folders) > MOST_FOLDERS:
            raise RuntimeError(f"it has more than {MOST_FOLDERS:,} folders")
        names = sorted(map(os.fspath, self._scope.folders))
        return await to_thread.run_sync(start_notify, names)

    async def _go_without(self, reason: str) -> None:
        """No watch, until a call leaves other inputs behind."""
        logger.info("no watch over %s: %s", self._root, reason)
        self.problem = reason
        await self._look(EVERYTHING)
        self._owed = NOTHING
        self._due = anyio.Event()
        await self._due.wait()
        self._deaths = 0

    async def _survey(self) -> Scope:
        async with self._inputs() as inputs:
            self._seen = inputs, frozenset(inputs.directories)
            files = tuple(inputs.files)
        return await to_thread.run_sync(scope_of, self._root, self._seen[1], files)

    async def _fits(self) -> bool:
        """Whether the watch is over the right folders."""
        async with self._inputs() as inputs:
            now = inputs, frozenset(inputs.directories)
        if now[0] is self._seen[0] and now[1] == self._seen[1]:
            return True
        scope = await self._survey()
        if scope.folders != self._scope.folders:
            return False
        self._scope = scope
        return True

    async def _serve(self) -> None:
        """Look when that is due, as long as the watch fits."""
        while True:
            await self._due.wait()
            self._due = anyio.Event()
            if self._owed != NOTHING:
                await self._pay()
            if self._misfits or not await self._fits():
                return

    async def _pay(self) -> None:
        hint, self._owed = self._owed, NOTHING
        began = anyio.current_time()
        with self._looking():
            if not await self._look(hint):
                self._owed = both(hint, self._owed)
        await _rest(min(LONGEST_REST, REST_FACTOR * (anyio.current_time() - began)))

    @contextmanager
    def _looking(self) -> Iterator[None]:
        self._is_looking = True
        try:
            yield
        finally:
            self._is_looking = False

    def _owe(self, hint: Hint) -> None:
        self._owed = both(self._owed, hint)
        self._due.set()

    # --- its thread ---------------------------------------------------------------------------------------

    async def _hear(self, notify: Notify) -> None:
        """Turn events into hints until the watch dies."""
        while True:
            heard = await self._next(notify)
            if isinstance(heard, str):
                logger.info("the watch over %s died: %s", self._root, heard)
                self._deaths += 1
                self.problem = heard
                self._misfits = True
                self._owe(EVERYTHING)
                return
            self._deaths = 0
            self._misfits = self._misfits or heard.moved_folders
            if heard.hint != NOTHING:
                self._owe(heard.hint)

    async def _next(self, notify: Notify) -> Heard | str:
        """Wait for a batch, or for the reason why none comes any more, in a thread that ends when we are cancelled."""
        stop = threading.Event()

        async def stop_with_us() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                stop.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop_with_us)
            heard = await to_thread.run_sync(self._wait, notify, stop, limiter=self._thread)
            tasks.cancel_scope.cancel()
        return heard

    def _wait(self, notify: Notify, stop: threading.Event) -> Heard | str:
        try:
            events = notify.watch(DEBOUNCE_MS, STEP_MS, 0, stop)
        except (OSError, RuntimeError) as error:
            return str(error)
        return Heard(NOTHING) if isinstance(events, str) else judge(events, self._scope)


def _lacking(scope: Scope) -> str | None:
    if not scope.unreadable:
        return None
    names = ", ".join(map(os.fspath, sorted(scope.unreadable)[:3]))
    return f"{len(scope.unreadable)} of its folders cannot be read, among them {names}"


async def _rest(seconds: float) -> None:
    """Nothing ends a rest but the end of the watch."""
    with anyio.move_on_after(seconds):
        await anyio.sleep_forever()
