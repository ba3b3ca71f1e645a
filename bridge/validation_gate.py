"""The gate before a commit: no compiler error may come into the changed projects or their dependants.

Asked are all documents of these projects, changed or not, first in the staged state.  When none of them has a compiler
error there is nothing to compare, which is the common case and half of the work.  Else the server is taken back to the
state before, and the documents with errors are asked again, together with the changed ones, where the errors may have
come from; ``bridge.diagnostics`` says what counts as new.

What cannot be answered for certain is refused, never passed: a document that the server does not know, a new file that
it takes for no member of its project.  Not seen at all are errors in code that source generators or the build write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import anyio

from bridge.diagnostics import Finding, Look, compare
from bridge.errors import BridgeError
from bridge.membership import doubt_about, named, outsiders
from bridge.observations import can_look, document_changes, look_at
from bridge.progress import ProgressSink, Stage, to_nobody
from bridge.projects import Project, Structure, transitive_references
from bridge.workspace import Workspace
from transactions.overlay import FileChange, Overlay

LONGEST_VALIDATION = 600.0
"""Seconds for the whole of it: a cold compiler on a solution of hundreds of projects takes minutes."""


async def new_compiler_errors(workspace: Workspace, tell: ProgressSink = to_nobody) -> tuple[Finding, ...]:
    """The compiler errors that a commit of the current revision would add; needs the writer's lease.

    Raises ``CompilerValidationUnavailable``, ``CompilerValidationIncomplete``, and the conflict when an input has
    changed on disk: what is on disk is the state to compare with.
    """
    if not can_look(workspace):
        raise BridgeError(
            "CompilerValidationUnavailable",
            f"{workspace.request.launch.dialect.display_name} has no diagnostics, and --commit-validation asks for "
            "them. Use another language server, or commit without validation.",
        )
    await _require_unchanged(workspace)
    return await new_errors_between(workspace, Overlay(workspace.baseline), workspace.overlay, tell)


def _none(_path: Path) -> bool:
    return False


async def new_errors_between(
    workspace: Workspace,
    before: Overlay,
    after: Overlay,
    tell: ProgressSink = to_nobody,
    *,
    is_unaffected: Callable[[Path], bool] = _none,
) -> tuple[Finding, ...]:
    """The compiler errors that ``after`` has and ``before`` has not; needs the writer's lease.

    Of documents that ``is_unaffected`` is true for no answer is needed: the caller knows that nothing in them changes.
    Raises ``CompilerValidationIncomplete``.
    """
    changes = _differing(workspace, before, after)
    _require_members(workspace, changes)
    projects = projects_concerned(workspace.structure, [change.path for change in changes])
    with anyio.move_on_after(LONGEST_VALIDATION):
        await _require_inside(workspace, changes, after)
        return await _new_errors(
            workspace, before, after, changes, projects, tell=tell, is_unaffected=is_unaffected
        )
    raise _incomplete(f"The language server took longer than {LONGEST_VALIDATION:g} s.")


async def _require_unchanged(workspace: Workspace) -> None:
    change = await workspace.first_change()
    if change is not None:
        workspace.note_change(change)
        workspace.require_usable()


def _require_members(workspace: Workspace, changes: Sequence[FileChange]) -> None:
    """Refuses where a changed file is, or may be, something else to the server than to the build."""
    structure = workspace.structure
    strangers = [
        change.path
        for change in changes
        if not structure.documents_at(change.path)
        and (change.kind != "Added" or structure.owner_of(change.path) is None)
    ]
    if strangers:
        raise _incomplete(f"No loaded project holds {named(workspace, strangers)}.")


async def _require_inside(workspace: Workspace, changes: Sequence[FileChange], after: Overlay) -> None:
    """Refuses where the server takes a created file for no member of a project."""
    if any(change.kind == "Added" for change in changes):
        outside = await outsiders(workspace, after)
        if outside:
            raise _incomplete(doubt_about(workspace, outside))


def projects_concerned(structure: Structure, paths: Iterable[Path]) -> tuple[Project, ...]:
    """The projects that compile one of the files, or would, and those that reference them, however indirectly."""
    owners = {project.path for path in paths for project in structure.compiling(path)}
    return tuple(
        project
        for project in structure.projects
        if project.path in owners or not owners.isdisjoint(transitive_references(structure, project.path))
    )


def created_in(structure: Structure, tree: Overlay, projects: Iterable[Project]) -> frozenset[Path]:
    """The created files of a tree that some projects might compile."""
    known = {project.id for project in projects}
    return frozenset(path for path in tree.created if any(p.id in known for p in structure.may_compile(path)))


def _differing(workspace: Workspace, before: Overlay, after: Overlay) -> tuple[FileChange, ...]:
    """The documents whose text is not the same in both trees, each as it differs from the disk in one of them."""
    physical = workspace.load.links.physical
    found = {
        change.path: change
        for tree in (before, after)
        for change in document_changes(workspace, tree)
        if before.text(physical(change.path)) != after.text(physical(change.path))
    }
    return tuple(found.values())


async def _new_errors(
    workspace: Workspace,
    before: Overlay,
    after: Overlay,
    changes: Sequence[FileChange],
    projects: Sequence[Project],
    *,
    tell: ProgressSink,
    is_unaffected: Callable[[Path], bool],
) -> tuple[Finding, ...]:
    changed = {change.path for change in changes}
    physical = workspace.load.links.physical
    documents = {d.path for project in projects for d in project.documents}
    documents = {path for path in documents if not after.is_deleted(physical(path))}
    documents |= {path for path in changed if after.exists(physical(path))}
    documents |= {p for p in created_in(workspace.structure, after, projects) if not is_unaffected(p)}
    seen = await look_at(workspace, after, sorted(documents), Stage(tell, 0, 80))
    needed = {path: reason for path, reason in seen.missing.items() if not is_unaffected(path)}
    broken = _whole(workspace, replace(seen, missing=needed))
    if not broken:
        return ()
    compared = sorted(path for path in broken.keys() | (documents & changed) if before.exists(physical(path)))
    earlier = _whole(workspace, await look_at(workspace, before, compared, Stage(tell, 80, 100)))
    return compare(earlier, broken, changed).new


def _whole(workspace: Workspace, look: Look) -> Mapping[Path, tuple[Finding, ...]]:
    """The errors by document, where there are any.  Raises when something was not seen."""
    if look.missing:
        paths = sorted(look.missing)
        raise _incomplete(
            f"Not answered for: {named(workspace, paths)} ({look.missing[paths[0]].rstrip('.')})."
        )
    return {path: findings for path, findings in look.errors.items() if findings}


def _incomplete(reason: str) -> BridgeError:
    return BridgeError(
        "CompilerValidationIncomplete",
        f"Whether the commit would bring compiler errors cannot be told. {reason}",
    )
