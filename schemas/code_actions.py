"""Requests and answers of the three code-action tools."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from schemas.locations import DocumentReference, Span
from schemas.selectors import DocumentSelector, Range, WorkspaceRequest
from schemas.snapshots import ExpectedSnapshot
from schemas.transactions import EXPECTED_SNAPSHOT, StagedMutation
from schemas.wire import Data, Flag, Given, Integer, ListOf, NullMeans, Offset, OrNull, Page, Text, Uuid

ActionKind: TypeAlias = Literal["CodeFix", "Refactoring"]
ActionKinds: TypeAlias = Literal["CodeFixes", "Refactorings", "All"]
FixAllScope: TypeAlias = Literal["Document", "Project", "Solution"]

DEFAULT_ACTION_LIMIT = 50
DEFAULT_MAX_CHANGES = 50
DEFAULT_AFFECTED_DOCUMENTS = 20


class ListCodeActionsRequest(WorkspaceRequest):
    """Ask which code actions there are at a place."""

    document: DocumentSelector = Field(description="Give path or documentId.")
    range: OrNull[Range] = Field(None, description="Selection or caret; the whole document when left out.")
    expected_snapshot: ExpectedSnapshot = Field(description=EXPECTED_SNAPSHOT)
    kinds: ActionKinds
    diagnostic_ids: OrNull[ListOf[str | None]] = Field(
        None, description="Only code fixes for these diagnostics, such as CS0246."
    )
    limit: Annotated[Offset, NullMeans(DEFAULT_ACTION_LIMIT)] = Field(
        DEFAULT_ACTION_LIMIT,
        description="Most actions to return; those that only suppress or configure a diagnostic come last.",
    )


class ActionDiagnostic(Data):
    """A diagnostic that a code fix would mend."""

    id: Text
    message: Text


class ActionLocation(Data):
    """Where an action applies.  Unlike elsewhere, line and column count from zero; columns are UTF-16 units."""

    document: DocumentReference
    span: Span
    line: Given[Integer] = Field(description="Counted from zero.")
    column: Given[Integer] = Field(description="Counted from zero, in UTF-16 units.")


class CodeAction(Data):
    """One action that can be staged by its id, for a while and for this snapshot."""

    action_id: Uuid
    title: Text = Field(description="With its menu's title before it where it says nothing alone.")
    kind: ActionKind
    location: ActionLocation
    diagnostics: OrNull[Page[ActionDiagnostic]] = Field(None, description="What a code fix would mend.")
    fix_all_scopes: OrNull[tuple[FixAllScope, ...]] = Field(
        None, description="Scopes in which all equal findings can be fixed at once."
    )
    title_path: OrNull[tuple[Text, ...]] = Field(
        None, description="All titles from the top of the menu down to this one."
    )
    kind_inferred: OrNull[Flag] = Field(
        None, description="True when the server did not state the kind and it was inferred."
    )


class ListCodeActionsData(Data):
    """The actions at a place, and what cannot be said about them."""

    actions: Given[Page[CodeAction]]
    left_out: OrNull[Integer] = Field(
        None, description="Actions not listed because they need a dialog, a package or a command."
    )
    undecided: OrNull[Text] = Field(
        None, description="Which filter could not be decided for this server, and why."
    )
    notes: OrNull[tuple[Text, ...]] = Field(None, description="Other limits of this answer.")


class PrepareFixAllRequest(WorkspaceRequest):
    """Ask what one listed fix would change in a whole scope."""

    action_id: Uuid = Field(description="Of a listed action that has fixAllScopes, for the same snapshot.")
    scope: FixAllScope = Field(description="One of the action's fixAllScopes.")
    max_changes: Annotated[Offset, NullMeans(DEFAULT_MAX_CHANGES)] = Field(
        DEFAULT_MAX_CHANGES, description="Most documents that may change; beyond it the answer is a refusal."
    )
    affected_documents_limit: Annotated[Offset, NullMeans(DEFAULT_AFFECTED_DOCUMENTS)] = Field(
        DEFAULT_AFFECTED_DOCUMENTS, description="Most affected documents to name."
    )
    expected_snapshot: ExpectedSnapshot = Field(description=EXPECTED_SNAPSHOT)


class PrepareFixAllData(Data):
    """What would change, and the id to stage it by."""

    action_id: Uuid = Field(description="A new id, for stage-code-action.")
    scope: FixAllScope
    affected_diagnostic_count: Given[Integer | None] = Field(
        description="Such diagnostics now, in the affected documents (emulated: in the scope); null when not known, "
        "as for more than 50 affected documents of a server with a fix-all of its own."
    )
    remaining_diagnostic_count: Given[Integer | None] = Field(
        description="How many of them would be left; null when not known."
    )
    counts_unavailable: OrNull[Text] = Field(None, description="Why the counts are not known.")
    affected_documents: Given[Page[DocumentReference]]
    emulated: OrNull[Flag] = Field(
        None,
        description="True when the bridge put it together from single fixes, as this server has no fix-all.",
    )


class StageCodeActionRequest(WorkspaceRequest):
    """Stage one listed action, or one prepared fix-all."""

    action_id: Uuid = Field(description="From list-code-actions or prepare-fix-all, for the same snapshot.")
    expected_snapshot: ExpectedSnapshot = Field(description=EXPECTED_SNAPSHOT)


class StageCodeActionData(StagedMutation):
    """What was staged."""
