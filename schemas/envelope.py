"""The envelope of every answer: ``ok`` with data, or not ``ok`` with an error and how to go on.

``success`` and ``failure`` make dicts that are ready for the wire: camelCase, absent members left out, lone surrogates
replaced.  The classes below them are what the published output schemas are made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from schemas.locations import DocumentError
from schemas.snapshots import Snapshot
from schemas.surrogates import scrubbed, scrubbed_text
from schemas.wire import Data, Omittable, OrNull, Text


def _mended(value: object) -> object:
    return scrubbed_text(value) if isinstance(value, str) else value


def _without_repetition(tools: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(tools)) != len(tools):
        raise ValueError("a tool is named twice")
    return tools


Instruction: TypeAlias = Annotated[str, Field(min_length=1), BeforeValidator(_mended)]
ToolName: TypeAlias = Annotated[str, Field(min_length=1)]


class ContinuationBase(Data):
    """What the agent has to do before the request can go on; the instruction is addressed to it."""

    is_closed: ClassVar[bool] = True

    instruction: Instruction


class CallTool(ContinuationBase):
    """Call one tool first."""

    kind: Literal["CallTool"] = "CallTool"
    tool: ToolName


class ChooseTool(ContinuationBase):
    """Choose one of several tools and call it first."""

    kind: Literal["ChooseTool"] = "ChooseTool"
    tools: Annotated[
        tuple[ToolName, ...],
        Field(min_length=1, json_schema_extra={"uniqueItems": True}),
        AfterValidator(_without_repetition),
    ]


class RetryRequest(ContinuationBase):
    """Send the same request again."""

    kind: Literal["RetryRequest"] = "RetryRequest"


class ReviseRequest(ContinuationBase):
    """Change the request, then send it."""

    kind: Literal["ReviseRequest"] = "ReviseRequest"


class ResolveExternally(ContinuationBase):
    """Something outside of these tools has to be put right first."""

    kind: Literal["ResolveExternally"] = "ResolveExternally"


Continuation: TypeAlias = CallTool | ChooseTool | RetryRequest | ReviseRequest | ResolveExternally


class ErrorBody(Data):
    """What went wrong."""

    code: Text = Field(description="Stable; decide by it.")
    message: Text = Field(description="For people.")
    correlation_id: OrNull[Text] = Field(None, description="Finds the failure in the log.")
    diagnostics: OrNull[tuple[DocumentError, ...]] = Field(None, description="The errors it is about.")


class Success(Data):
    """An answer; each tool publishes its own data in the place of ``data``."""

    ok: Literal[True] = True
    data: object
    snapshot: OrNull[Snapshot] = Field(None, description="The state this answer speaks of.")


class Failure(Data):
    """A refusal or a failure."""

    ok: Literal[False] = False
    error: ErrorBody
    continuation: Omittable[Annotated[Continuation, Field(discriminator="kind")]] = Field(
        None, description="What to do before trying again."
    )


def success(data: Data | None, snapshot: Snapshot | None = None) -> dict[str, object]:
    """The envelope of an answer; ``snapshot`` is the state after the call, for answers bound to a workspace."""
    envelope: dict[str, object] = {"ok": True, "data": None if data is None else data.model_dump(mode="json")}
    if snapshot is not None:
        envelope["snapshot"] = snapshot.model_dump(mode="json")
    return scrubbed(envelope)


def failure(
    code: str,
    message: str,
    continuation: Continuation | None = None,
    correlation_id: str | None = None,
    diagnostics: Sequence[DocumentError] | None = None,
) -> dict[str, object]:
    """The envelope of a refusal or failure; ``code`` is for programs, ``message`` for people."""
    error: dict[str, object] = {"code": code, "message": message}
    if correlation_id is not None:
        error["correlationId"] = correlation_id
    if diagnostics is not None:
        error["diagnostics"] = [diagnostic.model_dump(mode="json") for diagnostic in diagnostics]
    envelope: dict[str, object] = {"ok": False, "error": error}
    if continuation is not None:
        envelope["continuation"] = continuation.model_dump(mode="json")
    return scrubbed(envelope)
