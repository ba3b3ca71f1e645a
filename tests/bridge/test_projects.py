"""Structures: who compiles what, what is left out and why, by MSBuild and by the default globs."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bridge.dotnet import child_environment
from bridge.msbuild import MsBuild
from bridge.projects import Project, Structure, document_id, project_id, read_structure, transitive_references
from bridge.solutions import PathRefused, locate
from tests.bridge.scripted_dotnet import ScriptedDotnet, evaluation

SDK = '<Project Sdk="Microsoft.NET.Sdk">{}</Project>'
OLD = """<Project ToolsVersion="15.0" xmlns="http://schemas.microsoft.com/developer/msbuild/2003">
<Import Project="$(MSBuildToolsPath)\\Microsoft.CSharp.targets" /></Project>"""


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def solution(folder: Path, *projects: str) -> Path:
    listed = "".join(f'<Project Path="{project}" />' for project in projects)
    return write(folder / "All.slnx", f"<Solution>{listed}</Solution>")


async def globbed(path: Path) -> Structure:
    return await read_structure(path, msbuild=None, environment={})


def names(project: Project) -> list[str]:
    return [os.path.relpath(document.path, project.directory) for document in project.documents]


@pytest.mark.anyio
async def test_without_an_sdk_the_default_globs_are_used_and_said(tmp_path: Path) -> None:
    project = write(
        tmp_path / "A" / "A.csproj",
        SDK.format("<PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup>"),
    )
    for name in (
        "P.cs",
        "sub/Q.cs",
        "bin/No.cs",
        "obj/No.cs",
        ".git/No.cs",
        "other/Other.csproj",
        "other/No.cs",
        "x.txt",
    ):
        write(tmp_path / "A" / name)
    structure = await globbed(solution(tmp_path, "A/A.csproj"))
    (only,) = structure.projects
    assert names(only) == ["P.cs", "sub/Q.cs"]
    assert (structure.source, structure.notes) == ("default globs", ())
    assert (only.path, only.name, only.target_framework) == (project, "A", "net8.0")


@pytest.mark.anyio
async def test_the_default_globs_depend_on_the_files_above_and_beside_a_project(tmp_path: Path) -> None:
    write(tmp_path / "src/A/A.csproj", SDK.format('<Import Project="../own.props" />'))
    write(tmp_path / "src/A/obj/A.csproj.nuget.g.props", "<Project />")
    there = [
        write(tmp_path / "src/own.props", "<Project />"),
        write(tmp_path / "Directory.Build.props", "<Project />"),
        write(tmp_path / "src/A/Deep/.editorconfig"),
        write(tmp_path / "global.json", "{}"),
    ]
    (only,) = (await globbed(solution(tmp_path / "src", "A/A.csproj"))).projects
    assert set(there) < set(only.inputs)
    for name in (
        "src/Directory.Build.props",
        "src/A/Directory.Build.targets",
        "Directory.Packages.props",
        "src/global.json",
        "src/.editorconfig",
    ):
        assert tmp_path / name in only.absent_inputs, name
    assert not any("nuget.g" in path.name for path in (*only.inputs, *only.absent_inputs))
    assert not set(only.inputs) & set(only.absent_inputs)


@pytest.mark.anyio
async def test_what_cannot_be_used_is_reported_and_never_dropped(tmp_path: Path) -> None:
    write(tmp_path / "Good.csproj", SDK.format(""))
    write(tmp_path / "Old.csproj", OLD)
    write(tmp_path / "Bad.csproj", "<Project")
    write(tmp_path / "Bomb.csproj", '<!DOCTYPE a [<!ENTITY b "c">]><Project Sdk="x">&b;</Project>')
    structure = await globbed(
        solution(
            tmp_path,
            "Good.csproj",
            "Old.csproj",
            "Bad.csproj",
            "Bomb.csproj",
            "Gone.csproj",
            "F.fsproj",
            "q" * 300 + ".csproj",
        )
    )
    assert [project.name for project in structure.projects] == ["Good"]
    assert [(s.path.name, s.code) for s in structure.skipped] == [
        ("Old.csproj", "WorkspaceProjectSkipped"),
        ("F.fsproj", "WorkspaceProjectSkipped"),
    ]
    assert "SDK style" in structure.skipped[0].reason
    assert "no C# project" in structure.skipped[1].reason
    failed = {failure.path.name: failure.message for failure in structure.failed}
    assert "not well-formed" in failed["Bad.csproj"]
    assert "DOCTYPE" in failed["Bomb.csproj"]
    assert "does not exist" in failed["Gone.csproj"]
    assert "cannot be used" in failed["q" * 300 + ".csproj"], "a name no system takes fails alone"
    assert tmp_path / "Gone.csproj" in structure.inputs


@pytest.mark.anyio
async def test_a_solution_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PathRefused):
        await globbed(write(tmp_path / "A.sln", "nothing"))


@pytest.mark.anyio
async def test_a_csproj_brings_its_transitive_references_along(tmp_path: Path) -> None:
    def reference(*paths: str) -> str:
        return SDK.format(
            "<ItemGroup>" + "".join(f'<ProjectReference Include="{p}" />' for p in paths) + "</ItemGroup>"
        )

    write(tmp_path / "c" / "C.csproj", reference("..\\a\\A.csproj"))
    write(tmp_path / "b" / "B.csproj", reference("../c/C.csproj"))
    app = write(tmp_path / "a" / "A.csproj", reference("..\\b\\B.csproj", "../gone/Gone.csproj"))
    structure = await globbed(app)
    assert [project.name for project in structure.projects] == ["A", "B", "C"]
    assert [failure.path.name for failure in structure.failed] == ["Gone.csproj"]
    found = [path.name for path in transitive_references(structure, app)]
    assert found == ["B.csproj", "Gone.csproj", "C.csproj"]


@pytest.mark.anyio
async def test_the_nearest_project_owns_a_file_that_does_not_exist_yet(tmp_path: Path) -> None:
    outer = write(tmp_path / "Outer.csproj", SDK.format(""))
    inner = write(tmp_path / "in" / "Inner.csproj", SDK.format(""))
    structure = await globbed(solution(tmp_path, "Outer.csproj", "in/Inner.csproj"))

    def owner(path: Path) -> Path | None:
        project = structure.owner_of(path)
        return project.path if project else None

    assert owner(tmp_path / "New.cs") == outer
    assert owner(tmp_path / "in" / "deep" / "New.cs") == inner
    assert owner(tmp_path.parent / "New.cs") is None


@pytest.mark.anyio
async def test_a_linked_file_has_one_document_for_each_project(tmp_path: Path) -> None:
    shared = write(tmp_path / "shared" / "S.cs")
    for name in ("A", "B"):
        write(
            tmp_path / name / f"{name}.csproj",
            SDK.format('<ItemGroup><Compile Include="..\\shared\\S.cs" Link="S.cs" /></ItemGroup>'),
        )
    structure = await globbed(solution(tmp_path, "A/A.csproj", "B/B.csproj"))
    documents = structure.documents_at(shared)
    assert [structure.project(d.project_id) for d in documents] == list(structure.projects)
    assert len({d.id for d in documents}) == 2
    assert all(d.is_linked and not d.is_generated for d in documents)
    assert structure.document_paths == {shared}
    assert structure.documents_at(tmp_path / "Stranger.cs") == ()


@pytest.mark.anyio
async def test_ids_are_the_same_in_every_reading_and_different_for_different_things(tmp_path: Path) -> None:
    write(tmp_path / "A.csproj", SDK.format(""))
    write(tmp_path / "x" / "P.cs")
    write(tmp_path / "y" / "P.cs")
    first = await globbed(tmp_path / "A.csproj")
    assert await globbed(tmp_path / "A.csproj") == first
    (project,) = first.projects
    assert project.id == project_id(tmp_path / "A.csproj", "A", None)
    assert [d.id for d in project.documents] == [document_id(n, project.id) for n in ("x/P.cs", "y/P.cs")]
    ids = {project.id, *(d.id for d in project.documents), project_id(project.path, "A", "net10.0")}
    assert len(ids) == 4


@pytest.mark.anyio
async def test_several_frameworks_are_several_projects_with_their_own_documents(tmp_path: Path) -> None:
    path = write(tmp_path / "A" / "A.csproj", SDK.format(""))
    both, new = write(path.parent / "Both.cs"), write(path.parent / "New.cs")
    scripted = ScriptedDotnet(tmp_path / "sdk")
    scripted.answer(
        "msbuild", evaluation([both], TargetFramework="", TargetFrameworks="net10.0; netstandard2.0;")
    )
    scripted.answer("TargetFramework=net10.0", evaluation([both, new]))
    scripted.answer("TargetFramework=netstandard2.0", evaluation([both], TargetFramework="netstandard2.0"))
    structure = await read_structure(path, msbuild=MsBuild(scripted.path), environment={})
    assert [(p.name, p.target_framework, names(p)) for p in structure.projects] == [
        ("A", "net10.0", ["Both.cs", "New.cs"]),
        ("A", "netstandard2.0", ["Both.cs"]),
    ]
    assert len({p.id for p in structure.projects}) == 2
    owner = structure.owner_of(path.parent / "Fresh.cs")
    assert owner is not None
    assert owner.target_framework == "net10.0"
    fresh, stranger = path.parent / "Fresh.cs", tmp_path / "Stranger.cs"
    frameworks = [[p.target_framework for p in structure.compiling(f)] for f in (new, fresh, stranger)]
    assert frameworks == [["net10.0"], ["net10.0", "netstandard2.0"], []]
    might = [[p.target_framework for p in structure.may_compile(f)] for f in (new, fresh, stranger)]
    assert might == [["net10.0"], ["net10.0", "netstandard2.0"], ["net10.0", "netstandard2.0"]]


@pytest.mark.anyio
async def test_a_new_file_in_a_folder_of_another_projects_glob_may_belong_to_both(tmp_path: Path) -> None:
    solution = write(
        tmp_path / "S.slnx",
        '<Solution><Project Path="A/A.csproj" /><Project Path="Lib/Lib.csproj" /></Solution>',
    )
    glob = '<ItemGroup><Compile Include="../Lib/Shared/**/*.cs" /></ItemGroup>'
    write(tmp_path / "A/A.csproj", SDK.format(glob))
    write(tmp_path / "Lib/Lib.csproj", SDK.format(""))
    shared, own = write(tmp_path / "Lib/Shared/Pair.cs"), write(tmp_path / "Lib/Own.cs")
    scripted = ScriptedDotnet(tmp_path / "sdk")
    scripted.answer("A.csproj", evaluation([shared]))
    scripted.answer("Lib.csproj", evaluation([own]))
    structure = await read_structure(solution, msbuild=MsBuild(scripted.path), environment={})
    may = {
        name: [p.name for p in structure.may_compile(tmp_path / name)]
        for name in ("Lib/Shared/D.cs", "Lib/D.cs")
    }
    assert may == {"Lib/Shared/D.cs": ["A", "Lib"], "Lib/D.cs": ["Lib"]}


@pytest.mark.anyio
async def test_files_where_a_build_writes_are_generated(tmp_path: Path) -> None:
    path = write(tmp_path / "A" / "A.csproj", SDK.format(""))
    made = tmp_path / "art" / "obj" / "A" / "Made.cs"
    files = [path.parent / "P.cs", path.parent / "obj" / "G.cs", made]
    scripted = ScriptedDotnet(tmp_path / "sdk")
    scripted.answer("msbuild", evaluation(files, BaseIntermediateOutputPath=f"{made.parent}/"))
    (project,) = (await read_structure(path, msbuild=MsBuild(scripted.path), environment={})).projects
    assert [d.is_generated for d in project.documents] == [False, True, True]


@pytest.mark.anyio
async def test_a_project_outside_the_sdk_style_and_one_that_fails_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path / "Odd.csproj", "<Project />")
    write(tmp_path / "Bad.csproj", "<Project")
    scripted = ScriptedDotnet(tmp_path / "sdk")
    scripted.answer("msbuild", evaluation(UsingMicrosoftNETSdk=""))
    scripted.answer("Bad.csproj", "Bad.csproj(1,9): error MSB4025: broken", code=1)
    told: list[tuple[int, int]] = []
    structure = await read_structure(
        solution(tmp_path, "Odd.csproj", "Bad.csproj"),
        msbuild=MsBuild(scripted.path),
        environment={},
        on_progress=lambda done, known: told.append((done, known)),
    )
    assert [skipped.path.name for skipped in structure.skipped] == ["Odd.csproj"]
    assert [failed.message for failed in structure.failed] == ["Bad.csproj(1,9): error MSB4025: broken"]
    assert sorted(told) == [(1, 2), (2, 2)]


# With the real toolchain


class Reading:
    """One MSBuild, and structures read with it."""

    def __init__(self, dotnet: Path, toolchain: Mapping[str, str]) -> None:
        self.msbuild = MsBuild(dotnet)
        self.environment = child_environment(toolchain, dotnet=dotnet)

    async def read(self, path: Path) -> Structure:
        return await read_structure(locate(path), msbuild=self.msbuild, environment=self.environment)


@pytest.fixture
def reading(dotnet: Path, toolchain: Mapping[str, str]) -> Reading:
    return Reading(dotnet, toolchain)


@pytest.mark.real
@pytest.mark.anyio
async def test_two_projects_are_read_in_few_questions_and_then_from_memory(
    reading: Reading, sample: Callable[[str], Path]
) -> None:
    folder = sample("TwoProjects")
    first = await reading.read(folder / "TwoProjects.sln")
    library = next(p for p in first.projects if p.name == "Library")
    assert "Incomplete/MissingPieces.cs" not in names(library)
    assert "Encodings/Utf16File.cs" in names(library)
    assert {p.name: len(p.documents) for p in first.projects} == {"Library": 15, "App": 3, "Library.Tests": 3}
    assert len(first.documents_at(folder / "shared" / "BuildInfo.cs")) == 2
    assert {folder / "Directory.Build.props", folder / ".editorconfig"} <= set(first.inputs)
    assert (first.failed, first.skipped) == ((), ())

    await reading.read(folder / "TwoProjects.sln")  # a file made just now is asked again once
    asked = reading.msbuild.evaluations_run
    assert asked <= 6
    assert await reading.read(folder / "TwoProjects.sln") == first
    assert reading.msbuild.evaluations_run == asked


@pytest.mark.real
@pytest.mark.anyio
async def test_a_new_file_joins_and_a_changed_project_file_is_read_again(
    reading: Reading, sample: Callable[[str], Path]
) -> None:
    folder = sample("TwoProjects") / "src" / "Library"
    before = await reading.read(folder / "Library.csproj")
    fresh = write(folder / "Text" / "Fresh.cs", "class Fresh;")
    after = await reading.read(folder / "Library.csproj")
    assert after.document_paths - before.document_paths == {fresh}
    text = (folder / "Library.csproj").read_text()
    write(
        folder / "Library.csproj",
        text.replace('Remove="Incomplete/**"', 'Remove="Incomplete/**;Text/Fresh.cs"'),
    )
    assert (await reading.read(folder / "Library.csproj")).document_paths == before.document_paths


@pytest.mark.real
@pytest.mark.anyio
async def test_a_multi_target_project_is_read_for_each_framework(
    reading: Reading, sample: Callable[[str], Path]
) -> None:
    folder = sample("MultiTarget")
    structure = await reading.read(folder)
    assert [(p.name, p.target_framework) for p in structure.projects] == [
        ("Consumer", "net10.0"),
        ("Core", "net10.0"),
        ("Core", "netstandard2.0"),
    ]
    assert len(structure.documents_at(folder / "Linked.cs")) == 3


@pytest.mark.real
@pytest.mark.anyio
async def test_a_broken_solution_gives_its_healthy_projects_and_msbuilds_words_for_the_rest(
    reading: Reading, sample: Callable[[str], Path]
) -> None:
    structure = await reading.read(sample("Broken"))
    assert len(structure.projects) == 5
    (failed,) = structure.failed
    assert failed.path.name == "InvalidXml.csproj"
    assert "MSB4025" in failed.message
    assert "(8,3)" in failed.message


@pytest.mark.real
@pytest.mark.anyio
async def test_the_bakery_is_read_with_its_accents_and_spaces(
    reading: Reading, sample: Callable[[str], Path]
) -> None:
    folder = sample("bakery")
    structure = await reading.read(folder)
    core = next(p for p in structure.projects if p.name == "Bakery.Core")
    assert {"Recipes/Café.cs", "With Space/Jam Jar.cs"} <= set(names(core))
    assert len(structure.documents_at(folder / "shared" / "Linked.cs")) == 2
    globs = await globbed(folder / "Bakery.sln")
    assert globs.document_paths == structure.document_paths


@pytest.mark.real
@pytest.mark.anyio
async def test_the_default_globs_agree_with_msbuild_on_two_projects(
    reading: Reading, sample: Callable[[str], Path]
) -> None:
    folder = sample("TwoProjects")
    exact = await reading.read(folder / "TwoProjects.slnx")
    guessed = await globbed(folder / "TwoProjects.slnx")
    assert guessed.document_paths == exact.document_paths
    assert guessed.notes == ()
