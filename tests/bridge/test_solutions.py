"""From paths to projects: what is accepted, what is refused and with which words."""

from pathlib import Path

import pytest

from bridge.solutions import PathRefused, locate, read_projects, underlying_solution

HEADER = "\nMicrosoft Visual Studio Solution File, Format Version 12.00\n"
CSHARP = "{FAE04EC0-301F-11D3-BF4B-00C04F79EFBC}"
FOLDER = "{2150E333-8FDC-42A3-9474-1A3956D46DE8}"
GUID = "{CF94A31D-D5F5-404B-9E09-EF5E433BCF2D}"


def write(path: Path, text: str = "<Project />") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def line(name: str, path: str, kind: str = CSHARP) -> str:
    return f'Project("{kind}") = "{name}", "{path}", "{GUID}"\nEndProject\n'


def refusal(path: Path) -> PathRefused:
    with pytest.raises(PathRefused) as caught:
        locate(path)
    return caught.value


def unreadable(path: Path) -> str:
    with pytest.raises(PathRefused) as caught:
        read_projects(path)
    assert caught.value.code == "WorkspaceLoadFailed"
    assert str(path) in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("name", ["A.sln", "A.slnx", "A.slnf", "A.csproj", "A.SLN"])
def test_a_solution_or_project_file_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    assert locate(write(tmp_path / name)) == tmp_path / name


@pytest.mark.parametrize("name", ["A.sln", "A.slnx", "A.slnf", "A.csproj"])
def test_a_folder_means_the_only_candidate_in_it(tmp_path: Path, name: str) -> None:
    write(tmp_path / "README.md")
    write(tmp_path / "below" / "B.sln")
    assert locate(write(tmp_path / name).parent) == tmp_path / name


def test_a_solution_outranks_the_project_files_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "A.csproj")
    write(tmp_path / "B.csproj")
    assert locate(write(tmp_path / "All.slnx").parent) == tmp_path / "All.slnx"


@pytest.mark.parametrize(
    "names", [("X.sln", "X.slnx"), ("X.sln", "Y.sln"), ("X.sln", "X.slnf"), ("A.csproj", "B.csproj")]
)
def test_two_candidates_are_ambiguous_and_named(tmp_path: Path, names: tuple[str, str]) -> None:
    paths = tuple(write(tmp_path / name) for name in names)
    refused = refusal(tmp_path)
    assert refused.code == "WorkspacePathAmbiguous"
    assert set(refused.candidates) == set(paths)
    assert all(name in refused.message for name in names)


def test_a_relative_path_is_invalid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "A.sln")
    monkeypatch.chdir(tmp_path)
    refused = refusal(Path("A.sln"))
    assert (refused.code, "not absolute" in refused.message) == ("WorkspacePathInvalid", True)


def test_a_missing_path_is_invalid_and_its_nearest_folder_is_named(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "not" / "there" / "A.sln")
    assert refused.code == "WorkspacePathInvalid"
    assert f"nearest folder that exists is {tmp_path}" in refused.message


@pytest.mark.parametrize("name", ["Program.cs", "notes", "A.sln.bak", "packages.config"])
def test_another_file_is_invalid_and_what_is_accepted_is_said(tmp_path: Path, name: str) -> None:
    refused = refusal(write(tmp_path / name))
    assert refused.code == "WorkspacePathInvalid"
    assert ".slnx" in refused.message


@pytest.mark.parametrize("name", ["A.vbproj", "A.fsproj", "A.vcxproj"])
def test_a_project_of_another_language_is_not_supported(tmp_path: Path, name: str) -> None:
    assert refusal(write(tmp_path / name)).code == "WorkspaceNotSupported"
    assert refusal(tmp_path).code == "WorkspaceNotSupported"


def test_a_folder_without_a_solution_says_which_lie_below(tmp_path: Path) -> None:
    below = write(tmp_path / "src" / "deep" / "A.sln")
    write(tmp_path / "src" / "bin" / "Copy.sln")
    write(tmp_path / ".hidden" / "B.sln")
    refused = refusal(tmp_path)
    assert refused.code == "WorkspacePathInvalid"
    assert refused.candidates == (below,)
    assert "src/deep/A.sln" in refused.message


def test_a_path_that_the_system_cannot_hold_is_invalid(tmp_path: Path) -> None:
    for path in (tmp_path / ("x" * 300), Path("/a\0b.sln"), Path("/a\ud800.sln"), Path("x" * 10_000_000)):
        refused = refusal(path)
        assert refused.code == "WorkspacePathInvalid"
        assert len(refused.message.encode()) < 2000


def test_links_in_the_folder_are_resolved_but_the_file_stays_the_link(tmp_path: Path) -> None:
    write(tmp_path / "real" / "A.sln")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "real" / "Alias.sln").symlink_to(tmp_path / "real" / "A.sln")
    assert locate(tmp_path / "link" / "Alias.sln") == tmp_path.resolve() / "real" / "Alias.sln"


