"""A project file opened by a server that opens solutions only: through the solution that is generated for it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from bridge.dotnet import child_environment
from bridge.generated_solution import write_generated_solution
from bridge.msbuild import MsBuild
from bridge.projects import read_structure, transitive_references
from lsp_client.dialects.base import LoadTarget
from lsp_client.discovery import discover
from lsp_client.messages import Position, Range
from lsp_client.supervisor import Supervisor, Waits

BOUND = 120.0
"""Seconds for one load on two busy cores; it takes about five on idle ones."""


@pytest.mark.anyio
async def test_csharp_ls_answers_for_a_project_and_its_references_through_a_generated_solution(
    toolchain: Mapping[str, str], csharp_ls_dll: Path, sample: Callable[[str], Path], tmp_path: Path
) -> None:
    project = sample("TwoProjects") / "src" / "App" / "App.csproj"
    dotnet = Path(toolchain["DOTNET_ROOT"]) / "dotnet"
    environment = child_environment(toolchain, dotnet=dotnet)
    structure = await read_structure(project, msbuild=MsBuild(dotnet), environment=environment)
    references = transitive_references(structure, project)
    generated = write_generated_solution(project, tmp_path / "state", references)
    launch = discover("csharp-ls", csharp_ls_dll, toolchain)
    assert not launch.dialect.accepts(project)
    assert launch.dialect.accepts(generated)

    target = LoadTarget(generated, project.parents[2], (project, *references))
    supervisor = Supervisor(launch, target, environment, Waits(), log_directory=tmp_path / "logs")
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            await tasks.start(supervisor.run)
            session = await supervisor.session()
            assert [m for m in session.load_report.messages if m.severity == "error"] == []
            program = await session.diagnostics(project.with_name("Program.cs"))
            assert "CS8019" in {d.code for d in program}, "a file of no project has no diagnostics"
            assert [d.message for d in program if d.severity == 1] == []
            shapes = project.parents[1] / "Library" / "Shapes.cs"
            lines = shapes.read_text().splitlines()
            row = next(number for number, line in enumerate(lines) if " class " in line)
            column = lines[row].index("class ") + len("class ")
            place = Position(line=row, character=column)
            listing = await session.list_actions(shapes, Range(start=place, end=place), ())
            assert listing.actions, "a file of a referenced project has no actions"
            await supervisor.stop()
            tasks.cancel_scope.cancel()
