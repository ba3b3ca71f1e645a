"""Edits that servers return wrongly or oddly: each is staged right, or refused with its code; never half."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from lsp_client.dialects.embedded import EmbeddedDialect
from lsp_client.errors import ResponseError
from lsp_client.uris import path_to_uri
from tests.bridge import played_csharp_ls
from tests.bridge.agent import APPLE, Agent, Refusal, Scene, opened
from tests.bridge.played_server import NOWHERE, Json, Offer, create, delete, document_edit, insert, rename
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"
PAIR = "class First { }\nclass Second { }\n"


def edit(line: int, start: int, end: int, new: str) -> Json:
    """A replacement within one line."""
    place = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": place, "newText": new}


def offer(made: Scene, operations: Sequence[Json], title: str = "Odd") -> None:
    """Offer one action with these operations."""
    made.server.offers = [Offer(title, lambda _path, _text: operations)]


def resolve_to(made: Scene, answer: object, title: str = "Odd") -> None:
    """Offer one action that is resolved to this answer as it stands."""
    offer(made, [], title)

    async def resolve(_params: msgspec.Raw) -> object:
        return answer

    made.server.answers["codeAction/resolve"] = resolve


async def text_after(made: Scene, operations: Sequence[Json], name: str = FILE) -> str:
    """The text of a file after these operations were staged and committed."""
    offer(made, operations)
    await made.agent.start()
    assert (await made.agent.stage_first(FILE)).staged
    await made.agent.commit()
    return made.file(name).read_text(encoding="utf-8")


async def refused(agent: Agent, code: str) -> Refusal:
    """The one action of the file is refused with this code, and nothing of it is staged."""
    if agent.workspace.transaction is None:
        await agent.start()
    (action,) = await agent.actions(FILE)
    before = agent.identity
    refusal = await agent.refused("stage-code-action", actionId=action.action_id)
    assert refusal.code == code, refusal.message
    await agent.status()
    assert agent.identity == before
    assert (await agent.preview()).documents == ()
    return refusal


# --- files that come, go and move ---------------------------------------------------------------------------


@keeps("edits.create-by-insert")
async def test_an_insert_into_a_missing_file_creates_it_together_with_the_other_half(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.file(FILE).write_text(PAIR, encoding="utf-8")
        await made.agent.status()
        new = made.file("Core/Second.cs")
        offer(
            made,
            [insert(new, "class Second { }\n"), document_edit(made.file(FILE), [edit(1, 0, 16, "")])],
            "Move type to Second.cs",
        )
        await made.agent.start()
        staged = await made.agent.stage_first(FILE)
        assert staged.summary == "Move type to Second.cs: 1 changed, 1 created"
        assert not new.exists()
        await made.agent.commit()
        assert new.read_text(encoding="utf-8") == "class Second { }\n"
        assert made.file(FILE).read_text(encoding="utf-8") == "class First { }\n\n"


ONE_SIDED: dict[str, tuple[str, Callable[[Scene], list[Json]]]] = {
    "the deletion alone": (
        "Move type to Second.cs",
        lambda made: [document_edit(made.file(FILE), [edit(2, 0, 5, "")])],
    ),
    "the creation alone": (
        "Move type to Second.cs",
        lambda made: create(made.file("Core/Second.cs"), "class Second { }\n"),
    ),
    "a file of another name": (
        "Move type to Second.cs",
        lambda made: [
            insert(made.file("Core/Third.cs"), "class Second { }\n"),
            document_edit(made.file(FILE), [edit(2, 0, 5, "")]),
        ],
    ),
    "no edits at all": ("Rename file to Pome.cs", lambda made: [document_edit(made.file(FILE), [])]),
    "nothing": ("Rename file to Pome.cs", lambda _made: []),
    "a copy": ("Rename file to Pome.cs", lambda made: create(made.file("Core/Pome.cs"), APPLE)),
    "the old name gone": ("Rename file to Pome.cs", lambda made: [delete(made.file(FILE))]),
    "no new file": (
        "Generate class 'Core' in new file",
        lambda made: [insert(made.file(FILE), "class Core { }\n")],
    ),
}


@keeps("edits.whole")
@pytest.mark.parametrize("what", ONE_SIDED)
async def test_an_edit_that_is_less_than_its_title_says_is_refused_as_incomplete(
    tmp_path: Path, what: str
) -> None:
    title, operations = ONE_SIDED[what]
    async with opened(tmp_path) as made:
        offer(made, operations(made), title)
        refusal = await refused(made.agent, "UnsupportedChange")
        assert "incomplete" in refusal.message or "empty" in refusal.message


@keeps("edits.whole")
async def test_a_file_is_renamed_by_a_move_and_by_a_deletion_with_a_creation(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        pome = made.file("Core/Pome.cs")
        for operations in (
            [rename(made.file(FILE), pome)],
            [delete(made.file(FILE)), *create(pome, APPLE)],
            [insert(pome, APPLE), delete(made.file(FILE))],
        ):
            offer(made, operations, "Rename file to Pome.cs")
            await made.agent.start()
            assert (await made.agent.stage_first(FILE)).staged
            await made.agent.roll_back()


@keeps("edits.order")
async def test_operations_happen_in_order_and_edits_before_and_after_a_move_have_their_own_base(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        old, new = made.file(FILE), made.file("Core/Pome.cs")
        operations = [insert(old, "// one\n"), rename(old, new), document_edit(new, [edit(0, 3, 6, "two")])]
        assert await text_after(made, operations, "Core/Pome.cs") == f"// two\n{APPLE}"
        assert not old.exists()


@keeps("edits.order")
async def test_an_edit_of_the_old_name_after_a_move_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        old, new = made.file(FILE), made.file("Core/Pome.cs")
        offer(made, [rename(old, new), document_edit(old, [edit(2, 0, 6, "internal")])])
        await refused(made.agent, "UnsupportedChange")


@keeps("edits.order")
async def test_create_edit_and_delete_of_one_file_in_one_transaction_leave_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        new = made.file("Core/New.cs")
        await made.agent.start()
        for operations in (
            create(new, "class New { }\n"),
            [document_edit(new, [edit(0, 6, 9, "Old")])],
            [delete(new)],
        ):
            offer(made, operations)
            assert (await made.agent.stage_first(FILE)).staged
        assert (await made.agent.preview()).documents == ()
        await made.agent.commit()
        assert not new.exists()


# --- text edits ---------------------------------------------------------------------------------------------


@keeps("edits.one-base")
async def test_edits_in_any_order_refer_to_the_text_before_all_of_them(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        edits = [edit(2, 13, 18, "Pome"), edit(2, 0, 0, "a"), edit(2, 7, 12, "record"), edit(2, 0, 0, "b")]
        text = await text_after(made, [document_edit(made.file(FILE), edits)])
        assert text.splitlines()[2] == "abpublic record Pome"


@keeps("edits.one-base")
async def test_several_edits_of_one_document_share_one_base_and_equal_ones_collapse_across_them(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        file = made.file(FILE)
        one = document_edit(file, [edit(2, 13, 18, "Pome"), edit(0, 0, 0, "// head\n")])
        other = document_edit(file, [edit(2, 13, 18, "Pome"), edit(4, 1, 1, " // tail")])
        assert await text_after(made, [one, other]) == (
            "// head\nnamespace Shop;\n\npublic class Pome\n{\n} // tail\n"
        )


@keeps("edits.one-base")
async def test_equal_inserts_in_one_edit_are_two_and_equal_replacements_overlap(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        file = made.file(FILE)
        offer(made, [document_edit(file, [edit(2, 13, 18, "Pome"), edit(2, 13, 18, "Pome")])])
        refusal = await refused(made.agent, "UnsupportedChange")
        assert "overlap" in refusal.message.lower()
        await made.agent.roll_back()
        text = await text_after(
            made, [document_edit(file, [edit(0, 0, 0, "// a\n"), edit(0, 0, 0, "// a\n")])]
        )
        assert text == f"// a\n// a\n{APPLE}"


@keeps("edits.linked")
@pytest.mark.parametrize(
    "second",
    [edit(2, 13, 18, "Pear"), edit(2, 15, 18, "x"), edit(2, 18, 18, "s"), edit(2, 12, 13, "")],
    ids=["another text", "overlapping", "touching the end", "touching the start"],
)
async def test_edits_for_two_frameworks_that_differ_where_they_touch_are_a_conflict(
    tmp_path: Path, second: Json
) -> None:
    async with opened(tmp_path) as made:
        file = made.file(FILE)
        offer(made, [document_edit(file, [edit(2, 13, 18, "Pome")]), document_edit(file, [second])])
        await refused(made.agent, "LinkedDocumentConflict")


@keeps("edits.refused")
async def test_of_three_edits_the_last_outside_of_its_file_refuses_all(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        file, pear = made.file(FILE), made.file("Core/Pear.cs")
        offer(
            made, [insert(file, "// a\n"), insert(pear, "// b\n"), document_edit(pear, [edit(2, 0, 99, "c")])]
        )
        refusal = await refused(made.agent, "UnsupportedChange")
        assert "Pear.cs" in refusal.message


@keeps("edits.refused")
@pytest.mark.parametrize(
    "snippet",
    [
        {"range": NOWHERE, "snippet": {"kind": "snippet", "value": "$0"}},
        {"range": NOWHERE, "newText": "a$0", "snippet": {"kind": "snippet", "value": "a$0"}},
        {"range": NOWHERE, "newText": "a$0", "insertTextFormat": 2},
    ],
)
async def test_a_snippet_in_any_form_reaches_no_file(tmp_path: Path, snippet: Json) -> None:
    async with opened(tmp_path) as made:
        offer(made, [insert(made.file(FILE), "// a\n"), document_edit(made.file("Core/Pear.cs"), [snippet])])
        await refused(made.agent, "UnsupportedChange")


@keeps("edits.version")
async def test_an_edit_for_another_version_of_an_open_document_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        file = made.file(FILE)
        await made.agent.start()
        for _ in range(2):
            offer(made, [insert(file, "// staged\n")])
            await made.agent.stage_first(FILE)
        versions = made.workspace.supervisor.ready_session
        await made.agent.actions(FILE)
        assert versions is not None
        known = versions.document_versions[file]

        def versioned(version: int) -> Json:
            return {
                **insert(file, "// more\n"),
                "textDocument": {"uri": path_to_uri(file), "version": version},
            }

        for version in (known - 1, known + 1):
            offer(made, [versioned(version)])
            (action,) = await made.agent.actions(FILE)
            refusal = await made.agent.refused("stage-code-action", actionId=action.action_id)
            assert refusal.code == "UnsupportedChange"
            assert "version" in refusal.message
        offer(made, [versioned(known)])
        assert (await made.agent.stage_first(FILE)).staged


# --- the form of an edit ------------------------------------------------------------------------------------


@keeps("edits.document-changes")
async def test_document_changes_win_over_changes_also_when_they_are_empty(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        file, pear = made.file(FILE), made.file("Core/Pear.cs")
        old_form = {path_to_uri(pear): [edit(0, 0, 0, "// old form\n")]}
        resolve_to(made, {"title": "Odd", "edit": {"changes": old_form, "documentChanges": []}})
        await refused(made.agent, "UnsupportedChange")
        resolve_to(
            made,
            {"title": "Odd", "edit": {"changes": old_form, "documentChanges": [insert(file, "// new\n")]}},
        )
        await made.agent.stage_first(FILE)
        (document,) = (await made.agent.preview()).documents
        assert document.document is not None
        assert document.document.path == FILE
        resolve_to(made, {"title": "Odd", "edit": {"changes": old_form, "documentChanges": None}})
        await made.agent.stage_first(FILE)
        assert len((await made.agent.preview()).documents) == 2


@keeps("actions.unresolvable")
@pytest.mark.parametrize(
    "answer", [None, {}, {"title": "Odd"}, {"title": "Odd", "edit": None}, {"title": "Odd", "command": None}]
)
async def test_an_action_that_is_resolved_to_nothing_is_unavailable(tmp_path: Path, answer: object) -> None:
    async with opened(tmp_path) as made:
        resolve_to(made, answer)
        assert (await refused(made.agent, "ActionUnavailable")).kind == "ReviseRequest"


@keeps("actions.unresolvable")
async def test_an_error_with_only_the_name_of_a_type_is_unavailable(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:

        async def fail(_params: msgspec.Raw) -> object:
            raise ResponseError("codeAction/resolve", -32603, "Internal error: NullReferenceException")

        offer(made, [])
        made.server.answers["codeAction/resolve"] = fail
        refusal = await refused(made.agent, "ActionUnavailable")
        assert "NullReferenceException" in refusal.message


# --- "content modified" -------------------------------------------------------------------------------------


def modified_first(made: Scene, then: Callable[[], object]) -> list[str]:
    """The first resolve says that the text has moved; ``then`` happens before the second listing."""
    usual = made.server._usual("codeAction/resolve")
    asked: list[str] = []

    async def resolve(params: msgspec.Raw) -> object:
        asked.append("resolve")
        if len(asked) == 1:
            then()
            raise ResponseError("codeAction/resolve", -32801, "content modified")
        return await usual(params)

    made.server.answers["codeAction/resolve"] = resolve
    return asked


@keeps("actions.modified")
async def test_content_modified_while_resolving_lists_once_more_and_takes_the_one_match(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        offer(made, [insert(made.file(FILE), "// a\n")])
        asked = modified_first(made, lambda: None)
        await made.agent.start()
        (action,) = await made.agent.actions(FILE)
        made.server.heard.clear()
        assert (await made.agent.stage(action)).staged
        assert len(asked) == 2
        assert made.server.heard.count("textDocument/codeAction") == 2


@keeps("actions.modified")
@pytest.mark.parametrize(("count", "code"), [(0, "ActionUnavailable"), (2, "ActionAmbiguous")])
async def test_without_exactly_one_match_then_nothing_is_staged(
    tmp_path: Path, count: int, code: str
) -> None:
    async with opened(tmp_path) as made:
        one = Offer("Odd", lambda path, _text: [insert(path, "// a\n")])
        made.server.offers = [one]

        def offers_move() -> None:
            made.server.offers = [one] * count

        modified_first(made, offers_move)
        await refused_now(made.agent, code)


async def refused_now(agent: Agent, code: str) -> None:
    await agent.start()
    (action,) = await agent.actions(FILE)
    refusal = await agent.refused("stage-code-action", actionId=action.action_id)
    assert (refusal.code, refusal.kind) == (code, "ReviseRequest")
    assert (await agent.preview()).documents == ()


@keeps("actions.modified")
async def test_a_server_that_goes_on_saying_so_makes_the_action_unavailable(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:

        async def always(_params: msgspec.Raw) -> object:
            raise ResponseError("codeAction/resolve", -32801, "content modified")

        offer(made, [])
        made.server.answers["codeAction/resolve"] = always
        await refused_now(made.agent, "ActionUnavailable")


# --- commands, and edits that a server wants applied --------------------------------------------------------

COMMAND = "played.bringEdit"


def commanded(made: Scene, *edits: Sequence[Json], command: str = COMMAND) -> list[object]:
    """An action that is resolved to a command, which has its edits applied; the client's answers to that."""
    answers: list[object] = []
    resolve_to(made, {"title": "Odd", "command": {"title": "Odd", "command": command, "arguments": [7]}})

    async def execute(params: msgspec.Raw) -> object:
        assert msgspec.json.decode(params) == {"command": command, "arguments": [7]}
        for operations in edits:
            applied = {"edit": {"documentChanges": list(operations)}}
            answers.append(await made.server.ask_client("workspace/applyEdit", applied))
        return None

    made.server.answers["workspace/executeCommand"] = execute
    return answers


