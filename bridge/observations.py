"""What one transaction knows of the errors in its changed documents, before and after each revision.

A preview must not move the server, and works when the server is dead or the transaction conflicted.  So the looking is
done when something is staged, under the lease that the stage holds anyway:

* *before* a document's first stage the server is taken back to the texts on disk, and the document's errors there are
  its baseline.  Where nothing was staged yet the server is there already.  Taking it back matters: an error that an
  earlier revision made in this document would otherwise count as one that had always been there;
* *after* the stage the errors of all changed documents are kept under the revision's snapshot id, so undo and redo find
  them again.

Looking is a service of staging, not a part of it.  It never fails a stage and is bounded, in documents and in seconds:
what was not seen is missing, and a preview says why.  Measured on a solution of 20 documents, three of them staged one
after the other, it costs a stage 0.07 to 0.14 s of the server's processor time with Roslyn, and 0.06 to 0.29 s with
csharp-ls.  Only changed documents are looked at: which others depend on them no server tells cheaply.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import anyio
from anyio import to_thread

from bridge.diagnostics import Difference, Look, Observations, compare, errors_among
from bridge.errors import BridgeError
from bridge.membership import doubt_about, named, outsiders
from bridge.progress import ProgressSink, to_nobody
from bridge.projects import Structure
from bridge.questions import ask
from bridge.workspace import Workspace
from lsp_client.dialects.base import ProjectChoice
from lsp_client.errors import CONTENT_MODIFIED, LanguageServerError, ProtocolViolation, ResponseError
from lsp_client.failures import DocumentNotSeen
from lsp_client.messages import Diagnostic
from lsp_client.session import Session
from transactions.overlay import FileChange, Overlay

MOST_DOCUMENTS = 50
"""Changed documents that are looked at while staging.  A change of hundreds is for the commit's own validation."""

LONGEST_LOOK = 10.0
"""Seconds for one look, before or after a stage; a look at a few documents takes tenths of one."""

LONGEST_TAKING_IN = 45.0
"""Seconds for the server to take in files that come and go.  Where it looks at a tree of its own it evaluates projects
for that: some seconds.  The next question would wait for it all the same."""

OPEN_AT_ONCE = 100
"""Documents that are opened for one round of questions.  Opened together they share one compilation; all documents of
a large project at once would cost the server memory for nothing."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Nothing is known, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Observed:
    """What staging did to the errors of the changed documents.

    ``unreliable`` says why it may be wrong or not the whole; ``None`` when the server had everything before it.
    """

    difference: Difference
    documents: int
    unreliable: str | None


class PullOne(Protocol):
    """A question of a session about the diagnostics of one document, all of them or the compiler's."""

    def __call__(
        self, session: Session, path: Path, /, *, project: ProjectChoice | None = None
    ) -> Awaitable[tuple[Diagnostic, ...]]: ...


@dataclass(frozen=True, slots=True)
class Pulled:
    """Diagnostics by document, and why others could not be asked about."""

    diagnostics: Mapping[Path, tuple[Diagnostic, ...]]
    missing: Mapping[Path, str]


@asynccontextmanager
async def observing(workspace: Workspace, planned: Overlay) -> AsyncIterator[None]:
    """Around the staging of ``planned``: look at the documents it changes before, and after if it was staged.

    Needs the writer's lease and a transaction.
    """
    transaction = workspace.require_transaction()
    if planned.has_same_content(transaction.current):
        yield
        return
    looks = can_look(workspace) and len(planned.entries) <= MOST_DOCUMENTS
    changes = document_changes(workspace, planned)
    if looks:
        await _look_before(workspace, changes)
    yield
    if transaction.current is planned:
        kept = workspace.observations.revisions
        for undone in kept.keys() - {revision.snapshot_id for revision in transaction.revisions}:
            del kept[undone]
            workspace.observations.left_behind.pop(undone, None)
        outside = await _outside(workspace, changes)
        look = await _look_after(workspace, changes, outside) if looks else Look()
        kept[transaction.snapshot_id] = replace(look, outsiders=outside)


async def _outside(workspace: Workspace, changes: Sequence[FileChange]) -> Mapping[Path, str]:
    """Tell the server of created, moved and deleted files at once; those that it does not take for members."""
    if all(change.kind == "Modified" for change in changes):
        return {}
    created = [change.path for change in changes if change.kind == "Added"]
    reason = f"the server did not take them in within {LONGEST_TAKING_IN:g} s"
    with anyio.move_on_after(LONGEST_TAKING_IN):
        try:
            return await outsiders(workspace)
        except (LanguageServerError, BridgeError) as error:
            reason = str(error)
    return dict.fromkeys(created, reason)


