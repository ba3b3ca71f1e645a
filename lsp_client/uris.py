"""Paths to ``file:`` URIs and back, each encoded or decoded exactly once.

Servers differ in how they spell the URIs they send: Roslyn percent-encodes, csharp-ls sends spaces and
letters beyond ASCII as they are.  Both are read here.  What we send has one spelling: the octets of the path,
percent-encoded except for those that RFC 3986 allows in a path segment, the spelling of .NET's own absolute
URIs.  Names that are no UTF-8 survive the round trip, because octets are encoded, not characters.
"""

import os
import re
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

# unreserved / sub-delims / ":" / "@", and the separator itself (RFC 3986, section 3.3)
_SAFE_IN_PATH = "/-._~!$&'()*+,;=:@"
_FILE_SCHEME = re.compile(r"file:", re.IGNORECASE)
_LOCAL_HOSTS = frozenset({"", "localhost"})


def path_to_uri(path: Path) -> str:
    """The ``file:`` URI of an absolute path.  Raises ValueError for a relative one."""
    if not path.is_absolute():
        raise ValueError(f"a relative path has no URI: {path}")
    return "file://" + quote_from_bytes(os.fsencode(path), safe=_SAFE_IN_PATH)


def uri_to_path(uri: str) -> Path:
    """The path that a ``file:`` URI names, decoded once, not resolved.

    ``?`` and ``#`` are taken as part of the name: a document has neither query nor fragment, and folders
    called ``C#`` exist.  Raises ValueError for another scheme, another host, a relative path or a NUL.
    """
    scheme = _FILE_SCHEME.match(uri)
    if scheme is None:
        raise ValueError(f"not a file URI: {uri}")
    rest = uri[scheme.end() :]
    if rest.startswith("//"):
        host, slash, tail = rest[2:].partition("/")
        if host.lower() not in _LOCAL_HOSTS:
            raise ValueError(f"a file URI of another host: {uri}")
        rest = slash + tail
    octets = unquote_to_bytes(rest)
    if not octets.startswith(b"/") or b"\0" in octets:
        raise ValueError(f"a file URI without an absolute path: {uri}")
    return Path(os.fsdecode(octets))
