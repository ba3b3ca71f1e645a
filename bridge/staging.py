"""Staging: from an edit in our words to one revision of the transaction.

All tools that change code end here, so that they refuse the same edits, look at errors in the same way and call what
they changed by the same words.  An edit is planned on a tree as a whole or refused; planning has no effect, so a tool
that must prove something first (a rename, a fix-all) plans, asks, and stages what it has planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from bridge.editorconfig import editorconfig_for
from bridge.observations import doubt_about_current, observing
from bridge.workspace import Workspace
from transactions import edits
from transactions.overlay import Overlay
from transactions.text import UTF8, LineEndingPolicy, TextEncoding


@dataclass(frozen=True, slots=True)
class Staged:
    """What became of a mutation."""

    staged: bool
    summary: str


async def plan_edit(
    workspace: Workspace,
    edit: edits.WorkspaceEdit,
    *,
    origin: Path | None,
    line_endings: LineEndingPolicy,
    base: Overlay | None = None,
) -> Overlay:
    """The tree that an edit makes of ``base``, by default the current one.  Needs a lease; changes nothing.

    ``origin`` is the file that the edit started from; new files take their style from it where no ``.editorconfig``
    has a wish.  Raises the refusals of an edit (``UnsupportedChange``, ``LinkedDocumentConflict``).
    """
    return await to_thread.run_sync(
        edits.plan,
        edit,
        workspace.overlay if base is None else base,
        workspace.baseline,
        _policy(workspace, origin, line_endings),
    )


async def require_editable(workspace: Workspace, path: Path) -> None:
    """Raises ``UnsupportedChange`` where no edit of this file could be staged, whatever it says.  Needs a lease."""
    policy = _policy(workspace, None, "keep")
    await to_thread.run_sync(edits.require_editable, path, workspace.overlay, workspace.baseline, policy)


async def stage_planned(
    workspace: Workspace, planned: Overlay, *, tool: str, description: str, name: str
) -> Staged:
    """Make ``planned`` the next revision.  Needs the writer's lease and a transaction.

    ``tool`` and ``description`` are kept with the revision; ``name`` begins the summary.  Raises
    ``RevisionCapacityReached``, which leaves the transaction as it was.
    """
    transaction = workspace.require_transaction()
    before = transaction.current
    async with observing(workspace, planned):
        staged = transaction.stage(planned, tool, description)
    if not staged:
        return Staged(staged=False, summary=f"{name}: the text is already as it would leave it.")
    doubt = doubt_about_current(workspace)
    return Staged(staged=True, summary=f"{name}: {extent(before, planned)}{f'. {doubt}' if doubt else ''}")


def _policy(workspace: Workspace, origin: Path | None, line_endings: LineEndingPolicy) -> edits.EditPolicy:
    def is_generated(path: Path) -> bool:
        known = workspace.structure.documents_at(path)
        if known:
            return all(document.is_generated for document in known)
        owner = workspace.structure.owner_of(path)
        return owner is not None and owner.is_generated(path)

    return edits.EditPolicy(
        root=workspace.root,
        line_endings=line_endings,
        origin=origin,
        new_file_style=_style_of,
        is_generated=is_generated,
    )


_CHARSETS = {
    "utf-8": UTF8,
    "utf-8-bom": TextEncoding("utf-8", b"\xef\xbb\xbf"),
    "utf-16le": TextEncoding("utf-16-le", b"\xff\xfe"),
    "utf-16be": TextEncoding("utf-16-be", b"\xfe\xff"),
    "latin1": TextEncoding("latin-1"),
}


def _style_of(path: Path) -> edits.NewFileStyle:
    wishes = editorconfig_for(path)
    charset = None if wishes.charset is None else _CHARSETS[wishes.charset]
    return edits.NewFileStyle(charset, wishes.end_of_line)


def extent(before: Overlay, after: Overlay) -> str:
    """How many files differ between two trees, in words."""
    touched = [p for p in after.touched_paths if after.text(p) != before.text(p)]
    created = sum(not before.exists(path) for path in touched)
    deleted = sum(not after.exists(path) for path in touched)
    changed = len(touched) - created - deleted
    counts = ((changed, "changed"), (created, "created"), (deleted, "deleted"))
    return ", ".join(f"{count} {what}" for count, what in counts if count) or "no text differs"
