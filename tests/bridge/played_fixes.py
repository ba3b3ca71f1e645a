"""A server like csharp-ls that a test can foresee: diagnostics with single fixes, and no fix-all.

What it finds are the matches of its rules, in all files on disk, with the text of the open document where there is
one.  A rule says which id a match has, how its fix is called and what that edits.  As the real one does, the server
reports hidden diagnostics in its report about the whole solution and not for a document, offers at a range the fixes
of all diagnostics that touch it, finds a fix again by its title, and answers nothing for a file of two projects.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from lsp_client import messages
from lsp_client.errors import ResponseError
from lsp_client.uris import path_to_uri, uri_to_path
from tests.bridge.agent import Scene, scene
from tests.bridge.played_compiler import evaluated_projects
from tests.bridge.played_server import Json, PlayedServer, document_edit

Edits = Callable[[Path, str, re.Match[str]], Sequence[Json]]


def place_of(text: str, start: int, end: int) -> Json:
    """The range of some characters; texts here are ASCII."""

    def position(offset: int) -> Json:
        return {
            "line": text.count("\n", 0, offset),
            "character": offset - (text.rfind("\n", 0, offset) + 1),
        }

    return {"start": position(start), "end": position(end)}


def replacing(with_what: str | Callable[[re.Match[str]], str], *, beyond: int = 0) -> Edits:
    """A fix that puts something in the place of the match and of so many characters after it."""

    def edits(path: Path, text: str, found: re.Match[str]) -> Sequence[Json]:
        new = with_what if isinstance(with_what, str) else with_what(found)
        place = place_of(text, found.start(), min(found.end() + beyond, len(text)))
        return [document_edit(path, [{"range": place, "newText": new}])]

    return edits


def without_lines(pattern: str) -> Edits:
    """A fix that takes all matches out of the document, whichever it was asked for."""

    def edits(path: Path, text: str, _found: re.Match[str]) -> Sequence[Json]:
        places = [place_of(text, m.start(), m.end()) for m in re.finditer(pattern, text)]
        return [document_edit(path, [{"range": place, "newText": ""} for place in places])]

    return edits


@dataclass(frozen=True)
class Rule:
    """One diagnostic, and its fix."""

    id: str
    pattern: str
    title: str | Callable[[re.Match[str]], str]
    edits: Edits
    severity: int = 2

    def found_in(self, text: str) -> list[re.Match[str]]:
        return list(re.finditer(self.pattern, text))

    def title_for(self, found: re.Match[str]) -> str:
        return self.title if isinstance(self.title, str) else self.title(found)

    def diagnostic(self, text: str, found: re.Match[str]) -> Json:
        place = place_of(text, found.start(), found.end())
        return {
            "range": place,
            "severity": self.severity,
            "code": self.id,
            "message": f"{self.id} at {found[0]}",
        }


HIDDEN = 4
USINGS = Rule(
    "CS8019",
    r"using Unused\w*;",
    "Remove unnecessary usings",
    without_lines(r"using Unused\w*;\n?"),
    HIDDEN,
)
MARKS = Rule("CS0168", r"!", "Mark it", replacing("? ", beyond=1))
"""Its fix reaches the next mark where only a space stands between."""

OLD = Rule("CS0618", r"\bold_(\w+)\b", "Use the new name", replacing(lambda found: f"new_{found[1]}"))


class _Asked(msgspec.Struct):
    document: messages.VersionedDocument = msgspec.field(name="textDocument")
    range: messages.Range | None = None


class _Data(msgspec.Struct):
    uri: str = msgspec.field(name="textDocumentUri")
    range: messages.Range


class _Resolved(msgspec.Struct):
    title: str
    data: _Data


@dataclass
class PlayedFixer:
    """The answers; every question is counted."""

    server: PlayedServer
    root: Path
    rules: Sequence[Rule] = (OLD,)
    refactorings: Sequence[str] = ()
    """Titles that every place within a line offers."""
    listed: list[str] = field(default_factory=list)
    """The files of all listings, in order."""
    resolved: list[str] = field(default_factory=list)
    reports: int = 0
    shared: frozenset[str] = frozenset()
    """Names of files that it has no single document for."""
    broken: bool = False
    """Whether no action can be resolved."""
    offers_nothing_in: frozenset[str] = frozenset()
    """Names of files where diagnostics have no fix."""

    def __post_init__(self) -> None:
        self.server.answers.update(
            {
                "textDocument/documentSymbol": self._symbols,
                "textDocument/diagnostic": self._pull,
                "workspace/diagnostic": self._report,
                "textDocument/codeAction": self._list,
                "codeAction/resolve": self._resolve,
            }
        )

    async def _symbols(self, params: msgspec.Raw) -> object:
        path = uri_to_path(msgspec.json.decode(params, type=_Asked).document.uri)
        return None if path.name in self.shared else [{}]

    async def _pull(self, params: msgspec.Raw) -> object:
        path = uri_to_path(msgspec.json.decode(params, type=_Asked).document.uri)
        items = [] if path.name in self.shared else self._diagnostics(path)
        return {"kind": "full", "items": [item for item in items if item["severity"] != HIDDEN]}

    async def _report(self, _params: msgspec.Raw) -> object:
        self.reports += 1
        files = {*self.root.rglob("*.cs"), *self.server.open}
        items = [
            {"kind": "full", "uri": path_to_uri(path), "items": self._diagnostics(path)}
            for path in sorted(files, reverse=True)
        ]
        return {"items": [item for item in items if item["items"]]}

    def _diagnostics(self, path: Path) -> list[Json]:
        text = self.server.seen(path)
        items = [rule.diagnostic(text, found) for rule in self.rules for found in rule.found_in(text)]
        return items[::-1]

    def _touching(self, path: Path, place: messages.Range) -> list[tuple[Rule, re.Match[str]]]:
        text = self.server.seen(path)
        touched = []
        for rule in self.rules:
            for found in rule.found_in(text):
                there = msgspec.convert(place_of(text, found.start(), found.end()), messages.Range)
                if there.start <= place.end and place.start <= there.end:
                    touched.append((rule, found))
        return touched

    async def _list(self, params: msgspec.Raw) -> object:
        asked = msgspec.json.decode(params, type=_Asked)
        path = uri_to_path(asked.document.uri)
        assert asked.range is not None
        if path.name in self.shared:
            return None
        self.listed.append(path.name)
        hidden = path.name in self.offers_nothing_in
        fixes = [] if hidden else [rule.title_for(m) for rule, m in self._touching(path, asked.range)]
        data = {"textDocumentUri": asked.document.uri, "range": asked.range}
        in_a_line = asked.range.start.line == asked.range.end.line
        refactorings = self.refactorings if in_a_line else ()
        return [{"title": title, "data": data} for title in (*refactorings, *fixes)]

    async def _resolve(self, params: msgspec.Raw) -> object:
        asked = msgspec.json.decode(params, type=_Resolved)
        path = uri_to_path(asked.data.uri)
        self.resolved.append(path.name)
        for rule, found in self._touching(path, asked.data.range):
            is_offered = not self.broken and path.name not in self.offers_nothing_in
            if rule.title_for(found) == asked.title and is_offered:
                edits = rule.edits(path, self.server.seen(path), found)
                return {"title": asked.title, "edit": {"documentChanges": list(edits)}}
        raise ResponseError("codeAction/resolve", -32603, "Internal error: Exception")


@asynccontextmanager
async def fixing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: Mapping[str, str],
    rules: Sequence[Rule] = (OLD,),
    **options: object,
) -> AsyncIterator[tuple[Scene, PlayedFixer]]:
    """The small solution with some files of these texts, open in a bridge whose server finds and fixes by rules."""
    async with scene(tmp_path, server="csharp-ls", restore="never", **options) as made:
        for name, text in files.items():
            made.file(name).write_text(text, encoding="utf-8", newline="")
        evaluated_projects(made, tmp_path, monkeypatch)
        fixer = PlayedFixer(made.server, made.root, rules)
        await made.agent.open(made.solution)
        yield made, fixer
