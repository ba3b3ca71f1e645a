"""Where the C# language servers of this machine are.

Only looks, never runs, fetches or writes.  The order is the order of trust: what the caller names, what the environment
names, then tools installed on purpose, then those that came with an editor, then the PATH.  A path ending in ``.dll``
is run through ``dotnet``; anything else is run as it is.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lsp_client.dialects import CSHARP_LS, EMBEDDED, ROSLYN, Dialect
from lsp_client.failures import DotnetSdkNotFound, LanguageServerNotFound
from lsp_client.search_path import absolute_path

INSTALL_ROSLYN: Final = "dotnet tool install --global roslyn-language-server --prerelease"
INSTALL_CSHARP_LS: Final = "dotnet tool install --global csharp-ls"

ROSLYN_DLL: Final = "Microsoft.CodeAnalysis.LanguageServer.dll"
ROSLYN_NAMES: Final = ("roslyn-language-server", "Microsoft.CodeAnalysis.LanguageServer")
CSHARP_LS_DLL: Final = "CSharpLanguageServer.dll"
CSHARP_LS_NAMES: Final = ("csharp-ls", "CSharpLanguageServer")
ROSLYN_ENVIRONMENT: Final = "DOTNET_ROSLYN_SERVER_PATH"

EDITOR_FOLDERS: Final = (
    ".vscode",
    ".vscode-insiders",
    ".vscode-server",
    ".vscode-server-insiders",
    ".vscode-oss",
    ".cursor",
)
"""Where editors of VS Code's family keep their extensions, below the home directory."""

_NUMBER: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """A server that can be started: its dialect, the command without its options, and where it was found."""

    dialect: Dialect
    command: tuple[str, ...]
    origin: str
    version_hint: str | None = None


@dataclass(frozen=True, slots=True)
class _Find:
    path: Path
    origin: str
    version: str | None = None


class _Search:
    """One search of this machine; remembers what it has tried."""

    def __init__(self, environ: Mapping[str, str], home: Path) -> None:
        self.environ = environ
        self.home = home
        self.tried: list[str] = []

    def roslyn(self) -> Iterator[_Find]:
        """Roslyn servers, the most trusted first."""
        yield from self._named_by_environment()
        yield from self._tool("roslyn-language-server", ROSLYN_DLL)
        yield from self._editor_extensions()
        yield from self._mason(
            "roslyn-language-server", ("roslyn-language-server", "roslyn", "roslyn-nightly"), ROSLYN_DLL
        )
        yield from self._on_path(ROSLYN_NAMES)

    def csharp_ls(self) -> Iterator[_Find]:
        """csharp-ls installations, the most trusted first."""
        yield from self._tool("csharp-ls", CSHARP_LS_DLL)
        yield from self._mason("csharp-ls", ("csharp-ls",), CSHARP_LS_DLL)
        yield from self._on_path(CSHARP_LS_NAMES)

    def _named_by_environment(self) -> Iterator[_Find]:
        value = self.environ.get(ROSLYN_ENVIRONMENT, "")
        self.tried.append(ROSLYN_ENVIRONMENT)
        path = Path(value).expanduser()
        if value and path.is_file():
            yield _Find(path, ROSLYN_ENVIRONMENT)

    def _tool(self, package: str, dll: str) -> Iterator[_Find]:
        """A global .NET tool: its payload first, since the command in front of it only starts that as a child."""
        tools = Path(self.environ.get("DOTNET_CLI_HOME") or self.home) / ".dotnet" / "tools"
        self.tried.append(str(tools))
        payloads = _newest_first(
            tools.joinpath(".store", package).glob(f"*/{package}*/*/tools/**/{dll}"), package
        )
        for path, version in payloads:
            yield _Find(path, ".NET tool", version)
        shim = _executable(tools / package)
        if shim is not None:
            yield _Find(shim, ".NET tool")

    def _editor_extensions(self) -> Iterator[_Find]:
        self.tried.append("the C# extension of VS Code and its kin")
        found: list[tuple[Path, str | None]] = []
        for folder in EDITOR_FOLDERS:
            extensions = self.home / folder / "extensions"
            for name in (ROSLYN_DLL, "Microsoft.CodeAnalysis.LanguageServer"):
                found += _newest_first(
                    extensions.glob(f"ms-dotnettools.csharp-*/.roslyn/{name}"), "ms-dotnettools.csharp-"
                )
        for path, version in sorted(found, key=lambda item: version_key(item[1] or ""), reverse=True):
            yield _Find(path, "VS Code's C# extension", version)

    def _mason(self, command: str, packages: Sequence[str], dll: str) -> Iterator[_Find]:
        data = Path(self.environ.get("XDG_DATA_HOME") or self.home / ".local" / "share")
        roots = [Path(value) for value in (self.environ.get("MASON", ""),) if value]
        for root in (*roots, data / "nvim" / "mason"):
            self.tried.append(str(root))
            for package in packages:
                for path, version in _newest_first(
                    root.joinpath("packages", package).glob(f"**/{dll}"), package
                ):
                    yield _Find(path, "Mason", version)
            for name in (command, *packages):
                shim = _executable(root / "bin" / name)
                if shim is not None:
                    yield _Find(shim, "Mason")

    def _on_path(self, names: Sequence[str]) -> Iterator[_Find]:
        for name in names:
            self.tried.append(f"'{name}' on the PATH")
            found = shutil.which(name, path=absolute_path(self.environ))
            if found is not None:
                yield _Find(Path(found), "PATH")


