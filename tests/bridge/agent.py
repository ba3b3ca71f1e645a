"""What an agent does with the tools, for tests: it calls them by name, checks each answer, and echoes the snapshot.

Every answer is held against the tool's published output schema, so that no test can pass with an answer that a client
would refuse.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

import anyio
from jsonschema import Draft202012Validator

from bridge.options import Options
from bridge.tools.call import Answer, CallContext
from bridge.tools.registry import Tools
from bridge.workbench import Workbench, open_workbench
from bridge.workspace import Workspace
from schemas.catalog import CATALOG
from schemas.code_actions import CodeAction, ListCodeActionsData, PrepareFixAllData, StageCodeActionData
from schemas.envelope import CallTool, ChooseTool, Continuation, Failure
from schemas.publication import output_schema
from schemas.snapshots import Snapshot
from schemas.transactions import (
    TransactionCommitData,
    TransactionHistoryData,
    TransactionInfo,
    TransactionPreviewData,
    TransactionRollbackData,
    TransactionStartData,
)
from schemas.wire import Data
from schemas.workspaces import (
    WorkspaceCloseData,
    WorkspaceListData,
    WorkspaceOpenData,
    WorkspaceReloadData,
    WorkspaceStatusData,
)
from tests.bridge.played_server import PlayedServer, playing

D = TypeVar("D", bound=Data)

TEST_BOUND = 30.0
"""Seconds for one story; a healthy one takes less than one."""

PATIENT = Options(
    server="embedded",
    load_timeout=20.0,
    request_timeout=10.0,
    restart_timeout=10.0,
    warm_up="off",
    watch="off",
)
"""The bridge's own defaults are made for compilers; a test that waits so long has failed.  A watch would meet what happens
on disk at a moment that no test chooses (``test_watching`` has its own), and a warm server was asked what no test asks
(``test_warm_up`` has its own)."""


class UnexpectedRefusal(AssertionError):
    """A call was refused that a test expected to be answered."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.text)
        self.code = Failure.model_validate(answer.envelope).error.code


@dataclass(frozen=True)
class Refusal:
    """A refused call."""

    code: str
    message: str
    kind: str | None
    """Of the continuation."""
    tools: tuple[str, ...]
    instruction: str | None
    correlation_id: str | None


def _tools_of(continuation: Continuation | None) -> tuple[str, ...]:
    match continuation:
        case CallTool(tool=tool):
            return (tool,)
        case ChooseTool(tools=tools):
            return tools
        case _:
            return ()


@cache
def _validator(tool: str) -> Draft202012Validator:
    return Draft202012Validator(output_schema(CATALOG[tool]))


class Agent:
    """Calls tools as a client does; remembers the snapshot of the newest answer."""

    def __init__(self, workbench: Workbench) -> None:
        self.workbench = workbench
        self.tools = Tools(workbench)
        self.snapshot: dict[str, object] = {}
        """To be echoed; of the newest answer that had one."""
        self.context = CallContext()
        """Of every call."""

    # --- any tool ---------------------------------------------------------------------------------------

    async def call(self, tool: str, **arguments: object) -> Answer:
        """One call as it is; the answer fits its published schema."""
        if "expected_snapshot" in CATALOG[tool].request_model.model_fields:
            arguments.setdefault("expectedSnapshot", self.snapshot)
        answer = await self.tools.call(tool, arguments, self.context)
        problems = [error.message for error in _validator(tool).iter_errors(answer.envelope)]
        assert problems == [], answer.envelope
        assert answer.text, "every answer carries a text for people"
        assert answer.is_error is not answer.envelope["ok"]
        return answer

    async def ask(self, data: type[D], tool: str, **arguments: object) -> D:
        """A call that is answered; its data."""
        answer = await self.call(tool, **arguments)
        if answer.is_error:
            raise UnexpectedRefusal(answer)
        snapshot = answer.envelope.get("snapshot")
        if isinstance(snapshot, dict):
            self.snapshot = snapshot
        return data.model_validate(answer.envelope["data"])

    async def refused(self, tool: str, **arguments: object) -> Refusal:
        """A call that is refused; what the caller is told."""
        answer = await self.call(tool, **arguments)
        assert answer.is_error, answer.text
        assert "snapshot" not in answer.envelope, "a failure never publishes a snapshot"
        failure = Failure.model_validate(answer.envelope)
        continuation = failure.continuation
        return Refusal(
            failure.error.code,
            failure.error.message,
            None if continuation is None else continuation.kind,
            _tools_of(continuation),
            None if continuation is None else continuation.instruction,
            failure.error.correlation_id,
        )

    # --- one method a tool ------------------------------------------------------------------------------

    async def open(self, path: Path, **more: object) -> WorkspaceOpenData:
        return await self.ask(WorkspaceOpenData, "workspace-open", path=str(path), **more)

    async def list_workspaces(self) -> WorkspaceListData:
        return await self.ask(WorkspaceListData, "workspace-list")

    async def status(self, **more: object) -> WorkspaceStatusData:
        return await self.ask(WorkspaceStatusData, "workspace-status", **more)

    async def reload(self, **more: object) -> WorkspaceReloadData:
        return await self.ask(WorkspaceReloadData, "workspace-reload", **more)

    async def close(self, **more: object) -> WorkspaceCloseData:
        return await self.ask(WorkspaceCloseData, "workspace-close", **more)

    async def start(self, **more: object) -> TransactionInfo:
        return _info((await self.ask(TransactionStartData, "transaction-start", **more)).transaction)

    async def undo(self, **more: object) -> TransactionInfo:
        return await self._move("Undo", more)

    async def redo(self, **more: object) -> TransactionInfo:
        return await self._move("Redo", more)

    async def _move(self, direction: str, more: Mapping[str, object]) -> TransactionInfo:
        moved = await self.ask(TransactionHistoryData, "transaction-history", direction=direction, **more)
        return _info(moved.transaction)

    async def preview(self, **more: object) -> TransactionPreviewData:
        return await self.ask(TransactionPreviewData, "transaction-preview", **more)

    async def commit(self, **more: object) -> TransactionCommitData:
        return await self.ask(TransactionCommitData, "transaction-commit", **more)

    async def roll_back(self, **more: object) -> TransactionRollbackData:
        return await self.ask(TransactionRollbackData, "transaction-rollback", **more)

    async def listing(self, path: str, **more: object) -> ListCodeActionsData:
        """What is offered for a document; everything unless told otherwise."""
        arguments = {"document": {"path": path}, "kinds": "All", **more}
        return await self.ask(ListCodeActionsData, "list-code-actions", **arguments)

    async def actions(self, path: str, **more: object) -> tuple[CodeAction, ...]:
        items = (await self.listing(path, **more)).actions.items
        assert items is not None
        return items

    async def actions_after_change(self, path: str) -> tuple[CodeAction, ...]:
        """The same after somebody else wrote on the disk: the first call meets the change, and has an old snapshot."""
        refusal = await self.refused("list-code-actions", document={"path": path}, kinds="All")
        assert refusal.code == "SnapshotMismatch"
        await self.status()
        return await self.actions(path)

    async def stage(self, action: CodeAction | str, **more: object) -> StageCodeActionData:
        action_id = action if isinstance(action, str) else action.action_id
        return await self.ask(StageCodeActionData, "stage-code-action", actionId=action_id, **more)

    async def prepare(self, action: CodeAction | str, scope: str, **more: object) -> PrepareFixAllData:
        """Compute an action for a whole scope."""
        action_id = action if isinstance(action, str) else action.action_id
        return await self.ask(PrepareFixAllData, "prepare-fix-all", actionId=action_id, scope=scope, **more)

    async def stage_first(self, path: str, title: str | None = None) -> StageCodeActionData:
        """List, and stage the first action, or the first one with a title."""
        found = await self.actions(path)
        return await self.stage(next(a for a in found if title is None or a.title == title))

    # --- looking inside ---------------------------------------------------------------------------------

    @property
    def workspace(self) -> Workspace:
        """The one open workspace."""
        (workspace,) = self.workbench.workspaces
        return workspace

    @property
    def identity(self) -> Snapshot:
        """The newest snapshot, readable."""
        return Snapshot.model_validate(self.snapshot)


