"""All diagnostics of a solution in one answer, for servers that give them without being asked by kind.

csharp-ls compiles every project for it, so the first report after a load or a change takes as long as a build's
compiler does, and the next one almost nothing.  It holds what the report of a single document may lack: hidden
diagnostics of files that are not open.  A document without diagnostics is not listed, and neither are generated ones;
a file that several projects compile may be listed once for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from lsp_client.dialects.base import Port
from lsp_client.errors import ProtocolViolation
from lsp_client.messages import Diagnostic, decode_optional
from lsp_client.uris import uri_to_path


class _OfDocument(Struct, frozen=True):
    uri: str
    items: list[Diagnostic] | None = None


class _Report(Struct, frozen=True):
    items: list[_OfDocument]


async def workspace_report(port: Port, *, timeout: float) -> Mapping[Path, tuple[Diagnostic, ...]]:
    """The diagnostics of each document that has some, in the order of their places; ``timeout`` in seconds.

    What several projects say of one file alike is one diagnostic.  Raises ResponseError, RequestTimedOut, ServerGone,
    and ProtocolViolation for an answer that is no report.
    """
    raw = await port.ask("workspace/diagnostic", {"previousResultIds": []}, timeout=timeout)
    report = decode_optional(raw, _Report)
    if report is None:
        raise ProtocolViolation("the server gave no report about the solution's diagnostics")
    found: dict[Path, set[Diagnostic]] = {}
    for document in report.items:
        path = _path_of(document.uri)
        if path is not None and document.items:
            found.setdefault(path, set()).update(document.items)
    return {path: tuple(sorted(found[path], key=_place)) for path in sorted(found)}


def _path_of(uri: str) -> Path | None:
    try:
        return uri_to_path(uri)
    except ValueError:
        return None  # a document that is no file: nothing in it can be changed


def _place(item: Diagnostic) -> tuple[int, int, int, int, str, str]:
    start, end = item.range.start, item.range.end
    return (start.line, start.character, end.line, end.character, item.id or "", item.message)
