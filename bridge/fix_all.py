"""Fix-all: one fix for a whole document, project or solution, computed to be looked at, and once more to be staged.

Preparing computes everything and keeps nothing but a fingerprint: what would be changed, how, and into which bytes.
Staging computes it all again on the same snapshot and demands the same fingerprint.  So what is staged is what was
looked at, and a server that answers differently the second time is found out (``MutationCandidateChanged``).

The edit is the server's own fix-all where it has one, and the bridge's else (``bridge.emulated_fix_all``), which is
made again from the server's single answers, some of them asked for once more: asking for very many a second time takes
csharp-ls several times as long as the first.  Neither is believed about its reach: an edit of anything outside of the
scope that was asked for is refused as a whole.

Both show the server other trees than the current one, so they need the writer's lease.  Nothing has to be undone when
they end, however they end: every question goes through ``Workspace.ready_session``, which shows the server the tree
that the question is about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from bridge.action_references import ActionReference, PreparedFixAll
from bridge.code_actions import Listed, exactly_one, found_again, reference_behind, require_same_server
from bridge.emulated_fix_all import emulate, replay
from bridge.emulated_scopes import with_emulated_scopes
from bridge.errors import BridgeError
from bridge.fix_counts import Counts, Mended, count, not_counted
from bridge.fix_rounds import Rounds
from bridge.progress import ProgressSink, Stage, to_nobody
from bridge.projects import Document, Project
from bridge.restore import unrestored
from bridge.server_edits import range_to_server, workspace_edit_from_server
from bridge.staging import Staged, plan_edit, stage_planned
from bridge.workspace import Workspace
from lsp_client.dialects.base import ServerAction
from lsp_client.dialects.common import touching
from lsp_client.errors import CONTENT_MODIFIED, ResponseError
from lsp_client.session import Session
from transactions import edits
from transactions.errors import EditRefused, TransactionError
from transactions.overlay import Overlay
from transactions.text import LineEndingPolicy

COMPUTED = 60
"""Percent of the progress of preparing at which the change is known and counting begins."""

_REFUSED_THIS_TIME = frozenset({"FixAllUnavailable", "FixAllLimitExceeded"})
"""Refusals of ours that mean, after a preparation without them, that the candidate is another one."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A fix-all that can be staged by its id."""

    action_id: str
    title: str
    documents: tuple[Document, ...]
    """The changed documents, a file once, in the order of paths."""
    counts: Counts
    emulated: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    action: ServerAction
    planned: Overlay
    documents: tuple[Document, ...]
    fingerprint: str
    found: Mended | Counts
    """What an own count is to look for, or the counts where they are known already."""
    answers: Rounds | None
    """Of which the bridge put it together; ``None`` when the server made it."""


async def prepare(
    workspace: Workspace,
    action_id: str,
    scope: str,
    *,
    most_documents: int,
    line_endings: LineEndingPolicy,
    tell: ProgressSink,
) -> Prepared:
    """Compute a listed fix for a whole scope, and give it an id.  Needs the writer's lease; changes nothing.

    Raises ``ActionExpired``, ``SnapshotMismatch``, ``ActionUnavailable``, ``ActionAmbiguous``, ``FixAllUnavailable``,
    ``FixAllLimitExceeded`` when more than ``most_documents`` would change, and the refusals of an edit.
    """
    reference = reference_behind(workspace, action_id)
    if isinstance(reference, PreparedFixAll):
        raise BridgeError(
            "FixAllUnavailable", "This id is that of a fix-all already; stage it, or list again."
        )
    if scope not in reference.fix_all_scopes:
        offered = ", ".join(reference.fix_all_scopes) or "none"
        raise BridgeError(
            "FixAllUnavailable",
            f"{reference.title_path[-1]!r} cannot be made for the whole {scope.lower()}; scopes on offer: {offered}.",
        )
    order = _Order(reference, scope, most_documents, line_endings)
    candidate = await _computed(workspace, order, Stage(tell, 0, COMPUTED))
    counts = candidate.found
    if isinstance(counts, Mended):
        paths = [document.path for document in candidate.documents]
        counts = await count(workspace, counts, candidate.planned, paths, Stage(tell, COMPUTED, 100))
        require_same_server(workspace, reference)
    (prepared_id,) = workspace.references.add(
        [PreparedFixAll(reference, scope, most_documents, candidate.fingerprint, candidate.answers)]
    )
    return Prepared(
        prepared_id, candidate.action.title, candidate.documents, counts, candidate.answers is not None
    )


