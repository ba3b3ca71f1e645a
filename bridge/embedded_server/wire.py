"""Actions in Roslyn's shape: the list, the way back from a listed item to its action, and edits.

A listed item never carries an edit. Its ``data`` says where it was found and by which titles, and resolving computes
all actions of that place anew and follows the titles; when the text has moved on, the titles lead nowhere, and that is
an honest "content modified". A group is an item with a command for the client, and its leaves lie flat in ``data``. A
fix-all is an item of its own with another command.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bridge.embedded_server.actions import add_braces, convert_namespace, move_type, sort_usings
from bridge.embedded_server.actions.base import Action, Outcome, Place
from bridge.embedded_server.edits import Edit
from bridge.embedded_server.syntax import Source
from lsp_client.uris import path_to_uri

Json = dict[str, object]

FIX_ALL_SCOPES = ("Document", "Project", "Solution")
FIX_ALL_PREFIX = "Fix All: "

_NESTED_COMMAND = "roslyn.client.nestedCodeAction"
_FIX_ALL_COMMAND = "roslyn.client.fixAllCodeAction"
_KIND = "refactor"  # without diagnostics there is nothing that could be called a fix

_OFFERS = (sort_usings.offer, convert_namespace.offer, move_type.offer, add_braces.offer)


def actions_at(place: Place) -> list[Action]:
    """Everything that can be done at a place, in the order of the menu."""
    return [action for offer in _OFFERS if (action := offer(place)) is not None]


def listing(actions: Iterable[Action], uri: str, place: Json) -> list[Json]:
    """The items for actions found in document ``uri`` at the (protocol) range ``place``."""
    return [item for action in actions for item in _items(action, (action.title,), uri, place)]


def find(actions: Sequence[Action], path: Sequence[str]) -> Action | None:
    """The action that the titles lead to, from the menu down; None when they lead nowhere."""
    found: Action | None = None
    for title in path:
        found = next((action for action in actions if action.title == title), None)
        if found is None:
            return None
        actions = found.children
    return found


def _items(action: Action, path: tuple[str, ...], uri: str, place: Json) -> Iterator[Json]:
    data = _data(action, action.title, path, uri, place)
    if action.children:
        leaves = [
            leaf for child in action.children for leaf in _items(child, (*path, child.title), uri, place)
        ]
        data["NestedCodeActions"] = leaves
        yield _item(action.title, data, _NESTED_COMMAND)
        return
    yield _item(action.title, data, None)
    if action.fix_all is not None:
        title = FIX_ALL_PREFIX + action.title
        # The twin has the path of its plain item: that is how the two are known to belong together.
        twin = _data(action, title, path, uri, place)
        twin["FixAllFlavors"] = list(FIX_ALL_SCOPES)
        yield _item(title, twin, _FIX_ALL_COMMAND)


def _item(title: str, data: Json, command: str | None) -> Json:
    item: Json = {"title": title, "kind": _KIND, "data": data}
    if command is not None:
        item["command"] = {"title": title, "command": command, "arguments": [data]}
    return item


def _data(action: Action, title: str, path: tuple[str, ...], uri: str, place: Json) -> Json:
    return {
        "UniqueIdentifier": title,
        "CustomTags": [action.tag],
        "Range": place,
        "TextDocument": {"uri": uri},
        "CodeActionPath": list(path),
    }


def is_intact(source: Source, outcome: Outcome, after: str) -> bool:
    """Whether the changed text and every new file are understood at least as well as the old text was.

    The last line of defence: a refactoring that breaks the syntax is not let out.
    """
    if Source(after).error_count > source.error_count:
        return False
    return all(Source(new_file.text).error_count == 0 for new_file in outcome.new_files)


def workspace_edit(path: Path, source: Source, outcome: Outcome, operations: Sequence[str]) -> Json:
    """The edit for an outcome in the document ``path``.

    Without the client's leave to create files (``operations``) an outcome that needs it becomes an empty edit, which
    is Roslyn's way of saying "not supported".
    """
    if outcome.new_files and "create" not in operations:
        return {"documentChanges": []}
    creations: list[Json] = []
    for new_file in outcome.new_files:
        uri = path_to_uri(new_file.path)
        nowhere = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
        creations.append({"kind": "create", "uri": uri})
        creations.append(_document_edit(uri, [{"range": nowhere, "newText": new_file.text}]))
    return {"documentChanges": [*creations, *document_edits(path, source, outcome.edits)]}


def document_edits(path: Path, source: Source, edits: Sequence[Edit]) -> list[Json]:
    """The text document edit for the edits of one document; none when there is nothing to edit."""
    if not edits:
        return []
    return [_document_edit(path_to_uri(path), [_text_edit(source, edit) for edit in edits])]


def _document_edit(uri: str, edits: list[Json]) -> Json:
    return {"textDocument": {"uri": uri, "version": None}, "edits": edits}


def _text_edit(source: Source, edit: Edit) -> Json:
    return {"range": range_of(source, edit.start, edit.end), "newText": edit.text}


def range_of(source: Source, start: int, end: int) -> Json:
    """The protocol's range for two character offsets."""
    first, last = source.lines.position_at(start), source.lines.position_at(end)
    return {
        "start": {"line": first.line, "character": first.character},
        "end": {"line": last.line, "character": last.character},
    }
