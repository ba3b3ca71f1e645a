"""``rename-symbol``."""

from __future__ import annotations

from bridge import rename
from bridge.comment_ids import spot_of_comment_id
from bridge.errors import BridgeError
from bridge.identifiers import NotAnIdentifier, read_name
from bridge.locations import resolve_location
from bridge.mentions import Mention
from bridge.progress import relayed
from bridge.resolution import matching_projects
from bridge.spots import Spot, Texts
from bridge.symbols import word_at
from bridge.tools import answers
from bridge.tools.answers import Outcome
from bridge.tools.call import CallContext
from bridge.workbench import Workbench
from bridge.workspace import Workspace
from schemas import renames as wire
from schemas.selectors import SymbolSelector
from schemas.transactions import StagedTransaction
from schemas.wire import Page

MOST_MENTIONS = 50
"""Places that are shown where the old name was left; the count is of all."""

MOST_CONFLICTS = 50
"""Conflicts that are listed where they were let through."""


async def rename_symbol(
    workbench: Workbench, request: wire.RenameSymbolRequest, context: CallContext
) -> Outcome:
    """Stage the rename of one symbol, once it is proved to keep the meaning of the code."""
    workspace = workbench.select(request.workspace)
    expected = answers.snapshot_expected(request.expected_snapshot)
    async with workbench.staging(workspace, expected) as transaction:
        try:
            name = read_name(request.new_name)
        except NotAnIdentifier as error:
            raise BridgeError("InvalidRequest", str(error)) from error
        rename.require_semantics(workspace)
        spot = await _selected(workspace, request.symbol)
        wishes = rename.Wishes(
            overloads=bool(request.rename_overloads),
            strings=bool(request.rename_in_strings),
            comments=bool(request.rename_in_comments),
            file=bool(request.rename_file),
            allow_conflicts=bool(request.allow_conflicts),
        )
        async with relayed(context.report_progress) as tell:
            done = await rename.stage_rename(
                workspace, spot, name, wishes, line_endings=workbench.options.line_endings, tell=tell
            )
        data = wire.RenameSymbolData(
            staged=done.staged.staged,
            summary=done.staged.summary,
            transaction=StagedTransaction(revision=transaction.revision),
            not_renamed=_page(workspace, done.mentions) if done.mentions else None,
            dropped_edits=done.dropped_edits or None,
            conflicts=done.conflicts[:MOST_CONFLICTS] or None,
            notes=done.notes or None,
        )
        return Outcome(data, _text(done), workspace.snapshot())


async def _selected(workspace: Workspace, selector: SymbolSelector) -> Spot:
    """The word that a selector means.  Raises ``SymbolSelectorInvalid``, and the codes of places and symbols."""
    if selector.location is not None and selector.documentation_comment_id is None:
        place = resolve_location(workspace, selector.location)
        if selector.project is not None:
            known = {project.id for project in matching_projects(workspace, selector.project)}
            if not known.intersection(p.id for p in workspace.structure.compiling(place.document.path)):
                raise BridgeError(
                    "SymbolNotFound",
                    f"{place.document.path.name} is no document of the project that is named.",
                )
        path = workspace.load.links.physical(place.document.path)
        return Spot(path, word_at(Texts(workspace, workspace.overlay), path, place.start).end)
    if selector.documentation_comment_id is not None and selector.location is None:
        return await spot_of_comment_id(workspace, selector.documentation_comment_id, selector.project)
    raise BridgeError(
        "SymbolSelectorInvalid", "Give exactly one of location and documentationCommentId to name a symbol."
    )


def _page(workspace: Workspace, mentions: tuple[Mention, ...]) -> Page[wire.Mention]:
    shown = mentions[:MOST_MENTIONS]
    return Page[wire.Mention](
        items=tuple(
            wire.Mention(
                kind=mention.kind,
                path=workspace.relative(mention.path),
                line=mention.line + 1,
                column=mention.column + 1,
                text=mention.text,
            )
            for mention in shown
        ),
        has_more=len(mentions) > len(shown),
        total_count=len(mentions),
    )


def _text(done: rename.Renamed) -> str:
    left = (
        f" The old name is left in {answers.counted(len(done.mentions), 'place')}." if done.mentions else ""
    )
    conflicts = f" {answers.counted(len(done.conflicts), 'conflict')} let through." if done.conflicts else ""
    return f"{done.staged.summary}.{left}{conflicts}"
