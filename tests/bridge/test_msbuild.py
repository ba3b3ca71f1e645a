"""Evaluations: asked once, asked again when an input moved, bounded, and with MSBuild's own words when they fail."""

from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

import bridge.fingerprints
import bridge.msbuild
from bridge.dotnet import child_environment
from bridge.msbuild import Evaluation, EvaluationFailed, MsBuild, error_lines
from bridge.msbuild_properties import MsBuildProperties
from tests.bridge.scripted_dotnet import ScriptedDotnet, evaluation


@pytest.fixture
def scripted(tmp_path: Path) -> ScriptedDotnet:
    return ScriptedDotnet(tmp_path / "sdk")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "code" / "App"
    folder.mkdir(parents=True)
    (folder / "A.cs").write_text("class A;")
    (folder / "App.csproj").write_text('<Project Sdk="Microsoft.NET.Sdk" />')
    return folder / "App.csproj"


class Asker:
    """Evaluates one project, and counts how often MSBuild was asked for it."""

    def __init__(self, scripted: ScriptedDotnet, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        # Files made by a test are younger than any margin; their change is still seen, by content.
        monkeypatch.setattr(bridge.fingerprints, "RACE_MARGIN_NS", -(10**15))
        self.msbuild = MsBuild(scripted.path)
        self.project = project

    async def ask(
        self, environment: Mapping[str, str] | None = None, framework: str | None = None
    ) -> Evaluation:
        return await self.msbuild.evaluate(
            self.project,
            environment=environment or {},
            directory=self.project.parent,
            framework=framework,
        )

    async def asks_again(self) -> bool:
        before = self.msbuild.evaluations_run
        await self.ask()
        return self.msbuild.evaluations_run > before


@pytest.fixture
def asker(scripted: ScriptedDotnet, project: Path, monkeypatch: pytest.MonkeyPatch) -> Asker:
    scripted.answer("msbuild", evaluation([project.parent / "A.cs"]))
    return Asker(scripted, project, monkeypatch)


@pytest.mark.anyio
async def test_the_compile_items_and_the_references_are_given_as_absolute_paths(
    asker: Asker, scripted: ScriptedDotnet, project: Path
) -> None:
    linked = project.parents[1] / "shared" / ".." / "Linked.cs"
    other = project.parents[1] / "Lib" / "Lib.csproj"
    scripted.answer("msbuild", evaluation([project.parent / "A.cs", linked, linked], [other]))
    seen = await asker.ask()
    assert seen.compile == (project.parent / "A.cs", project.parents[1] / "Linked.cs")
    assert seen.references == (other,)
    (call,) = scripted.calls
    assert call[0][:2] == ["msbuild", str(project)]
    assert call[1] == str(project.parent)


@pytest.mark.anyio
async def test_the_same_question_is_answered_from_memory(asker: Asker) -> None:
    first = await asker.ask()
    assert await asker.ask() is first
    assert asker.msbuild.evaluations_run == 1


@pytest.mark.anyio
async def test_another_environment_or_framework_is_another_question(asker: Asker) -> None:
    await asker.ask()
    await asker.ask({"Configuration": "Release"})
    await asker.ask(framework="net10.0")
    assert asker.msbuild.evaluations_run == 3


@pytest.mark.anyio
@pytest.mark.parametrize(
    "name",
    ["App.csproj", "Directory.Build.props", "../Directory.Packages.props", "global.json", "B.cs", "sub/C.cs"],
)
async def test_a_changed_or_new_input_is_asked_again(asker: Asker, project: Path, name: str) -> None:
    await asker.ask()
    path = project.parent / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('<Project Sdk="Microsoft.NET.Sdk"><!-- new --></Project>')
    assert await asker.asks_again()
    assert not await asker.asks_again()


@pytest.mark.anyio
async def test_a_removed_source_file_is_asked_again(asker: Asker, project: Path) -> None:
    await asker.ask()
    (project.parent / "A.cs").unlink()
    assert await asker.asks_again()


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["A.cs", "obj/made.cs", "bin/App.dll"])
async def test_a_changed_source_text_or_build_output_is_not_asked_again(
    asker: Asker, project: Path, name: str
) -> None:
    await asker.ask()
    path = project.parent / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("class Other;")
    assert not await asker.asks_again()


@pytest.mark.anyio
async def test_the_same_content_under_a_new_time_is_not_asked_again(asker: Asker, project: Path) -> None:
    await asker.ask()
    project.write_text(project.read_text())
    assert not await asker.asks_again()


NUGET = """<Project><PropertyGroup><NuGetToolVersion>7</NuGetToolVersion></PropertyGroup>
<ItemGroup><SourceRoot Include="/packages/" /></ItemGroup>{}</Project>"""