def _info(info: TransactionInfo | None) -> TransactionInfo:
    assert info is not None
    return info


@dataclass
class Scene:
    """An agent, the server that the test plays, and a small solution."""

    agent: Agent
    server: PlayedServer
    root: Path
    solution: Path

    @property
    def workspace(self) -> Workspace:
        """The one open workspace, from the inside."""
        return self.agent.workspace

    def file(self, name: str) -> Path:
        """A file of the solution."""
        return self.root / name


APPLE = "namespace Shop;\n\npublic class Apple\n{\n}\n"
PEAR = "namespace Shop;\n\npublic class Pear\n{\n}\n"

PROJECT = """<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup>
</Project>
"""


def write_solution(root: Path) -> Path:
    """Two projects, ``Core`` with two files and ``App`` with one."""
    files = {
        "Shop.slnx": '<Solution><Project Path="Core/Core.csproj" /><Project Path="App/App.csproj" /></Solution>\n',
        "Core/Core.csproj": PROJECT,
        "Core/Apple.cs": APPLE,
        "Core/Pear.cs": PEAR,
        "App/App.csproj": PROJECT,
        "App/Program.cs": "System.Console.WriteLine();\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root / "Shop.slnx"


@contextmanager
def one_failure() -> Iterator[None]:
    """What went wrong inside of task groups, without the groups around it."""
    try:
        yield
    except BaseExceptionGroup as group:
        leaf: BaseException = group
        while isinstance(leaf, BaseExceptionGroup):
            leaf = next((e for e in leaf.exceptions if isinstance(e, AssertionError)), leaf.exceptions[0])
        raise leaf from None


@asynccontextmanager
async def scene(tmp_path: Path, **options: object) -> AsyncIterator[Scene]:
    """A bridge with a played server, and a solution that is not open yet.  Nothing in it may take long."""
    root = tmp_path / "Läden & mehr"
    with one_failure(), anyio.fail_after(TEST_BOUND):
        async with playing() as server:
            settings = replace(PATIENT, server_path=server.path, state_directory=tmp_path / "state")
            async with open_workbench(replace(settings, **options)) as workbench:  # type: ignore[arg-type]  # names of options, checked by dataclasses
                yield Scene(Agent(workbench), server, root, write_solution(root))


@asynccontextmanager
async def opened(tmp_path: Path, **options: object) -> AsyncIterator[Scene]:
    """The same with the solution open."""
    async with scene(tmp_path, **options) as made:
        await made.agent.open(made.solution)
        yield made


@asynccontextmanager
async def real_bridge(tmp_path: Path, **options: object) -> AsyncIterator[Agent]:
    """A bridge with the embedded server as it is shipped."""
    settings = replace(PATIENT, state_directory=tmp_path / "state")
    with one_failure(), anyio.fail_after(TEST_BOUND):
        async with open_workbench(replace(settings, **options)) as workbench:  # type: ignore[arg-type]  # names of options, checked by dataclasses
            yield Agent(workbench)
