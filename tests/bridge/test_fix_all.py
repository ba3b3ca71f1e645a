"""One fix for a whole document, project or solution: prepared, looked at, computed again, staged as one step."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import msgspec
import pytest

from bridge.tools.call import CallContext
from lsp_client.errors import ResponseError
from schemas.code_actions import CodeAction, PrepareFixAllData
from tests.bridge.agent import APPLE, PEAR, Scene, opened
from tests.bridge.played_compiler import compiled
from tests.bridge.played_fixes import OLD, fixing, replacing
from tests.bridge.played_server import NOWHERE, Json, Offer, create, delete, document_edit, insert
from tests.bridge.promises import keeps
from tests.bridge.staged_texts import replaced, stage_texts
from tests.bridge.test_cancellation import cancelled_after, moments

pytestmark = pytest.mark.anyio

FILE, OTHER, PROGRAM = "Core/Apple.cs", "Core/Pear.cs", "App/Program.cs"
SCOPES = ("Document", "Project", "Solution")
IN_SCOPE = {"Document": [FILE], "Project": [FILE, OTHER], "Solution": [PROGRAM, FILE, OTHER]}
MARK = "// tidy\n"


def tidy(made: Scene, **more: object) -> Offer:
    """A fix that puts a comment on top of every file in the scope."""

    def fix_all(scope: str) -> list[Json]:
        return [insert(made.file(name), MARK) for name in IN_SCOPE[scope]]

    offer = Offer(
        "Tidy", lambda path, _text: [insert(path, MARK)], kind="quickfix", scopes=SCOPES, fix_all=fix_all
    )
    for name, value in more.items():
        setattr(offer, name, value)
    return offer


def changing(made: Scene, *names: str) -> Callable[[str], Sequence[Json]]:
    """A fix-all that changes these files, whatever the scope."""
    return lambda _scope: [insert(made.file(name), MARK) for name in names]


async def listed(made: Scene, place: str = FILE) -> CodeAction:
    return (await made.agent.actions(place))[0]


def paths_of(prepared: PrepareFixAllData) -> list[str]:
    return [document.path for document in prepared.affected_documents.items or ()]


async def prepared_in_a_transaction(made: Scene, scope: str = "Project") -> PrepareFixAllData:
    """The usual beginning: a transaction, a listed fix, a preparation."""
    made.server.offers = [tidy(made)]
    await made.agent.start()
    return await made.agent.prepare(await listed(made), scope)


async def require_untouched(made: Scene) -> None:
    """Nothing is staged, the leases are free, and the server sees the files as they are on disk."""
    async with made.workspace.leases.exclusive():
        pass
    transaction = made.workspace.transaction
    assert transaction is None or transaction.revision == 0
    await listed(made)
    assert made.server.open == {}, "this server is shown what is staged and nothing else"
    for name, text in ((FILE, APPLE), (OTHER, PEAR)):
        assert made.file(name).read_text() == text


# --- the whole way ------------------------------------------------------------------------------------------


@keeps("fix-all.scopes", "fix-all.one-step", "fix-all.documents")
@pytest.mark.parametrize("scope", SCOPES)
async def test_a_fix_is_prepared_for_a_scope_staged_as_one_step_and_committed(
    tmp_path: Path, scope: str
) -> None:
    async with opened(tmp_path) as made:
        prepared = await prepared_in_a_transaction(made, scope)
        assert prepared.scope == scope
        assert paths_of(prepared) == IN_SCOPE[scope]
        assert prepared.affected_documents.total_count == len(IN_SCOPE[scope])
        assert prepared.emulated is None
        assert made.workspace.require_transaction().revision == 0, "preparing stages nothing"
        staged = await made.agent.stage(prepared.action_id)
        assert staged.transaction is not None
        assert (staged.staged, staged.transaction.revision) == (True, 1)
        assert staged.summary == f"Tidy ({scope.lower()}): {len(IN_SCOPE[scope])} changed"
        preview = await made.agent.preview()
        assert sorted(d.document.path for d in preview.documents if d.document) == IN_SCOPE[scope]
        before = {name: made.file(name).read_text() for name in IN_SCOPE["Solution"]}
        await made.agent.commit()
        for name, text in before.items():
            assert made.file(name).read_text() == (MARK if name in IN_SCOPE[scope] else "") + text


@keeps("fix-all.one-step")
async def test_five_findings_in_one_file_are_one_step_that_one_undo_takes_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.file(FILE).write_text("int a;\n" * 5)
        edits: list[Json] = [
            {
                "range": {"start": {"line": n, "character": 0}, "end": {"line": n, "character": 3}},
                "newText": "var",
            }
            for n in range(5)
        ]
        made.server.offers = [tidy(made, fix_all=lambda _scope: [document_edit(made.file(FILE), edits)])]
        await made.agent.start()
        prepared = await made.agent.prepare(await listed(made), "Document")
        assert prepared.affected_documents.total_count == 1
        await made.agent.stage(prepared.action_id)
        text = made.workspace.text(made.file(FILE))
        assert text is not None
        assert text.text == "var a;\n" * 5
        assert (await made.agent.undo()).revision == 0
        await made.agent.redo()
        await made.agent.commit()
        assert made.file(FILE).read_text() == "var a;\n" * 5


async def test_a_fix_all_builds_on_what_is_staged(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        await stage_texts(made, {FILE: "// staged\n", "Core/New.cs": "class New { }\n"})

        def fix_all(_scope: str) -> list[Json]:
            assert made.server.seen(made.file(FILE)) == "// staged\n"
            return [insert(made.file(name), MARK) for name in (FILE, "Core/New.cs")]

        made.server.offers = [tidy(made, fix_all=fix_all)]
        prepared = await made.agent.prepare(await listed(made), "Project")
        assert paths_of(prepared) == [FILE, "Core/New.cs"]
        staged = await made.agent.stage(prepared.action_id)
        assert staged.transaction is not None
        assert staged.transaction.revision == 2
        await made.agent.commit()
        assert made.file("Core/New.cs").read_text() == f"{MARK}class New {{ }}\n"


async def test_a_fix_all_may_create_and_delete_files_of_its_scope(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        operations = [*create(made.file("Core/Plum.cs"), "class Plum { }\n"), delete(made.file(OTHER))]
        made.server.offers = [tidy(made, fix_all=lambda _scope: operations)]
        await made.agent.start()
        prepared = await made.agent.prepare(await listed(made), "Project")
        assert paths_of(prepared) == [OTHER, "Core/Plum.cs"]
        staged = await made.agent.stage(prepared.action_id)
        assert staged.summary == "Tidy (project): 1 created, 1 deleted"


async def test_a_fix_all_that_changes_no_text_is_prepared_and_not_staged(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        same = [replaced(made.file(FILE), APPLE, APPLE)]
        made.server.offers = [tidy(made, fix_all=lambda _scope: same)]
        await made.agent.start()
        prepared = await made.agent.prepare(await listed(made), "Document", maxChanges=0)
        assert prepared.affected_documents.total_count == 0
        assert not (await made.agent.stage(prepared.action_id)).staged


@keeps("fix-all.scopes")
async def test_two_children_of_a_group_are_prepared_each_for_its_own_scopes(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:

        def child(title: str, *scopes: str) -> Offer:
            edits = {
                scope: [insert(made.file(n), f"// {title}\n") for n in IN_SCOPE[scope]] for scope in SCOPES
            }
            return tidy(made, title=title, menu=("Tidy up",), scopes=scopes, fix_all=edits.__getitem__)

        made.server.offers = [child("With spaces", "Document", "Project"), child("With tabs", "Solution")]
        await made.agent.start()
        spaces, tabs = await made.agent.actions(FILE)
        assert [a.title_path for a in (spaces, tabs)] == [
            ("Tidy up", "With spaces"),
            ("Tidy up", "With tabs"),
        ]
        assert (spaces.fix_all_scopes, tabs.fix_all_scopes) == (("Document", "Project"), ("Solution",))
        refusal = await made.agent.refused("prepare-fix-all", actionId=tabs.action_id, scope="Document")
        assert refusal.code == "FixAllUnavailable"
        await made.agent.prepare(spaces, "Project")
        await made.agent.stage((await made.agent.prepare(tabs, "Solution")).action_id)
        text = made.workspace.text(made.file(PROGRAM))
        assert text is not None
        assert text.text.startswith("// With tabs\n")


# --- what is refused ----------------------------------------------------------------------------------------


@keeps("fix-all.scopes")
async def test_only_a_scope_that_the_item_lists_is_prepared(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [tidy(made, scopes=("Document",)), Offer("Once", None, kind="quickfix")]
        narrow, without = await made.agent.actions(FILE)
        for action, scope in ((narrow, "Project"), (narrow, "Solution"), (without, "Document")):
            refusal = await made.agent.refused("prepare-fix-all", actionId=action.action_id, scope=scope)
            assert (refusal.code, refusal.kind) == ("FixAllUnavailable", None)
        assert (
            "on offer: Document"
            in (
                await made.agent.refused("prepare-fix-all", actionId=narrow.action_id, scope="Project")
            ).message
        )
        assert "codeAction/resolveFixAll" not in made.server.heard
        odd = await made.agent.refused("prepare-fix-all", actionId=narrow.action_id, scope="ContainingType")
        assert odd.code == "InvalidRequest"


@keeps("fix-all.scopes")
async def test_what_is_prepared_cannot_be_prepared_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        prepared = await prepared_in_a_transaction(made)
        refusal = await made.agent.refused("prepare-fix-all", actionId=prepared.action_id, scope="Solution")
        assert refusal.code == "FixAllUnavailable"
        assert (await made.agent.stage(prepared.action_id)).staged, "the refusal has not used it up"


@keeps("fix-all.reach")
@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ("Document", (FILE, OTHER)),
        ("Document", (OTHER,)),
        ("Project", (FILE, PROGRAM)),
        ("Project", (PROGRAM,)),
    ],
)
async def test_a_change_outside_of_the_scope_is_refused_as_a_whole(
    tmp_path: Path, scope: str, names: tuple[str, ...]
) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [tidy(made, fix_all=changing(made, *names))]
        action = await listed(made)
        kept = len(made.workspace.references)
        refusal = await made.agent.refused("prepare-fix-all", actionId=action.action_id, scope=scope)
        assert refusal.code == "UnsupportedChange"
        assert names[-1] in refusal.message
        assert len(made.workspace.references) == kept
        await require_untouched(made)


@keeps("fix-all.reach")
async def test_a_new_file_is_outside_of_a_document_and_of_another_project(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        for scope, name in (("Document", "Core/New.cs"), ("Project", "App/New.cs"), ("Solution", "New.cs")):
            operations = create(made.file(name), "class New { }\n")
            made.server.offers = [tidy(made, fix_all=lambda _scope, made_of=operations: made_of)]
            action = await listed(made)
            refusal = await made.agent.refused("prepare-fix-all", actionId=action.action_id, scope=scope)
            assert refusal.code == "UnsupportedChange"
            assert name in refusal.message


@keeps("fix-all.limit")
async def test_more_documents_than_the_caller_allows_are_refused_and_nothing_is_prepared(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [tidy(made)]
        action = await listed(made)
        for limit in (0, 2):
            kept = len(made.workspace.references)
            refusal = await made.agent.refused(
                "prepare-fix-all", actionId=action.action_id, scope="Solution", maxChanges=limit
            )
            assert (refusal.code, refusal.kind) == ("FixAllLimitExceeded", "ReviseRequest")
            assert "3 documents" in refusal.message
            assert len(made.workspace.references) == kept
        for enough in (3, None, 2**31 - 1):
            prepared = await made.agent.prepare(action, "Solution", maxChanges=enough)
            assert prepared.affected_documents.total_count == 3


@keeps("fix-all.documents")
async def test_the_limit_bounds_the_documents_that_are_named_and_not_their_count(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [tidy(made)]
        action = await listed(made)
        for limit, shown in ((0, 0), (1, 1), (3, 3), (4, 3), (None, 3)):
            page = (
                await made.agent.prepare(action, "Solution", affectedDocumentsLimit=limit)
            ).affected_documents
            assert page.items is not None
            assert (len(page.items), page.has_more, page.total_count) == (shown, shown < 3, 3)


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        (None, "FixAllUnavailable"),
        ([], "UnsupportedChange"),
        (
            [document_edit(Path("/nowhere/else.cs"), [{"range": NOWHERE, "newText": "x"}])],
            "UnsupportedChange",
        ),
    ],
)
async def test_no_edit_and_an_edit_that_is_not_ours_to_make_are_refused(
    tmp_path: Path, operations: list[Json] | None, code: str
) -> None:
    async with opened(tmp_path) as made:
        fix_all = None if operations is None else lambda _scope: operations
        made.server.offers = [tidy(made, fix_all=fix_all)]
        action = await listed(made)
        refusal = await made.agent.refused("prepare-fix-all", actionId=action.action_id, scope="Solution")
        assert refusal.code == code
        await require_untouched(made)


async def test_a_server_that_fails_at_a_fix_all_is_quoted(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [tidy(made)]
        action = await listed(made)

        async def fail(_params: msgspec.Raw) -> object:
            raise ResponseError("codeAction/resolveFixAll", -32000, "Sequence contains no elements")

        made.server.answers["codeAction/resolveFixAll"] = fail
        refusal = await made.agent.refused("prepare-fix-all", actionId=action.action_id, scope="Solution")
        assert refusal.code == "FixAllUnavailable"
        assert "Sequence contains no elements" in refusal.message


# --- the same twice -----------------------------------------------------------------------------------------


@keeps("fix-all.same")
@pytest.mark.parametrize(
    "second",
    [
        pytest.param(lambda made: changing(made, FILE), id="a file less"),
        pytest.param(lambda made: changing(made, FILE, OTHER, PROGRAM), id="another project"),
        pytest.param(
            lambda made: lambda _: [insert(made.file(n), "// no\n") for n in (FILE, OTHER)], id="other text"
        ),
        pytest.param(
            lambda made: lambda _: [*changing(made, FILE)(_), delete(made.file(OTHER))], id="other kind"
        ),
        pytest.param(lambda made: lambda _: [], id="an empty edit"),
        pytest.param(lambda made: None, id="no edit"),
    ],
)
async def test_a_fix_all_that_is_another_one_when_it_is_staged_is_refused_and_its_id_used_up(
    tmp_path: Path, second: Callable[[Scene], Callable[[str], Sequence[Json]] | None]
) -> None:
    async with opened(tmp_path) as made:
        prepared = await prepared_in_a_transaction(made)
        made.server.offers = [tidy(made, fix_all=second(made))]
        refusal = await made.agent.refused("stage-code-action", actionId=prepared.action_id)
        assert (refusal.code, refusal.kind) == ("MutationCandidateChanged", "ReviseRequest")
        await require_untouched(made)
        made.server.offers = [tidy(made)]
        again = await made.agent.refused("stage-code-action", actionId=prepared.action_id)
        assert again.code == "ActionExpired"


@keeps("fix-all.same")
async def test_one_that_outgrows_its_limit_when_it_is_staged_is_refused_too(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [tidy(made, fix_all=changing(made, FILE))]
        await made.agent.start()
        prepared = await made.agent.prepare(await listed(made), "Project", maxChanges=1)
        made.server.offers = [tidy(made)]
        refusal = await made.agent.refused("stage-code-action", actionId=prepared.action_id)
        assert refusal.code == "MutationCandidateChanged"
        assert "maxChanges allows 1" in refusal.message


@keeps("fix-all.bound")
async def test_a_prepared_id_is_used_once_also_after_an_undo(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        prepared = await prepared_in_a_transaction(made)
        await made.agent.stage(prepared.action_id)
        await made.agent.undo()
        refusal = await made.agent.refused("stage-code-action", actionId=prepared.action_id)
        assert refusal.code == "ActionExpired"


@keeps("fix-all.bound")
async def test_a_prepared_id_is_of_one_snapshot(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [tidy(made)]
        outside = await made.agent.prepare(await listed(made), "Project")
        await made.agent.start()
        refusal = await made.agent.refused("stage-code-action", actionId=outside.action_id)
        assert refusal.code == "SnapshotMismatch", "prepared before the transaction began"
        inside = await made.agent.prepare(await listed(made), "Project")
        await stage_texts(made, {FILE: "// another text\n"})
        refusal = await made.agent.refused("stage-code-action", actionId=inside.action_id)
        assert refusal.code == "SnapshotMismatch"
        stale = await made.agent.refused("prepare-fix-all", actionId=inside.action_id, scope="Project")
        assert stale.code == "SnapshotMismatch"


@keeps("fix-all.bound")
async def test_a_prepared_id_ends_with_the_server_that_made_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        prepared = await prepared_in_a_transaction(made)
        made.server.kill()
        refusal = await made.agent.refused("stage-code-action", actionId=prepared.action_id)
        assert refusal.code == "ActionExpired"
        await require_untouched(made)


@keeps("fix-all.bound")
async def test_a_server_that_dies_of_a_fix_all_leaves_no_id(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [tidy(made)]
        action = await listed(made)
        async with made.server.held("codeAction/resolveFixAll") as held, anyio.create_task_group() as tasks:

            async def ask() -> None:
                refusal = await made.agent.refused(
                    "prepare-fix-all", actionId=action.action_id, scope="Project"
                )
                assert refusal.code == "ActionExpired"

            tasks.start_soon(ask)
            await held.reached.wait()
            made.server.kill()
        await require_untouched(made)


@keeps("fix-all.bound")
async def test_a_server_that_dies_while_it_counts_leaves_no_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, NUTS) as (made, _):
        made.server.offers = [nutless(made)]
        action = await listed(made)
        kept = len(made.workspace.references)
        usual = made.server.answers["textDocument/diagnostic"]

        async def dies(params: msgspec.Raw) -> object:
            if b"Pear.cs" in bytes(params) and len(made.server.processes) == 1:
                made.server.kill()
            return await usual(params)

        made.server.answers["textDocument/diagnostic"] = dies
        refusal = await made.agent.refused("prepare-fix-all", actionId=action.action_id, scope="Project")
        assert refusal.code == "ActionExpired"
        assert len(made.workspace.references) == kept
        await require_back(made)


@keeps("fix-all.same")
async def test_a_change_on_disk_between_the_two_is_a_conflict(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        prepared = await prepared_in_a_transaction(made)
        made.file(OTHER).write_text("// by somebody else\n")
        refusal = await made.agent.refused("stage-code-action", actionId=prepared.action_id)
        assert refusal.code == "TransactionConflicted"


# --- the way back -------------------------------------------------------------------------------------------


@keeps("fix-all.way-back")
@pytest.mark.parametrize("tool", ["prepare-fix-all", "stage-code-action"])
async def test_a_cancel_at_any_moment_leaves_the_server_where_it_was_and_nothing_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    async with compiled(tmp_path, monkeypatch, NUTS) as (made, _):
        await made.agent.start()
        await stage_texts(made, {OTHER: "// staged\nobject c = new Nut();\n"})
        made.server.offers = [nutless(made)]
        over = was_elsewhere = False
        for turns in moments():
            arguments: dict[str, object] = {"actionId": (await listed(made)).action_id, "scope": "Project"}
            if tool == "stage-code-action":
                prepared = await made.agent.prepare(str(arguments["actionId"]), "Project")
                arguments = {"actionId": prepared.action_id}
            over = await cancelled_after(turns, partial(made.agent.call, tool, **arguments))
            async with made.workspace.leases.exclusive():
                pass
            was_elsewhere |= any("new Apple" in text for text in made.server.open.values())
            if made.workspace.require_transaction().revision == 2:
                assert tool == "stage-code-action"
                await made.agent.status()
                await made.agent.undo()
            await require_back(made)
            if over:
                break
        assert over
        assert was_elsewhere, "some cancel met the server with the texts of the fix-all"


@keeps("fix-all.way-back")
async def test_readers_wait_while_the_server_is_somewhere_else(tmp_path: Path) -> None:
    async with opened(tmp_path, lease_wait=0.0) as made:
        made.server.offers = [tidy(made)]
        action = await listed(made)
        async with made.server.held("codeAction/resolveFixAll") as held, anyio.create_task_group() as tasks:
            tasks.start_soon(made.agent.prepare, action, "Project")
            await held.reached.wait()
            refusal = await made.agent.refused("list-code-actions", document={"path": FILE}, kinds="All")
            assert (refusal.code, refusal.kind) == ("WorkspaceBusy", "RetryRequest")
            held.released.set()
        await require_untouched(made)


async def test_preparing_reports_progress_that_never_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []

    async def report(progress: float, _total: float | None, _message: str) -> None:
        told.append(progress)

    async with compiled(tmp_path, monkeypatch, NUTS) as (made, _):
        made.server.offers = [nutless(made)]
        action = await listed(made)
        made.agent.context = CallContext(report)
        await made.agent.prepare(action, "Project")
        assert told == sorted(told)
        assert told


# --- counts -------------------------------------------------------------------------------------------------

NUT: Json = {
    "range": NOWHERE,
    "severity": 1,
    "code": "CS0246",
    "message": "The type or namespace name 'Nut' could not be found",
}


def nutless(made: Scene, *, leaving: int = 0, **more: object) -> Offer:
    """Replaces ``Nut`` by ``Apple``, a class of the first file, but ``leaving`` so many in each file."""

    def fix_all(_scope: str) -> list[Json]:
        texts = {made.file(name): made.server.seen(made.file(name)) for name in (FILE, OTHER)}
        return [
            replaced(
                path, text, text.replace("new Nut", "new Apple", max(0, text.count("new Nut") - leaving))
            )
            for path, text in texts.items()
            if "Nut" in text
        ]

    return tidy(made, **{"fix_all": fix_all, "diagnostics": [NUT], **more})


NUTS = {
    FILE: "class Apple { }\nobject a = new Nut();\nobject b = new Nut();\n",
    OTHER: "object c = new Nut();\n",
    PROGRAM: "object d = new Nut();\n",
}


async def counted(
    made: Scene, scope: str = "Project", **more: object
) -> tuple[int | None, int | None, str | None]:
    prepared = await made.agent.prepare(await listed(made), scope, **more)
    counts = prepared.affected_diagnostic_count, prepared.remaining_diagnostic_count
    return (*counts, prepared.counts_unavailable)


@keeps("fix-all.counts", "fix-all.way-back")
async def test_the_diagnostics_of_the_changed_documents_are_counted_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, NUTS) as (made, compiler):
        made.server.offers = [nutless(made)]
        await listed(made)
        compiler.pulled.clear()
        assert await counted(made) == (3, 0, None)
        assert "Program.cs" not in compiler.pulled_names, "it does not change"
        await require_back(made)


async def require_back(made: Scene) -> None:
    """For the next question the server sees the current texts exactly, and after it only what is staged is open."""
    seen: list[dict[Path, str]] = []
    usual = made.server.answers["textDocument/diagnostic"]

    async def look(params: msgspec.Raw) -> object:
        seen.append(dict(made.server.open))
        return await usual(params)

    made.server.answers["textDocument/diagnostic"] = look
    await listed(made)
    made.server.answers["textDocument/diagnostic"] = usual
    current = made.workspace.text(made.file(FILE))
    assert current is not None
    staged = {c.path: c.after.text for c in made.workspace.overlay.changes() if c.after is not None}
    assert seen[-1] == {made.file(FILE): current.text, **staged}
    await made.server.until(lambda: made.server.open == staged)


@keeps("fix-all.counts")
async def test_what_a_fix_all_leaves_in_the_documents_it_changes_is_counted_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, NUTS) as (made, _):
        made.server.offers = [nutless(made, leaving=1)]
        assert await counted(made) == (2, 1, None)


@keeps("fix-all.counts")
async def test_counts_are_of_the_staged_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with compiled(tmp_path, monkeypatch, NUTS) as (made, _):
        await made.agent.start()
        await stage_texts(made, {FILE: "class Apple { }\nobject a = new Nut();\n"})
        made.server.offers = [nutless(made)]
        assert await counted(made) == (2, 0, None)
        staged = await made.agent.stage((await made.agent.prepare(await listed(made), "Project")).action_id)
        assert staged.staged
        change = (await made.agent.preview()).diagnostics_change
        assert change is not None
        assert change.fixed_errors.total_count == 3


@keeps("fix-all.counts")
async def test_the_one_kind_that_becomes_fewer_is_counted_where_the_server_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, NUTS) as (made, compiler):
        compiler.error_id = "IDE0005"
        made.server.offers = [nutless(made, diagnostics=[])]
        assert await counted(made) == (3, 0, None)
        made.server.offers = [nutless(made, diagnostics=[], leaving=9)]
        before, after, why = await counted(made)
        assert (before, after) == (None, None)
        assert why is not None
        assert "which of the diagnostics" in why


@keeps("fix-all.counts")
async def test_two_kinds_that_become_fewer_are_not_counted_where_the_server_names_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, NUTS) as (made, _):
        usual = made.server.answers["textDocument/diagnostic"]

        async def doubled(params: msgspec.Raw) -> object:
            found = await usual(params)
            assert isinstance(found, dict)
            return {
                **found,
                "items": [*found["items"], *({**item, "code": "CS0103"} for item in found["items"])],
            }

        made.server.answers["textDocument/diagnostic"] = doubled
        made.server.offers = [nutless(made, diagnostics=[])]
        assert (await counted(made))[:2] == (None, None)
        made.server.offers = [nutless(made)]
        assert await counted(made) == (3, 0, None)


@keeps("fix-all.counts")
async def test_counts_that_are_not_the_whole_are_null_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, NUTS) as (made, compiler):
        made.server.offers = [nutless(made)]
        compiler.error_id = "CS0103"
        assert await counted(made) == (None, None, "The server does not report CS0246 in these documents.")
        compiler.error_id = "CS0246"
        with monkeypatch.context() as patch:
            patch.setattr("bridge.fix_counts.MOST_COMPILED", 1)  # CS0246 is the compiler's
            before, after, why = await counted(made)
            assert (before, after) == (None, None)
            assert why is not None
            assert "2 documents change" in why
        with monkeypatch.context() as patch:
            patch.setattr("bridge.fix_counts.LONGEST_COUNT", 0.05)
            action = await listed(made)
            async with made.server.held("textDocument/diagnostic") as held:
                patch.setitem(made.server.answers, "textDocument/diagnostic", once_then(made, held.released))
                prepared = await made.agent.prepare(action, "Project")
                assert prepared.affected_diagnostic_count is None
                assert prepared.counts_unavailable is not None
                assert "within 0.05 s" in prepared.counts_unavailable
        await require_back(made)


def once_then(made: Scene, released: anyio.Event) -> Callable[[msgspec.Raw], Awaitable[object]]:
    """Answers the pull that belongs to the list, and keeps the ones of the count waiting."""
    answered = False

    async def answer(_params: msgspec.Raw) -> object:
        nonlocal answered
        if answered:
            await released.wait()
        answered = True
        return {"kind": "full", "items": []}

    return answer


@keeps("fix-all.counts")
async def test_a_server_that_fails_at_one_document_gives_no_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with compiled(tmp_path, monkeypatch, NUTS) as (made, _):
        usual = made.server.answers["textDocument/diagnostic"]

        async def fails_at_other(params: msgspec.Raw) -> object:
            if b"Pear.cs" in bytes(params):
                raise ResponseError("textDocument/diagnostic", -32000, "analyzer crashed")
            return await usual(params)

        made.server.answers["textDocument/diagnostic"] = fails_at_other
        made.server.offers = [nutless(made)]
        before, after, why = await counted(made)
        assert (before, after) == (None, None)
        assert why is not None
        assert OTHER in why
        assert "analyzer crashed" in why


@keeps("fix-all.counts")
async def test_a_server_without_diagnostics_gives_no_counts(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        made.server.offers = [tidy(made)]
        before, after, why = await counted(made)
        assert (before, after) == (None, None)
        assert why is not None


@keeps("fix-all.reach")
async def test_the_project_of_a_linked_file_is_the_one_it_was_listed_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"Core/Shared.cs": "class Shared { }\n", **NUTS}
    async with compiled(tmp_path, monkeypatch, files) as (made, _):
        everything = ["Core/Shared.cs", PROGRAM]
        made.server.offers = [tidy(made, fix_all=changing(made, *everything))]
        for name, code in (("App", None), ("Core", "UnsupportedChange")):
            document = {"path": "Core/Shared.cs", "project": {"name": name}}
            (action,) = (await made.agent.listing("Core/Shared.cs", document=document)).actions.items or ()
            if code is None:
                prepared = await made.agent.prepare(action, "Project")
                assert paths_of(prepared) == [PROGRAM, "Core/Shared.cs"]
                projects = {d.project_id for d in prepared.affected_documents.items or ()}
                assert len(projects) == 1, "each document is told as that project's"
            else:
                refusal = await made.agent.refused(
                    "prepare-fix-all", actionId=action.action_id, scope="Project"
                )
                assert (refusal.code, PROGRAM in refusal.message) == (code, True)


# --- the bridge's own ---------------------------------------------------------------------------------------

OLD_NAMES = {FILE: "old_a old_b\nold_c\n", OTHER: "nothing\n", PROGRAM: "x old_a\n"}


@keeps("fix-all.scopes", "fix-all.counts", "fix-all.one-step")
@pytest.mark.parametrize(
    ("scope", "files", "count"),
    [("Document", [FILE], 3), ("Project", [FILE], 3), ("Solution", [PROGRAM, FILE], 4)],
)
async def test_on_a_server_without_fix_alls_the_bridge_makes_one_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: str, files: list[str], count: int
) -> None:
    async with fixing(tmp_path, monkeypatch, OLD_NAMES) as (made, _):
        await made.agent.start()
        (action,) = await made.agent.actions(FILE, range={"start": 0, "length": 0})
        assert action.fix_all_scopes == SCOPES
        prepared = await made.agent.prepare(action, scope)
        assert (prepared.emulated, paths_of(prepared)) == (True, files)
        assert (prepared.affected_diagnostic_count, prepared.remaining_diagnostic_count) == (count, 0)
        staged = await made.agent.stage(prepared.action_id)
        assert staged.transaction is not None
        assert staged.transaction.revision == 1
        await made.agent.commit()
        for name, text in OLD_NAMES.items():
            wanted = text.replace("old_", "new_") if name in files else text
            assert made.file(name).read_text() == wanted


async def test_a_project_without_its_packages_is_not_judged_by_a_fix_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, OLD_NAMES) as (made, _):
        (tmp_path / "packages/App/project.assets.json").unlink()
        await made.agent.start()
        (action,) = await made.agent.actions(FILE, range={"start": 0, "length": 0})
        refusal = await made.agent.refused("prepare-fix-all", actionId=action.action_id, scope="Solution")
        assert refusal.code == "FixAllUnavailable"
        assert "App.csproj are not all there" in refusal.message
        assert (await made.agent.prepare(action, "Project")).emulated


@keeps("fix-all.same")
async def test_a_fix_all_of_the_bridge_is_refused_when_a_single_fix_has_become_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, OLD_NAMES) as (made, fixer):
        await made.agent.start()
        (action,) = await made.agent.actions(FILE, range={"start": 0, "length": 0})
        prepared = await made.agent.prepare(action, "Solution")
        fixer.rules = [replace(OLD, edits=replacing("another"))]
        refusal = await made.agent.refused("stage-code-action", actionId=prepared.action_id)
        assert refusal.code == "MutationCandidateChanged"
        assert made.workspace.require_transaction().revision == 0
        fixer.rules = [OLD]
        again = await made.agent.refused("stage-code-action", actionId=prepared.action_id)
        assert again.code == "ActionExpired"


@keeps("fix-all.limit")
async def test_a_fix_all_of_the_bridge_keeps_to_the_limit_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fixing(tmp_path, monkeypatch, OLD_NAMES) as (made, _):
        (action,) = await made.agent.actions(FILE, range={"start": 0, "length": 0})
        arguments = {"actionId": action.action_id, "scope": "Solution", "maxChanges": 1}
        refusal = await made.agent.refused("prepare-fix-all", **arguments)
        assert (refusal.code, refusal.kind) == ("FixAllLimitExceeded", "ReviseRequest")
