"""``rename-symbol`` on a server that renames without a thought: what is staged, and what is refused and why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec
import pytest

from bridge.words import Word
from lsp_client.uris import path_to_uri
from schemas.renames import RenameSymbolData
from tests.bridge.agent import Refusal, Scene, opened
from tests.bridge.played_names import naming
from tests.bridge.played_server import Json
from tests.bridge.promises import keeps

APPLE, PEAR, PROGRAM = "Core/Apple.cs", "Core/Pear.cs", "App/Program.cs"

FILES: Mapping[str, str] = {
    APPLE: "class Apple { }\n",
    PEAR: "class Pear { Apple a; }\n",
    PROGRAM: "class Program { object o = new Apple(); }\n",
}


def at(path: str, text: str, word: str, number: int = 0) -> Json:
    """A place by its offset: some occurrence of a word."""
    index = -1
    for _ in range(number + 1):
        index = text.index(word, index + 1)
    return {"location": {"span": {"document": {"path": path}, "range": {"start": index, "length": 0}}}}


APPLE_THERE = at(APPLE, FILES[APPLE], "Apple")


async def rename(made: Scene, symbol: Json, new_name: str, **more: object) -> RenameSymbolData:
    return await made.agent.ask(RenameSymbolData, "rename-symbol", symbol=symbol, newName=new_name, **more)


async def refused(made: Scene, symbol: Json, new_name: str, **more: object) -> Refusal:
    """A refused rename: the revision is what it was, and nothing is written."""
    before = made.workspace.require_transaction().current
    refusal = await made.agent.refused("rename-symbol", symbol=symbol, newName=new_name, **more)
    assert made.workspace.require_transaction().current is before
    return refusal


def staged(made: Scene, path: str) -> str:
    text = made.workspace.text(made.file(path))
    assert text is not None
    return text.text


@keeps("rename.whole")
@pytest.mark.anyio
async def test_a_rename_is_staged_in_all_files_as_one_revision_and_undone_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, _, _compiler):
        data = await rename(made, at(PEAR, FILES[PEAR], "Apple"), "Fruit")
        assert data.staged
        assert data.transaction is not None
        assert data.transaction.revision == 1
        assert staged(made, APPLE) == "class Fruit { }\n"
        assert staged(made, PEAR) == "class Pear { Fruit a; }\n"
        assert "new Fruit()" in staged(made, PROGRAM)
        assert made.file(APPLE).read_text() == FILES[APPLE], "nothing is written before the commit"
        await made.agent.undo()
        assert {path: staged(made, path) for path in FILES} == FILES
        await made.agent.redo()
        await made.agent.commit()
        assert made.file(APPLE).read_text() == "class Fruit { }\n"


@keeps("rename.same-name")
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["Apple", "@Apple", r"\u0041pple", "Ap\u00adple"])
async def test_the_name_it_has_already_stages_nothing_and_asks_for_no_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        data = await rename(made, APPLE_THERE, name)
        assert (data.staged, names.renames) == (False, 0)
        assert made.workspace.require_transaction().revision == 0


@keeps("rename.name")
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["1 bad", "", "class", "a.b", "Apple<T>", "record", "var"])
async def test_a_name_that_the_type_cannot_have_is_refused_before_the_server_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        assert (await refused(made, APPLE_THERE, name)).code == "InvalidRequest"
        assert names.renames == 0


@keeps("rename.binding")
@pytest.mark.anyio
async def test_a_name_that_is_taken_is_a_conflict_that_names_the_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, _, compiler):
        compiler.pulled.clear()
        refusal = await refused(made, APPLE_THERE, "Pear")
        assert refusal.code == "RenameConflict"
        assert f"{PEAR}:1:7" in refusal.message
        assert compiler.pulled == [], "the uses alone have decided"


@keeps("rename.binding")
@pytest.mark.anyio
async def test_a_word_that_comes_to_mean_something_else_is_a_conflict_although_it_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second ``Pear`` in a file takes over what the first one there meant, as a local does that hides a field."""

    def nearest(path: Path, whole: str, word: Word) -> object:
        is_hidden = word.value == "Pear" and whole.count("Pear") > 1 and "class" not in whole
        return ("local", path) if is_hidden else word.value

    files = {**FILES, PROGRAM: "void Main() { var inner = 1; Use(Pear, inner); }\n"}
    async with naming(tmp_path, monkeypatch, files) as (made, names, compiler):
        names.meaning = nearest
        compiler.pulled.clear()
        refusal = await refused(made, at(PROGRAM, files[PROGRAM], "inner"), "Pear")
        assert refusal.code in {"RenameConflict", "SymbolCannotBeRenamed"}, refusal
        assert f"{PROGRAM}:1:33" in refusal.message
        assert compiler.pulled == []


