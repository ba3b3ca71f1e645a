"""Names that move, return and swap inside one transaction, and names that are hardly names at all.

Each story is staged twice, as one edit and as one edit a step, and both must end in the same bytes on disk.
"""

import os
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.transactions.test_edits import CaseBlind, World, edit, insert
from tests.transactions.worlds import picture
from transactions.commit import commit
from transactions.edits import CreateFile, DeleteFile, Operation
from transactions.errors import CommitConflict

FILES = {"A.cs": b"class A { }\n", "B.cs": b"class B { }\r\n", "C.cs": b"\xef\xbb\xbfclass C { }\n"}
A, B, C = FILES["A.cs"], FILES["B.cs"], FILES["C.cs"]

Story = Callable[[World], Sequence[Operation]]


def contents(root: Path) -> dict[str, bytes]:
    return {
        name: data
        for name, (_, data) in picture(root).items()
        if isinstance(data, bytes) and (root / name).is_file()
    }


STORIES: Mapping[str, tuple[Story, Mapping[str, bytes]]] = {
    "chain, last name first": (
        lambda w: [w.rename("C.cs", "D.cs"), w.rename("B.cs", "C.cs"), w.rename("A.cs", "B.cs")],
        {"B.cs": A, "C.cs": B, "D.cs": C},
    ),
    "swap through a third name": (
        lambda w: [w.rename("A.cs", "T.cs"), w.rename("B.cs", "A.cs"), w.rename("T.cs", "B.cs")],
        {"A.cs": B, "B.cs": A, "C.cs": C},
    ),
    "circle of three": (
        lambda w: [
            w.rename("A.cs", "T.cs"),
            w.rename("C.cs", "A.cs"),
            w.rename("B.cs", "C.cs"),
            w.rename("T.cs", "B.cs"),
        ],
        {"A.cs": C, "B.cs": A, "C.cs": B},
    ),
    "swap with an edit under the new name": (
        lambda w: [
            w.rename("A.cs", "T.cs"),
            w.rename("B.cs", "A.cs"),
            w.rename("T.cs", "B.cs"),
            w.document("A.cs", edit(0, 6, 7, "A")),
            w.document("B.cs", edit(0, 6, 7, "B")),
        ],
        {"A.cs": b"class A { }\r\n", "B.cs": b"class B { }\n", "C.cs": C},
    ),
    "create over a deleted path": (
        lambda w: [DeleteFile(w.path("A.cs")), w.document("A.cs", insert("new\n"))],
        {"A.cs": b"new\n", "B.cs": B, "C.cs": C},
    ),
    "delete, then create empty": (
        lambda w: [DeleteFile(w.path("A.cs")), CreateFile(w.path("A.cs"))],
        {"A.cs": b"", "B.cs": B, "C.cs": C},
    ),
    "delete, then another file moves there": (
        lambda w: [DeleteFile(w.path("A.cs")), w.rename("B.cs", "A.cs")],
        {"A.cs": B, "C.cs": C},
    ),
    "rename, then edit": (
        lambda w: [w.rename("A.cs", "D.cs"), w.document("D.cs", edit(0, 6, 7, "D"))],
        {"B.cs": B, "C.cs": C, "D.cs": b"class D { }\n"},
    ),
    "edit, then rename": (
        lambda w: [w.document("A.cs", edit(0, 6, 7, "D")), w.rename("A.cs", "D.cs")],
        {"B.cs": B, "C.cs": C, "D.cs": b"class D { }\n"},
    ),
    "edit, rename, edit, rename": (
        lambda w: [
            w.document("C.cs", edit(0, 6, 7, "D")),
            w.rename("C.cs", "D.cs"),
            w.document("D.cs", edit(0, 6, 7, "E")),
            w.rename("D.cs", "Sub/E.cs"),
        ],
        {"A.cs": A, "B.cs": B, "Sub/E.cs": b"\xef\xbb\xbfclass E { }\n"},
    ),
    "rename, then the old name is made anew": (
        lambda w: [w.rename("A.cs", "D.cs"), w.document("A.cs", insert("new\n"))],
        {"A.cs": b"new\n", "B.cs": B, "C.cs": C, "D.cs": A},
    ),
    "create, rename, delete": (
        lambda w: [CreateFile(w.path("N.cs")), w.rename("N.cs", "M.cs"), DeleteFile(w.path("M.cs"))],
        FILES,
    ),
    "there and back": (lambda w: [w.rename("A.cs", "D.cs"), w.rename("D.cs", "A.cs")], FILES),
    "case only": (lambda w: [w.rename("A.cs", "a.cs")], {"a.cs": A, "B.cs": B, "C.cs": C}),
    "case only, then edit": (
        lambda w: [w.rename("A.cs", "a.cs"), w.document("a.cs", edit(0, 6, 7, "a"))],
        {"a.cs": b"class a { }\n", "B.cs": B, "C.cs": C},
    ),
    "case only, there and back": (lambda w: [w.rename("A.cs", "a.cs"), w.rename("a.cs", "A.cs")], FILES),
}


