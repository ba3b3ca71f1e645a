"""Code actions: listing what the server offers, and staging one of it.

A listed action is not kept.  What is kept is a reference: the place that was asked about and the titles from the menu
down.  Staging asks the server again at that place, on the very same texts, and demands exactly one action of that
name; only its edit is taken, planned on the overlay as a whole, and staged as one revision.  So a stale, doubled or
vanished action is a refusal, and nothing is ever half staged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bridge.action_references import ActionReference, PreparedFixAll
from bridge.emulated_scopes import with_emulated_scopes
from bridge.errors import BridgeError
from bridge.projects import Document
from bridge.questions import ask, not_seen
from bridge.resolution import project_meant
from bridge.server_edits import range_to_server, workspace_edit_from_server
from bridge.staging import Staged, plan_edit, stage_planned
from bridge.whole_edits import require_whole
from bridge.workspace import Workspace
from lsp_client import messages
from lsp_client.dialects.base import ActionListing, ProjectChoice, ServerAction
from lsp_client.dialects.common import suppresses_or_configures
from lsp_client.errors import CONTENT_MODIFIED, ResponseError
from lsp_client.failures import CommandRefused, DocumentNotSeen
from lsp_client.session import Session
from transactions import edits
from transactions.errors import EditRefused
from transactions.text import LineEndingPolicy, Range, SourceText

T = TypeVar("T")

CANNOT_ANSWER = -30099
"""Roslyn's code for a request it cannot serve and nobody should be alarmed about, such as a file over a limit."""


STAGE_ATTEMPTS = 2
"""How often an action is looked for and resolved while the server says that the text has moved: it is listed once more."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What one place offers, and from which server process."""

    listing: ActionListing
    generation: int


async def offered_at(workspace: Workspace, document: Document, place: Range) -> Offer:
    """Ask the server what it offers at a place of the current text.  Needs a lease.

    Raises ``CodeActionsUnavailable`` where the server has no answer for the file, and the server's own failures.
    """
    project = project_meant(workspace, document)

    async def question(session: Session) -> Offer:
        generation = workspace.supervisor.generation
        async with listed(workspace, session, document.path, place, project) as found:
            listing = await with_emulated_scopes(
                workspace, session, document.path, found.listing, found.diagnostics
            )
            return Offer(listing, generation)

    return await ask(workspace, question)


@dataclass(frozen=True, slots=True)
class Listed:
    """What a server lists for a place, and its diagnostics of the whole document; ``None`` where it has none."""

    listing: ActionListing
    diagnostics: tuple[messages.Diagnostic, ...] | None


@asynccontextmanager
async def listed(
    workspace: Workspace, session: Session, path: Path, place: Range, project: ProjectChoice | None
) -> AsyncIterator[Listed]:
    """The actions of a place, with the document kept in the server's sight while they are used.

    Raises ``CodeActionsUnavailable`` and ``DocumentInSeveralProjects`` besides the server's own failures.
    """
    async with session.looking_at({path: readable_text(workspace, path).text}):
        try:
            diagnostics = None
            if session.dialect.has_diagnostics:
                diagnostics = await session.diagnostics(path, project=project)
            listing = await session.list_actions(path, range_to_server(place), diagnostics, project=project)
        except DocumentNotSeen as error:
            raise not_seen(workspace, error, otherwise="CodeActionsUnavailable") from error
        except ResponseError as error:
            if error.code != CANNOT_ANSWER:
                raise
            raise BridgeError(
                "CodeActionsUnavailable", f"The server has no answer: {error.message}"
            ) from error
        yield Listed(listing, diagnostics)


def readable_text(workspace: Workspace, path: Path) -> SourceText:
    """The current text of a document.  Raises ``CodeActionsUnavailable`` for a file that is no text to us."""
    text = workspace.text(path)
    if text is None:
        raise BridgeError(
            "CodeActionsUnavailable",
            f"Nothing can be offered for {workspace.relative(path)}: {workspace.unreadable_reason(path)}.",
        )
    return text


def matches(action: ServerAction, kinds: str, diagnostic_ids: frozenset[str]) -> bool:
    """Whether an action passes the filters of a request.

    The ids narrow code fixes only, as the contract says; a fix whose diagnostics are not known stays, and the answer
    says that the filter could not be decided.
    """
    if kinds != "All" and action.kind != {"CodeFixes": "CodeFix", "Refactorings": "Refactoring"}[kinds]:
        return False
    if not diagnostic_ids or action.kind != "CodeFix" or action.diagnostics is None:
        return True
    return any(found in diagnostic_ids for found, _ in action.diagnostics)


def told_in_order(actions: Sequence[ServerAction]) -> list[ServerAction]:
    """The server's order, but what only silences or configures a rule comes last: there are dozens for one place."""
    return sorted(actions, key=lambda action: suppresses_or_configures(action.title_path))


def telling_title(action: ServerAction) -> str:
    """The title to choose an action by: with the menu's before it, where its own is the end of that sentence.

    Under "Configure CA1822 severity" stand "None" and "Silent", under "Suppress CA1822" stands "in Source".  A using
    directive begins in lower case as well, and says enough.
    """
    begins_low = action.title[:1].islower() and not action.title.startswith("using ")
    is_only_an_end = " " not in action.title or begins_low
    *menus, _ = action.title_path
    return f"{menus[-1]}: {action.title}" if menus and is_only_an_end else action.title