async def stage(
    workspace: Workspace, action_id: str, prepared: PreparedFixAll, line_endings: LineEndingPolicy
) -> Staged:
    """Compute a prepared fix-all again, and stage it if it is the same.  Needs the writer's lease and a transaction.

    Raises ``MutationCandidateChanged``, which uses the id up, and what finding the action again raises.
    """
    order = _Order(prepared.action, prepared.scope, prepared.most_documents, line_endings)
    try:
        candidate = await _computed(workspace, order, to_nobody, prepared.answers)
    except (BridgeError, TransactionError) as error:
        if isinstance(error, BridgeError) and error.code not in _REFUSED_THIS_TIME:
            raise
        workspace.references.consume(action_id)
        raise _changed(f"it is refused this time: {error.message}") from error
    if candidate.fingerprint != prepared.fingerprint:
        workspace.references.consume(action_id)
        raise _changed("the language server would make another change now.")
    return await stage_planned(
        workspace,
        candidate.planned,
        tool="stage-code-action",
        description=f"{' > '.join(candidate.action.title_path)} ({prepared.scope})",
        name=f"{candidate.action.title} ({prepared.scope.lower()})",
    )


def _changed(what: str) -> BridgeError:
    return BridgeError(
        "MutationCandidateChanged",
        f"The fix-all is not the one that was prepared: {what} Its id is used up; prepare it again.",
    )


# --- computing ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be computed."""

    reference: ActionReference
    scope: str
    most_documents: int
    line_endings: LineEndingPolicy


async def _computed(
    workspace: Workspace, order: _Order, tell: ProgressSink, answers: Rounds | None = None
) -> _Candidate:
    """The fix-all as it is now.

    ``answers`` are those of the server when the bridge put it together before, on the same texts.
    """
    reference, scope = order.reference, order.scope
    tell(0, f"Computing {reference.title_path[-1]!r} for the whole {scope.lower()}")
    found: Mended | Counts
    if workspace.request.launch.dialect.has_fix_all:
        action, (edit, found) = await found_again(workspace, reference, _NativeFixAll(reference, scope))
        planned = await plan_edit(workspace, edit, origin=reference.document, line_endings=order.line_endings)
    else:
        action = await _offered_by_us(workspace, reference, scope)
        planned, found, answers = await _put_together(workspace, order, action, answers, tell)
    documents = tuple(_changed_documents(workspace, reference, scope, planned))
    if len(documents) > order.most_documents:
        raise BridgeError(
            "FixAllLimitExceeded",
            f"{action.title!r} for the whole {scope.lower()} changes {len(documents)} documents; "
            f"maxChanges allows {order.most_documents}.",
        )
    await to_thread.run_sync(_require_restored, workspace, documents)
    fingerprint = await to_thread.run_sync(_fingerprint, workspace, planned, documents)
    return _Candidate(action, planned, documents, fingerprint, found, answers)


async def _put_together(
    workspace: Workspace, order: _Order, action: ServerAction, answers: Rounds | None, tell: ProgressSink
) -> tuple[Overlay, Counts, Rounds]:
    if answers is not None:
        planned = await replay(
            workspace,
            order.reference,
            action,
            order.scope,
            answers,
            max_documents=order.most_documents,
            line_endings=order.line_endings,
        )
        return planned, not_counted("They were counted when it was prepared."), answers
    made = await emulate(
        workspace,
        order.reference,
        action,
        order.scope,
        max_documents=order.most_documents,
        line_endings=order.line_endings,
        tell=tell,
    )
    return made.planned, Counts(made.affected_before, made.remaining_after, made.reason), made.answers


@dataclass(frozen=True, slots=True)
class _NativeFixAll:
    """Has the server make the fix for the scope, while the document that offers it is in its sight."""

    reference: ActionReference
    scope: str

    async def __call__(
        self, session: Session, action: ServerAction, listed: Listed
    ) -> tuple[edits.WorkspaceEdit, Mended]:
        if self.scope not in action.fix_all_scopes:
            raise _not_for(action, self.scope, "the server does not offer it any more.")
        place = range_to_server(self.reference.range)
        near = touching(place, listed.diagnostics or ()) if action.kind == "CodeFix" else ()
        mended = Mended(
            ids=frozenset(found for found, _ in action.diagnostics or ()),
            candidates=frozenset(item.id for item in near if item.id),
            origin=self.reference.document,
        )
        return await _resolved(session, action, self.scope), mended


async def _resolved(session: Session, action: ServerAction, scope: str) -> edits.WorkspaceEdit:
    try:
        told = await session.resolve_fix_all(action, scope)
    except ResponseError as error:
        if error.code == CONTENT_MODIFIED:
            raise
        raise _not_for(action, scope, f"the server says {error.message!r}.") from error
    if told is None:
        raise _not_for(action, scope, "the server gives no edit.")
    edit = workspace_edit_from_server(told, session.document_versions)
    if not edit.operations:
        raise EditRefused(
            f"The server's edit for {action.title!r} is empty: it needs a change that LSP cannot carry."
        )
    return edit


