"""What the server sees is what the view says, whatever came before; and nothing it could not bear is ever sent."""

import random
from itertools import product
from pathlib import Path

import anyio
import pytest

from lsp_client.dialects.base import DocumentView, FileEvent
from lsp_client.errors import ResponseError, ServerGone
from lsp_client.failures import DocumentNotSeen, NotificationRefused, NotSupported
from lsp_client.messages import Position, Range
from lsp_client.session import Session
from tests.lsp_client.strict import BOUND, notifications, open_texts, seen, session_of

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("mode", ["roslyn", "csharp-ls"])

CARET = Range(Position(0, 0), Position(0, 0))
MARK = "\ufeff"


def at(folder: Path, name: str) -> Path:
    return folder / name


@both
async def test_a_staged_text_is_seen_and_the_disk_again_afterwards(tmp_path: Path, mode: str) -> None:
    async with session_of(tmp_path, mode) as session:
        one = at(tmp_path, "One.cs")
        await session.synchronise(DocumentView({one: "class Staged { }\n"}))
        assert await seen(session, one) == ["class Staged { }\n"]
        await session.synchronise(DocumentView({one: "class Again\r\n{\r\n}"}))
        assert await seen(session, one) == ["class Again\r\n{\r\n}"]
        await session.synchronise(DocumentView())
        assert await seen(session, one) == ["class One { }\n"]


@both
async def test_a_file_with_a_byte_order_mark_keeps_its_columns_after_an_undo(
    tmp_path: Path, mode: str
) -> None:
    async with session_of(tmp_path, mode) as session:
        marked = at(tmp_path, "Marked.cs")
        await session.synchronise(DocumentView({marked: "class Staged { }\r\n"}))
        await session.synchronise(DocumentView())
        assert await seen(session, marked) == ["class Marked { }\r\n"]


async def test_a_close_would_have_shifted_the_columns_of_that_file(tmp_path: Path) -> None:
    """The trap is real in the server of these tests, so the test above can fail."""
    async with session_of(tmp_path, "csharp-ls") as session:
        marked = at(tmp_path, "Marked.cs")
        await session.synchronise(DocumentView({marked: "class Staged { }\r\n"}))
        await session.tell("textDocument/didClose", {"textDocument": {"uri": marked.as_uri()}})
        assert await seen(session, marked) == [MARK + "class Marked { }\r\n"]


@both
async def test_a_created_document_is_seen_and_gone_after_the_undo(tmp_path: Path, mode: str) -> None:
    async with session_of(tmp_path, mode) as session:
        new = at(tmp_path, "New.cs")
        await session.synchronise(DocumentView({new: "class New { }"}, created=frozenset({new})))
        assert await seen(session, new) == ["class New { }"]
        await session.synchronise(DocumentView())
        assert await seen(session, new) == [None]
        assert session.open_document_count == 0


async def test_a_staged_deletion_is_told_to_csharp_ls_as_a_file_event(tmp_path: Path) -> None:
    async with session_of(tmp_path, "csharp-ls") as session:
        marked = at(tmp_path, "Marked.cs")
        await session.synchronise(DocumentView(deleted=frozenset({marked})))
        assert await seen(session, marked) == [None]
        await session.synchronise(DocumentView())
        assert await seen(session, marked) == ["class Marked { }\r\n"]


async def test_a_staged_deletion_is_an_empty_document_for_roslyn(tmp_path: Path) -> None:
    async with session_of(tmp_path, "roslyn") as session:
        one = at(tmp_path, "One.cs")
        await session.synchronise(DocumentView(deleted=frozenset({one})))
        assert await seen(session, one) == [""]
        await session.synchronise(DocumentView())
        assert await seen(session, one) == ["class One { }\n"]
        assert session.open_document_count == 0


@both
@pytest.mark.parametrize("seed", range(4))
async def test_after_any_sequence_of_views_the_server_sees_exactly_the_last_one(
    tmp_path: Path, mode: str, seed: int
) -> None:
    rng = random.Random(seed)
    disk = {at(tmp_path, "One.cs"): "class One { }\n", at(tmp_path, "Marked.cs"): "class Marked { }\r\n"}
    new = [at(tmp_path, "New.cs"), at(tmp_path, "Größe 2.cs")]
    texts = ["", "class A { }", "class A\r\n{\r\n}\r\n", "// é\u2028\n\nclass B { }\n"]
    gone = "" if mode == "roslyn" else None
    async with session_of(tmp_path, mode) as session:
        for _ in range(25):
            staged = {path: rng.choice(texts) for path in (*disk, *new) if rng.random() < 0.5}
            deleted = frozenset(path for path in disk if path not in staged and rng.random() < 0.3)
            await session.synchronise(DocumentView(staged, frozenset(new) & frozenset(staged), deleted))
            expected = [
                staged.get(path, gone if path in deleted else disk.get(path)) for path in (*disk, *new)
            ]
            assert await seen(session, *disk, *new) == expected
        assert session.pending_request_count == 0


