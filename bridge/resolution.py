"""From selectors to documents and places, on exactly one state of a workspace.

A selector that names nothing, or more than one thing, is refused with the candidates: guessing would edit the wrong
file of two with the same name.  A file that the transaction creates is a document as well, in the project that would
own it; one that it deletes is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from bridge.editorconfig import editorconfig_for
from bridge.errors import BridgeError
from bridge.generated_code import is_generated_code
from bridge.projects import Document, Project, Structure
from bridge.workspace import Workspace
from lsp_client.dialects.base import ProjectChoice
from schemas.selectors import DocumentSelector, ProjectSelector
from schemas.selectors import Range as RangeSelector
from transactions.errors import TextError
from transactions.text import Range, SourceText

MOST_CANDIDATES = 10
"""How many candidates a refusal names."""


def require_one_name(selector: DocumentSelector) -> None:
    """Raises ``DocumentSelectorInvalid`` unless the selector gives exactly one of path and id."""
    if (selector.path is None) == (selector.document_id is None):
        raise BridgeError(
            "DocumentSelectorInvalid", "Give exactly one of path and documentId to name a document."
        )


def resolve_document(workspace: Workspace, selector: DocumentSelector) -> Document:
    """The one document a selector names.

    Raises ``DocumentSelectorInvalid``, ``DocumentNotFound``, ``DocumentAmbiguous``, and the project's own codes.
    """
    require_one_name(selector)
    projects = matching_projects(workspace, selector.project) if selector.project else None
    everywhere = found = _documents(workspace, selector)
    if projects is not None:
        ids = {project.id for project in projects}
        found = [document for document in found if document.project_id in ids]
    wanted = selector.path if selector.path is not None else selector.document_id
    if everywhere and not found:
        owners = describe_owners(workspace.structure, everywhere)
        raise BridgeError("DocumentNotFound", f"{wanted!r} is no document of that project, but of {owners}.")
    if not found:
        raise BridgeError(
            "DocumentNotFound", f"No document {wanted!r} in {workspace.name}{_hint(workspace, selector)}."
        )
    if len(found) > 1:
        owners = describe_owners(workspace.structure, found)
        raise BridgeError(
            "DocumentAmbiguous",
            f"{wanted!r} is a document of {len(found)} projects ({owners}); name one of them in the selector's "
            'project, such as {"name": "…", "targetFramework": "…"}.',
        )
    return found[0]


def _documents(workspace: Workspace, selector: DocumentSelector) -> list[Document]:
    if selector.path is not None:
        return documents_at(workspace, _absolute(workspace, selector.path))
    loaded = (d for project in workspace.structure.projects for d in project.documents)
    staged = (d for path in workspace.overlay.touched_paths for d in documents_at(workspace, path))
    physical = workspace.load.links.physical
    known = {d.id: d for d in (*loaded, *staged) if workspace.overlay.exists(physical(d.path))}
    found = known.get(selector.document_id or "")
    return [] if found is None else [found]


def is_generated_document(workspace: Workspace, path: Path) -> bool:
    """Whether a document is generated code by Roslyn's rule (``bridge.generated_code``) now.  Reads the disk."""
    text = workspace.text(path)
    wish = editorconfig_for(path).generated_code
    return is_generated_code(path, "" if text is None else text.text, wish)


def documents_at(workspace: Workspace, path: Path) -> list[Document]:
    """The documents at a path in the current state: of the projects, or of a file that is staged."""
    overlay = workspace.overlay
    if overlay.is_deleted(workspace.load.links.physical(path)):
        return []
    known = list(workspace.structure.documents_at(path))
    if known or not overlay.is_touched(path) or not overlay.exists(path):
        return known
    owner = workspace.structure.owner_of(path)
    return [] if owner is None else [owner.document_for(path)]


def project_meant(workspace: Workspace, document: Document) -> ProjectChoice | None:
    """The project to name to the server; ``None`` for a file of one project, which needs no naming."""
    if len(workspace.structure.documents_at(document.path)) < 2:
        return None
    project = workspace.structure.project(document.project_id)
    return None if project is None else ProjectChoice(project.name, project.target_framework)


def document_standing_for(workspace: Workspace, path: Path) -> Document:
    """Some document for a path in a preview, deleted files and those of no project included."""
    for name in workspace.load.links.names(path):
        known = workspace.structure.documents_at(name)
        if known:
            return known[0]
    owner = workspace.structure.owner_of(path)
    if owner is None:
        return Document(id=f"unowned:{path}", path=path, project_id="", is_linked=True, is_generated=False)
    return owner.document_for(path)


def _absolute(workspace: Workspace, path: str) -> Path:
    relative = PurePosixPath(path.replace("\\", "/"))
    if relative.is_absolute() or ".." in relative.parts or "\0" in path or not relative.parts:
        raise BridgeError(
            "DocumentSelectorInvalid",
            f"The document path {path[:200]!r} must be relative to the workspace root, without '..'.",
        )
    return workspace.root.joinpath(*relative.parts)


def _hint(workspace: Workspace, selector: DocumentSelector) -> str:
    if selector.path is None:
        return ""
    name = PurePosixPath(selector.path.replace("\\", "/")).name
    same = sorted({workspace.relative(p) for p in workspace.structure.document_paths if p.name == name})
    return f"; documents of that name: {', '.join(same[:MOST_CANDIDATES])}" if same else ""


def describe_owners(structure: Structure, documents: Iterable[Document]) -> str:
    """The projects of some documents, for a sentence."""
    return ", ".join(sorted(_describe(structure, document) for document in documents)[:MOST_CANDIDATES])


def _describe(structure: Structure, document: Document) -> str:
    project = structure.project(document.project_id)
    if project is None:
        return document.project_id
    return f"{project.name} ({project.target_framework})" if project.target_framework else project.name


def matching_projects(workspace: Workspace, selector: ProjectSelector) -> list[Project]:
    """The projects for which all given members hold.  Raises ``ProjectSelectorInvalid``, ``ProjectNotFound``."""
    wanted = {
        "projectId": selector.project_id,
        "name": selector.name,
        "path": None if selector.path is None else selector.path.replace("\\", "/"),
        "targetFramework": selector.target_framework,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    if not given:
        raise BridgeError("ProjectSelectorInvalid", "Give at least one member to name a project.")
    found = [p for p in workspace.structure.projects if given.items() <= _facts(workspace, p).items()]
    if not found:
        known = ", ".join(_names(workspace.structure.projects))
        raise BridgeError(
            "ProjectNotFound", f"No project with {given} in {workspace.name}; there are: {known}."
        )
    return found


def _facts(workspace: Workspace, project: Project) -> dict[str, str | None]:
    return {
        "projectId": project.id,
        "name": project.name,
        "path": workspace.relative(project.path),
        "targetFramework": project.target_framework,
    }


def _names(projects: Iterable[Project]) -> list[str]:
    return sorted({project.name for project in projects})[:MOST_CANDIDATES]


def resolve_range(text: SourceText, selector: RangeSelector | None) -> Range:
    """The place a request names; the whole document without one.  Raises ``InvalidRange``."""
    start, length = (0, text.length) if selector is None else (selector.start, selector.length)
    try:
        return Range(text.position_at(start), text.position_at(start + length))
    except TextError as error:
        raise BridgeError(
            "InvalidRange", f"The range is no place of the document: {error.message}"
        ) from error
