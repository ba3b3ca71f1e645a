"""A compiler that a test can foresee, for a played server in Roslyn's dialect; what the projects are, a script says.

It knows one kind of error: ``new X()`` is CS0246 unless some member of the solution says ``class X``.  Members are the
files that its process finds in the folder, with the text of the open document where there is one.  A document that is
open and not in the folder belongs to no project, as with Microsoft's server: nobody sees its classes, and it sees nobody's.  A file whose name begins with
``Shared`` is compiled by both projects, and asked about in the first one unless a question names the other.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from lsp_client.uris import uri_to_path
from tests.bridge.agent import Scene, scene
from tests.bridge.played_server import Json, PlayedServer
from tests.bridge.scripted_dotnet import ScriptedDotnet, evaluation

_USE = re.compile(r"new (\w+)\(\)")
_CLASS = re.compile(r"class (\w+)")


class _Context(msgspec.Struct):
    label: str = msgspec.field(name="_vs_label")


class _Document(msgspec.Struct):
    uri: str
    context: _Context | None = msgspec.field(name="_vs_projectContext", default=None)


class _Pull(msgspec.Struct):
    document: _Document = msgspec.field(name="textDocument")


class _Contexts(msgspec.Struct):
    document: _Document = msgspec.field(name="_vs_textDocument")


class PlayedCompiler:
    """Answers pulls; ``pulled`` remembers which file was asked about, and the text it was judged by."""

    def __init__(self, server: PlayedServer, root: Path) -> None:
        self._server = server
        self._root = root
        self.pulled: list[tuple[str, str]] = []
        self.strangers: set[str] = set()
        """Names of files that it calls members of no project."""
        self.error_id = "CS0246"
        self.hidden: dict[str, str] = {}
        """For a project's name, a class that it does not see; the others do."""
        server.answers["textDocument/diagnostic"] = self._pull
        server.answers["textDocument/_vs_getProjectContexts"] = self._contexts

    @property
    def pulled_names(self) -> list[str]:
        """The names of the files that were asked about, in order."""
        return [name for name, _ in self.pulled]

    def _members(self) -> list[Path]:
        root = self._server.inside(self._root)
        found = (self._root / path.relative_to(root) for path in sorted(root.rglob("*.cs")))
        return [path for path in found if path.name not in self.strangers]

    async def _pull(self, params: msgspec.Raw) -> object:
        document = msgspec.json.decode(params, type=_Pull).document
        path = uri_to_path(document.uri)
        if path not in self._server.open:
            return {"kind": "full", "items": []}
        text = self._server.open[path]
        self.pulled.append((path.name, text))
        members = self._members()
        seen = [self._server.seen(member) for member in members] if path in members else [text]
        project = path.parent.name if document.context is None else document.context.label
        known = {name for other in seen for name in _CLASS.findall(other)} - {self.hidden.get(project)}
        missing = [use for use in _USE.finditer(text) if use[1] not in known]
        return {"kind": "full", "items": [{**_error(text, use), "code": self.error_id} for use in missing]}

    async def _contexts(self, params: msgspec.Raw) -> object:
        path = uri_to_path(msgspec.json.decode(params, type=_Contexts).document.uri)
        stranger = path not in self._members()
        labels = ("Core", "App") if path.name.startswith("Shared") else (path.parent.name,)
        return {
            "_vs_projectContexts": [
                {"_vs_label": label, "_vs_is_miscellaneous": stranger} for label in labels
            ]
        }


def _error(text: str, use: re.Match[str]) -> Json:
    line = text.count("\n", 0, use.start())
    character = use.start() - (text.rfind("\n", 0, use.start()) + 1)
    place = {"line": line, "character": character}
    message = f"The type or namespace name '{use[1]}' could not be found"
    return {"range": {"start": place, "end": place}, "severity": 1, "message": message}


def evaluated_projects(made: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let MSBuild say what the small solution's projects hold now; ``App`` references ``Core``.

    Both compile the files of ``Core`` whose names begin with ``Shared``.  Their packages are all there, in a place that is
    not the usual one: a server that loads at once has tests of its own.
    """
    dotnet = ScriptedDotnet(tmp_path / "dotnet")
    dotnet.answer("--list-sdks", "10.0.100 [/nowhere]\n")
    core, app = made.root / "Core", made.root / "App"
    for folder, references in ((core, []), (app, [core / "Core.csproj"])):
        compiled_files = {*folder.glob("*.cs"), *folder.glob("obj/*.g.cs"), *core.glob("Shared*.cs")}
        packages = tmp_path / "packages" / folder.name
        packages.mkdir(parents=True, exist_ok=True)
        (packages / "project.assets.json").write_text("{}")
        known = evaluation(
            sorted(compiled_files), references, MSBuildProjectExtensionsPath=packages.as_posix()
        )
        dotnet.answer(f"{folder.name}.csproj", known)
    monkeypatch.setenv("DOTNET_ROOT", str(dotnet.path.parent))


@asynccontextmanager
async def compiled(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: Mapping[str, str] | None = None,
    links: Mapping[str, str] | None = None,
    **options: object,
) -> AsyncIterator[tuple[Scene, PlayedCompiler]]:
    """The small solution, some files with other texts or as links to others, open in a bridge whose server compiles.

    ``App`` references ``Core``.
    """
    async with scene(tmp_path, server="roslyn", restore="never", **options) as made:
        for name, text in (files or {}).items():
            made.file(name).write_text(text, encoding="utf-8")
        for name, target in (links or {}).items():
            made.file(name).symlink_to(made.file(target))
        evaluated_projects(made, tmp_path, monkeypatch)
        compiler = PlayedCompiler(made.server, made.root)
        await made.agent.open(made.solution)
        yield made, compiler
