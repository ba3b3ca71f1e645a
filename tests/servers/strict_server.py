"""A C# server reduced to its temper: exact about open documents, unforgiving, and able to tell what it sees.

    python strict_server.py '{"mode": "roslyn" | "csharp-ls", "load": ..., ...}' [whatever a dialect appends]

In the mode ``roslyn`` every mistake with documents ends the process with code 82, and so does a wrong answer to its
own requests while it starts.  In the mode ``csharp-ls`` an unknown notification makes it deaf for good (unknown
*requests* are still refused), a close re-reads the file with its byte order mark, and a changed project file makes it
forget all open texts.  Its own questions tell the truth about it: ``test/seen`` (URI to text as it sees it),
``test/open`` (URI to open text), ``test/notifications`` (methods, in order), ``test/reload``, ``test/wedge``,
``test/crash``.

Settings (a JSON object):

``load``       ``ok``, ``never``, ``broken`` (logs that it cannot open), ``failed`` (csharp-ls: says so), ``die``
``complete``   Roslyn: the params of the completion, or absent for none
``log``        notifications to send while it loads: a list of [method, params]
``refuse``     methods that are answered with an error
``deaf``       methods that are not answered at all
``crash_on_files``  die at the first file event
``sources``    names of kinds of diagnostics to register; asked for another kind it answers with nothing
``actions``    the answer to ``textDocument/codeAction``
``load_file``  a path: when it exists, its text is the ``load``
``stderr``     text for stderr
"""

import json
import os
import signal
import sys
from pathlib import Path
from urllib.parse import unquote

Json = dict[str, object]

MISTAKE = 82
METHOD_NOT_FOUND = -32601


def text_of(path: Path) -> str:
    """The text of a file, its line ends kept, its byte order mark not."""
    return path.read_bytes().decode("utf-8-sig")