def document_changes(workspace: Workspace, overlay: Overlay) -> tuple[FileChange, ...]:
    """The changes of an overlay under the names that projects have for the files.

    A file that is reached through links counts once for each name: to the server each is a document.
    """
    structure, links = workspace.structure, workspace.load.links
    return tuple(
        replace(change, path=name)
        for change in overlay.changes()
        for name in [n for n in links.names(change.path) if structure.documents_at(n)] or [change.path]
    )


def can_look(workspace: Workspace) -> bool:
    """Whether this workspace's server knows diagnostics at all."""
    return workspace.request.launch.dialect.has_diagnostics


async def _look_before(workspace: Workspace, changes: Sequence[FileChange]) -> None:
    seen = workspace.observations
    look = await _bounded(
        [
            change.path
            for change in changes
            if change.before is not None
            and change.path not in seen.baseline
            and change.path not in seen.hopeless
            and workspace.structure.documents_at(change.path)
        ],
        lambda paths: look_at_disk(workspace, paths),
    )
    seen.baseline.update(look.errors)
    seen.unseen.update(look.missing)
    if not look.cut_short:
        seen.hopeless.update(look.missing)


async def _look_after(workspace: Workspace, changes: Sequence[FileChange], outside: Collection[Path]) -> Look:
    return await _bounded(
        [
            c.path
            for c in changes
            if c.after is not None and c.path not in outside and _is_compiled(workspace, c)
        ],
        lambda paths: look_at_staged(workspace, paths),
    )


def _is_compiled(workspace: Workspace, change: FileChange) -> bool:
    """Whether the server compiles what is staged at this path with some project."""
    if change.kind == "Added":
        return workspace.structure.owner_of(change.path) is not None
    return bool(workspace.structure.documents_at(change.path))


async def _bounded(paths: Sequence[Path], look: Callable[[Sequence[Path]], Awaitable[Look]]) -> Look:
    """The look, or the one reason why nothing was seen."""
    if not paths:
        return Look()
    reason = f"the server did not answer within {LONGEST_LOOK:g} s"
    with anyio.move_on_after(LONGEST_LOOK):
        try:
            return await look(paths)
        except (LanguageServerError, BridgeError) as error:
            reason = str(error)
    return Look(missing=dict.fromkeys(paths, reason), cut_short=True)


async def look_at_disk(workspace: Workspace, paths: Sequence[Path], tell: ProgressSink = to_nobody) -> Look:
    """The errors of documents with nothing staged.  Needs the writer's lease.  Raises what ``pull`` raises."""
    return await look_at(workspace, Overlay(workspace.baseline), paths, tell)


async def look_at_staged(workspace: Workspace, paths: Sequence[Path], tell: ProgressSink = to_nobody) -> Look:
    """The errors of documents in the current revision.  Needs the writer's lease.  Raises what ``pull`` raises."""
    return await look_at(workspace, workspace.overlay, paths, tell)


async def look_at(
    workspace: Workspace, tree: Overlay, paths: Sequence[Path], tell: ProgressSink = to_nobody
) -> Look:
    """The errors of documents in any tree.

    The server is taken there; the next question about the current revision takes it back.  Needs the writer's lease.
    Raises what ``pull`` raises.
    """

    async def question(session: Session) -> Look:
        return await pull(session, workspace.structure, paths, tell)

    return await ask(workspace, question, about=tree)


async def pull(session: Session, structure: Structure, paths: Sequence[Path], tell: ProgressSink) -> Look:
    """Ask for the errors of documents, in every project that compiles them.  Raises what ``pull_each`` raises."""
    found = await pull_each(
        session, structure, paths, Session.compiler_diagnostics, tell=tell, doing="Validating"
    )
    errors = {path: errors_among(path, diagnostics) for path, diagnostics in found.diagnostics.items()}
    return Look(errors, found.missing)


async def pull_each(
    session: Session,
    structure: Structure,
    paths: Sequence[Path],
    pull_one: PullOne,
    *,
    tell: ProgressSink,
    doing: str,
) -> Pulled:
    """Ask for diagnostics of documents, in every project that compiles them; ``doing`` begins the progress sentence.

    A server that fails at one document is asked about the others all the same.  Raises ``ServerGone``,
    ``RequestTimedOut``, and ``ResponseError`` where the texts are said to have moved.
    """
    found: dict[Path, tuple[Diagnostic, ...]] = {}
    missing: dict[Path, str] = {}
    for start in range(0, len(paths), OPEN_AT_ONCE):
        batch = paths[start : start + OPEN_AT_ONCE]
        async with session.looking_at(await to_thread.run_sync(_closed_texts, session, batch)):
            for number, path in enumerate(batch, start + 1):
                tell(100 * number / len(paths), f"{doing} {number} of {len(paths)} documents")
                try:
                    found[path] = await _in_all_projects(session, structure, path, pull_one)
                except (DocumentNotSeen, ProtocolViolation) as error:
                    missing[path] = str(error)
                except ResponseError as error:
                    if error.code == CONTENT_MODIFIED:
                        raise
                    missing[path] = str(error)
    return Pulled(found, missing)


