"""Which listed fixes the bridge offers for whole scopes on a server that has no fix-all of its own.

A fix qualifies when it is known which diagnostic it mends: exactly one id touches its place, or its title belongs to
one id by its nature.  Hidden diagnostics may be missing here, because asking for them means compiling the solution; so
``bridge.emulated_fix_all`` looks again at the whole report before it does anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from anyio import to_thread

from bridge.fix_titles import ONLY_DIAGNOSTIC
from bridge.resolution import documents_at, is_generated_document
from bridge.workspace import Workspace
from lsp_client.dialects.base import FIX_ALL_SCOPES, ActionListing, ServerAction
from lsp_client.dialects.common import suppresses_or_configures
from lsp_client.messages import Diagnostic
from lsp_client.session import Session


async def with_emulated_scopes(
    workspace: Workspace,
    session: Session,
    path: Path,
    listing: ActionListing,
    diagnostics: Sequence[Diagnostic] | None,
) -> ActionListing:
    """The listing, with the scopes that the bridge's own fix-all offers; unchanged where the server has its own.

    ``diagnostics`` are the document's as pulled, ``None`` when they were not.  A file of several projects gets none:
    such a server has no document for it; nor does generated code, which a fix-all leaves as it is.
    """
    one_document = len(documents_at(workspace, path)) == 1
    if session.dialect.has_fix_all or diagnostics is None or not one_document or not listing.kinds_decided:
        return listing
    if await to_thread.run_sync(is_generated_document, workspace, path):
        return listing
    actions = tuple(
        replace(action, fix_all_scopes=FIX_ALL_SCOPES) if _qualifies(action) else action
        for action in listing.actions
    )
    return replace(listing, actions=actions)


def _qualifies(action: ServerAction) -> bool:
    return (
        action.kind == "CodeFix"
        and not action.ambiguous
        and not suppresses_or_configures(action.title_path)
        and diagnostic_mended(action) is not None
    )


def diagnostic_mended(action: ServerAction) -> str | None:
    """The one diagnostic id that a fix mends, ``None`` when several come into question or none is known."""
    by_nature = ONLY_DIAGNOSTIC.get(action.title)
    if by_nature is not None:
        return by_nature
    ids = {found for found, _ in action.diagnostics or ()}
    return ids.pop() if len(ids) == 1 else None
