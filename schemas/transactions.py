"""Requests and answers of the five transaction tools, and the state of a transaction."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from pydantic import Field

from schemas.locations import DocumentError, DocumentReference
from schemas.selectors import DocumentSelector, WorkspaceRequest
from schemas.snapshots import ExpectedSnapshot
from schemas.wire import Data, Flag, Given, Integer, Offset, OrNull, Page, Text

EXPECTED_SNAPSHOT = "The snapshot, unchanged, of the answer this request builds on."

ChangeKind: TypeAlias = Literal["Added", "Modified", "Deleted"]
Direction: TypeAlias = Literal["Undo", "Redo"]


class TransactionInfo(Data):
    """Where a transaction stands and what may be done with it."""

    revision: Given[Integer] = Field(description="The revision that counts now; 0 is the start.")
    revision_count: Given[Integer] = Field(description="Revisions kept, undone ones included.")
    max_revisions: Given[Integer] = Field(description="Most revisions one transaction keeps.")
    remaining_revisions: Given[Integer] = Field(description="How many more can be staged from here.")
    can_mutate: Given[Flag] = Field(description="Whether another change may be staged.")
    can_undo: Given[Flag] = Field(description="Whether there is a revision to go back from.")
    can_redo: Given[Flag] = Field(description="Whether there is an undone revision to go to.")
    can_commit: Given[Flag] = Field(description="Whether the staged changes may be written to disk.")
    can_rollback: Given[Flag] = Field(description="Whether everything staged may be dropped.")


class TransactionData(Data):
    """The answer of the tools that only move a transaction."""

    transaction: Given[OrNull[TransactionInfo]]


class TransactionStartRequest(WorkspaceRequest):
    """Open the process's one transaction on a workspace."""


class TransactionStartData(TransactionData):
    """The transaction that was opened."""


class TransactionPreviewRequest(WorkspaceRequest):
    """Ask what is staged."""

    document: OrNull[DocumentSelector] = Field(
        None, description="The document to diff; needed with includeDiff."
    )
    include_diff: Flag = Field(default=False, description="Also return the full diff of that document.")
    context_lines: Offset = Field(3, description="Unchanged lines around each hunk.")
    include_patch: Flag = Field(
        default=False, description="Also return everything staged as one patch for git apply or patch -p1."
    )


class ChangeSummary(Data):
    """How many lines one document's change touches, against the state on disk."""

    added_lines: Given[Integer]
    removed_lines: Given[Integer]
    changed_lines: Given[Integer]


class ChangedDocument(Data):
    """One document that the transaction adds, modifies or deletes."""

    document: Given[OrNull[DocumentReference]]
    change_kind: Given[ChangeKind]
    preview: OrNull[ChangeSummary] = Field(None, description="Line counts of the change.")
    moved_from: OrNull[Text] = Field(None, description="Path before a move, on the added side of it.")
    moved_to: OrNull[Text] = Field(None, description="Path after a move, on the deleted side of it.")


class Hunk(Data):
    """One changed region as in a unified diff; lines count from one."""

    original_start_line: Given[Integer] = Field(description="Counted from one.")
    original_line_count: Given[Integer]
    updated_start_line: Given[Integer] = Field(description="Counted from one.")
    updated_line_count: Given[Integer]
    lines: Given[tuple[Text, ...]] = Field(description="Each led by a space, + or -.")
    original_lacks_final_newline: OrNull[Flag] = Field(
        None, description="True when the last original line is shown and has no line end."
    )
    updated_lacks_final_newline: OrNull[Flag] = Field(
        None, description="True when the last updated line is shown and has no line end."
    )


class DocumentDiff(Data):
    """The full diff of one document."""

    document: Given[OrNull[DocumentReference]]
    hunks: Given[tuple[Hunk, ...]]
    truncated: Given[Flag] = Field(description="Whether hunks were left out.")


class DiagnosticsChange(Data):
    """What the staged changes do to the compiler's errors in the changed documents; others are not looked at."""

    new_errors: Given[Page[DocumentError]] = Field(description="Places are those of the staged text.")
    fixed_errors: Given[Page[DocumentError]] = Field(description="Places are those of the text on disk.")
    document_count: Given[Integer] = Field(description="Changed documents that were compared.")
    unreliable: OrNull[Text] = Field(
        None, description="Why this may be wrong or not the whole; absent when nothing speaks against it."
    )


class Patch(Data):
    """Everything staged, byte by byte, relative to the workspace root."""

    encoding: Given[Literal["utf-8", "base64"]] = Field(
        description="How content stands for the patch's bytes; base64 when they are no UTF-8."
    )
    content: OrNull[Text] = Field(None, description="Absent when the patch is too large for an answer.")
    byte_count: Given[Integer]


class TransactionPreviewData(Data):
    """Everything staged, and the diff that was asked for."""

    transaction: Given[OrNull[TransactionInfo]]
    documents: Given[tuple[ChangedDocument, ...]] = Field(
        description="Added, then modified, then deleted ones."
    )
    diff: OrNull[DocumentDiff] = None
    diagnostics_change: OrNull[DiagnosticsChange] = None
    diagnostics_unavailable: OrNull[Text] = Field(
        None, description="Why there is no diagnosticsChange; absent when there is one."
    )
    patch: OrNull[Patch] = None


class TransactionHistoryRequest(WorkspaceRequest):
    """Step one revision back or forward."""

    direction: Direction = Field(description="Undo goes one revision back, Redo one forward.")
    expected_snapshot: ExpectedSnapshot = Field(description=EXPECTED_SNAPSHOT)


class TransactionHistoryData(TransactionData):
    """The transaction after the step."""


class TransactionCommitRequest(WorkspaceRequest):
    """Write the staged changes to disk, all or none."""

    expected_snapshot: ExpectedSnapshot = Field(description=EXPECTED_SNAPSHOT)


class TransactionCommitData(Data):
    """What came of the commit."""

    committed: Given[Flag]
    transaction: OrNull[TransactionInfo] = Field(None, description="Its last state.")
    notes: OrNull[tuple[Text, ...]] = Field(
        None, description="What a person should look at, such as a file somebody wrote to during the commit."
    )


class TransactionRollbackRequest(WorkspaceRequest):
    """Drop everything staged."""


class TransactionRollbackData(Data):
    """The workspace after the rollback."""

    state: Given[Literal["Ready", "WorkspaceOutOfDate"]]


class StagedTransaction(Data):
    """Where the transaction stands after a staging."""

    revision: Integer


class StagedMutation(Data):
    """The answer of every tool that stages a change."""

    may_be_null: ClassVar[bool] = False

    staged: Flag = Field(description="False when the change would have altered nothing.")
    summary: OrNull[Text] = None
    transaction: OrNull[StagedTransaction] = None
