"""Formatting: one document, a part of one, or all documents of a project.

The server formats, in the context of one project; what it answers is staged as one revision like any other edit.  What
the text should look like is the server's to know: those built on Roslyn read ``.editorconfig`` themselves, and the
options that the protocol demands are what they fall back to.  They are taken from the same files here, so that both
say the same.

A whole project is bounded in documents and in seconds, and never all or nothing: a document that cannot be formatted
(read-only, unknown to the server) is left as it is and named with the reason, the others are formatted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio import to_thread

from bridge.editorconfig import editorconfig_for
from bridge.progress import ProgressSink
from bridge.projects import Document, Project
from bridge.questions import ask, not_seen
from bridge.resolution import is_generated_document, project_meant
from bridge.server_edits import document_edit_from_server, range_to_server
from bridge.staging import Staged, plan_edit, require_editable, stage_planned
from bridge.workspace import Workspace
from lsp_client.dialects.base import ProjectChoice
from lsp_client.errors import CONTENT_MODIFIED, ProtocolViolation, ResponseError
from lsp_client.failures import DocumentNotSeen
from lsp_client.messages import FormattingOptions
from lsp_client.session import Session
from transactions import edits
from transactions.errors import TransactionError
from transactions.text import LineEndingPolicy, Range

DEFAULT_COLUMNS = 4
"""One step of indentation where nobody says anything, as everywhere in C#."""

OPEN_AT_ONCE = 100
"""Documents that are opened for one round of questions: see ``bridge.observations``."""

GENERATED = "it is generated code, which a formatted project leaves as it is; format-document formats it"
"""Why a generated document is left."""

LONGEST_PROJECT = 300.0
"""Seconds for the questions about one project; a document takes hundredths of one."""


@dataclass(frozen=True, slots=True)
class ProjectFormatted:
    """What became of a project."""

    staged: Staged
    documents: int
    """All that the project has, what its builds write left out."""
    left: Mapping[Path, str]
    """Those of them that were not formatted, with the reason."""


def formatting_options(path: Path) -> FormattingOptions:
    """What ``.editorconfig`` wants for a file, as far as the protocol has words for it.  Reads the disk."""
    wishes = editorconfig_for(path)
    with_tabs = wishes.indent_style == "tab"
    columns = wishes.tab_width if with_tabs else wishes.indent_size or wishes.tab_width
    return FormattingOptions(
        tab_size=columns or DEFAULT_COLUMNS,
        insert_spaces=not with_tabs,
        trim_trailing_whitespace=wishes.trim_trailing_whitespace,
        insert_final_newline=wishes.insert_final_newline,
    )


async def format_document(
    workspace: Workspace, document: Document, place: Range | None, line_endings: LineEndingPolicy
) -> Staged:
    """Stage the formatting of a document, or of a range of it.  Needs the writer's lease and a transaction.

    The document must be editable (``staging.require_editable``).  Raises ``NotSupported`` where the server cannot
    format, ``DocumentInSeveralProjects`` or ``DocumentNotSeen`` where it has no single document for the file.
    """
    project = project_meant(workspace, document)

    async def question(session: Session) -> edits.WorkspaceEdit | None:
        async with session.looking_at(_texts(workspace, [document])):
            return await _formatting_of(session, document.path, place, project)

    edit = await ask(workspace, question)
    planned = workspace.overlay
    if edit is not None:
        planned = await plan_edit(workspace, edit, origin=document.path, line_endings=line_endings)
    name = f"Format {workspace.relative(document.path)}"
    if place is not None:
        name = f"{name}, lines {place.start.line + 1} to {place.end.line + 1}"
    return await stage_planned(workspace, planned, tool="format-document", description=name, name=name)


def _texts(workspace: Workspace, documents: Sequence[Document]) -> dict[Path, str]:
    texts = ((document.path, workspace.text(document.path)) for document in documents)
    return {path: text.text for path, text in texts if text is not None}


async def _formatting_of(
    session: Session, path: Path, place: Range | None, project: ProjectChoice | None
) -> edits.WorkspaceEdit | None:
    """The edit that formats a document; ``None`` when it looks right already."""
    told = await session.formatting(
        path,
        await to_thread.run_sync(formatting_options, path),
        place=None if place is None else range_to_server(place),
        project=project,
    )
    return document_edit_from_server(path, told) if told else None


