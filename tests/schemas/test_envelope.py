"""The dicts that go on the wire."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from schemas.code_actions import ActionLocation, CodeAction, ListCodeActionsData
from schemas.envelope import (
    CallTool,
    ChooseTool,
    ResolveExternally,
    RetryRequest,
    ReviseRequest,
    failure,
    success,
)
from schemas.locations import DocumentReference, Span
from schemas.server import duration
from schemas.snapshots import Snapshot
from schemas.transactions import DocumentDiff, Hunk, TransactionPreviewData
from schemas.wire import Page
from schemas.workspaces import WorkspaceCloseData, WorkspaceOpenData

WORKSPACE = "11111111-1111-1111-1111-111111111111"
STATE = "22222222-2222-2222-2222-222222222222"


def snapshot(revision: int | None) -> Snapshot:
    return Snapshot(
        workspace_id=WORKSPACE, workspace_epoch=3, snapshot_id=STATE, transaction_revision=revision
    )


def test_a_success_carries_its_data_and_the_snapshot() -> None:
    assert success(WorkspaceCloseData(closed_path="/a.sln"), snapshot(2)) == {
        "ok": True,
        "data": {"closedPath": "/a.sln"},
        "snapshot": {
            "workspaceId": WORKSPACE,
            "workspaceEpoch": 3,
            "snapshotId": STATE,
            "transactionRevision": 2,
        },
    }


def test_the_revision_is_always_there_and_null_outside_a_transaction() -> None:
    assert snapshot(None).wire()["transactionRevision"] is None


def test_an_answer_bound_to_no_workspace_has_no_snapshot() -> None:
    assert success(None) == {"ok": True, "data": None}


def test_what_is_not_known_is_absent_and_what_is_empty_is_empty() -> None:
    action = CodeAction(
        action_id=STATE,
        title="Use it",
        kind="Refactoring",
        location=ActionLocation(
            document=DocumentReference(document_id="d", path="a.cs", project_id="p"),
            span=Span(start=1, length=0),
            line=0,
            column=1,
        ),
        fix_all_scopes=(),
    )
    data = ListCodeActionsData(actions=Page[CodeAction](items=(action,), has_more=False), undecided=None)
    assert data.wire() == {
        "actions": {
            "items": [
                {
                    "actionId": STATE,
                    "title": "Use it",
                    "kind": "Refactoring",
                    "location": {
                        "document": {"documentId": "d", "path": "a.cs", "projectId": "p"},
                        "span": {"start": 1, "length": 0},
                        "line": 0,
                        "column": 1,
                    },
                    "fixAllScopes": [],
                }
            ],
            "hasMore": False,
        }
    }


def test_members_we_always_give_cannot_be_forgotten() -> None:
    with pytest.raises(ValidationError, match="documentCount"):
        WorkspaceOpenData.model_validate({"workspace": None, "projectCount": 1, "loadDiagnostics": []})


def test_lone_surrogates_leave_as_replacement_characters() -> None:
    hunk = Hunk(
        original_start_line=1,
        original_line_count=1,
        updated_start_line=1,
        updated_line_count=1,
        lines=("+\ud83d", "+\U0001f600"),
    )
    preview = TransactionPreviewData(
        transaction=None,
        documents=(),
        diff=DocumentDiff(document=None, hunks=(hunk,), truncated=False),
    )
    data = success(preview)["data"]
    assert isinstance(data, dict)
    assert data["diff"]["hunks"][0]["lines"] == ["+\ufffd", "+\U0001f600"]


def test_a_failure_carries_its_code_message_and_continuation() -> None:
    answer = failure(
        "NoActiveTransaction", "None is open.", CallTool(tool="transaction-start", instruction="Do.")
    )
    assert answer == {
        "ok": False,
        "error": {"code": "NoActiveTransaction", "message": "None is open."},
        "continuation": {"kind": "CallTool", "tool": "transaction-start", "instruction": "Do."},
    }


def test_a_failure_without_a_way_on_has_no_continuation() -> None:
    assert failure("UnhandledException", "Sorry.", correlation_id="c1") == {
        "ok": False,
        "error": {"code": "UnhandledException", "message": "Sorry.", "correlationId": "c1"},
    }


def test_a_failure_never_lets_a_lone_surrogate_out() -> None:
    answer = failure("WorkspacePathInvalid", "/\udc80", ReviseRequest(instruction="Not /\udc80."))
    assert answer["error"] == {"code": "WorkspacePathInvalid", "message": "/\ufffd"}
    assert answer["continuation"] == {"kind": "ReviseRequest", "instruction": "Not /\ufffd."}


@pytest.mark.parametrize("kind", [RetryRequest, ReviseRequest, ResolveExternally])
def test_a_continuation_names_its_kind(
    kind: type[RetryRequest] | type[ReviseRequest] | type[ResolveExternally],
) -> None:
    assert kind(instruction="Go on.").wire() == {"kind": kind.__name__, "instruction": "Go on."}


def test_a_choice_of_tools_offers_each_once_and_at_least_one() -> None:
    choice = ChooseTool(tools=("transaction-commit", "transaction-rollback"), instruction="End it.")
    assert choice.wire()["tools"] == ["transaction-commit", "transaction-rollback"]
    with pytest.raises(ValidationError, match="named twice"):
        ChooseTool(tools=("a", "a"), instruction="End it.")
    with pytest.raises(ValidationError):
        ChooseTool(tools=(), instruction="End it.")


def test_an_instruction_is_never_empty() -> None:
    with pytest.raises(ValidationError):
        RetryRequest(instruction="")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "00:00:00"),
        (300, "00:05:00"),
        (86400, "1.00:00:00"),
        (90061.5, "1.01:01:01.500000"),
        (-1.25, "-00:00:01.250000"),
        (-0.0, "00:00:00"),
    ],
)
def test_a_length_of_time_is_days_hours_minutes_and_seconds(seconds: float, text: str) -> None:
    assert duration(seconds) == text
