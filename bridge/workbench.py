"""The process: its open workspaces and the one transaction slot they share.

``open_workbench`` is the way in.  It owns the task group in which every language server is kept, so that no server
outlives it.  Tools find workspaces through ``select``; the slot for a transaction is claimed here because it belongs
to the process and not to a workspace.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from anyio.lowlevel import checkpoint_if_cancelled

from bridge import solutions
from bridge.committing import InputsChanged, Order, intended, is_written, write
from bridge.errors import BridgeError
from bridge.head_start import counts
from bridge.instances import Neighbours, neighbours
from bridge.loading import VIEWS, Load, Loader, LoadRequest
from bridge.msbuild_properties import MsBuildProperties
from bridge.options import Options
from bridge.progress import ProgressSink, Stage
from bridge.recoveries import Recoveries
from bridge.side_by_side import both
from bridge.snapshots import SnapshotId
from bridge.state_directory import StateDirectory
from bridge.states import State
from bridge.watching import Hint, Watcher
from bridge.workspace import Workspace
from lsp_client.discovery import find_dotnet
from lsp_client.errors import LanguageServerError
from lsp_client.scratch import sweep
from lsp_client.supervisor import Supervisor
from schemas.selectors import WorkspaceSelector
from transactions.commit import CommitResult
from transactions.errors import CommitConflict, CommitFailed, TransactionError, WorkspaceBusy
from transactions.overlay import FileChange
from transactions.transaction import Transaction

logger = logging.getLogger(__name__)

CLOSE_WAIT = 20.0
"""Seconds for stopping all servers at the end; each stop is bounded by itself, this one bounds their sum."""

LOCK_SLICE = 0.25
"""Seconds that a thread waits for the commit lock at a time: a caller who gives up is heard between two of them."""


@asynccontextmanager
async def open_workbench(options: Options) -> AsyncIterator[Workbench]:
    """A workbench without workspaces; leaving it stops every language server."""
    async with anyio.create_task_group() as servers:
        workbench = Workbench(options, servers)
        servers.start_soon(workbench.recoveries.run)
        servers.start_soon(to_thread.run_sync, sweep, workbench.state_directory.path / VIEWS)
        try:
            yield workbench
        finally:
            with anyio.move_on_after(CLOSE_WAIT, shield=True):
                await workbench.stop_servers()
            servers.cancel_scope.cancel()


class Workbench:
    """All open workspaces of one process."""

    def __init__(self, options: Options, servers: TaskGroup) -> None:
        self.options = options
        self.state_directory = StateDirectory(options.state_directory)
        self.recoveries = Recoveries(self.state_directory, options.lease_wait)
        self._loader = Loader(options, self.state_directory)
        self._servers = servers
        self._workspaces: dict[str, Workspace] = {}
        self._opening: set[Path] = set()
        self._published: dict[str, tuple[State, int | None]] = {}

    @property
    def workspaces(self) -> tuple[Workspace, ...]:
        """The open workspaces, oldest first."""
        return tuple(self._workspaces.values())

    @property
    def transaction_owner(self) -> Workspace | None:
        """The workspace that has the transaction slot."""
        return next((w for w in self._workspaces.values() if w.transaction is not None), None)

    @cached_property
    def dotnet(self) -> Path | None:
        """The ``dotnet`` command of this machine, looked for once."""
        return find_dotnet()

    # --- opening and closing ------------------------------------------------------------------------------

    async def open_workspace(
        self,
        path: Path,
        *,
        alias: str | None = None,
        root: Path | None = None,
        properties: MsBuildProperties | None = None,
        tell: ProgressSink,
    ) -> Workspace:
        """Load a solution, a project, or the one in a folder; returns when questions will be answered truly."""
        located = await to_thread.run_sync(solutions.locate, path)
        checked_root = await to_thread.run_sync(_workspace_root, located, root)
        self._require_unused(located, alias)
        self._opening.add(located)
        try:
            await self.recoveries.require_clear(checked_root)
            request = await self._loader.request(located, checked_root, properties or MsBuildProperties())
            workspace = await self._load(request, alias, tell)
        finally:
            self._opening.discard(located)
        return workspace

    async def _load(self, request: LoadRequest, alias: str | None, tell: ProgressSink) -> Workspace:
        load, supervisor = await self._started(request, tell)
        async with _stopped_on_failure(supervisor):
            report = (await supervisor.session()).load_report
            workspace = Workspace(
                request=request,
                load=load.reported(report),
                supervisor=supervisor,
                loader=self._loader,
                options=self.options,
                alias=alias,
                require_clear=self.recoveries.require_clear,
            )
            await self._require_unmoved(workspace)
            self._require_unused(request.path, alias, opening=request.path)
        self._workspaces[workspace.id] = workspace
        await self._publish(workspace)
        await self._watch(workspace)
        return workspace

    async def _started(self, request: LoadRequest, tell: ProgressSink) -> tuple[Load, Supervisor]:
        """The projects, and a server that has loaded them; it begins while they are read, as far as it may."""
        if not self._loader.starts_ahead(request):
            load = await self._loader.look(request, tell)
            return load, await self._start(self._loader.supervise(request, load), tell)
        start = await self._loader.head_start(request)
        supervisor = self._loader.supervise_ahead(request, start)
        looked: list[Load] = []

        async def look() -> None:
            looked.append(await self._loader.look(request, tell))
            supervisor.retarget(self._loader.target(request, looked[0]), request.environment)

        failure: LanguageServerError | None = None
        async with _stopped_on_failure(supervisor):
            try:
                await both(look, partial(self._start, supervisor, tell))
            except LanguageServerError as error:
                failure = error
            load = looked[0]
            if start is None or await to_thread.run_sync(counts, start, load.inputs):
                if failure is not None:
                    raise failure
                return load, supervisor
        logger.info("the inputs were touched while a server loaded them; all is read and loaded once more")
        await supervisor.stop()
        load = await self._loader.look(request, tell)
        return load, await self._start(self._loader.supervise(request, load), tell)

    async def _start(self, supervisor: Supervisor, tell: ProgressSink) -> Supervisor:
        """Have it run; returns when it has loaded."""
        supervisor.on_progress = Stage(tell, 50, 100)
        try:
            await self._servers.start(_keep, supervisor)
        finally:
            supervisor.on_progress = None  # whoever watched this load is not there for later ones
        return supervisor

    async def _require_unmoved(self, workspace: Workspace) -> None:
        change = await workspace.first_change()
        if change is not None:
            raise BridgeError(
                "WorkspaceChangedDuringLoad",
                f"{workspace.relative(change.path)} was {change.kind.lower()} while the workspace was loading.",
            )

    def _require_unused(self, path: Path, alias: str | None, *, opening: Path | None = None) -> None:
        busy = {w.path for w in self.workspaces} | (self._opening - {opening})
        if path in busy:
            raise BridgeError("WorkspaceAlreadyOpen", f"{path} is open already.")
        if alias is not None and alias in {w.alias for w in self.workspaces}:
            raise BridgeError("WorkspaceAlreadyOpen", f"The alias {alias!r} is in use.")
        if len(busy) >= self.options.max_workspaces:
            raise BridgeError(
                "WorkspaceCapacityReached",
                f"{len(busy)} workspaces are open, which is the limit (--max-workspaces). Close one first.",
            )

    async def close_workspace(self, workspace: Workspace) -> None:
        """Stop its server and forget it.  Raises ``TransactionOpen`` while it has a transaction."""
        async with self.holding(workspace):
            if workspace.transaction is not None:
                raise BridgeError("TransactionOpen", f"{workspace.name} has an open transaction.")
            del self._workspaces[workspace.id]
            self._published.pop(workspace.id, None)
            with anyio.CancelScope(shield=True):
                await _end(workspace)

    async def stop_servers(self) -> None:
        """Stop the servers of all workspaces at once; used at the end of the process."""
        async with anyio.create_task_group() as stops:
            for workspace in self.workspaces:
                stops.start_soon(_end, workspace)

    # --- hints --------------------------------------------------------------------------------------------

    async def _watch(self, workspace: Workspace) -> None:
        if self.options.watch == "off":
            return

        async def look(hint: Hint) -> bool:
            has_looked = await workspace.glance(hint, self.recoveries.is_clear)
            await self._publish(workspace)
            return has_looked

        workspace.watcher = Watcher(workspace.root, inputs=workspace.inputs_alone, look=look)
        await self._servers.start(workspace.watcher.run)

    # --- other bridges ------------------------------------------------------------------------------------

    async def _publish(self, workspace: Workspace) -> None:
        """Let other bridges see where the workspace stands, when that has changed; they see it late, never wrong."""
        standing = workspace.state, workspace.snapshot().revision
        if self._published.get(workspace.id) == standing or workspace.id not in self._workspaces:
            return
        self._published[workspace.id] = standing
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(workspace.instance.publish_state, *standing)

    async def neighbours(self, workspace: Workspace) -> Neighbours | None:
        """The other bridges that have the workspace open; ``None`` when it cannot be known."""
        ours = [w.instance.id for w in self.workspaces]
        try:
            return await to_thread.run_sync(neighbours, workspace.root, ours)
        except OSError:
            return None

    # --- selection ----------------------------------------------------------------------------------------

    def select(self, selector: WorkspaceSelector | None) -> Workspace:
        """The workspace a request means; without a selector the only one.

        Raises ``WorkspaceNotOpen`` and the selector's codes.
        """
        given = {} if selector is None else selector.model_dump(exclude_none=True)
        if not self._workspaces:
            raise BridgeError("WorkspaceNotOpen", "No workspace is open.")
        if selector is None:
            if len(self._workspaces) > 1:
                names = ", ".join(w.name for w in self.workspaces)
                raise BridgeError(
                    "WorkspaceSelectorRequired", f"Several workspaces are open ({names}); name one."
                )
            return self.workspaces[0]
        if not given:
            raise BridgeError(
                "WorkspaceSelectorInvalid", "A workspace selector needs workspaceId, alias or path."
            )
        named = {member: self._named(member, value) for member, value in given.items()}
        missing = [member for member, found in named.items() if found is None]
        if missing:
            wanted = ", ".join(f"{member} {given[member]!r}" for member in missing)
            raise BridgeError("WorkspaceSelectorNotFound", f"No open workspace with {wanted}.")
        found = {w.id: w for w in named.values() if w is not None}
        if len(found) > 1:
            raise BridgeError(
                "WorkspaceSelectorMismatch", "The members of the selector name different workspaces."
            )
        return next(iter(found.values()))

    def _named(self, member: str, value: str) -> Workspace | None:
        if member == "workspaceId":
            return self._workspaces.get(value)
        if member == "alias":
            return next((w for w in self.workspaces if w.alias == value), None)
        given, real = Path(value), _real(value)
        exact = next((w for w in self.workspaces if w.path in (given, real)), None)
        # A folder stands for the one workspace in it, as it did when that was opened.
        inside = [w for w in self.workspaces if w.path.parent in (given, real)]
        return exact or (inside[0] if len(inside) == 1 else None)

    def _require_still_open(self, workspace: Workspace) -> None:
        if workspace.id not in self._workspaces:
            raise BridgeError("WorkspaceNotOpen", f"{workspace.name} was closed meanwhile.")

    @asynccontextmanager
    async def reading(self, workspace: Workspace) -> AsyncIterator[None]:
        """A reader's lease on an up-to-date workspace that is still open."""
        try:
            async with workspace.reading():
                self._require_still_open(workspace)
                yield
        finally:
            await self._publish(workspace)
            _nudge(workspace)

    @asynccontextmanager
    async def looking(self, workspace: Workspace) -> AsyncIterator[None]:
        """A reader's lease on a workspace that is still open; the disk is not looked at."""
        async with workspace.leases.shared():
            self._require_still_open(workspace)
            yield

    @asynccontextmanager
    async def holding(self, workspace: Workspace) -> AsyncIterator[None]:
        """The writer's lease on a workspace that is still open; nothing else is looked at."""
        try:
            async with workspace.leases.exclusive():
                self._require_still_open(workspace)
                try:
                    yield
                finally:
                    await self._publish(workspace)
        finally:
            _nudge(workspace)

    @asynccontextmanager
    async def examining(self, workspace: Workspace) -> AsyncIterator[None]:
        """The writer's lease on an up-to-date workspace, for a query that shows the server other trees meanwhile."""
        async with self.holding(workspace):
            await workspace.settle()
            yield

    @asynccontextmanager
    async def mutating(self, workspace: Workspace) -> AsyncIterator[None]:
        """The writer's lease, with the checks of a mutation in their published order up to the transaction."""
        async with self.holding(workspace):
            self._require_owner(workspace)
            await workspace.settle()
            yield

    @asynccontextmanager
    async def staging(self, workspace: Workspace, expected: SnapshotId) -> AsyncIterator[Transaction]:
        """``mutating`` for a call that stages one revision on the state ``expected``: all its checks, in their order.

        Raises besides ``NoActiveTransaction``, ``RevisionCapacityReached`` and ``SnapshotMismatch``.
        """
        async with self.mutating(workspace):
            transaction = workspace.require_transaction()
            transaction.ensure_capacity()
            workspace.require_snapshot(expected)
            yield transaction

    # --- transactions -------------------------------------------------------------------------------------

    async def start_transaction(self, workspace: Workspace) -> None:
        """Claim the process's transaction slot for ``workspace``."""
        async with self.holding(workspace):
            await workspace.settle()
            self._require_owner(workspace)
            if workspace.transaction is not None:
                raise BridgeError("TransactionAlreadyActive", f"{workspace.name} has a transaction already.")
            workspace.begin_transaction()

    def _require_owner(self, workspace: Workspace) -> None:
        owner = self.transaction_owner
        if owner is not None and owner is not workspace:
            raise BridgeError(
                "TransactionOwnedByWorkspace",
                f"{owner.name} has the open transaction; there is one at a time in this process.",
            )

    async def commit(self, workspace: Workspace) -> CommitResult:
        """Write the staged files, all or none; needs the writer's lease.

        Cancellation is honoured until the writing starts and not after.  Raises ``TransactionConflicted`` (the
        workspace is conflicted from then on), ``WorkspaceBusy``, ``CommitLockFailed``, ``RecoveryPending``,
        ``CommitRecoveryCapacityReached``, ``CommitPreparationFailed`` and ``CommitFailed``.
        """
        changes = workspace.require_transaction().changes()
        await self.recoveries.require_clear(workspace.root)
        deadline = anyio.current_time() + self.options.lease_wait
        while True:
            await checkpoint_if_cancelled()
            with anyio.CancelScope(shield=True):
                left = deadline - anyio.current_time()
                try:
                    result = await self._write(workspace, changes, max(0.0, min(LOCK_SLICE, left)))
                except WorkspaceBusy:
                    if left <= LOCK_SLICE:
                        raise
                    continue
                await workspace.end_committed(changes, result.written)
                return result

    async def _write(
        self, workspace: Workspace, changes: tuple[FileChange, ...], wait: float
    ) -> CommitResult:
        try:
            async with workspace.inputs_alone() as inputs:
                order = Order(
                    workspace.root,
                    workspace.path,
                    changes,
                    workspace.baseline,
                    inputs,
                    self.state_directory.path,
                )
                result = await to_thread.run_sync(write, order, wait, workspace.instance.publish_phase)
        except InputsChanged as error:
            workspace.note_change(error.change)
            workspace.require_usable()
            raise
        except CommitConflict as error:
            await workspace.note_conflict(error.paths)
            raise
        except CommitFailed as error:
            if error.restored:
                raise
            return await self._recovered(workspace, changes, error)
        if result.kept or result.leftovers:  # what recovery can finish later it can finish now
            await self._recover_quietly(workspace)
        return result

    async def _recovered(
        self, workspace: Workspace, changes: tuple[FileChange, ...], error: CommitFailed
    ) -> CommitResult:
        """A commit that broke off is recovered at once: it is complete, or taken back, or ``error`` stands."""
        try:
            await self.recoveries.try_again(None, workspace.root)
        except (BridgeError, TransactionError) as left:  # it knows what a person can do
            raise CommitFailed(
                f"{error.message} {left.message}", error.paths, restored=False, evidence=error.evidence
            ) from error
        targets = intended(changes)
        if await to_thread.run_sync(is_written, targets):
            return CommitResult("" if error.evidence is None else error.evidence.name, targets)
        raise CommitFailed(f"{error.message} It was taken back.", error.paths, restored=True) from error

    async def _recover_quietly(self, workspace: Workspace) -> None:
        try:
            await self.recoveries.try_again(None, workspace.root)
        except (BridgeError, TransactionError) as error:
            logger.info("a commit could not be tidied up after: %s", error.message)

    async def roll_back(self, workspace: Workspace) -> State:
        """Drop everything staged; the state afterwards.  Raises ``NoActiveTransaction``."""
        async with self.holding(workspace):
            workspace.require_transaction()
            workspace.end_rolled_back()
            if workspace.state is State.OUT_OF_DATE and self.options.external_changes == "pick-up":
                try:
                    await workspace.pick_up()
                except BridgeError:
                    logger.info("rolled back; the change on disk is still to be read")
            return workspace.state