def discover(
    kind: str,
    server_path: Path | None,
    environ: Mapping[str, str] = os.environ,
    home: Path | None = None,
    *,
    embedded_command: tuple[str, ...] = (),
) -> ServerLaunch:
    """The server to use: the named one, else the best of the wanted kind.

    ``kind`` is ``auto`` (Roslyn, else csharp-ls, else the embedded one), ``roslyn``, ``csharp-ls`` or ``embedded``.
    ``embedded_command`` starts the embedded server; empty when there is none.  Raises LanguageServerNotFound with the
    places looked at, and DotnetSdkNotFound when a server was found that nothing can run.
    """
    if server_path is not None:
        return _explicit(kind, server_path, environ)
    search = _Search(environ, home or Path.home())
    lacking: DotnetSdkNotFound | None = None
    for dialect, finds in ((ROSLYN, search.roslyn), (CSHARP_LS, search.csharp_ls)):
        if kind not in {"auto", dialect.name}:
            continue
        for find in finds():
            try:
                return _launch(dialect, find, environ)
            except DotnetSdkNotFound as error:
                lacking = lacking or error
    if kind in {"auto", "embedded"} and embedded_command:
        return ServerLaunch(EMBEDDED, embedded_command, "embedded")
    if lacking is not None:
        raise lacking
    hint = install_hint(kind)
    raise LanguageServerNotFound(search.tried, f"Install one with: {hint}" if hint else "")


def install_hint(kind: str) -> str:
    """How to get the server of this kind, or for ``auto`` the best one."""
    return {"csharp-ls": INSTALL_CSHARP_LS, "embedded": ""}.get(kind, INSTALL_ROSLYN)


def find_dotnet(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The ``dotnet`` command: of ``DOTNET_ROOT`` when that has one, else of the PATH."""
    root = environ.get("DOTNET_ROOT", "")
    found = _executable(Path(root) / "dotnet") if root else None
    if found is not None:
        return found
    on_path = shutil.which("dotnet", path=absolute_path(environ))
    return None if on_path is None else Path(on_path)


def version_key(version: str) -> tuple[tuple[int, ...], bool, tuple[int, ...]]:
    """A key that sorts version texts by their numbers; a pre-release comes before its release.

    >>> sorted(["5.10.0", "5.9.0", "5.10.0-2.1"], key=version_key)
    ['5.9.0', '5.10.0-2.1', '5.10.0']
    """
    release, dash, rest = version.partition("-")
    return _numbers(release), not dash, _numbers(rest)


def kind_of(path: Path) -> Dialect | None:
    """The dialect that a server's file name tells; ``None`` when it tells none."""
    name = path.name.lower()
    if any(name.startswith(known.lower()) for known in ROSLYN_NAMES):
        return ROSLYN
    if any(name.startswith(known.lower()) for known in CSHARP_LS_NAMES):
        return CSHARP_LS
    return None


def _explicit(kind: str, path: Path, environ: Mapping[str, str]) -> ServerLaunch:
    dialect = {"roslyn": ROSLYN, "csharp-ls": CSHARP_LS, "embedded": EMBEDDED}.get(kind) or kind_of(path)
    if not path.is_file():
        raise LanguageServerNotFound([f"'{path}', which is no file"], "")
    if dialect is None:
        names = f"{ROSLYN_DLL}, {', '.join(ROSLYN_NAMES)}, {CSHARP_LS_DLL}, {CSHARP_LS_NAMES[0]}"
        raise LanguageServerNotFound(
            [f"'{path}'"], f"Its name tells no kind of server (known are {names}); say which one it is."
        )
    return _launch(dialect, _Find(path, "named explicitly"), environ)


def _launch(dialect: Dialect, find: _Find, environ: Mapping[str, str]) -> ServerLaunch:
    path = find.path.absolute()
    if path.suffix.lower() != ".dll":
        return ServerLaunch(dialect, (str(path),), find.origin, find.version)
    dotnet = find_dotnet(environ)
    if dotnet is None:
        raise DotnetSdkNotFound(
            f"The language server '{path.name}' was found, but no 'dotnet' to run it; a .NET SDK is needed."
        )
    return ServerLaunch(dialect, (str(dotnet), str(path)), find.origin, find.version)


def _newest_first(paths: Iterator[Path], name: str) -> list[tuple[Path, str | None]]:
    """The files with the version in their paths, the newest version first."""
    found = [(path, _version_in(path, name)) for path in paths if path.is_file()]
    return sorted(found, key=lambda item: (version_key(item[1] or ""), str(item[0])), reverse=True)


def _version_in(path: Path, name: str) -> str | None:
    """The first part of the path that is a version, alone or behind the name."""
    for part in reversed(path.parts):
        rest = part[len(name) :] if part.startswith(name) else part
        if re.match(r"\d+\.\d+", rest):
            return rest
    return None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(text))


def _executable(path: Path) -> Path | None:
    return path if path.is_file() and os.access(path, os.X_OK) else None