@pytest.mark.anyio
async def test_a_restore_that_brings_nothing_in_is_not_asked_again_but_its_files_are_inputs(
    asker: Asker, project: Path
) -> None:
    before = await asker.ask()
    made = [project.parent / "obj" / name for name in ("App.csproj.nuget.g.props", "project.assets.json")]
    assert set(made) <= set(before.absent_inputs)
    made[0].parent.mkdir()
    made[0].write_text(NUGET.format(""))
    made[1].write_text("{}")
    assert not await asker.asks_again()
    after = await asker.ask()
    assert set(made) <= set(after.inputs)
    assert not set(made) & set(after.absent_inputs)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "text",
    [
        "<ImportGroup><Import Project='/packages/x/build/x.props' /></ImportGroup>",
        "<ItemGroup><Compile Include='/packages/x/Content.cs' /></ItemGroup>",
        "<PropertyGroup><PkgX>/packages/x</PkgX></PropertyGroup>",
        "<",
    ],
)
async def test_a_restore_that_brings_something_in_is_asked_again(
    asker: Asker, project: Path, text: str
) -> None:
    await asker.ask()
    path = project.parent / "obj" / "App.csproj.nuget.g.props"
    path.parent.mkdir()
    path.write_text(NUGET.format(text))
    assert await asker.asks_again()


@pytest.mark.anyio
async def test_an_imported_file_is_an_input(asker: Asker, project: Path) -> None:
    common = project.parents[1] / "common.props"
    common.write_text("<Project />")
    project.write_text(
        '<Project Sdk="Microsoft.NET.Sdk"><Import Project="$(MSBuildThisFileDirectory)..\\common.props" /></Project>'
    )
    assert common in (await asker.ask()).inputs
    common.write_text("<Project><!-- new --></Project>")
    assert await asker.asks_again()


@pytest.mark.anyio
async def test_an_import_that_is_not_plain_is_asked_of_msbuild(
    asker: Asker, scripted: ScriptedDotnet, project: Path
) -> None:
    odd = project.parents[1] / "odd.props"
    odd.write_text("<Project />")
    project.write_text(
        '<Project Sdk="Microsoft.NET.Sdk"><Import Project="$([System.IO.Path]::Combine(a))" /></Project>'
    )
    flattened = (
        f"<!--\n=====\n  <Import>\n\n{odd}\n=====\n-->\n<!--\n\n{scripted.path.parent}/Sdk.props\n=====\n"
    )
    scripted.answer("-preprocess", flattened)
    seen = await asker.ask()
    assert odd in seen.inputs
    assert not any(path.is_relative_to(scripted.path.parent) for path in seen.inputs)


@pytest.mark.anyio
@pytest.mark.parametrize(("meanwhile", "runs"), [("touch", 2), ("test -e", 1)])
async def test_a_file_changed_while_msbuild_was_reading_is_not_remembered(
    scripted: ScriptedDotnet, project: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str, runs: int
) -> None:
    monkeypatch.setattr(bridge.fingerprints, "RACE_MARGIN_NS", 0)
    msbuild = MsBuild(scripted.path)
    answer = scripted.path.parent / "answer.json"
    answer.write_text(evaluation([project.parent / "A.cs"]))
    scripted.answer("msbuild", shell=f'{meanwhile} "{project}"; cat "{answer}"')
    for _ in range(2):
        await msbuild.evaluate(project, environment={"PATH": "/usr/bin:/bin"}, directory=project.parent)
    assert msbuild.evaluations_run == runs


@pytest.mark.anyio
async def test_a_refusal_carries_the_error_lines_and_is_remembered_too(
    asker: Asker, scripted: ScriptedDotnet, project: Path
) -> None:
    words = f"{project}(8,3): error MSB4025: The project file could not be loaded."
    scripted.answer("msbuild", f"chatter\n{words}\n{words} [{project}]\n", code=1)
    for _ in range(2):
        with pytest.raises(EvaluationFailed) as caught:
            await asker.ask()
        assert caught.value.message == words
    assert asker.msbuild.evaluations_run == 1
    project.write_text("<Project/>")
    scripted.answer("msbuild", evaluation())
    await asker.ask()


@pytest.mark.anyio
@pytest.mark.parametrize("answer", ["", "MSBuild is thinking", "[]", '{"Properties": 1'])
async def test_an_answer_that_is_no_evaluation_fails(
    asker: Asker, scripted: ScriptedDotnet, answer: str
) -> None:
    scripted.answer("msbuild", answer)
    with pytest.raises(EvaluationFailed, match="JSON"):
        await asker.ask()


