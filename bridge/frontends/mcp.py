"""The MCP front door: the tools over stdio, in both eras of the protocol.

*Start-up.*  A client waits for the answer to ``initialize`` before it does anything, so nothing but the SDK is
imported before that answer is out; the tools and all they need are opened right after it, while the client thinks
(``ToolRoom``).  A request that needs them earlier simply waits.

*Failures.*  A refusal is an answer of the tool.  What escapes a tool is our own mistake: it is logged here with its
traceback under a correlation id, and the caller gets that id and no text of the exception, which could tell paths
or contents.  An unknown tool is the one case for which MCP has an error of its own.

*The end.*  End of input, SIGTERM, SIGINT and an output that nobody reads lead to the same orderly end: calls are
cancelled, the room is closed (which stops the language servers), answers are flushed.  A timer outside the event
loop bounds it all.
"""

from __future__ import annotations

import gc
import logging
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from bridge.frontends.forced_end import end_now
from bridge.frontends.jsonrpc import scrub
from bridge.frontends.signals import watch_signals
from bridge.frontends.stdio import Transport, claimed_stdio, open_transport
from bridge.options import Options
from bridge.tools.call import Answer, CallContext, ToolCaller, UnknownTool

logger = logging.getLogger(__name__)

OpenTools = Callable[[Options], AbstractAsyncContextManager[ToolCaller]]
"""Opens the tools; leaving the context stops every language server."""

PublishTools = Callable[[Options], Sequence[dict[str, object]]]
"""The tools as ``tools/list`` shows them: one JSON object each."""

Context = ServerRequestContext[Any, Any]  # the SDK's own defaults for a server without lifespan state

END_SECONDS = 10.0
"""The longest orderly end.  Stopping a language server is bounded by itself at a few seconds; a client that waits for
us to end kills us after two or so; whatever still runs after this is stuck, and the process ends without it."""

GC_THRESHOLDS = (100_000, 50, 50)
"""Collections are rarer than by default: a large answer makes many objects, none of them garbage yet."""

COMPLETE = {"resultType": "complete"}
"""Newer protocol versions require it of every result; the SDK takes it out for older ones, as all it does not know."""

TOOLS_LIST_FRESH_MS = 3_600_000
"""How long a client may reuse the list of tools (newer versions only); it does not change while a process lives."""

INSTRUCTIONS = """\
Roslyn Bridge stages C# code actions in transactions and writes them to disk all at once or not at all.

Order of work: workspace-open (a .sln, .slnx, .slnf or .csproj) -> transaction-start -> list-code-actions at a place \
-> stage-code-action with an id of that list -> transaction-preview (shows the diff) -> transaction-commit, or \
transaction-rollback. transaction-history undoes and redoes staged steps. Nothing on disk changes before \
transaction-commit.

Every answer is {"ok": true, "data", "snapshot"} or {"ok": false, "error": {"code", "message"}, "continuation"}. \
Put the newest snapshot you were given into the next request that asks for one; after a stage, undo, redo or reload, \
list again, because action ids belong to one snapshot. A refusal's continuation says what to do next: CallTool and \
ChooseTool name the tools to call, RetryRequest means the same request again, ReviseRequest means change it as the \
instruction says, ResolveExternally needs a person. Without a continuation, read the message; do not guess about \
codes that you do not know. Line and column numbers, and their units, are described at each field.
"""


class ToolsUnavailable(Exception):
    """The tools could not be opened; the reason is in the log under ``correlation_id``."""

    def __init__(self, correlation_id: str) -> None:
        super().__init__(correlation_id)
        self.correlation_id = correlation_id


