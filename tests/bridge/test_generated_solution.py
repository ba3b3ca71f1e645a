"""A generated solution holds exactly the projects it was made for, and is found again under its own name."""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bridge.generated_solution import write_generated_solution
from bridge.solutions import PathRefused, read_projects


def test_a_generated_solution_names_the_project_and_its_references_absolutely(tmp_path: Path) -> None:
    app, library = tmp_path / "ä b" / "App.csproj", tmp_path / "lib" / "Lib.csproj"
    path = write_generated_solution(app, tmp_path / "state", [library, app])
    assert [p.path for p in read_projects(path)] == [app, library]
    written = path.stat().st_mtime_ns
    assert write_generated_solution(app, tmp_path / "state", [library]) == path
    assert path.stat().st_mtime_ns == written
    assert [entry.name for entry in (tmp_path / "state").iterdir()] == [path.name]


def test_projects_of_one_name_get_different_generated_solutions(tmp_path: Path) -> None:
    first = write_generated_solution(tmp_path / "a" / "App.csproj", tmp_path)
    assert write_generated_solution(tmp_path / "b" / "App.csproj", tmp_path) != first


def test_a_filter_and_its_first_project_get_different_generated_solutions(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "App.csproj", tmp_path / "b" / "Lib.csproj"
    alone = write_generated_solution(first, tmp_path / "state")
    filtered = write_generated_solution(
        first, tmp_path / "state", [second], stands_for=tmp_path / "Some.slnf"
    )
    assert filtered.name.startswith("Some.")
    assert [project.path for project in read_projects(filtered)] == [first, second]
    assert [project.path for project in read_projects(alone)] == [first]


def test_a_path_with_a_quote_fits_in_no_generated_solution(tmp_path: Path) -> None:
    with pytest.raises(PathRefused, match="cannot hold"):
        write_generated_solution(tmp_path / 'a"b' / "App.csproj", tmp_path)


@pytest.mark.real
def test_dotnet_finds_the_projects_of_a_generated_solution(
    tmp_path: Path, dotnet: Path, toolchain: Mapping[str, str], sample: Callable[[str], Path]
) -> None:
    project = sample("TwoProjects") / "src" / "App" / "App.csproj"
    library = project.parents[1] / "Library" / "Library.csproj"
    generated = write_generated_solution(project, tmp_path / "state", [library])
    done = subprocess.run(
        [dotnet, "restore", generated],
        env=dict(toolchain),
        capture_output=True,
        timeout=120,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert (library.parent / "obj" / "project.assets.json").is_file()
