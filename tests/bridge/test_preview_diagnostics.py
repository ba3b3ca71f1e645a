"""What a preview says of errors: what staging made and mended, told truly or not at all."""

from pathlib import Path

import anyio
import msgspec
import pytest

from schemas.locations import DocumentError
from schemas.transactions import DiagnosticsChange
from schemas.wire import Page
from tests.bridge.agent import PEAR as PEAR_TEXT
from tests.bridge.agent import Scene, opened
from tests.bridge.played_compiler import compiled
from tests.bridge.played_server import Offer, create, insert, rename
from tests.bridge.promises import keeps
from tests.bridge.staged_texts import replaced, stage_texts

pytestmark = pytest.mark.anyio

APPLE, PEAR, PROGRAM = "Core/Apple.cs", "Core/Pear.cs", "App/Program.cs"


async def change_of(made: Scene) -> DiagnosticsChange:
    """What the preview says of errors, when it says something."""
    data = await made.agent.preview()
    assert data.diagnostics_unavailable is None
    assert data.diagnostics_change is not None
    return data.diagnostics_change


def places(page: Page[DocumentError]) -> list[tuple[str, int, int]]:
    assert page.items is not None
    return [(error.path, error.line, error.column) for error in page.items]


@keeps("preview.errors")
async def test_a_new_error_and_a_fixed_one_are_told_with_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        await made.agent.start()
        await stage_texts(made, {APPLE: "class Apple { object a = new Nut(); }\n"})
        change = await change_of(made)
        assert places(change.new_errors) == [(APPLE, 1, 26)]
        assert places(change.fixed_errors) == []
        assert (change.document_count, change.unreliable) == (1, None)
        error = (change.new_errors.items or ())[0]
        assert error.id == "CS0246"
        assert "'Nut'" in error.message
        await made.agent.commit()
        await made.agent.start()
        await stage_texts(made, {APPLE: "class Apple { }\n"})
        change = await change_of(made)
        assert places(change.new_errors) == []
        assert places(change.fixed_errors) == [(APPLE, 1, 26)]


@keeps("preview.errors")
async def test_an_error_that_only_moved_is_not_new_and_one_more_of_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        made.file(PEAR).write_text("class Pear { object a = new Nut(); }\n", encoding="utf-8")
        await made.agent.status()
        await made.agent.start()
        await stage_texts(made, {PEAR: "\n\nclass Pear { object a = new Nut(); }\n"})
        change = await change_of(made)
        assert (places(change.new_errors), places(change.fixed_errors)) == ([], [])
        await stage_texts(made, {PEAR: "\nclass Pear { object a = new Nut(); }\n// new Nut()\n"})
        change = await change_of(made)
        assert len(places(change.new_errors)) == 1
        assert places(change.fixed_errors) == []


async def test_an_error_that_moves_to_another_changed_document_is_not_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        made.file(PEAR).write_text("class Pear { object a = new Nut(); }\n", encoding="utf-8")
        await made.agent.status()
        await made.agent.start()
        await stage_texts(made, {PEAR: "class Pear { }\n", APPLE: "class Apple { object a = new Nut(); }\n"})
        change = await change_of(made)
        assert (places(change.new_errors), places(change.fixed_errors)) == ([], [])
        assert change.document_count == 2


@keeps("preview.errors")
async def test_the_baseline_of_a_document_is_the_disk_also_when_an_earlier_revision_broke_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, compiler):
        made.file(PROGRAM).write_text("class Program { object a = new Pear(); }\n", encoding="utf-8")
        await made.agent.status()
        await made.agent.start()
        await stage_texts(made, {PEAR: "class Quince { }\n"})
        assert places((await change_of(made)).new_errors) == [], "only changed documents are looked at"
        compiler.pulled.clear()
        await stage_texts(made, {PROGRAM: "// touched\nclass Program { object a = new Pear(); }\n"})
        change = await change_of(made)
        assert places(change.new_errors) == [(PROGRAM, 2, 28)]
        # The server went back to the disk for one question, and forward again.
        assert compiler.pulled_names.count("Program.cs") == 2
        assert made.server.open[made.file(PEAR)] == "class Quince { }\n"


@keeps("preview.errors", "preview.still")
async def test_undo_and_redo_bring_back_what_each_revision_was_said_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, compiler):
        await made.agent.start()
        assert (await change_of(made)).document_count == 0
        await stage_texts(made, {APPLE: "class Apple { object a = new Nut(); }\n"})
        await stage_texts(made, {APPLE: "class Apple { }\n"})
        asked = len(compiler.pulled)
        assert places((await change_of(made)).new_errors) == []
        await made.agent.undo()
        assert places((await change_of(made)).new_errors) == [(APPLE, 1, 26)]
        await made.agent.redo()
        assert places((await change_of(made)).new_errors) == []
        assert len(compiler.pulled) == asked, "a preview asks nobody"
        # A branch that drops the second revision has its own.
        await made.agent.undo()
        await stage_texts(made, {APPLE: "class Apple { object a = new Nut(); object b = new Nut(); }\n"})
        assert len(places((await change_of(made)).new_errors)) == 2


