"""The five transaction tools."""

from __future__ import annotations

import base64
from typing import Literal

from anyio import to_thread

from bridge.diagnostics import Difference, Finding
from bridge.errors import Action, BridgeError
from bridge.observations import Observed, Unavailable, doubt_about_generated, observed
from bridge.progress import relayed
from bridge.resolution import document_standing_for, require_one_name
from bridge.states import State
from bridge.tools import answers
from bridge.tools.answers import Outcome
from bridge.tools.call import CallContext
from bridge.validation_gate import new_compiler_errors
from bridge.workbench import Workbench
from bridge.workspace import Workspace
from schemas import transactions as wire
from schemas.locations import DocumentError
from schemas.selectors import DocumentSelector
from schemas.wire import Page
from transactions import diff
from transactions.commit import CommitResult
from transactions.overlay import FileChange
from transactions.patch import git_patch
from transactions.transaction import Transaction

LARGEST_PATCH = 1_000_000
"""Bytes of a patch that an answer carries: more than this fills an agent's memory, not its understanding."""

MOST_ERRORS = 50
"""New errors, and fixed ones, that a preview or a refused commit shows; their number is told as well."""


async def start_transaction(
    workbench: Workbench, request: wire.TransactionStartRequest, _context: CallContext
) -> Outcome:
    """Open the process's one transaction on a workspace."""
    workspace = workbench.select(request.workspace)
    await workbench.start_transaction(workspace)
    data = wire.TransactionStartData(transaction=answers.transaction_info(workspace))
    return Outcome(data, f"Transaction started on {workspace.name}.", workspace.snapshot())


async def preview_transaction(
    workbench: Workbench, request: wire.TransactionPreviewRequest, _context: CallContext
) -> Outcome:
    """Everything staged, against the disk as loaded; works in a conflicted transaction and moves nothing."""
    workspace = workbench.select(request.workspace)
    async with workbench.looking(workspace):
        transaction = workspace.require_transaction()
        changes = transaction.changes()
        if request.include_diff and request.document is None:
            raise BridgeError("InvalidRequest", "includeDiff needs the document to diff.")
        detailed = None
        if request.include_diff and request.document is not None:
            detailed = await _detailed(workspace, changes, request.document, request.context_lines)
        summaries = await to_thread.run_sync(_summaries, changes)
        documents = tuple(
            _changed_document(workspace, change, summary)
            for change, summary in zip(changes, summaries, strict=True)
        )
        seen = observed(workspace)
        data = wire.TransactionPreviewData(
            transaction=answers.transaction_info(workspace),
            documents=documents,
            diff=detailed,
            diagnostics_change=_diagnostics_change(workspace, seen) if isinstance(seen, Observed) else None,
            diagnostics_unavailable=seen.reason if isinstance(seen, Unavailable) else None,
            patch=await _patch(transaction) if request.include_patch else None,
        )
        names = ", ".join(
            f"{d.change_kind} {workspace.relative(c.path)}" for d, c in zip(documents, changes, strict=True)
        )
        count = answers.counted(len(changes), "changed document")
        text = f"{count}{': ' + names if names else ''}.{_errors_in_words(seen)}"
        return Outcome(data, text, workspace.snapshot())


async def _patch(transaction: Transaction) -> wire.Patch:
    data = await to_thread.run_sync(git_patch, transaction.changes(), transaction.baseline)
    text = _utf8(data)
    encoding: Literal["utf-8", "base64"] = "base64" if text is None else "utf-8"
    content = base64.b64encode(data).decode("ascii") if text is None else text
    fits = len(data) <= LARGEST_PATCH
    return wire.Patch(encoding=encoding, content=content if fits else None, byte_count=len(data))


def _utf8(data: bytes) -> str | None:
    """The text of these bytes; ``None`` when they are none, or hold what some readers of JSON text drop."""
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _diagnostics_change(workspace: Workspace, seen: Observed) -> wire.DiagnosticsChange:
    return wire.DiagnosticsChange(
        new_errors=_errors(workspace, seen.difference.new),
        fixed_errors=_errors(workspace, seen.difference.fixed),
        document_count=seen.documents,
        unreliable=seen.unreliable,
    )


def _errors(workspace: Workspace, errors: tuple[Finding, ...]) -> Page[DocumentError]:
    shown = errors[:MOST_ERRORS]
    return Page[DocumentError](
        items=tuple(answers.document_error(workspace, error) for error in shown),
        has_more=len(errors) > len(shown),
        total_count=len(errors),
    )


def _errors_in_words(seen: Observed | Unavailable) -> str:
    if isinstance(seen, Unavailable) or seen.difference == Difference((), ()):
        return ""
    new, fixed = len(seen.difference.new), len(seen.difference.fixed)
    doubt = " (not reliable)" if seen.unreliable else ""
    return f" {answers.counted(new, 'new error')}, {fixed} fixed{doubt}."


def _summaries(changes: tuple[FileChange, ...]) -> list[diff.DiffSummary]:
    """Of large changes this takes seconds, so a worker thread does it."""
    return [diff.summary(change.before, change.after) for change in changes]


def _changed_document(
    workspace: Workspace, change: FileChange, summary: diff.DiffSummary
) -> wire.ChangedDocument:
    return wire.ChangedDocument(
        document=answers.document_reference(workspace, document_standing_for(workspace, change.path)),
        change_kind=change.kind,
        preview=wire.ChangeSummary(
            added_lines=summary.added, removed_lines=summary.removed, changed_lines=summary.changed
        ),
        moved_from=workspace.relative(change.moved_from) if change.moved_from else None,
        moved_to=workspace.relative(change.moved_to) if change.moved_to else None,
    )


