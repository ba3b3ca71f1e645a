"""``rename-symbol`` where files are staged that are not on disk: they take part where the server finds uses in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.words import Word
from lsp_client import showing
from lsp_client.dialects import roslyn
from tests.bridge.agent import Scene
from tests.bridge.played_names import by_spelling, naming
from tests.bridge.played_server import Json
from tests.bridge.promises import keeps
from tests.bridge.staged_texts import stage_texts
from tests.bridge.test_rename_tool import (
    APPLE,
    APPLE_THERE,
    FILES,
    PEAR,
    PROGRAM,
    at,
    refused,
    rename,
    staged,
)
from tests.lsp_client.inside import views

__all__ = ["views"]  # a fixture, used by its name

pytestmark = pytest.mark.anyio

NUT, SEED = "Core/Nut.cs", "Core/Seed.cs"
NUT_TEXT = "class Nut { Apple a; }\n"
USES_NUT = "class Pear { Apple a = new Nut(); }\n"
NUT_THERE = at(NUT, NUT_TEXT, "Nut")


async def with_nut(made: Scene) -> None:
    """A type in a staged new file, and a use of it in another step."""
    await stage_texts(made, {NUT: NUT_TEXT})
    await stage_texts(made, {PEAR: USES_NUT})


@keeps("rename.new-files")
async def test_a_type_in_a_staged_new_file_is_renamed_with_its_file_before_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async with naming(tmp_path, monkeypatch, FILES, server_view="overlay") as (made, _, _compiler):
        await with_nut(made)
        data = await rename(made, NUT_THERE, "Seed")
        assert data.staged
        assert data.transaction is not None
        assert data.transaction.revision == 3
        assert (staged(made, NUT), staged(made, PEAR)) == (
            NUT_TEXT.replace("Nut", "Seed"),
            USES_NUT.replace("Nut", "Seed"),
        )
        await made.agent.undo()
        assert (staged(made, NUT), staged(made, PEAR)) == (NUT_TEXT, USES_NUT)
        await made.agent.redo()
        assert not made.file(NUT).exists()
        # Once more, from the place of a use, the file along with it; then what stands on disk, in the new file as well.
        place = at(PEAR, staged(made, PEAR), "Seed")
        assert (await rename(made, place, "Pip", renameFile=False)).staged
        assert (await rename(made, at(NUT, staged(made, NUT), "Pip"), "Nut")).staged
        moved = await rename(made, at(NUT, NUT_TEXT, "Nut"), "Seed", renameFile=True)
        assert moved.staged
        assert made.workspace.text(made.file(NUT)) is None
        assert (await rename(made, APPLE_THERE, "Fruit")).staged
        assert staged(made, SEED) == "class Seed { Fruit a; }\n"
        await made.agent.commit()
        assert not made.file(NUT).exists()
        assert made.file(SEED).read_text() == "class Seed { Fruit a; }\n"
        assert made.file(PEAR).read_text() == "class Pear { Fruit a = new Seed(); }\n"


@keeps("rename.new-files")
async def test_a_file_that_was_moved_by_a_rename_takes_part_in_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async with naming(tmp_path, monkeypatch, FILES, server_view="overlay") as (made, _, _compiler):
        await rename(made, APPLE_THERE, "Fruit", renameFile=True)
        place = at("Core/Fruit.cs", "class Fruit { }\n", "Fruit")
        assert (await rename(made, place, "Berry", renameFile=True)).staged
        await made.agent.commit()
        assert sorted(path.name for path in made.file("Core").glob("*.cs")) == ["Berry.cs", "Pear.cs"]
        assert made.file("Core/Berry.cs").read_text() == "class Berry { }\n"
        assert made.file(PEAR).read_text() == "class Pear { Berry a; }\n"


@keeps("rename.new-files")
@pytest.mark.parametrize("view", ["text", "overlay"])
async def test_a_staged_deletion_neither_hinders_a_rename_nor_is_undone_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None, view: str
) -> None:
    async with naming(tmp_path, monkeypatch, FILES, server_view=view) as (made, _, _compiler):
        await stage_texts(made, {PEAR: None})
        assert (await rename(made, APPLE_THERE, "Pear")).staged, "the only Pear is gone"
        assert made.workspace.overlay.is_deleted(made.file(PEAR))
        await made.agent.commit()
        assert not made.file(PEAR).exists()
        assert made.file(APPLE).read_text() == "class Pear { }\n"


@keeps("rename.new-files")
async def test_conflicts_in_a_staged_new_file_are_seen_as_anywhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    async with naming(tmp_path, monkeypatch, FILES, server_view="overlay") as (made, names, compiler):
        await with_nut(made)
        taken = await refused(made, APPLE_THERE, "Nut")
        assert (taken.code, f"{NUT}:1:7" in taken.message) == ("RenameConflict", True)

        def without_new_file(changes: list[Json]) -> list[Json]:
            return [change for change in changes if "Nut.cs" not in str(change["textDocument"])]

        names.alter = without_new_file
        left = await refused(made, APPLE_THERE, "Fruit")
        assert (left.code, f"leaves out the use at {NUT}:1:13" in left.message) == ("RenameConflict", True)
        names.alter = lambda changes: changes
        # An error that comes into the new file, which the edit does not touch.
        own = "class Nut { object f = new Pip(); }\nclass Pip { }\n"
        await stage_texts(made, {NUT: own})
        compiler.hidden = {"Core": "Pit"}
        broken = await refused(made, at(NUT, own, "Pip"), "Pit")
        assert broken.code == "RenameConflict", broken


@keeps("rename.new-files")
async def test_a_word_of_a_new_file_that_the_server_is_silent_about_leaves_the_question_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    """Also when it is not the word that is renamed: a file that is not compiled would be silent in the same way."""

    def silent(path: Path, text: str, word: Word) -> object:
        return None if path.name == "Nut.cs" else by_spelling(path, text, word)

    async with naming(tmp_path, monkeypatch, FILES, server_view="overlay") as (made, names, _):
        names.meaning = silent
        await with_nut(made)
        refusal = await refused(made, APPLE_THERE, "Fruit")
        assert (refusal.code, f"{NUT}:1:13" in refusal.message) == ("RenameUnverified", True)
        assert (await rename(made, at(PROGRAM, FILES[PROGRAM], "Program"), "App")).staged


@keeps("rename.new-files")
async def test_a_new_file_that_the_server_takes_into_no_project_is_refused_with_that_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    monkeypatch.setattr(roslyn, "SECOND_LOOK", 0.1)
    async with naming(tmp_path, monkeypatch, FILES, server_view="overlay") as (made, names, compiler):
        compiler.strangers = {"Nut.cs"}
        await with_nut(made)
        refusal = await refused(made, APPLE_THERE, "Fruit")
        assert refusal.code == "RenameUnverified"
        assert f"({NUT}): {showing.NO_MEMBER}" in refusal.message
        assert "--server-view" not in refusal.message, "it is on"
        assert names.renames == 0


@keeps("rename.new-files")
async def test_where_the_server_has_only_the_disk_to_go_by_the_refusal_says_so_and_what_leads_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with naming(tmp_path, monkeypatch, FILES) as (made, names, _):
        await with_nut(made)
        for place in (APPLE_THERE, NUT_THERE, at(PEAR, USES_NUT, "Nut")):
            refusal = await refused(made, place, "Fruit")
            assert refusal.code == "RenameUnverified"
            assert f"({NUT}): {showing.LATER}" in refusal.message
            assert "Commit first" in refusal.message
            assert "--server-view overlay" in refusal.message
        await stage_texts(made, {NUT: '/// <see cref="Program"/>\nclass Nut { Apple a; } // Applet\n'})
        documented = await refused(made, at(PROGRAM, FILES[PROGRAM], "Program"), "App")
        assert (documented.code, NUT in documented.message) == ("RenameUnverified", True)
        await made.agent.undo()
        assert names.renames == 0
        assert (await rename(made, at(PROGRAM, FILES[PROGRAM], "Program"), "App")).staged, (
            "named nowhere else"
        )


@keeps("rename.new-files")
async def test_where_a_view_cannot_be_had_the_refusal_says_why_and_does_not_advise_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "Läden & mehr/state"
    async with naming(tmp_path, monkeypatch, FILES, server_view="overlay", state_directory=state) as found:
        made, _, _compiler = found
        await with_nut(made)
        refusal = await refused(made, APPLE_THERE, "Fruit")
        assert refusal.code == "RenameUnverified"
        assert "the state directory lies inside the workspace" in refusal.message
        assert "--server-view" not in refusal.message


DERIVED = "class Red : Fruit { }\n"
PLAIN = "class Red { }\n"
METHOD = "class Apple {\nvoid Eat() { }\n}\n"


@keeps("rename.new-files")
@pytest.mark.parametrize(
    ("text", "new_name", "is_staged"),
    [(PLAIN, "Bite", True), (DERIVED, "Bite", False), (PLAIN, "Dispose", False)],
)
async def test_a_new_file_that_may_use_a_member_without_writing_its_name_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, new_name: str, *, is_staged: bool
) -> None:
    """An interface may be implemented by what a base declares, and a ``using`` calls ``Dispose``."""
    async with naming(tmp_path, monkeypatch, {**FILES, APPLE: METHOD}) as (made, _, _compiler):
        await stage_texts(made, {"Core/Red.cs": text})
        place = at(APPLE, METHOD, "Eat")
        if is_staged:
            assert (await rename(made, place, new_name)).staged
            return
        refusal = await refused(made, place, new_name)
        assert (refusal.code, "Core/Red.cs" in refusal.message) == ("RenameUnverified", True)
        data = await rename(made, place, new_name, allowConflicts=True)
        assert data.conflicts is not None
        assert "Core/Red.cs" in data.conflicts[0]


@keeps("rename.new-files")
async def test_syntax_of_a_new_file_that_uses_a_name_unseen_is_a_reason_as_in_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, views: None
) -> None:
    files = {**FILES, APPLE: METHOD}
    async with naming(tmp_path, monkeypatch, files, server_view="overlay") as (made, _, _compiler):
        await stage_texts(made, {"Core/Red.cs": "class Red {\nvoid Run() { await Task; }\n}\n"})
        refusal = await refused(made, at(APPLE, METHOD, "Eat"), "GetAwaiter")
        assert (refusal.code, "Core/Red.cs:2" in refusal.message) == ("RenameUnverified", True)
        data = await rename(made, at(APPLE, METHOD, "Eat"), "Bite")
        assert data.staged
