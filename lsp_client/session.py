"""One language server process, initialised and loaded: the questions the bridge asks, and the order they obey.

The rule that everything rests on: before a question is asked, the server sees exactly the documents it is asked
about.  `synchronise` establishes that; it is cheap when nothing has changed.  Changes of what the server sees are made
one at a time, under one lock; questions run beside each other.  Every notification passes through `tell`, which lets
through only the ones the dialect names: one wrong notification ends the usefulness of csharp-ls without a sign.

A session begins at `start` and ends with its process.  It is never revived; the supervisor makes a new one.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import anyio
import msgspec

from lsp_client.connection import Connection
from lsp_client.dialects.base import (
    ActionListing,
    Dialect,
    DocumentView,
    FileEvent,
    LoadReport,
    LoadTarget,
    ProjectChoice,
    ServerAction,
)
from lsp_client.disk import has_byte_order_mark, read_text, some_source_file
from lsp_client.documents import Notification
from lsp_client.edit_intake import EditIntake
from lsp_client.errors import (
    LanguageServerError,
    ProtocolViolation,
    RequestTimedOut,
    ResponseError,
    ServerGone,
)
from lsp_client.failures import (
    CommandRefused,
    DocumentNotSeen,
    DotnetSdkNotFound,
    LanguageServerFailed,
    MsBuildPropertiesRejected,
    NotificationRefused,
    NotSupported,
    WorkspaceLoadTimedOut,
)
from lsp_client.loading import LoadWatch
from lsp_client.messages import (
    Command,
    Diagnostic,
    DiagnosticReport,
    FormattingOptions,
    InitializeResult,
    Range,
    TextEdit,
    WorkspaceEdit,
    decode,
    decode_optional,
)
from lsp_client.mirror import Mirror
from lsp_client.process import STDERR_TAIL_BYTES
from lsp_client.showing import Showing, limits_of
from lsp_client.staged_tree import StagedTree, TreeLost
from lsp_client.uris import path_to_uri

INITIALIZE_TIMEOUT: Final = 120.0
"""Seconds for ``initialize``: under a second when idle, up to ten on a machine that is loaded."""

NOTIFY_TIMEOUT: Final = 20.0
"""Seconds for the server to take a notification from its pipe.  One that does not is stuck: it is given up, because
what it sees is no longer known."""

ALIVE_TIMEOUT: Final = 10.0
"""Seconds for the question that shows that a server still works; a healthy one needs milliseconds."""

FIX_ALL_TIMEOUT: Final = 300.0
"""Seconds for a fix-all: the server runs analyzers over all of the scope for it, a whole solution it may be."""

HOST_LINES: Final = 10
"""Lines of the .NET host's words about a runtime that is missing; links and advice follow."""

STDERR_MAY_BE_CUT: Final = STDERR_TAIL_BYTES // 2
"""Characters of stderr from which on its beginning may be missing; the choice of a framework is said early."""

WHOLE: Final = (None,)
"""All kinds of diagnostics in one answer."""

CLIENT_NAME: Final = "roslyn-bridge"

_NO_RUNTIME: Final = re.compile(
    r"You must install(?: or update)? \.NET|No \.NET SDKs were found|No instances of MSBuild", re.IGNORECASE
)

_Result = TypeVar("_Result")

logger = logging.getLogger(__name__)


class _Resolved(msgspec.Struct, frozen=True):
    edit: WorkspaceEdit | None = None
    command: Command | None = None


class _FixAllRequest(msgspec.Struct, frozen=True):
    title: str
    data: msgspec.Raw


