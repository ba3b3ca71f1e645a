"""Listing what a server offers, and staging one of it: every way in which that can be refused."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from lsp_client.errors import ResponseError
from tests.bridge.agent import APPLE, Agent, opened
from tests.bridge.played_server import NOWHERE, Json, Offer, create, document_edit, insert, rename
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"
NOBODY = "01234567-89ab-cdef-0123-456789abcdef"


def titled(title: str, **more: object) -> Offer:
    """An action that inserts its title as a comment."""
    offer = Offer(title, lambda path, _text: [insert(path, f"// {title}\n")])
    for name, value in more.items():
        setattr(offer, name, value)
    return offer


# --- listing ------------------------------------------------------------------------------------------------


@keeps("actions.flat")
@pytest.mark.parametrize(
    ("menu", "title", "told"),
    [
        (("Configure CA1822 severity",), "Silent", "Configure CA1822 severity: Silent"),
        (("Configure IDE0161 code style", "the_option"), "true", "the_option: true"),
        (("Suppress CS0168",), "in Source", "Suppress CS0168: in Source"),
        (("Add using",), "using System.Text;", "using System.Text;"),
        (("Generate",), "Generate class 'A'", "Generate class 'A'"),
        ((), "Inline", "Inline"),
    ],
)
async def test_a_title_that_says_nothing_alone_is_told_with_its_menu(
    tmp_path: Path, menu: tuple[str, ...], title: str, told: str
) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [titled(title, menu=menu)]
        (action,) = await made.agent.actions(FILE)
        assert (action.title, action.title_path) == (told, (*menu, title))


@keeps("actions.flat")
async def test_what_only_suppresses_or_configures_comes_last_and_does_not_crowd_out_the_rest(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [
            titled("Make it so"),
            *(titled(f"Level {n}", menu=("Configure CA1822 severity",)) for n in range(60)),
            titled("in Source", menu=("Suppress CA1822",)),
            titled("Move it away"),
        ]
        page = (await made.agent.listing(FILE)).actions
        titles = [action.title for action in page.items or ()]
        assert titles[:3] == ["Make it so", "Move it away", "Level 0"]
        assert (len(titles), page.total_count, page.has_more) == (50, 63, True)


@keeps("actions.flat")
async def test_nested_actions_are_listed_flat_with_all_titles_from_the_menu_down(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [
            titled("Plain"),
            titled("One", menu=("Generate", "Constructor")),
            titled("Two", menu=("Generate", "Constructor")),
        ]
        actions = await made.agent.actions(FILE)
        assert [action.title for action in actions] == ["Plain", "Constructor: One", "Constructor: Two"]
        assert [action.title_path for action in actions] == [
            ("Plain",),
            ("Generate", "Constructor", "One"),
            ("Generate", "Constructor", "Two"),
        ]
        await made.agent.start()
        staged = await made.agent.stage_first(FILE, "Constructor: Two")
        assert staged.summary == "Two: 1 changed"


@keeps("actions.fix-all")
async def test_fix_all_is_a_scope_of_its_action_and_no_action(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [titled("Sort", scopes=("Document", "Solution")), titled("Once")]
        listing = await made.agent.listing(FILE)
        assert listing.actions.items is not None
        assert [(a.title, a.fix_all_scopes) for a in listing.actions.items] == [
            ("Sort", ("Document", "Solution")),
            ("Once", None),
        ]
        assert listing.actions.total_count == 2


@keeps("actions.limit")
async def test_the_limit_bounds_what_is_shown_and_not_what_is_counted(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [titled(f"Action {number}") for number in range(60)]
        for limit, shown in ((0, 0), (1, 1), (59, 59), (60, 60), (1000, 60), (None, 50)):
            page = (await made.agent.listing(FILE, limit=limit)).actions
            assert page.items is not None
            assert (len(page.items), page.has_more, page.total_count) == (shown, shown < 60, 60)
        assert len(await made.agent.actions(FILE)) == 50


@keeps("actions.kinds")
async def test_kinds_keep_what_was_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [titled("Fix", kind="quickfix"), titled("Change", kind="refactor.extract")]
        for kinds, titles in (
            ("All", ["Fix", "Change"]),
            ("CodeFixes", ["Fix"]),
            ("Refactorings", ["Change"]),
        ):
            listing = await made.agent.listing(FILE, kinds=kinds)
            assert [action.title for action in listing.actions.items or ()] == titles
            assert listing.undecided is None
        fix, change = await made.agent.actions(FILE)
        assert (fix.kind, fix.kind_inferred) == ("CodeFix", None)
        assert (change.kind, change.kind_inferred, change.diagnostics) == ("Refactoring", None, None)


@keeps("actions.undecided")
async def test_filters_that_a_server_leaves_undecided_are_said(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [titled("Unmarked", kind=None), titled("Fix", kind="quickfix")]
        listing = await made.agent.listing(FILE, kinds="Refactorings")
        assert [(a.title, a.kind_inferred) for a in listing.actions.items or ()] == [("Unmarked", True)]
        assert listing.undecided is not None
        assert "kinds" in listing.undecided
        by_id = await made.agent.listing(FILE, diagnosticIds=["CS0246"])
        assert by_id.undecided is not None
        assert "diagnostics" in by_id.undecided
        assert [action.title for action in by_id.actions.items or ()] == ["Unmarked", "Fix"]
        assert (await made.agent.listing(FILE, diagnosticIds=[])).undecided is None


@keeps("actions.left-out")
async def test_what_needs_a_command_is_left_out_and_counted(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [titled("Plain"), titled("Install package", command="roslyn.client.install")]
        listing = await made.agent.listing(FILE)
        assert [action.title for action in listing.actions.items or ()] == ["Plain"]
        assert listing.left_out == 1


@keeps("actions.location")
async def test_places_count_from_zero_in_utf16_units_on_the_text_of_the_snapshot(tmp_path: Path) -> None:
    text = "// 🍎🍏\nclass A { }\n"
    async with opened(tmp_path) as made:
        asked: list[Json] = []
        usual = made.server._usual("textDocument/codeAction")

        async def note(params: msgspec.Raw) -> object:
            asked.append(msgspec.json.decode(params))
            return await usual(params)

        made.server.answers["textDocument/codeAction"] = note
        made.file(FILE).write_text(text, encoding="utf-8")
        await made.agent.actions_after_change(FILE)
        (action,) = await made.agent.actions(FILE, range={"start": 5, "length": 3})
        assert (action.location.line, action.location.column) == (0, 5)
        assert (action.location.span.start, action.location.span.length) == (5, 3)
        assert asked[-1]["range"] == {
            "start": {"line": 0, "character": 5},
            "end": {"line": 1, "character": 0},
        }
        (caret,) = await made.agent.actions(FILE, range={"start": 8})
        assert (caret.location.line, caret.location.column, caret.location.span.length) == (1, 0, 0)
        (whole,) = await made.agent.actions(FILE)
        assert (whole.location.span.start, whole.location.span.length) == (0, 20)
        assert asked[-1]["range"] == {
            "start": {"line": 0, "character": 0},
            "end": {"line": 2, "character": 0},
        }


def problem(line: int, start: int, end: int) -> Json:
    """A diagnostic within one line."""
    ends = ({"line": line, "character": start}, {"line": line, "character": end})
    return {"range": dict(zip(("start", "end"), ends, strict=True)), "code": "CS0168", "message": "Unused"}


@keeps("actions.location")
async def test_a_fix_has_the_place_of_its_diagnostic_and_anything_else_the_place_asked_about(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [
            titled("Fix", kind="quickfix", diagnostics=[problem(2, 13, 18), problem(0, 0, 4)]),
            titled("Change"),
            titled("Fix elsewhere", kind="quickfix", diagnostics=[problem(999, 0, 1)]),
        ]
        fix, change, lost = await made.agent.actions(FILE)
        assert (fix.location.line, fix.location.column) == (2, 13)
        start = APPLE.index("Apple")
        assert (fix.location.span.start, fix.location.span.length) == (start, len("Apple"))
        for other in (change, lost):
            assert (other.location.line, other.location.column) == (0, 0)
            assert (other.location.span.start, other.location.span.length) == (0, len(APPLE))
        await made.agent.start()
        fix = (await made.agent.actions(FILE))[0]
        await made.agent.stage(fix)


# --- the staged text ----------------------------------------------------------------------------------------


@keeps("actions.staged-text")
async def test_each_listing_answers_for_the_text_of_its_revision(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent

        async def title() -> str:
            (action,) = await agent.actions(FILE)
            return action.title

        await agent.start()
        assert await title() == "Add line 5"
        await agent.stage_first(FILE)
        assert await title() == "Add line 6"
        await agent.stage_first(FILE)
        assert await title() == "Add line 7"
        await agent.undo()
        assert await title() == "Add line 6"
        await agent.undo()
        assert await title() == "Add line 5"
        assert made.server.open == {}
        await agent.redo()
        assert await title() == "Add line 6"
        await agent.roll_back()
        assert await title() == "Add line 5"
        assert made.server.open == {}


@keeps("actions.created")
async def test_a_staged_new_file_is_a_document_and_what_is_not_known_of_it_is_said(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        new = made.file("Core/New.cs")
        made.server.offers = [Offer("Create", lambda _path, _text: create(new, "class New { }\n"))]
        await agent.start()
        await agent.stage_first(FILE)
        made.server.offers = None
        listing = await agent.listing("Core/New.cs")
        (action,) = listing.actions.items or ()
        assert action.title == "Add line 1"
        assert listing.notes is None, "a server without meaning answers for a file by that file alone"
        (added,) = (await agent.preview()).documents
        assert added.document == action.location.document
        owner = next(
            d for p in made.workspace.structure.projects for d in p.documents if d.path.name == "Apple.cs"
        )
        assert added.document is not None
        assert added.document.project_id == owner.project_id
        await agent.actions("Core/New.cs", document={"documentId": added.document.document_id})
        await agent.stage(action.action_id, expectedSnapshot=agent.snapshot)
        await agent.commit()
        assert new.read_text(encoding="utf-8") == "// line 1\nclass New { }\n"
        assert not new.read_bytes().startswith(b"\xef\xbb\xbf")
        (committed,) = await agent.actions("Core/New.cs")
        assert committed.location.document == added.document


@keeps("actions.created")
async def test_a_staged_deletion_takes_the_document_away_until_it_is_undone(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        made.server.offers = [Offer("Move", lambda path, _text: [rename(path, path.with_name("Malus.cs"))])]
        await agent.start()
        await agent.stage_first(FILE)
        gone = await agent.refused("list-code-actions", document={"path": FILE}, kinds="All")
        assert gone.code == "DocumentNotFound"
        assert await agent.actions("Core/Malus.cs")
        await agent.undo()
        assert await agent.actions(FILE)
        never = await agent.refused("list-code-actions", document={"path": "Core/Malus.cs"}, kinds="All")
        assert never.code == "DocumentNotFound"


# --- ids ----------------------------------------------------------------------------------------------------


@keeps("actions.id-used")
async def test_an_id_is_used_up_by_its_stage_also_after_undo(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        (action,) = await made.agent.actions(FILE)
        await made.agent.stage(action)
        await made.agent.undo()
        refusal = await made.agent.refused("stage-code-action", actionId=action.action_id)
        assert (refusal.code, refusal.kind) == ("ActionExpired", "ReviseRequest")


@keeps("actions.id-expired")
async def test_an_id_is_not_known_to_strangers_nor_after_its_time(tmp_path: Path) -> None:
    async with opened(tmp_path, code_action_reference_lifetime=0.001) as made:
        await made.agent.start()
        (action,) = await made.agent.actions(FILE)
        for action_id in (NOBODY, action.action_id):
            refusal = await made.agent.refused("stage-code-action", actionId=action_id)
            assert refusal.code == "ActionExpired"


@keeps("actions.id-other-snapshot")
async def test_an_id_of_another_snapshot_is_a_mismatch_and_stays_good_for_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent
        await agent.start()
        (action,) = await agent.actions(FILE)
        await agent.stage_first("Core/Pear.cs")
        refusal = await agent.refused("stage-code-action", actionId=action.action_id)
        assert (refusal.code, refusal.kind) == ("SnapshotMismatch", "ReviseRequest")
        await agent.undo()
        assert (await agent.stage(action.action_id.upper())).staged


@keeps("actions.id-other-snapshot")
async def test_an_id_from_before_the_transaction_is_a_mismatch_inside_of_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        (action,) = await made.agent.actions(FILE)
        await made.agent.start()
        refusal = await made.agent.refused("stage-code-action", actionId=action.action_id)
        assert refusal.code == "SnapshotMismatch"


@keeps("actions.store")
async def test_more_actions_than_ids_can_be_kept_for_are_refused_and_old_ids_make_room(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, code_action_reference_limit=2) as made:
        made.server.offers = [titled("A"), titled("B"), titled("C")]
        await made.agent.start()
        arguments: Json = {"document": {"path": FILE}, "kinds": "All"}
        refusal = await made.agent.refused("list-code-actions", **arguments)
        assert (refusal.code, refusal.kind) == ("ActionReferenceCapacityExceeded", "ReviseRequest")
        assert refusal.instruction is not None
        assert "limit" in refusal.instruction
        first, _ = await made.agent.actions(FILE, limit=2)
        _, newest = await made.agent.actions(FILE, limit=2)
        assert (
            await made.agent.refused("stage-code-action", actionId=first.action_id)
        ).code == "ActionExpired"
        assert (await made.agent.stage(newest)).staged


# --- refusals -----------------------------------------------------------------------------------------------


@keeps("actions.unreadable")
async def test_a_file_that_is_no_text_or_that_the_server_does_not_know_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.file("Core/Binary.cs").write_bytes(b"class A { }\0\xff\xfe\0\0\x80")
        await made.agent.actions_after_change(FILE)
        arguments: Json = {"document": {"path": "Core/Binary.cs"}, "kinds": "All"}
        refusal = await made.agent.refused("list-code-actions", **arguments)
        assert (refusal.code, refusal.kind) == ("CodeActionsUnavailable", None)
        assert "Core/Binary.cs" in refusal.message

        async def nothing(_params: msgspec.Raw) -> object:
            return None

        made.server.answers["textDocument/codeAction"] = nothing
        made.server.answers["textDocument/documentSymbol"] = nothing
        unknown = await made.agent.refused("list-code-actions", document={"path": FILE}, kinds="All")
        assert unknown.code == "CodeActionsUnavailable"


@keeps("actions.gone")
async def test_an_action_that_is_not_offered_any_more_or_has_no_edit_is_unavailable(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        agent, server = made.agent, made.server

        async def failing(_params: msgspec.Raw) -> object:
            raise ResponseError("codeAction/resolve", -32000, "out of ideas")

        await agent.start()
        server.offers = [titled("Now")]
        (action,) = await agent.actions(FILE)
        before = agent.identity
        for offers in (
            [titled("Other")],
            [titled("Now", kind="quickfix")],
            [titled("Now", menu=("Deeper",))],
        ):
            server.offers = offers
            refusal = await agent.refused("stage-code-action", actionId=action.action_id)
            assert (refusal.code, refusal.kind) == ("ActionUnavailable", "ReviseRequest")
        server.offers = [titled("Now", edit=None)]
        assert (
            await agent.refused("stage-code-action", actionId=action.action_id)
        ).code == "ActionUnavailable"
        server.offers = [titled("Now")]
        server.answers["codeAction/resolve"] = failing
        refusal = await agent.refused("stage-code-action", actionId=action.action_id)
        assert refusal.code == "ActionUnavailable"
        assert "out of ideas" in refusal.message
        del server.answers["codeAction/resolve"]
        assert agent.identity == before
        assert (await agent.stage(action)).staged


@keeps("actions.ambiguous")
async def test_of_two_actions_of_one_name_none_is_staged(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [titled("Same"), titled("Same")]
        await made.agent.start()
        listing = await made.agent.listing(FILE)
        (action,) = listing.actions.items or ()
        assert listing.left_out == 1
        refusal = await made.agent.refused("stage-code-action", actionId=action.action_id)
        assert (refusal.code, refusal.kind) == ("ActionAmbiguous", "ReviseRequest")
        assert (await made.agent.preview()).documents == ()


Edit = Callable[[Path], list[Json]]
REFUSED_EDITS: dict[str, Edit] = {
    "outside of the root": lambda path: create(path.parents[3] / "Out.cs", "x"),
    "no source": lambda path: create(path.with_name("notes.txt"), "x"),
    "a project": lambda path: [insert(path.with_name("Core.csproj"), "<!-- -->")],
    "below obj": lambda path: create(path.with_name("obj") / "Gen.cs", "x"),
    "nothing at all": lambda _path: [],
    "a range past the end": lambda path: [insert(path, "x", line=99)],
    "a file that is there": lambda path: create(path.with_name("Pear.cs"), "x"),
    "a snippet": lambda path: [
        document_edit(path, [{"range": NOWHERE, "snippet": {"kind": "snippet", "value": "$0"}}])
    ],
    "a virtual document": lambda _path: [
        {"textDocument": {"uri": "csharp:/metadata/x.cs", "version": None}, "edits": []}
    ],
    "an operation nobody knows": lambda path: [{"kind": "touch", "uri": path.as_uri()}],
    "text that cannot be written": lambda path: [insert(path, "\0")],
}


@keeps("actions.refused-edit")
@pytest.mark.parametrize("what", REFUSED_EDITS)
async def test_an_edit_beyond_source_text_is_refused_as_a_whole(tmp_path: Path, what: str) -> None:
    async with opened(tmp_path) as made:
        agent = made.agent

        def edit(path: Path, _text: str) -> list[Json]:
            return [
                *([insert(path, "// half\n")] if what != "nothing at all" else []),
                *REFUSED_EDITS[what](path),
            ]

        made.server.offers = [Offer("Too much", edit)]
        await agent.start()
        (action,) = await agent.actions(FILE)
        before = agent.identity
        refusal = await agent.refused("stage-code-action", actionId=action.action_id)
        assert (refusal.code, refusal.kind) == ("UnsupportedChange", None), refusal.message
        assert agent.identity == await _identity_now(agent)
        assert agent.identity == before
        assert (await agent.preview()).documents == ()
        assert made.file(FILE).read_text(encoding="utf-8") == APPLE


async def _identity_now(agent: Agent) -> object:
    await agent.status()
    return agent.identity


@keeps("actions.refused-edit")
async def test_edits_of_linked_copies_that_contradict_each_other_are_a_conflict(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [
            Offer("Twice", lambda path, _text: [insert(path, "// a\n"), insert(path, "// b\n")])
        ]
        await made.agent.start()
        (action,) = await made.agent.actions(FILE)
        refusal = await made.agent.refused("stage-code-action", actionId=action.action_id)
        assert (refusal.code, refusal.kind) == ("LinkedDocumentConflict", None)
        made.server.offers = [
            Offer("Twice", lambda path, _text: [insert(path, "// a\n"), insert(path, "// a\n")])
        ]
        await made.agent.stage_first(FILE)
        await made.agent.commit()
        assert made.file(FILE).read_text(encoding="utf-8") == f"// a\n{APPLE}"


# --- a server that misbehaves -------------------------------------------------------------------------------


async def test_content_modified_on_unmoved_text_is_asked_again_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        usual = made.server._usual("textDocument/codeAction")
        asked = 0

        async def modified_once(params: msgspec.Raw) -> object:
            nonlocal asked
            asked += 1
            if asked == 1:
                raise ResponseError("textDocument/codeAction", -32801, "content modified")
            return await usual(params)

        made.server.answers["textDocument/codeAction"] = modified_once
        assert await made.agent.actions(FILE)
        assert asked == 2


async def _always_modified(_params: msgspec.Raw) -> object:
    raise ResponseError("textDocument/codeAction", -32801, "content modified")


async def _error(_params: msgspec.Raw) -> object:
    raise ResponseError("textDocument/codeAction", -32603, "an internal error")


async def _garbage(_params: msgspec.Raw) -> object:
    return {"title": 5}


@keeps("error.codes")
@pytest.mark.parametrize("answer", [_always_modified, _error, _garbage])
async def test_a_server_that_answers_with_an_error_or_nonsense_is_a_failure_not_an_empty_list(
    tmp_path: Path, answer: Callable[[msgspec.Raw], Awaitable[object]]
) -> None:
    async with opened(tmp_path) as made:
        made.server.answers["textDocument/codeAction"] = answer
        refusal = await made.agent.refused("list-code-actions", document={"path": FILE}, kinds="All")
        assert (refusal.code, refusal.kind) == ("LanguageServerFailed", "RetryRequest")
        del made.server.answers["textDocument/codeAction"]
        assert await made.agent.actions(FILE)
