"""Every tool there is, by name.

Importing this module is cheap on purpose: it holds names and sentences, and a tool's models are imported when they
are first asked for.  A process answers ``initialize`` before it needs any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from schemas.wire import Data, Request

SnapshotUse: TypeAlias = Literal["required", "optional", "none"]


@dataclass(frozen=True)
class Effects:
    """What a call may do, as hints for the client (the protocol's tool annotations)."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False


@dataclass(frozen=True)
class ToolEntry:
    """One tool: what is published about it and which models its request and answer have."""

    name: str
    title: str
    summary: str
    """What an agent reads to choose the tool; published as its description."""
    effects: Effects
    snapshot: SnapshotUse
    """Whether a request must echo a snapshot, may, or has none."""
    module: str
    stem: str
    """The models are ``<stem>Request`` and ``<stem>Data`` of ``module``."""

    @cached_property
    def request_model(self) -> type[Request]:
        """The model of the arguments; imports its module on first use."""
        return cast("type[Request]", getattr(import_module(self.module), f"{self.stem}Request"))

    @cached_property
    def data_model(self) -> type[Data]:
        """The model of the answer's ``data``; imports its module on first use."""
        return cast("type[Data]", getattr(import_module(self.module), f"{self.stem}Data"))

    @property
    def annotations(self) -> dict[str, str | bool]:
        """The protocol's tool annotations, by their names on the wire."""
        return {
            "title": self.title,
            "readOnlyHint": self.effects.read_only,
            "destructiveHint": self.effects.destructive,
            "idempotentHint": self.effects.idempotent,
            "openWorldHint": self.effects.open_world,
        }


_READS: Final = Effects(read_only=True, idempotent=True)
_CHANGES: Final = Effects()
_DESTROYS: Final = Effects(destructive=True)


def _catalog(*entries: ToolEntry) -> Mapping[str, ToolEntry]:
    catalog: dict[str, ToolEntry] = {}
    for entry in entries:
        if entry.name in catalog:
            raise ValueError(f"two tools are called {entry.name}")
        catalog[entry.name] = entry
    return MappingProxyType(catalog)


CATALOG: Final = _catalog(
    ToolEntry(
        "server-status",
        "Server Status",
        "Reports this server's version, settings, language servers and unfinished recoveries. "
        "Needs no open workspace.",
        _READS,
        "optional",
        "schemas.server",
        "ServerStatus",
    ),
    ToolEntry(
        "workspace-open",
        "Workspace Open",
        "Loads a C# solution or project and keeps it open for later calls; returns once questions about it are "
        "answered truly, which can take minutes. Loading runs the code's own build logic and analyzers: open only "
        "code the user trusts. Files outside workspaceRoot can be read but are never written. If loadDiagnostics "
        "say that another process uses the workspace, do not change it without coordination.",
        _CHANGES,
        "optional",
        "schemas.workspaces",
        "WorkspaceOpen",
    ),
    ToolEntry(
        "workspace-list",
        "Workspace List",
        "Lists the open workspaces and says which one has the open transaction.",
        _READS,
        "optional",
        "schemas.workspaces",
        "WorkspaceList",
    ),
    ToolEntry(
        "workspace-status",
        "Workspace Status",
        "Reports a workspace's state, load diagnostics, transaction, and other processes that use it. "
        "While others use it, read only what you need, expect answers to age, and do not change it.",
        _READS,
        "optional",
        "schemas.workspaces",
        "WorkspaceStatus",
    ),
    ToolEntry(
        "workspace-reload",
        "Workspace Reload",
        "Loads an open workspace anew from disk. Not possible during a transaction; earlier snapshots and action "
        "ids end.",
        _CHANGES,
        "optional",
        "schemas.workspaces",
        "WorkspaceReload",
    ),
    ToolEntry(
        "workspace-close",
        "Workspace Close",
        "Closes a workspace and stops its language server. Not possible during a transaction.",
        _CHANGES,
        "optional",
        "schemas.workspaces",
        "WorkspaceClose",
    ),
    ToolEntry(
        "transaction-start",
        "Transaction Start",
        "Opens a transaction, in which changes are staged without touching the disk. There is one at a time in "
        "the whole server. Check workspace-status first: if other processes use the workspace, coordinate.",
        _CHANGES,
        "optional",
        "schemas.transactions",
        "TransactionStart",
    ),
    ToolEntry(
        "transaction-preview",
        "Transaction Preview",
        "Shows which documents the staged changes add, modify or delete; with includeDiff and a document, also "
        "that document's diff.",
        _READS,
        "optional",
        "schemas.transactions",
        "TransactionPreview",
    ),
    ToolEntry(
        "transaction-history",
        "Transaction History",
        "Undoes the last staged change, or redoes the one undone last.",
        _DESTROYS,
        "optional",
        "schemas.transactions",
        "TransactionHistory",
    ),
    ToolEntry(
        "transaction-commit",
        "Transaction Commit",
        "Writes the staged changes to disk, all or none, and ends the transaction. Preview them first.",
        _DESTROYS,
        "optional",
        "schemas.transactions",
        "TransactionCommit",
    ),
    ToolEntry(
        "transaction-rollback",
        "Transaction Rollback",
        "Drops everything staged and ends the transaction; the disk stays as it is.",
        _DESTROYS,
        "optional",
        "schemas.transactions",
        "TransactionRollback",
    ),
    ToolEntry(
        "list-code-actions",
        "List Code Actions",
        "Lists the code fixes and refactorings the C# language server offers in a document, at a selection or at "
        "a caret. Stage one by its actionId; ids end with the snapshot, so list again after staging.",
        Effects(read_only=True),
        "required",
        "schemas.code_actions",
        "ListCodeActions",
    ),
    ToolEntry(
        "prepare-fix-all",
        "Prepare Fix All",
        "Computes what a listed fix would change in a whole document, project or solution, and counts it. Nothing is "
        "staged; stage-code-action takes the new actionId and demands the very same change.",
        Effects(read_only=True),
        "required",
        "schemas.code_actions",
        "PrepareFixAll",
    ),
    ToolEntry(
        "stage-code-action",
        "Stage Code Action",
        "Carries out one listed code action, or a prepared fix-all, inside the open transaction; nothing is written "
        "before the commit. It is checked anew against the current text first.",
        _DESTROYS,
        "required",
        "schemas.code_actions",
        "StageCodeAction",
    ),
    ToolEntry(
        "format-document",
        "Format Document",
        "Stages the formatting of one document, or of a range in it, by the rules of its .editorconfig.",
        _DESTROYS,
        "required",
        "schemas.formatting",
        "FormatDocument",
    ),
    ToolEntry(
        "format-project",
        "Format Project",
        "Stages the formatting of all documents of a project as one change, generated code left out, and names "
        "those that were not formatted.",
        _DESTROYS,
        "required",
        "schemas.formatting",
        "FormatProject",
    ),
    ToolEntry(
        "rename-symbol",
        "Rename Symbol",
        "Stages the rename of a symbol in the whole solution. Refused when the renamed code would not compile or "
        "would mean something else (RenameConflict), and when that cannot be told.",
        _DESTROYS,
        "required",
        "schemas.renames",
        "RenameSymbol",
    ),
)
"""All tools by name, in the order in which they are published."""
