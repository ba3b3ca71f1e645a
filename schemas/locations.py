"""Documents, places and diagnostics in answers."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from schemas.snapshots import Snapshot
from schemas.wire import Data, Given, Integer, Offset, Omittable, OrNull, Text

Severity: TypeAlias = Literal["Hidden", "Info", "Warning", "Error"]


class DocumentReference(Data):
    """One document of one project.  Ids are stable for one load of the workspace."""

    document_id: Text
    path: Text = Field(description="Relative to the workspace root when inside it.")
    project_id: Text


class Span(Data):
    """A stretch of a document in zero-based UTF-16 units."""

    start: Given[Offset] = Field(description="Offset in zero-based UTF-16 units.")
    length: Given[Offset] = Field(description="In UTF-16 units.")


class ProjectEcho(Data):
    """A project selector as answers carry it, ready to be sent back."""

    project_id: OrNull[Text] = None
    name: OrNull[Text] = None
    path: OrNull[Text] = Field(None, description="Relative to the workspace root.")
    target_framework: OrNull[Text] = None


class DocumentEcho(Data):
    """A document selector as answers carry it, ready to be sent back."""

    project: OrNull[ProjectEcho] = None
    path: OrNull[Text] = Field(None, description="Relative to the workspace root.")
    document_id: OrNull[Text] = None


class SpanEcho(Data):
    """A place by document and range, ready to be sent back."""

    document: DocumentEcho
    range: Span


class LocationEcho(Data):
    """A location selector as answers carry it, ready to be sent back."""

    span: SpanEcho


class ResolvedLocation(Data):
    """A place in one snapshot.  Lines and columns count from one; columns are UTF-16 units."""

    document: OrNull[DocumentReference] = None
    span: OrNull[Span] = None
    line: Omittable[Integer] = Field(None, description="Counted from one.")
    column: Omittable[Integer] = Field(None, description="Counted from one, in UTF-16 units.")
    snapshot: Snapshot
    selector: OrNull[LocationEcho] = Field(None, description="Names this place again in a request.")


class Diagnostic(Data):
    """One finding: of a compiler, an analyzer, a load, or the bridge itself."""

    id: Text
    severity: Given[Severity]
    message: Text
    location: OrNull[ResolvedLocation] = None


class DocumentError(Data):
    """One error in a document that may exist only in a transaction, so that no selector could name its place."""

    id: Text
    message: Text
    path: Text = Field(description="Relative to the workspace root when inside it.")
    line: Integer = Field(description="Counted from one.")
    column: Integer = Field(description="Counted from one, in UTF-16 units.")
