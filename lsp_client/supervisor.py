"""Keeps one language server running for one workspace: first load, restart, reload, end.

The life of a workspace's server, as states::

    starting --loaded--> ready --died--> restarting --loaded--> ready
       |                   |                 |
       +--failed: run()    +--reload-->  starting again with the new target
          raises           |                 |
                           |                 +--all tries used, or a load that fails--> failed
                           |                                             |
                           +--stop--> stopped                  somebody asks: restarting

A process is never revived: each try is a new process, a new session and a new `generation`, so whatever was handed
out for an older one (an action, for instance) can be recognised as stale.  The documents of a workspace are not kept
here: the first `synchronise` on the new session shows them again, in full.

A reload ends the old process before the new one starts.  Two compilers for one solution would need twice the memory,
and the old answers are known to be wrong.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import anyio
from anyio.abc import TaskStatus

from lsp_client.connection import Connection
from lsp_client.dialects.base import LoadReport, LoadTarget
from lsp_client.discovery import ServerLaunch
from lsp_client.disk import read_text
from lsp_client.errors import LanguageServerError, ServerGone
from lsp_client.failures import (
    DotnetSdkNotFound,
    LanguageServerFailed,
    MsBuildPropertiesRejected,
    WorkspaceLoadFailed,
    WorkspaceLoadTimedOut,
)
from lsp_client.incoming import Incoming
from lsp_client.loading import LoadWatch
from lsp_client.process import ServerProcess, spawn
from lsp_client.session import Session
from lsp_client.showing import limits_of
from lsp_client.staged_tree import StagedTree, TreeLost, enclosed

RESTART_DELAYS: Final = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each try to bring a dead server back.  The first is at once, because most deaths are one-off; the
last ones leave a machine in trouble some air.  Together they fit into the time a caller waits."""

STABLE_AFTER: Final = 60.0
"""A server that has been ready for so many seconds has earned its full number of tries back."""

STOP_TIMEOUT: Final = 30.0
"""Seconds for the end of a process, its politeness included; more than all the waits of `process` together."""

_WOULD_FAIL_AGAIN: Final = (
    WorkspaceLoadFailed,
    WorkspaceLoadTimedOut,
    DotnetSdkNotFound,
    MsBuildPropertiesRejected,
)
"""Failures that another try at once would only repeat."""