@both
@pytest.mark.parametrize("seed", range(6))
async def test_whatever_changes_on_disk_and_in_the_view_the_server_sees_both_together(
    tmp_path: Path, mode: str, seed: int
) -> None:
    """Stage, undo, change, create and delete on disk, commit: in any order."""
    rng = random.Random(seed)
    names = ["One.cs", "Marked.cs", "New.cs", "Größe 2.cs"]
    disk = {at(tmp_path, "One.cs"): "class One { }\n", at(tmp_path, "Marked.cs"): "class Marked { }\r\n"}
    view: dict[Path, str] = {}
    gone: set[Path] = set()
    numbers = iter(range(1000))

    def text() -> str:
        return f"class C{next(numbers)} {{ }}{rng.choice(['', chr(10), chr(13) + chr(10)])}"

    def write(path: Path, content: str) -> FileEvent:
        event = FileEvent(path, "changed" if path in disk else "created")
        mark = rng.choice([b"", b"\xef\xbb\xbf"])
        path.write_bytes(mark + content.encode())
        disk[path] = content
        return event

    def delete(path: Path) -> FileEvent:
        path.unlink()
        del disk[path]
        return FileEvent(path, "deleted")

    def stage() -> None:
        view.clear()
        gone.clear()
        view.update({at(tmp_path, n): text() for n in names if rng.random() < 0.4})
        gone.update(path for path in disk if path not in view and rng.random() < 0.2)

    async with session_of(tmp_path, mode) as session:
        for _ in range(30):
            events: list[FileEvent] = []
            match rng.choice(["stage", "undo", "disk", "commit"]):
                case "stage":
                    stage()
                case "undo":
                    view.clear()
                    gone.clear()
                case "disk":
                    path = at(tmp_path, rng.choice(names))
                    if path not in view and path not in gone:
                        events = [
                            delete(path) if path in disk and rng.random() < 0.3 else write(path, text())
                        ]
                case "commit":
                    events = [*(write(p, t) for p, t in view.items()), *(delete(p) for p in list(gone))]
                    view.clear()
                    gone.clear()
            assert await session.files_changed(events)
            created = frozenset(path for path in view if path not in disk)
            await session.synchronise(DocumentView(dict(view), created, frozenset(gone)))
            deleted = "" if mode == "roslyn" else None
            paths = [at(tmp_path, name) for name in names]
            expected = [view.get(p, deleted if p in gone else disk.get(p)) for p in paths]
            assert await seen(session, *paths) == expected


@both
async def test_the_same_view_again_sends_nothing(tmp_path: Path, mode: str) -> None:
    async with session_of(tmp_path, mode) as session:
        view = DocumentView({at(tmp_path, "One.cs"): "class Staged { }"})
        await session.synchronise(view)
        before = await notifications(session)
        await session.synchronise(DocumentView(dict(view.texts)))
        assert await notifications(session) == before


@both
async def test_two_callers_with_the_same_view_open_each_document_once(tmp_path: Path, mode: str) -> None:
    async with session_of(tmp_path, mode) as session:
        view = DocumentView({at(tmp_path, "One.cs"): "class Staged { }"})
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(session.synchronise, view)
        assert (await notifications(session)).count("textDocument/didOpen") == 1


async def test_a_cancelled_synchronise_leaves_ledger_and_server_agreed(tmp_path: Path) -> None:
    async with session_of(tmp_path, "roslyn") as session:
        one = at(tmp_path, "One.cs")
        for number in range(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.synchronise, DocumentView({one: f"class C{number} {{ }}"}))
                await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        await session.synchronise(DocumentView({one: "class Last { }"}))
        assert await seen(session, one) == ["class Last { }"]


# --- looking ------------------------------------------------------------------------------------------------


async def test_a_look_opens_the_document_and_closes_it_after_the_last_one_who_looks(tmp_path: Path) -> None:
    async with session_of(tmp_path, "roslyn") as session:
        texts = {at(tmp_path, "One.cs"): "class One { }\n"}
        async with session.looking_at(texts):
            async with session.looking_at(texts):
                assert [item.message for item in await session.diagnostics(at(tmp_path, "One.cs"))] == [
                    "class One { }\n"
                ]
            assert len(await open_texts(session)) == 1
        assert await open_texts(session) == {}
        assert session.open_document_count == 0


