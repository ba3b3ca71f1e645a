"""Decoding: only what is read must have its form, and odd JSON is read all the same."""

import json

import msgspec
import pytest

from lsp_client.errors import ProtocolViolation
from lsp_client.messages import (
    CodeAction,
    CreateFile,
    DeleteFile,
    Diagnostic,
    DiagnosticReport,
    LoggedMessage,
    Position,
    ProgressParams,
    Range,
    RenameFile,
    TextDocumentEdit,
    TextEdit,
    VersionedDocument,
    WorkspaceEdit,
    decode,
    decode_optional,
    decode_plain,
    encode,
)
from tests.shared import TRANSCRIPTS

RANGE = {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}}
PLACE = Range(Position(1, 2), Position(3, 4))


def wire(value: object) -> bytes:
    return json.dumps(value).encode()


def test_document_changes_become_operations_in_their_order() -> None:
    edit = decode(
        wire(
            {
                "documentChanges": [
                    {"kind": "delete", "uri": "file:///d", "options": {"ignoreIfNotExists": True}},
                    {
                        "kind": "create",
                        "uri": "file:///c",
                        "options": {"overwrite": False, "ignoreIfExists": True},
                    },
                    {
                        "textDocument": {"uri": "file:///c", "version": None},
                        "edits": [{"range": RANGE, "newText": "x"}],
                    },
                    {"textDocument": {"uri": "file:///e"}, "edits": []},
                    {"kind": "rename", "oldUri": "file:///o", "newUri": "file:///n"},
                ],
                "changes": {"file:///ignored": []},
            }
        ),
        WorkspaceEdit,
    )
    deleted, created, edited, empty, renamed = edit.operations()
    assert isinstance(deleted, DeleteFile)
    assert deleted.options.ignore_if_not_exists
    assert isinstance(created, CreateFile)
    assert (created.options.overwrite, created.options.ignore_if_exists) == (False, True)
    assert edited == TextDocumentEdit(VersionedDocument("file:///c"), [TextEdit(PLACE, "x")])
    assert empty == TextDocumentEdit(VersionedDocument("file:///e"), [])
    assert renamed == RenameFile("file:///o", "file:///n")


def test_plain_changes_are_edits_of_documents_without_a_version() -> None:
    edit = decode(wire({"changes": {"file:///a": [{"range": RANGE, "newText": "x"}]}}), WorkspaceEdit)
    assert edit.operations() == (TextDocumentEdit(VersionedDocument("file:///a"), [TextEdit(PLACE, "x")]),)


@pytest.mark.parametrize("value", [{}, {"documentChanges": []}, {"documentChanges": None, "changes": None}])
def test_an_empty_edit_has_no_operations(value: object) -> None:
    assert decode(wire(value), WorkspaceEdit).operations() == ()


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "move", "uri": "file:///a"},
        {"kind": "create"},
        {"kind": "rename", "oldUri": "file:///a"},
        {},
        {"edits": []},
    ],
)
def test_an_operation_that_is_unknown_or_incomplete_is_refused_not_skipped(change: object) -> None:
    edit = decode(wire({"documentChanges": [change]}), WorkspaceEdit)
    with pytest.raises(ProtocolViolation, match="document change"):
        edit.operations()


@pytest.mark.parametrize(
    ("members", "is_snippet"),
    [
        ({"newText": "x"}, False),
        ({"newText": "x", "insertTextFormat": 1}, False),
        ({"newText": "x", "annotationId": "a"}, False),
        ({"newText": "$0", "insertTextFormat": 2}, True),
        ({"snippet": {"kind": "snippet", "value": "$0"}}, True),
    ],
)
def test_a_snippet_is_told_from_text(members: dict[str, object], is_snippet: bool) -> None:
    assert decode(wire({"range": RANGE, **members}), TextEdit).is_snippet is is_snippet


def test_an_edit_without_a_text_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="newText"):
        decode(wire({"range": RANGE}), TextEdit)


def test_private_tags_and_unknown_severities_do_not_spoil_a_report() -> None:
    item = {
        "range": RANGE,
        "message": "m",
        "severity": 9,
        "code": "CS0103",
        "tags": [1, 2147483640],
        "_vs_x": {},
    }
    report = decode(
        wire({"kind": "full", "resultId": "r", "items": [item, {**item, "code": 7}]}), DiagnosticReport
    )
    assert report.items is not None
    assert [diagnostic.id for diagnostic in report.items] == ["CS0103", "7"]
    assert report.items[0].severity == 9