async def _detailed(
    workspace: Workspace, changes: tuple[FileChange, ...], selector: DocumentSelector, context: int
) -> wire.DocumentDiff:
    change = _named_change(workspace, changes, selector)
    return wire.DocumentDiff(
        document=answers.document_reference(workspace, document_standing_for(workspace, change.path)),
        hunks=await to_thread.run_sync(_hunks, change, context),
        truncated=False,
    )


def _hunks(change: FileChange, context: int) -> tuple[wire.Hunk, ...]:
    """For a worker thread, as the summaries are."""
    return tuple(
        wire.Hunk(
            original_start_line=hunk.original_start_line,
            original_line_count=hunk.original_line_count,
            updated_start_line=hunk.updated_start_line,
            updated_line_count=hunk.updated_line_count,
            lines=tuple(hunk.lines),
            original_lacks_final_newline=hunk.original_lacks_final_newline or None,
            updated_lacks_final_newline=hunk.updated_lacks_final_newline or None,
        )
        for hunk in diff.hunks(change.before, change.after, context)
    )


def _named_change(
    workspace: Workspace, changes: tuple[FileChange, ...], selector: DocumentSelector
) -> FileChange:
    require_one_name(selector)
    for change in changes:
        document = document_standing_for(workspace, change.path)
        if selector.document_id == document.id or (
            selector.path is not None and selector.path.replace("\\", "/") == workspace.relative(change.path)
        ):
            return change
    raise BridgeError(
        "InvalidRequest",
        f"{selector.path or selector.document_id!r} is not among the changed documents of this transaction.",
        action=Action.RESOLVE_AGAIN,
    )


async def move_in_history(
    workbench: Workbench, request: wire.TransactionHistoryRequest, _context: CallContext
) -> Outcome:
    """Undo or redo one revision."""
    workspace = workbench.select(request.workspace)
    async with workbench.mutating(workspace):
        transaction = workspace.require_transaction()
        workspace.require_snapshot(answers.snapshot_expected(request.expected_snapshot))
        if request.direction == "Undo":
            transaction.undo()
        else:
            transaction.redo()
        data = wire.TransactionHistoryData(transaction=answers.transaction_info(workspace))
        text = f"{request.direction}: now at revision {transaction.revision} of {transaction.revision_count}."
        return Outcome(data, text, workspace.snapshot())


async def commit_transaction(
    workbench: Workbench, request: wire.TransactionCommitRequest, context: CallContext
) -> Outcome:
    """Write everything staged, all or nothing; a validation reports progress to callers who ask for it."""
    workspace = workbench.select(request.workspace)
    async with workbench.holding(workspace):
        transaction = workspace.require_transaction()
        workspace.require_snapshot(
            answers.snapshot_expected(request.expected_snapshot), action=Action.PREVIEW_AGAIN
        )
        workspace.require_usable()
        if transaction.revision == 0:
            data = wire.TransactionCommitData(
                committed=False, transaction=answers.transaction_info(workspace)
            )
            return Outcome(data, "Nothing is staged; the transaction stays open.", workspace.snapshot())
        last = answers.transaction_info(workspace)
        if workbench.options.commit_validation == "no-new-compiler-errors":
            async with relayed(context.report_progress) as tell:
                _require_none(workspace, await new_compiler_errors(workspace, tell))
        generated = doubt_about_generated(workspace)
        result = await workbench.commit(workspace)
        notes = (*_commit_notes(workspace, result), *filter(None, [generated]))
        data = wire.TransactionCommitData(
            committed=True, transaction=_over(last) if last else None, notes=notes or None
        )
        text = " ".join((f"Committed {answers.counted(len(result.written), 'file')}.", *notes))
        return Outcome(data, text, workspace.snapshot())


def _require_none(workspace: Workspace, errors: tuple[Finding, ...]) -> None:
    if not errors:
        return
    shown = tuple(answers.document_error(workspace, error) for error in errors[:MOST_ERRORS])
    first = shown[0]
    raise BridgeError(
        "NewCompilerErrors",
        f"The commit would bring {answers.counted(len(errors), 'compiler error')}, the first at {first.path}:{first.line}: "
        f"{first.id} {first.message} Nothing was written; the transaction is still open. "
        f"{doubt_about_generated(workspace)}".rstrip(),
        diagnostics=shown,
    )


def _over(last: wire.TransactionInfo) -> wire.TransactionInfo:
    """The last state of a transaction that is over: nothing can be done with it any more."""
    nothing = dict.fromkeys(("can_mutate", "can_undo", "can_redo", "can_commit", "can_rollback"), False)
    return last.model_copy(update={**nothing, "remaining_revisions": 0})


def _commit_notes(workspace: Workspace, result: CommitResult) -> tuple[str, ...]:
    """What a commit that succeeded still has to tell a person."""
    kept = (
        f"{workspace.relative(original.path)} was written to by somebody else during the commit; "
        f"what they wrote is kept at {original.kept_at}."
        for original in result.kept
    )
    leftovers = (f"{path} could not be removed; it may be deleted." for path in result.leftovers)
    return (*kept, *leftovers)


async def roll_back_transaction(
    workbench: Workbench, request: wire.TransactionRollbackRequest, _context: CallContext
) -> Outcome:
    """Drop everything staged."""
    workspace = workbench.select(request.workspace)
    state = await workbench.roll_back(workspace)
    data = wire.TransactionRollbackData(state="Ready" if state is State.READY else "WorkspaceOutOfDate")
    return Outcome(data, f"Rolled back; {workspace.name} is {state.value}.", workspace.snapshot())
