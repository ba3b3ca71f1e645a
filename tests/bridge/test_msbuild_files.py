"""Reading what MSBuild reads: lenient JSON, XML from strangers, imports, default globs, fingerprints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.default_globs import glob_project
from bridge.fingerprints import Fingerprints, source_directories
from bridge.jsonc import parse_jsonc
from bridge.msbuild_imports import ImportScan, imports_in_flattened, scan_imports
from bridge.msbuild_xml import MalformedXml, local_name, parse_xml, read_xml

BOMB = '<!DOCTYPE l [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><l>&b;</l>'


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


# JSON


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("\ufeff{}", {}),
        ('{"a": 1, /* b */ "c": [1, 2, ], // d\n}', {"a": 1, "c": [1, 2]}),
        ('{"a": [1, // last\n]}', {"a": [1]}),
        ('{"a": [1 /* x */, /* last */ ]}', {"a": [1]}),
        (
            '{"url": "http://x/*y*/", "s": "a,]", "q": "\\"//\\""}',
            {"url": "http://x/*y*/", "s": "a,]", "q": '"//"'},
        ),
    ],
)
def test_json_is_read_with_comments_and_trailing_commas(text: str, value: object) -> None:
    assert parse_jsonc(text) == value


@pytest.mark.parametrize("text", ["", "{", "{,}x", '{"a" 1}', "/* open"])
def test_json_that_is_none_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_jsonc(text)


# XML


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_doctype_is_refused_in_every_encoding(encoding: str) -> None:
    with pytest.raises(MalformedXml):
        parse_xml(BOMB.encode(encoding))


def test_a_doctype_hidden_behind_a_declared_code_page_is_refused() -> None:
    head = b'<?xml version="1.0" encoding="cp037"?>'
    with pytest.raises(MalformedXml):
        parse_xml(head + BOMB.encode("cp037"))


def test_xml_of_either_time_has_the_same_names() -> None:
    old = parse_xml(
        b'<Project xmlns="http://schemas.microsoft.com/developer/msbuild/2003"><Import/></Project>'
    )
    new = parse_xml("\ufeff<Project><!-- x --><Import/></Project>".encode())
    assert [local_name(e) for e in old.iter()] == [local_name(e) for e in new.iter()] == ["Project", "Import"]


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"<a>", b"<a/><b/>", b'<?xml version="1.0" encoding="none"?><a/>']
)
def test_xml_that_is_none_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedXml):
        parse_xml(data)


def test_an_unreadable_file_is_malformed_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(MalformedXml, match="No such file"):
        read_xml(tmp_path / "none")
    with pytest.raises(MalformedXml, match="directory"):
        read_xml(tmp_path)


# Imports


def scan(project: Path, **properties: str) -> ImportScan:
    return scan_imports(project, properties)


def test_imports_are_followed_through_properties_and_files_above(tmp_path: Path) -> None:
    top = write(tmp_path / "Directory.Build.props", "<Project><Import Project='eng\\a.props' /></Project>")
    a = write(
        tmp_path / "eng" / "a.props",
        "<Project><Import Project='$(MSBuildThisFileDirectory)b.props'/></Project>",
    )
    b = write(tmp_path / "eng" / "b.props", "<Project />")
    above = "$([MSBuild]::GetPathOfFileAbove('Directory.Build.props', '$(MSBuildThisFileDirectory)../'))"
    near = write(
        tmp_path / "src" / "Directory.Build.props", f'<Project><Import Project="{above}" /></Project>'
    )
    c = write(tmp_path / "c.targets", "<Project />")
    project = write(
        tmp_path / "src" / "A" / "A.csproj",
        '<Project Sdk="X"><Import Project="$(Custom)/c.targets" /><Import Project="Sdk.props" Sdk="Y" />'
        '<Import Project="$(MSBuildToolsPath)/Microsoft.Common.targets" /></Project>',
    )
    found = scan(project, Custom=str(tmp_path))
    assert set(found.present) == {project, near, top, a, b, c}
    assert found.complete
    assert tmp_path / "src" / "A" / "Directory.Build.props" in found.absent
    assert tmp_path / "src" / "A" / "A.csproj.user" in found.absent


def test_an_import_of_a_missing_file_is_absent_and_one_that_is_not_plain_incomplete(tmp_path: Path) -> None:
    project = write(tmp_path / "A.csproj", '<Project><Import Project="none.props" Condition="x" /></Project>')
    found = scan(project)
    assert tmp_path / "none.props" in found.absent
    assert found.complete
    write(project, '<Project><Import Project="$(Unknown)/x.props" /></Project>')
    assert not scan(project).complete
    write(project, "<Project")
    assert scan(project).present == (project,)


def test_imports_in_a_circle_and_by_wildcard_end(tmp_path: Path) -> None:
    a = write(tmp_path / "a.props", "<Project><Import Project='b.props'/></Project>")
    b = write(tmp_path / "b.props", "<Project><Import Project='a.props'/></Project>")
    project = write(tmp_path / "A.csproj", '<Project><Import Project="*.props" /></Project>')
    assert set(scan(project).present) == {project, a, b}


def test_the_flattened_project_names_its_files() -> None:
    text = '<!--\n====\n/a b/A.csproj\n====\n-->\n<x>\n/not/this\n<!--\n====\n  <Import Project="y">\n\n/c.props\n====\n-->'
    assert imports_in_flattened(text) == (Path("/a b/A.csproj"), Path("/c.props"))


# Default globs


def globbed(project: Path) -> list[str]:
    return [os.path.relpath(path, project.parent) for path in glob_project(project).files]


def items(text: str) -> str:
    return f'<Project Sdk="Microsoft.NET.Sdk"><ItemGroup>{text}</ItemGroup></Project>'


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("", ["A.cs", "b/B.cs", "b/c/C.cs"]),
        ('<Compile Remove="b/**" />', ["A.cs"]),
        ('<Compile Remove="b\\*.cs" />', ["A.cs", "b/c/C.cs"]),
        ('<Compile Remove="**/*.cs" />', []),
        ('<Compile Remove="b/**/C.cs;A.cs" />', ["b/B.cs"]),
        ('<Compile Remove="**" /><Compile Include="b/c/?.cs" />', ["b/c/C.cs"]),
        (
            '<Compile Include="../out/**/*.cs" Exclude="../out/x/**" />',
            ["A.cs", "b/B.cs", "b/c/C.cs", "../out/O.cs"],
        ),
        ('<Compile Include="Made.cs" />', ["A.cs", "b/B.cs", "b/c/C.cs", "Made.cs"]),
        ('<Compile Update="A.cs" />', ["A.cs", "b/B.cs", "b/c/C.cs"]),
    ],
)
def test_plain_compile_items_are_honoured(tmp_path: Path, text: str, files: list[str]) -> None:
    for name in ("p/A.cs", "p/b/B.cs", "p/b/c/C.cs", "p/readme.md", "out/O.cs", "out/x/X.cs"):
        write(tmp_path / name)
    project = write(tmp_path / "p" / "P.csproj", items(text))
    assert globbed(project) == files
    assert glob_project(project).notes == ()


@pytest.mark.parametrize(
    "text",
    [
        '<Compile Remove="$(X)/**" />',
        '<Compile Remove="A.cs" Condition="true" />',
        '<Compile Include="@(Y)" />',
    ],
)
def test_items_that_are_not_plain_are_said_and_left_alone(tmp_path: Path, text: str) -> None:
    write(tmp_path / "A.cs")
    project = write(tmp_path / "P.csproj", items(text))
    assert globbed(project) == ["A.cs"]
    assert len(glob_project(project).notes) == 1


def test_default_items_switched_off_leave_the_named_ones(tmp_path: Path) -> None:
    write(tmp_path / "A.cs")
    text = items('<Compile Include="A.cs" />').replace(
        "<ItemGroup>",
        "<PropertyGroup><EnableDefaultCompileItems>False</EnableDefaultCompileItems></PropertyGroup><ItemGroup>",
    )
    assert globbed(write(tmp_path / "P.csproj", text)) == ["A.cs"]
    assert globbed(write(tmp_path / "P.csproj", text.replace('Include="A.cs"', 'Include=""'))) == []


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    write(tmp_path / "A.cs")
    assert globbed(write(tmp_path / "P.csproj", items(""))) == ["A.cs"]


# Fingerprints


def test_a_fingerprint_moves_with_content_names_and_existence_only(tmp_path: Path) -> None:
    file, absent = write(tmp_path / "a", "1"), tmp_path / "absent"
    prints = Fingerprints()

    def now() -> bytes:
        return prints.of([file, absent], [tmp_path])

    first = now()
    os.utime(file, (1, 1))
    assert now() == first
    write(tmp_path / "obj" / "x")
    assert now() == first
    write(file, "2")
    os.utime(file, (1, 1))
    second = now()
    assert second != first
    write(tmp_path / "B.cs")
    assert now() != second
    (tmp_path / "B.cs").unlink()
    assert now() == second
    write(absent)
    assert now() != second


def test_source_directories_leave_out_where_builds_write(tmp_path: Path) -> None:
    for name in ("a/b", "obj/x", "a/bin", ".git/x", "node_modules/x"):
        (tmp_path / name).mkdir(parents=True)
    assert source_directories([tmp_path]) == (tmp_path, tmp_path / "a", tmp_path / "a" / "b")
    assert source_directories([tmp_path / "none"]) == ()


def test_importing_these_modules_brings_in_nothing_slow() -> None:
    modules = (
        "solutions projects msbuild restore dotnet editorconfig default_globs msbuild_properties children"
    )
    code = f"import sys; [__import__('bridge.' + m) for m in '{modules}'.split()]; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    slow = {
        "xml.etree.ElementTree",
        "psutil",
        "pydantic",
        "mcp",
        "pygls",
        "lsprotocol",
        "editorconfig",
        "msgspec",
    }
    assert slow.isdisjoint(done.stdout.split())
