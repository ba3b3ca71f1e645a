"""Error codes, their continuations, and the one place where an exception becomes an answer.

A failure tells an agent two things: a stable ``code``, and through the continuation what to do next.  Which
continuation belongs to which code is a table (``CONTINUATIONS``), so that no tool invents its own.  An exception of
the packages below carries no code of the wire; ``describe`` names it here and nowhere else.

Whose fault it is can be read off the class::

    BridgeError            a refusal: the caller, the disk or the state of the workspace does not allow it
    TransactionError       (transactions) a refusal of an edit or a commit; carries its code
    LanguageServerError    (lsp_client) the child server died, answered with an error, or not in time
    PathRefused            (solutions) the path names nothing that can be opened
    anything else          our own mistake: ``UnhandledException`` with a correlation id, details in the log only
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from bridge.msbuild_properties import MsBuildPropertiesInvalid
from bridge.solutions import PathRefused
from lsp_client import failures
from lsp_client.errors import LanguageServerError, RequestTimedOut, ServerGone
from transactions.errors import CommitFailed, TransactionError

if TYPE_CHECKING:  # the models cost start-up time, and most failures have no use for them
    from schemas.locations import DocumentError

LAST_LINES = 5
LONGEST_LAST_WORDS = 1000
"""How much of a dead server's stderr an answer repeats: lines, and characters of them."""

logger = logging.getLogger(__name__)


class Action(Enum):
    """What the caller has to do before the failed request can succeed."""

    OPEN_WORKSPACE = "Open a workspace, then send the request again."
    START_TRANSACTION = "Start a transaction, then send the request again."
    ROLL_BACK = "Roll the transaction back before going on."
    RELOAD = "Reload the workspace, then send the request again."
    REDUCE_HISTORY = (
        "Undo at least one revision, then send the request again; it replaces what can be redone."
    )
    COMMIT_OR_ROLL_BACK = "Finish the open transaction: commit it or roll it back."
    PREVIEW_AGAIN = "Preview the current revision and have it reviewed before committing."
    RETRY = "Send the same request again."
    RESOLVE_AGAIN = (
        "Read the current snapshot (workspace-status), resolve the target on it, put both into the request and "
        "send it again."
    )
    SELECT_AGAIN = "Name one open workspace (workspace-list shows them) and send the request again."
    NARROW = "Ask for less: a smaller scope or a lower limit."
    RESOLVE_RECOVERY = (
        "Ask a person to resolve the unfinished commit in the workspace or state directory (roslyn-bridge recover), then "
        "send the request again."
    )


@dataclass(frozen=True, slots=True)
class Continuation:
    """The machine-readable next step of a failure; ``tools`` is empty unless the kind names tools."""

    kind: str
    instruction: str
    tools: tuple[str, ...] = ()


_SHAPES: Mapping[Action, tuple[str, tuple[str, ...]]] = {
    Action.OPEN_WORKSPACE: ("CallTool", ("workspace-open",)),
    Action.START_TRANSACTION: ("CallTool", ("transaction-start",)),
    Action.ROLL_BACK: ("CallTool", ("transaction-rollback",)),
    Action.RELOAD: ("CallTool", ("workspace-reload",)),
    Action.REDUCE_HISTORY: ("CallTool", ("transaction-history",)),
    Action.PREVIEW_AGAIN: ("CallTool", ("transaction-preview",)),
    Action.COMMIT_OR_ROLL_BACK: ("ChooseTool", ("transaction-commit", "transaction-rollback")),
    Action.RETRY: ("RetryRequest", ()),
    Action.RESOLVE_AGAIN: ("ReviseRequest", ()),
    Action.SELECT_AGAIN: ("ReviseRequest", ()),
    Action.NARROW: ("ReviseRequest", ()),
    Action.RESOLVE_RECOVERY: ("ResolveExternally", ()),
}

