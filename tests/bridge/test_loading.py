"""What a load has to say beside what the server says."""

from dataclasses import replace
from pathlib import Path

import pytest

from bridge.loading import framework_notes
from bridge.projects import Structure, read_structure
from lsp_client.dialects import CSHARP_LS, EMBEDDED, ROSLYN, Dialect
from tests.bridge.agent import write_solution


async def multi_targeted(folder: Path) -> Structure:
    """Core for two frameworks and App for one."""
    structure = await read_structure(write_solution(folder), msbuild=None, environment={})
    core, app = structure.projects
    other = replace(core, id="another", target_framework="netstandard2.0")
    return replace(structure, projects=(core, other, app))


@pytest.mark.anyio
async def test_it_is_said_that_a_server_answers_for_one_of_several_frameworks(tmp_path: Path) -> None:
    (note,) = framework_notes(CSHARP_LS, await multi_targeted(tmp_path))
    assert (note.id, note.severity) == ("WorkspaceFrameworksNotLoaded", "Warning")
    assert "1 of 2 projects: Core.csproj (net8.0, netstandard2.0)" in note.message
    assert CSHARP_LS.display_name in note.message


@pytest.mark.anyio
@pytest.mark.parametrize("dialect", [ROSLYN, EMBEDDED])
async def test_nothing_is_said_where_all_frameworks_are_answered_for(
    tmp_path: Path, dialect: Dialect
) -> None:
    assert framework_notes(dialect, await multi_targeted(tmp_path)) == []


@pytest.mark.anyio
async def test_nothing_is_said_where_each_project_has_one_framework(tmp_path: Path) -> None:
    structure = await read_structure(write_solution(tmp_path), msbuild=None, environment={})
    assert framework_notes(CSHARP_LS, structure) == []