class Server:
    """One process."""

    def __init__(self, settings: Json) -> None:
        self.settings = settings
        self.strict = settings.get("mode") == "roslyn"
        self.root = Path()
        self.open: dict[str, str] = {}
        self.known: dict[
            str, str
        ] = {}  # csharp-ls: the texts of its documents; roslyn: of its files, as loaded
        self.notifications: list[str] = []
        self.deaf = False
        self.loaded = False
        self.wedged = False
        self.next_id = 0
        self.backlog: list[Json] = []

    # --- the wire ---------------------------------------------------------------------------------------

    def next(self) -> Json | None:
        """The next message to act on."""
        return self.backlog.pop(0) if self.backlog else self.receive()

    def receive(self) -> Json | None:
        length = None
        while (line := sys.stdin.buffer.readline()).strip():
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                length = int(value)
        if length is None:
            return None
        message: Json = json.loads(sys.stdin.buffer.read(length))
        return message

    def write(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        sys.stdout.buffer.flush()

    def tell(self, method: str, params: object = None) -> None:
        message: Json = {"method": method}
        if params is not None:
            message["params"] = params
        self.write(message)

    def ask(self, method: str, params: object, length: int | None = None) -> None:
        """Ask the client and wait for its answer; whatever else comes has to wait as well."""
        self.next_id += 1
        own = self.next_id
        self.write({"id": own, "method": method, "params": params})
        while True:
            message = self.receive()
            if message is None:
                os._exit(0)
            if message.get("id") == own and "method" not in message:
                answer = message.get("result")
                if "error" in message or (
                    length is not None and (not isinstance(answer, list) or len(answer) != length)
                ):
                    self.mistake(f"a wrong answer to {method}")
                return
            self.backlog.append(message)

    def mistake(self, what: str) -> None:
        sys.stderr.write(f"fatal: {what}\n")
        sys.stderr.flush()
        os._exit(MISTAKE)

    # --- messages ---------------------------------------------------------------------------------------

    def take(self, message: Json) -> None:
        method = message.get("method")
        if method is None:
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            self.answer(message["id"], str(method), params)
        else:
            self.notifications.append(str(method))
            if not self.deaf:
                self.notified(str(method), params)

    def answer(self, request_id: object, method: str, params: Json) -> None:
        handler = getattr(self, "on_" + method.replace("/", "_").replace("$", ""), None)
        refused = self.settings.get("refuse")
        silent = self.settings.get("deaf")
        if handler is None or (isinstance(refused, list) and method in refused):
            self.write({"id": request_id, "error": {"code": METHOD_NOT_FOUND, "message": "no"}})
        elif self.deaf or (isinstance(silent, list) and method in silent):
            return
        else:
            if (
                not self.strict
                and method not in {"initialize", "shutdown"}
                and not method.startswith("test/")
            ):
                self.load()
            self.write({"id": request_id, "result": handler(params)})

    def notified(self, method: str, params: Json) -> None:
        handlers = {
            "initialized": self.initialized,
            "exit": lambda _params: os._exit(0),
            "$/cancelRequest": lambda _params: None,
            "solution/open": self.opened_solution,
            "project/open": self.opened_solution,
            "textDocument/didOpen": self.did_open,
            "textDocument/didChange": self.did_change,
            "textDocument/didClose": self.did_close,
            "workspace/didChangeWatchedFiles": self.files_changed,
        }
        if not self.strict:
            del handlers["solution/open"], handlers["project/open"]
        handler = handlers.get(method)
        if handler is not None:
            handler(params)
        elif not self.strict:
            sys.stderr.write(f"RPC error: no notification handler for method '{method}'\n")
            sys.stderr.flush()
            self.deaf = True

    # --- life -------------------------------------------------------------------------------------------

    def on_initialize(self, params: Json) -> object:
        sys.stderr.write(str(self.settings.get("stderr", "")))
        sys.stderr.flush()
        if self.settings.get("load") == "die":
            os._exit(3)
        self.root = Path(unquote(str(params["rootUri"])[len("file://") :]))
        info = {} if self.strict else {"serverInfo": {"name": "strict", "version": "1.2.3"}}
        return {"capabilities": {}, **info}

    def on_shutdown(self, params: Json) -> object:
        return None

    def initialized(self, params: Json) -> None:
        if self.strict:
            sources = self.settings.get("sources", [])
            registrations = [
                {
                    "id": str(source),
                    "method": "textDocument/diagnostic",
                    "registerOptions": {"identifier": source},
                }
                for source in (sources if isinstance(sources, list) else [])
            ]
            odd = {
                "id": "odd",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": {"watchers": []},
            }
            self.ask("client/registerCapability", {"registrations": [*registrations, odd]})
            sections = [
                "csharp|code_lens.dotnet_enable_references_code_lens",
                "projects.dotnet_enable_automatic_restore",
                "x",
            ]
            self.ask("workspace/configuration", {"items": [{"section": s} for s in sections]}, length=3)
            self.ask("workspace/_somethingNew", {})
        else:
            self.ask("workspace/configuration", {"items": [{"section": "csharp"}]}, length=1)

    def say_log(self) -> None:
        log = self.settings.get("log")
        for method, params in log if isinstance(log, list) else []:
            self.tell(method, params)

    def opened_solution(self, params: Json) -> None:
        how = self.settings.get("load", "ok")
        self.ask("window/workDoneProgress/create", {"token": "t"})
        self.tell(
            "$/progress", {"token": "t", "value": {"kind": "begin", "title": "Loading", "percentage": 0}}
        )
        self.say_log()
        if how == "broken":
            text = f"[Server] [solution/open] System.IO.FileNotFoundException: Could not find file '{params}'.\n   at Some.Place()"
            self.tell("window/logMessage", {"type": 1, "message": text})
        elif how == "ok":
            for path in self.root.rglob("*.cs"):
                self.known[path.as_uri()] = text_of(path)
            self.tell("workspace/projectInitializationComplete", self.settings.get("complete"))

    def load(self) -> None:
        """csharp-ls: the first question loads."""
        if self.loaded:
            return
        self.loaded = True
        self.ask("window/workDoneProgress/create", {"token": "t"})
        self.load_once()

    def load_once(self) -> None:
        title = f'Loading workspace folder "{self.root}", solution "x".. '
        self.tell("$/progress", {"token": "t", "value": {"kind": "begin", "title": title}})
        self.say_log()
        if self.settings.get("load") == "failed":
            message = 'csharp-ls: Solution "x" could not be loaded: no such file'
            self.tell("window/showMessage", {"type": 3, "message": message})
        else:
            for path in self.root.rglob("*.cs"):
                self.known[path.as_uri()] = text_of(path)
            self.tell("window/logMessage", {"type": 3, "message": 'csharp-ls: Finished loading solution "x"'})
        end = f'Finished loading workspace folder "{self.root}"'
        self.tell("$/progress", {"token": "t", "value": {"kind": "end", "message": end}})

    # --- documents --------------------------------------------------------------------------------------

    def did_open(self, params: Json) -> None:
        document = params["textDocument"]
        assert isinstance(document, dict)
        uri = str(document["uri"])
        if self.strict and uri in self.open:
            self.mistake("opened twice")
        self.open[uri] = str(document["text"])
        if not self.strict:
            self.known[uri] = self.open[uri]

    def did_change(self, params: Json) -> None:
        document, changes = params["textDocument"], params["contentChanges"]
        assert isinstance(document, dict)
        assert isinstance(changes, list)
        uri = str(document["uri"])
        if self.strict and uri not in self.open:
            self.mistake("changed while closed")
        text = self.known.get(uri, "") if not self.strict else self.open[uri]
        for change in changes:
            if "range" not in change:
                self.mistake("a change without a range")
            start = self.offset(text, change["range"]["start"])
            end = self.offset(text, change["range"]["end"])
            text = text[:start] + str(change["text"]) + text[end:]
        self.open[uri] = text
        if not self.strict:
            self.known[uri] = text

    def offset(self, text: str, position: Json) -> int:
        """A position as an index; only texts of the basic plane are used with this server."""
        lines = text.splitlines(keepends=True)
        line, character = position["line"], position["character"]
        assert isinstance(line, int)
        assert isinstance(character, int)
        if line > len(lines) or (
            line == len(lines) and (character or (text and not text.endswith(("\n", "\r"))))
        ):
            self.mistake("a position past the end")
        return sum(map(len, lines[:line])) + character

    def did_close(self, params: Json) -> None:
        document = params["textDocument"]
        assert isinstance(document, dict)
        uri = str(document["uri"])
        if self.strict and uri not in self.open:
            self.mistake("closed while closed")
        self.open.pop(uri, None)
        if not self.strict:
            self.reread(uri)

    def reread(self, uri: str) -> None:
        """csharp-ls reads a file again as UTF-8 and keeps its byte order mark as a character."""
        path = Path(unquote(uri[len("file://") :]))
        self.known.pop(uri, None)
        if path.is_file():
            self.known[uri] = path.read_bytes().decode("utf-8", errors="replace")

    def files_changed(self, params: Json) -> None:
        if self.settings.get("crash_on_files"):
            os._exit(9)
        changes = params["changes"]
        assert isinstance(changes, list)
        projects = [c for c in changes if str(c["uri"]).endswith("proj")]
        for change in changes:
            uri, kind = str(change["uri"]), change["type"]
            if not uri.endswith(".cs"):
                continue
            if self.strict:
                # A changed file is taken in some time later, which here is never.
                if kind == 1:
                    self.known[uri] = text_of(Path(unquote(uri[len("file://") :])))
                elif kind == 3:
                    self.known.pop(uri, None)
                continue
            self.open.pop(uri, None)
            if kind == 3:
                self.known.pop(uri, None)
            else:
                self.reread(uri)
        if projects and self.strict:
            message = "[LanguageServerProjectLoader] Completed (re)load of 1 project(s) in 00:00:00.1"
            self.tell("window/logMessage", {"type": 3, "message": message})
        elif projects:
            self.open.clear()
            self.known.clear()
            self.load_once()

    # --- questions --------------------------------------------------------------------------------------

    def sees(self, uri: str) -> str | None:
        return self.open.get(uri, self.known.get(uri))

    @staticmethod
    def uri_of(params: Json) -> str:
        document = params.get("textDocument") or params.get("_vs_textDocument")
        assert isinstance(document, dict)
        return str(document["uri"])

    def on_textDocument_documentSymbol(self, params: Json) -> object:
        return [] if self.sees(self.uri_of(params)) is not None else None

    def on_textDocument__vs_getProjectContexts(self, params: Json) -> object:
        return {"_vs_projectContexts": [{"_vs_is_miscellaneous": self.uri_of(params) not in self.known}]}

    def on_textDocument_diagnostic(self, params: Json) -> object:
        uri = self.uri_of(params)
        if self.strict and uri not in self.open:
            return {"kind": "full", "items": []}
        kind, sources = params.get("identifier"), self.settings.get("sources", [])
        if kind is not None and kind not in (sources if isinstance(sources, list) else []):
            return {"kind": "full", "items": []}
        place = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        return {
            "kind": "full",
            "items": [{"range": place, "message": self.sees(uri), "code": kind or "T1", "severity": 2}],
        }

    def on_textDocument_codeAction(self, params: Json) -> object:
        return self.settings.get("actions", [])

    def on_workspace_symbol(self, params: Json) -> object:
        return []

    def on_test_seen(self, params: Json) -> object:
        return {str(uri): self.sees(str(uri)) for uri in params}

    def on_test_open(self, params: Json) -> object:
        return self.open

    def on_test_notifications(self, params: Json) -> object:
        return self.notifications

    def on_test_reload(self, params: Json) -> object:
        """csharp-ls: load anew without being told to."""
        if not self.strict:
            self.open.clear()
            self.known.clear()
            self.load_once()
        return None

    def on_test_wedge(self, params: Json) -> object:
        """Take nothing any more, from the next message on."""
        self.wedged = True
        return None

    def on_test_crash(self, params: Json) -> object:
        os._exit(9)


def main() -> None:
    """Serve until the end of the input."""
    settings: Json = json.loads(sys.argv[1])
    load_file = settings.get("load_file")
    if isinstance(load_file, str) and Path(load_file).exists():
        settings["load"] = Path(load_file).read_text(encoding="ascii")
    server = Server(settings)
    while (message := server.next()) is not None:
        server.take(message)
        while server.wedged:
            signal.pause()


if __name__ == "__main__":
    main()
