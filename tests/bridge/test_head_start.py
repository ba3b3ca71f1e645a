"""A server may load while the projects are read, where that can do no harm, and it counts where nothing moved."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from bridge import fingerprints, loading
from bridge.fingerprints import untouched_since
from bridge.head_start import HeadStart, counts, head_start
from bridge.loading import Load, Loader, LoadRequest, shapes_a_load
from bridge.progress import ProgressSink, to_nobody
from bridge.projects import Structure
from tests.bridge.agent import Scene, scene, write_solution
from tests.bridge.played_compiler import evaluated_projects
from tests.bridge.played_fixes import PlayedFixer
from tests.bridge.promises import keeps
from tests.bridge.test_cancellation import cancelled_after
from transactions.baseline import Inputs


def restored(root: Path) -> Path:
    """The small solution, whose projects look restored."""
    solution = write_solution(root)
    seem_restored(root)
    return solution


def seem_restored(root: Path) -> None:
    for project in ("Core", "App"):
        folder = root / project / "obj"
        folder.mkdir()
        (folder / "project.assets.json").write_text("{}")


def without_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test has written just now is old."""
    monkeypatch.setattr(fingerprints, "RACE_MARGIN_NS", -10_000_000)


def started(solution: Path) -> HeadStart:
    start = head_start(solution, solution.parent)
    assert start is not None
    return start


def inputs_of(root: Path) -> Inputs:
    """As a look would have them: sources, projects, and a file that could be there."""
    files = [*root.rglob("*.cs"), *root.rglob("*.csproj"), root / "Shop.slnx", root / "Directory.Build.props"]
    return Inputs.capture(tuple(files), (root / "Core", root / "App"), shapes_a_load)


# --- whether it may -----------------------------------------------------------------------------------------


def test_a_restored_solution_may_be_loaded_at_once(tmp_path: Path) -> None:
    assert started(restored(tmp_path)).projects == (
        tmp_path / "Core/Core.csproj",
        tmp_path / "App/App.csproj",
    )


def never_restored(root: Path) -> None:
    (root / "App/obj/project.assets.json").unlink()


def not_understood(root: Path) -> None:
    (root / "Shop.slnx").write_text("<Solution>")


def outside(root: Path) -> None:
    (root / "App").rename(root.parent / "elsewhere")
    (root / "App").symlink_to(root.parent / "elsewhere")


@pytest.mark.parametrize("spoilt", [never_restored, not_understood, outside])
def test_one_that_is_not_restored_not_understood_or_not_under_the_root_has_to_wait(
    tmp_path: Path, spoilt: Callable[[Path], None]
) -> None:
    root = tmp_path / "root"
    solution = restored(root)
    spoilt(root)
    assert head_start(solution, root) is None


# --- whether it counts --------------------------------------------------------------------------------------


def test_what_a_load_writes_itself_leaves_it_standing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = started(restored(tmp_path))
    without_margin(monkeypatch)
    (tmp_path / "Core/bin").mkdir()
    (tmp_path / "Core/obj/Core.AssemblyInfo.cs").write_text("// generated")
    assert counts(start, inputs_of(tmp_path))


def edited(root: Path) -> None:
    (root / "Core/Apple.cs").write_text("class Other { }")


def added(root: Path) -> None:
    (root / "Core/Deep").mkdir()
    (root / "Core/Deep/New.cs").write_text("class New { }")


def removed(root: Path) -> None:
    (root / "Core/Pear.cs").unlink()


def replaced(root: Path) -> None:
    other = root.parent / "other"
    other.write_text("class Other { }")
    other.replace(root / "Core/Apple.cs")


def taken_away_above(root: Path) -> None:
    (root / "Directory.Build.props").unlink()


def taken_away_above_the_root(root: Path) -> None:
    (root.parent / "Directory.Build.targets").unlink()


def led_elsewhere(root: Path) -> None:
    (root / "Core/Linked.cs").unlink()
    (root / "Core/Linked.cs").symlink_to(root.parent / "new.cs")


