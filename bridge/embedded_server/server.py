"""The conversation: what is answered to which message.

The server is deliberately forgetful: it keeps open texts and the list of opened projects, and reads everything else
from disk when it is asked, so there is no state that a missed file event could make wrong.
"""

import asyncio
import logging
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import anyio.lowlevel
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from bridge.editorconfig import editorconfig_for
from bridge.embedded_server import messages, wire, wire_outline
from bridge.embedded_server.actions.base import Action, Outcome, Place
from bridge.embedded_server.documents import Documents, TextUnknownError, UnreadableTextError
from bridge.embedded_server.edits import apply
from bridge.embedded_server.engine import (
    CONTENT_MODIFIED,
    INVALID_PARAMS,
    INVOCATION_FAILED,
    REQUEST_FAILED,
    Engine,
    Json,
)
from bridge.embedded_server.folding import folds
from bridge.embedded_server.outline import outline
from bridge.embedded_server.positions import OutsideTextError
from bridge.embedded_server.projects import (
    Project,
    UnreadableError,
    documents_of,
    owner_of,
    read_project,
    read_solution,
)
from bridge.embedded_server.syntax import Source
from bridge.generated_code import is_generated_code
from bridge.version import bridge_version
from lsp_client.uris import uri_to_path

NAME = "Roslyn Bridge embedded C# server (syntax only)"

_INITIALIZED_SECONDS = 60.0
"""Twice what one unanswered question may take: then loading goes on without the answers."""

_log = logging.getLogger(__name__)