class Session:
    """A server process that answers questions about one solution.  Made by the supervisor."""

    def __init__(
        self,
        connection: Connection,
        watch: LoadWatch,
        dialect: Dialect,
        target: LoadTarget,
        *,
        pid: int,
        request_timeout: float,
        load_timeout: float,
        stderr_tail: Callable[[], str] = lambda: "",
        text_reader: Callable[[Path], str | None] = read_text,
        tree: StagedTree | str | None = None,
        edits: EditIntake | None = None,
        known_target: Callable[[], Awaitable[LoadTarget]] | None = None,
        loads_ahead: bool = True,
    ) -> None:
        """``tree`` is given where the server looks at a tree of its own in place of the disk, or the reason why it was
        to have one and has none.  ``known_target`` is the target with all its projects, where ``target`` lacks some; it is
        waited for before the load, or, with ``loads_ahead``, before its end is told."""
        self.connection = connection
        self.watch = watch
        self.dialect = dialect
        self.target = target
        self.pid = pid
        self.load_timeout = load_timeout
        """The longest load, in seconds."""
        self.server_name = dialect.display_name
        """The name for people; a stand-in for Microsoft's server is called one."""
        self.server_version: str | None = None
        self.broken = anyio.Event()
        """Set when the server can no longer be used although its process lives: what it sees is not known."""
        self.tree_refused = tree if isinstance(tree, str) else None
        """Why the server has no tree of its own to look at, where it was to have one."""
        own_tree = tree if isinstance(tree, StagedTree) else None
        self.has_tree = own_tree is not None
        """Whether the server looks at a tree of its own in place of the disk, in which staged files are."""
        self.limits: tuple[str, ...] = limits_of(dialect, in_tree=self.has_tree)
        self._request_timeout = request_timeout
        self._stderr_tail = stderr_tail
        self._read_text = text_reader
        self._edits = edits or EditIntake()
        self._command_turn = anyio.Lock()
        self._mirror = Mirror(dialect, self._send, text_reader, lambda path: dialect.knows(self, path))
        self._showing = Showing(
            dialect,
            self._mirror,
            own_tree,
            files_changed=self._take_in,
            knows=lambda path: dialect.knows(self, path),
        )
        self._lock = anyio.Lock()
        self._loads_seen = 0
        self._probe: Path | None = None
        self._loads = anyio.Event()
        self._known_target = known_target
        self._loads_ahead = loads_ahead or known_target is None
        self._framework: str | None = None
        """The one target framework that the server chose for all projects, if it says so."""

    # --- start ------------------------------------------------------------------------------------------

    async def start(self, environment: Mapping[str, str] | None = None) -> LoadReport:
        """Initialise and load; returns when questions will be answered truly.

        ``environment`` is that of the process: a target framework asked for in it must be the one that was loaded.
        Raises LanguageServerFailed, DotnetSdkNotFound, WorkspaceLoadFailed, WorkspaceLoadTimedOut or
        MsBuildPropertiesRejected.
        """
        try:
            await self._initialise()
            if not self._loads_ahead:
                await self._while_alive(self._know_target)
            self._probe = await anyio.to_thread.run_sync(some_source_file, self.target)
            self._loads.set()
            with anyio.fail_after(self.load_timeout):
                await self._while_alive(lambda: self.dialect.load(self))
            await self._while_alive(self._know_target)
        except ServerGone as gone:
            raise _explained(gone) from gone
        except (TimeoutError, RequestTimedOut) as error:
            raise WorkspaceLoadTimedOut(self.load_timeout, self._stderr_tail()) from error
        self._loads_seen = self.watch.ended
        self._name_server()
        self._framework = self.dialect.used_target_framework(self._stderr_tail())
        self._check_target_framework(environment or {})
        return self.load_report

    async def _know_target(self) -> None:
        if self._known_target is not None:
            self.target = await self._known_target()

    async def warm_up(self) -> None:
        """Make the first questions quick: the server compiles what it loads before somebody asks about it.

        Waits for the load to begin, goes on beside it and after it, and may be cancelled at any time.
        """
        await self._loads.wait()
        await self._know_target()
        try:
            await self.dialect.warm_up(self)
        except LanguageServerError as error:
            logger.info("the server was not warmed up to the end: %s", error)

    async def _initialise(self) -> None:
        bound = min(self.load_timeout, INITIALIZE_TIMEOUT)
        root = {"uri": path_to_uri(self.target.root), "name": self.target.root.name}
        params = {
            "processId": os.getpid(),
            "clientInfo": {"name": CLIENT_NAME},
            "locale": "en",
            "rootUri": root["uri"],
            "workspaceFolders": [root],
            "capabilities": self.dialect.capabilities(),
        }
        try:
            result = decode(await self.ask("initialize", params, timeout=bound), InitializeResult)
        except RequestTimedOut as error:
            raise LanguageServerFailed(
                f"{self.dialect.display_name} did not answer within {bound:g} s of its start.",
                self._stderr_tail(),
            ) from error
        except (ResponseError, ProtocolViolation) as error:
            raise _explained_text(
                f"{self.dialect.display_name} refused to start: {error}", self._stderr_tail()
            ) from error
        if result.server_info is not None:
            self.server_version = result.server_info.version
        await self.tell("initialized", {})

    def _name_server(self) -> None:
        """A server that calls itself a stand-in in its log is called one everywhere."""
        self.server_version = self.watch.version or self.server_version
        if self.server_version is not None and "stand-in" in self.server_version:
            self.server_name = f"{self.dialect.display_name} (stand-in)"
            self.limits = (*self.limits, "a stand-in, not Microsoft's server")

    def _check_target_framework(self, environment: Mapping[str, str]) -> None:
        wanted = next((value for name, value in environment.items() if name.lower() == "targetframework"), "")
        if not wanted or self.dialect.supports_target_framework:
            return
        said = self._stderr_tail()
        used = self._framework
        if used is None and len(said) > STDERR_MAY_BE_CUT:
            return  # what it chose was said long ago; whoever knows the projects has to judge
        if used != wanted:
            chosen = f"chose '{used}'" if used else "does not say which one it loaded"
            raise MsBuildPropertiesRejected(
                f"{self.dialect.display_name} picks the target framework by itself: '{wanted}' was asked for, it {chosen}."
            )

    @property
    def load_report(self) -> LoadReport:
        """How the newest load went, and what this server cannot do."""
        return LoadReport(self.watch.messages, self.limits, self.tree_refused)

    # --- what the server sees ---------------------------------------------------------------------------

    async def synchronise(self, view: DocumentView, *, visit: bool = False) -> None:
        """Make the server see exactly ``view`` on top of the disk; cheap when it does already.

        A ``visit`` is a view for one question, after which the server comes back: created files of the present view
        may stay where they are, as files that hold nothing.

        Raises ServerGone, RequestTimedOut when the server takes nothing any more or its tree is lost.
        """
        async with self._lock:
            await self._follow_loads()
            try:
                await self._showing.show(view, visit=visit)
            except TreeLost as error:
                self.broken.set()
                raise ServerGone(str(error)) from error

    async def _take_in(self, events: Sequence[FileEvent]) -> bool:
        """Tell of files that came, went or changed, and wait until that is taken in, if it can be known."""
        try:
            return await self._while_alive(lambda: self.dialect.files_changed(self, events))
        finally:
            self._loads_seen = self.watch.ended

    async def _follow_loads(self) -> None:
        """A load we did not expect: wait for its end, and do not believe in the texts it threw away."""
        if not self.dialect.reload_forgets_texts:
            return
        if self.watch.loading:
            ended = self.watch.ended
            with anyio.move_on_after(self.load_timeout):
                await self._while_alive(lambda: self.watch.ended_beyond(ended))
        if self.watch.ended != self._loads_seen:
            self._loads_seen = self.watch.ended
            self._mirror.forget()

    @asynccontextmanager
    async def looking_at(self, texts: Mapping[Path, str]) -> AsyncGenerator[None, None]:
        """Keep documents open while a question needs it; nothing for servers that do not, or when they are open.

        Two questions may look at the same document: it is closed after the last one.
        """
        if not self.dialect.diagnostics_need_open_document:
            yield
            return
        async with self._lock:
            looked = await self._mirror.look(texts)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                async with self._lock:
                    await self._end_look(looked)

    async def _end_look(self, looked: Sequence[Path]) -> None:
        try:
            await self._mirror.look_away(looked)
        except (ServerGone, RequestTimedOut):
            return  # with the process its open documents are gone as well

    async def files_changed(self, events: Sequence[FileEvent]) -> bool:
        """Make changes on disk known to the server.  True: it is known to have taken them in.

        False: it cannot be told, or a new process is needed (a changed solution); then the caller reloads.
        """
        if not events:
            return True
        async with self._lock:
            await self._follow_loads()
            news = self._showing.news_in(events)
            if not await self._showing.renew():
                return False
            known = await self._take_in(news) if news else True
            await self._mirror.show(self._mirror.view)
            return known

    async def sees(self, path: Path) -> bool:
        """Whether the server has a document for this file."""
        return self.is_open(path) or await self.dialect.knows(self, path)

    @property
    def open_document_count(self) -> int:
        """How many documents are open in the server."""
        return self._mirror.open_count

    @property
    def document_versions(self) -> Mapping[Path, int]:
        """The open documents, and the version that the server has of each."""
        return self._mirror.versions

    @property
    def outsiders(self) -> Mapping[Path, str]:
        """Created documents of the present view that the server does not take for members of a project, and why."""
        return self._showing.outsiders

    @property
    def unsearched(self) -> Mapping[Path, str]:
        """Created documents of the present view in which the server finds no uses of a symbol, and why."""
        return self._showing.unsearched

    @property
    def unseen_documents(self) -> frozenset[Path]:
        """Staged documents that this server cannot be shown, because it has no single document for them."""
        return frozenset(self._mirror.unseen)

    @property
    def pending_request_count(self) -> int:
        """How many of our requests wait for an answer."""
        return self.connection.pending_count

    # --- questions --------------------------------------------------------------------------------------

    async def diagnostics(
        self, path: Path, *, project: ProjectChoice | None = None
    ) -> tuple[Diagnostic, ...]:
        """All diagnostics of a document, in the context of ``project`` if several hold it.

        Where it must be open for that and is not, it is opened meanwhile with its text on disk.  Raises NotSupported,
        DocumentNotSeen, ResponseError, RequestTimedOut, ServerGone, ProtocolViolation.
        """
        return await self._diagnostics(path, project, WHOLE)

    async def compiler_diagnostics(
        self, path: Path, *, project: ProjectChoice | None = None
    ) -> tuple[Diagnostic, ...]:
        """What the compiler finds in a document, and where the server cannot tell that apart, all diagnostics.

        Without analyzers Roslyn answers ten times faster.  It answers with nothing about a kind of diagnostics that it
        does not know, so kinds are asked for only when it has registered them.  Raises what ``diagnostics`` raises.
        """
        kinds = self.dialect.compiler_sources
        known = bool(kinds) and self.watch.diagnostic_sources.issuperset(kinds)
        return await self._diagnostics(path, project, kinds if known else WHOLE)

    async def _diagnostics(
        self, path: Path, project: ProjectChoice | None, sources: Sequence[str | None]
    ) -> tuple[Diagnostic, ...]:
        if not self.dialect.has_diagnostics:
            raise NotSupported("diagnostics", self.server_name)
        if not self.dialect.diagnostics_need_open_document or self.is_open(path):
            return await self._pulled(path, project, sources)
        text = self._read_text(path)
        if text is None:
            raise DocumentNotSeen(path, self.server_name)
        async with self.looking_at({path: text}):
            return await self._pulled(path, project, sources)

    async def _pulled(
        self, path: Path, project: ProjectChoice | None, sources: Sequence[str | None]
    ) -> tuple[Diagnostic, ...]:
        self._require_loaded(path, project)
        meant = await self.dialect.identify(self, path, project)
        items: list[Diagnostic] = []
        for source in sources:
            which = {} if source is None else {"identifier": source}
            raw = await self.ask("textDocument/diagnostic", {"textDocument": meant, **which})
            report = decode_optional(raw, DiagnosticReport)
            items += () if report is None else report.items or ()
        if (
            not items
            and not await self.dialect.knows(self, path)
            and not self._mirror.is_staged_creation(path)
        ):
            raise DocumentNotSeen(path, self.server_name)
        return tuple(items)

    async def list_actions(
        self,
        path: Path,
        place: Range,
        diagnostics: Sequence[Diagnostic] | None = None,
        *,
        project: ProjectChoice | None = None,
    ) -> ActionListing:
        """The code actions of a zero-based UTF-16 range, in the context of ``project`` if several hold the file.

        ``diagnostics`` are those of the whole document as pulled from this server, ``None`` when they were not
        pulled.  Raises DocumentNotSeen, ResponseError, RequestTimedOut, ServerGone, ProtocolViolation.
        """
        self._require_loaded(path, project)
        listing = await self.dialect.list_actions(self, path, place, diagnostics, project)
        if not listing.actions and not listing.omitted and not await self.sees(path):
            raise DocumentNotSeen(path, self.server_name)
        return listing

    def _require_loaded(self, path: Path, project: ProjectChoice | None) -> None:
        """A server that loaded one framework of several would answer for that one, whatever was asked."""
        wanted = None if project is None else project.target_framework
        if wanted is not None and self._framework not in (None, wanted):
            raise DocumentNotSeen(path, self.server_name, loaded=self._framework)

    async def resolve(self, action: ServerAction) -> WorkspaceEdit | None:
        """The edit of an action, ``None`` when the server gives none.

        Raises ResponseError, -32801 among them when the text has changed since the listing, and CommandRefused.
        """
        return await self._edit_of(await self.ask("codeAction/resolve", action.payload))

    async def _edit_of(self, raw: msgspec.Raw) -> WorkspaceEdit | None:
        """The edit of a resolved action, be it that a command has to bring it."""
        told = decode_optional(raw, _Resolved)
        if told is None or told.command is None:
            return None if told is None else told.edit
        if told.edit is not None or told.command.command not in self.dialect.edit_commands:
            raise CommandRefused(told.command.command, self.server_name)
        params = {"command": told.command.command, "arguments": told.command.arguments or []}
        async with self._command_turn:
            refused = self._edits.refused
            with self._edits.open() as taken:
                await self.ask("workspace/executeCommand", params)
            if self._edits.refused != refused:
                raise CommandRefused(told.command.command, self.server_name)
        return taken[0] if taken else None

    async def resolve_fix_all(self, action: ServerAction, scope: str) -> WorkspaceEdit | None:
        """The edit of an action for every occurrence in ``scope``, which must be one of its ``fix_all_scopes``.

        Waits ``FIX_ALL_TIMEOUT`` seconds, or the request timeout where that is longer.  Raises NotSupported for
        another scope, and what `resolve` raises.
        """
        if action.fix_all_payload is None or scope not in action.fix_all_scopes:
            raise NotSupported(f"'{action.title}' for the scope '{scope}'", self.server_name)
        twin = decode(action.fix_all_payload, _FixAllRequest)
        raw = await self.ask(
            "codeAction/resolveFixAll",
            {"title": twin.title, "data": twin.data, "scope": scope},
            timeout=max(FIX_ALL_TIMEOUT, self._request_timeout),
        )
        return decode(raw, _Resolved).edit

    async def formatting(
        self,
        path: Path,
        options: FormattingOptions,
        *,
        place: Range | None = None,
        project: ProjectChoice | None = None,
    ) -> tuple[TextEdit, ...]:
        """The edits that format a document, or a zero-based UTF-16 range of it; none when it is formatted already.

        Raises NotSupported, DocumentNotSeen, ResponseError, RequestTimedOut, ServerGone, ProtocolViolation.
        """
        if not self.dialect.has_formatting:
            raise NotSupported("formatting", self.server_name)
        self._require_loaded(path, project)
        params = {"textDocument": await self.dialect.identify(self, path, project), "options": options}
        if place is None:
            raw = await self.ask("textDocument/formatting", params)
        else:
            raw = await self.ask("textDocument/rangeFormatting", {**params, "range": place})
        edits = decode_optional(raw, list[TextEdit])
        if not edits and not await self.sees(path):
            raise DocumentNotSeen(path, self.server_name)
        return tuple(edits or ())

    async def is_alive(self) -> bool:
        """Whether the server answers a real question within ``ALIVE_TIMEOUT`` seconds."""
        if self.connection.ended is not None or self.broken.is_set():
            return False
        with anyio.move_on_after(ALIVE_TIMEOUT):
            try:
                return await self.dialect.is_alive(self)
            except (ServerGone, RequestTimedOut):
                return False
        return False

    # --- the wire ---------------------------------------------------------------------------------------

    async def ask(self, method: str, params: object, *, timeout: float | None = None) -> msgspec.Raw:
        """The raw JSON of an answer.  ``timeout`` in seconds; by default the request timeout."""
        bound = self._request_timeout if timeout is None else timeout
        return await self.connection.request(method, params, timeout=bound)

    async def tell(self, method: str, params: object) -> None:
        """Send a notification that the dialect names.  Raises NotificationRefused for any other."""
        if method not in self.dialect.notifications:
            raise NotificationRefused(method, self.dialect.display_name)
        try:
            await self.connection.notify(method, params, timeout=NOTIFY_TIMEOUT)
        except RequestTimedOut:
            self.broken.set()
            raise

    async def shutdown(self) -> None:
        """Ask the server to end, in its own language.  The process is stopped by its owner afterwards."""
        await self.connection.request("shutdown", timeout=self._request_timeout)
        await self.connection.notify("exit", timeout=NOTIFY_TIMEOUT)

    async def _send(self, notification: Notification) -> None:
        """Send what the ledger has already noted: not to be interrupted, or the two would differ."""
        with anyio.CancelScope(shield=True):
            await self.tell(notification.method, notification.params)

    async def _while_alive(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """Do ``work``, but no longer than the channel lives.  Raises ServerGone when that ends first."""
        results: list[_Result] = []
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:

            async def end_with_channel() -> None:
                await self.connection.wait_ended()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end_with_channel)
            try:
                results.append(await work())
            except Exception as error:  # noqa: BLE001 - carried out of the task group, raised again below
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if results:
            return results[0]
        raise await self.connection.wait_ended()

    # --- the holder's part, for the dialect -------------------------------------------------------------

    def probe_file(self) -> Path | None:
        """Some source file of the solution."""
        return self._probe

    def text_seen(self, path: Path) -> str | None:
        """The text the server has for a document."""
        text = self._mirror.text_of(path)
        return self._read_text(path) if text is None else text

    def is_open(self, path: Path) -> bool:
        """Whether the document is open in the server."""
        return self._mirror.is_open(path)

    def text_on_disk(self, path: Path) -> str | None:
        """The decoded text of a file, ``None`` when it is missing or unreadable."""
        return self._read_text(path)

    def has_byte_order_mark(self, path: Path) -> bool:
        """Whether the file starts with a byte order mark."""
        return has_byte_order_mark(path)

    async def hold(self, path: Path, text: str) -> None:
        """Show the text that is on disk now by an open document."""
        await self._mirror.hold(path, text)

    async def let_go(self, path: Path) -> None:
        """End a hold of this document."""
        await self._mirror.let_go(path)

    def forget_documents(self) -> None:
        """The server dropped all open texts."""
        self._mirror.forget()


def _explained(gone: ServerGone) -> LanguageServerFailed | DotnetSdkNotFound:
    """A process that ended while it started, as a failure of the whole server."""
    return _explained_text(f"The language server ended while it started: {gone.reason}.", gone.stderr_tail)


def _explained_text(message: str, stderr_tail: str) -> LanguageServerFailed | DotnetSdkNotFound:
    found = _NO_RUNTIME.search(stderr_tail) or _NO_RUNTIME.search(message)
    if found is None:
        return LanguageServerFailed(message, stderr_tail)
    lines = [line.strip() for line in (stderr_tail or message).splitlines() if line.strip()]
    first = next((number for number, line in enumerate(lines) if found[0] in line), 0)
    # The host names the framework wanted, and those found, in the lines below.
    return DotnetSdkNotFound(" ".join(lines[first : first + HOST_LINES]))
