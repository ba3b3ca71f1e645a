"""One open workspace: what is loaded, what is staged, and what the server has been told.

Three things have to agree whenever a question is asked: the disk, the staged texts, and the server.

* **Disk.**  Before a lease is handed out, the inputs are compared with what was loaded (``_must_pick_up``).
  A change inside a transaction is a conflict.  Outside of one it is picked up: epoch and snapshot move, and the
  events are owed to the server.
* **Staged texts.**  They are the transaction's current overlay; without a transaction it is empty.
* **Server.**  ``ready_session`` pays what is owed (file events, or a whole reload where events are not enough), then
  shows the server exactly the current overlay.  Nobody asks the server anything but through it, so the server is
  synchronised to exactly one revision before any question.

Owing events instead of sending them at once keeps a commit and a pick-up independent of the server's health: a
server that is down is loaded from the disk when it comes back, and then nothing is owed any more.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
from anyio import to_thread

from bridge.action_references import ActionReferences
from bridge.diagnostics import Observations
from bridge.errors import Action, BridgeError
from bridge.instances import Instance
from bridge.leases import Leases
from bridge.loading import Load, Loader, LoadRequest
from bridge.options import Options
from bridge.progress import ProgressSink, to_nobody
from bridge.projects import Structure
from bridge.snapshots import SnapshotId, new_snapshot_id
from bridge.solutions import PathRefused
from bridge.states import Event, State, next_state
from bridge.watching import Hint, Watcher
from lsp_client.dialects.base import DocumentView, EventKind, FileEvent
from lsp_client.session import Session
from lsp_client.supervisor import Supervisor
from transactions.baseline import Baseline, ExternalChange, Inputs, Present
from transactions.overlay import FileChange, Overlay
from transactions.text import SourceText
from transactions.transaction import Transaction

logger = logging.getLogger(__name__)

PICK_UP_ROUNDS = 3
"""How often a call picks up changes that keep coming before it gives up: a build or a checkout may be running."""

_DISK_EVENTS: Mapping[str, EventKind] = {
    "Created": "created",
    "Changed": "changed",
    "Deleted": "deleted",
    "Unreadable": "changed",
}
_COMMIT_EVENTS: Mapping[str, EventKind] = {"Added": "created", "Modified": "changed", "Deleted": "deleted"}


class Workspace:
    """An open workspace.  Not shared between threads; its leases decide who may work on it."""

    def __init__(
        self,
        *,
        request: LoadRequest,
        load: Load,
        supervisor: Supervisor,
        loader: Loader,
        options: Options,
        alias: str | None,
        require_clear: Callable[[Path], Awaitable[None]],
    ) -> None:
        """``require_clear`` refuses a root in which an interrupted commit is in the way; asked before the disk is read."""
        self.id = str(uuid.uuid4())
        self.alias = alias
        self.request = request
        self.load = load
        self.supervisor = supervisor
        self.epoch = 1
        self.state = State.READY
        self.transaction: Transaction | None = None
        self.observations = Observations()
        self.external_change: ExternalChange | None = None
        self.leases = Leases(max_readers=options.max_concurrent_queries, wait=options.lease_wait)
        self.references = ActionReferences(
            lifetime=options.code_action_reference_lifetime, limit=options.code_action_reference_limit
        )
        self._loader = loader
        self._options = options
        self._require_clear = require_clear
        self.instance = Instance(request.root, request.path)
        self.watcher: Watcher | None = None
        """Hints at changes on disk while nobody calls; the workbench runs it."""
        self._committed_snapshot = new_snapshot_id()
        self._baseline = Baseline(self.root)
        self._owed_events: list[FileEvent] = []
        self._reload_owed = False
        self._owed_to = supervisor.generation
        self._server_turn = anyio.Lock()
        self._server_doubted = False
        self._look_turn = anyio.Lock()

    @property
    def path(self) -> Path:
        """The solution or project it was loaded from."""
        return self.request.path

    @property
    def root(self) -> Path:
        """Nothing outside of this directory is ever written."""
        return self.request.root

    @property
    def structure(self) -> Structure:
        """Projects and documents as last read."""
        return self.load.structure

    @property
    def name(self) -> str:
        """How messages call it."""
        return self.alias or str(self.path)

    @property
    def overlay(self) -> Overlay:
        """The tree as the transaction has it, or the disk as loaded."""
        return self.transaction.current if self.transaction else Overlay(self._baseline)

    @property
    def baseline(self) -> Baseline:
        """The files as read since the last load or commit."""
        return self._baseline

    def text(self, path: Path) -> SourceText | None:
        """The current text of a file: staged, else as on disk; ``None`` when there is none or it is not readable."""
        return self.overlay.text(self.load.links.physical(path))

    def unreadable_reason(self, path: Path) -> str:
        """Why ``text`` is ``None``, as half a sentence."""
        state = self._baseline.read(self.load.links.physical(path))
        if isinstance(state, Present) and state.unreadable_reason:
            return state.unreadable_reason
        return "there is no such file now"

    # --- identity ---------------------------------------------------------------------------------------------

    def snapshot(self) -> SnapshotId:
        """The identity of the current state."""
        if self.transaction is None:
            return SnapshotId(self.id, self.epoch, self._committed_snapshot, None)
        return SnapshotId(self.id, self.epoch, self.transaction.snapshot_id, self.transaction.revision)

    def require_snapshot(self, expected: SnapshotId, *, action: Action | None = None) -> None:
        """Raises ``SnapshotMismatch`` unless the caller speaks of the current state."""
        if expected != self.snapshot():
            raise BridgeError(
                "SnapshotMismatch",
                "The workspace is not in the state that expectedSnapshot names any more; "
                "workspace-status gives the current snapshot.",
                action=action,
            )

    # --- leases and external change ---------------------------------------------------------------------------

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """A reader's lease on an up-to-date workspace.

        Raises ``WorkspaceBusy``, ``RecoveryPending``, ``WorkspaceOutOfDate`` or ``TransactionConflicted``.
        """
        for _ in range(PICK_UP_ROUNDS):
            async with self.leases.shared():
                if not await self._must_pick_up():
                    self.require_usable()
                    yield
                    return
            async with self.leases.exclusive():
                if await self._must_pick_up():
                    await self.pick_up()
        raise self._kept_changing()

    async def settle(self) -> None:
        """Bring the workspace up to date under the writer's lease; raises as ``reading`` does."""
        for _ in range(PICK_UP_ROUNDS):
            if not await self._must_pick_up():
                self.require_usable()
                return
            await self.pick_up()
        raise self._kept_changing()

    async def _must_pick_up(self) -> bool:
        """Look at the inputs; note a change that is not picked up in the state."""
        await self._require_clear(self.root)
        picks_up = self._options.external_changes == "pick-up"
        if self.state is State.OUT_OF_DATE:
            return picks_up
        if self.state is State.TRANSACTION_CONFLICTED:
            return False
        change = await self.first_change()
        if change is None:
            self.external_change = None
            return False
        if self.state is State.READY and picks_up:
            return True
        self.note_change(change)
        return False

    async def glance(self, hint: Hint, is_clear: Callable[[Path], Awaitable[bool]]) -> bool:
        """Look at what a hint names while nobody calls; False when it was no time for that, and nothing was learnt.

        Takes no lease, so no call is ever told that the workspace is busy because of it; what it sees counts only if no
        writer came meanwhile, and if the root ``is_clear`` of unfinished commits: half of somebody's commit is no state.
        It moves no snapshot: a change that the next call would pick up is told and not picked up.
        """
        writers = self.leases.writers
        if writers is None:
            return False
        if self.state not in (State.READY, State.TRANSACTION_ACTIVE):
            return True
        # Of a change that was told, it is to be told as well that it is gone; so everything is looked at then.
        change = await (self.first_change() if self.external_change else self._hinted_change(hint))
        if change is not None and not await is_clear(self.root):
            return False
        if self.leases.writers != writers:
            return False
        if self.state is State.READY and self._options.external_changes == "pick-up":
            self.external_change = change
        elif change is not None:
            self.note_change(change)
        return True

    async def _hinted_change(self, hint: Hint) -> ExternalChange | None:
        if hint is None:
            return await self.first_change()
        async with self._look_turn:
            changes = await to_thread.run_sync(self.load.inputs.changes_among, hint)
        return changes[0] if changes else None

    async def first_change(self) -> ExternalChange | None:
        """The first input that differs from what was loaded."""
        changes = await self._changed_inputs(self.load.inputs)
        return changes[0] if changes else None

    async def _changed_inputs(self, inputs: Inputs) -> tuple[ExternalChange, ...]:
        # The manifest remembers what it saw, and readers run side by side: one look at a time.
        async with self._look_turn:
            return await to_thread.run_sync(inputs.changes)

    @asynccontextmanager
    async def inputs_alone(self) -> AsyncIterator[Inputs]:
        """The inputs for a thread that looks at them while it commits; nobody else looks meanwhile."""
        async with self._look_turn:
            yield self.load.inputs

    def note_change(self, change: ExternalChange) -> None:
        """Record an external change: a conflict inside a transaction, out of date outside of one.

        The first one counts: of two readers that see it side by side, the second has nothing to add.
        """
        if self.state in (State.READY, State.TRANSACTION_ACTIVE):
            self.external_change = change
            self.state = next_state(self.state, Event.EXTERNAL_CHANGE)

    async def note_conflict(self, paths: Sequence[Path]) -> None:
        """A commit found a target changed: the transaction is conflicted, whatever the inputs say."""
        change = await self.first_change()
        if change is None:
            change = ExternalChange(next(iter(paths), self.path), "Changed", "Fingerprint")
        self.note_change(change)

    def require_usable(self) -> None:
        """Raises ``WorkspaceOutOfDate`` or ``TransactionConflicted`` in these states."""
        if self.state is State.OUT_OF_DATE:
            raise BridgeError(
                "WorkspaceOutOfDate", f"{self._change_in_words()} The workspace has to be reloaded."
            )
        if self.state is State.TRANSACTION_CONFLICTED:
            raise BridgeError(
                "TransactionConflicted",
                f"{self._change_in_words()} The transaction can only be previewed and rolled back.",
            )

    def _change_in_words(self) -> str:
        change = self.external_change
        if change is None:
            return "An input changed on disk."
        return f"{self.relative(change.path)} is {change.kind.lower()} on disk."

    def _kept_changing(self) -> BridgeError:
        return BridgeError(
            "WorkspaceOutOfDate",
            "The inputs keep changing on disk; wait until whatever writes there is done, then send the request again.",
            action=Action.RETRY,
        )

    def relative(self, path: Path) -> str:
        """A path as callers see it: relative to the root with forward slashes when it lies inside."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    async def pick_up(self) -> None:
        """Take what is on disk as the new baseline.  Needs the writer's lease and no transaction.

        Raises ``WorkspaceOutOfDate`` when it cannot be read; the state then says so too.  Raises ``RecoveryPending``.
        """
        await self._require_clear(self.root)
        changes = await self._changed_inputs(self.load.inputs)
        try:
            await self._take_in(changes)
        except (BridgeError, PathRefused) as error:
            if changes:
                self.note_change(changes[0])
            if self.state is State.OUT_OF_DATE:
                self.state = next_state(self.state, Event.READ_FAILED)
            logger.warning("the change on disk could not be picked up", exc_info=error)
            raise BridgeError(
                "WorkspaceOutOfDate", f"The change on disk could not be picked up: {error.message}"
            ) from error

    async def _take_in(self, changes: Sequence[ExternalChange]) -> None:
        old = self.load
        while True:
            only_texts = self._are_texts(changes)
            load = await (self._loader.capture_again(old) if only_texts else self._loader.look(self.request))
            # What moved while we were reading is in the new load already, and the server must hear of it too.
            changes = await self._changed_inputs(old.inputs)
            if not only_texts or self._are_texts(changes):
                break
        project_level = any(change.path.suffix.lower() != ".cs" for change in changes)
        if project_level:
            self._retarget(load)
        self.load = load if old.report is None else load.reported(old.report)
        self._owe(_events_of(changes), reload=project_level)
        self._begin_epoch()

    def _retarget(self, load: Load) -> None:
        """From here on a server that is started anew, for whatever reason, loads what is in ``load``."""
        self.supervisor.retarget(self._loader.target(self.request, load), self.request.environment)

    def _are_texts(self, changes: Sequence[ExternalChange]) -> bool:
        """Whether nothing but the text of known documents has changed, so that the projects are what they were."""
        return all(
            change.kind == "Changed" and self.structure.documents_at(change.path) for change in changes
        )

    def _begin_epoch(self) -> None:
        self.epoch += 1
        self._begin_committed_state()
        self.external_change = None
        self.state = next_state(self.state, Event.PICKED_UP)

    def _begin_committed_state(self) -> None:
        """What is on disk is a state of its own from here on: a new identity, texts read anew, no action ids."""
        self._committed_snapshot = new_snapshot_id()
        self._baseline = Baseline(self.root)
        self.references.clear()

    async def reload(self, tell: ProgressSink = to_nobody) -> None:
        """Load everything anew in a new server process.  Needs the writer's lease and no transaction.

        Raises ``RecoveryPending`` and what loading raises.
        """
        await self._require_clear(self.root)
        load = await self._loader.look(self.request, tell, again=True)
        self._retarget(load)
        self.load = load
        # From here on the old state is gone, whatever becomes of the server; it still owes us its reload then.
        self._owe((), reload=True)
        self._begin_epoch()
        await self._reload_server(tell)

    # --- the server -------------------------------------------------------------------------------------------

    async def ready_session(self, about: Overlay | None = None) -> Session:
        """The server, told everything it is owed and shown exactly the current texts.  Needs a lease.

        ``about`` is shown in place of the current tree; that needs the writer's lease, so that nobody asks about the
        wrong one.
        """
        async with self._server_turn:
            if self._server_doubted:
                self._server_doubted = False
                await self.supervisor.doubt()
            session = await self.supervisor.session()
            session = await self._pay(session)
            await session.synchronise(self.server_view(about), visit=about is not None)
            return session

    @property
    def outsiders(self) -> Mapping[Path, str]:
        """Created files that the server, as it was asked last, did not take for members of a project, and why not."""
        session = self.supervisor.ready_session
        return {} if session is None else session.outsiders

    @property
    def unsearched(self) -> Mapping[Path, str]:
        """Created files in which the server, as it was asked last, finds no uses of a symbol, and why not."""
        session = self.supervisor.ready_session
        found = {} if session is None else session.unsearched
        return {self.load.links.physical(path): reason for path, reason in found.items()}

    def doubt_server(self) -> None:
        """A question was not answered in time.  The next one first finds out whether the server is deaf for good."""
        self._server_doubted = True

    def server_view(self, about: Overlay | None = None) -> DocumentView:
        """The differences to the disk that the server must see, for the current tree or for another one."""
        changes = (self.overlay if about is None else about).changes()
        named = [(name, change) for change in changes for name in self.load.links.names(change.path)]
        return DocumentView(
            texts={name: change.after.text for name, change in named if change.after is not None},
            created=frozenset(name for name, change in named if change.kind == "Added"),
            deleted=frozenset(name for name, change in named if change.kind == "Deleted"),
        )

    def _owe(self, events: Sequence[FileEvent], *, reload: bool = False) -> None:
        if self._owed_to != self.supervisor.generation:
            self._owed_events.clear()
            self._owed_to = self.supervisor.generation
        names = self.load.links.names
        self._owed_events += [replace(event, path=name) for event in events for name in names(event.path)]
        self._reload_owed = self._reload_owed or reload

    async def _pay(self, session: Session) -> Session:
        if self.supervisor.generation != self._owed_to:
            # A server that started after the events has read the disk as it is now, and loaded the newest target.
            self.load = self.load.reported(session.load_report)
            self._owe_nothing()
        if self._owed_events and not self._reload_owed:
            self._reload_owed = not await session.files_changed(tuple(self._owed_events))
            self._owed_events.clear()
        if self._reload_owed:
            await self._reload_server()
            return await self.supervisor.session()
        return session

    async def _reload_server(self, tell: ProgressSink = to_nobody) -> None:
        self.load = await self._loader.reload_server(self.request, self.load, self.supervisor, tell)
        self._owe_nothing()

    def _owe_nothing(self) -> None:
        """The present server process knows the disk as it is."""
        self._owed_events.clear()
        self._reload_owed = False
        self._owed_to = self.supervisor.generation

    # --- transactions -----------------------------------------------------------------------------------------

    def begin_transaction(self) -> None:
        """Start staging on the current state."""
        self.state = next_state(self.state, Event.TRANSACTION_STARTED)
        self.transaction = Transaction(
            self._baseline, self._committed_snapshot, self._options.max_transaction_revisions
        )
        self.observations = Observations()

    def require_transaction(self) -> Transaction:
        """The active transaction.  Raises ``NoActiveTransaction``."""
        if self.transaction is None:
            raise BridgeError("NoActiveTransaction", f"{self.name} has no active transaction.")
        return self.transaction

    def end_rolled_back(self) -> None:
        """Forget everything staged; the committed snapshot is current again."""
        self.transaction = None
        self.state = next_state(self.state, Event.ROLLED_BACK)

    async def end_committed(
        self, changes: Sequence[FileChange], written: Mapping[Path, bytes | None]
    ) -> None:
        """Make the committed files the new baseline; the server is told before its next question.

        ``written`` maps each path of the commit to the SHA-256 of its bytes, ``None`` for a deleted file.
        """
        async with self._look_turn:  # a glance may be under way
            await to_thread.run_sync(self.load.accept, written)
        self.transaction = None
        self.state = next_state(self.state, Event.COMMITTED)
        self._begin_committed_state()
        self._owe([FileEvent(change.path, _COMMIT_EVENTS[change.kind]) for change in changes])
        if any(change.kind != "Modified" for change in changes):
            try:
                self.load = await self._loader.count_again(self.request, self.load)
            except PathRefused as error:
                # Written is written; the solution's own trouble shows at the next call.
                logger.warning("the documents could not be counted after a commit: %s", error.message)


def _events_of(changes: Sequence[ExternalChange]) -> list[FileEvent]:
    """What a server has to hear of changes on disk; a rename is a deletion and a creation."""
    events: list[FileEvent] = []
    for change in changes:
        if change.kind == "Renamed":
            if change.previous_path is not None:
                events.append(FileEvent(change.previous_path, "deleted"))
            events.append(FileEvent(change.path, "created"))
        else:
            events.append(FileEvent(change.path, _DISK_EVENTS[change.kind]))
    return events
