"""``format-document`` and ``format-project``."""

from __future__ import annotations

from bridge import formatting
from bridge.errors import BridgeError
from bridge.progress import relayed
from bridge.projects import Project
from bridge.resolution import matching_projects, resolve_document, resolve_range
from bridge.staging import Staged, require_editable
from bridge.tools import answers
from bridge.tools.answers import Outcome
from bridge.tools.call import CallContext
from bridge.workbench import Workbench
from bridge.workspace import Workspace
from schemas import formatting as wire
from schemas.selectors import ProjectSelector
from schemas.transactions import StagedTransaction
from schemas.wire import Page

MOST_SHOWN = 20
"""Documents that are named among those not formatted; the count is of all."""


async def format_document(
    workbench: Workbench, request: wire.FormatDocumentRequest, _context: CallContext
) -> Outcome:
    """Stage the formatting of one document, or of a part of it."""
    workspace = workbench.select(request.workspace)
    expected = answers.snapshot_expected(request.expected_snapshot)
    async with workbench.staging(workspace, expected) as transaction:
        document = resolve_document(workspace, request.document)
        await require_editable(workspace, document.path)
        text = workspace.text(document.path)
        place = None if request.range is None or text is None else resolve_range(text, request.range)
        staged = await formatting.format_document(workspace, document, place, workbench.options.line_endings)
        data = wire.FormatDocumentData(
            staged=staged.staged,
            summary=staged.summary,
            transaction=StagedTransaction(revision=transaction.revision),
        )
        return Outcome(data, staged.summary, workspace.snapshot())


async def format_project(
    workbench: Workbench, request: wire.FormatProjectRequest, context: CallContext
) -> Outcome:
    """Stage the formatting of all documents of one project as one revision."""
    workspace = workbench.select(request.workspace)
    expected = answers.snapshot_expected(request.expected_snapshot)
    async with workbench.staging(workspace, expected) as transaction:
        projects = _one_project(workspace, request.project)
        async with relayed(context.report_progress) as tell:
            done = await formatting.format_project(
                workspace,
                projects,
                workbench.options.line_endings,
                limit=request.max_documents,
                tell=tell,
            )
        generated = {path for path, reason in done.left.items() if reason == formatting.GENERATED}
        left = [
            wire.NotFormatted(path=workspace.relative(path), reason=done.left[path])
            for path in (*sorted(done.left.keys() - generated), *sorted(generated))
        ]
        data = wire.FormatProjectData(
            staged=done.staged.staged,
            summary=done.staged.summary,
            transaction=StagedTransaction(revision=transaction.revision),
            document_count=done.documents,
            not_formatted=Page[wire.NotFormatted](
                items=tuple(left[:MOST_SHOWN]), has_more=len(left) > MOST_SHOWN, total_count=len(left)
            ),
        )
        return Outcome(data, _in_words(done.staged, len(left), len(generated)), workspace.snapshot())


def _one_project(workspace: Workspace, selector: ProjectSelector) -> list[Project]:
    """The one project file that a selector names, once for each of its frameworks that it names."""
    found = matching_projects(workspace, selector)
    files = sorted({workspace.relative(project.path) for project in found})
    if len(files) > 1:
        raise BridgeError("ProjectAmbiguous", f"Several projects fit: {', '.join(files)}; name one of them.")
    return found


def _in_words(staged: Staged, left: int, generated: int) -> str:
    if not left:
        return staged.summary
    of_them = f" ({generated} generated)" if generated else ""
    return f"{staged.summary} {answers.counted(left, 'document')} not formatted{of_them}."