@keeps("rename.errors")
@pytest.mark.anyio
async def test_new_compiler_errors_are_a_conflict_with_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, _, compiler):
        compiler.hidden = {"App": "Fruit"}
        refusal = await refused(made, APPLE_THERE, "Fruit")
        assert refusal.code == "RenameConflict"
        assert "CS0246" in refusal.message
        assert PROGRAM in refusal.message


@keeps("rename.allow-conflicts")
@pytest.mark.anyio
async def test_conflicts_are_let_through_on_demand_and_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, _, compiler):
        compiler.hidden = {"App": "Pear"}
        data = await rename(made, APPLE_THERE, "Pear", allowConflicts=True)
        assert data.staged
        assert data.conflicts is not None
        assert any("CS0246" in conflict for conflict in data.conflicts)
        assert any("would mean" in conflict for conflict in data.conflicts)


@keeps("rename.errors")
@pytest.mark.anyio
async def test_errors_that_were_there_do_not_hinder_a_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {**FILES, PEAR: "class Pear { Apple a = new Nut(); }\n"}
    async with naming(tmp_path, monkeypatch, files) as (made, _, _compiler):
        assert (await rename(made, APPLE_THERE, "Fruit")).staged


@keeps("rename.whole")
@pytest.mark.anyio
async def test_an_edit_that_leaves_out_a_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        names.alter = lambda changes: changes[:1]
        refusal = await refused(made, APPLE_THERE, "Fruit")
        assert refusal.code == "RenameConflict"
        assert "leaves out the use" in refusal.message


@keeps("rename.whole")
@pytest.mark.anyio
async def test_an_edit_that_comes_once_for_each_project_is_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        names.alter = lambda changes: [*changes, *changes]
        assert (await rename(made, APPLE_THERE, "Fruit")).staged
        assert staged(made, PEAR) == "class Pear { Fruit a; }\n"


@keeps("rename.whole")
@pytest.mark.anyio
async def test_an_edit_that_rewrites_code_is_refused_with_what_it_would_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def qualified(changes: list[Json]) -> list[Json]:
        place = {"line": 0, "character": 13}
        edit: Json = {"range": {"start": place, "end": place}, "newText": "Shop."}
        pear = next(change for change in changes if "Pear" in str(change["textDocument"]))
        edits = pear["edits"]
        assert isinstance(edits, list)
        edits.insert(0, edit)
        return changes

    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        names.alter = qualified
        refusal = await refused(made, APPLE_THERE, "Fruit")
        assert refusal.code == "RenameConflict"
        assert "'Apple' to 'Shop.Fruit'" in refusal.message
        assert (await rename(made, APPLE_THERE, "Fruit", allowConflicts=True)).staged


@keeps("rename.kinds")
@pytest.mark.anyio
async def test_what_an_assembly_declares_is_not_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        names.in_assembly = {"object"}
        # A keyword names nothing; a name that only an assembly declares is something else.
        assert (await refused(made, at(PROGRAM, FILES[PROGRAM], "object"), "x")).code == "SymbolNotFound"
        names.in_assembly = {"Apple"}
        assert (await refused(made, at(PEAR, FILES[PEAR], "Apple"), "x")).code == "SymbolCannotBeRenamed"


@keeps("rename.kinds")
@pytest.mark.anyio
async def test_main_and_overrides_of_what_an_assembly_declares_keep_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Apple {\nvoid Main() { }\noverride void Show() { }\n}\n"
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, _, _compiler):
        main = await refused(made, at(APPLE, text, "Main"), "Begin")
        assert (main.code, "starts" in main.message) == ("SymbolCannotBeRenamed", True)
        show = await refused(made, at(APPLE, text, "Show"), "Print")
        assert (show.code, "assembly" in show.message) == ("SymbolCannotBeRenamed", True)


