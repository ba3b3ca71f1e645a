"""Request and answer of ``server-status``: this process, its settings and what it found on the machine."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from schemas.locations import Diagnostic
from schemas.selectors import DetailLevel
from schemas.wire import Data, Flag, Given, Integer, Omittable, OrNull, Request, Text, Uuid
from schemas.workspaces import ServerView

OutputSchemaMode: TypeAlias = Literal["Omit", "Full"]
RecoveryState: TypeAlias = Literal[
    "Prepared", "Applying", "Committed", "Restored", "RecoveryConflict", "RecoveryIncomplete"
]
Duration: TypeAlias = Annotated[
    str, Field(strict=True, pattern=r"^-?([0-9]+\.)?[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,7})?$")
]
"""A length of time as ``[days.]hours:minutes:seconds[.fraction]``; made by ``duration``."""


def duration(seconds: float) -> str:
    """The wire form of a length of time, to the microsecond: 300 becomes ``00:05:00``."""
    span = timedelta(seconds=abs(seconds))
    minutes, rest = divmod(span.seconds, 60)
    days = f"{span.days}." if span.days else ""
    fraction = f".{span.microseconds:06d}" if span.microseconds else ""
    sign = "-" if seconds < 0 and span else ""
    return f"{sign}{days}{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}{fraction}"


class ServerStatusRequest(Request):
    """Ask about this process."""

    detail: DetailLevel = Field("Standard", description="How much to tell.")


class Component(Data):
    """Whether one thing that tools depend on can be used."""

    is_available: Given[Flag]
    version: OrNull[Text] = None
    message: OrNull[Text] = None


class ErrorReporting(Data):
    """How error reports are handled."""

    provider: Text
    consent_mode: Text
    consent_state: Text


class Configuration(Data):
    """The settings in effect that are no secret."""

    default_max_results: Given[Integer]
    code_action_reference_lifetime: Given[Duration] = Field(description="As [days.]hh:mm:ss.")
    max_transaction_revisions: Given[Integer]
    max_concurrent_queries: Given[Integer]
    tool_output_schema_mode: Given[OutputSchemaMode]
    error_reporting: OrNull[ErrorReporting] = None


class StartupWarning(Data):
    """A setting that could not be used as it was given."""

    code: Text
    message: Text


class Plugin(Data):
    """What came of loading one plugin."""

    plugin_id: OrNull[Text] = None
    display_name: OrNull[Text] = None
    version: OrNull[Text] = None
    supported_api_version: OrNull[Text] = None
    enabled: Given[Flag]
    diagnostics: Given[tuple[Diagnostic, ...]]


class Recovery(Data):
    """A commit that an earlier process left unfinished."""

    commit_id: Text
    solution_path: Omittable[Text] = Field(None, description="Absolute; empty when it cannot be told safely.")
    state: Omittable[RecoveryState] = None
    message: OrNull[Text] = None
    code: OrNull[Text] = Field(
        None, description="What is wrong with the record itself, such as: RecoveryVersionUnsupported."
    )


class LanguageServerStatus(Data):
    """One running language server."""

    workspace_id: Uuid
    name: Text
    version: OrNull[Text] = None
    dialect: Text
    state: Text
    pid: OrNull[Integer] = None
    view: OrNull[ServerView] = Field(None, description="As workspace-status tells it.")
    view_refused: OrNull[Text] = None
    limits: tuple[Text, ...] = Field((), description="What it cannot do, such as: syntax only.")


class ServerStatusData(Data):
    """The state of this process.  A member that is absent was not asked for or cannot be known."""

    server_version: OrNull[Text] = None
    roslyn_version: OrNull[Text] = None
    ms_build: OrNull[Component] = None
    code_actions: OrNull[Component] = None
    configuration: OrNull[Configuration] = None
    startup_warnings: OrNull[tuple[StartupWarning, ...]] = None
    tool_count: Given[Integer]
    plugins: OrNull[tuple[Plugin, ...]] = None
    recovery: OrNull[tuple[Recovery, ...]] = Field(None, description="Commits that wait to be recovered.")
    language_servers: OrNull[tuple[LanguageServerStatus, ...]] = Field(
        None, description="The language servers this process runs."
    )
    notes: OrNull[tuple[Text, ...]] = Field(
        None, description="What cannot be promised for a workspace that is open, such as on its file system."
    )