async def _offered_by_us(workspace: Workspace, reference: ActionReference, scope: str) -> ServerAction:
    """The action again, if the bridge still offers it for the scope."""

    async def widened(session: Session, _action: ServerAction, listed: Listed) -> ServerAction:
        offer = (workspace, session, reference.document, listed.listing, listed.diagnostics)
        return exactly_one(reference, await with_emulated_scopes(*offer))

    _, action = await found_again(workspace, reference, widened)
    if scope not in action.fix_all_scopes:
        raise _not_for(action, scope, "it is not clear any more what it mends.")
    return action


def _not_for(action: ServerAction, scope: str, why: str) -> BridgeError:
    return BridgeError(
        "FixAllUnavailable", f"{action.title!r} cannot be made for the whole {scope.lower()}: {why}"
    )


# --- what it changes ----------------------------------------------------------------------------------------


def _changed_documents(
    workspace: Workspace, reference: ActionReference, scope: str, planned: Overlay
) -> Iterator[Document]:
    """A document for each changed file, in path order.  Raises ``EditRefused`` for a file outside of the scope."""
    current = workspace.overlay
    for path in sorted({*current.touched_paths, *planned.touched_paths}):
        if planned.text(path) == current.text(path) and planned.exists(path) == current.exists(path):
            continue
        document = _document_in_scope(workspace, reference, scope, path)
        if document is None:
            raise EditRefused(
                f"The fix for the whole {scope.lower()} would also change {workspace.relative(path)}, which is outside "
                "of it.",
                [path],
            )
        yield document


def _require_restored(workspace: Workspace, documents: Sequence[Document]) -> None:
    """Refuses where a project's packages are not all there: what the server mends there may be right with them.

    Nobody looks at each place of a fix-all, and a using of a package that is missing seems to be unused.
    """
    missing = frozenset(unrestored(workspace.structure))
    for document in documents:
        project = workspace.structure.project(document.project_id)
        if project is not None and project.path in missing:
            raise BridgeError(
                "FixAllUnavailable",
                f"It would change {workspace.relative(document.path)}, and the packages of {project.path.name} are not all "
                "there, so the server cannot judge it. Restore them and call workspace-reload, or take a smaller scope.",
            )


def _document_in_scope(
    workspace: Workspace, reference: ActionReference, scope: str, path: Path
) -> Document | None:
    """What the file is to the projects in the scope; ``None`` when it is nothing to them."""
    known = _documents_of(workspace, path)
    if scope == "Document":
        known = [d for d in known if d.path == reference.document]
    elif scope == "Project":
        project = _project_of(workspace, reference)
        known = [d for d in known if project is not None and d.project_id == project.id]
    return next(iter(known), None)


def _documents_of(workspace: Workspace, path: Path) -> list[Document]:
    """All documents of a file, under each name that projects have for it; of a new one, that of its project."""
    structure = workspace.structure
    names = workspace.load.links.names(path)
    known = [document for name in names for document in structure.documents_at(name)]
    if known:
        return known
    owners = [p for p in structure.projects if p.path == _path_of(structure.owner_of(path))]
    return [owner.document_for(path) for owner in owners]


def _path_of(project: Project | None) -> Path | None:
    return None if project is None else project.path


def _project_of(workspace: Workspace, reference: ActionReference) -> Project | None:
    """The project in whose context the fix was listed."""
    owners = [workspace.structure.project(d.project_id) for d in _documents_of(workspace, reference.document)]
    meant = reference.project
    for owner in owners:
        if owner is not None and (
            meant is None or (owner.name, owner.target_framework) == (meant.name, meant.target_framework)
        ):
            return owner
    return None


def _fingerprint(workspace: Workspace, planned: Overlay, documents: tuple[Document, ...]) -> str:
    """Of the changed documents: their projects and paths, the kind of change, and the bytes they get.

    Two candidates with the same fingerprint give the same files, in name, content and encoding.
    """
    digest = hashlib.sha256()
    physical = workspace.load.links.physical
    for document in documents:
        path = physical(document.path)
        text = planned.text(path)
        facts = [
            document.id,
            document.project_id,
            workspace.relative(path),
            f"{workspace.overlay.exists(path)}>{planned.exists(path)}",
            str(planned.origin(path)),
        ]
        if text is not None:
            facts += [text.encoding.codec, hashlib.sha256(text.encode()).hexdigest()]
        digest.update("\0".join(facts).encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()