def _closed_texts(session: Session, paths: Sequence[Path]) -> Mapping[Path, str]:
    """The texts on disk of documents that have to be opened.  What is staged is open already."""
    if not session.dialect.diagnostics_need_open_document:
        return {}
    texts = {path: session.text_on_disk(path) for path in paths if not session.is_open(path)}
    return {path: text for path, text in texts.items() if text is not None}


async def _in_all_projects(
    session: Session, structure: Structure, path: Path, pull_one: PullOne
) -> tuple[Diagnostic, ...]:
    projects = structure.compiling(path)
    if len(projects) < 2:
        return await pull_one(session, path)
    choices = [ProjectChoice(project.name, project.target_framework) for project in projects]
    return tuple([d for choice in choices for d in await pull_one(session, path, project=choice)])


def observed(workspace: Workspace) -> Observed | Unavailable:
    """What the current revision did to the errors of its changed documents; asks nobody.  Needs a lease."""
    transaction = workspace.require_transaction()
    changes = document_changes(workspace, transaction.current)
    if not can_look(workspace):
        return Unavailable(f"{_server_name(workspace)} has no diagnostics.")
    if not changes:
        return Observed(Difference((), ()), 0, None)
    if len(transaction.current.entries) > MOST_DOCUMENTS:
        return Unavailable(
            f"{len(changes)} documents are changed; while staging at most {MOST_DOCUMENTS} are looked at. "
            "--commit-validation looks at all of them."
        )
    seen = workspace.observations
    look = seen.revisions.get(transaction.snapshot_id)
    if look is None:
        return Unavailable("The stage of this revision was cut short before its errors were looked at.")
    known = [change for change in changes if _is_known(change, seen, look)]
    doubts = " ".join(
        filter(
            None,
            (
                doubt_about(workspace, look.outsiders),
                _unknown_in_words(workspace, changes, look),
                doubt_about_generated(workspace),
            ),
        )
    )
    if not known:
        return Unavailable(doubts)
    paths = {change.path for change in known}
    difference = compare(
        {path: seen.baseline.get(path, ()) for path in paths},
        {path: look.errors.get(path, ()) for path in paths},
        paths,
    )
    return Observed(difference, len(known), doubts or None)


def _is_known(change: FileChange, seen: Observations, look: Look) -> bool:
    """Both sides of the change were seen, or are not there."""
    return (change.before is None or change.path in seen.baseline) and (
        change.after is None or change.path in look.errors
    )


def _unknown_in_words(workspace: Workspace, changes: Sequence[FileChange], look: Look) -> str:
    """Which documents were not looked at, and the first reason; outsiders have a sentence of their own."""
    seen = workspace.observations
    unknown = [
        change.path
        for change in changes
        if not _is_known(change, seen, look) and change.path not in look.outsiders
    ]
    if not unknown:
        return ""
    reasons = (look.missing.get(path) or seen.unseen.get(path) for path in unknown)
    reason = next(filter(None, reasons), "they belong to no loaded project")
    return f"Not looked at: {named(workspace, unknown)} ({reason.rstrip('.')})."


def doubt_about_current(workspace: Workspace) -> str:
    """What the server cannot know of the current revision for created files of it; empty when it knows them."""
    look = workspace.observations.revisions.get(workspace.require_transaction().snapshot_id)
    return "" if look is None else doubt_about(workspace, look.outsiders)


def doubt_about_generated(workspace: Workspace) -> str:
    """Which generated files keep an old name in the current revision, and what comes of it; empty when none does."""
    transaction = workspace.require_transaction()
    left = workspace.observations.left_behind
    files = {path for revision in transaction.revisions for path in left.get(revision.snapshot_id, ())}
    if not files:
        return ""
    return (
        f"Generated files keep the old name until the next build ({named(workspace, sorted(files))}); errors that come "
        "from them are expected until then."
    )


def _server_name(workspace: Workspace) -> str:
    session = workspace.supervisor.ready_session
    return session.server_name if session else workspace.request.launch.dialect.display_name
