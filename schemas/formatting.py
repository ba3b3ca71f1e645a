"""Requests and answers of the two formatting tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from schemas.selectors import DocumentSelector, ProjectSelector, Range, WorkspaceRequest
from schemas.snapshots import ExpectedSnapshot
from schemas.transactions import EXPECTED_SNAPSHOT, StagedMutation
from schemas.wire import Data, Given, Integer, NullMeans, Offset, OrNull, Page, Text

DEFAULT_DOCUMENT_LIMIT = 1000


class FormatDocumentRequest(WorkspaceRequest):
    """Format one document, or a part of it."""

    document: DocumentSelector = Field(description="Give path or documentId.")
    range: OrNull[Range] = Field(None, description="The part to format; the whole document when left out.")
    expected_snapshot: ExpectedSnapshot = Field(description=EXPECTED_SNAPSHOT)


class FormatDocumentData(StagedMutation):
    """What was staged."""


class FormatProjectRequest(WorkspaceRequest):
    """Format all documents of one project."""

    project: ProjectSelector = Field(description="The project; all its target frameworks count as one.")
    expected_snapshot: ExpectedSnapshot = Field(description=EXPECTED_SNAPSHOT)
    max_documents: Annotated[Offset, NullMeans(DEFAULT_DOCUMENT_LIMIT)] = Field(
        DEFAULT_DOCUMENT_LIMIT, description="Most documents to format, in the order of their paths."
    )


class NotFormatted(Data):
    """A document that was left as it is."""

    path: Text = Field(description="Relative to the workspace root when inside it.")
    reason: Text


class FormatProjectData(StagedMutation):
    """What was staged, and what was not formatted."""

    document_count: Given[Integer] = Field(
        description="Documents of the project, those that builds write left out."
    )
    not_formatted: Given[Page[NotFormatted]] = Field(
        description="Documents of the project that were left as they are; generated code comes last."
    )
