"""The played server as csharp-ls: actions without kinds, found again by title; ``null`` for a file of two projects.

A file whose name begins with ``Shared`` is compiled by both projects, so that this server has no document for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from lsp_client.errors import ResponseError
from lsp_client.uris import uri_to_path
from tests.bridge.agent import Scene, scene
from tests.bridge.played_server import Json, PlayedServer
from tests.bridge.scripted_dotnet import ScriptedDotnet, evaluation


class _Identifier(msgspec.Struct):
    uri: str


class _Question(msgspec.Struct, rename="camel"):
    text_document: _Identifier


class _Data(msgspec.Struct, rename="pascal"):
    text_document_uri: str


class _Action(msgspec.Struct):
    title: str
    data: _Data


class PlayedCsharpLs:
    """Its answers, on top of the offers of a played server."""

    def __init__(self, server: PlayedServer) -> None:
        self._server = server
        server.answers["textDocument/documentSymbol"] = self._symbols
        server.answers["textDocument/diagnostic"] = self._pull
        server.answers["textDocument/codeAction"] = self._list
        server.answers["codeAction/resolve"] = self._resolve

    @staticmethod
    def _asked(params: msgspec.Raw) -> Path:
        return uri_to_path(msgspec.json.decode(params, type=_Question).text_document.uri)

    async def _symbols(self, params: msgspec.Raw) -> object:
        path = self._asked(params)
        known = not path.name.startswith("Shared") and (path in self._server.open or path.is_file())
        return [{"name": path.stem}] if known else None

    async def _pull(self, _params: msgspec.Raw) -> object:
        return {"kind": "full", "items": []}

    async def _list(self, params: msgspec.Raw) -> object:
        path = self._asked(params)
        if path.name.startswith("Shared"):
            return None
        listed: list[Json] = []
        for offer in self._server.offers or ():
            item: Json = {"title": offer.title, "data": {"TextDocumentUri": path.as_uri()}}
            if offer.command is not None:
                item["command"] = {"title": offer.title, "command": offer.command}
            listed.append(item)
        return listed

    async def _resolve(self, params: msgspec.Raw) -> object:
        asked = msgspec.json.decode(params, type=_Action)
        path = uri_to_path(asked.data.text_document_uri)
        offer = next((o for o in self._server.offers or () if o.title == asked.title), None)
        if offer is None or offer.edit is None:
            raise ResponseError("codeAction/resolve", -32603, "Internal error: Exception")
        edit = {"documentChanges": list(offer.edit(path, self._server.seen(path)))}
        return {"title": asked.title, "edit": edit}


@asynccontextmanager
async def opened(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: Mapping[str, str] | None = None,
    **options: object,
) -> AsyncIterator[Scene]:
    """The small solution, some files with other texts, open in a bridge on this server."""
    async with scene(tmp_path, server="csharp-ls", restore="never", **options) as made:
        for name, text in (files or {}).items():
            made.file(name).write_text(text, encoding="utf-8")
        dotnet = ScriptedDotnet(tmp_path / "dotnet")
        dotnet.answer("--list-sdks", "10.0.100 [/nowhere]\n")
        core = made.root / "Core"
        for folder in (core, made.root / "App"):
            sources = {*folder.glob("*.cs"), *core.glob("Shared*.cs")}
            dotnet.answer(f"{folder.name}.csproj", evaluation(sorted(sources), []))
        monkeypatch.setenv("DOTNET_ROOT", str(dotnet.path.parent))
        PlayedCsharpLs(made.server)
        await made.agent.open(made.solution)
        yield made