@pytest.mark.anyio
async def test_an_override_whose_root_is_in_the_source_is_renamed_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Apple {\nvirtual void Show() { }\n}\nclass Red {\noverride void Show() { }\n}\n"
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, _, _compiler):
        assert (await rename(made, at(APPLE, text, "Show", 1), "Print")).staged
        assert staged(made, APPLE) == text.replace("Show", "Print")


@keeps("rename.kinds")
@pytest.mark.anyio
async def test_a_server_that_gives_no_edit_is_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        names.alter = lambda _changes: None
        assert (await refused(made, APPLE_THERE, "Fruit")).code == "SymbolCannotBeRenamed"


@pytest.mark.anyio
async def test_a_constructor_stands_for_its_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "class Apple {\npublic Apple() { }\n}\n"
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, _, _compiler):
        assert (await rename(made, at(APPLE, text, "Apple", 1), "Fruit")).staged
        assert staged(made, APPLE) == text.replace("Apple", "Fruit")


# --- options ------------------------------------------------------------------------------------------------

OVERLOADS = "class Apple {\nvoid Eat(int a) { }\nvoid Eat(long b) { }\n}\n"


def overloads_apart(_path: Path, text: str, word: Word) -> object:
    """Two methods of one name, the second one with a long."""
    return (word.value, text[word.end :].startswith("(long"))


@keeps("rename.options")
@pytest.mark.anyio
async def test_overloads_that_the_server_would_rename_against_the_wish_are_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: OVERLOADS}) as (made, names, _):
        names.meaning = overloads_apart
        place = at(APPLE, OVERLOADS, "Eat")

        def both(changes: list[Json]) -> list[Json]:
            where = {"start": {"line": 2, "character": 5}, "end": {"line": 2, "character": 8}}
            edits = changes[0]["edits"]
            assert isinstance(edits, list)
            edits.append({"range": where, "newText": "Bite"})
            return changes

        names.alter = both
        for wish in ({}, {"renameOverloads": False}):
            assert (await refused(made, place, "Bite", **wish)).code == "RenameOptionUnavailable"
        assert (await rename(made, place, "Bite", renameOverloads=True)).staged
        assert staged(made, APPLE) == OVERLOADS.replace("Eat", "Bite")


@keeps("rename.options")
@pytest.mark.anyio
async def test_overloads_that_the_server_leaves_are_a_refusal_when_they_were_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: OVERLOADS}) as (made, names, _):
        names.meaning = overloads_apart
        place = at(APPLE, OVERLOADS, "Eat")
        assert (await refused(made, place, "Bite", renameOverloads=True)).code == "RenameOptionUnavailable"
        assert (await rename(made, place, "Bite", renameOverloads=False)).staged
        assert staged(made, APPLE) == OVERLOADS.replace("Eat(int", "Bite(int")


@keeps("rename.options")
@pytest.mark.anyio
async def test_comments_and_strings_are_changed_exactly_where_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '// Apple, Apples\nclass Apple { string s = "an Apple"; } // Apple\n'
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, _, _compiler):
        place = at(APPLE, text, "Apple", 2)
        await rename(made, place, "Fruit", renameInComments=True, renameInStrings=False)
        assert staged(made, APPLE) == '// Fruit, Apples\nclass Fruit { string s = "an Apple"; } // Fruit\n'
        await made.agent.undo()
        data = await rename(made, place, "Fruit", renameInStrings=True)
        assert staged(made, APPLE) == '// Apple, Apples\nclass Fruit { string s = "an Fruit"; } // Apple\n'
        assert data.not_renamed is not None
        assert [(m.kind, m.line, m.column) for m in data.not_renamed.items or ()] == [
            ("Comment", 1, 4),
            ("Comment", 2, 43),
        ]


@keeps("rename.options")
@pytest.mark.anyio
async def test_the_file_of_a_type_moves_only_when_it_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        new = path_to_uri(made.file("Core/Fruit.cs"))

        def moved(changes: list[Json]) -> list[Json]:
            old = path_to_uri(made.file(APPLE))
            return [*changes, {"kind": "rename", "oldUri": old, "newUri": new}]

        names.alter = moved
        await rename(made, APPLE_THERE, "Fruit")
        assert staged(made, APPLE) == "class Fruit { }\n", "nobody asked for the move that the server makes"
        await made.agent.undo()
        names.alter = lambda changes: changes
        await rename(made, APPLE_THERE, "Fruit", renameFile=True)
        assert staged(made, "Core/Fruit.cs") == "class Fruit { }\n"
        assert made.workspace.overlay.is_deleted(made.file(APPLE))
        await made.agent.commit()
        assert not made.file(APPLE).exists()