CONTINUATIONS: Mapping[str, Action | None] = {
    # workspaces
    "WorkspaceNotOpen": Action.OPEN_WORKSPACE,
    "WorkspaceAlreadyOpen": None,
    "WorkspaceCapacityReached": None,
    "WorkspaceNotSupported": None,
    "WorkspaceLoadFailed": None,
    "WorkspaceLoadTimedOut": None,
    "WorkspacePathInvalid": None,
    "WorkspacePathAmbiguous": None,
    "WorkspaceRootInvalid": None,
    "WorkspaceProjectOutsideRoot": None,
    "WorkspaceInputEvaluationFailed": None,
    "WorkspaceChangedDuringLoad": Action.RETRY,
    "WorkspaceMsBuildPropertiesInvalid": None,
    "WorkspaceSelectorRequired": Action.SELECT_AGAIN,
    "WorkspaceSelectorInvalid": Action.SELECT_AGAIN,
    "WorkspaceSelectorNotFound": Action.SELECT_AGAIN,
    "WorkspaceSelectorMismatch": Action.SELECT_AGAIN,
    "WorkspaceBusy": Action.RETRY,
    "WorkspaceOutOfDate": Action.RELOAD,
    "WorkspaceReloadBlocked": Action.COMMIT_OR_ROLL_BACK,
    "WorkspaceReloadNotRequired": None,
    "RecoveryPending": Action.RESOLVE_RECOVERY,
    # transactions
    "TransactionOpen": Action.COMMIT_OR_ROLL_BACK,
    "NoActiveTransaction": Action.START_TRANSACTION,
    "TransactionAlreadyActive": Action.COMMIT_OR_ROLL_BACK,
    "TransactionOwnedByWorkspace": Action.COMMIT_OR_ROLL_BACK,
    "TransactionOwnershipChanged": None,
    "TransactionConflicted": Action.ROLL_BACK,
    "TransactionHistoryUnavailable": None,
    "RevisionCapacityReached": Action.REDUCE_HISTORY,
    "SnapshotMismatch": Action.RESOLVE_AGAIN,
    "InvalidMutationProposal": None,
    "UnsupportedChange": None,
    "LinkedDocumentConflict": None,
    "MutationCandidateChanged": Action.RESOLVE_AGAIN,
    "CommitLockFailed": Action.RETRY,
    "CommitPreparationFailed": Action.RETRY,
    "CommitFailed": Action.RETRY,
    "CommitRecoveryCapacityReached": Action.ROLL_BACK,
    "NewCompilerErrors": None,
    "CompilerValidationIncomplete": Action.ROLL_BACK,
    "CompilerValidationUnavailable": None,
    # selectors
    "InvalidRequest": None,
    "InvalidRange": None,
    "DocumentNotFound": Action.RESOLVE_AGAIN,
    "DocumentAmbiguous": Action.RESOLVE_AGAIN,
    "DocumentSelectorInvalid": Action.RESOLVE_AGAIN,
    "ProjectNotFound": Action.RESOLVE_AGAIN,
    "ProjectAmbiguous": Action.RESOLVE_AGAIN,
    "ProjectSelectorInvalid": Action.RESOLVE_AGAIN,
    "SymbolNotFound": Action.RESOLVE_AGAIN,
    "SymbolAmbiguous": Action.RESOLVE_AGAIN,
    "SymbolSelectorInvalid": Action.RESOLVE_AGAIN,
    "LocationNotFound": Action.RESOLVE_AGAIN,
    "LocationAmbiguous": Action.RESOLVE_AGAIN,
    "LocationSelectorInvalid": Action.RESOLVE_AGAIN,
    # renames; these codes are the bridge's own
    "RenameConflict": None,
    "RenameUnverified": None,
    "RenameOptionUnavailable": None,
    "SymbolCannotBeRenamed": None,
    # code actions
    "ActionAmbiguous": Action.RESOLVE_AGAIN,
    "ActionExpired": Action.RESOLVE_AGAIN,
    "ActionUnavailable": Action.RESOLVE_AGAIN,
    "ActionReferenceCapacityExceeded": Action.NARROW,
    "CodeActionsUnavailable": None,
    "FixAllUnavailable": None,
    "FixAllLimitExceeded": Action.NARROW,
    # the language server; these codes are the bridge's own
    "LanguageServerNotFound": None,
    "DotnetSdkNotFound": None,
    "LanguageServerFailed": Action.RETRY,
    "NotSupported": None,
    "DocumentNotSeen": None,
    "DocumentInSeveralProjects": None,
    "UnhandledException": None,
}
"""Every code the bridge can answer, with its next step (``None``: there is none to give)."""