async def format_project(
    workspace: Workspace,
    projects: Sequence[Project],
    line_endings: LineEndingPolicy,
    *,
    limit: int,
    tell: ProgressSink,
) -> ProjectFormatted:
    """Stage the formatting of all documents of a project as one revision; generated code is left as it is, and named.

    ``projects`` are one project, once for each framework: a document is formatted as the first one that has it.
    Needs the writer's lease and a transaction.  Raises ``NotSupported`` and the server's own failures.
    """
    documents = _documents_of(workspace, projects)
    left = dict.fromkeys(await to_thread.run_sync(_generated, workspace, documents), GENERATED)
    asked_for = [document for document in documents if document.path not in left]
    left |= {document.path: f"only {limit} documents were asked for" for document in asked_for[limit:]}
    left |= await _not_editable(workspace, asked_for[:limit])
    told = await _told_of_all(workspace, [d for d in documents if d.path not in left], tell)
    left |= told.missing
    planned = workspace.overlay
    for path, edit in told.edits.items():
        try:
            planned = await plan_edit(workspace, edit, origin=path, line_endings=line_endings, base=planned)
        except TransactionError as error:
            left[path] = error.message
    name = f"Format {projects[0].name}"
    staged = await stage_planned(workspace, planned, tool="format-project", description=name, name=name)
    if not staged.staged and left:
        staged = replace(staged, summary=f"{name}: {_in_order(len(documents) - len(left), len(documents))}")
    return ProjectFormatted(staged, len(documents), left)


def _in_order(known: int, documents: int) -> str:
    """What is known when nothing is staged although some documents were left out."""
    if known == 0:
        return f"none of its {documents} documents was looked at with success, so nothing is known about their format."
    return f"nothing to change in {known} of its {documents} documents; the others were left as they are."


def _generated(workspace: Workspace, documents: Sequence[Document]) -> list[Path]:
    """Those that are generated code.  Reads the disk."""
    return [document.path for document in documents if is_generated_document(workspace, document.path)]


def _documents_of(workspace: Workspace, projects: Sequence[Project]) -> list[Document]:
    """The documents to format, each file once, in the order of their paths."""
    physical, overlay = workspace.load.links.physical, workspace.overlay
    found: dict[Path, Document] = {}
    for project in projects:
        staged = (project.document_for(path) for path in _created_in(workspace, project))
        for document in (*project.documents, *staged):
            if not document.is_generated and not overlay.is_deleted(physical(document.path)):
                found.setdefault(physical(document.path), document)
    return [found[path] for path in sorted(found)]


def _created_in(workspace: Workspace, project: Project) -> list[Path]:
    """Staged files that are not on disk yet and will belong to this project."""
    structure = workspace.structure
    return [path for path in workspace.overlay.created if structure.owner_of(path) == project]


async def _not_editable(workspace: Workspace, documents: Sequence[Document]) -> dict[Path, str]:
    """Those that no edit may touch, and why."""
    found: dict[Path, str] = {}
    for document in documents:
        try:
            await require_editable(workspace, document.path)
        except TransactionError as error:
            found[document.path] = error.message
    return found


@dataclass(frozen=True, slots=True)
class _Told:
    """The server's word on some documents: edits of those that look wrong, and why others have no answer."""

    edits: dict[Path, edits.WorkspaceEdit]
    missing: dict[Path, str]


async def _told_of_all(workspace: Workspace, documents: Sequence[Document], tell: ProgressSink) -> _Told:
    async def question(session: Session) -> _Told:
        too_late = f"the time for one project ({LONGEST_PROJECT:g} s) was over"
        told = _Told({}, {document.path: too_late for document in documents})
        with anyio.move_on_after(LONGEST_PROJECT):
            for start in range(0, len(documents), OPEN_AT_ONCE):
                batch = documents[start : start + OPEN_AT_ONCE]
                async with session.looking_at(_texts(workspace, batch)):
                    for number, document in enumerate(batch, start + 1):
                        tell(
                            100 * number / len(documents),
                            f"Formatting {number} of {len(documents)} documents",
                        )
                        await _take_answer(workspace, session, document, told)
        return told

    return await ask(workspace, question)


async def _take_answer(workspace: Workspace, session: Session, document: Document, told: _Told) -> None:
    """Ask about one document; a server that fails at it is asked about the others all the same."""
    path = document.path
    try:
        edit = await _formatting_of(session, path, None, project_meant(workspace, document))
    except DocumentNotSeen as error:
        told.missing[path] = not_seen(workspace, error).message
    except (ProtocolViolation, TransactionError) as error:
        told.missing[path] = str(error)
    except ResponseError as error:
        if error.code == CONTENT_MODIFIED:
            raise
        told.missing[path] = error.message
    else:
        del told.missing[path]
        if edit is not None:
            told.edits[path] = edit
