"""A workspace edit becomes one whole overlay, or a refusal that names the file."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.transactions.worlds import picture, write
from transactions.baseline import Baseline
from transactions.case_rule import CaseRule
from transactions.commit import commit
from transactions.edits import (
    CreateFile,
    DeleteFile,
    DocumentEdit,
    EditPolicy,
    NewFileStyle,
    Operation,
    RenameFile,
    WorkspaceEdit,
    plan,
)
from transactions.errors import EditRefused, LinkedDocumentConflict
from transactions.overlay import FileChange, Overlay
from transactions.text import Position, Range, TextEdit, TextEncoding


def edit(line: int, start: int, end: int, new_text: str) -> TextEdit:
    return TextEdit(Range(Position(line, start), Position(line, end)), new_text)


def insert(new_text: str, line: int = 0, character: int = 0) -> TextEdit:
    return edit(line, character, character, new_text)


class World:
    """A root with a baseline, an overlay that grows, and a policy."""

    def __init__(self, root: Path, files: Mapping[str, bytes], case_rule: CaseRule | None = None) -> None:
        write(root, files)
        self.root = root
        self.baseline = Baseline(root, case_rule)
        self.overlay = Overlay(self.baseline)
        self.policy = EditPolicy(root)
        self.versions: Mapping[Path, int] = {}

    def path(self, name: str) -> Path:
        return self.root / name

    def document(self, name: str, *edits: TextEdit, version: int | None = None) -> DocumentEdit:
        return DocumentEdit(self.path(name), version, edits)

    def rename(self, old: str, new: str, *, overwrite: bool = False, ignore: bool = False) -> RenameFile:
        return RenameFile(self.path(old), self.path(new), overwrite=overwrite, ignore_if_exists=ignore)

    def plan(self, *operations: Operation) -> None:
        self.overlay = plan(
            WorkspaceEdit(operations, self.versions), self.overlay, self.baseline, self.policy
        )

    def refused(self, *operations: Operation) -> EditRefused:
        before = self.overlay.changes()
        with pytest.raises(EditRefused) as refusal:
            plan(WorkspaceEdit(operations, self.versions), self.overlay, self.baseline, self.policy)
        assert self.overlay.changes() == before
        return refusal.value

    def text(self, name: str) -> str | None:
        text = self.overlay.text(self.path(name))
        return None if text is None else text.text

    def changes(self) -> list[tuple[str, str]]:
        return [
            (change.kind, os.fspath(change.path.relative_to(self.root))) for change in self.overlay.changes()
        ]

    def change(self, name: str) -> FileChange:
        return next(change for change in self.overlay.changes() if change.path == self.path(name))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(
        tmp_path,
        {
            "A.cs": b"class A { }\n",
            "B.cs": b"class B { }\n",
            "Sub/C.cs": b"one\r\ntwo\r\n",
            "A.csproj": b"<Project />",
        },
    )


def test_move_type_to_file_becomes_a_created_file_and_an_edit_together(world: World) -> None:
    world.plan(world.document("D.cs", insert("class D { }\n")), world.document("A.cs", edit(0, 6, 7, "A1")))

    assert world.changes() == [("Added", "D.cs"), ("Modified", "A.cs")]
    assert world.text("D.cs") == "class D { }\n"
    assert world.text("A.cs") == "class A1 { }\n"


def test_text_for_a_missing_file_that_is_no_insert_at_its_start_is_refused_and_the_other_half_too(
    world: World,
) -> None:
    refusal = world.refused(
        world.document("A.cs", edit(0, 6, 7, "A1")), world.document("D.cs", insert("x", 0, 1))
    )

    assert refusal.paths == (world.path("D.cs"),)
    assert refusal.code == "UnsupportedChange"


@pytest.mark.parametrize(
    "edits", [(), ("A.cs",), ("A.cs", "B.cs")], ids=["no operations", "no edits", "no edits twice"]
)
def test_an_edit_that_changes_nothing_is_refused_as_incomplete(world: World, edits: tuple[str, ...]) -> None:
    refusal = world.refused(*(world.document(name) for name in edits))

    assert "incomplete edit" in refusal.message


def test_a_missing_file_without_text_is_refused_as_incomplete(world: World) -> None:
    refusal = world.refused(world.document("A.cs", insert("x")), world.document("D.cs"))

    assert "incomplete edit" in refusal.message


def test_an_edit_that_gives_the_same_text_leaves_no_change(world: World) -> None:
    world.plan(world.document("A.cs", edit(0, 6, 7, "A")))

    assert world.changes() == []


def test_a_renamed_file_is_edited_under_its_new_name(world: World) -> None:
    world.plan(world.rename("A.cs", "New/Z.cs"), world.document("New/Z.cs", edit(0, 6, 7, "Z")))

    assert world.changes() == [("Added", "New/Z.cs"), ("Deleted", "A.cs")]
    assert world.change("New/Z.cs").moved_from == world.path("A.cs")
    assert world.change("A.cs").moved_to == world.path("New/Z.cs")
    assert world.text("New/Z.cs") == "class Z { }\n"


def test_a_file_edited_and_then_renamed_takes_its_text_along(world: World) -> None:
    world.plan(world.document("A.cs", edit(0, 6, 7, "Z")), world.rename("A.cs", "Z.cs"))

    assert world.text("Z.cs") == "class Z { }\n"
    assert world.text("A.cs") is None


def test_an_edit_of_the_new_name_before_the_rename_is_refused(world: World) -> None:
    world.refused(world.document("Z.cs", insert("x")), world.rename("A.cs", "Z.cs"))


def test_edits_of_one_file_share_one_base_across_other_files(world: World) -> None:
    world.plan(
        world.document("A.cs", edit(0, 0, 5, "struct")),
        world.document("B.cs", insert("// b\n")),
        world.document("A.cs", edit(0, 6, 7, "A1")),
    )

    assert world.text("A.cs") == "struct A1 { }\n"


def test_a_create_between_them_gives_later_edits_a_new_base(world: World) -> None:
    world.plan(
        world.document("A.cs", edit(0, 0, 5, "struct")),
        CreateFile(world.path("A.cs"), overwrite=True),
        world.document("A.cs", insert("fresh\n")),
    )

    assert world.text("A.cs") == "fresh\n"
    assert world.changes() == [("Modified", "A.cs")]


def test_equal_edits_of_a_linked_file_are_one_edit(world: World) -> None:
    edits = (insert("// 1\n"), insert("// 1\n"), edit(0, 6, 7, "A1"))
    world.plan(world.document("A.cs", *edits), world.document("A.cs", *edits))

    assert world.text("A.cs") == "// 1\n// 1\nclass A1 { }\n"


def test_edits_that_only_one_copy_of_a_linked_file_has_are_kept_when_they_keep_their_distance(
    world: World,
) -> None:
    world.plan(
        world.document("A.cs", edit(0, 6, 7, "A1")),
        world.document("A.cs", edit(0, 6, 7, "A1"), edit(0, 10, 11, "/**/ }")),
    )

    assert world.text("A.cs") == "class A1 { /**/ }\n"


@pytest.mark.parametrize(
    "other",
    [edit(0, 6, 7, "A2"), edit(0, 7, 9, ""), edit(0, 5, 6, "_"), insert("x", 0, 7), edit(0, 0, 11, "")],
    ids=["same place", "touching its end", "touching its start", "insert at its end", "around it"],
)
def test_other_edits_that_overlap_or_touch_in_a_linked_file_are_a_conflict(
    world: World, other: TextEdit
) -> None:
    refusal = world.refused(world.document("A.cs", edit(0, 6, 7, "A1")), world.document("A.cs", other))

    assert isinstance(refusal, LinkedDocumentConflict)
    assert refusal.code == "LinkedDocumentConflict"


def test_overlaps_and_bad_places_name_the_file(world: World) -> None:
    for bad in (
        world.document("A.cs", edit(0, 0, 5, "x"), edit(0, 4, 6, "y")),
        world.document("A.cs", edit(0, 6, 7, "A1"), edit(0, 6, 7, "A1")),
        world.document("A.cs", edit(9, 0, 0, "x")),
        world.document("A.cs", insert("\ud800")),
    ):
        refusal = world.refused(bad)
        assert refusal.paths == (world.path("A.cs"),)
        assert refusal.code == "UnsupportedChange"


def test_an_edit_for_another_version_is_refused(world: World) -> None:
    world.versions = {world.path("A.cs"): 3}
    world.refused(world.document("A.cs", insert("x"), version=2))
    world.plan(world.document("A.cs", insert("x"), version=3))
    world.plan(
        world.document("A.cs", insert("y"), version=None), world.document("B.cs", insert("z"), version=7)
    )

    assert world.text("A.cs") == "yxclass A { }\n"


@pytest.mark.parametrize(
    "name",
    [
        "obj/Debug/X.cs",
        "bin/X.cs",
        ".git/X.cs",
        ".vs/X.cs",
        "Sub/OBJ/X.cs",
        "A.csproj",
        "Readme.md",
        "../Outside.cs",
    ],
)
def test_what_is_not_source_under_the_root_is_refused_for_every_operation(world: World, name: str) -> None:
    if name != "A.csproj" and not name.startswith(".."):
        write(world.root, {name: b"x\n"})
    path = world.path(name)
    for operation in (
        world.document(name, insert("x")),
        CreateFile(path),
        DeleteFile(path, ignore_if_missing=True),
        RenameFile(path, world.path("New.cs")),
        RenameFile(world.path("A.cs"), path),
    ):
        assert world.refused(operation).code == "UnsupportedChange"


def test_a_generated_file_is_refused(world: World) -> None:
    world.policy = EditPolicy(world.root, is_generated=lambda path: path.name == "B.cs")

    assert "generated" in world.refused(world.document("B.cs", insert("x"))).message


def test_a_relative_path_or_no_file_name_is_refused(world: World) -> None:
    world.plan(world.document("A.cs", insert("x")))
    for path in (Path("A.cs"), world.root / "..", Path("/"), world.path("a\0.cs"), world.path("a\0/b.cs")):
        world.refused(DocumentEdit(path, None, (insert("x"),)))


def test_resource_operations_that_do_not_fit_the_tree_are_refused(world: World) -> None:
    world.refused(CreateFile(world.path("A.cs")))
    world.refused(world.rename("Missing.cs", "Z.cs"))
    world.refused(world.rename("A.cs", "B.cs"))
    world.refused(DeleteFile(world.path("Missing.cs")))
    world.refused(DeleteFile(world.path("A.cs")), DeleteFile(world.path("A.cs")))
    world.refused(world.rename("A.cs", "Sub"))
    write(world.root, {"Dir.cs/Inner.cs": b"x"})
    world.refused(world.rename("Dir.cs", "Other.cs"))
    world.refused(world.document("A.cs", insert("x")), CreateFile(world.path("A.cs/Below.cs")))


def test_the_options_of_resource_operations_are_followed(world: World) -> None:
    world.plan(
        CreateFile(world.path("A.cs"), ignore_if_exists=True),
        DeleteFile(world.path("Missing.cs"), ignore_if_missing=True),
        world.rename("A.cs", "B.cs", ignore=True),
    )
    assert world.changes() == []
    world.plan(world.rename("A.cs", "B.cs", overwrite=True, ignore=True))

    assert world.changes() == [("Modified", "B.cs"), ("Deleted", "A.cs")]
    assert world.change("B.cs").moved_from == world.path("A.cs")
    assert world.text("B.cs") == "class A { }\n"


def test_a_chain_and_a_swap_through_a_third_name_come_out_right(world: World) -> None:
    world.plan(world.rename("A.cs", "T.cs"), world.rename("B.cs", "A.cs"), world.rename("T.cs", "B.cs"))

    assert world.changes() == [("Modified", "A.cs"), ("Modified", "B.cs")]
    assert world.text("A.cs") == "class B { }\n"
    assert world.change("A.cs").moved_from == world.path("B.cs")
    assert world.change("B.cs").moved_from == world.path("A.cs")
    commit(world.root, world.overlay.changes(), world.baseline)
    assert world.path("B.cs").read_bytes() == b"class A { }\n"


def test_delete_then_create_is_a_modification_and_there_and_back_is_nothing(world: World) -> None:
    world.plan(
        DeleteFile(world.path("A.cs")),
        CreateFile(world.path("A.cs")),
        world.document("A.cs", insert("fresh\n")),
    )
    world.plan(world.rename("B.cs", "Z.cs"), world.rename("Z.cs", "B.cs"))

    assert world.changes() == [("Modified", "A.cs")]


def test_edits_of_several_steps_add_up_and_older_overlays_stay(world: World) -> None:
    world.plan(world.document("A.cs", insert("// 1\n")))
    first = world.overlay
    world.plan(world.document("A.cs", edit(0, 0, 4, "// 2")), DeleteFile(world.path("B.cs")))

    assert world.text("A.cs") == "// 2\nclass A { }\n"
    assert first.text(world.path("A.cs")) != world.overlay.text(world.path("A.cs"))
    assert first.exists(world.path("B.cs"))
    assert world.overlay.is_deleted(world.path("B.cs"))


def test_new_text_takes_the_line_ends_of_its_file_unless_told_to_keep_them(world: World) -> None:
    world.plan(world.document("Sub/C.cs", edit(0, 3, 4, "\n    x\n")))
    assert world.text("Sub/C.cs") == "one\r\n    x\r\n\r\ntwo\r\n"

    world.policy = EditPolicy(world.root, line_endings="keep")
    world.plan(world.document("Sub/C.cs", insert("y\n")))
    assert world.text("Sub/C.cs") == "y\none\r\n    x\r\n\r\ntwo\r\n"


def test_a_created_file_is_written_like_the_one_it_came_from(world: World) -> None:
    write(world.root, {"Wide.cs": b"\xff\xfe" + "a\r\nb\r\n".encode("utf-16-le")})
    world.policy = EditPolicy(world.root, origin=world.path("Wide.cs"))
    world.plan(world.document("New.cs", insert("one\ntwo\r\n")))

    after = world.change("New.cs").after
    assert after is not None
    assert after.encode() == b"\xff\xfe" + "one\r\ntwo\r\n".encode("utf-16-le")


def test_the_editor_configuration_wins_over_the_origin(world: World) -> None:
    world.policy = EditPolicy(
        world.root,
        origin=world.path("Sub/C.cs"),
        new_file_style=lambda _: NewFileStyle(TextEncoding("utf-8", b"\xef\xbb\xbf"), "\n"),
    )
    world.plan(CreateFile(world.path("New.cs")), world.document("New.cs", insert("one\r\ntwo\n")))

    after = world.change("New.cs").after
    assert after is not None
    assert after.encode() == b"\xef\xbb\xbfone\ntwo\n"


def test_without_either_a_created_file_is_utf_8_with_lf_and_keep_leaves_its_ends(world: World) -> None:
    world.plan(world.document("New.cs", insert("é\r\n")))
    assert world.text("New.cs") == "é\n"

    world.policy = EditPolicy(world.root, line_endings="keep")
    world.plan(world.document("Kept.cs", insert("a\r\nb\n")))
    assert world.text("Kept.cs") == "a\r\nb\n"


def test_a_file_created_and_renamed_in_one_edit_is_still_new(world: World) -> None:
    world.policy = EditPolicy(world.root, origin=world.path("Sub/C.cs"))
    world.plan(
        CreateFile(world.path("New.cs")),
        world.rename("New.cs", "Newer.cs"),
        world.document("Newer.cs", insert("a\n")),
    )

    assert world.changes() == [("Added", "Newer.cs")]
    assert world.change("Newer.cs").moved_from is None
    assert world.text("Newer.cs") == "a\r\n"


def test_a_read_only_a_binary_and_a_doubly_named_file_are_refused_by_name(world: World) -> None:
    write(world.root, {"Locked.cs": b"x\n", "Binary.cs": b"\0\1", "One.cs": b"x\n"})
    world.path("Locked.cs").chmod(0o444)
    world.path("Two.cs").hardlink_to(world.path("One.cs"))
    for name, word in (("Locked.cs", "write permission"), ("Binary.cs", "binary"), ("One.cs", "hard links")):
        for operation in (
            world.document(name, insert("x")),
            DeleteFile(world.path(name)),
            world.rename(name, "Z.cs"),
            world.rename("A.cs", name, overwrite=True),
            CreateFile(world.path(name), overwrite=True),
        ):
            refusal = world.refused(operation)
            assert word in refusal.message
            assert name in refusal.message


def test_an_edit_through_a_link_changes_the_file_behind_it_once(world: World) -> None:
    world.path("Link.cs").symlink_to("Sub/C.cs")
    world.path("Linked").symlink_to("Sub")
    world.plan(
        world.document("Link.cs", edit(0, 0, 3, "1")),
        world.document("Sub/C.cs", edit(0, 0, 3, "1")),
        world.document("Linked/C.cs", edit(0, 0, 3, "1")),
    )

    assert world.changes() == [("Modified", "Sub/C.cs")]
    commit(world.root, world.overlay.changes(), world.baseline)
    assert world.path("Link.cs").is_symlink()
    assert world.path("Link.cs").read_bytes() == b"1\r\ntwo\r\n"


def test_moving_or_deleting_a_link_is_refused_by_name(world: World) -> None:
    world.path("Link.cs").symlink_to("Sub/C.cs")
    for operation in (DeleteFile(world.path("Link.cs")), world.rename("Link.cs", "Z.cs")):
        assert "symbolic link" in world.refused(operation).message


@pytest.mark.parametrize("target", ["../outside/X.cs", "obj/X.cs", ".git/X.cs", "Link.cs", "Readme.md"])
def test_a_link_that_leads_where_nothing_is_edited_is_refused(tmp_path: Path, target: str) -> None:
    root = tmp_path / "root"
    world = World(root, {"A.cs": b"a\n", "obj/X.cs": b"x\n", ".git/X.cs": b"x\n", "Readme.md": b"x\n"})
    write(tmp_path, {"outside/X.cs": b"x\n"})
    world.path("Link.cs").symlink_to(target)
    world.refused(world.document("Link.cs", insert("x")))


def test_a_directory_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    world = World(root, {"A.cs": b"a\n"})
    write(tmp_path, {"outside/X.cs": b"x\n"})
    world.path("Away").symlink_to(tmp_path / "outside")
    world.refused(world.document("Away/X.cs", insert("x")))
    world.refused(CreateFile(world.path("Away/New.cs")))
    world.refused(world.rename("A.cs", "Away/A.cs"))


@pytest.mark.parametrize(
    "name", ["a b/%20.cs", "ä.cs", "日本.cs", "c#[x].cs", "line\nbreak.cs", "trailing..cs"]
)
def test_strange_names_are_names(world: World, name: str) -> None:
    world.plan(world.document(name, insert("x\n")))
    commit(world.root, world.overlay.changes(), world.baseline)

    assert world.path(name).read_bytes() == b"x\n"


def test_a_name_that_is_not_utf_8_is_a_name(world: World) -> None:
    name = os.fsdecode(b"caf\xe9.cs")
    write(world.root, {name: b"x\n"})
    world.plan(world.document(name, insert("y")))
    commit(world.root, world.overlay.changes(), world.baseline)

    assert world.path(name).read_bytes() == b"yx\n"


def test_a_name_that_is_too_long_is_refused(world: World) -> None:
    world.refused(CreateFile(world.path("x" * 300 + ".cs")))


class CaseBlind(CaseRule):
    """A model of a case-blind file system: the disk under it may well tell the names apart."""

    def is_blind(self, directory: Path) -> bool:
        return True


@pytest.fixture
def blind(tmp_path: Path) -> World:
    return World(tmp_path, {"Program.cs": b"class Program { }\n", "Other.cs": b"o\n"}, CaseBlind())


def test_where_case_counts_for_nothing_a_case_only_rename_is_a_move(blind: World) -> None:
    blind.plan(blind.rename("Program.cs", "program.cs"))

    assert blind.changes() == [("Added", "program.cs"), ("Deleted", "Program.cs")]
    commit(blind.root, blind.overlay.changes(), blind.baseline)
    assert {name: content for name, (_, content) in picture(blind.root).items()} == {
        "program.cs": b"class Program { }\n",
        "Other.cs": b"o\n",
    }


def test_where_case_counts_for_nothing_another_spelling_is_the_same_file(blind: World) -> None:
    blind.plan(blind.document("PROGRAM.cs", insert("// 1\n")), blind.document("program.cs", insert("// 1\n")))
    blind.refused(CreateFile(blind.path("other.CS")))
    blind.refused(blind.rename("Program.cs", "OTHER.cs"))
    blind.plan(CreateFile(blind.path("New.cs")))
    blind.refused(CreateFile(blind.path("NEW.cs")))

    assert blind.changes() == [("Added", "New.cs"), ("Modified", "Program.cs")]


def test_where_case_counts_two_spellings_are_two_files(world: World) -> None:
    world.plan(CreateFile(world.path("a.cs")))

    assert world.changes() == [("Added", "a.cs")]


def test_a_case_rule_is_found_by_looking_only(tmp_path: Path) -> None:
    write(tmp_path, {"Sub/Name.cs": b"x", "Empty/.keep": b""})
    before = picture(tmp_path)
    rule = CaseRule()
    twin_exists = (tmp_path / "Sub/nAME.CS").exists()

    assert rule.is_blind(tmp_path / "Sub") == twin_exists
    assert rule.is_blind(tmp_path / "Missing/Deeper") == rule.is_blind(tmp_path)
    assert picture(tmp_path) == before


@pytest.mark.parametrize("spoil", [lambda path: path.write_bytes(b"later\n"), lambda path: path.unlink()])
def test_a_plan_stands_on_what_was_read_first(world: World, spoil: Callable[[Path], object]) -> None:
    world.plan(world.document("A.cs", insert("// 1\n")))
    spoil(world.path("A.cs"))
    world.plan(world.document("A.cs", insert("// 2\n")))

    assert world.text("A.cs") == "// 2\n// 1\nclass A { }\n"
