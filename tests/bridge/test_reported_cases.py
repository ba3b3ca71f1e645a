"""Cases that people reported of other tools, as stories on the played server; ``tests/test_cases.py`` has the whole list."""

from pathlib import Path

import anyio
import msgspec
import pytest

from lsp_client.errors import ResponseError
from schemas.code_actions import CodeAction
from tests.bridge.agent import Scene, opened, scene
from tests.bridge.played_compiler import compiled
from tests.bridge.played_server import Json, Offer, document_edit, insert

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"


def replacement(line: int, start: int, end: int, new: str) -> Json:
    place = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": place, "newText": new}


async def result(made: Scene, text: str, *edits: Json) -> str | None:
    """The committed text of the file, that was ``text``, after these edits; ``None`` when they are refused."""
    made.file(FILE).write_bytes(text.encode())
    await made.agent.status()
    made.server.offers = [Offer("Edit", lambda path, _text: [document_edit(path, edits)])]
    await made.agent.start()
    (action,) = await made.agent.actions(FILE)
    answer = await made.agent.call("stage-code-action", actionId=action.action_id)
    if answer.is_error:
        assert "UnsupportedChange" in answer.text
        await made.agent.roll_back()
        return None
    await made.agent.status()
    await made.agent.commit(expectedSnapshot=made.agent.snapshot)
    return made.file(FILE).read_bytes().decode()


async def test_columns_beside_an_emoji_are_utf16_and_half_a_character_is_refused(tmp_path: Path) -> None:
    text = 'var s = "🙂é"; Foo(x); // 🍏 Foo\n'
    renamed = 'var s = "🙂é"; Bar(x); // 🍏 Bar\n'
    first = len(text[: text.index("Foo")].encode("utf-16-le")) // 2
    second = len(text[: text.rindex("Foo")].encode("utf-16-le")) // 2
    async with opened(tmp_path) as made:
        edits = [replacement(0, second, second + 3, "Bar"), replacement(0, first, first + 3, "Bar")]
        assert await result(made, text, *edits) == renamed
        inside = text.index("🙂") + 1
        assert await result(made, text, replacement(0, inside, inside, "x")) is None


async def test_the_last_line_is_edited_with_and_without_a_final_line_end(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        assert await result(made, "class A { }", replacement(0, 11, 11, "\nclass B { }")) == (
            "class A { }\nclass B { }"
        )
        assert await result(made, "class A { }\n", replacement(1, 0, 0, "class B { }\n")) == (
            "class A { }\nclass B { }\n"
        )
        assert await result(made, "class A { }", replacement(0, 6, 12, "B")) is None
        assert await result(made, "class A { }", replacement(1, 0, 0, "class B { }")) is None


async def test_new_text_takes_the_line_ends_of_its_file_and_a_mixed_file_stays_as_it_is(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        edit = replacement(0, 0, 0, "// a\r\n// b\r\n")
        assert await result(made, "class A { }\n", edit) == "// a\n// b\nclass A { }\n"
        assert await result(made, "class A { }\r\n", edit) == "// a\r\n// b\r\nclass A { }\r\n"
        mixed = "class A\r\n{\n}\n"
        assert await result(made, mixed, edit) == f"// a\r\n// b\r\n{mixed}"


async def test_the_preview_counts_the_lines_that_are_touched(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [Offer("Edit", lambda path, _text: [insert(path, "// a\r\n// b\r\n", line=2)])]
        await made.agent.start()
        await made.agent.stage_first(FILE)
        (document,) = (await made.agent.preview()).documents
        assert document.preview is not None
        counts = document.preview
        assert (counts.added_lines, counts.removed_lines, counts.changed_lines) == (2, 0, 0)


async def test_a_missing_using_is_listed_staged_previewed_and_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {FILE: "class Apple { object seed = new Seed(); }\n"}
    async with compiled(tmp_path, monkeypatch, files) as (made, _):
        error = {"range": replacement(0, 32, 36, "")["range"], "code": "CS0246", "message": "No Seed"}
        seed = made.file("Core/Seed.cs")
        made.server.offers = [
            Offer("Rename", None),
            Offer(
                "Generate class 'Seed'",
                lambda path, _text: [insert(path, "class Seed { }\n")],
                kind="quickfix",
                diagnostics=[error],
            ),
        ]
        listing = await made.agent.listing(FILE, kinds="CodeFixes", diagnosticIds=["CS0246"])
        (fix,) = listing.actions.items or ()
        assert ids_of(fix) == ["CS0246"]
        await made.agent.start()
        (fix,) = await made.agent.actions(FILE, kinds="CodeFixes", diagnosticIds=["CS0246"])
        await made.agent.stage(fix)
        change = (await made.agent.preview()).diagnostics_change
        assert change is not None
        assert [e.id for e in change.fixed_errors.items or ()] == ["CS0246"]
        assert change.new_errors.total_count == 0
        await made.agent.commit()
        assert made.file(FILE).read_text(encoding="utf-8").startswith("class Seed { }\n")
        assert not seed.exists()


def ids_of(action: CodeAction) -> list[str]:
    assert action.diagnostics is not None
    return [item.id for item in action.diagnostics.items or ()]


async def test_content_modified_twice_and_then_an_answer_is_an_answer_for_who_only_reads(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        usual = made.server._usual("textDocument/codeAction")
        asked = 0

        async def third_time(params: msgspec.Raw) -> object:
            nonlocal asked
            asked += 1
            if asked < 3:
                raise ResponseError("textDocument/codeAction", -32801, "content modified")
            return await usual(params)

        made.server.answers["textDocument/codeAction"] = third_time
        assert await made.agent.actions(FILE)
        assert asked == 3


async def test_a_question_while_the_solution_loads_is_told_so_and_never_answered_with_nothing(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as made:
        made.server.loads = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.open, made.solution)
            await made.server.until(lambda: "solution/open" in made.server.heard)
            somewhere = {"workspaceId": "0" * 8 + "-0000-0000-0000-" + "0" * 12, "workspaceEpoch": 1}
            snapshot = {**somewhere, "snapshotId": somewhere["workspaceId"], "transactionRevision": None}
            refusal = await made.agent.refused(
                "list-code-actions", document={"path": FILE}, kinds="All", expectedSnapshot=snapshot
            )
            assert (refusal.code, refusal.tools) == ("WorkspaceNotOpen", ("workspace-open",))
            made.server.finish_load()
        assert await made.agent.actions(FILE)