def test_a_sln_lists_projects_in_order_and_leaves_solution_folders_out(tmp_path: Path) -> None:
    text = (
        HEADER
        + line("src", "src", FOLDER)
        + line("Kern", "src\\Kern\\Kern.csproj")
        + line("Web", "web/Web.fsproj")
    )
    projects = read_projects(write(tmp_path / "A.sln", text))
    assert [(p.path, p.name, p.kind) for p in projects] == [
        (tmp_path / "src" / "Kern" / "Kern.csproj", "Kern", "csharp"),
        (tmp_path / "web" / "Web.fsproj", "Web", "other"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_sln_is_read_in_the_encodings_that_tools_have_written(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "A.sln"
    path.write_bytes((HEADER + line("Café", "Café\\Café.csproj")).replace("\n", "\r\n").encode(encoding))
    assert [p.name for p in read_projects(path)] == ["Café"]
    assert read_projects(path)[0].path == tmp_path / "Café" / "Café.csproj"


def test_paths_above_the_solution_and_absolute_ones_are_normalised(tmp_path: Path) -> None:
    text = HEADER + line("A", "..\\other\\.\\A.csproj") + line("B", f"{tmp_path}/b/B.csproj")
    paths = [p.path for p in read_projects(write(tmp_path / "sub" / "A.sln", text))]
    assert paths == [tmp_path / "other" / "A.csproj", tmp_path / "b" / "B.csproj"]


def test_a_project_named_twice_is_listed_once(tmp_path: Path) -> None:
    text = HEADER + line("A", "A.csproj") + line("A", ".\\A.csproj")
    assert len(read_projects(write(tmp_path / "A.sln", text))) == 1


def test_a_slnx_lists_projects_in_folders_and_with_either_slash(tmp_path: Path) -> None:
    text = """<Solution><Folder Name="/src/"><Project Path="src\\A\\A.csproj" /></Folder>
      <!-- <Project Path="no.csproj" /> --><Project Path="b/B.csproj" DisplayName="Bee" Type="C#" /></Solution>"""
    projects = read_projects(write(tmp_path / "A.slnx", text))
    assert [(p.path.relative_to(tmp_path).as_posix(), p.name, p.type) for p in projects] == [
        ("src/A/A.csproj", "A", ".csproj"),
        ("b/B.csproj", "Bee", "C#"),
    ]


def test_a_slnf_keeps_the_named_projects_of_its_solution(tmp_path: Path) -> None:
    solution = write(tmp_path / "All.sln", HEADER + line("A", "a\\A.csproj") + line("B", "b\\B.csproj"))
    text = '{ // comment\n "solution": { "path": "..\\\\All.sln", "projects": [ "b\\\\B.csproj", /* last */ ] } }'
    path = write(tmp_path / "filters" / "Some.slnf", "\ufeff" + text)
    assert [p.path for p in read_projects(path)] == [tmp_path / "b" / "B.csproj"]
    assert underlying_solution(path) == solution
    assert underlying_solution(solution) == solution


def test_a_filter_that_names_a_project_its_solution_lacks_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "All.sln", HEADER + line("A", "a\\A.csproj"))
    path = write(tmp_path / "F.slnf", '{"solution": {"path": "All.sln", "projects": ["x\\\\X.csproj"]}}')
    assert "does not have" in unreadable(path)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("A.sln", "", "no solution file header"),
        ("A.sln", "<Solution />", "no solution file header"),
        ("A.sln", HEADER + 'Project("{nonsense}") = A', "line 3"),
        ("A.sln", HEADER, "names no project"),
        ("A.slnx", "", "not well-formed"),
        ("A.slnx", "<Solution><Project></Solution>", "not well-formed"),
        ("A.slnx", "<Project />", "not <Solution>"),
        ("A.slnx", "<Solution><Project /></Solution>", "without a Path"),
        ("A.slnx", '<!DOCTYPE x [<!ENTITY a "b">]><Solution/>', "DOCTYPE"),
        ("A.slnf", "{", "not JSON"),
        ("A.slnf", "[" * 50_000, "nested too deeply"),
        ("A.slnf", "[]", "no solution.path"),
        ("A.slnf", '{"solution": {"path": "No.sln", "projects": []}}', "does not exist"),
        ("A.slnf", '{"solution": {"path": "No.txt", "projects": []}}', "no .sln or .slnx"),
        ("A.slnf", '{"solution": {"path": "No.sln", "projects": 1}}', "no list"),
        ("A.slnf", '{"solution": {"path": "No.sln", "projects": [1]}}', "no path"),
    ],
)
def test_a_malformed_solution_fails_with_the_reason(tmp_path: Path, name: str, text: str, words: str) -> None:
    assert words in unreadable(write(tmp_path / name, text))


def test_a_solution_that_vanished_fails_with_the_reason(tmp_path: Path) -> None:
    for name in ("A.sln", "A.slnx", "A.slnf"):
        assert "No such file" in unreadable(tmp_path / name)


def test_a_csproj_is_its_own_list(tmp_path: Path) -> None:
    (project,) = read_projects(write(tmp_path / "A.csproj"))
    assert (project.path, project.name, project.kind) == (tmp_path / "A.csproj", "A", "csharp")
