"""From the server's WorkspaceEdit to ours: the place where wire types and URIs end.

What LSP allows and we do not take is refused here, by name: targets that are no files, and snippets, whose
placeholders must not reach a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lsp_client import messages, uris
from lsp_client.errors import ProtocolViolation
from transactions import edits
from transactions.errors import EditRefused
from transactions.text import Position, Range, TextEdit

NO_VERSIONS: Mapping[Path, int] = MappingProxyType({})


def workspace_edit_from_server(
    edit: messages.WorkspaceEdit, versions: Mapping[Path, int] = NO_VERSIONS
) -> edits.WorkspaceEdit:
    """The ordered operations of a server's edit.  Raises ``EditRefused`` (``UnsupportedChange``).

    ``versions`` are those of the open documents when the server made it (``Session.document_versions``).
    """
    try:
        operations = edit.operations()
    except ProtocolViolation as error:
        raise EditRefused(f"The server's edit holds an operation that is not supported: {error}") from error
    return edits.WorkspaceEdit(tuple(_operation_from_server(operation) for operation in operations), versions)


def document_edit_from_server(path: Path, changes: Sequence[messages.TextEdit]) -> edits.WorkspaceEdit:
    """Text edits of one document, as formatting gives them.  Raises ``EditRefused``."""
    return edits.WorkspaceEdit((edits.DocumentEdit(path, None, tuple(_text_edit(path, e) for e in changes)),))


def _operation_from_server(operation: messages.DocumentChange) -> edits.Operation:
    match operation:
        case messages.TextDocumentEdit(text_document=document, edits=changes):
            path = _file_path(document.uri)
            return edits.DocumentEdit(path, document.version, tuple(_text_edit(path, e) for e in changes))
        case messages.CreateFile(uri=uri, options=options):
            return edits.CreateFile(_file_path(uri), bool(options.overwrite), bool(options.ignore_if_exists))
        case messages.RenameFile(old_uri=old, new_uri=new, options=options):
            return edits.RenameFile(
                _file_path(old), _file_path(new), bool(options.overwrite), bool(options.ignore_if_exists)
            )
        case messages.DeleteFile(uri=uri, options=options):
            return edits.DeleteFile(_file_path(uri), bool(options.ignore_if_not_exists))


def _file_path(uri: str) -> Path:
    try:
        return uris.uri_to_path(uri)
    except ValueError as error:
        scheme = uri.partition(":")[0][:40]
        raise EditRefused(
            f"The server's edit touches a virtual document ({scheme}:), which is no file of the workspace."
        ) from error


def _text_edit(path: Path, edit: messages.TextEdit) -> TextEdit:
    if edit.is_snippet or not isinstance(edit.new_text, str):
        raise EditRefused(f"The server's edit of {path} is a snippet, not text.", [path])
    return TextEdit(range_from_server(edit.range), edit.new_text)


def range_to_server(place: Range) -> messages.Range:
    """A range in the server's words; both sides count zero-based lines and UTF-16 units."""
    return messages.Range(
        messages.Position(place.start.line, place.start.character),
        messages.Position(place.end.line, place.end.character),
    )


def range_from_server(place: messages.Range) -> Range:
    """A range in our words."""
    return Range(
        Position(place.start.line, place.start.character), Position(place.end.line, place.end.character)
    )
