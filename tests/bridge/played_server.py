"""A language server in the embedded dialect whose words are the test's; its process is a real one (``puppet.py``).

    async with playing(tmp_path) as server:
        options = Options(server="embedded", server_path=server.path)
        server.offers = [Offer("Add a line", insert_line)]
        async with server.held("textDocument/codeAction") as held:
            ...
            await held.reached.wait()   # the bridge has asked, and waits for us

By default it loads at once, keeps the open documents exactly (a mistake with them fails the test), and offers one
action whose title and edit tell which text it sees.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup

from lsp_client.connection import Connection
from lsp_client.errors import MethodNotFound, ServerGone
from lsp_client.uris import path_to_uri, uri_to_path

PUPPET = Path(__file__).with_name("puppet.py")

HANG_UP_BOUND = 2.0
"""Seconds for the sockets of processes that the bridge has ended already."""

CLIENT_BOUND = 20.0
"""Seconds for an answer of the bridge, which gives it at once."""

_COMING_AND_GOING = {1: "created", 3: "deleted"}

Json = dict[str, object]
Handler = Callable[[msgspec.Raw], Awaitable[object]]
NOWHERE: Json = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}


class _Identifier(msgspec.Struct):
    uri: str
    version: int | None = None
    text: str = ""


class _Position(msgspec.Struct):
    line: int
    character: int


class _Range(msgspec.Struct):
    start: _Position
    end: _Position


class _Change(msgspec.Struct):
    text: str
    range: _Range | None = None


class _OfDocument(msgspec.Struct, rename="camel"):
    text_document: _Identifier
    content_changes: list[_Change] = []


class _FileEvent(msgspec.Struct):
    uri: str
    type: int


class _Events(msgspec.Struct):
    changes: list[_FileEvent]


class _Data(msgspec.Struct, rename="pascal"):
    code_action_path: list[str] = []
    text_document: _Identifier = msgspec.field(default_factory=lambda: _Identifier(""))


class _Resolve(msgspec.Struct):
    title: str
    data: _Data
    scope: str = ""


def insert(path: Path, text: str, line: int = 0) -> Json:
    """A text edit that puts ``text`` at the start of a line."""
    place = {"line": line, "character": 0}
    return document_edit(path, [{"range": {"start": place, "end": place}, "newText": text}])


def document_edit(path: Path, edits: Sequence[Json]) -> Json:
    """The edits of one document."""
    return {"textDocument": {"uri": path_to_uri(path), "version": None}, "edits": list(edits)}


def create(path: Path, text: str) -> list[Json]:
    """The operations that create a file with a text."""
    return [{"kind": "create", "uri": path_to_uri(path)}, insert(path, text)]


def delete(path: Path) -> Json:
    """The operation that deletes a file."""
    return {"kind": "delete", "uri": path_to_uri(path)}


def rename(old: Path, new: Path) -> Json:
    """The operation that moves a file."""
    return {"kind": "rename", "oldUri": path_to_uri(old), "newUri": path_to_uri(new)}


@dataclass
class Offer:
    """One action.  ``edit`` makes the operations from the document and the text the server sees; ``None``: no edit."""

    title: str
    edit: Callable[[Path, str], Sequence[Json]] | None
    menu: tuple[str, ...] = ()
    """Titles of the groups above it."""
    kind: str | None = "refactor"
    scopes: tuple[str, ...] = ()
    fix_all: Callable[[str], Sequence[Json]] | None = None
    """Makes the operations for a whole scope; ``None``: no edit."""
    command: str | None = None
    diagnostics: Sequence[Json] = ()

    def item(self, uri: str) -> Json:
        """The action as it is listed."""
        item = self._leaf(uri, self.title)
        if self.command is not None:
            item["command"] = {"title": self.title, "command": self.command}
        for depth in range(len(self.menu), 0, -1):
            title = self.menu[depth - 1]
            data = {"CodeActionPath": list(self.menu[:depth]), "NestedCodeActions": [item]}
            command = {"title": title, "command": "roslyn.client.nestedCodeAction", "arguments": [data]}
            item = {"title": title, "kind": self.kind, "data": data, "command": command}
        return item

    def fix_all_item(self, uri: str) -> Json:
        """Its twin for whole scopes."""
        item = self._leaf(uri, f"Fix All: {self.title}")
        data = item["data"]
        assert isinstance(data, dict)
        data["FixAllFlavors"] = list(self.scopes)
        return {**item, "command": {"title": self.title, "command": "roslyn.client.fixAllCodeAction"}}

    def _leaf(self, uri: str, title: str) -> Json:
        data: Json = {"CodeActionPath": [*self.menu, self.title], "TextDocument": {"uri": uri}}
        leaf: Json = {"title": title, "data": data}
        if self.diagnostics:
            leaf["diagnostics"] = list(self.diagnostics)
        return leaf if self.kind is None else {**leaf, "kind": self.kind}


def add_a_line(seen: str) -> Offer:
    """Offers to add one line, and says in its title how many lines there are."""
    count = seen.count("\n")
    return Offer(f"Add line {count}", lambda path, _text: [insert(path, f"// line {count}\n")])


@dataclass
class Held:
    """A question that is kept waiting until the block is left."""

    reached: anyio.Event = field(default_factory=anyio.Event)
    released: anyio.Event = field(default_factory=anyio.Event)


class PlayedServer:
    """The server of all processes that the bridge starts, one after the other."""

    def __init__(self, folder: Path, tasks: TaskGroup) -> None:
        self.path = folder / "server"
        self.offers: Sequence[Offer] | None = None
        """What it offers everywhere; ``None``: one line more."""
        self.answers: dict[str, Handler] = {}
        """Handlers that take the place of the usual ones."""
        self.while_loading: Callable[[], object] = lambda: None
        """What happens in the world while it loads."""
        self.heard: list[str] = []
        """The methods of all messages, in order."""
        self.processes: list[int] = []
        """The pids of all processes so far."""
        self.open: dict[Path, str] = {}
        """The open documents of the newest process."""
        self.mistakes: list[str] = []
        self.files_changed: list[Path] = []
        """The files of all events that it was told."""
        self.came_and_went: list[tuple[str, str]] = []
        """Names of source files with "created" or "deleted", in the order it was told of them."""
        self.reloads = False
        """Whether it says, when it is told of files, that it has evaluated its projects again."""
        self.loads = True
        """Whether a load comes to its end."""
        self._tasks = tasks
        self._socket = folder / "socket"
        self._connections: list[Connection] = []
        self._changed = anyio.Event()

    def install(self) -> None:
        """Write the command that the bridge starts."""
        words = [sys.executable, "-I", "-S", str(PUPPET), str(self._socket)]
        self.path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        self.path.chmod(0o755)

    async def ask_client(self, method: str, params: object) -> object:
        """A question of the newest process to the bridge; its answer as plain JSON."""
        return msgspec.json.decode(await self._connections[-1].request(method, params, timeout=CLIENT_BOUND))

    def kill(self) -> None:
        """End the newest process with ``kill -9``, if it is still there."""
        if self._connections[-1].ended is None:
            with suppress(ProcessLookupError):
                os.kill(self.processes[-1], signal.SIGKILL)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until ``holds()``, looked at after every message."""
        while not holds():
            await self._changed.wait()

    async def hung_up(self) -> None:
        """Wait until every process has ended; those of a story that broke off are left alone after a moment.

        A socket whose reader is cancelled in the very turn in which its end arrives is an error in anyio.
        """
        with anyio.move_on_after(HANG_UP_BOUND):
            for connection in self._connections:
                await connection.wait_ended()

    def _heard(self, method: str) -> None:
        self.heard.append(method)
        self._changed.set()
        self._changed = anyio.Event()

    @property
    def listener_path(self) -> Path:
        return self._socket

    async def serve(self, stream: SocketStream) -> None:
        """The life of one process."""
        raw = stream.extra(SocketAttribute.raw_socket)
        credentials = raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self.processes.append(struct.unpack("3i", credentials)[0])
        self.open = {}

        def told(method: str, params: msgspec.Raw) -> None:
            if method == "exit":
                self._tasks.start_soon(stream.aclose)
            elif method in ("solution/open", "project/open") and self.loads:
                self.while_loading()
                self._finish_load(connection)
            self._told(method, params)

        connection = Connection(stream, stream, on_request=self._asked, on_notification=told)
        self._connections.append(connection)
        async with stream:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await connection.run()

    def seen(self, path: Path) -> str:
        """The text of a document as this server sees it."""
        if path in self.open:
            return self.open[path]
        return path.read_bytes().decode("utf-8-sig", errors="replace") if path.is_file() else ""

    @asynccontextmanager
    async def held(self, method: str) -> AsyncIterator[Held]:
        """Keep every question of this method waiting while the block runs."""
        held, before = Held(), self.answers.get(method)
        usual = before or self._usual(method)

        async def wait(params: msgspec.Raw) -> object:
            held.reached.set()
            await held.released.wait()
            return await usual(params)

        self.answers[method] = wait
        try:
            yield held
        finally:
            held.released.set()
            del self.answers[method]
            if before is not None:
                self.answers[method] = before

    # --- the wire ---------------------------------------------------------------------------------------

    async def _asked(self, method: str, params: msgspec.Raw) -> object:
        self._heard(method)
        return await (self.answers.get(method) or self._usual(method))(params)

    def _usual(self, method: str) -> Handler:
        usual: Mapping[str, Handler] = {
            "initialize": self._initialize,
            "shutdown": self._nothing,
            "textDocument/codeAction": self._list,
            "codeAction/resolve": self._resolve,
            "codeAction/resolveFixAll": self._resolve_fix_all,
            "textDocument/documentSymbol": self._symbols,
        }
        if method not in usual:
            raise MethodNotFound(method)
        return usual[method]

    def _told(self, method: str, params: msgspec.Raw) -> None:
        match method:
            case "textDocument/didOpen":
                document = msgspec.json.decode(params, type=_OfDocument).text_document
                self._require(uri_to_path(document.uri) not in self.open, f"{document.uri} opened twice")
                self.open[uri_to_path(document.uri)] = document.text
            case "textDocument/didChange":
                self._change(msgspec.json.decode(params, type=_OfDocument))
            case "textDocument/didClose":
                document = msgspec.json.decode(params, type=_OfDocument).text_document
                self._require(uri_to_path(document.uri) in self.open, f"{document.uri} closed while closed")
                self.open.pop(uri_to_path(document.uri), None)
            case "workspace/didChangeWatchedFiles":
                events = msgspec.json.decode(params, type=_Events).changes
                self.files_changed += [uri_to_path(event.uri) for event in events]
                self.came_and_went += [
                    (uri_to_path(event.uri).name, _COMING_AND_GOING[event.type])
                    for event in events
                    if event.type in _COMING_AND_GOING and event.uri.endswith(".cs")
                ]
                if self.reloads:
                    self._say(
                        self._connections[-1],
                        "window/logMessage",
                        {"type": 3, "message": "Completed (re)load of all projects"},
                    )
            case _:
                pass
        self._heard(method)

    def finish_load(self) -> None:
        """Say that the load of the newest process has ended."""
        self._finish_load(self._connections[-1])

    def _finish_load(self, connection: Connection) -> None:
        self._say(connection, "workspace/projectInitializationComplete")

    def _say(self, connection: Connection, method: str, params: object = None) -> None:
        async def say() -> None:
            with suppress(ServerGone):  # killed in this very moment
                await connection.notify(method, params)

        self._tasks.start_soon(say)

    def inside(self, path: Path) -> Path:
        """A path as the newest process finds it, which may have a view of its own."""
        return Path(f"/proc/{self.processes[-1]}/root{path}")

    def _require(self, holds: object, mistake: str) -> None:
        if not holds:
            self.mistakes.append(mistake)

    def _change(self, params: _OfDocument) -> None:
        path = uri_to_path(params.text_document.uri)
        self._require(path in self.open, f"{path} changed while closed")
        for change in params.content_changes:
            whole = change.range is not None and (change.range.start.line, change.range.start.character) == (
                0,
                0,
            )
            self._require(whole, f"{path} was not replaced from its start")
            self.open[path] = change.text

    # --- usual answers ----------------------------------------------------------------------------------

    async def _initialize(self, _params: msgspec.Raw) -> object:
        return {
            "capabilities": {"codeActionProvider": True},
            "serverInfo": {"name": "played", "version": "1"},
        }

    async def _nothing(self, _params: msgspec.Raw) -> object:
        return None

    async def _symbols(self, _params: msgspec.Raw) -> object:
        return []

    def _offers_for(self, path: Path) -> Sequence[Offer]:
        return [add_a_line(self.seen(path))] if self.offers is None else self.offers

    async def _list(self, params: msgspec.Raw) -> object:
        uri = msgspec.json.decode(params, type=_OfDocument).text_document.uri
        offers = self._offers_for(uri_to_path(uri))
        twins = [offer.fix_all_item(uri) for offer in offers if offer.scopes]
        return [*(offer.item(uri) for offer in offers), *twins]

    async def _resolve(self, params: msgspec.Raw) -> object:
        asked = msgspec.json.decode(params, type=_Resolve)
        path = uri_to_path(asked.data.text_document.uri)
        offer = next(o for o in self._offers_for(path) if [*o.menu, o.title] == asked.data.code_action_path)
        listed: Json = {"title": asked.title}
        if offer.edit is None:
            return listed
        return {**listed, "edit": {"documentChanges": list(offer.edit(path, self.seen(path)))}}

    async def _resolve_fix_all(self, params: msgspec.Raw) -> object:
        asked = msgspec.json.decode(params, type=_Resolve)
        path = uri_to_path(asked.data.text_document.uri)
        title = asked.data.code_action_path[-1].removeprefix("Fix All: ")
        offer = next(o for o in self._offers_for(path) if o.title == title)
        listed: Json = {"title": asked.title}
        if offer.fix_all is None:
            return listed
        return {**listed, "edit": {"documentChanges": list(offer.fix_all(asked.scope))}}


@asynccontextmanager
async def playing() -> AsyncIterator[PlayedServer]:
    """A server to give to the bridge as ``server_path``; at the end no mistake with documents may have been made."""
    folder = Path(tempfile.mkdtemp(prefix="played"))  # a short path: sockets allow no long ones
    try:
        async with anyio.create_task_group() as tasks:
            server = PlayedServer(folder, tasks)
            server.install()
            listener = await anyio.create_unix_listener(server.listener_path)
            tasks.start_soon(_serve, listener, server)
            try:
                yield server
            finally:
                await server.hung_up()
                tasks.cancel_scope.cancel()
        assert server.mistakes == []
    finally:
        shutil.rmtree(folder)


async def _serve(listener: Listener[SocketStream], server: PlayedServer) -> None:
    try:
        await listener.serve(server.serve)
    finally:
        with anyio.CancelScope(shield=True):
            await listener.aclose()
