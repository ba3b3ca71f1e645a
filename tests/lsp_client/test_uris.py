"""Paths and URIs: encoded once, decoded once."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_client.uris import path_to_uri, uri_to_path


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/a/b.cs", "file:///a/b.cs"),
        ("/my docs/Jam Jar.cs", "file:///my%20docs/Jam%20Jar.cs"),
        ("/Café/Größe.cs", "file:///Caf%C3%A9/Gr%C3%B6%C3%9Fe.cs"),
        ("/a/C#/100%.cs", "file:///a/C%23/100%25.cs"),
        ("/a/%20.cs", "file:///a/%2520.cs"),
        ("/a/what?.cs", "file:///a/what%3F.cs"),
        ("/a/List(T)+x=y,z;@&$!'*~.cs", "file:///a/List(T)+x=y,z;@&$!'*~.cs"),
        ("/a/[x].cs", "file:///a/%5Bx%5D.cs"),
        ("/", "file:///"),
    ],
)
def test_a_path_has_one_spelling_as_uri_and_comes_back(path: str, uri: str) -> None:
    assert path_to_uri(Path(path)) == uri
    assert uri_to_path(uri) == Path(path)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/Jam Jar.cs", "/a/Jam Jar.cs"),
        ("file:///a/Café.cs", "/a/Café.cs"),
        ("file:///a/%E9.cs", "/a/\udce9.cs"),
        ("file:///a/100%.cs", "/a/100%.cs"),
        ("file:///a/%252F.cs", "/a/%2F.cs"),
        ("file:///a/C#/x.cs", "/a/C#/x.cs"),
        ("FILE:///a/x.cs", "/a/x.cs"),
        ("file:/a/x.cs", "/a/x.cs"),
        ("file://localhost/a/x.cs", "/a/x.cs"),
        ("file:///a/%28x%29.cs", "/a/(x).cs"),
    ],
)
def test_what_servers_write_is_read(uri: str, path: str) -> None:
    assert uri_to_path(uri) == Path(path)


@pytest.mark.parametrize(
    "uri",
    [
        "csharp:/metadata/projects/X/symbols/System.String.cs",
        "roslyn-source-generated:///a/b.cs",
        "https://example.org/a.cs",
        "file://server/share/a.cs",
        "file:a/b.cs",
        "file://",
        "/a/b.cs",
        "",
        "file:///a/%00.cs",
        "file:///a/\ud800.cs",
    ],
)
def test_what_names_no_local_file_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        uri_to_path(uri)


def test_a_relative_path_has_no_uri() -> None:
    with pytest.raises(ValueError, match="relative"):
        path_to_uri(Path("a/b.cs"))


@given(
    st.lists(st.binary(min_size=1, max_size=20).filter(lambda part: b"/" not in part and b"\0" not in part))
)
def test_every_name_the_system_allows_survives_the_round_trip(parts: list[bytes]) -> None:
    path = Path("/", *(os.fsdecode(part) for part in parts))
    uri = path_to_uri(path)
    assert uri.isascii()
    assert uri_to_path(uri) == path
