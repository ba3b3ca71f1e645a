"""The bridge's own fix-all on csharp-ls: however it ends, the server is back at the current revision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import anyio
import psutil
import pytest

from bridge import emulated_fix_all
from bridge.action_references import ActionReference
from bridge.code_actions import offered_at
from bridge.emulated_fix_all import Emulated, emulate, replay
from bridge.options import read_options
from bridge.progress import to_nobody
from bridge.questions import ask
from bridge.resolution import documents_at
from bridge.tools.call import CallContext
from bridge.tools.registry import Tools
from bridge.workbench import open_workbench
from bridge.workspace import Workspace
from lsp_client.errors import ResponseError
from lsp_client.messages import Diagnostic
from lsp_client.session import Session
from lsp_client.workspace_report import workspace_report
from tests.real.small import small_solution
from transactions.overlay import Staged
from transactions.text import Position, Range, SourceText

pytestmark = pytest.mark.anyio

UNUSED = "using System.IO;\nusing System.Text;\n"
FILES = {f"{name}.cs": f"{UNUSED}public class {name} {{ }}\n" for name in ("One", "Two", "Three")}
STAGED = "// staged\n" + UNUSED + "public class Two { }\n"

Report = Mapping[Path, tuple[Diagnostic, ...]]
TITLE = "Remove unnecessary usings"


async def fix_all(workspace: Workspace, path: Path) -> tuple[Emulated, ActionReference]:
    """List at the first line of a file, and make the fix for the whole solution; then make it again of the answers."""
    async with workspace.leases.exclusive():
        place = Range(Position(0, 0), Position(0, 0))
        offer = await offered_at(workspace, documents_at(workspace, path)[0], place)
        (action,) = [action for action in offer.listing.actions if action.title == TITLE]
        assert action.fix_all_scopes == ("Document", "Project", "Solution")
        reference = ActionReference(
            workspace.snapshot(), offer.generation, path, place, (TITLE,), action.kind, action.fix_all_scopes
        )
        bounds = {"max_documents": 10}
        made = await emulate(
            workspace, reference, action, "Solution", line_endings="adapt", tell=to_nobody, **bounds
        )
        again = await replay(
            workspace, reference, action, "Solution", made.answers, line_endings="adapt", **bounds
        )
        assert again.has_same_content(made.planned)
        return made, reference


async def places_seen(workspace: Workspace) -> dict[str, list[int]]:
    """The lines of unnecessary usings, as the server has the texts now."""

    async def question(session: Session) -> Report:
        return await workspace_report(session, timeout=60.0)

    async with workspace.leases.exclusive():
        report = await ask(workspace, question)
    return {path.name: [item.range.start.line for item in items] for path, items in report.items()}


class _AtItsOwnText:
    """Does something in the second report of a fix-all, while the server is at the text of the first round."""

    def __init__(self, act: Callable[[Session], Awaitable[None]]) -> None:
        self._act = act
        self.reports = 0

    async def __call__(self, session: Session, *, timeout: float) -> Report:
        self.reports += 1
        if self.reports == 2:
            await self._act(session)
        return await workspace_report(session, timeout=timeout)


async def test_after_success_error_cancel_and_kill_the_server_is_back_at_the_current_revision(
    csharp_ls_dll: Path, toolchain: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solution = small_solution(tmp_path / "Small", FILES)
    for name, value in toolchain.items():
        monkeypatch.setenv(name, value)
    given = {
        "server": "csharp-ls",
        "server_path": str(csharp_ls_dll),
        "state_directory": str(tmp_path / "state"),
    }
    options = read_options(given, toolchain)
    async with open_workbench(options) as workbench:
        tools = Tools(workbench)
        opened = await tools.call("workspace-open", {"path": str(solution)}, CallContext())
        assert not opened.is_error, opened.text
        (workspace,) = workbench.workspaces
        assert workspace.supervisor.identity.has_tree == (options.server_view == "overlay")
        workspace.begin_transaction()
        two = solution.parent / "Two.cs"
        draft = workspace.overlay.draft()
        draft.put(two, Staged(SourceText(STAGED), two))
        workspace.require_transaction().stage(draft.freeze(), "test", "a staged text")
        current = {"One.cs": [0, 1], "Three.cs": [0, 1], "Two.cs": [1, 2]}
        assert await places_seen(workspace) == current

        one = solution.parent / "One.cs"
        made, _ = await fix_all(workspace, one)
        assert (made.affected_before, made.remaining_after) == (6, 0)
        texts = {
            path.name: text.text
            for path in sorted(solution.parent.glob("*.cs"))
            if (text := made.planned.text(path))
        }
        assert texts == {
            "One.cs": "public class One { }\n",
            "Three.cs": "public class Three { }\n",
            "Two.cs": "// staged\npublic class Two { }\n",
        }
        assert await places_seen(workspace) == current, "after success"

        async def fail(_session: Session) -> None:
            raise ResponseError("workspace/diagnostic", -32603, "Internal error: Exception")

        monkeypatch.setattr(emulated_fix_all, "workspace_report", _AtItsOwnText(fail))
        with pytest.raises(ResponseError):
            await fix_all(workspace, one)
        assert await places_seen(workspace) == current, "after an error"

        with anyio.CancelScope() as scope:

            async def cancel(_session: Session) -> None:
                scope.cancel()

            monkeypatch.setattr(emulated_fix_all, "workspace_report", _AtItsOwnText(cancel))
            await fix_all(workspace, one)
        assert scope.cancelled_caught
        assert await places_seen(workspace) == current, "after a cancel"

        async def kill(session: Session) -> None:
            psutil.Process(session.pid).kill()

        monkeypatch.setattr(emulated_fix_all, "workspace_report", _AtItsOwnText(kill))
        made, _ = await fix_all(workspace, one)
        assert (made.affected_before, made.remaining_after) == (6, 0), (
            "the new server was shown the round's text"
        )
        assert await places_seen(workspace) == current, "after a kill"
