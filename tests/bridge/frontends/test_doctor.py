"""The doctor says what a workspace would be opened with, and how to do better."""

import io
from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from bridge.frontends.doctor import Findings, look, show
from bridge.options import Options, StartupWarning

INSTALL = "dotnet tool install --global roslyn-language-server --prerelease"


def make_executable(path: Path, script: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def told(findings: Findings) -> str:
    out = io.StringIO()
    show(findings, "1.2.3", Console(file=out, width=400))
    return out.getvalue()


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """A machine with nothing on its PATH."""
    return {"PATH": str(tmp_path / "bin")}


@pytest.mark.anyio
async def test_a_bare_machine_gets_the_stand_in_and_the_way_to_a_better_one(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    findings = await look(Options(), environ, tmp_path)
    assert findings.is_stand_in
    text = told(findings)
    assert "a stand-in for Roslyn" in text
    assert "syntax only" in text
    assert "no dotnet command was found" in text
    assert text.count(INSTALL) == 1


@pytest.mark.anyio
async def test_roslyn_as_a_dotnet_tool_is_taken_and_needs_no_advice(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    shim = make_executable(tmp_path / ".dotnet" / "tools" / "roslyn-language-server")
    dotnet = make_executable(tmp_path / "bin" / "dotnet", "echo '10.0.401 [/usr/share/[x]/sdk]'")
    findings = await look(Options(), environ, tmp_path)
    assert findings.advice is None
    assert not findings.is_stand_in
    text = told(findings)
    for expected in (str(shim), ".NET tool", "10.0.401", str(dotnet)):
        assert expected in text


@pytest.mark.anyio
async def test_a_stand_in_by_choice_hears_of_the_better_one_on_the_same_machine(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    make_executable(tmp_path / ".dotnet" / "tools" / "roslyn-language-server")
    findings = await look(Options(server="embedded"), environ, tmp_path)
    assert findings.is_stand_in
    assert "--server roslyn" in told(findings)


@pytest.mark.anyio
async def test_a_wanted_server_that_is_not_there_is_a_problem_with_the_places_tried(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    findings = await look(Options(server="roslyn"), environ, tmp_path)
    assert findings.server is None
    text = told(findings)
    assert str(tmp_path / ".dotnet" / "tools") in text
    assert text.count(INSTALL) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("script", "problem"), [("exit 3", "could not be asked"), ("exit 0", "only a runtime")]
)
async def test_a_dotnet_without_a_usable_sdk_is_said(
    script: str, problem: str, tmp_path: Path, environ: Mapping[str, str]
) -> None:
    make_executable(tmp_path / "bin" / "dotnet", script)
    assert problem in told(await look(Options(), environ, tmp_path))


@pytest.mark.anyio
async def test_markup_in_names_and_warnings_is_shown_as_it_is(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    warning = StartupWarning("StartupConfigurationFallback", "'[bold]' was not used")
    path = tmp_path / "[red]" / "server"
    findings = await look(Options(server="roslyn", server_path=path, warnings=(warning,)), environ, tmp_path)
    text = told(findings)
    assert "'[bold]' was not used" in text
    assert "[red]" in text
