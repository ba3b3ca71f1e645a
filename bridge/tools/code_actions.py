"""``list-code-actions``, ``prepare-fix-all`` and ``stage-code-action``."""

from __future__ import annotations

from bridge import code_actions, fix_all
from bridge.action_references import PreparedFixAll
from bridge.membership import doubt_about
from bridge.progress import relayed
from bridge.projects import Document
from bridge.resolution import resolve_document, resolve_range
from bridge.server_edits import range_from_server
from bridge.tools import answers
from bridge.tools.answers import Outcome
from bridge.tools.call import CallContext
from bridge.workbench import Workbench
from bridge.workspace import Workspace
from lsp_client import messages
from lsp_client.dialects.base import ServerAction
from schemas import code_actions as wire
from schemas import locations
from schemas.transactions import StagedTransaction
from schemas.wire import Page
from transactions.errors import TextError
from transactions.text import Range, SourceText

SCOPES: tuple[wire.FixAllScope, ...] = ("Document", "Project", "Solution")

MOST_DIAGNOSTICS = 20
"""Diagnostics shown for one fix; more is noise for who chooses an action."""


async def list_code_actions(
    workbench: Workbench, request: wire.ListCodeActionsRequest, _context: CallContext
) -> Outcome:
    """What the server offers at a place of the current text."""
    workspace = workbench.select(request.workspace)
    async with workbench.reading(workspace):
        workspace.require_snapshot(answers.snapshot_expected(request.expected_snapshot))
        document = resolve_document(workspace, request.document)
        text = code_actions.readable_text(workspace, document.path)
        place = resolve_range(text, request.range)
        offer = await code_actions.offered_at(workspace, document, place)
        ids = frozenset(i for i in request.diagnostic_ids or () if i is not None)
        fitting = [a for a in offer.listing.actions if code_actions.matches(a, request.kinds, ids)]
        shown = code_actions.told_in_order(fitting)[: request.limit]
        action_ids = code_actions.references_for(workspace, document, place, offer, shown)
        data = wire.ListCodeActionsData(
            actions=Page[wire.CodeAction](
                items=tuple(
                    _action(key, action, _location(workspace, document, text, action.place, place))
                    for key, action in zip(action_ids, shown, strict=True)
                ),
                has_more=len(fitting) > len(shown),
                total_count=len(fitting),
            ),
            left_out=offer.listing.left_out or None,
            undecided=code_actions.undecided(offer.listing, request.kinds, ids),
            notes=_notes(workspace) or None,
        )
        count = answers.counted(len(fitting), "action")
        return Outcome(data, f"{count} at {workspace.relative(document.path)}.", workspace.snapshot())


def _location(
    workspace: Workspace, document: Document, text: SourceText, told: messages.Range | None, asked: Range
) -> wire.ActionLocation:
    """Where the server says that an action applies, else the place that was asked about."""
    place = asked if told is None else range_from_server(told)
    try:
        start, end = text.offset_at(place.start), text.offset_at(place.end)
    except TextError:  # the server's word for the place is not of this text
        place = asked
        start, end = text.offset_at(asked.start), text.offset_at(asked.end)
    return wire.ActionLocation(
        document=answers.document_reference(workspace, document),
        span=locations.Span(start=start, length=end - start),
        line=place.start.line,
        column=place.start.character,
    )


def _action(action_id: str, action: ServerAction, location: wire.ActionLocation) -> wire.CodeAction:
    diagnostics = None
    if action.kind == "CodeFix" and action.diagnostics is not None:
        shown = action.diagnostics[:MOST_DIAGNOSTICS]
        diagnostics = Page[wire.ActionDiagnostic](
            items=tuple(wire.ActionDiagnostic(id=found, message=message) for found, message in shown),
            has_more=len(action.diagnostics) > len(shown),
            total_count=len(action.diagnostics),
        )
    scopes = tuple(scope for scope in SCOPES if scope in action.fix_all_scopes)
    return wire.CodeAction(
        action_id=action_id,
        title=code_actions.telling_title(action),
        kind=action.kind,
        location=location,
        diagnostics=diagnostics,
        fix_all_scopes=scopes or None,
        title_path=action.title_path,
        kind_inferred=action.kind_inferred or None,
    )


def _notes(workspace: Workspace) -> tuple[str, ...]:
    """What this answer cannot know: a created file that its server does not take for a project member yet."""
    return tuple(filter(None, [doubt_about(workspace, workspace.outsiders)]))


async def prepare_fix_all(
    workbench: Workbench, request: wire.PrepareFixAllRequest, context: CallContext
) -> Outcome:
    """What one listed fix would change in a whole scope; it can be staged by the id that comes back."""
    workspace = workbench.select(request.workspace)
    async with relayed(context.report_progress) as tell, workbench.examining(workspace):
        workspace.require_snapshot(answers.snapshot_expected(request.expected_snapshot))
        prepared = await fix_all.prepare(
            workspace,
            request.action_id,
            request.scope,
            most_documents=request.max_changes,
            line_endings=workbench.options.line_endings,
            tell=tell,
        )
        shown = prepared.documents[: request.affected_documents_limit]
        data = wire.PrepareFixAllData(
            action_id=prepared.action_id,
            scope=request.scope,
            affected_diagnostic_count=prepared.counts.before,
            remaining_diagnostic_count=prepared.counts.after,
            counts_unavailable=prepared.counts.unknown,
            affected_documents=Page[locations.DocumentReference](
                items=tuple(answers.document_reference(workspace, document) for document in shown),
                has_more=len(prepared.documents) > len(shown),
                total_count=len(prepared.documents),
            ),
            emulated=prepared.emulated or None,
        )
        return Outcome(data, _prepared_in_words(prepared, request.scope), workspace.snapshot())


def _prepared_in_words(prepared: fix_all.Prepared, scope: str) -> str:
    changed = answers.counted(len(prepared.documents), "document")
    counts = prepared.counts
    known = "" if counts.before is None else f", {counts.before} diagnostics before and {counts.after} after"
    by_us = ", put together by the bridge" if prepared.emulated else ""
    return f"{prepared.title} for the whole {scope.lower()} would change {changed}{known}{by_us}."


async def stage_code_action(
    workbench: Workbench, request: wire.StageCodeActionRequest, _context: CallContext
) -> Outcome:
    """Stage one listed action, or one prepared fix-all, as a revision of the transaction."""
    workspace = workbench.select(request.workspace)
    expected = answers.snapshot_expected(request.expected_snapshot)
    async with workbench.staging(workspace, expected) as transaction:
        reference = code_actions.reference_behind(workspace, request.action_id)
        line_endings = workbench.options.line_endings
        if isinstance(reference, PreparedFixAll):
            result = await fix_all.stage(workspace, request.action_id, reference, line_endings)
        else:
            result = await code_actions.stage(workspace, reference, line_endings)
        workspace.references.consume(request.action_id)
        data = wire.StageCodeActionData(
            staged=result.staged,
            summary=result.summary,
            transaction=StagedTransaction(revision=transaction.revision),
        )
        return Outcome(data, result.summary, workspace.snapshot())