def continuation_for(action: Action | None) -> Continuation | None:
    """The wire form of a next step."""
    if action is None:
        return None
    kind, tools = _SHAPES[action]
    return Continuation(kind, action.value, tools)


class BridgeError(Exception):
    """A refusal with a code of ``CONTINUATIONS``.

    ``action`` replaces the table's next step where the situation gives a better one (a commit with a stale
    snapshot asks for a preview, any other tool for a new target).  ``diagnostics`` are shown beside the message.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        action: Action | None = None,
        diagnostics: Sequence[DocumentError] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.action = action or CONTINUATIONS[code]
        self.diagnostics = tuple(diagnostics)


@dataclass(frozen=True, slots=True)
class Failure:
    """What a caller is told of a failed request."""

    code: str
    message: str
    continuation: Continuation | None
    correlation_id: str | None = None
    diagnostics: tuple[DocumentError, ...] = ()


def describe(error: Exception) -> Failure:
    """Turn an exception into what the caller is told; never raises.

    Expected refusals keep their words.  An unexpected exception is logged with its traceback under a correlation
    id, and the caller gets the id alone: its text could hold paths or source.
    """
    if isinstance(error, BridgeError):
        return Failure(
            error.code, error.message, continuation_for(error.action), diagnostics=error.diagnostics
        )
    if (
        isinstance(error, PathRefused | MsBuildPropertiesInvalid | TransactionError)
        and error.code in CONTINUATIONS
    ):
        return Failure(error.code, error.message, continuation_for(_action_of(error)))
    if isinstance(error, LanguageServerError):
        code = server_failure_code(error)
        return Failure(code, _server_words(error), continuation_for(CONTINUATIONS[code]))
    correlation_id = str(uuid.uuid4())
    logger.error("unhandled exception, correlation id %s", correlation_id, exc_info=error)
    return Failure(
        "UnhandledException",
        f"The bridge failed in a way that it did not foresee. Its log has the details under {correlation_id}.",
        None,
        correlation_id,
    )


def _action_of(error: PathRefused | MsBuildPropertiesInvalid | TransactionError) -> Action | None:
    if isinstance(error, CommitFailed) and not error.restored:
        return Action.RESOLVE_RECOVERY
    return CONTINUATIONS[error.code]


_SERVER_CODES: tuple[tuple[type[LanguageServerError], str], ...] = (
    (failures.LanguageServerNotFound, "LanguageServerNotFound"),
    (failures.DotnetSdkNotFound, "DotnetSdkNotFound"),
    (failures.WorkspaceLoadTimedOut, "WorkspaceLoadTimedOut"),
    (failures.WorkspaceLoadFailed, "WorkspaceLoadFailed"),
    (failures.MsBuildPropertiesRejected, "WorkspaceMsBuildPropertiesInvalid"),
    (failures.NotSupported, "NotSupported"),
    (failures.DocumentNotSeen, "DocumentNotSeen"),
)


def server_failure_code(error: LanguageServerError) -> str:
    """The code of a failure of the child server; what is not named above is ``LanguageServerFailed``."""
    return next((code for kind, code in _SERVER_CODES if isinstance(error, kind)), "LanguageServerFailed")


def _server_words(error: LanguageServerError) -> str:
    if isinstance(error, ServerGone):
        return f"The language server ended: {error}. It is started anew for the next request."
    if isinstance(error, RequestTimedOut):
        return f"The language server did not answer {error.method} within {error.seconds:g} s."
    last_words = getattr(error, "stderr_tail", "")
    return f"{error}{_excerpt(last_words)}"


def _excerpt(last_words: str) -> str:
    """The end of what a server said on stderr: the reason is mostly in its last lines."""
    lines = [line.strip() for line in last_words.splitlines() if line.strip()][-LAST_LINES:]
    return f" Its last words: {' | '.join(lines)[-LONGEST_LAST_WORDS:]}" if lines else ""
