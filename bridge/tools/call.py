"""What a front door and the tools say to each other about one call.

A front door (MCP over stdio, the Python API, a test) knows tools only through ``ToolCaller``.  The seam deliberately
knows nothing of transports, of JSON-RPC and of how tools are bound to functions; it is free of imports that cost
time, because the MCP front door answers ``initialize`` before anything heavy is loaded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

SHOWN_NAME = 80
"""How much of a name that we do not know is repeated to its sender, in characters."""

ReportProgress = Callable[[float, float | None, str], Awaitable[None]]
"""Takes the progress so far, the total if it is known (both in the same free unit), and a sentence."""


async def _report_to_nobody(_progress: float, _total: float | None, _message: str) -> None:
    """Progress of a call whose caller asked for none."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """What belongs to one call and is no argument of it."""

    report_progress: ReportProgress = _report_to_nobody
    """May be called at any time during the call; never raises for a caller that does not listen."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answered call, a refusal included: ready for the wire."""

    envelope: dict[str, object]
    """The structured content: plain JSON values only, ``{"ok": true, ...}`` or ``{"ok": false, ...}``."""
    text: str
    """A short text for people; says the same as the envelope, never more."""
    is_error: bool


class UnknownTool(Exception):
    """No tool has this name.  ``nearest`` is the known name that looks most like it, or ``None``."""

    def __init__(self, name: str, nearest: str | None) -> None:
        self.name = name
        self.nearest = nearest
        hint = f" Did you mean {nearest!r}?" if nearest is not None else ""
        super().__init__(f"Unknown tool: {name[:SHOWN_NAME]!r}.{hint}")


class ToolCaller(Protocol):
    """Calls tools by name."""

    async def call(self, name: str, arguments: Mapping[str, object] | None, context: CallContext) -> Answer:
        """Run one tool and answer; a refusal is an answer too.

        ``arguments`` is the caller's JSON object, unchecked; ``None`` counts as an empty one.  Raises ``UnknownTool``;
        anything else that comes out is a mistake of ours, and the front door answers it as ``UnhandledException``.
        """
        ...
