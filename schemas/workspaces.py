"""Requests and answers of the five workspace tools."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from schemas.locations import Diagnostic
from schemas.selectors import DetailLevel, WorkspaceRequest
from schemas.transactions import TransactionInfo
from schemas.wire import Data, Flag, Given, Integer, Omittable, OrNull, Request, Text, Uuid

WorkspaceState: TypeAlias = Literal[
    "Ready", "TransactionActive", "TransactionConflicted", "WorkspaceOutOfDate"
]


class WorkspaceIdentity(Data):
    """Which workspace; every member that is given names it in a selector."""

    workspace_id: Given[Uuid]
    alias: OrNull[Text] = None
    workspace_epoch: Given[Integer] = Field(description="Changes whenever the workspace is loaded anew.")
    loaded_path: Text = Field(description="Absolute path of what was opened.")
    workspace_root: Text = Field(description="Absolute directory that bounds what may be written.")


ServerView: TypeAlias = Literal["text", "overlay"]


class LanguageServer(Data):
    """The language server behind a workspace."""

    name: Text
    version: OrNull[Text] = Field(None, description="Of the running server, else of the last one.")
    dialect: Text
    state: OrNull[Text] = Field(None, description="Such as ready, restarting or failed.")
    view: OrNull[ServerView] = Field(
        None, description="How it sees staged files: as open documents alone, or in its folder too (overlay)."
    )
    view_refused: OrNull[Text] = Field(None, description="Why it has no overlay, where one was asked for.")
    limits: tuple[Text, ...] = Field((), description="What it cannot do, such as: syntax only.")


class MsBuildProperties(Request):
    """Global build properties that a workspace is evaluated with."""

    artifacts_path: OrNull[str] = Field(None, description="Absolute path of an existing directory.")
    configuration: OrNull[str] = Field(None, description="Such as Debug or Release.")
    platform: OrNull[str] = Field(None, description="Such as AnyCPU or x64.")
    runtime_identifier: OrNull[str] = Field(None, description="Such as linux-x64.")
    target_framework: OrNull[str] = Field(
        None, description="One of the projects' frameworks, such as net8.0."
    )


class WorkspaceOpenRequest(Request):
    """Load a solution or project."""

    alias: OrNull[str] = Field(None, description="A name of your choice for later calls.")
    path: str = Field(
        description="Absolute path of a .sln, .slnx, .slnf or .csproj, or of a folder with exactly one."
    )
    ms_build_properties: OrNull[MsBuildProperties] = Field(
        None, description="Build properties of this workspace only."
    )
    workspace_root: OrNull[str] = Field(
        None, description="Absolute directory that bounds what may be written; found by itself when left out."
    )


class LoadedWorkspace(Data):
    """What a load brought."""

    workspace: Given[OrNull[WorkspaceIdentity]]
    project_count: Given[Integer]
    document_count: Given[Integer]
    load_diagnostics: Given[tuple[Diagnostic, ...]] = Field(
        description="Failures, skipped projects and limits of the load."
    )


class WorkspaceOpenData(LoadedWorkspace):
    """The workspace that was opened."""

    server: OrNull[LanguageServer] = Field(None, description="The language server that answers for it.")


class WorkspaceListRequest(Request):
    """Ask which workspaces are open; has no members."""


class WorkspaceListData(Data):
    """All open workspaces."""

    workspaces: Given[tuple[WorkspaceIdentity, ...]]
    transaction_owner_workspace_id: OrNull[Uuid] = Field(
        None, description="The workspace with the open transaction, if there is one."
    )


class WorkspaceStatusRequest(WorkspaceRequest):
    """Ask where a workspace stands."""

    detail: DetailLevel = Field("Standard", description="How much to tell.")


class ExternalChange(Data):
    """The first change to a workspace's files that did not come from this bridge."""

    detection_source: Text
    error_code: OrNull[Text] = Field(None, description="Set when the check itself failed.")
    kind: Text
    path: OrNull[Text] = None
    previous_path: OrNull[Text] = None


class OtherInstance(Data):
    """Another live process that has the same workspace open."""

    instance_id: Text
    loaded_path: Text
    workspace_root: Text
    workspace_state: Omittable[WorkspaceState] = None
    transaction_revision: OrNull[Integer] = None
    commit_id: OrNull[Text] = None
    commit_phase: OrNull[Text] = None


class WorkspaceStatusData(Data):
    """Where a workspace stands.  A member that is absent was not asked for or cannot be known."""

    state: Given[WorkspaceState]
    workspace: OrNull[WorkspaceIdentity] = None
    project_count: OrNull[Integer] = None
    document_count: OrNull[Integer] = None
    load_diagnostics: OrNull[tuple[Diagnostic, ...]] = None
    transaction: OrNull[TransactionInfo] = None
    reload_required: Given[Flag]
    external_change: OrNull[ExternalChange] = None
    instances: Omittable[tuple[OtherInstance, ...]] = Field(
        None, description="Other processes that have this workspace open."
    )
    error_reporting_consent: OrNull[Text] = None
    server: OrNull[LanguageServer] = Field(None, description="The language server that answers for it.")


class WorkspaceReloadRequest(WorkspaceRequest):
    """Load an open workspace anew."""


class WorkspaceReloadData(LoadedWorkspace):
    """The workspace after the new load."""


class WorkspaceCloseRequest(WorkspaceRequest):
    """Close a workspace and stop its language server."""


class WorkspaceCloseData(Data):
    """What was closed."""

    closed_path: Text