class ToolRoom:
    """Holds the tools open in one task, from the moment they are wanted until the room is closed.

    One task enters and leaves the tools' context, because the task groups inside it belong to one task.
    """

    def __init__(self, options: Options, open_tools: OpenTools) -> None:
        self._options = options
        self._open_tools = open_tools
        self._wanted = anyio.Event()
        self._settled = anyio.Event()
        self._closing = anyio.Event()
        self.closed = anyio.Event()
        """Set when the tools' context has been left, or will never be entered."""
        self._caller: ToolCaller | None = None
        self._failure: str | None = None

    def want(self) -> None:
        """Open the tools now, unless that has begun."""
        self._wanted.set()

    def close(self) -> None:
        """Let ``keep`` leave the tools' context."""
        self._closing.set()
        self._wanted.set()

    async def caller(self) -> ToolCaller:
        """The open tools, opened if need be.  Raises ``ToolsUnavailable``."""
        self.want()
        await self._settled.wait()
        if self._failure is not None or self._caller is None:
            raise ToolsUnavailable(self._failure or "closed")
        return self._caller

    async def keep(self) -> None:
        """Run the room; returns when it is closed and the tools' context has been left."""
        await self._wanted.wait()
        try:
            if not self._closing.is_set():
                async with self._open_tools(self._options) as self._caller:
                    _settle_memory()
                    self._settled.set()
                    await self._closing.wait()
        except Exception:  # noqa: BLE001  # an edge: every later call is answered with the id under which the reason is logged
            self._failure = _log_failure("the tools could not be kept open")
            _settle_memory()
        finally:
            self._caller = None
            self._settled.set()
            self.closed.set()


def _settle_memory() -> None:
    """Everything loaded so far stays for good: take it out of every later garbage collection."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def _log_failure(what: str) -> str:
    """Log the exception being handled under a new correlation id and return that id."""
    correlation_id = uuid.uuid4().hex
    logger.exception("%s [correlation id %s]", what, correlation_id)
    return correlation_id


def _unhandled(correlation_id: str) -> Answer:
    message = (
        "The bridge failed in a way it did not foresee; its log holds the details under the correlation id."
    )
    error = {"code": "UnhandledException", "message": message, "correlationId": correlation_id}
    return Answer(
        {"ok": False, "error": error}, f"UnhandledException: {message} ({correlation_id})", is_error=True
    )


def build_server(options: Options, room: ToolRoom, publish: PublishTools, version: str) -> Server[Any]:
    """The low-level server: it publishes what it is given and checks nothing itself."""
    published: list[dict[str, object]] = []

    async def list_tools(_context: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        if params.cursor is not None:
            raise MCPError(
                code=types.INVALID_PARAMS, message="Invalid params: there is one page of tools, no cursor"
            )
        if not published:
            published.extend(publish(options))
        return {"tools": published, **COMPLETE, "ttlMs": TOOLS_LIST_FRESH_MS, "cacheScope": "private"}

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        answer = await answer_call(room, params, CallContext(context.session.report_progress))
        return {
            "content": [{"type": "text", "text": scrub(answer.text)}],
            "structuredContent": answer.envelope,
            "isError": answer.is_error,
            **COMPLETE,
        }

    server: Server[Any] = Server(
        "roslyn-bridge", version=version, title="Roslyn Bridge", instructions=INSTRUCTIONS
    )
    server.add_request_handler("tools/list", types.PaginatedRequestParams, list_tools)
    server.add_request_handler("tools/call", types.CallToolRequestParams, call_tool)
    server.middleware.append(_contain)
    return server


async def _contain(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Keep the text of every exception inside, also of those that the SDK raises while it writes our answers.

    By itself it would send ``str(exception)`` to clients of the handshake era.
    """
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise  # the SDK has proper answers for these
    except Exception:  # noqa: BLE001  # an edge: no text of an exception leaves the process
        correlation_id = _log_failure(f"answering {ctx.method[:80]!r} failed")
        message = f"Internal error; the log holds the details [correlation id {correlation_id}]"
        raise MCPError(code=types.INTERNAL_ERROR, message=message) from None