@keeps("rename.options")
@pytest.mark.anyio
async def test_a_type_whose_file_is_called_otherwise_leaves_it_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {**FILES, PEAR: "class Pear { Apple a; }\nclass Other { }\n"}
    async with naming(tmp_path, monkeypatch, files) as (made, _, _compiler):
        data = await rename(made, at(PEAR, files[PEAR], "Other"), "Fruit", renameFile=True)
        assert data.notes is not None
        assert "No file bears the name" in data.notes[0]


# --- what is left, generated code, other trees --------------------------------------------------------------


@keeps("rename.mentions")
@pytest.mark.anyio
async def test_mentions_in_text_inactive_code_and_other_files_are_listed_as_not_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Apple { }\n#if NEVER\nApple dead;\n#endif\n// Apple\n"

    def compiled_only(_path: Path, whole: str, word: Word) -> object:
        return None if word.is_conditional else word.value

    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, names, _):
        names.meaning = compiled_only
        made.file("App/View.razor").write_text("<p>@Apple</p>\n<Apples/>\n")
        made.file("App/bin").mkdir()
        made.file("App/bin/Copy.json").write_text('"Apple"')
        data = await rename(made, APPLE_THERE, "Fruit")
        assert data.not_renamed is not None
        found = [(m.kind, m.path, m.line, m.column, m.text) for m in data.not_renamed.items or ()]
        assert found == [
            ("Comment", APPLE, 5, 4, "// Apple"),
            ("InactiveCode", APPLE, 3, 1, "Apple dead;"),
            ("OtherFile", "App/View.razor", 1, 5, "<p>@Apple</p>"),
        ]


GENERATED = "Core/obj/Apple.g.cs"


def with_generated(tmp_path: Path, text: str) -> Mapping[str, str]:
    """The files, and a generated one that a build has written."""
    (tmp_path / "Läden & mehr" / GENERATED).parent.mkdir(parents=True)
    return {**FILES, GENERATED: text}


@keeps("rename.generated")
@pytest.mark.anyio
async def test_edits_in_generated_files_are_proved_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = with_generated(tmp_path, "class Apple { Apple a; Seed b; }\nclass Seed { }\n")
    async with naming(tmp_path, monkeypatch, files) as (made, _, _compiler):
        data = await rename(made, APPLE_THERE, "Fruit")
        assert data.dropped_edits == 2
        assert staged(made, GENERATED) == files[GENERATED]
        assert staged(made, APPLE) == "class Fruit { }\n"
        only = await refused(made, at(GENERATED, "class Apple { Apple a; Seed b; }", "Seed"), "Pip")
        assert only.code == "SymbolCannotBeRenamed"


@keeps("rename.generated")
@pytest.mark.anyio
async def test_errors_of_generated_halves_are_no_conflict_and_are_said_to_be_expected_until_the_next_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, half = "no-new-compiler-errors", "class Half { object other = new Apple(); }\n"
    files = with_generated(tmp_path, half)
    async with naming(tmp_path, monkeypatch, files, commit_validation=gate) as (made, _, _compiler):

        async def doubt() -> str | None:
            change = (await made.agent.preview()).diagnostics_change
            assert change is not None
            return change.unreliable

        place = at(PROGRAM, FILES[PROGRAM], "Program")
        await rename(made, place, "Start")
        assert await doubt() is None
        data = await rename(made, APPLE_THERE, "Fruit")
        (note,) = data.notes or ()
        assert GENERATED in note
        assert "until the next build" in note
        assert await doubt() == note
        await rename(made, at(PEAR, staged(made, PEAR), "Pear"), "Plum")
        assert await doubt() == note, "as long as that rename is staged"
        for _ in range(2):
            await made.agent.undo()
        assert await doubt() is None
        await made.agent.redo()
        refusal = await made.agent.refused("transaction-commit")
        assert (refusal.code, note in refusal.message) == ("NewCompilerErrors", True)
        assert made.file(GENERATED).read_text() == half


