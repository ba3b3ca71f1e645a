"""The client against both real C# servers: what was read about them, and what the rest of the bridge builds on."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import psutil
import pytest

from lsp_client.dialects import CSHARP_LS
from lsp_client.dialects.base import ActionListing, DocumentView, FileEvent, LoadTarget, ServerAction
from lsp_client.discovery import discover
from lsp_client.errors import ResponseError, ServerGone
from lsp_client.failures import DocumentNotSeen, MsBuildPropertiesRejected, WorkspaceLoadFailed
from lsp_client.messages import CreateFile, Position, Range, TextDocumentEdit
from lsp_client.session import Session
from lsp_client.supervisor import Supervisor, Waits
from lsp_client.uris import uri_to_path
from tests.lsp_client.strict import failure_of
from tests.real.conftest import CopySample, RealServer

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_dotnet_left")]

BOUND = 180.0
"""Seconds for any story of these tests on two busy cores."""

WAITS = Waits(load_timeout=BOUND, request_timeout=BOUND, restart_timeout=BOUND)


def caret(line: int, character: int) -> Range:
    return Range(Position(line, character), Position(line, character))


def target_of(folder: Path, solution: str = "TwoProjects.slnx") -> LoadTarget:
    return LoadTarget(folder / solution, folder, tuple(sorted(folder.rglob("*.csproj"))))


def supervisor_of(
    server: RealServer, target: LoadTarget, environment: Mapping[str, str], logs: Path
) -> Supervisor:
    launch = discover(server.kind, server.path, environment)
    return Supervisor(launch, target, environment, WAITS, log_directory=logs)


@asynccontextmanager
async def supervised(
    server: RealServer, target: LoadTarget, environment: Mapping[str, str], logs: Path
) -> AsyncGenerator[Supervisor, None]:
    supervisor = supervisor_of(server, target, environment, logs)
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(BOUND):
            await tasks.start(supervisor.run)
            yield supervisor
            await supervisor.stop()


async def diagnostics(session: Session, path: Path, text: str) -> list[str]:
    """The ids of the diagnostics of a document with this text."""
    async with session.looking_at({path: text}):
        return [item.id or "" for item in await session.diagnostics(path)]


async def messages(session: Session, path: Path, text: str, code: str) -> list[str]:
    async with session.looking_at({path: text}):
        return [item.message for item in await session.diagnostics(path) if item.id == code]


async def listed(session: Session, path: Path, text: str, place: Range) -> ActionListing:
    async with session.looking_at({path: text}):
        return await session.list_actions(path, place, await session.diagnostics(path))


def titled(listing: ActionListing, title: str) -> ServerAction:
    return next(action for action in listing.actions if action.title == title)


async def test_from_a_list_to_an_edit_through_death_and_reload(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    """One long story, because each start of a server costs seconds."""
    target = target_of(two_projects)
    path = two_projects / "src/Library/Inventory.cs"
    async with supervised(real_server, target, toolchain, tmp_path / "logs") as supervisor:
        session = await supervisor.session()
        assert session.load_report.errors == ()
        assert session.server_version
        await _a_fix_is_listed_and_resolved(session, path)
        await _an_action_creates_a_file(session, path)
        await _staged_text_is_seen_and_undone(session, path)
        await _columns_survive_an_undo(session, two_projects / "src/Library/Encodings/BomFile.cs")
        assert session.pending_request_count == 0
        assert await session.is_alive()
        await _a_killed_server_comes_back(supervisor, path)
        await _release_changes_what_is_compiled(supervisor, target, toolchain, path)


async def _a_fix_is_listed_and_resolved(session: Session, path: Path) -> None:
    listing = await listed(session, path, path.read_text(encoding="utf-8"), caret(39, 17))
    fix = titled(listing, "Remove unused variable")
    expected = (("CS0219", "The variable 'unused' is assigned but its value is never used"),)
    assert (fix.kind, fix.diagnostics) == ("CodeFix", expected)
    fixes = [a.title_path for a in listing.actions if a.kind == "CodeFix"]
    assert all(path == ("Remove unused variable",) or path[0].startswith("Suppress") for path in fixes)
    assert titled(listing, "Use implicit type").kind == "Refactoring"
    assert listing.kinds_decided
    edit = await session.resolve(fix)
    assert edit is not None
    (change,) = edit.operations()
    assert isinstance(change, TextDocumentEdit)
    assert uri_to_path(change.text_document.uri) == path


async def _an_action_creates_a_file(session: Session, path: Path) -> None:
    listing = await listed(session, path, path.read_text(encoding="utf-8"), caret(93, 18))
    edit = await session.resolve(titled(listing, "Move type to Item.cs"))
    assert edit is not None
    created = {uri_to_path(o.uri) for o in edit.operations() if isinstance(o, CreateFile)}
    edited = {uri_to_path(o.text_document.uri) for o in edit.operations() if isinstance(o, TextDocumentEdit)}
    assert path in edited
    assert path.with_name("Item.cs") in created | edited


async def _staged_text_is_seen_and_undone(session: Session, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    staged = text.replace("int unused = 42;", "int spare = 42;")
    await session.synchronise(DocumentView({path: staged}))
    assert "'spare'" in (await messages(session, path, staged, "CS0219"))[0]
    await session.synchronise(DocumentView())
    assert "'unused'" in (await messages(session, path, text, "CS0219"))[0]
    new, contracts = path.with_name("Fresh.cs"), path.with_name("Contracts.cs")
    texts = {new: "namespace Sample.Library; class Fresh { }\n"}
    await session.synchronise(DocumentView(texts, frozenset({new}), frozenset({contracts})))
    assert "CS0246" in await diagnostics(session, path, text)
    await session.synchronise(DocumentView())
    assert "CS0246" not in await diagnostics(session, path, text)


async def _columns_survive_an_undo(session: Session, path: Path) -> None:
    """Of a file with a byte order mark, which is no column."""
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    text = path.read_bytes().decode("utf-8-sig")

    async def first_line() -> list[tuple[int, int]]:
        async with session.looking_at({path: text}):
            found = await session.diagnostics(path)
        return sorted(
            (d.range.start.character, d.range.end.character) for d in found if d.range.start.line == 0
        )

    before = await first_line()
    await session.synchronise(DocumentView({path: "// staged\n" + text}))
    await session.synchronise(DocumentView())
    assert await first_line() == before


async def _a_killed_server_comes_back(supervisor: Supervisor, path: Path) -> None:
    staged = path.read_text(encoding="utf-8").replace("int unused = 42;", "int spare = 42;")
    first = await supervisor.session()
    await first.synchronise(DocumentView({path: staged}))
    os.kill(first.pid, signal.SIGKILL)
    with pytest.raises(ServerGone):
        await first.diagnostics(path)
    second = await supervisor.session()
    assert (supervisor.generation, second.pid != first.pid) == (2, True)
    await second.synchronise(DocumentView({path: staged}))
    assert "'spare'" in (await messages(second, path, staged, "CS0219"))[0]
    assert not psutil.pid_exists(first.pid)


async def _release_changes_what_is_compiled(
    supervisor: Supervisor, target: LoadTarget, environment: Mapping[str, str], path: Path
) -> None:
    conditional = "#if DEBUG\n            int debug = 42;\n#endif\n"
    text = path.read_text(encoding="utf-8").replace("int unused = 42;", conditional)
    session = await supervisor.session()
    await session.synchronise(DocumentView({path: text}))
    assert len(await messages(session, path, text, "CS0219")) == 1
    await supervisor.reload(target, {**environment, "Configuration": "Release"})
    session = await supervisor.session()
    await session.synchronise(DocumentView({path: text}))
    assert await messages(session, path, text, "CS0219") == []


async def test_changes_on_disk_are_known_when_the_call_returns(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    path = two_projects / "src/Library/Inventory.cs"
    project = two_projects / "src/Library/Library.csproj"
    user = two_projects / "src/Library/Uses.cs"
    text = path.read_text(encoding="utf-8")
    async with supervised(real_server, target_of(two_projects), toolchain, tmp_path / "logs") as supervisor:
        session = await supervisor.session()
        user.write_text("namespace Sample.Library; class Uses { Fresh x = new Fresh(); }\n")
        fresh = path.with_name("Fresh.cs")
        fresh.write_text("namespace Sample.Library; class Fresh { }\n")
        assert await session.files_changed([FileEvent(user, "created"), FileEvent(fresh, "created")])
        assert "CS0246" not in await diagnostics(session, user, user.read_text())
        fresh.unlink()
        assert await session.files_changed([FileEvent(fresh, "deleted")])
        assert "CS0246" in await diagnostics(session, user, user.read_text())
        user.write_text("namespace Sample.Library; class Uses { string x = null!; }\n")
        assert await session.files_changed([FileEvent(user, "changed")])
        assert "CS0246" not in await diagnostics(session, user, user.read_text())

        # A changed project file, with a document staged: the staged text is still what it sees.
        staged = text.replace("int unused = 42;", "#if EXTRA\n            int staged = 42;\n#endif\n")
        await session.synchronise(DocumentView({path: staged}))
        assert await messages(session, path, staged, "CS0219") == []
        project.write_text(project.read_text().replace("LIBRARY<", "LIBRARY;EXTRA<"))
        assert await session.files_changed([FileEvent(project, "changed")])
        assert "'staged'" in (await messages(session, path, staged, "CS0219"))[0]


async def test_projects_that_fail_are_named_although_the_load_ends_well(
    real_server: RealServer, sample: CopySample, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    broken = sample("Broken")
    async with supervised(
        real_server, target_of(broken, "Broken.slnx"), toolchain, tmp_path / "logs"
    ) as supervisor:
        errors = (await supervisor.session()).load_report.errors
    assert {m.project.name for m in errors if m.project} >= {"InvalidXml.csproj", "MissingReference.csproj"}
    assert "Healthy.csproj" not in {m.project.name for m in errors if m.project}


async def test_a_solution_that_is_not_there_fails_the_load_in_its_own_words(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    target = target_of(two_projects, "Nowhere.slnx")
    failure = await failure_of(supervisor_of(real_server, target, toolchain, tmp_path / "logs"), BOUND)
    assert isinstance(failure, WorkspaceLoadFailed)
    assert "Nowhere.slnx" in failure.message


async def test_a_target_framework_is_loaded_or_refused_but_never_replaced(
    real_server: RealServer, sample: CopySample, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    folder = sample("MultiTarget")
    target = target_of(folder, "MultiTarget.slnx")
    environment = {**toolchain, "TargetFramework": "netstandard2.0"}
    supervisor = supervisor_of(real_server, target, environment, tmp_path / "logs")
    if not supervisor.launch.dialect.supports_target_framework:
        assert isinstance(await failure_of(supervisor, BOUND), MsBuildPropertiesRejected)
        return
    clock = folder / "Core/Clock.cs"
    text = clock.read_text(encoding="utf-8").replace(
        "int unused = 1;", "#if NETSTANDARD2_0\n int standard = 1;\n#endif\n"
    )
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run)
        session = await supervisor.session()
        await session.synchronise(DocumentView({clock: text}))
        assert len(await messages(session, clock, text, "CS0219")) == 1
        await supervisor.stop()


async def test_roslyn_fixes_every_occurrence_in_a_scope(
    roslyn_dll: Path, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    path = two_projects / "src/Library/Inventory.cs"
    text = path.read_text(encoding="utf-8")
    server = RealServer("roslyn", roslyn_dll)
    async with supervised(server, target_of(two_projects), toolchain, tmp_path / "logs") as supervisor:
        session = await supervisor.session()
        listing = await listed(session, path, text, caret(2, 0))
        action = titled(listing, "Remove unnecessary usings")
        assert action.fix_all_scopes == ("Document", "Project", "Solution")
        edit = await session.resolve_fix_all(action, "Solution")
        assert edit is not None
        assert len(edit.operations()) > 1
        nested = [a for a in listing.actions if len(a.title_path) > 1]
        assert nested
        assert all(a.title_path[-1] == a.title for a in nested)


async def test_roslyn_opens_a_project_without_a_solution(
    roslyn_dll: Path, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    server = RealServer("roslyn", roslyn_dll)
    target = target_of(two_projects, "src/Library/Library.csproj")
    async with supervised(server, target, toolchain, tmp_path / "logs") as supervisor:
        session = await supervisor.session()
        loaded = {m.project.name for m in session.load_report.messages if m.project}
        assert loaded == {"Library.csproj"}


async def test_what_csharp_ls_cannot_do_is_an_error_and_its_kinds_are_inferred_rightly(
    csharp_ls_dll: Path, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    path = two_projects / "src/Library/Inventory.cs"
    server = RealServer("csharp-ls", csharp_ls_dll)
    async with supervised(server, target_of(two_projects), toolchain, tmp_path / "logs") as supervisor:
        session = await supervisor.session()
        await _a_file_of_two_projects_is_not_reported_as_empty(session, two_projects / "shared/BuildInfo.cs")
        await _an_action_that_moved_or_never_resolves_is_an_error(session, path)
        await _inferred_kinds_agree_with_titles(session, path)


async def _a_file_of_two_projects_is_not_reported_as_empty(session: Session, shared: Path) -> None:
    with pytest.raises(DocumentNotSeen):
        await session.list_actions(shared, caret(5, 5))
    await session.synchronise(DocumentView({shared: "class X { }"}))
    assert session.unseen_documents == {shared}
    await session.synchronise(DocumentView())


async def _an_action_that_moved_or_never_resolves_is_an_error(session: Session, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    listing = await listed(session, path, text, caret(93, 18))
    with pytest.raises(ResponseError):
        await session.resolve(titled(listing, "Generate constructor from members..."))
    move = titled(listing, "Move type to Item.cs")
    await session.synchronise(DocumentView({path: "// one line more\n" * 40 + text}))
    with pytest.raises(ResponseError):
        await session.resolve(move)


FIXES = (
    "Remove unused",
    "Generate type",
    "Generate method",
    "Fix typo",
    "Change '",
    "Remove unnecessary usings",
)
REFACTORINGS = (
    "Introduce", "Extract", "Convert", "Use implicit", "Encapsulate", "Sort", "Add parameter", "Invert",
)  # fmt: skip


async def _inferred_kinds_agree_with_titles(session: Session, path: Path) -> None:
    """Titles that can only be one or the other, at places with and without diagnostics."""
    text = path.read_text(encoding="utf-8").replace(
        "int unused = 42;", "int unused = 42; Strin x = null; Frobnicate(1); void Local() { }"
    )
    await session.synchronise(DocumentView({path: text}))
    found = await session.diagnostics(path)
    lines = text.splitlines()
    places = [
        Range(Position(0, 0), Position(len(lines) - 1, len(lines[-1]))),
        Range(Position(39, 0), Position(40, 0)),
    ]
    places += [
        caret(9, 18),
        caret(13, 22),
        caret(65, 22),
        *(Range(d.range.start, d.range.start) for d in found),
    ]
    judged = []
    for place in places:
        listing = await session.list_actions(path, place, found)
        assert listing.kinds_decided
        judged += [(place, action.title, action.kind) for action in listing.actions]
    assert [entry for entry in judged if entry[1].startswith(FIXES) and entry[2] != "CodeFix"] == []
    assert [
        entry for entry in judged if entry[1].startswith(REFACTORINGS) and entry[2] != "Refactoring"
    ] == []
    assert len(judged) > 40


def test_csharp_ls_is_not_asked_to_open_what_it_cannot() -> None:
    assert not CSHARP_LS.accepts(Path("x.csproj"))