async def test_a_look_at_a_staged_document_sees_the_staged_text_and_leaves_it_open(tmp_path: Path) -> None:
    async with session_of(tmp_path, "roslyn") as session:
        one = at(tmp_path, "One.cs")
        await session.synchronise(DocumentView({one: "staged"}))
        async with session.looking_at({one: "class One { }\n"}):
            assert await seen(session, one) == ["staged"]
        assert await seen(session, one) == ["staged"]


async def test_a_document_staged_while_it_is_looked_at_stays_open_after_the_look(tmp_path: Path) -> None:
    async with session_of(tmp_path, "roslyn") as session:
        one = at(tmp_path, "One.cs")
        async with session.looking_at({one: "class One { }\n"}):
            await session.synchronise(DocumentView({one: "staged"}))
        assert await seen(session, one) == ["staged"]
        await session.synchronise(DocumentView())
        assert await open_texts(session) == {}


async def test_a_document_unstaged_while_it_is_looked_at_shows_the_disk_until_the_look_ends(
    tmp_path: Path,
) -> None:
    async with session_of(tmp_path, "roslyn") as session:
        one = at(tmp_path, "One.cs")
        async with session.looking_at({one: "class One { }\n"}):
            await session.synchronise(DocumentView({one: "staged"}))
            await session.synchronise(DocumentView())
            assert await open_texts(session) == {one.as_uri(): "class One { }\n"}
        assert await open_texts(session) == {}


async def test_a_look_does_nothing_where_closed_documents_have_diagnostics(tmp_path: Path) -> None:
    texts = {at(tmp_path, "One.cs"): "class One { }\n"}
    async with session_of(tmp_path, "csharp-ls") as session, session.looking_at(texts):
        assert session.open_document_count == 0
        assert await session.diagnostics(at(tmp_path, "One.cs"))


async def test_a_look_ends_quietly_when_the_server_died_meanwhile(tmp_path: Path) -> None:
    texts = {at(tmp_path, "One.cs"): "class One { }\n"}
    async with session_of(tmp_path, "roslyn") as session, session.looking_at(texts):
        with pytest.raises(ServerGone):
            await session.ask("test/crash", {})


# --- changes on disk ----------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("name", ["One.cs", "Marked.cs"])
async def test_a_change_on_disk_is_seen_when_the_call_returns(tmp_path: Path, mode: str, name: str) -> None:
    async with session_of(tmp_path, mode) as session:
        path = at(tmp_path, name)
        path.write_bytes(path.read_bytes().replace(b"class", b"struct"))
        assert await session.files_changed([FileEvent(path, "changed")])
        text = path.read_bytes().decode("utf-8-sig")
        assert await seen(session, path) == [text]
        await session.synchronise(DocumentView({path: "staged"}))
        await session.synchronise(DocumentView())
        assert await seen(session, path) == [text]


@both
async def test_a_change_on_disk_never_replaces_a_staged_text(tmp_path: Path, mode: str) -> None:
    async with session_of(tmp_path, mode) as session:
        one = at(tmp_path, "One.cs")
        await session.synchronise(DocumentView({one: "staged"}))
        one.write_text("class Other { }\n")
        await session.files_changed([FileEvent(one, "changed")])
        assert await seen(session, one) == ["staged"]
        await session.synchronise(DocumentView())
        assert await seen(session, one) == ["class Other { }\n"]


@both
async def test_a_commit_leaves_the_server_with_the_committed_texts(tmp_path: Path, mode: str) -> None:
    """The text on disk becomes the staged one; a close at the wrong time would show the old one again."""
    one, new, marked = (at(tmp_path, name) for name in ("One.cs", "New.cs", "Marked.cs"))
    async with session_of(tmp_path, mode) as session:
        await session.synchronise(
            DocumentView(
                {one: "class C { }\n", new: "class New { }\n"}, frozenset({new}), frozenset({marked})
            )
        )
        one.write_text("class C { }\n")
        new.write_text("class New { }\n")
        marked.unlink()
        events = [FileEvent(one, "changed"), FileEvent(new, "created"), FileEvent(marked, "deleted")]
        assert await session.files_changed(events)
        await session.synchronise(DocumentView())
        assert await seen(session, one, new, marked) == ["class C { }\n", "class New { }\n", None]