@keeps("preview.unreliable")
async def test_a_created_file_that_the_server_takes_for_no_member_makes_the_answer_unreliable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, compiler):
        await made.agent.start()
        await stage_texts(
            made, {APPLE: "class Apple { object a = new Nut(); }\n", "Core/Nut.cs": "class Nut { }\n"}
        )
        change = await change_of(made)
        assert change.unreliable is not None
        assert "Core/Nut.cs" in change.unreliable
        assert places(change.new_errors) == [(APPLE, 1, 26)], "told, and marked: it may be false"
        assert "Nut.cs" not in compiler.pulled_names
        await made.agent.undo()
        await stage_texts(made, {"Core/Nut.cs": "class Nut { }\n"})
        data = await made.agent.preview()
        assert data.diagnostics_change is None
        assert data.diagnostics_unavailable is not None
        assert "Core/Nut.cs" in data.diagnostics_unavailable


@keeps("actions.created")
async def test_the_stage_that_creates_such_a_file_says_so_and_every_listing_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        agent = made.agent
        assert (await agent.listing(APPLE)).notes is None
        await agent.start()
        new = made.file("Core/Nut.cs")
        made.server.offers = [Offer("Create", lambda _path, _text: create(new, "class Nut { }\n"))]
        staged = await agent.stage_first(APPLE)
        assert staged.summary is not None
        assert "does not see Core/Nut.cs as part of a project" in staged.summary
        (note,) = (await agent.listing(PEAR)).notes or ()
        assert note in staged.summary
        await agent.undo()
        assert (await agent.listing(PEAR)).notes is None


async def test_the_errors_of_a_deleted_or_moved_file_go_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        made.file(PEAR).write_text("class Pear { object a = new Nut(); }\n", encoding="utf-8")
        await made.agent.status()
        await made.agent.start()
        await stage_texts(made, {PEAR: None})
        assert places((await change_of(made)).fixed_errors) == [(PEAR, 1, 25)]
        await made.agent.undo()
        made.server.offers = [
            Offer("Move", lambda _path, _text: [rename(made.file(PEAR), made.file("Core/Quince.cs"))])
        ]
        await made.agent.stage_first(APPLE)
        change = await change_of(made)
        assert change.unreliable is not None, "the moved file is no member yet"


@keeps("preview.unreliable")
async def test_a_document_that_the_server_does_not_know_is_named_and_not_counted_as_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, compiler):
        await made.agent.start()
        compiler.strangers.add("Pear.cs")
        await stage_texts(
            made, {APPLE: "class Apple { object a = new Nut(); }\n", PEAR: "class Pear { } //\n"}
        )
        change = await change_of(made)
        assert change.document_count == 1
        assert change.unreliable is not None
        assert PEAR in change.unreliable
        await made.agent.undo()
        await stage_texts(made, {PEAR: "class Pear { } //\n"})
        data = await made.agent.preview()
        assert data.diagnostics_change is None
        assert PEAR in (data.diagnostics_unavailable or "")
        assert compiler.pulled.count(("Pear.cs", PEAR_TEXT)) == 1, "it is not asked for its baseline again"


@keeps("preview.errors")
async def test_a_server_that_dies_under_the_look_costs_no_stage_and_the_preview_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        await made.agent.start()
        alive = made.server.answers["textDocument/diagnostic"]
        staged_text = "class Apple { object a = new Nut(); }\n"

        async def die(params: msgspec.Raw) -> object:
            if made.server.open.get(made.file(APPLE)) == staged_text:
                made.server.kill()
                await anyio.Event().wait()
            return await alive(params)

        made.server.answers["textDocument/diagnostic"] = die
        await stage_texts(made, {APPLE: staged_text})
        data = await made.agent.preview()
        assert [d.change_kind for d in data.documents] == ["Modified"]
        assert data.diagnostics_change is None
        assert APPLE in (data.diagnostics_unavailable or "")
        made.server.answers["textDocument/diagnostic"] = alive
        await stage_texts(made, {APPLE: staged_text + "// more\n"})
        assert places((await change_of(made)).new_errors) == [(APPLE, 1, 26)]


async def test_a_failing_answer_about_one_document_leaves_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, compiler):
        await made.agent.start()
        usual = made.server.answers["textDocument/diagnostic"]

        async def fail_for_pear(params: msgspec.Raw) -> object:
            if b"Pear.cs" in bytes(params):
                return {"kind": 7}
            return await usual(params)

        made.server.answers["textDocument/diagnostic"] = fail_for_pear
        await stage_texts(
            made, {APPLE: "class Apple { object a = new Nut(); }\n", PEAR: "class Pear { } //\n"}
        )
        change = await change_of(made)
        assert places(change.new_errors) == [(APPLE, 1, 26)]
        assert PEAR in (change.unreliable or "")
        assert compiler.pulled_names


