"""Restores: when one is due, what it says, and what it leaves when part of a solution cannot be restored."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bridge.dotnet import child_environment
from bridge.msbuild import MsBuild
from bridge.msbuild_properties import MsBuildProperties
from bridge.projects import Structure, read_structure
from bridge.restore import Restorer, needs_restore, unrestored
from bridge.solutions import locate
from tests.bridge.scripted_dotnet import ScriptedDotnet, evaluation

SHELL = {"PATH": "/usr/bin:/bin"}


class Solution:
    """One scripted project, and where its restore leaves files."""

    def __init__(self, folder: Path) -> None:
        self.dotnet = ScriptedDotnet(folder / "sdk")
        self.project = folder / "code" / "A.csproj"
        self.assets = folder / "code" / "obj" / "project.assets.json"
        self.assets.parent.mkdir(parents=True)
        self.project.write_text('<Project Sdk="Microsoft.NET.Sdk" />')
        self.dotnet.answer("msbuild", evaluation())

    async def structure(self) -> Structure:
        return await read_structure(self.project, msbuild=MsBuild(self.dotnet.path), environment={})

    async def reason(self) -> str | None:
        (project,) = (await self.structure()).projects
        return needs_restore(project)

    def restored(self, record: str = '{"success": true}') -> None:
        self.assets.write_text("{}")
        self.assets.with_name("project.nuget.cache").write_text(record)
        os.utime(self.project, (1_000_000_000, 1_000_000_000))


@pytest.fixture
def solution(tmp_path: Path) -> Solution:
    return Solution(tmp_path)


@pytest.mark.anyio
async def test_a_project_without_assets_needs_a_restore(solution: Solution) -> None:
    assert await solution.reason() is not None


@pytest.mark.anyio
async def test_a_restored_project_needs_none(solution: Solution) -> None:
    solution.restored()
    assert await solution.reason() is None


@pytest.mark.anyio
@pytest.mark.parametrize("record", ["", "[]", "{}", "not json"])
async def test_a_record_that_says_nothing_is_no_reason(solution: Solution, record: str) -> None:
    solution.restored(record)
    assert await solution.reason() is None


@pytest.mark.anyio
async def test_a_failed_restore_is_a_reason(solution: Solution) -> None:
    solution.restored('{"success": false}')
    assert "failed" in (await solution.reason() or "")


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["A.csproj", "Directory.Packages.props"])
async def test_a_newer_input_is_a_reason(solution: Solution, name: str) -> None:
    solution.restored()
    path = solution.project.with_name(name)
    path.write_text("<Project />")
    os.utime(path, (4_000_000_000, 4_000_000_000))
    assert name in (await solution.reason() or "")


@pytest.mark.anyio
@pytest.mark.parametrize("name", [".editorconfig", "obj/A.csproj.nuget.g.props"])
async def test_a_newer_file_that_no_restore_reads_is_none(solution: Solution, name: str) -> None:
    solution.restored()
    path = solution.project.parent / name
    path.write_text("")
    os.utime(path, (4_000_000_000, 4_000_000_000))
    assert await solution.reason() is None


@pytest.mark.anyio
async def test_a_restore_that_had_nothing_to_do_is_not_asked_for_again(solution: Solution) -> None:
    """It leaves the times of its files alone, so "newer" stays true."""
    solution.restored()
    os.utime(solution.project, (4_000_000_000, 4_000_000_000))
    structure = await solution.structure()
    restorer = Restorer(solution.dotnet.path)
    assert list(restorer.pending(structure)) == [solution.project]
    solution.dotnet.answer("restore", "All projects are up-to-date for restore.")
    result = await restorer.restore(structure, environment=SHELL)
    assert (result.succeeded, result.restored, result.unrestored) == (True, (solution.project,), ())
    assert restorer.pending(structure) == {}
    os.utime(solution.project, (4_000_000_009, 4_000_000_009))
    assert list(restorer.pending(structure)) == [solution.project]


@pytest.mark.anyio
async def test_a_failed_restore_is_told_with_its_words_and_not_repeated_by_itself(solution: Solution) -> None:
    words = "A.csproj : error NU1101: Unable to find package P."
    solution.dotnet.answer("restore", f"  Determining projects...\n{words} [{solution.project}]\n", code=1)
    structure = await solution.structure()
    restorer = Restorer(solution.dotnet.path)
    result = await restorer.restore(structure, environment=SHELL)
    assert (result.succeeded, result.unrestored) == (False, (solution.project,))
    assert words in result.message
    assert "[" not in result.message.splitlines()[1]
    assert "Determining" in result.output_tail
    assert restorer.pending(structure) == {}
    assert list(restorer.pending(structure, retry=True)) == [solution.project]


@pytest.mark.anyio
async def test_one_project_with_other_properties_is_another_restore(
    solution: Solution, tmp_path: Path
) -> None:
    solution.dotnet.answer("restore", "error : no", code=1)
    restorer = Restorer(solution.dotnet.path)
    await restorer.restore(await solution.structure(), environment=SHELL)
    solution.dotnet.answer("msbuild", evaluation(MSBuildProjectExtensionsPath=str(tmp_path / "art")))
    assert list(restorer.pending(await solution.structure())) == [solution.project]


@pytest.mark.anyio
async def test_a_restore_for_another_runtime_does_not_count(solution: Solution) -> None:
    solution.restored()
    solution.dotnet.answer("msbuild", evaluation(RuntimeIdentifier="linux-x64"))
    assert await solution.reason() == "it was not restored for linux-x64"
    solution.assets.write_text('{"targets": {"net10.0": {}, "net10.0/linux-x64": {}}}')
    assert await solution.reason() is None


@pytest.mark.anyio
async def test_a_multi_target_project_that_was_tried_is_not_pending(solution: Solution) -> None:
    solution.dotnet.answer("msbuild", evaluation(TargetFramework="", TargetFrameworks="net10.0;net9.0"))
    solution.dotnet.answer("TargetFramework=net10.0", evaluation([solution.project.with_name("A.cs")]))
    solution.dotnet.answer("TargetFramework=net9.0", evaluation())
    solution.dotnet.answer("restore", "error : no", code=1)
    structure = await solution.structure()
    assert len(structure.projects) == 2
    restorer = Restorer(solution.dotnet.path)
    await restorer.restore(structure, environment=SHELL)
    assert restorer.pending(structure) == {}


@pytest.mark.anyio
async def test_a_path_that_no_solution_can_hold_is_a_failed_restore(tmp_path: Path) -> None:
    solution = Solution(tmp_path / 'a "b"')
    solution.dotnet.answer("restore", "error MSB1: no", code=1)
    result = await Restorer(solution.dotnet.path).restore(await solution.structure(), environment=SHELL)
    assert not result.succeeded
    assert "cannot hold the path" in result.message


@pytest.mark.anyio
async def test_a_restore_that_takes_too_long_is_stopped_and_said(solution: Solution) -> None:
    solution.dotnet.answer("restore", shell="echo downloading; exec sleep 1000")
    restorer = Restorer(solution.dotnet.path)
    result = await restorer.restore(await solution.structure(), environment=SHELL, seconds=0.5)
    assert not result.succeeded
    assert "was killed" in result.message
    assert "downloading" in result.output_tail
    assert result.seconds < 20


@pytest.mark.anyio
async def test_a_dotnet_that_is_not_there_is_a_failed_restore(solution: Solution, tmp_path: Path) -> None:
    result = await Restorer(tmp_path / "none").restore(await solution.structure(), environment=SHELL)
    assert not result.succeeded
    assert "not started" in result.message


@pytest.mark.anyio
async def test_a_restore_is_for_all_frameworks_and_in_the_words_of_a_solution(solution: Solution) -> None:
    solution.dotnet.answer("restore", "")
    properties = MsBuildProperties.check(
        {"platform": "AnyCPU", "targetFramework": "net10.0", "configuration": "Release"}
    )
    environment = child_environment(SHELL, properties=properties)
    await Restorer(solution.dotnet.path).restore(await solution.structure(), environment=environment)
    given = next(environment for arguments, _, environment in solution.dotnet.calls if "restore" in arguments)
    assert "TargetFramework" not in given
    assert (given["Platform"], given["Configuration"]) == ("Any CPU", "Release")


@pytest.mark.real
@pytest.mark.anyio
async def test_two_projects_are_restored_once(
    dotnet: Path, toolchain: Mapping[str, str], sample: Callable[[str], Path]
) -> None:
    path = locate(sample("TwoProjects") / "TwoProjects.slnx")
    environment = child_environment(toolchain, dotnet=dotnet)
    msbuild, restorer = MsBuild(dotnet), Restorer(dotnet)
    structure = await read_structure(path, msbuild=msbuild, environment=environment)
    assert len(restorer.pending(structure)) == 3
    result = await restorer.restore(structure, environment=environment)
    assert result.succeeded, result.message
    assert len(result.restored) == 3
    again = await read_structure(path, msbuild=msbuild, environment=environment)
    assert Restorer(dotnet).pending(again) == {}
    assert all(project.assets_file in project.inputs for project in again.projects)


@pytest.mark.real
@pytest.mark.anyio
async def test_projects_without_packages_are_not_evaluated_again_after_their_restore(
    dotnet: Path, toolchain: Mapping[str, str], sample: Callable[[str], Path]
) -> None:
    path = locate(sample("bakery"))
    environment = child_environment(toolchain, dotnet=dotnet)
    msbuild = MsBuild(dotnet)
    structure = await read_structure(path, msbuild=msbuild, environment=environment)
    structure = await read_structure(path, msbuild=msbuild, environment=environment)  # the copy is old by now
    asked = msbuild.evaluations_run
    assert len(unrestored(structure)) == 3
    assert (await Restorer(dotnet).restore(structure, environment=environment)).succeeded
    again = await read_structure(path, msbuild=msbuild, environment=environment)
    assert msbuild.evaluations_run == asked
    assert unrestored(again) == ()
    assert all(project.assets_file in project.inputs for project in again.projects)


@pytest.mark.real
@pytest.mark.anyio
async def test_one_unreadable_project_does_not_keep_the_others_from_their_packages(
    dotnet: Path, toolchain: Mapping[str, str], sample: Callable[[str], Path]
) -> None:
    path = locate(sample("Broken"))
    environment = child_environment(toolchain, dotnet=dotnet)
    structure = await read_structure(path, msbuild=MsBuild(dotnet), environment=environment)
    result = await Restorer(dotnet).restore(structure, environment=environment)
    assert not result.succeeded
    assert [p.name for p in result.unrestored] == ["MissingPackage.csproj"]
    assert len(result.restored) == 4
    assert "NU1101" in result.message
    assert "MSB4025" in result.message


@pytest.mark.real
@pytest.mark.anyio
async def test_a_runtime_is_restored_when_it_is_first_asked_for(
    dotnet: Path, toolchain: Mapping[str, str], sample: Callable[[str], Path]
) -> None:
    path = locate(sample("Broken") / "Healthy")
    properties = MsBuildProperties.check({"runtimeIdentifier": "linux-x64"})
    msbuild, restorer = MsBuild(dotnet), Restorer(dotnet)
    for chosen in (None, properties):
        environment = child_environment(toolchain, dotnet=dotnet, properties=chosen)
        structure = await read_structure(path, msbuild=msbuild, environment=environment)
        assert list(restorer.pending(structure)) == [path]
        result = await restorer.restore(structure, environment=environment)
        assert result.succeeded, result.message
        structure = await read_structure(path, msbuild=msbuild, environment=environment)
        assert needs_restore(structure.projects[0]) is None


@pytest.mark.real
@pytest.mark.anyio
async def test_a_configuration_that_the_solution_does_not_have_is_restored_project_by_project(
    dotnet: Path, toolchain: Mapping[str, str], sample: Callable[[str], Path]
) -> None:
    path = locate(sample("MultiTarget"))
    properties = MsBuildProperties.check(
        {"configuration": "Staging", "platform": "x64", "targetFramework": "net10.0"}
    )
    environment = child_environment(toolchain, dotnet=dotnet, properties=properties)
    structure = await read_structure(path, msbuild=MsBuild(dotnet), environment=environment)
    result = await Restorer(dotnet).restore(structure, environment=environment)
    assert result.succeeded, result.message
    assets = path.parent / "Core" / "obj" / "project.assets.json"
    assert "netstandard2.0" in assets.read_text()
