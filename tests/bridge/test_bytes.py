"""Bytes that nobody edited stay as they are, over a tree of everything that goes wrong elsewhere."""

import os
import stat
from pathlib import Path

import pytest

from tests.bridge.agent import APPLE, Scene, opened, scene
from tests.bridge.played_server import Offer, create, insert
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

BOM8, BOM16 = b"\xef\xbb\xbf", b"\xff\xfe"

ODD_FILES: dict[str, bytes] = {
    "Core/Crlf.cs": b"class Crlf\r\n{\r\n}\r\n",
    "Core/Bom.cs": BOM8 + "class Bom // Möhre\n{\n}\n".encode(),
    "Core/BomCrlf.cs": BOM8 + b"class BomCrlf\r\n{\r\n}\r\n",
    "Core/Utf16.cs": BOM16 + "class Utf16 // Möhre 🍎\r\n{\r\n}\r\n".encode("utf-16-le"),
    "Core/Utf16Be.cs": b"\xfe\xff" + "class Utf16Be\n{\n}\n".encode("utf-16-be"),
    "Core/Mixed.cs": b"class Mixed\r\n{\n}\r\r\n",
    "Core/NoEnd.cs": b"class NoEnd { }",
    "Core/Empty.cs": b"",
    "Core/Latin.cs": "class Latin // M\xf6hre\n{\n}\n".encode("latin-1"),
    "Core/ReadOnly.cs": b"class ReadOnly { }\n",
    "Core/Binary.cs": b"\0\1\2\xff",
    "Core/notes.txt": b"\xff\xfe\xfd",
    "Core/bin/Debug/Core.dll": b"MZ\0",
    "Core/obj/Core.AssemblyInfo.cs": b"// generated\r\n",
}


def populate(made: Scene) -> None:
    for name, data in ODD_FILES.items():
        made.file(name).parent.mkdir(parents=True, exist_ok=True)
        made.file(name).write_bytes(data)
    made.file("Core/ReadOnly.cs").chmod(0o444)
    made.file("Core/Crlf.cs").chmod(0o600)
    made.file("Core/Link.cs").symlink_to("Bom.cs")
    made.file("Elsewhere").symlink_to(made.file("App"), target_is_directory=True)
    os.utime(made.file("Core/Crlf.cs"), (1_000_000_000, 1_000_000_000))


def photograph(root: Path) -> dict[str, tuple[object, ...]]:
    """Everything a user could notice of each entry; not what lies where commits keep their artifacts."""
    entries: dict[str, tuple[object, ...]] = {}
    for path in root.rglob("*"):
        if ".vs" in path.parts:
            continue
        status = path.lstat()
        content: object = str(path.readlink()) if path.is_symlink() else None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        times = None if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns
        entries[str(path.relative_to(root))] = (content, status.st_mode, status.st_uid, status.st_gid, times)
    return entries


READABLE = sorted(
    name
    for name in ODD_FILES
    if name.endswith(".cs") and not any(odd in name for odd in ("Binary", "ReadOnly", "/obj/"))
)