@keeps("rename.generated")
@pytest.mark.anyio
async def test_a_commit_that_leaves_generated_files_with_the_old_name_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = with_generated(tmp_path, "class Apple { }\n")
    async with naming(tmp_path, monkeypatch, files) as (made, _, _compiler):
        await rename(made, APPLE_THERE, "Fruit")
        (note,) = (await made.agent.commit()).notes or ()
        assert GENERATED in note
        assert made.file(GENERATED).read_text() == "class Apple { }\n"


@keeps("rename.unverified")
@pytest.mark.anyio
async def test_a_document_that_the_compiler_does_not_answer_for_leaves_the_question_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, _, compiler):
        compiler.strangers = {"Program.cs"}
        assert (await refused(made, APPLE_THERE, "Fruit")).code in {"RenameUnverified", "RenameConflict"}


@keeps("rename.unverified")
@pytest.mark.anyio
async def test_a_method_called_as_a_query_operator_is_refused_only_where_there_are_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Apple {\nvoid Map(int a) { }\n}\n"
    query = "class Program { object o = from a in b select a; }\n"
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text, PROGRAM: query}) as (made, _, _compiler):
        place = at(APPLE, text, "Map")
        refusal = await refused(made, place, "Select")
        assert (refusal.code, "Program.cs" in refusal.message) == ("RenameUnverified", True)
        assert refusal.message.count("a query") == 1
        for name in ("AppendFormatted", "Slice", "PrintMembers", "GetPinnableReference", "Length"):
            assert (await rename(made, place, name)).staged, "nothing here is written with its syntax"
            await made.agent.undo()
        data = await rename(made, place, "Select", allowConflicts=True)
        assert data.staged
        assert data.conflicts is not None
        assert "App/Program.cs:1" in data.conflicts[0]
    async with naming(tmp_path / "without", monkeypatch, {**FILES, APPLE: text}) as (made, _, _compiler):
        assert (await rename(made, place, "Select")).staged