@both
async def test_created_and_deleted_files_are_known_when_the_call_returns(tmp_path: Path, mode: str) -> None:
    async with session_of(tmp_path, mode) as session:
        new, one = at(tmp_path, "New.cs"), at(tmp_path, "One.cs")
        new.write_bytes(b"\xef\xbb\xbfclass New { }\n")
        assert await session.files_changed([FileEvent(new, "created")])
        assert await seen(session, new) == ["class New { }\n"]
        one.unlink()
        assert await session.files_changed([FileEvent(one, "deleted")])
        assert await seen(session, one) == [None]


async def test_after_a_reload_csharp_ls_gets_every_staged_document_in_full_and_without_a_close(
    tmp_path: Path,
) -> None:
    one, marked, project = (at(tmp_path, name) for name in ("One.cs", "Marked.cs", "App.csproj"))
    async with session_of(tmp_path, "csharp-ls") as session:
        view = DocumentView({one: "class A { }", marked: "class B { }"})
        await session.synchronise(view)
        assert await session.files_changed([FileEvent(project, "changed")])
        assert await seen(session, one, marked) == ["class A { }", "class B { }"]
        sent = await notifications(session)
        assert sent[-3:] == [
            "workspace/didChangeWatchedFiles",
            "textDocument/didOpen",
            "textDocument/didOpen",
        ]
        assert "textDocument/didClose" not in sent


async def test_any_other_input_makes_csharp_ls_reload_through_the_nearest_project(tmp_path: Path) -> None:
    async with session_of(tmp_path, "csharp-ls") as session:
        ended = session.watch.ended
        assert await session.files_changed([FileEvent(at(tmp_path, "Directory.Build.props"), "changed")])
        assert session.watch.ended == ended + 1


@both
@pytest.mark.parametrize("name", ["App.slnx", "App.sln", "Filter.slnf"])
async def test_a_changed_solution_needs_a_new_process(tmp_path: Path, mode: str, name: str) -> None:
    async with session_of(tmp_path, mode) as session:
        before = await notifications(session)
        assert not await session.files_changed([FileEvent(at(tmp_path, name), "changed")])
        assert await notifications(session) == before


async def test_a_server_that_dies_while_it_takes_files_in_is_reported_at_once(tmp_path: Path) -> None:
    async with session_of(tmp_path, "roslyn", crash_on_files=True) as session:
        new = at(tmp_path, "New.cs")
        new.write_text("class New { }\n")
        with anyio.fail_after(BOUND), pytest.raises(ServerGone):
            await session.files_changed([FileEvent(new, "created")])


# --- what never leaves --------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "method",
    ["$/madeUp", "textDocument/madeUpToo", "window/workDoneProgress/cancel", "workspace/didRenameFiles"],
)
async def test_a_notification_the_server_does_not_know_never_leaves(
    tmp_path: Path, mode: str, method: str
) -> None:
    async with session_of(tmp_path, mode) as session:
        with pytest.raises(NotificationRefused, match="survives"):
            await session.tell(method, {})
        assert method not in await notifications(session)


async def test_a_whole_life_sends_csharp_ls_only_what_it_knows(tmp_path: Path) -> None:
    known = {
        "initialized",
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/didClose",
        "workspace/didChangeWatchedFiles",
        "$/cancelRequest",
    }
    async with session_of(tmp_path, "csharp-ls") as session:
        one, new = at(tmp_path, "One.cs"), at(tmp_path, "New.cs")
        for text, created in product(("a", "b"), (True, False)):
            texts = {one: text, **({new: text} if created else {})}
            await session.synchronise(DocumentView(texts, frozenset({new}) if created else frozenset()))
        await session.files_changed([FileEvent(at(tmp_path, "App.csproj"), "changed")])
        await session.synchronise(DocumentView())
        await session.list_actions(one, CARET)
        assert set(await notifications(session)) <= known
        assert await session.is_alive()


async def test_a_document_csharp_ls_has_not_is_not_opened_but_named(tmp_path: Path) -> None:
    """Opening it would add it a second time: a file that is linked into two projects, for instance."""
    async with session_of(tmp_path, "csharp-ls") as session:
        late = at(tmp_path, "Late.cs")
        late.write_text("class Late { }\n")
        await session.synchronise(DocumentView({late: "staged"}))
        assert session.unseen_documents == {late}
        assert session.open_document_count == 0


# --- questions ----------------------------------------------------------------------------------------------


async def test_no_answer_about_an_unknown_document_is_an_error_not_an_empty_list(tmp_path: Path) -> None:
    async with session_of(tmp_path, "csharp-ls") as session:
        late = at(tmp_path, "Late.cs")
        with pytest.raises(DocumentNotSeen, match="no single document"):
            await session.list_actions(late, CARET)