@pytest.fixture
def knows_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dialect that knows the command as one that does nothing but bring an edit."""
    monkeypatch.setattr("lsp_client.discovery.EMBEDDED", EmbeddedDialect(edit_commands=frozenset({COMMAND})))


@keeps("edits.apply-edit")
@pytest.mark.usefixtures("knows_command")
async def test_the_edit_that_a_known_command_brings_is_staged(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        answers = commanded(made, [insert(made.file(FILE), "// brought\n")])
        await made.agent.start()
        assert (await made.agent.stage_first(FILE)).staged
        assert answers == [{"applied": True}]
        assert made.file(FILE).read_text(encoding="utf-8") == APPLE
        await made.agent.commit()
        assert made.file(FILE).read_text(encoding="utf-8") == f"// brought\n{APPLE}"


@keeps("edits.apply-edit")
@pytest.mark.usefixtures("knows_command")
async def test_a_second_edit_of_a_command_is_not_applied_and_refuses_the_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        one = [insert(made.file(FILE), "// one\n")]
        answers = commanded(made, one, one)
        await refused(made.agent, "UnsupportedChange")
        first, second = answers
        assert first == {"applied": True}
        assert isinstance(second, dict)
        assert second["applied"] is False


@keeps("edits.apply-edit")
@pytest.mark.usefixtures("knows_command")
async def test_a_command_without_an_edit_makes_the_action_unavailable(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        commanded(made)
        await refused(made.agent, "ActionUnavailable")


@keeps("edits.apply-edit")
async def test_an_edit_that_nobody_asked_for_is_not_applied(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        applied = {"edit": {"documentChanges": [insert(made.file(FILE), "// pushed\n")]}}
        answer = await made.server.ask_client("workspace/applyEdit", applied)
        assert isinstance(answer, dict)
        assert answer["applied"] is False
        assert answer["failureReason"]
        usual = made.server._usual("codeAction/resolve")

        async def push_meanwhile(params: msgspec.Raw) -> object:
            pushed = await made.server.ask_client("workspace/applyEdit", applied)
            assert isinstance(pushed, dict)
            assert pushed["applied"] is False
            return await usual(params)

        offer(made, [insert(made.file("Core/Pear.cs"), "// asked for\n")])
        made.server.answers["codeAction/resolve"] = push_meanwhile
        await made.agent.start()
        await made.agent.stage_first(FILE)
        (document,) = (await made.agent.preview()).documents
        assert document.document is not None
        assert document.document.path == "Core/Pear.cs"


@keeps("edits.commands")
@pytest.mark.parametrize("with_edit", [False, True])
async def test_a_command_that_only_shows_when_resolving_is_never_run(
    tmp_path: Path, *, with_edit: bool
) -> None:
    async with opened(tmp_path) as made:
        answer: Json = {"title": "Odd", "command": {"title": "Odd", "command": "played.installPackage"}}
        if with_edit:
            answer["edit"] = {"documentChanges": [insert(made.file(FILE), "// half\n")]}
        resolve_to(made, answer)
        refusal = await refused(made.agent, "UnsupportedChange")
        assert "played.installPackage" in refusal.message
        assert "workspace/executeCommand" not in made.server.heard


LEFT_OUT: dict[str, Json] = {
    "a command beside the action": {"title": "X", "command": {"title": "X", "command": "played.dialog"}},
    "a command alone": {"title": "X", "command": "played.dialog", "arguments": []},
    "disabled": {"title": "X", "disabled": {"reason": "not here"}},
    "a package": {"title": "Install package 'Newtonsoft.Json'"},
    "a package in a menu": {"title": "Install package 'X' - Find and install latest version"},
    "a project reference": {"title": "Add project reference to 'Core'."},
}


async def _listed_beside(made: Scene, item: Json) -> tuple[list[str], int | None]:
    usual = made.server.answers.get("textDocument/codeAction") or made.server._usual(
        "textDocument/codeAction"
    )
    offer(made, [], "Plain")

    async def both(params: msgspec.Raw) -> object:
        listed = await usual(params)
        assert isinstance(listed, list)
        return [*listed, item]

    made.server.answers["textDocument/codeAction"] = both
    listing = await made.agent.listing(FILE)
    return [action.title for action in listing.actions.items or ()], listing.left_out


@keeps("actions.left-out")
@pytest.mark.parametrize("what", LEFT_OUT)
@pytest.mark.parametrize("server", ["roslyn", "csharp-ls"])
async def test_what_cannot_be_tried_by_its_list_entry_is_left_out_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, server: str
) -> None:
    if server == "roslyn":
        async with opened(tmp_path) as made:
            assert await _listed_beside(made, LEFT_OUT[what]) == (["Plain"], 1)
    else:
        async with played_csharp_ls.opened(tmp_path, monkeypatch) as made:
            assert await _listed_beside(made, LEFT_OUT[what]) == (["Plain"], 1)


# --- files of several projects ------------------------------------------------------------------------------


@keeps("several-projects.said")
async def test_a_file_of_two_projects_is_said_to_be_one_where_the_server_answers_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with played_csharp_ls.opened(tmp_path, monkeypatch, {"Core/Shared.cs": PAIR}) as made:
        offer(made, [])
        document = {"path": "Core/Shared.cs", "project": {"name": "Core"}}
        refusal = await made.agent.refused("list-code-actions", document=document, kinds="All")
        assert (refusal.code, refusal.kind) == ("DocumentInSeveralProjects", None)
        assert "App (net10.0), Core (net10.0)" in refusal.message


@keeps("several-projects.said", "edits.linked")
async def test_an_action_in_a_file_that_uses_a_linked_one_may_change_the_linked_one_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with played_csharp_ls.opened(tmp_path, monkeypatch, {"Core/Shared.cs": PAIR}) as made:
        shared = insert(made.file("Core/Shared.cs"), "// once\n")
        offer(made, [insert(made.file(FILE), "// a\n"), shared, shared])
        await made.agent.start()
        assert (await made.agent.stage_first(FILE)).summary == "Odd: 2 changed"
        await made.agent.commit()
        assert made.file("Core/Shared.cs").read_text(encoding="utf-8") == f"// once\n{PAIR}"