@pytest.mark.parametrize("case_blind", [False, True], ids=["case counts", "case counts for nothing"])
@pytest.mark.parametrize("at_once", [True, False], ids=["one edit", "one edit a step"])
@pytest.mark.parametrize("story", STORIES)
def test_names_that_change_hands_end_where_they_should(
    tmp_path: Path, story: str, at_once: bool, case_blind: bool
) -> None:
    world = World(tmp_path, FILES, CaseBlind() if case_blind else None)
    operations, expected = STORIES[story]
    if at_once:
        world.plan(*operations(world))
    else:
        for operation in operations(world):
            world.plan(operation)
    for name in {*FILES, *expected}:
        text = world.overlay.text(world.path(name))
        assert (None if text is None else text.encode()) == expected.get(name), name
    assert (world.changes() == []) == (expected == FILES)
    commit(world.root, world.overlay.changes(), world.baseline)
    assert contents(tmp_path) == expected


def test_two_files_that_just_take_each_others_name_are_refused_as_lsp_means_it(tmp_path: Path) -> None:
    """Operations happen one after the other, so the first would lose a file; a swap needs a third name."""
    world = World(tmp_path, FILES)

    refusal = world.refused(world.rename("A.cs", "B.cs"), world.rename("B.cs", "A.cs"))

    assert "exists already" in refusal.message


# --- names that are hardly names ----------------------------------------------------------------------------

COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "Größe.cs") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    "name",
    [
        "line\nbreak.cs",
        "%20.cs",
        "a%2Fb.cs",
        "dot./dots...cs",
        " lead and trail .cs",
        "tab\t.cs",
        'quote".cs',
        "back\\slash.cs",
        "-rf.cs",
        COMPOSED,
        DECOMPOSED,
        os.fsdecode(b"\xff\xfe.cs"),
        "\u202egnp.cs",
    ],
    ids=ascii,
)
def test_a_name_the_system_takes_is_made_edited_moved_and_deleted(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, {**FILES, name: b"one\n", "old/" + name: b"two\n"})
    world.plan(
        world.document(name, insert("0\n")),
        world.document("new/" + name, insert("n\n")),
        world.rename("old/" + name, "moved/" + name),
        DeleteFile(world.path("A.cs")),
    )
    commit(world.root, world.overlay.changes(), world.baseline)

    assert contents(tmp_path) == {
        "B.cs": B,
        "C.cs": C,
        name: b"0\none\n",
        "new/" + name: b"n\n",
        "moved/" + name: b"two\n",
    }


def test_both_normal_forms_of_a_name_are_two_files_where_the_system_says_so(tmp_path: Path) -> None:
    world = World(tmp_path, {COMPOSED: b"composed\n", DECOMPOSED: b"decomposed\n"})
    if len(contents(tmp_path)) == 1:
        pytest.skip("this file system takes both forms for one name")
    world.plan(world.document(COMPOSED, insert("1 ")), DeleteFile(world.path(DECOMPOSED)))
    commit(world.root, world.overlay.changes(), world.baseline)

    assert contents(tmp_path) == {COMPOSED: b"1 composed\n"}


@pytest.mark.parametrize("name", ["trailing.cs.", "trailing.cs ", "X.CS.", ".cs", ".", ""])
def test_what_is_no_source_file_by_its_name_is_refused(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, FILES)

    assert world.refused(CreateFile(world.root / name)).code == "UnsupportedChange"
    assert world.refused(world.rename("A.cs", name)).code == "UnsupportedChange"


@pytest.mark.parametrize(
    "name",
    ["x" * 300 + ".cs", "d" * 300 + "/X.cs", "/".join(["deep"] * 1000) + "/X.cs"],
    ids=["name", "folder", "path"],
)
def test_a_path_longer_than_the_system_allows_is_refused_when_staged(tmp_path: Path, name: str) -> None:
    world = World(tmp_path, FILES)
    for operation in (
        CreateFile(world.path(name)),
        world.document(name, insert("x\n")),
        world.rename("A.cs", name),
        DeleteFile(world.path(name)),
    ):
        refusal = world.refused(operation)
        assert refusal.code == "UnsupportedChange"
    world.plan(world.document("A.cs", insert("still\n")))
    commit(world.root, world.overlay.changes(), world.baseline)
    assert contents(tmp_path)["A.cs"] == b"still\n" + A


def test_a_file_that_is_a_directory_by_the_time_of_staging_is_refused_by_name(tmp_path: Path) -> None:
    world = World(tmp_path, FILES)
    world.path("A.cs").unlink()
    (world.path("A.cs") / "Inner").mkdir(parents=True)
    for operation in (
        world.document("A.cs", insert("x")),
        CreateFile(world.path("A.cs"), overwrite=True),
        DeleteFile(world.path("A.cs")),
        world.rename("A.cs", "Z.cs"),
        world.rename("B.cs", "A.cs", overwrite=True),
    ):
        assert "A.cs" in world.refused(operation).message


@pytest.mark.parametrize("what", ["edit", "delete", "move"])
def test_a_file_replaced_by_a_directory_after_staging_is_a_conflict_and_the_directory_stays(
    tmp_path: Path, what: str
) -> None:
    world = World(tmp_path, FILES)
    operations: Mapping[str, Operation] = {
        "edit": world.document("A.cs", insert("x")),
        "delete": DeleteFile(world.path("A.cs")),
        "move": world.rename("A.cs", "Z.cs"),
    }
    world.plan(operations[what], world.document("B.cs", insert("x")))
    world.path("A.cs").unlink()
    (world.path("A.cs") / "Inner").mkdir(parents=True)
    before = picture(tmp_path)

    with pytest.raises(CommitConflict):
        commit(world.root, world.overlay.changes(), world.baseline)
    assert picture(tmp_path) == before
