"""What a server knows about symbols: where they are declared and used, and what a rename would change.

Questions about one place of a document, for the session that is given.  A server that has no document for a file
answers as if nothing were there; such an answer is ``DocumentNotSeen``, never an empty list.  A request that a server
does not know at all is ``NotSupported``.

Places are zero-based lines and zero-based UTF-16 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from lsp_client.dialects.base import ProjectChoice
from lsp_client.errors import METHOD_NOT_FOUND, ResponseError
from lsp_client.failures import DocumentNotSeen, NotSupported
from lsp_client.messages import Location, Position, Range, WorkspaceEdit, decode, decode_optional
from lsp_client.session import Session

FILE_KIND: Final = 1
NAMESPACE_KIND: Final = 3
CONSTRUCTOR_KIND: Final = 9
PROPERTY_KIND: Final = 7
METHOD_KINDS: Final = frozenset({6, 12})
TYPE_KINDS: Final = frozenset({5, 10, 11, 23})
"""LSP's numbers for kinds of symbols; servers give delegates the kind of a type or of a function."""

T = TypeVar("T")


class _Symbol(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    kind: int
    range: Range
    selection_range: Range
    children: list[_Symbol] | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """A symbol that a document declares, and the symbols around it, the outermost first; files are none.

    ``name`` is the server's, with parameters and types as it likes; ``selection`` is the place of the name in the
    text.
    """

    name: str
    kind: int
    range: Range
    selection: Range
    around: tuple[Declared, ...]


async def definitions(
    session: Session, path: Path, place: Position, *, project: ProjectChoice | None = None
) -> tuple[Location, ...]:
    """Where the symbol at a place is declared; empty when the server finds none, which may mean an assembly.

    Raises DocumentNotSeen, NotSupported, and the failures of a question.
    """
    return await _locations(session, "textDocument/definition", path, place, project=project, more={})


async def references(
    session: Session, path: Path, place: Position, *, project: ProjectChoice | None = None
) -> tuple[Location, ...]:
    """All places where the symbol at a place is declared or used, implicit uses included; raises as `definitions`."""
    context = {"context": {"includeDeclaration": True}}
    return await _locations(session, "textDocument/references", path, place, project=project, more=context)


async def _locations(
    session: Session,
    method: str,
    path: Path,
    place: Position,
    *,
    project: ProjectChoice | None,
    more: Mapping[str, object],
) -> tuple[Location, ...]:
    raw = await _asked(session, method, path, place, project=project, more=more)
    found = _one_or_many(raw)
    if not found:
        await _require_seen(session, path)
    return found


def _one_or_many(raw: msgspec.Raw) -> tuple[Location, ...]:
    """The protocol lets a definition be one location, several, or null."""
    if bytes(raw).lstrip().startswith(b"{"):
        return (decode(raw, Location),)
    return tuple(decode_optional(raw, list[Location]) or ())


async def rename(
    session: Session, path: Path, place: Position, new_name: str, *, project: ProjectChoice | None = None
) -> WorkspaceEdit | None:
    """The edit that gives the symbol at a place a new name; ``None`` when the server gives none.

    Servers judge neither the name nor what the rename does to the meaning of code.  Raises as `definitions` does.
    """
    raw = await _asked(
        session, "textDocument/rename", path, place, project=project, more={"newName": new_name}
    )
    edit = decode_optional(raw, WorkspaceEdit)
    if edit is None:
        await _require_seen(session, path)
    return edit


async def declared_symbols(session: Session, path: Path) -> tuple[Declared, ...]:
    """What a document declares, members after what holds them.  Raises as `definitions` does."""
    params = {"textDocument": await session.dialect.identify(session, path, None)}
    raw = await _supported(session, "textDocument/documentSymbol", params)
    roots = decode_optional(raw, list[_Symbol])
    if roots is None:
        await _require_seen(session, path)
    return tuple(declared for root in roots or () for declared in _flattened(root, ()))


def _flattened(symbol: _Symbol, around: tuple[Declared, ...]) -> Iterator[Declared]:
    inside = around
    if symbol.kind != FILE_KIND:
        declared = Declared(symbol.name, symbol.kind, symbol.range, symbol.selection_range, around)
        yield declared
        inside = (*around, declared)
    for child in symbol.children or ():
        yield from _flattened(child, inside)


async def _asked(
    session: Session,
    method: str,
    path: Path,
    place: Position,
    *,
    project: ProjectChoice | None,
    more: Mapping[str, object],
) -> msgspec.Raw:
    document = await session.dialect.identify(session, path, project)
    return await _supported(session, method, {"textDocument": document, "position": place, **more})


async def _supported(session: Session, method: str, params: object) -> msgspec.Raw:
    try:
        return await session.ask(method, params)
    except ResponseError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        raise NotSupported(f"'{method}'", session.server_name) from error


async def _require_seen(session: Session, path: Path) -> None:
    if not await session.sees(path):
        raise DocumentNotSeen(path, session.server_name)