def test_columns_at_the_edge_of_the_type_are_read() -> None:
    position = decode(wire({"line": 4294967295, "character": -1}), Position)
    assert (position.line, position.character) == (4294967295, -1)


def test_what_goes_back_to_the_server_keeps_every_byte() -> None:
    data = b'{ "CodeActionPath" :["A","B"],"n": 1.0e2 , "u":"\\u00e9"}'
    command = b'{"title":"t", "command":"roslyn.client.nestedCodeAction"  }'
    action = decode(b'{"title":"t","command":' + command + b',"data":' + data + b"}", CodeAction)
    assert action.data is not None
    assert action.command is not None
    assert bytes(action.data) == data
    assert bytes(action.command) == command
    assert encode({"data": action.data}) == b'{"data":' + data + b"}"


def test_a_list_may_be_read_as_raw_items_and_each_item_again() -> None:
    items = decode(b'[{"title":"a","x":1},{"title":"b"}]', list[msgspec.Raw])
    assert [decode(item, CodeAction).title for item in items] == ["a", "b"]
    assert bytes(items[0]) == b'{"title":"a","x":1}'


def test_lone_surrogates_are_kept_in_strings_and_in_raw_parts() -> None:
    action = decode(rb'{"title":"a\ud800b","kind":"quickfix","data":{"p":["\udc00"]}}', CodeAction)
    assert action.title == "a\ud800b"
    assert action.data is not None
    assert json.loads(bytes(action.data)) == {"p": ["\udc00"]}


def test_lone_surrogates_do_not_hide_a_wrong_form() -> None:
    with pytest.raises(ProtocolViolation, match="CodeAction"):
        decode(rb'{"title":5,"kind":"\ud800"}', CodeAction)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (rb'{"a":"\ud800"}', {"a": "\ud800"}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"big":1180591620717411303424}', {"big": 2**70}),
        (b'{"jsonrpc":"^2.0"}', {"jsonrpc": "^2.0"}),
        (b"null", None),
    ],
)
def test_json_of_every_kind_is_read_plain(data: bytes, value: object) -> None:
    assert decode_plain(data) == value


@pytest.mark.parametrize("data", [b"", b"{", b"hello", b"[1,]", b'"\xff"', b"[" * 100_000])
def test_what_is_no_json_is_a_violation(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        decode_plain(data)


@pytest.mark.parametrize("data", [b"5", b"[]", b'{"uri":1}', b'{"range":{"start":null}}'])
def test_another_form_is_a_violation_that_names_the_place(data: bytes) -> None:
    with pytest.raises(ProtocolViolation, match="unexpected form of Diagnostic"):
        decode(data, Diagnostic)


def test_null_is_told_from_a_value() -> None:
    assert decode_optional(b"null", WorkspaceEdit) is None
    assert decode_optional(b" null ", WorkspaceEdit) is None
    assert decode_optional(b"{}", WorkspaceEdit) == WorkspaceEdit()


def test_an_unknown_message_type_is_read() -> None:
    assert decode(b'{"type":6,"message":"m"}', LoggedMessage) == LoggedMessage("m", 6)


@pytest.mark.parametrize("token", [7, "t"])
def test_a_progress_token_is_a_number_or_a_string(token: int | str) -> None:
    assert decode(wire({"token": token, "value": {"kind": "begin"}}), ProgressParams).token == token


@pytest.mark.parametrize("value", ["\ud800", object(), {1, object()}])
def test_what_has_no_json_is_not_encoded(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        encode(value)


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the recorded conversations are not here")
def test_every_recorded_edit_and_report_of_the_real_servers_is_read() -> None:
    edits = reports = actions = 0
    for path in sorted(TRANSCRIPTS.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            message = json.loads(line).get("msg")
            result = message.get("result") if isinstance(message, dict) else None
            if isinstance(result, dict) and ("documentChanges" in result or "changes" in result):
                edits += len(decode(wire(result), WorkspaceEdit).operations())
            elif isinstance(result, dict) and "items" in result and "kind" in result:
                reports += len(decode(wire(result), DiagnosticReport).items or [])
            elif isinstance(result, list) and result and "title" in (result[0] or {}):
                actions += len(decode(wire(result), list[CodeAction]))
            elif isinstance(result, dict) and "title" in result:
                edit = decode(wire(result), CodeAction).edit
                edits += 0 if edit is None else len(edit.operations())
    assert min(edits, reports, actions) > 20