@pytest.mark.anyio
async def test_a_wedged_msbuild_is_killed_and_said(
    asker: Asker, scripted: ScriptedDotnet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge.msbuild, "EVALUATION_WAIT", 0.3)
    scripted.answer("msbuild", shell="exec sleep 1000")
    with pytest.raises(EvaluationFailed, match=r"did not end within 0\.3 seconds"):
        await asker.ask({"PATH": "/usr/bin:/bin"})


@pytest.mark.anyio
async def test_a_dotnet_that_is_not_there_is_said(project: Path) -> None:
    msbuild = MsBuild(project.parent / "none")
    with pytest.raises(EvaluationFailed, match="not started"):
        await msbuild.evaluate(project, environment={}, directory=project.parent)


@pytest.mark.anyio
async def test_at_most_two_evaluations_run_at_once(scripted: ScriptedDotnet, tmp_path: Path) -> None:
    """Each call needs the third to have started before it ends; so with a limit of two, none ends by itself."""
    answer = scripted.path.parent / "answer.json"
    answer.write_text(evaluation())
    room = tmp_path / "room"
    room.mkdir()
    script = f'mkdir "{room}/$$"; ls "{room}" | wc -l >> "{tmp_path}/seen"; rmdir "{room}/$$"; cat "{answer}"'
    scripted.answer("msbuild", shell=script)
    msbuild = MsBuild(scripted.path)
    async with anyio.create_task_group() as tasks:
        for index in range(6):
            path = tmp_path / f"P{index}" / "P.csproj"
            path.parent.mkdir()
            path.write_text("<Project/>")

            async def ask(path: Path = path) -> None:
                await msbuild.evaluate(path, environment={"PATH": "/usr/bin:/bin"}, directory=path.parent)

            tasks.start_soon(ask)
    counts = [int(line) for line in (tmp_path / "seen").read_text().split()]
    assert len(counts) == 6
    assert max(counts) <= 2


def test_error_lines_are_those_of_the_tools_not_those_with_the_word() -> None:
    output = """  Restored /x/SyntaxError/SyntaxError.csproj (in 1 ms).
      0 Error(s)
    /x/A.csproj : error NU1101: Unable to find package P. [/tmp/made.sln]
    /x/A.csproj : error NU1101: Unable to find package P. [/tmp/other.sln]
    MSBUILD : error MSB1009: Project file does not exist.
    warning MSB1: no error"""
    assert error_lines(output) == [
        "/x/A.csproj : error NU1101: Unable to find package P.",
        "MSBUILD : error MSB1009: Project file does not exist.",
    ]


# With the real toolchain


@pytest.mark.real
@pytest.mark.anyio
async def test_the_properties_of_a_workspace_change_what_msbuild_says(
    dotnet: Path, toolchain: Mapping[str, str], sample: Callable[[str], Path], tmp_path: Path
) -> None:
    project = sample("MultiTarget") / "Core" / "Core.csproj"
    artifacts = tmp_path / "art"
    artifacts.mkdir()
    given = {
        "artifactsPath": str(artifacts),
        "configuration": "Release",
        "platform": "Any CPU",
        "targetFramework": "netstandard2.0",
        "runtimeIdentifier": "linux-x64",
    }
    properties = MsBuildProperties.check(given)
    environment = child_environment(toolchain, dotnet=dotnet, properties=properties)
    seen = await MsBuild(dotnet).evaluate(project, environment=environment, directory=project.parent)
    wanted = {
        "Configuration": "Release",
        "Platform": "AnyCPU",
        "TargetFramework": "netstandard2.0",
        "RuntimeIdentifier": "linux-x64",
    }
    assert {name: seen.properties[name] for name in wanted} == wanted
    assert seen.assets_file == artifacts / "obj" / "Core" / "project.assets.json"
    assert seen.frameworks == ()


@pytest.mark.real
@pytest.mark.anyio
async def test_the_flattened_project_gives_the_imports_that_are_not_plain(
    dotnet: Path, toolchain: Mapping[str, str], sample: Callable[[str], Path]
) -> None:
    project = sample("TwoProjects") / "src" / "Library" / "Library.csproj"
    odd = project.parent / "odd.props"
    odd.write_text("<Project />")
    text = project.read_text().replace(
        "</Project>", "<Import Project=\"$([System.IO.Path]::Combine('.', 'odd.props'))\" /></Project>"
    )
    project.write_text(text)
    environment = child_environment(toolchain, dotnet=dotnet)
    msbuild = MsBuild(dotnet)
    seen = await msbuild.evaluate(project, environment=environment, directory=project.parent)
    assert msbuild.evaluations_run == 2
    assert {odd, project, project.parents[2] / "Directory.Build.props"} <= set(seen.inputs)
