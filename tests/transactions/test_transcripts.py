"""Every edit that a real csharp-ls once gave can be planned, and leaves line ends as the file has them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.shared import CORPORA, TRANSCRIPTS, writable_copy
from transactions.baseline import Baseline
from transactions.edits import DocumentEdit, EditPolicy, WorkspaceEdit, plan
from transactions.errors import EditRefused
from transactions.overlay import Overlay
from transactions.text import Position, Range, TextEdit

BAKERY = CORPORA / "bakery"

pytestmark = pytest.mark.skipif(
    not (BAKERY.is_dir() and TRANSCRIPTS.is_dir()),
    reason="../shared is not there: recorded edits are not replayed",
)

# Sessions in which the server looked at the files as they are on disk; in the others it had staged texts.
SESSIONS = ("03-code-actions", "04-rename", "06-formatting", "12-eager-actions", "14-odd-text")


@pytest.fixture
def bakery(tmp_path: Path) -> Path:
    return writable_copy(BAKERY, tmp_path / "bakery")


def messages(session: str) -> Iterator[dict[str, object]]:
    for line in (TRANSCRIPTS / f"{session}.jsonl").read_text(encoding="utf-8").splitlines():
        message = json.loads(line).get("msg")
        if isinstance(message, dict):
            yield message


def dictionary(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def recorded(session: str, root: Path) -> Iterator[WorkspaceEdit]:
    formatted: dict[object, str] = {}
    for message in messages(session):
        params = dictionary(message.get("params"))
        if str(message.get("method", "")).endswith("ormatting"):
            formatted[message.get("id")] = str(dictionary(params.get("textDocument")).get("uri"))
        result = message.get("result")
        if isinstance(result, list) and message.get("id") in formatted and result:
            yield WorkspaceEdit((document(formatted[message["id"]], result, root),))
        for item in result if isinstance(result, list) else [result]:
            edit = dictionary(item)
            changes = dictionary(edit.get("edit", edit)).get("documentChanges")
            if isinstance(changes, list):
                yield WorkspaceEdit(
                    tuple(document(str(one["textDocument"]["uri"]), one["edits"], root) for one in changes)
                )


def document(uri: str, edits: list[dict[str, object]], root: Path) -> DocumentEdit:
    path = Path(unquote(uri.replace("$ROOT", os.fspath(root)).removeprefix("file://")))
    return DocumentEdit(path, None, tuple(text_edit(edit) for edit in edits))


def text_edit(edit: dict[str, object]) -> TextEdit:
    place = dictionary(edit["range"])
    start, end = dictionary(place["start"]), dictionary(place["end"])
    return TextEdit(Range(position(start), position(end)), str(edit["newText"]))


def position(place: dict[str, object]) -> Position:
    return Position(int(str(place["line"])), int(str(place["character"])))


@pytest.mark.parametrize("session", SESSIONS)
def test_recorded_edits_are_planned_and_uniform_files_stay_uniform(bakery: Path, session: str) -> None:
    planned = 0
    for edit in recorded(session, bakery):
        baseline = Baseline(bakery)
        if not any(operation.edits for operation in edit.operations if isinstance(operation, DocumentEdit)):
            with pytest.raises(EditRefused, match="incomplete edit"):
                plan(edit, Overlay(baseline), baseline, EditPolicy(bakery))
            continue
        overlay = plan(edit, Overlay(baseline), baseline, EditPolicy(bakery))
        planned += 1
        for change in overlay.changes():
            if change.before is not None and change.after is not None:
                assert change.after.line_endings.uniform == change.before.line_endings.uniform
                assert change.after.encoding == change.before.encoding
            elif change.after is not None:
                assert change.after.line_endings.uniform == "\n"

    assert planned > 0