class Server:
    """One run of the server, from initialize to exit."""

    def __init__(self, engine: Engine) -> None:
        self.exit_code = 0
        self._engine = engine
        self._documents = Documents()
        self._project_files: dict[Path, None] = {}
        self._capabilities = messages.Capabilities()
        self._initialized = asyncio.Event()
        self._listen()

    def _listen(self) -> None:
        engine = self._engine
        engine.on(types.INITIALIZE, messages.Initialize, self._initialize)
        engine.on_slow(types.INITIALIZED, _Nothing, self._on_initialized)
        engine.on(types.SHUTDOWN, _Nothing, self._shutdown)
        engine.on(types.EXIT, _Nothing, self._exit)
        engine.on_slow("solution/open", messages.SolutionOpen, self._open_solution)
        engine.on_slow("project/open", messages.ProjectOpen, self._open_projects)
        engine.on(types.TEXT_DOCUMENT_DID_OPEN, messages.OfDocument, self._did_open)
        engine.on(types.TEXT_DOCUMENT_DID_CHANGE, messages.DidChange, self._did_change)
        engine.on(types.TEXT_DOCUMENT_DID_CLOSE, messages.OfDocument, self._did_close)
        engine.on(types.TEXT_DOCUMENT_CODE_ACTION, messages.AtRange, self._list_actions)
        engine.on(types.CODE_ACTION_RESOLVE, messages.Resolve, self._resolve)
        engine.on_slow("codeAction/resolveFixAll", messages.Resolve, self._resolve_fix_all)
        engine.on(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, messages.OfDocument, self._outline)
        engine.on(types.TEXT_DOCUMENT_FOLDING_RANGE, messages.OfDocument, self._folds)
        for heard in (
            types.TEXT_DOCUMENT_DID_SAVE,
            types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
            types.WORKSPACE_DID_CHANGE_CONFIGURATION,
            types.SET_TRACE,
        ):
            engine.on(heard, _Nothing, _nothing_to_do)

    # Beginning and end

    def _initialize(self, params: messages.Initialize, _raw: Json) -> Json:
        self._capabilities = params.capabilities
        return {
            "capabilities": {
                "textDocumentSync": {"openClose": True, "change": 2, "save": {}},
                "documentSymbolProvider": True,
                "foldingRangeProvider": True,
                "codeActionProvider": {"codeActionKinds": ["refactor"], "resolveProvider": True},
                "executeCommandProvider": {"commands": []},
            },
            "serverInfo": {"name": NAME, "version": bridge_version()},
            "_roslyn_processId": os.getpid(),
        }

    async def _on_initialized(self, _params: object, _raw: Json) -> None:
        limits = (
            "a stand-in: it knows syntax only, and takes the files of a project by the SDK's default globs"
        )
        self._say(types.MessageType.Info, f"[Server] {NAME} {bridge_version()}, PID {os.getpid()}; {limits}")
        try:
            await self._introduce()
        except (JsonRpcException, TimeoutError) as error:
            # The real server would end here; a stand-in can do without the answers.
            self._say(types.MessageType.Warning, f"[Server] the client did not answer as expected: {error}")
        finally:
            self._initialized.set()
        self._say(types.MessageType.Info, "[Server] Language server initialized")

    async def _introduce(self) -> None:
        workspace = self._capabilities.workspace
        if workspace.did_change_configuration.dynamic_registration:
            registration = {"id": str(uuid.uuid4()), "method": types.WORKSPACE_DID_CHANGE_CONFIGURATION}
            await self._ask(types.CLIENT_REGISTER_CAPABILITY, {"registrations": [registration]})
        if workspace.configuration:
            # Nothing here has options; the round trip is part of the dialect, and the answer may be null.
            section = "csharp|formatting.dotnet_organize_imports_on_format"
            await self._ask(types.WORKSPACE_CONFIGURATION, {"items": [{"section": section}]})

    def _shutdown(self, _params: object, _raw: Json) -> None:
        self._engine.protocol.shutting_down = True
        self._say(types.MessageType.Info, "[Server] Shutting down")

    def _exit(self, _params: object, _raw: Json) -> NoReturn:
        self.exit_code = 0 if self._engine.protocol.shutting_down else 1
        raise SystemExit(self.exit_code)

    # Loading

    async def _open_solution(self, params: messages.SolutionOpen, _raw: Json) -> None:
        path = _path(params.solution)
        try:
            projects = read_solution(path)
        except UnreadableError as error:
            # As with the real server no completion follows: nothing has been loaded.
            self._say(
                types.MessageType.Error, f"[LanguageServerProjectLoader] Error while loading {path}: {error}"
            )
            return
        await self._load(path.name, projects)

    async def _open_projects(self, params: messages.ProjectOpen, _raw: Json) -> None:
        if params.projects:  # opening none completes nothing
            await self._load("projects", [_path(uri) for uri in params.projects])

    async def _load(self, title: str, paths: Sequence[Path]) -> None:
        started = time.monotonic()
        await asyncio.wait_for(self._initialized.wait(), _INITIALIZED_SECONDS)
        token = await self._begin_progress(f"Loading {title}...")
        for number, path in enumerate(paths, 1):
            self._load_project(path)
            percentage = min(99, 100 * number // len(paths))
            self._progress(token, {"kind": "report", "percentage": percentage, "message": path.name})
        took = f"{time.monotonic() - started:.3f} s"
        self._say(
            types.MessageType.Info,
            f"[LanguageServerProjectLoader] Completed (re)load of all projects in {took}",
        )
        self._progress(token, {"kind": "end", "message": f"Loaded {title}"})
        self._engine.protocol.notify_bare("workspace/projectInitializationComplete")

    def _load_project(self, path: Path) -> None:
        try:
            read_project(path)
        except UnreadableError as error:
            self._say(
                types.MessageType.Error, f"[LanguageServerProjectLoader] Error while loading {path}: {error}"
            )
            return
        self._project_files[path] = None
        self._say(
            types.MessageType.Info, f"[LanguageServerProjectLoader] Successfully completed load of {path}"
        )

    async def _begin_progress(self, title: str) -> str | None:
        if not self._capabilities.window.work_done_progress:
            return None
        token = str(uuid.uuid4())
        try:
            await self._ask(types.WINDOW_WORK_DONE_PROGRESS_CREATE, {"token": token})
        except (JsonRpcException, TimeoutError):
            return None  # a client that does not want the token gets no progress
        self._progress(token, {"kind": "begin", "title": title, "percentage": 0, "cancellable": False})
        return token

    def _progress(self, token: str | None, value: Json) -> None:
        if token is not None:
            self._engine.protocol.notify(types.PROGRESS, {"token": token, "value": value})

    def _projects(self) -> tuple[Project, ...]:
        """The opened projects as their files are now; one that has become unreadable is passed over."""
        found: list[Project] = []
        for path in self._project_files:
            try:
                found.append(read_project(path))
            except UnreadableError as error:
                _log.info("%s is not readable now: %s", path, error)
        return tuple(found)

    # Texts

    def _did_open(self, params: messages.OfDocument, _raw: Json) -> None:
        self._documents.open(_path(params.text_document.uri), params.text_document.text)

    def _did_change(self, params: messages.DidChange, _raw: Json) -> None:
        changes = [change.value() for change in params.content_changes]
        try:
            self._documents.change(_path(params.text_document.uri), changes)
        except TextUnknownError as error:
            self._say(types.MessageType.Error, f"[Server] textDocument/didChange: {error}")

    def _did_close(self, params: messages.OfDocument, _raw: Json) -> None:
        self._documents.close(_path(params.text_document.uri))

    def _source(self, uri: str) -> Source | None:
        path = _path(uri)
        if path.suffix.lower() != ".cs":
            return None
        try:
            return self._documents.source(path)
        except TextUnknownError as error:
            raise JsonRpcException(str(error), code=CONTENT_MODIFIED) from error
        except UnreadableTextError as error:
            raise JsonRpcException(str(error), code=REQUEST_FAILED) from error

    # Actions

    def _list_actions(self, params: messages.AtRange, raw: Json) -> list[Json]:
        uri = params.text_document.uri
        source = self._source(uri)
        if source is None:
            return []
        place = raw["range"]
        actions = wire.actions_at(self._place(uri, source, params.range))
        return wire.listing(actions, uri, place if isinstance(place, dict) else {})

    def _resolve(self, params: messages.Resolve, raw: Json) -> Json:
        if params.data.fix_all_flavors or params.data.nested_code_actions:
            return raw  # a group and a fix-all are resolved by the client's choice, not by this request
        action, source = self._find(params)
        if action.run is None:
            return raw
        path, outcome = _path(params.data.text_document.uri), action.run()
        if not wire.is_intact(source, outcome, apply(source.text, outcome.edits)):
            self._say(
                types.MessageType.Error, f"[Server] '{params.title}' would break {path}; it is not applied"
            )
            return {**raw, "edit": {"documentChanges": []}}
        operations = self._capabilities.workspace.workspace_edit.resource_operations
        return {**raw, "edit": wire.workspace_edit(path, source, outcome, operations)}

    async def _resolve_fix_all(self, params: messages.Resolve, raw: Json) -> Json:
        if params.scope not in wire.FIX_ALL_SCOPES:
            raise JsonRpcException("Sequence contains no elements", code=INVOCATION_FAILED)
        action, _ = self._find(params)
        if action.fix_all is None:
            raise JsonRpcException("Sequence contains no elements", code=INVOCATION_FAILED)
        path = _path(params.data.text_document.uri)
        projects = self._projects()
        changes: list[Json] = []
        texts = Documents(self._documents.open_texts)  # changes that arrive meanwhile are not for this answer
        for document in self._in_scope(path, params.scope, projects):
            await anyio.lowlevel.checkpoint()  # others get their answers, and a cancel gets through
            if document == path or _has_language(action, document, projects):
                changes += self._fix_document(action, texts, document, is_asked=document == path)
        return {**raw, "edit": {"documentChanges": changes}}

    def _find(self, params: messages.Resolve) -> tuple[Action, Source]:
        """The action that was listed, computed anew. Raises JsonRpcException with "content modified"."""
        uri = params.data.text_document.uri
        source = self._source(uri)
        if source is not None:
            try:
                actions = wire.actions_at(self._place(uri, source, params.data.range))
            except JsonRpcException:
                actions = []  # the range does not exist any more
            action = wire.find(actions, params.data.code_action_path)
            if action is not None:
                return action, source
        gone = f"Code action '{params.title}' is no longer available."
        raise JsonRpcException(gone, code=CONTENT_MODIFIED)

    def _place(self, uri: str, source: Source, asked: messages.Range) -> Place:
        try:
            start = source.lines.offset_at(asked.start.value())
            end = source.lines.offset_at(asked.end.value())
        except OutsideTextError as error:
            raise JsonRpcException(str(error), code=INVALID_PARAMS) from error
        if start > end:
            raise JsonRpcException("the range ends before it begins", code=INVALID_PARAMS)
        if start == end and source.starts_line(start):
            # A caret in the indentation points at the line's first token.
            end = source.lines.visible_end(source.lines.line_of(start))
            start = end - len(source.text[start:end].lstrip(" \t"))
            end = start
        path = _path(uri)
        owner = owner_of(path, self._projects())
        version_known = owner.language_version if owner is not None else None
        return Place(source, path, start, end, self._documents.exists, version_known)

    def _in_scope(self, path: Path, scope: str, projects: tuple[Project, ...]) -> Iterable[Path]:
        """The documents of a fix-all that was asked for in ``path``, each once."""
        if scope == "Document":
            return [path]
        owner = owner_of(path, projects)
        chosen = projects if scope == "Solution" else (owner,) if owner is not None else ()
        found = dict.fromkeys([path])
        for project in chosen:
            found.update(dict.fromkeys(self._members(project, projects)))
        return found

    def _members(self, project: Project, projects: tuple[Project, ...]) -> Iterator[Path]:
        """The documents of a project: its files, and open documents that are not on disk yet but would belong."""
        yield from documents_of(project, projects)
        for path in self._documents.open_texts:
            if path.suffix.lower() == ".cs" and owner_of(path, projects) == project:
                yield path

    def _fix_document(self, action: Action, texts: Documents, path: Path, *, is_asked: bool) -> list[Json]:
        """The edits of one document; none in a generated one, unless that is where the fix-all was asked for."""
        try:
            source = texts.source(path)
        except (TextUnknownError, UnreadableTextError) as error:
            self._say(types.MessageType.Warning, f"[Server] '{action.title}' leaves a file out: {error}")
            return []
        if source is None or action.fix_all is None:
            return []
        wish = editorconfig_for(path).generated_code
        if is_generated_code(path, source.text, wish) and not is_asked:
            return []
        edits = action.fix_all(source, path)
        if not edits:
            return []
        if not wire.is_intact(source, Outcome(edits), apply(source.text, edits)):
            self._say(
                types.MessageType.Error, f"[Server] '{action.title}' would break {path}; it is left out"
            )
            return []
        return wire.document_edits(path, source, edits)

    # The other questions

    def _outline(self, params: messages.OfDocument, _raw: Json) -> list[Json]:
        uri = params.text_document.uri
        source = self._source(uri)
        if source is None:
            return []
        symbols = outline(source)
        if self._capabilities.text_document.document_symbol.hierarchical_document_symbol_support:
            return [wire_outline.tree(source, symbol) for symbol in symbols]
        return list(wire_outline.flat(source, symbols, uri, None))

    def _folds(self, params: messages.OfDocument, _raw: Json) -> list[Json]:
        source = self._source(params.text_document.uri)
        if source is None:
            return []
        return [wire_outline.fold(source, found) for found in folds(source)]

    # Small change

    def _say(self, kind: types.MessageType, text: str) -> None:
        self._engine.protocol.notify(types.WINDOW_LOG_MESSAGE, {"type": int(kind), "message": text})

    async def _ask(self, method: str, params: Json) -> object:
        return await self._engine.protocol.ask(method, params)


_Nothing = dict[str, object]
"""Parameters that nobody reads."""


def _nothing_to_do(_params: object, _raw: Json) -> None:
    """Heard, and of no consequence: files are read from disk whenever they are needed."""


def _path(uri: str) -> Path:
    try:
        return uri_to_path(uri)
    except ValueError as error:
        raise JsonRpcException(str(error), code=INVALID_PARAMS) from error


def _has_language(action: Action, path: Path, projects: tuple[Project, ...]) -> bool:
    """Whether the document's project is not known to be too old for what the action writes."""
    owner = owner_of(path, projects)
    if action.language_version is None or owner is None or owner.language_version is None:
        return True
    return owner.language_version >= action.language_version
