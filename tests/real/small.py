"""Small solutions without packages, whose load and restore take as little as a load can."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from tests.real.conftest import RealServer
from tests.real.mcp_agent import Json

PROJECT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <TargetFramework>net10.0</TargetFramework>
    <ImplicitUsings>disable</ImplicitUsings>
  </PropertyGroup>
</Project>
"""


def small_solution(
    folder: Path, files: Mapping[str, str], name: str = "Small", project: str = PROJECT
) -> Path:
    """A folder with one project of these files; its solution."""
    folder.mkdir(parents=True)
    (folder / f"{name}.csproj").write_text(project)
    for file, text in files.items():
        (folder / file).write_text(text)
    solution = folder / f"{name}.slnx"
    solution.write_text(f'<Solution>\n  <Project Path="{name}.csproj" />\n</Solution>\n')
    return solution


def options(server: RealServer, tmp_path: Path, *more: str) -> list[str]:
    """The command line for a bridge on this server with a state of its own."""
    return [
        *("--server", server.kind, "--server-path", str(server.path)),
        *("--state-directory", str(tmp_path / "state"), *more),
    ]


def titles(actions: list[Json]) -> list[str]:
    """What is offered, as people read it."""
    return [str(action["title"]) for action in actions]


def errors(data: Json) -> list[Json]:
    """The load diagnostics of an answer that are errors."""
    return [d for d in cast("list[Json]", data["loadDiagnostics"]) if d["severity"] == "Error"]
