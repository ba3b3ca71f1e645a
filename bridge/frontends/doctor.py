"""``roslyn-bridge doctor``: what this machine has for C#, said to a person.

``look`` finds things out and gives values; ``show`` prints them.  Only looks: no server is started, nothing is
written; the one program that is run is ``dotnet --list-sdks``.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bridge.dotnet import SdkMissing, child_environment, installed_sdks
from bridge.loading import EMBEDDED_COMMAND
from bridge.options import Options, StartupWarning
from lsp_client.discovery import ServerLaunch, discover, find_dotnet, install_hint
from lsp_client.failures import DotnetSdkNotFound, LanguageServerNotFound

BEST = "roslyn"
"""The kind of server that knows most about C#; every other one is a stand-in for it."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found.  ``server`` is what ``workspace-open`` would start, else ``problem`` says why there is none."""

    server: ServerLaunch | None
    problem: str | None
    advice: str | None
    """How to get, or to use, a better server than this one; ``None`` when there is none."""
    dotnet: Path | None
    sdks: tuple[str, ...]
    sdk_problem: str | None
    warnings: tuple[StartupWarning, ...]

    @property
    def is_stand_in(self) -> bool:
        """Whether the server is there because the best one is not."""
        return self.server is not None and self.server.dialect.name != BEST


async def look(options: Options, environ: Mapping[str, str], home: Path) -> Findings:
    """Search this machine as ``workspace-open`` would."""
    server: ServerLaunch | None = None
    problem: str | None = None
    try:
        server = discover(
            options.server, options.server_path, environ, home, embedded_command=EMBEDDED_COMMAND
        )
    except (LanguageServerNotFound, DotnetSdkNotFound) as error:
        problem = str(error)
    dotnet = find_dotnet(environ)
    sdks, sdk_problem = await _sdks(dotnet, environ, home)
    return Findings(
        server=server,
        problem=problem,
        advice=_advice(server, environ, home),
        dotnet=dotnet,
        sdks=sdks,
        sdk_problem=sdk_problem,
        warnings=options.warnings,
    )


def _advice(server: ServerLaunch | None, environ: Mapping[str, str], home: Path) -> str | None:
    """What to do for the best server, when this is not it."""
    if server is not None and server.dialect.name == BEST:
        return None
    try:
        better = discover(BEST, None, environ, home)
    except DotnetSdkNotFound as error:
        return str(error)
    except LanguageServerNotFound:
        return install_hint(BEST)
    return f"{better.dialect.display_name} is on this machine ({better.origin}): use it with --server {BEST}"


async def _sdks(
    dotnet: Path | None, environ: Mapping[str, str], directory: Path
) -> tuple[tuple[str, ...], str | None]:
    """The versions of the SDKs, and what is wrong with them."""
    if dotnet is None:
        return (), "no dotnet command was found; loading, restoring and real servers need the .NET SDK"
    try:
        found = await installed_sdks(dotnet, child_environment(environ, dotnet=dotnet), directory)
    except SdkMissing as error:
        return (), error.message
    return tuple(sdk.version for sdk in found), None if found else "only a runtime, no SDK"


def show(findings: Findings, version: str, console: Console) -> None:
    """Print the findings."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    # Everything is ``Text``: a path may hold what looks like markup.
    table.add_row("Roslyn Bridge", Text(f"{version}, Python {platform.python_version()}"))
    for label, value in (*_server_rows(findings), *_sdk_rows(findings)):
        table.add_row(label, value)
    for warning in findings.warnings:
        table.add_row("Warning", Text(f"{warning.code}: {warning.message}", style="yellow"))
    console.print(table)
    if findings.advice is not None and findings.advice not in (findings.problem or ""):
        # On a line of its own however narrow the terminal is: it is there to be copied.
        console.print(Text(f"A better server is installed by: {findings.advice}"), soft_wrap=True)


def _server_rows(findings: Findings) -> list[tuple[str, Text]]:
    server = findings.server
    if server is None:
        return [("Language server", Text(findings.problem or "none", style="red"))]
    name = server.dialect.display_name + (f" {server.version_hint}" if server.version_hint else "")
    standing = " (a stand-in for Roslyn)" if findings.is_stand_in else ""
    rows = [
        ("Language server", Text(name + standing, style="yellow" if findings.is_stand_in else "green")),
        ("  found through", Text(server.origin)),
        ("  command", Text(" ".join(server.command))),
    ]
    if server.dialect.limits:
        rows.append(("  limits", Text(", ".join(server.dialect.limits))))
    return rows


def _sdk_rows(findings: Findings) -> list[tuple[str, Text]]:
    if findings.sdk_problem is not None:
        rows = [(".NET SDK", Text(findings.sdk_problem, style="red"))]
    else:
        rows = [(".NET SDK", Text(", ".join(findings.sdks), style="green"))]
    if findings.dotnet is not None:
        rows.append(("  command", Text(str(findings.dotnet))))
    return rows


def examine(options: Options, environ: Mapping[str, str], home: Path, version: str) -> int:
    """Look and print; the exit code is 1 when there is no server to use."""
    findings = anyio.run(look, options, environ, home)
    show(findings, version, Console(highlight=False))
    return 0 if findings.server is not None else 1