async def test_a_known_document_without_actions_has_none(tmp_path: Path) -> None:
    async with session_of(tmp_path, "csharp-ls") as session:
        listing = await session.list_actions(at(tmp_path, "One.cs"), CARET)
        assert (listing.actions, listing.left_out) == ((), 0)


async def test_a_fix_all_for_a_scope_the_action_has_not_is_refused(tmp_path: Path) -> None:
    actions = [{"title": "Sort", "kind": "refactor", "data": {"CodeActionPath": ["Sort"]}}]
    async with session_of(tmp_path, "roslyn", actions=actions) as session:
        (action,) = (await session.list_actions(at(tmp_path, "One.cs"), CARET)).actions
        with pytest.raises(NotSupported, match="Solution"):
            await session.resolve_fix_all(action, "Solution")


async def test_a_deaf_server_is_not_alive_although_it_refuses_unknown_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lsp_client.session.ALIVE_TIMEOUT", 0.3)
    monkeypatch.setattr("lsp_client.process.SHUTDOWN_WAIT", 0.2)
    async with session_of(tmp_path, "csharp-ls") as session:
        assert await session.is_alive()
        await _send_past_the_list(session, "$/madeUp")
        with pytest.raises(ResponseError):
            await session.ask("test/unknown", {})
        assert not await session.is_alive()


async def test_a_dead_server_is_not_alive(tmp_path: Path) -> None:
    async with session_of(tmp_path, "roslyn") as session:
        with pytest.raises(ServerGone):
            await session.ask("test/crash", {})
        assert not await session.is_alive()


@both
async def test_a_hundred_lists_leave_nothing_behind(tmp_path: Path, mode: str) -> None:
    async with session_of(tmp_path, mode) as session:
        one = at(tmp_path, "One.cs")
        with anyio.fail_after(BOUND):
            for _ in range(100):
                async with session.looking_at({one: "class One { }\n"}):
                    await session.list_actions(one, CARET, await session.diagnostics(one))
        assert (session.open_document_count, session.pending_request_count) == (0, 0)
        assert await open_texts(session) == {}


async def _send_past_the_list(session: Session, method: str) -> None:
    await session.connection.notify(method, {})


async def test_the_diagnostics_of_a_closed_document_are_those_of_the_disk_and_leave_it_closed(
    tmp_path: Path,
) -> None:
    """Asked while it is closed, Roslyn would answer "none"."""
    async with session_of(tmp_path, "roslyn") as session:
        found = await session.diagnostics(at(tmp_path, "One.cs"))
        assert [item.message for item in found] == ["class One { }\n"]
        assert session.open_document_count == 0
        with pytest.raises(DocumentNotSeen):
            await session.diagnostics(at(tmp_path, "Missing.cs"))


@pytest.mark.parametrize(
    ("mode", "sources", "asked"),
    [
        ("roslyn", ["syntax", "DocumentCompilerSemantic", "enc"], ["syntax", "DocumentCompilerSemantic"]),
        ("roslyn", ["DocumentCompilerSemantic"], ["T1"]),
        ("roslyn", [], ["T1"]),
        ("csharp-ls", [], ["T1"]),
    ],
    ids=["both registered", "one registered", "none registered", "csharp-ls"],
)
async def test_the_compilers_diagnostics_are_asked_for_alone_where_the_server_has_named_them(
    tmp_path: Path, mode: str, sources: list[str], asked: list[str]
) -> None:
    """Asked for a kind that it does not know, Roslyn would answer "none"."""
    async with session_of(tmp_path, mode, sources=sources) as session:
        found = await session.compiler_diagnostics(at(tmp_path, "One.cs"))
        assert [item.id for item in found] == asked


async def test_a_staged_creation_may_have_no_actions_although_it_is_no_member_yet(tmp_path: Path) -> None:
    async with session_of(tmp_path, "roslyn") as session:
        new = at(tmp_path, "New.cs")
        await session.synchronise(DocumentView({new: "class New { }"}, frozenset({new})))
        assert (await session.list_actions(new, CARET)).actions == ()
        with pytest.raises(DocumentNotSeen):
            await session.list_actions(at(tmp_path, "Missing.cs"), CARET)


@both
async def test_a_reload_that_the_server_begins_by_itself_is_waited_for_and_its_losses_made_good(
    tmp_path: Path, mode: str
) -> None:
    async with session_of(tmp_path, mode) as session:
        one = at(tmp_path, "One.cs")
        view = DocumentView({one: "staged"})
        await session.synchronise(view)
        await session.ask("test/reload", {})
        await session.synchronise(view)
        assert await seen(session, one) == ["staged"]
