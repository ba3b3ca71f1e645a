"""How a request says which workspace, project, document or place it means.

A selector may be well formed and still name nothing, or two things; that is for the bridge to find out.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from schemas.wire import Offset, Omittable, OrNull, Request, Uuid

DetailLevel: TypeAlias = Literal["Minimal", "Standard", "Full"]


class WorkspaceSelector(Request):
    """One open workspace.  All members given must name the same one."""

    workspace_id: Omittable[Uuid] = None
    alias: Omittable[str] = None
    path: Omittable[str] = Field(None, description="Absolute path it was opened with.")


class ProjectSelector(Request):
    """One project.  All members given must hold for it."""

    project_id: Omittable[str] = None
    name: Omittable[str] = None
    path: Omittable[str] = Field(None, description="Relative to the workspace root.")
    target_framework: Omittable[str] = None


class DocumentSelector(Request):
    """One document, by exactly one of path and id (more or fewer is the bridge's to refuse)."""

    project: OrNull[ProjectSelector] = Field(
        None, description="Needed only when several projects hold the document."
    )
    path: Omittable[str] = Field(None, description="Relative to the workspace root.")
    document_id: Omittable[str] = None


class Range(Request):
    """A stretch of a document in zero-based UTF-16 units; a length of 0 is a caret."""

    start: Offset = Field(0, description="Zero-based UTF-16 offset in the document.")
    length: Offset = Field(0, description="In UTF-16 units; 0 is a caret.")


class SpanSelector(Request):
    """A stretch of a document."""

    document: DocumentSelector = Field(description="Give path or documentId.")
    range: Range


class TextSelection(Request):
    """A stretch of a document by its text, which must occur once, or once with what stands around it."""

    document: DocumentSelector = Field(description="Give path or documentId.")
    selected_text: Annotated[str, Field(min_length=1)]
    context_before: OrNull[str] = None
    context_after: OrNull[str] = None


class LocationSelector(Request):
    """A place, by exactly one of span and selection (more or fewer is the bridge's to refuse)."""

    span: Omittable[SpanSelector] = None
    selection: Omittable[TextSelection] = None


class SymbolSelector(Request):
    """One symbol, by exactly one of its place and its documentation comment id."""

    project: OrNull[ProjectSelector] = Field(
        None, description="Needed only when several projects have the symbol."
    )
    location: Omittable[LocationSelector] = Field(None, description="Where it is declared or used.")
    documentation_comment_id: Omittable[str] = Field(
        None, description="Such as M:Shop.Cart.Add(System.Int32)."
    )


class WorkspaceRequest(Request):
    """Base of requests that act on one open workspace."""

    workspace: OrNull[WorkspaceSelector] = Field(
        None, description="Which open workspace; may be left out while only one is open."
    )