async def test_a_baseline_that_a_dying_server_did_not_give_is_asked_for_at_the_next_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        await made.agent.start()
        usual = made.server.answers["textDocument/diagnostic"]

        async def die(params: msgspec.Raw) -> object:
            if made.server.open.get(made.file(PEAR)) == PEAR_TEXT:
                made.server.kill()
                await anyio.Event().wait()
            return await usual(params)

        made.server.answers["textDocument/diagnostic"] = die
        await stage_texts(made, {PEAR: "class Pear { object a = new Nut(); }\n"})
        assert PEAR in ((await made.agent.preview()).diagnostics_unavailable or "")
        made.server.answers["textDocument/diagnostic"] = usual
        await stage_texts(made, {PEAR: "class Pear { object a = new Nut(); } //\n"})
        assert places((await change_of(made)).new_errors) == [(PEAR, 1, 25)]


def silent_about(made: Scene, text: str) -> anyio.Event:
    """From now on the server gives no answer about APPLE when it has this text; set when it is asked."""
    usual, asked = made.server.answers["textDocument/diagnostic"], anyio.Event()

    async def wait(params: msgspec.Raw) -> object:
        if made.server.open.get(made.file(APPLE)) == text:
            asked.set()
            await anyio.Event().wait()
        return await usual(params)

    made.server.answers["textDocument/diagnostic"] = wait
    return asked


async def test_a_server_that_is_too_slow_holds_up_a_stage_no_longer_than_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.observations.LONGEST_LOOK", 0.2)
    async with compiled(tmp_path, monkeypatch) as (made, _):
        await made.agent.start()
        silent_about(made, "class Apple { } //\n")
        await stage_texts(made, {APPLE: "class Apple { } //\n"})
        assert "within 0.2 s" in ((await made.agent.preview()).diagnostics_unavailable or "")


async def test_a_call_cancelled_while_looking_leaves_its_revision_and_the_preview_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        await made.agent.start()
        asked = silent_about(made, "class Apple { } //\n")
        async with anyio.create_task_group() as calls:
            calls.start_soon(stage_texts, made, {APPLE: "class Apple { } //\n"})
            await asked.wait()
            calls.cancel_scope.cancel()
        data = await made.agent.preview()
        assert len(data.documents) == 1
        assert "cut short" in (data.diagnostics_unavailable or "")


@keeps("preview.conflicted")
async def test_a_conflicted_transaction_is_previewed_with_its_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        await made.agent.start()
        await stage_texts(made, {APPLE: "class Apple { object a = new Nut(); }\n"})
        made.file(PEAR).write_text("class Other { }\n", encoding="utf-8")
        assert (await made.agent.refused("transaction-commit")).code == "TransactionConflicted"
        assert places((await change_of(made)).new_errors) == [(APPLE, 1, 26)]


async def test_a_change_of_too_many_documents_is_staged_without_looking_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.observations.MOST_DOCUMENTS", 1)
    async with compiled(tmp_path, monkeypatch) as (made, compiler):
        await made.agent.start()
        compiler.pulled.clear()
        await stage_texts(made, {APPLE: "class Apple { } //\n", PEAR: "class Pear { } //\n"})
        data = await made.agent.preview()
        assert data.diagnostics_change is None
        assert "2 documents" in (data.diagnostics_unavailable or "")
        assert "Pear.cs" not in compiler.pulled_names


@keeps("preview.errors")
async def test_a_server_without_diagnostics_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        await made.agent.stage_first(APPLE)
        data = await made.agent.preview()
        assert data.diagnostics_change is None
        assert "no diagnostics" in (data.diagnostics_unavailable or "")


async def test_a_stage_that_changes_nothing_asks_for_no_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, compiler):
        await made.agent.start()
        made.server.offers = [
            Offer(
                "Nothing",
                lambda path, text: [
                    replaced(
                        made.file(PEAR), made.server.seen(made.file(PEAR)), made.server.seen(made.file(PEAR))
                    )
                ],
            )
        ]
        await made.agent.stage_first(APPLE)
        assert "Pear.cs" not in compiler.pulled_names


async def test_no_document_stays_open_for_a_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with compiled(tmp_path, monkeypatch) as (made, _):
        await made.agent.start()
        made.server.offers = [Offer("Comment", lambda _path, _text: [insert(made.file(PEAR), "// one\n")])]
        await made.agent.stage_first(APPLE)
        await made.server.until(lambda: set(made.server.open) == {made.file(PEAR)})
        await made.agent.roll_back()
        await made.agent.actions(APPLE)
        await made.server.until(lambda: not made.server.open)
