"""Solutions, projects, and the files in them."""

from pathlib import Path

import pytest

from bridge.embedded_server.projects import (
    Project,
    UnreadableError,
    documents_of,
    owner_of,
    read_project,
    read_solution,
)

CSPROJ = '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup>{}</PropertyGroup></Project>'


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_slnx_names_its_csharp_projects(tmp_path: Path) -> None:
    solution = write(
        tmp_path / "A.slnx",
        '<Solution><Folder Name="/x/"><Project Path="x\\A.csproj" /></Folder>'
        '<Project Path="F.fsproj" /><Project Path="../B/B.csproj" /></Solution>',
    )
    assert read_solution(solution) == (tmp_path / "x/A.csproj", tmp_path.parent / "B/B.csproj")


def test_a_sln_names_its_csharp_projects(tmp_path: Path) -> None:
    solution = write(
        tmp_path / "A.sln",
        "\ufeff\nMicrosoft Visual Studio Solution File, Format Version 12.00\n"
        'Project("{FAE04EC0}") = "A", "src\\A\\A.csproj", "{1}"\nEndProject\n'
        'Project("{2150E333}") = "src", "src", "{2}"\nEndProject\n',
    )
    assert read_solution(solution) == (tmp_path / "src/A/A.csproj",)


def test_a_slnf_names_projects_relative_to_its_solution(tmp_path: Path) -> None:
    solution = write(
        tmp_path / "filters/A.slnf",
        '{"solution": {"path": "..\\\\A.sln", "projects": ["src\\\\A.csproj"]}}',
    )
    assert read_solution(solution) == (tmp_path / "src/A.csproj",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("A.slnx", "<Solution>"),
        ("A.slnf", "{}"),
        ("A.slnf", "["),
        ("A.txt", ""),
        ("A.slnx", None),
    ],
    ids=["no XML", "no solution", "no JSON", "another file", "missing"],
)
def test_what_is_no_solution_is_refused(tmp_path: Path, name: str, text: str | None) -> None:
    if text is not None:
        write(tmp_path / name, text)
    with pytest.raises(UnreadableError):
        read_solution(tmp_path / name)


def test_a_project_holds_the_sources_below_it_but_no_outputs_and_no_other_projects(tmp_path: Path) -> None:
    for name in (
        "A.cs",
        "sub/B.cs",
        "sub/bin/C.cs",
        "bin/D.cs",
        "obj/Debug/E.cs",
        ".hidden/F.cs",
        "nested/Nested.csproj",
        "nested/G.cs",
        "Ünder score/H ä.CS",
        "notes.txt",
    ):
        write(tmp_path / name, "")
    project = Project(tmp_path / "P.csproj", None)
    found = [path.relative_to(tmp_path).as_posix() for path in documents_of(project, (project,))]
    assert found == ["A.cs", "sub/B.cs", "sub/bin/C.cs", "Ünder score/H ä.CS"]


def test_the_nearest_project_owns_a_file(tmp_path: Path) -> None:
    outer, inner = Project(tmp_path / "O.csproj", None), Project(tmp_path / "in/I.csproj", None)
    projects = (outer, inner)
    assert owner_of(tmp_path / "A.cs", projects) == outer
    assert owner_of(tmp_path / "in/deep/B.cs", projects) == inner
    assert owner_of(tmp_path / "in/obj/C.cs", projects) is None
    assert owner_of(tmp_path / ".vs/D.cs", projects) is None
    assert owner_of(tmp_path.parent / "E.cs", projects) is None


@pytest.mark.parametrize(
    ("properties", "version"),
    [
        ("<TargetFramework>net10.0</TargetFramework>", 10.0),
        ("<TargetFramework>net8.0-windows</TargetFramework>", 10.0),
        ("<TargetFramework>net5.0</TargetFramework>", 9.0),
        ("<TargetFramework>netstandard2.0</TargetFramework>", 9.0),
        ("<TargetFramework>net48</TargetFramework>", 9.0),
        ("<TargetFrameworks>net10.0;netstandard2.0</TargetFrameworks>", 9.0),
        ("<TargetFramework>netstandard2.0</TargetFramework><LangVersion>12</LangVersion>", 12.0),
        ("<TargetFramework>netstandard2.0</TargetFramework><LangVersion>latest</LangVersion>", None),
        ("<TargetFramework>$(Mine)</TargetFramework>", None),
        ("", None),
    ],
)
def test_the_language_version_is_what_the_project_is_clear_about(
    tmp_path: Path, properties: str, version: float | None
) -> None:
    assert read_project(write(tmp_path / "A.csproj", CSPROJ.format(properties))).language_version == version


def test_shared_properties_count_where_the_project_says_nothing(tmp_path: Path) -> None:
    write(tmp_path / "Directory.Build.props", CSPROJ.format("<LangVersion>7.3</LangVersion>"))
    silent = write(tmp_path / "a/A.csproj", CSPROJ.format("<TargetFramework>net10.0</TargetFramework>"))
    clear = write(tmp_path / "b/B.csproj", CSPROJ.format("<LangVersion>11</LangVersion>"))
    assert read_project(silent).language_version == 7.3
    assert read_project(clear).language_version == 11.0


@pytest.mark.parametrize("text", [None, "<Project>"])
def test_an_unreadable_project_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write(tmp_path / "A.csproj", text)
    with pytest.raises(UnreadableError):
        read_project(tmp_path / "A.csproj")
