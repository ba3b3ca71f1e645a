"""A played server that knows symbols, on top of the played compiler: what a word means is for the test to say.

By default a word means whatever is spelled like it, everywhere, in comments and strings too little to be one: words of
code only.  A rename replaces every word with the same meaning and looks at nothing else, which is what a careless
server does.  ``class X``, ``void X(``, ``public X(`` and ``var X`` are declarations.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from bridge.words import Word, scan
from lsp_client.uris import path_to_uri, uri_to_path
from tests.bridge.agent import Scene
from tests.bridge.played_compiler import PlayedCompiler, compiled
from tests.bridge.played_server import Json, PlayedServer, document_edit

Meaning = Callable[[Path, str, Word], object]
"""What a word of a text means; ``None`` for nothing."""

CLASS, METHOD, CONSTRUCTOR = 5, 6, 9


class _Identifier(msgspec.Struct):
    uri: str


class _Position(msgspec.Struct):
    line: int
    character: int


class _Question(msgspec.Struct, rename="camel"):
    text_document: _Identifier
    position: _Position = msgspec.field(default_factory=lambda: _Position(0, 0))
    new_name: str = ""


def by_spelling(_path: Path, _text: str, word: Word) -> object:
    """Equal words mean the same."""
    return word.value


def place_of(text: str, start: int, end: int) -> Json:
    """A range; the texts of these tests are ASCII with line feeds."""

    def position(index: int) -> Json:
        return {"line": text.count("\n", 0, index), "character": index - (text.rfind("\n", 0, index) + 1)}

    return {"start": position(start), "end": position(end)}


class PlayedNames:
    """Answers definition, references, rename and outline."""

    def __init__(self, server: PlayedServer, root: Path) -> None:
        self._server = server
        self._root = root
        self.meaning: Meaning = by_spelling
        self.in_assembly: set[object] = set()
        """Meanings that no source declares."""
        self.alter: Callable[[list[Json]], list[Json] | None] = lambda changes: changes
        """What becomes of the edits of a rename; ``None``: there is none."""
        self.renames = 0
        self.asked_about: list[str] = []
        """The texts of the first file, at each question for references."""
        for method, answer in {
            "textDocument/definition": self._definition,
            "textDocument/references": self._references,
            "textDocument/rename": self._rename,
            "textDocument/documentSymbol": self._outline,
        }.items():
            server.answers[method] = answer

    def _files(self) -> list[Path]:
        """What there is in the server's folder, which may be a view of its own."""
        root = self._server.inside(self._root)
        return sorted(self._root / path.relative_to(root) for path in root.rglob("*.cs"))

    def _words(self) -> Iterator[tuple[Path, str, Word]]:
        for path in self._files():
            text = self._server.seen(path)
            yield from ((path, text, word) for word in scan(text).words)

    def _meant(self, params: msgspec.Raw) -> object:
        asked = msgspec.json.decode(params, type=_Question)
        path = uri_to_path(asked.text_document.uri)
        text = self._server.seen(path)
        lines = text.split("\n")
        index = sum(len(line) + 1 for line in lines[: asked.position.line]) + asked.position.character
        word = next((w for w in scan(text).words if w.start <= index <= w.end), None)
        return None if word is None else self.meaning(path, text, word)

    def _locations(self, meant: object, *, declared: bool) -> list[Json]:
        return [
            {"uri": path_to_uri(path), "range": place_of(text, word.start, word.end)}
            for path, text, word in self._words()
            if meant is not None
            and self.meaning(path, text, word) == meant
            and (not declared or _declares(text, word))
        ]

    async def _definition(self, params: msgspec.Raw) -> object:
        meant = self._meant(params)
        return [] if meant in self.in_assembly else self._locations(meant, declared=True)

    async def _references(self, params: msgspec.Raw) -> object:
        self.asked_about.append(self._server.seen(self._files()[0]))
        return self._locations(self._meant(params), declared=False)

    async def _rename(self, params: msgspec.Raw) -> object:
        self.renames += 1
        new_name = msgspec.json.decode(params, type=_Question).new_name
        by_path: dict[Path, list[Json]] = {}
        for location in self._locations(self._meant(params), declared=False):
            path = uri_to_path(str(location["uri"]))
            by_path.setdefault(path, []).append({"range": location["range"], "newText": new_name})
        changes = self.alter([document_edit(path, found) for path, found in by_path.items()])
        return None if changes is None else {"documentChanges": changes}

    async def _outline(self, params: msgspec.Raw) -> object:
        path = uri_to_path(msgspec.json.decode(params, type=_Question).text_document.uri)
        text = self._server.seen(path)
        found: list[Json] = []
        for word in scan(text).words:
            kind = _declaration(text, word)
            if kind is None:
                continue
            symbol: Json = {
                "name": word.value,
                "kind": kind,
                "range": place_of(text, text.rfind("\n", 0, word.start) + 1, word.end),
                "selectionRange": place_of(text, word.start, word.end),
                "children": [],
            }
            if kind == CLASS or not found:
                found.append(symbol)
            else:
                children = found[-1]["children"]
                assert isinstance(children, list)
                children.append(symbol)
        return found


def _declares(text: str, word: Word) -> bool:
    """Whether a word declares something: a local is in no outline."""
    return _declaration(text, word) is not None or text[: word.start].endswith("var ")


def _declaration(text: str, word: Word) -> int | None:
    """The kind of what a word declares."""
    before = text[: word.start]
    if before.endswith("class "):
        return CLASS
    if re.search(r"\bvoid $", before) and text.startswith("(", word.end):
        return METHOD
    return CONSTRUCTOR if before.endswith("public ") and text.startswith("(", word.end) else None


@asynccontextmanager
async def naming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str], **options: object
) -> AsyncIterator[tuple[Scene, PlayedNames, PlayedCompiler]]:
    """A transaction on the small solution with these texts, and a server that renames and takes in files that come."""
    async with compiled(tmp_path, monkeypatch, files, None, **options) as (made, compiler):
        made.server.reloads = True
        names = PlayedNames(made.server, made.root)
        await made.agent.start()
        yield made, names, compiler