@pytest.mark.parametrize(
    "moved",
    [edited, added, removed, replaced, taken_away_above, taken_away_above_the_root, led_elsewhere],
)
def test_a_load_does_not_count_when_an_input_moved_before_all_was_read(
    tmp_path: Path, moved: Callable[[Path], None]
) -> None:
    root = tmp_path / "root"
    solution = restored(root)
    (root / "Directory.Build.props").write_text("<Project />")
    (tmp_path / "Directory.Build.targets").write_text("<Project />")
    for name in ("old.cs", "new.cs"):
        (tmp_path / name).write_text("class Old { }")
    (root / "Core/Linked.cs").symlink_to(tmp_path / "old.cs")
    start = started(solution)
    moved(root)
    assert not counts(start, inputs_of(root))


def test_a_link_that_is_led_elsewhere_is_touched_though_both_files_are_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprints, "RACE_MARGIN_NS", 0)
    target, link = tmp_path / "old.cs", tmp_path / "link.cs"
    target.write_text("class Old { }")
    link.symlink_to(target)
    while (
        link.lstat().st_ctime_ns <= target.stat().st_ctime_ns
    ):  # until the clock of the file system has moved
        link.unlink()
        link.symlink_to(target)
    made_ns = link.lstat().st_ctime_ns
    assert untouched_since([target], made_ns)
    assert not untouched_since([link], made_ns)


# --- the opening --------------------------------------------------------------------------------------------


async def open_with(
    made: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, while_read: Callable[[], object]
) -> None:
    """Open on a played csharp-ls that is asked to load before the projects are read."""
    seem_restored(made.root)
    evaluated_projects(made, tmp_path, monkeypatch)
    PlayedFixer(made.server, made.root)
    read = Loader.look

    async def look(
        loader: Loader, request: LoadRequest, tell: ProgressSink = to_nobody, *, again: bool = False
    ) -> Load:
        await made.server.until(lambda: "textDocument/documentSymbol" in made.server.heard)
        while_read()
        return await read(loader, request, tell, again=again)

    monkeypatch.setattr(Loader, "look", look)
    await made.agent.open(made.solution)


@pytest.mark.anyio
@keeps("open.at-once")
async def test_a_restored_solution_is_loaded_while_it_is_read_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_margin(monkeypatch)
    async with scene(tmp_path, server="csharp-ls", restore="never") as made:
        await open_with(made, tmp_path, monkeypatch, lambda: None)
        assert len(made.server.processes) == 1
        assert made.workspace.supervisor.target.documents == 3
        session = await made.workspace.supervisor.session()
        assert session.target == made.workspace.supervisor.target


@pytest.mark.anyio
@keeps("open.cancelled")
async def test_an_opening_that_is_cancelled_at_any_moment_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, server="csharp-ls", restore="never") as made:
        seem_restored(made.root)
        evaluated_projects(made, tmp_path, monkeypatch)
        PlayedFixer(made.server, made.root)
        turns, over = 0, False
        while not over:
            over = await cancelled_after(turns, partial(made.agent.open, made.solution))
            is_open = bool((await made.agent.list_workspaces()).workspaces)
            assert is_open or not over
            if is_open:
                await made.agent.close()
            assert not any(psutil.pid_exists(pid) for pid in made.server.processes)
            turns += 1 + turns // 2


@pytest.mark.anyio
@keeps("open.at-once", "open.ready")
async def test_a_file_that_moves_before_all_is_read_makes_it_load_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, server="csharp-ls", restore="never") as made:
        apple = made.file("Core/Apple.cs")
        await open_with(made, tmp_path, monkeypatch, lambda: apple.write_text("class Moved { }"))
        assert len(made.server.processes) == 2
        assert made.workspace.text(apple) is not None


@pytest.mark.anyio
@keeps("open.at-once", "open.ready")
async def test_a_file_that_comes_when_its_project_has_been_read_is_part_of_what_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = loading._captured
    async with scene(tmp_path, server="csharp-ls", restore="never") as made:
        late = made.file("Core/Late.cs")

        async def capture(structure: Structure) -> Inputs:
            if not late.exists():
                late.write_text("class Late { }")
                evaluated_projects(made, tmp_path / "again", monkeypatch)
                shutil.copy(tmp_path / "again/dotnet/answers", tmp_path / "dotnet/answers")
            return await captured(structure)

        monkeypatch.setattr(loading, "_captured", capture)
        await open_with(made, tmp_path, monkeypatch, lambda: None)
        assert len(made.server.processes) == 2
        assert made.workspace.structure.documents_at(late)