State = Literal["starting", "ready", "restarting", "failed", "stopped"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Waits:
    """The bounds of a server's life, in seconds."""

    load_timeout: float = 600.0
    """The longest load of a solution; large ones take minutes on a cold machine."""
    request_timeout: float = 60.0
    """The longest wait for one answer."""
    restart_timeout: float = 30.0
    """How long a caller waits for a server that is being started anew."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Who answers: the running server, else the last one that did; before the first one, what the dialect says."""

    name: str
    version: str | None
    limits: tuple[str, ...]
    pid: int | None
    """Of the running process; ``None`` when there is none that can be asked."""
    has_tree: bool | None = None
    """Whether it looks at a tree of its own; ``None`` until the first server was ready."""
    tree_refused: str | None = None
    """Why it does not, where it was to."""


class _Reload:
    """One reload that somebody waits for."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.failure: LanguageServerError | None = None


class Supervisor:
    """One workspace's language server.  ``run`` must run in a task for as long as it is used."""

    def __init__(
        self,
        launch: ServerLaunch,
        target: LoadTarget,
        environment: Mapping[str, str],
        waits: Waits,
        *,
        log_directory: Path | None = None,
        text_reader: Callable[[Path], str | None] = read_text,
        on_progress: Callable[[float | None, str], None] | None = None,
        tree_directory: Path | None = None,
        ahead: Literal["process", "load"] | None = None,
        warms_up: bool = False,
    ) -> None:
        """``environment`` is the whole environment of the process; ``text_reader`` gives the decoded text of a file
        on disk without its byte order mark, ``None`` when it has none.  With ``tree_directory``, a private directory,
        the server gets a tree of its own to look at, where the system allows that.  ``ahead`` is what the first
        process does before ``retarget`` names the projects, which may be missing in ``target``: it starts, or loads.  With
        ``warms_up`` each process compiles some of what it loads before anybody asks."""
        self.launch = launch
        self.state: State = "starting"
        self.generation = 0
        """Grows by one with each new server process."""
        self.on_progress = on_progress
        """Called with percent (0 to 100, or None) and a text while a load goes on; may be set before each load."""
        self._target = target
        self._warms_up = warms_up
        self._target_known = anyio.Event()
        if ahead is None:
            self._target_known.set()
        self._waits_for_target = ahead == "process"
        self._environment = dict(environment)
        self._waits = waits
        self._log_directory = log_directory or _default_log_directory()
        self._text_reader = text_reader
        self._tree_directory = tree_directory
        self._session: Session | None = None
        self._identity = ServerIdentity(
            launch.dialect.display_name, None, limits_of(launch.dialect, in_tree=False), None
        )
        self._failure: LanguageServerError | None = None
        self._failures = 0
        self._running = False
        self._stopping = False
        self._asked: _Reload | None = None
        self._serving: _Reload | None = None
        self._reload_lock = anyio.Lock()
        self._wake = anyio.Event()
        self._changed = anyio.Event()
        self._finished = anyio.Event()

    @property
    def target(self) -> LoadTarget:
        """What is loaded, being loaded, or loaded by the next process."""
        return self._target

    @property
    def failure(self) -> LanguageServerError | None:
        """Why there is no server, in the state ``failed``."""
        return self._failure

    # --- for callers ------------------------------------------------------------------------------------

    @property
    def ready_session(self) -> Session | None:
        """The session that can be asked now, without waiting."""
        session = self._session
        if session is None or session.connection.ended is not None or session.broken.is_set():
            return None
        return session

    @property
    def identity(self) -> ServerIdentity:
        """Who answers now, or answered last: a server that is being brought back is the same one."""
        return replace(self._identity, pid=None) if self.ready_session is None else self._identity

    @property
    def observed_state(self) -> State:
        """The state as a caller meets it now: a server that has just ended is not ready any more."""
        return "restarting" if self.state == "ready" and self.ready_session is None else self.state

    async def session(self) -> Session:
        """The ready session; waits for a restart at most ``restart_timeout`` seconds.

        After all tries have failed, asking starts one more.  Raises LanguageServerFailed, or what the last try
        failed with.
        """
        failures = self._failures
        with anyio.move_on_after(self._waits.restart_timeout):
            while self.state != "stopped":
                session = self.ready_session
                if session is not None:
                    return session
                if self.state == "failed":
                    if self._failures > failures and self._failure is not None:
                        raise _copy(self._failure)
                    self._wake_up()  # it may have given up only after we began to wait
                await self._changed.wait()
        if self.state == "stopped":
            raise LanguageServerFailed("The language server of this workspace has been stopped.")
        raise LanguageServerFailed(
            f"The language server did not come back within {self._waits.restart_timeout:g} s."
        )

    async def reload(self, target: LoadTarget, environment: Mapping[str, str]) -> LoadReport:
        """End the process and load ``target`` in a new one.  Raises what the first load of ``run`` raises.

        After a failure the next call of `session` or `reload` tries again, with the new target.
        """
        async with self._reload_lock:
            if not self._running or self._stopping:
                raise LanguageServerFailed("The language server of this workspace has been stopped.")
            self.retarget(target, environment)
            reload = self._asked = _Reload()
            self._wake_up()
            with anyio.move_on_after(self._waits.load_timeout + 2 * STOP_TIMEOUT) as bound:
                await reload.over.wait()
            if bound.cancelled_caught:
                raise WorkspaceLoadTimedOut(self._waits.load_timeout)
            if reload.failure is not None:
                raise _copy(reload.failure)
            return (await self.session()).load_report

    def retarget(self, target: LoadTarget, environment: Mapping[str, str]) -> None:
        """What the next process is to load, whatever it is started for; the running one keeps what it has loaded."""
        self._target = target
        self._environment = dict(environment)
        self._target_known.set()

    async def doubt(self) -> bool:
        """Somebody's question was not answered in time: is the server alive?  If not, it is replaced.

        A server can live on and never answer again.  A real question with a bound of its own decides; when that
        stays unanswered as well, the process is ended and a new one started, as after a death.
        """
        session = self.ready_session
        if session is None:
            return False
        if await session.is_alive():
            return True
        session.broken.set()
        return False

    async def stop(self) -> None:
        """End the server; returns when its process is gone, at the latest after ``STOP_TIMEOUT`` seconds."""
        self._stopping = True
        self._wake_up()
        if self._running:
            with anyio.move_on_after(STOP_TIMEOUT):
                await self._finished.wait()

    # --- the life ---------------------------------------------------------------------------------------

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Load, call ``started``, then keep the server running until `stop`.

        Raises what the first load fails with: LanguageServerFailed, DotnetSdkNotFound, WorkspaceLoadFailed,
        WorkspaceLoadTimedOut, MsBuildPropertiesRejected.  Later failures are told to those who ask.
        """
        self._running = True
        try:
            if not await self._live(task_status.started):
                raise LanguageServerFailed("The language server was stopped while it started.")
            await self._keep_alive()
        finally:
            self._running = False
            self._turn("stopped")
            self._serving = self._serving or self._asked
            self._end_reload(LanguageServerFailed("The language server of this workspace has been stopped."))
            self._finished.set()

    async def _keep_alive(self) -> None:
        """Bring the server back for as long as nobody stops us."""
        tries = 0
        while not self._stopping:
            if self._asked is not None:
                tries = 0
            if tries == len(RESTART_DELAYS):
                self._turn("failed")
                await self._wake.wait()
                tries = len(RESTART_DELAYS) - 1  # one more, for whoever asked
            elif not await self._pause(RESTART_DELAYS[tries]):
                continue
            tries += 1
            self._turn("restarting" if self._asked is None else "starting")
            started = anyio.current_time()
            try:
                await self._live(lambda: None)
            except LanguageServerError as error:
                logger.warning("a language server could not be started: %s", error)
                self._fail(error)
                if isinstance(error, _WOULD_FAIL_AGAIN):
                    tries = len(RESTART_DELAYS)
            else:
                if anyio.current_time() - started > STABLE_AFTER:
                    tries = 0

    async def _pause(self, seconds: float) -> bool:
        """Wait before a try.  False: something woke us, look again what is wanted."""
        if self._asked is not None or seconds == 0.0:
            return True
        self._turn("restarting")
        with anyio.move_on_after(seconds) as pause:
            await self._wake.wait()
        return pause.cancelled_caught

    async def _live(self, on_ready: Callable[[], object]) -> bool:
        """One process from its start to its end.  Raises when it failed to become ready.

        False: it was called off before it was ready.
        """
        self._wake = anyio.Event()
        self._serving, self._asked = self._asked, None
        ready = False

        def become_ready(session: Session) -> None:
            nonlocal ready
            ready = True
            self._become_ready(session)
            on_ready()

        self.generation += 1
        launch, target = self.launch, self._target
        environment = _process_environment(self._environment, launch)
        command = launch.dialect.command_line(
            launch.command, target, log_directory=self._log_directory, client_process_id=os.getpid()
        )
        try:
            if self._tree_directory is None:
                async with spawn(command, cwd=target.root, env=environment) as process:
                    failure = await self._serve(process, target, environment, become_ready)
            else:
                failure = await self._live_in_tree(
                    self._tree_directory, command, target, environment, become_ready
                )
        except (OSError, TimeoutError) as error:
            raise _not_started(command, error) from error
        if failure is not None:
            raise failure
        return ready

    async def _live_in_tree(
        self,
        directory: Path,
        command: Sequence[str],
        target: LoadTarget,
        environment: Mapping[str, str],
        on_ready: Callable[[Session], None],
    ) -> LanguageServerError | None:
        """One process with a tree of its own to look at, or without one where that was refused."""
        projects = {project.parent for project in target.projects}
        with enclosed(command, target.root, directory, projects) as enclosure:
            async with spawn(
                enclosure.command,
                cwd=target.root,
                env=environment,
                handed=(enclosure.handed.fileno(),),
                scratch=enclosure.scratch,
            ) as process:
                enclosure.handed.close()
                try:
                    refused = await enclosure.tree.opened()
                except TreeLost as error:
                    return LanguageServerFailed(str(error), process.stderr_tail())
                tree = refused or enclosure.tree
                return await self._serve(process, target, environment, on_ready, tree)

    async def _serve(
        self,
        process: ServerProcess,
        target: LoadTarget,
        environment: Mapping[str, str],
        on_ready: Callable[[Session], None],
        tree: StagedTree | str | None = None,
    ) -> LanguageServerError | None:
        """Talk to one process until its end.  The failure is a value, so that it leaves no group around it."""
        dialect = self.launch.dialect
        watch = LoadWatch()
        watch.on_progress = self._tell_progress
        incoming = Incoming(dialect, target, watch)
        connection = Connection(
            process.stdout,
            process.stdin,
            on_request=incoming.answer,
            on_notification=incoming.hear,
            describe_end=process.describe_end,
        )
        session = Session(
            connection,
            watch,
            dialect,
            target,
            pid=process.pid,
            request_timeout=self._waits.request_timeout,
            load_timeout=self._waits.load_timeout,
            stderr_tail=process.stderr_tail,
            text_reader=self._text_reader,
            tree=tree,
            edits=incoming.edits,
            known_target=self._known_target,
            loads_ahead=not self._waits_for_target,
        )
        failure: LanguageServerError | None = None
        async with anyio.create_task_group() as tasks:
            await tasks.start(connection.run)
            try:
                await self._start_and_wait(session, environment, on_ready)
            except LanguageServerError as error:
                failure = error
            finally:
                self._session = None
                if not self._stopping and self.state == "ready":
                    self._turn("restarting")
                await process.stop(session.shutdown)
                tasks.cancel_scope.cancel()
        return failure

    async def _start_and_wait(
        self, session: Session, environment: Mapping[str, str], on_ready: Callable[[Session], None]
    ) -> None:
        """Load, and return at the first of: the channel's end, a server beyond use, a stop, a reload.

        Raises what the load fails with.
        """
        failure: LanguageServerError | None = None
        async with anyio.create_task_group() as tasks:

            async def end_after(wait: Callable[[], Awaitable[object]]) -> None:
                await wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end_after, self._wanted_otherwise)
            if self._warms_up:
                tasks.start_soon(session.warm_up)
            try:
                await session.start(environment)
                on_ready(session)
            except LanguageServerError as error:
                failure = error
                tasks.cancel_scope.cancel()
            else:
                tasks.start_soon(end_after, session.connection.wait_ended)
                tasks.start_soon(end_after, session.broken.wait)
        if failure is not None:
            raise failure

    async def _known_target(self) -> LoadTarget:
        await self._target_known.wait()
        return self._target

    async def _wanted_otherwise(self) -> None:
        """Wait until the running process is not wanted any more."""
        while not self._stopping and self._asked is None:
            await self._wake.wait()
            self._wake = anyio.Event()

    # --- small changes of state -------------------------------------------------------------------------

    def _become_ready(self, session: Session) -> None:
        self._session = session
        self._identity = ServerIdentity(
            session.server_name,
            session.server_version,
            session.limits,
            session.pid,
            session.has_tree,
            session.tree_refused,
        )
        self._failure = None
        self._turn("ready")
        self._end_reload(None)

    def _fail(self, error: LanguageServerError) -> None:
        self._failure = error
        self._failures += 1
        self._end_reload(error)

    def _end_reload(self, failure: LanguageServerError | None) -> None:
        if self._serving is not None:
            self._serving.failure = failure
            self._serving.over.set()
            self._serving = None

    def _turn(self, state: State) -> None:
        self.state = state
        self._changed.set()
        self._changed = anyio.Event()

    def _wake_up(self) -> None:
        self._wake.set()

    def _tell_progress(self, percent: float | None, text: str) -> None:
        if self.on_progress is not None:
            self.on_progress(percent, text)


def _default_log_directory() -> Path:
    return Path(tempfile.gettempdir()) / f"roslyn-bridge-{os.getuid()}" / "server-logs"


def _process_environment(environment: Mapping[str, str], launch: ServerLaunch) -> dict[str, str]:
    """The environment of the process: the caller's, what the dialect needs, and the way to ``dotnet``.

    Servers run plain ``dotnet`` for restore and project evaluation, so the one that runs them must be on the PATH.
    """
    result = {**environment, **launch.dialect.environment()}
    program = Path(launch.command[0])
    if program.name in {"dotnet", "dotnet.exe"} and program.is_absolute():
        root = str(program.resolve().parent)
        result["DOTNET_ROOT"] = root
        entries = result.get("PATH", os.defpath).split(os.pathsep)
        if root not in entries:
            result["PATH"] = os.pathsep.join([root, *entries])
    return result


def _not_started(command: tuple[str, ...], error: OSError | TimeoutError) -> LanguageServerError:
    program = Path(command[0]).name
    if isinstance(error, FileNotFoundError) and program in {"dotnet", "dotnet.exe"}:
        return DotnetSdkNotFound(
            f"The command '{command[0]}' was not found: a .NET SDK is needed to run the server."
        )
    detail = getattr(error, "strerror", None) or "it took too long"
    return LanguageServerFailed(f"'{program}' could not be started: {detail}.")


def _copy(error: LanguageServerError) -> LanguageServerError:
    """An equal exception that has not been raised yet: one object raised in many tasks mixes tracebacks."""
    if isinstance(error, ServerGone):
        return error.fresh()
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    copy.args = error.args
    return copy