def undecided(listing: ActionListing, kinds: str, diagnostic_ids: frozenset[str]) -> str | None:
    """What the filters of a request could not decide, as a sentence."""
    reasons = []
    if kinds != "All" and not listing.kinds_decided:
        reasons.append("the server does not mark fixes and refactorings, and the kinds here are only likely")
    if diagnostic_ids and not listing.diagnostics_known:
        reasons.append("the server does not say which diagnostics its fixes belong to")
    return f"Not decided: {'; '.join(reasons)}." if reasons else None


def references_for(
    workspace: Workspace, document: Document, place: Range, offer: Offer, actions: Sequence[ServerAction]
) -> tuple[str, ...]:
    """Give each action an id that is bound to the current snapshot."""
    snapshot = workspace.snapshot()
    project = project_meant(workspace, document)
    return workspace.references.add(
        [
            ActionReference(
                snapshot,
                offer.generation,
                document.path,
                place,
                a.title_path,
                a.kind,
                a.fix_all_scopes,
                project,
            )
            for a in actions
        ]
    )


def reference_behind(workspace: Workspace, action_id: str) -> ActionReference | PreparedFixAll:
    """What an id stands for now.  Raises ``ActionExpired`` and ``SnapshotMismatch``."""
    reference = workspace.references.find(action_id)
    workspace.require_snapshot(reference.snapshot)
    return reference


async def stage(workspace: Workspace, reference: ActionReference, line_endings: LineEndingPolicy) -> Staged:
    """Find the action again, and stage its edit as one revision.  Needs the writer's lease and a transaction.

    Raises ``ActionExpired``, ``SnapshotMismatch``, ``ActionUnavailable``, ``ActionAmbiguous``, and the refusals of an
    edit (``UnsupportedChange``, ``LinkedDocumentConflict``).  Any of them leaves the transaction as it was.
    """

    async def resolve(session: Session, action: ServerAction, _listed: Listed) -> edits.WorkspaceEdit:
        return await resolved(session, action)

    action, edit = await found_again(workspace, reference, resolve)
    origin = reference.document
    planned = await plan_edit(workspace, edit, origin=origin, line_endings=line_endings)
    require_whole(action.title, workspace.load.links.physical(origin), workspace.overlay, planned)
    return await stage_planned(
        workspace,
        planned,
        tool="stage-code-action",
        description=" > ".join(action.title_path),
        name=action.title,
    )


async def found_again(
    workspace: Workspace,
    reference: ActionReference,
    use: Callable[[Session, ServerAction, Listed], Awaitable[T]],
) -> tuple[ServerAction, T]:
    """Discover the one action behind a reference again, and what ``use`` makes of it while its document is in sight.

    Needs a lease.  Raises ``ActionExpired``, ``ActionUnavailable``, ``ActionAmbiguous``, and what ``use`` raises.
    """

    async def question(session: Session) -> tuple[ServerAction, T]:
        # Here and not before: a server that has just died is noticed by whoever asks for the session.
        require_same_server(workspace, reference)
        asked = (reference.document, reference.range, reference.project)
        async with listed(workspace, session, *asked) as found:
            action = exactly_one(reference, found.listing)
            return action, await use(session, action, found)

    try:
        return await ask(workspace, question, modified_attempts=STAGE_ATTEMPTS)
    except ResponseError as error:
        if error.code != CONTENT_MODIFIED:
            raise
        name = " > ".join(reference.title_path)
        raise BridgeError(
            "ActionUnavailable",
            f"The server lists {name!r} and then says that the text has moved, twice, though nobody moved it.",
        ) from error


def require_same_server(workspace: Workspace, reference: ActionReference) -> None:
    """Raises ``ActionExpired`` when the process that offered the action has ended."""
    if reference.generation != workspace.supervisor.generation:
        raise BridgeError(
            "ActionExpired",
            "The language server that offered this action has ended. List the actions again.",
        )


def exactly_one(reference: ActionReference, listing: ActionListing) -> ServerAction:
    """The action of a listing that a reference means.  Raises ``ActionUnavailable`` and ``ActionAmbiguous``."""
    name = " > ".join(reference.title_path)
    found = [a for a in listing.actions if a.title_path == reference.title_path and a.kind == reference.kind]
    if not found:
        raise BridgeError("ActionUnavailable", f"The server does not offer {name!r} here any more.")
    if len(found) > 1 or found[0].ambiguous:
        raise BridgeError(
            "ActionAmbiguous", f"The server offers {name!r} more than once here, and cannot tell them apart."
        )
    return found[0]


async def resolved(session: Session, action: ServerAction) -> edits.WorkspaceEdit:
    """The edit of an action.  Raises ``ActionUnavailable``, and ``UnsupportedChange`` for one that LSP cannot carry."""
    try:
        told = await session.resolve(action)
    except ResponseError as error:
        if error.code == CONTENT_MODIFIED:
            raise
        raise BridgeError(
            "ActionUnavailable", f"The server cannot carry out {action.title!r}: {error.message}"
        ) from error
    except CommandRefused as error:
        raise EditRefused(f"{action.title!r} is more than an edit: {error}") from error
    if told is None:
        raise BridgeError("ActionUnavailable", f"The server gives no edit for {action.title!r}.")
    edit = workspace_edit_from_server(told, session.document_versions)
    if not edit.operations:
        raise EditRefused(
            f"The server's edit for {action.title!r} is empty: it needs a change that LSP cannot carry."
        )
    return edit