@keeps("rename.unverified")
@pytest.mark.anyio
async def test_syntax_in_a_project_that_the_rename_does_not_concern_is_no_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``App`` references ``Core``, and not the other way round."""
    loop = "class Loop {\nvoid Run() { await Task; }\n}\n"
    method = "class Program {\nvoid Run2() { }\n}\n"
    async with naming(tmp_path, monkeypatch, {**FILES, PEAR: loop, PROGRAM: method}) as (made, _, _compiler):
        assert (await rename(made, at(PROGRAM, method, "Run2"), "GetAwaiter")).staged
        await made.agent.undo()
        refusal = await refused(made, at(PEAR, loop, "Run"), "GetAwaiter")
        assert (refusal.code, f"{PEAR}:2" in refusal.message) == ("RenameUnverified", True)


@keeps("rename.binding")
@pytest.mark.anyio
async def test_a_static_method_does_not_become_main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "class Apple {\nstatic void Begin() { }\nvoid Other() { }\n}\n"
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, _, _compiler):
        refusal = await refused(made, at(APPLE, text, "Begin"), "Main")
        assert (refusal.code, "a program starts with" in refusal.message) == ("RenameConflict", True)
        assert (await rename(made, at(APPLE, text, "Other"), "Main")).staged


@keeps("rename.binding")
@pytest.mark.anyio
async def test_a_name_that_a_member_takes_over_is_a_conflict_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Pear {\nvoid Eat() { var bite = 1;\nUse(new { bite }); }\n}\n"
    async with naming(tmp_path, monkeypatch, {**FILES, PEAR: text}) as (made, _, _compiler):
        refusal = await refused(made, at(PEAR, text, "bite"), "piece")
        assert refusal.code == "RenameConflict"
        assert f"inferred as a member name of the anonymous type at {PEAR}:3" in refusal.message


@keeps("rename.name")
@pytest.mark.anyio
async def test_a_name_with_its_accents_apart_is_composed_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, _, _compiler):
        data = await rename(made, APPLE_THERE, "Poire\u0301")
        assert data.notes is not None
        assert "form C" in data.notes[0]
        assert staged(made, APPLE) == "class Poir\u00e9 { }\n"


@keeps("rename.server")
@pytest.mark.anyio
async def test_a_server_of_syntax_only_is_honest(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        assert (await refused(made, APPLE_THERE, "Fruit")).code == "NotSupported"


@keeps("rename.server")
@pytest.mark.anyio
async def test_after_a_refusal_the_server_sees_the_current_texts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        await refused(made, APPLE_THERE, "Pear")
        assert names.asked_about[-1] != names.asked_about[0], "the last question was about the planned text"
        await made.agent.listing(APPLE)
        assert {path: made.server.seen(made.file(path)) for path in FILES} == FILES


@keeps("rename.server")
@pytest.mark.anyio
async def test_a_server_that_dies_in_the_proof_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        usual = made.server.answers["textDocument/references"]

        async def die_once(params: msgspec.Raw) -> object:
            if len(made.server.processes) == 1 and names.renames:
                made.server.kill()
                await anyio.sleep_forever()
            return await usual(params)

        made.server.answers["textDocument/references"] = die_once
        assert (await rename(made, APPLE_THERE, "Fruit")).staged
        assert len(made.server.processes) == 2


@keeps("rename.server")
@pytest.mark.anyio
async def test_a_cancelled_rename_leaves_the_transaction_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, _, _compiler):
        for method in ("textDocument/rename", "textDocument/diagnostic"):
            async with made.server.held(method) as held, anyio.create_task_group() as tasks:
                tasks.start_soon(rename, made, APPLE_THERE, "Fruit")
                await held.reached.wait()
                tasks.cancel_scope.cancel()
            assert made.workspace.require_transaction().revision == 0
        assert (await rename(made, APPLE_THERE, "Fruit")).staged


@keeps("rename.unverified")
@pytest.mark.anyio
async def test_a_server_that_tells_no_uses_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none(_params: msgspec.Raw) -> object:
        return []

    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        made.server.answers["textDocument/references"] = none
        assert (await refused(made, APPLE_THERE, "Fruit")).code == "RenameUnverified"
        assert names.renames == 0


@keeps("rename.unverified")
@pytest.mark.anyio
async def test_more_symbols_of_the_new_name_than_are_asked_for_leave_the_question_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.bindings.MOST_SYMBOLS", 2)
    text = "class Apple { int Nut; int Nut; int Nut; }\n"

    def each_its_own(path: Path, _text: str, word: Word) -> object:
        return (path, word.start) if word.value == "Nut" else word.value

    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, names, _):
        names.meaning = each_its_own
        assert (await refused(made, APPLE_THERE, "Nut")).code == "RenameUnverified"


# --- selectors ----------------------------------------------------------------------------------------------


@keeps("select.symbol")
@pytest.mark.anyio
async def test_each_way_a_symbol_selector_can_be_wrong_has_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def selected(text: str, **more: object) -> Json:
        return {"location": {"selection": {"document": {"path": APPLE}, "selectedText": text, **more}}}

    text = "class Apple { Apple a; // b\n}\n"
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, names, _):
        span = APPLE_THERE["location"]
        wrong: Mapping[str, tuple[Json, ...]] = {
            "SymbolSelectorInvalid": (
                {},
                {**APPLE_THERE, "documentationCommentId": "T:Apple"},
                {"documentationCommentId": "Apple"},
                {"documentationCommentId": "M:Apple.#ctor"},
            ),
            "LocationSelectorInvalid": (
                {"location": {}},
                {"location": {**span, **selected("a")["location"]}},  # type: ignore[dict-item]  # both are objects
            ),
            "LocationNotFound": (selected("Nut"),),
            "LocationAmbiguous": (selected("Apple"),),
            "InvalidRange": (
                {"location": {"span": {"document": {"path": APPLE}, "range": {"start": 9999, "length": 0}}}},
            ),
            "DocumentNotFound": (
                {"location": {"span": {"document": {"path": "No.cs"}, "range": {"start": 0, "length": 0}}}},
            ),
            "ProjectNotFound": ({**APPLE_THERE, "project": {"name": "Nowhere"}},),
            "SymbolNotFound": (
                {**APPLE_THERE, "project": {"name": "App"}},
                selected("class"),
                selected("{"),
                selected("b", contextBefore="// "),
                {"documentationCommentId": "T:Nut"},
                {"documentationCommentId": "M:Apple"},
                {"documentationCommentId": "T:Other.Apple"},
            ),
        }
        for code, symbols in wrong.items():
            for symbol in symbols:
                assert (await refused(made, symbol, "Fruit")).code == code, symbol
        assert names.renames == 0
        assert (await rename(made, selected("Apple", contextAfter=" a;"), "Fruit")).staged


@keeps("select.symbol")
@pytest.mark.anyio
async def test_a_documentation_comment_id_names_a_declaration_by_its_parameters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: OVERLOADS}) as (made, names, _):
        names.meaning = overloads_apart
        symbol: Json = {"documentationCommentId": "M:Apple.Eat(System.Int64)"}
        assert (await rename(made, symbol, "Bite")).staged
        assert staged(made, APPLE) == OVERLOADS.replace("Eat(long", "Bite(long")
        await made.agent.undo()
        missing: Json = {"documentationCommentId": "M:Apple.Eat(System.String)"}
        assert (await refused(made, missing, "Bite")).code == "SymbolNotFound"


@keeps("select.symbol")
@pytest.mark.anyio
async def test_a_documentation_comment_id_takes_arrays_and_references_for_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Apple {\nvoid Eat([A] int[] a, ref int[,]  b) { }\n}\n"
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, _, _compiler):
        symbol: Json = {"documentationCommentId": "M:Apple.Eat(System.Int32[],System.Int32[0:,0:]@)"}
        assert (await rename(made, symbol, "Bite")).staged
        flat: Json = {"documentationCommentId": "M:Apple.Bite(System.Int32,System.Int32[0:,0:]@)"}
        assert (await refused(made, flat, "Eat")).code == "SymbolNotFound"


@keeps("select.symbol")
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["B", "A.B"])
async def test_a_documentation_comment_id_finds_what_a_dotted_namespace_declares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Servers call ``namespace A.B`` by its last name, and its place is the whole of it."""
    text = "namespace A.B;\nclass Apple {\nvoid Eat() { }\n}\n"
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, _, _compiler):
        plain = made.server.answers["textDocument/documentSymbol"]

        async def in_namespace(params: msgspec.Raw) -> object:
            inside = await plain(params)
            if APPLE.encode() not in bytes(params):
                return inside
            place = {"start": {"line": 0, "character": 10}, "end": {"line": 0, "character": 13}}
            return [{"name": name, "kind": 3, "range": place, "selectionRange": place, "children": inside}]

        made.server.answers["textDocument/documentSymbol"] = in_namespace
        for wrong in ("T:B.Apple", "T:A.Apple", "T:Apple", "T:A.B.B.Apple", "N:B", "N:A.B.Apple"):
            assert (await refused(made, {"documentationCommentId": wrong}, "Bite")).code == "SymbolNotFound"
        for right, changed in (
            ("T:A.B.Apple", text.replace("Apple", "Zz")),
            ("M:A.B.Apple.Eat", text.replace("Eat", "Zz")),
            ("N:A", text.replace("A.B", "Zz.B")),
            ("N:A.B", text.replace("A.B", "A.Zz")),
        ):
            assert (await rename(made, {"documentationCommentId": right}, "Zz")).staged, right
            assert staged(made, APPLE) == changed
            await made.agent.undo()