@keeps("bytes.kept", "rollback.writes-nothing")
async def test_after_a_rollback_every_byte_mode_and_time_is_as_before(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        populate(made)
        agent = made.agent
        before = photograph(made.root)
        await agent.start()
        for name in READABLE:
            await agent.stage_first(name)
        await agent.undo()
        await agent.redo()
        assert len((await agent.preview()).documents) == len(READABLE)
        await agent.roll_back()
        assert photograph(made.root) == before


@keeps("bytes.kept")
async def test_a_commit_changes_what_was_staged_and_no_other_byte(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        populate(made)
        agent = made.agent
        made.server.offers = None
        before = photograph(made.root)
        await agent.start()
        await agent.stage_first("Core/Utf16.cs")
        await agent.stage_first("Core/BomCrlf.cs")
        await agent.commit()
        after = photograph(made.root)
        assert {name for name in after if after[name] != before.get(name)} == {
            "Core/Utf16.cs",
            "Core/BomCrlf.cs",
        }
        assert after.keys() == before.keys()
        utf16 = BOM16 + "// line 3\r\n".encode("utf-16-le") + ODD_FILES["Core/Utf16.cs"][2:]
        assert made.file("Core/Utf16.cs").read_bytes() == utf16
        assert (
            made.file("Core/BomCrlf.cs").read_bytes()
            == BOM8 + b"// line 3\r\n" + ODD_FILES["Core/BomCrlf.cs"][3:]
        )


EXPECTED: dict[str, bytes] = {
    "Core/Crlf.cs": b"// line 3\r\n" + ODD_FILES["Core/Crlf.cs"],
    "Core/Bom.cs": BOM8 + b"// line 3\n" + ODD_FILES["Core/Bom.cs"][3:],
    "Core/Mixed.cs": b"// line 3\n" + ODD_FILES["Core/Mixed.cs"],
    "Core/NoEnd.cs": b"// line 0\n" + ODD_FILES["Core/NoEnd.cs"],
    "Core/Empty.cs": b"// line 0\n",
    "Core/Latin.cs": b"// line 3\n" + ODD_FILES["Core/Latin.cs"],
    "Core/Utf16Be.cs": b"\xfe\xff" + "// line 3\n".encode("utf-16-be") + ODD_FILES["Core/Utf16Be.cs"][2:],
}


@keeps("bytes.kept")
@pytest.mark.parametrize("name", EXPECTED)
async def test_an_edit_is_written_in_the_encoding_and_with_the_line_ends_of_its_file(
    tmp_path: Path, name: str
) -> None:
    async with opened(tmp_path) as made:
        populate(made)
        mode = made.file(name).stat().st_mode
        await made.agent.start()
        await made.agent.stage_first(name)
        await made.agent.commit()
        assert made.file(name).read_bytes() == EXPECTED[name]
        assert made.file(name).stat().st_mode == mode


@keeps("bytes.kept")
async def test_text_that_the_charset_of_a_file_cannot_hold_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        populate(made)
        await made.agent.start()
        made.server.offers = [Offer("Apple", lambda path, _text: [insert(path, "// 🍎\n")])]
        (action,) = await made.agent.actions("Core/Latin.cs")
        refusal = await made.agent.refused("stage-code-action", actionId=action.action_id)
        assert refusal.code == "UnsupportedChange"
        assert "Latin.cs" in refusal.message


@keeps("actions.refused-edit")
async def test_a_file_without_write_permission_is_refused_when_staged_not_when_committed(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        populate(made)
        await made.agent.start()
        (action,) = await made.agent.actions("Core/ReadOnly.cs")
        refusal = await made.agent.refused("stage-code-action", actionId=action.action_id)
        assert refusal.code == "UnsupportedChange"
        assert "Core/ReadOnly.cs" in refusal.message


@keeps("bytes.kept")
async def test_the_target_of_a_link_is_edited_once_and_the_link_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as made:
        populate(made)
        await made.agent.start()
        await made.agent.stage_first("Core/Bom.cs")
        await made.agent.commit()
        assert made.file("Core/Link.cs").is_symlink()
        assert made.file("Core/Bom.cs").read_bytes() == EXPECTED["Core/Bom.cs"]


@keeps("bytes.kept")
async def test_a_file_whose_name_is_no_text_is_worked_on_by_its_id(tmp_path: Path) -> None:
    async with scene(tmp_path) as made:
        odd = made.root / os.fsdecode(b"Core/M\xf6hre.cs")
        odd.write_text("class Odd { }\n", encoding="utf-8")
        await made.agent.open(made.solution)
        (document,) = made.workspace.structure.documents_at(odd)
        (action,) = await made.agent.actions("", document={"documentId": document.id})
        action.location.document.path.encode("utf-8")
        await made.agent.start()
        (action,) = await made.agent.actions("", document={"documentId": document.id})
        await made.agent.stage(action)
        (changed,) = (await made.agent.preview()).documents
        assert changed.document == action.location.document
        await made.agent.commit()
        assert odd.read_bytes() == b"// line 1\nclass Odd { }\n"


@keeps("actions.staged-text", "external.told")
@pytest.mark.parametrize("link", ["file", "folder"])
async def test_a_file_with_two_names_has_one_text_under_both(tmp_path: Path, link: str) -> None:
    async with scene(tmp_path) as made:
        agent, real = made.agent, made.file("Core/Apple.cs")
        if link == "file":
            made.file("App/Apple.cs").symlink_to("../Core/Apple.cs")
            other = "App/Apple.cs"
            solution = made.solution
        else:
            made.file("Alias").symlink_to(made.file("Core"), target_is_directory=True)
            other = "Alias/Apple.cs"
            solution = made.file("Linked.slnx")
            projects = '<Project Path="Alias/Core.csproj" /><Project Path="Core/Core.csproj" />'
            solution.write_text(f"<Solution>{projects}</Solution>", encoding="utf-8")
        await agent.open(solution)

        async def titles() -> list[str]:
            return [(await agent.actions(name))[0].title for name in ("Core/Apple.cs", other)]

        await agent.start()
        await agent.stage_first(other)
        assert await titles() == ["Add line 6"] * 2
        (changed,) = (await agent.preview()).documents
        assert changed.document is not None
        assert changed.document.path == "Core/Apple.cs"
        await agent.stage_first("Core/Apple.cs")
        assert await titles() == ["Add line 7"] * 2
        await agent.undo()
        assert await titles() == ["Add line 6"] * 2
        await agent.commit()
        assert await titles() == ["Add line 6"] * 2
        assert real.read_text(encoding="utf-8") == f"// line 5\n{APPLE}"
        assert made.file(other).samefile(real)
        assert made.file("App/Apple.cs" if link == "file" else "Alias").is_symlink()
        real.write_text("class Short { }\n", encoding="utf-8")
        await agent.actions_after_change(other)
        assert await titles() == ["Add line 1"] * 2


NEW = "class New\n{\n}\n"


@keeps("bytes.kept")
@pytest.mark.parametrize(
    ("origin", "editorconfig", "written"),
    [
        ("Core/Apple.cs", "", NEW.encode()),
        ("Core/BomCrlf.cs", "", BOM8 + NEW.replace("\n", "\r\n").encode()),
        ("Core/Utf16.cs", "", BOM16 + NEW.replace("\n", "\r\n").encode("utf-16-le")),
        ("Core/BomCrlf.cs", "[*.cs]\ncharset = utf-8\nend_of_line = lf\n", NEW.encode()),
        (
            "Core/Apple.cs",
            "[New.cs]\ncharset = utf-8-bom\nend_of_line = crlf\n",
            BOM8 + NEW.replace("\n", "\r\n").encode(),
        ),
        ("Core/Apple.cs", "[Other.cs]\ncharset = utf-8-bom\n", NEW.encode()),
    ],
)
async def test_a_new_file_is_written_as_editorconfig_wants_or_like_the_file_it_comes_from(
    tmp_path: Path, origin: str, editorconfig: str, written: bytes
) -> None:
    async with scene(tmp_path) as made:
        populate(made)
        made.file(".editorconfig").write_text(f"root = true\n{editorconfig}", encoding="utf-8")
        await made.agent.open(made.solution)
        new = made.file("Core/New.cs")
        made.server.offers = [Offer("New", lambda _path, _text: create(new, NEW))]
        await made.agent.start()
        await made.agent.stage_first(origin)
        await made.agent.commit()
        assert new.read_bytes() == written


@keeps("bytes.kept")
async def test_line_ends_that_a_server_wrote_are_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path, line_endings="keep") as made:
        populate(made)
        await made.agent.start()
        await made.agent.stage_first("Core/Crlf.cs")
        await made.agent.commit()
        assert made.file("Core/Crlf.cs").read_bytes() == b"// line 3\n" + ODD_FILES["Core/Crlf.cs"]