async def answer_call(room: ToolRoom, params: types.CallToolRequestParams, context: CallContext) -> Answer:
    """Run one call; raises ``MCPError`` for an unknown tool, and nothing else."""
    try:
        caller = await room.caller()
        return await caller.call(params.name, params.arguments, context)
    except UnknownTool as unknown:
        raise MCPError(code=types.INVALID_PARAMS, message=str(unknown)) from None
    except ToolsUnavailable as unavailable:
        return _unhandled(unavailable.correlation_id)
    except Exception:  # noqa: BLE001  # an edge: no text of an exception leaves the process
        return _unhandled(_log_failure(f"tool {params.name[:80]!r} raised"))


def published_tools(options: Options) -> list[dict[str, object]]:
    """The catalog for ``tools/list``.

    One schema that cannot be made costs only its own tool's schema, never the list: the tool stays listed and takes
    any object, which is checked at the call as always.
    """
    from schemas.catalog import CATALOG  # noqa: PLC0415  # all of it after ``initialize``
    from schemas.publication import publish  # noqa: PLC0415

    tools: list[dict[str, object]] = []
    for entry in CATALOG.values():
        tool: dict[str, object] = {"name": entry.name, "title": entry.title, "description": entry.summary}
        try:
            input_schema, output_schema = publish(entry, options.tool_output_schema_mode)
        except Exception:  # noqa: BLE001  # an edge between tools: one mistake stays one tool's
            _log_failure(f"the schema of tool {entry.name} could not be made")
            input_schema, output_schema = {"type": "object"}, None
        tool["inputSchema"] = input_schema
        if output_schema is not None:
            tool["outputSchema"] = output_schema
        tool["annotations"] = entry.annotations
        tools.append(tool)
    return tools


@asynccontextmanager
async def open_workbench_tools(options: Options) -> AsyncIterator[ToolCaller]:
    """The real tools on a workbench of their own."""
    from bridge.tools.registry import Tools  # noqa: PLC0415  # the whole application: after ``initialize``
    from bridge.workbench import open_workbench  # noqa: PLC0415

    async with open_workbench(options) as workbench:
        yield Tools(workbench)


async def serve(
    options: Options,
    open_tools: OpenTools = open_workbench_tools,
    publish: PublishTools = published_tools,
    *,
    version: str = "",
) -> int:
    """Serve one client on stdin and stdout until an end, and return the exit code.

    Must run in the main thread (signals).  Does not return but ends the process when the orderly end takes longer
    than ``END_SECONDS`` or a second signal comes.
    """
    room = ToolRoom(options, open_tools)
    server = build_server(options, room, publish, version)
    exit_code = 0
    with claimed_stdio() as wire:
        async with anyio.create_task_group() as watchers:
            async with anyio.create_task_group() as tasks, open_transport(wire) as transport:

                def end(code: int) -> None:
                    nonlocal exit_code
                    exit_code = code
                    transport.stop_reading()

                await watchers.start(watch_signals, end)
                watchers.start_soon(_bound_the_end, transport, lambda: exit_code)
                watchers.start_soon(_open_after_first_answer, transport, room)
                tasks.start_soon(room.keep)
                await server.run(
                    transport.incoming, transport.outgoing, server.create_initialization_options()
                )
                room.close()
                await room.closed.wait()
            watchers.cancel_scope.cancel()  # last: a signal during the clean-up is still ours
    return exit_code


async def _open_after_first_answer(transport: Transport, room: ToolRoom) -> None:
    await transport.answered.wait()
    room.want()


async def _bound_the_end(transport: Transport, exit_code: Callable[[], int]) -> None:
    """Start the clock when the end begins; a thread's timer, because the event loop may be what is stuck."""
    await transport.ended.wait()
    clock = threading.Timer(END_SECONDS, lambda: end_now(exit_code()))
    clock.daemon = True
    clock.start()
    try:
        await anyio.sleep_forever()
    finally:
        clock.cancel()
