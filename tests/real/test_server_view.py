"""``--server-view overlay`` on a real server: staged files are part of their project, and the disk hears nothing of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import anyio
import psutil
import pytest
from anyio import to_thread

from tests.lsp_client.inside import views
from tests.lsp_client.test_process import Watched
from tests.real.conftest import RealServer, run_dotnet
from tests.real.mcp_agent import Agent, Json, bridge_process, offset_of
from tests.real.new_files import renamed_before_the_commit
from tests.real.small import options, small_solution

__all__ = ["views"]  # a fixture, used by its name

ONE = "namespace Small.Models;\n\npublic class One\n{\n    public object Made = new Two();\n}\n"
USER = "namespace Other;\n\npublic class User\n{\n    public object Made = new Two();\n}\n"
GENERATE, USE = "Generate class 'Two' in new file", "using Small.Models;"


def everything(root: Path) -> dict[str, bytes]:
    """All files with their bytes, build output included; not the status files of open workspaces."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and ".vs" not in path.parts
    }


async def generate_and_use(agent: Agent, root: Path) -> None:
    """The type is generated into a new file, and used from a second one in the next step."""
    opened = await agent.do("workspace-open", path=str(root / "Small.slnx"))
    assert [d for d in cast("list[Json]", opened["loadDiagnostics"]) if d["severity"] != "Info"] == []
    await agent.do("transaction-start")
    place = offset_of(root / "User.cs", "Two")
    assert USE not in [action["title"] for action in await agent.actions("User.cs", place)]
    staged = await agent.stage("One.cs", offset_of(root / "One.cs", "Two"), GENERATE)
    assert staged["summary"] == f"{GENERATE}: 1 created"
    assert "notes" not in await agent.listing("Two.cs", 0)
    await agent.stage("User.cs", place, USE)
    change = cast("Json", (await agent.do("transaction-preview"))["diagnosticsChange"])
    assert "unreliable" not in change
    assert change["documentCount"] == 2
    assert cast("Json", change["newErrors"])["totalCount"] == 0
    (fixed,) = cast("list[Json]", cast("Json", change["fixedErrors"])["items"])
    assert (fixed["id"], fixed["path"]) == ("CS0246", "User.cs")


def bridge_of_this_test() -> psutil.Process:
    (bridge,) = [p for p in psutil.Process().children() if "bridge" in p.cmdline() and "mcp" in p.cmdline()]
    return bridge


@pytest.mark.anyio
async def test_a_type_generated_into_a_new_file_is_used_in_the_next_step_and_the_disk_hears_of_it_at_the_commit(
    toolchain: Mapping[str, str], roslyn_dll: Path, tmp_path: Path, views: None
) -> None:
    root = tmp_path / "Small"
    small_solution(root, {"One.cs": ONE, "User.cs": USER})
    run_dotnet(toolchain, root, "restore")
    before = everything(root)
    server = RealServer("roslyn", roslyn_dll)
    command = options(
        server, tmp_path, "--server-view", "overlay", "--commit-validation", "no-new-compiler-errors"
    )
    private = tmp_path / "state/roslyn-bridge/views"

    # Killed in the middle: nothing on the disk before, nothing left behind.
    async with bridge_process(toolchain, command) as agent:
        await generate_and_use(agent, root)
        assert everything(root) == before
        outside = await to_thread.run_sync(
            run_dotnet, toolchain, root, "msbuild", "Small.csproj", "-getItem:Compile"
        )
        assert "One.cs" in outside
        assert "Two.cs" not in outside
        bridge = bridge_of_this_test()
        tree = [Watched(process.pid) for process in bridge.children(recursive=True)]
        assert len(tree) >= 3, "the guard, the server, the writer"
        os.kill(bridge.pid, signal.SIGKILL)
        for process in tree:
            await process.gone()
    assert everything(root) == before
    assert list(private.iterdir()) == []
    assert str(private) not in await anyio.Path("/proc/self/mounts").read_text()

    # Once more to the end, the compiler's word demanded.
    async with bridge_process(toolchain, command) as agent:
        await generate_and_use(agent, root)
        await renamed_before_the_commit(agent, root)
        assert everything(root) == before
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
        committed = everything(root)
        changed = {name for name in committed if committed[name] != before.get(name)}
        assert changed == {"One.cs", "Three.cs", "User.cs"}
        place = offset_of(root / "Three.cs", "Four")
        assert "Extract base class..." in [a["title"] for a in await agent.actions("Three.cs", place)]
        # Somebody else replaces a file: the view that the server has by now is a fresh one of the disk.
        (root / "incoming").write_text(ONE.replace("Made", "Other"), encoding="utf-8")
        (root / "incoming").replace(root / "One.cs")
        assert (await agent.refused_listing("One.cs", 0))["code"] == "SnapshotMismatch"
        await agent.do("workspace-status")
        listing = await agent.actions("One.cs", offset_of(root / "One.cs", "Other"))
        assert any("'Other'" in str(action["title"]) for action in listing)
    assert list(private.iterdir()) == []
