"""Tools by name: binds each entry of the catalog to the function that does it, and answers calls.

This is where arguments become a request model and where every exception becomes an answer.  Only cancellation and
``UnknownTool`` pass through.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from bridge.errors import Continuation, Failure, describe
from bridge.tools import answers, code_actions, formatting, renames, server, transactions, workspaces
from bridge.tools.answers import Outcome
from bridge.tools.call import Answer, CallContext, UnknownTool
from bridge.workbench import Workbench
from schemas import envelope
from schemas.catalog import CATALOG
from schemas.validation import InvalidArguments, validate
from schemas.wire import Request

LONGEST_MESSAGE = 4000
"""Characters of a refusal; the beginning and the end say what was wrong."""

Tool = Callable[[Workbench, Request, CallContext], Awaitable[Outcome]]


def _registry(
    bindings: Mapping[str, Callable[[Workbench, Any, CallContext], Awaitable[Outcome]]],
) -> Mapping[str, Tool]:
    """Every catalog entry must be bound, and nothing else.

    The catalog gives a tool's request model by name, so that the two fit cannot be said in types; a test calls each
    tool with its contract's examples.
    """
    if bindings.keys() != CATALOG.keys():
        raise ValueError(f"tools and catalog differ: {sorted(bindings.keys() ^ CATALOG.keys())}")
    return cast("Mapping[str, Tool]", bindings)


TOOLS = _registry(
    {
        "server-status": server.server_status,
        "workspace-open": workspaces.open_workspace,
        "workspace-list": workspaces.list_workspaces,
        "workspace-status": workspaces.workspace_status,
        "workspace-reload": workspaces.reload_workspace,
        "workspace-close": workspaces.close_workspace,
        "transaction-start": transactions.start_transaction,
        "transaction-preview": transactions.preview_transaction,
        "transaction-history": transactions.move_in_history,
        "transaction-commit": transactions.commit_transaction,
        "transaction-rollback": transactions.roll_back_transaction,
        "list-code-actions": code_actions.list_code_actions,
        "prepare-fix-all": code_actions.prepare_fix_all,
        "stage-code-action": code_actions.stage_code_action,
        "format-document": formatting.format_document,
        "format-project": formatting.format_project,
        "rename-symbol": renames.rename_symbol,
    }
)


class Tools:
    """The tools over one workbench; a ``ToolCaller``."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench

    async def call(self, name: str, arguments: Mapping[str, object] | None, context: CallContext) -> Answer:
        """Run one tool and answer; a refusal is an answer too.  Raises ``UnknownTool``."""
        tool = TOOLS.get(name)
        if tool is None:
            raise UnknownTool(name, next(iter(difflib.get_close_matches(name[:100], TOOLS, 1)), None))
        try:
            request = validate(CATALOG[name], arguments)
            outcome = await tool(self.workbench, request, context)
        except InvalidArguments as error:
            return _refusal(Failure("InvalidRequest", error.message, None))
        except Exception as error:  # noqa: BLE001  # the edge: every failure becomes an answer, logged in describe
            return _refusal(describe(_the_one(error)))
        snapshot = None if outcome.snapshot is None else answers.snapshot_answer(outcome.snapshot)
        return Answer(envelope.success(outcome.data, snapshot), outcome.text, is_error=False)


def _the_one(error: Exception) -> Exception:
    """A task group wraps what came out of it; a group of one speaks for its member."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


_CONTINUATIONS: Mapping[str, Callable[[Continuation], envelope.Continuation]] = {
    "CallTool": lambda c: envelope.CallTool(instruction=c.instruction, tool=c.tools[0]),
    "ChooseTool": lambda c: envelope.ChooseTool(instruction=c.instruction, tools=c.tools),
    "RetryRequest": lambda c: envelope.RetryRequest(instruction=c.instruction),
    "ReviseRequest": lambda c: envelope.ReviseRequest(instruction=c.instruction),
    "ResolveExternally": lambda c: envelope.ResolveExternally(instruction=c.instruction),
}


def _refusal(failure: Failure) -> Answer:
    message = _shortened(failure.message)
    continuation = failure.continuation
    shaped = None if continuation is None else _CONTINUATIONS[continuation.kind](continuation)
    body = envelope.failure(
        failure.code, message, shaped, failure.correlation_id, failure.diagnostics or None
    )
    return Answer(body, f"{failure.code}: {message}", is_error=True)


def _shortened(message: str) -> str:
    """A refusal may quote its caller, and callers may send megabytes."""
    if len(message) <= LONGEST_MESSAGE:
        return message
    half = LONGEST_MESSAGE // 2
    return f"{message[:half]} … {message[-half:]}"