@keeps("select.symbol")
@pytest.mark.anyio
async def test_an_id_that_fits_twice_is_ambiguous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "class Apple {\nvoid Eat(A.Nut a) { }\nvoid Eat(B.Nut b) { }\n}\n"

    def apart(_path: Path, whole: str, word: Word) -> object:
        return (word.value, word.value == "Eat" and whole[word.end :].startswith("(B"))

    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: text}) as (made, names, _):
        names.meaning = apart
        symbol: Json = {"documentationCommentId": "M:Apple.Eat(A.Nut)"}
        assert (await refused(made, symbol, "Bite")).code == "SymbolAmbiguous"


@keeps("select.snapshot-first")
@pytest.mark.anyio
async def test_an_old_snapshot_is_refused_before_the_symbol_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, _, _compiler):
        old = made.agent.snapshot
        await rename(made, APPLE_THERE, "Fruit")
        refusal = await refused(made, {}, "1 bad", expectedSnapshot=old)
        assert refusal.code == "SnapshotMismatch"


@pytest.mark.anyio
async def test_a_rename_needs_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, _, _compiler):
        await made.agent.roll_back()
        refusal = await made.agent.refused("rename-symbol", symbol=APPLE_THERE, newName="Fruit")
        assert refusal.code == "NoActiveTransaction"