@asynccontextmanager
async def _stopped_on_failure(supervisor: Supervisor) -> AsyncIterator[None]:
    """A server of which nothing comes is not left running."""
    try:
        yield
    except BaseException:
        with anyio.CancelScope(shield=True):
            await supervisor.stop()
        raise


def _nudge(workspace: Workspace) -> None:
    """A call has given its lease back: time for a look that had to wait for that."""
    if workspace.watcher is not None:
        workspace.watcher.nudge(workspace.load.inputs)


async def _end(workspace: Workspace) -> None:
    """Stop everything that runs for a workspace, all at once."""
    async with anyio.create_task_group() as stops:
        stops.start_soon(workspace.supervisor.stop)
        stops.start_soon(to_thread.run_sync, workspace.instance.close)
        if workspace.watcher is not None:
            stops.start_soon(workspace.watcher.stop)


async def _keep(supervisor: Supervisor, *, task_status: TaskStatus[None]) -> None:
    """Run one server's life.  A failure before it is ready is the opener's; a later one must not end the others."""
    started = False

    class Started:
        def started(self, value: None = None) -> None:
            nonlocal started
            started = True
            task_status.started(value)

    try:
        await supervisor.run(task_status=Started())
    except Exception:
        if not started:
            raise
        logger.exception("the life of a language server ended in a way that was not foreseen")


def _real(path: str) -> Path:
    """A path as ``locate`` would spell it; links in its folder resolved."""
    given = Path(path)
    if not given.is_absolute() or "\0" in path:
        return given
    return given.parent.resolve() / given.name


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that no file system takes
        return False


def _workspace_root(located: Path, given: Path | None) -> Path:
    """The root: the given one, else the nearest Git work tree, else the folder of the loaded file."""
    if given is None:
        return next((p for p in located.parents if (p / ".git").exists()), located.parent)
    if not given.is_absolute() or not _is_folder(given):
        raise BridgeError(
            "WorkspaceRootInvalid", f"The workspaceRoot {given} is no existing absolute directory."
        )
    root = given.resolve()
    if not located.is_relative_to(root):
        raise BridgeError("WorkspaceRootInvalid", f"The workspaceRoot {root} does not hold {located}.")
    return root
