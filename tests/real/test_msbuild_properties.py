"""MSBuild properties reach the evaluation of their own workspace, change its answers, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import psutil
import pytest

from tests.real.conftest import CopySample, RealServer
from tests.real.mcp_agent import Agent, Json, bridge_process, offset_of
from tests.real.small import options, small_solution, titles

CONDITIONAL = """namespace Small;

public class Conditional
{
#if DEBUG
    public OnlyInDebug First() => null;
#else
    public OnlyInRelease First() => null;
#endif
}
"""


async def generates(agent: Agent, alias: str, name: str) -> bool:
    """Whether a workspace takes ``name`` for a type that is missing; a line that is not compiled misses nothing."""
    listing = await agent.do(
        "list-code-actions",
        workspace={"alias": alias},
        document={"path": "Conditional.cs"},
        range={"start": CONDITIONAL.index(name), "length": 0},
        expectedSnapshot=agent.snapshot,
        kinds="All",
        limit=200,
    )
    found = titles(cast("list[Json]", cast("Json", listing["actions"])["items"]))
    return any(f"Generate class '{name}'" in title for title in found)


@pytest.mark.anyio
async def test_release_changes_the_answers_of_its_own_workspace_only(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    debug = small_solution(tmp_path / "debug", {"Conditional.cs": CONDITIONAL})
    release = small_solution(tmp_path / "release", {"Conditional.cs": CONDITIONAL})
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(debug), alias="debug")
        in_debug = agent.snapshot
        assert await generates(agent, "debug", "OnlyInDebug")
        assert not await generates(agent, "debug", "OnlyInRelease")

        data = await agent.do(
            "workspace-open",
            path=str(release),
            alias="release",
            msBuildProperties={"configuration": "Release"},
        )
        assert data["documentCount"] == 1
        assert await generates(agent, "release", "OnlyInRelease")
        assert not await generates(agent, "release", "OnlyInDebug")

        agent.snapshot = in_debug
        assert await generates(agent, "debug", "OnlyInDebug"), "the other workspace is as it was"
        assert not await generates(agent, "debug", "OnlyInRelease")
        assert await configurations(agent) == {"debug": None, "release": "Release"}

        reloaded = await agent.do("workspace-reload", workspace={"alias": "release"})
        assert reloaded["documentCount"] == 1
        assert await generates(agent, "release", "OnlyInRelease"), "the properties outlive a reload"


async def configurations(agent: Agent) -> dict[str, str | None]:
    """The property in the environment of each server process, by alias, and never in that of the bridge."""
    status = await agent.do("server-status", detail="Full")
    listed = cast("list[Json]", (await agent.do("workspace-list"))["workspaces"])
    aliases = {workspace["workspaceId"]: str(workspace["alias"]) for workspace in listed}
    found: dict[str, str | None] = {}
    for server in cast("list[Json]", status["languageServers"]):
        process = psutil.Process(cast("int", server["pid"]))
        found[aliases[server["workspaceId"]]] = process.environ().get("Configuration")
        for parent in process.parents():
            if "bridge" in parent.cmdline():
                assert "Configuration" not in parent.environ()
    return found


@pytest.mark.anyio
async def test_a_target_framework_changes_the_answers_or_is_refused(
    real_server: RealServer, sample: CopySample, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    folder = sample("MultiTarget")
    core = folder / "Core/Core.csproj"
    old = offset_of(folder / "Linked.cs", "return name +") + 8
    standard: Json = {"targetFramework": "netstandard2.0"}
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        wanted = await agent.ask(
            "workspace-open", path=str(core), workspaceRoot=str(folder), msBuildProperties=standard
        )
        if real_server.kind == "csharp-ls":
            error = cast("Json", wanted["error"])
            assert error["code"] == "WorkspaceMsBuildPropertiesInvalid"
            assert "netstandard2.0" in str(error["message"])
            # The one framework that it would choose itself is no promise either while the project names two.
            ten = await agent.refused(
                "workspace-open",
                path=str(core),
                workspaceRoot=str(folder),
                msBuildProperties={"targetFramework": "net10.0"},
            )
            assert ten["code"] == "WorkspaceMsBuildPropertiesInvalid"
            assert (await agent.do("workspace-list"))["workspaces"] == []
            return
        data = cast("Json", wanted["data"])
        assert (data["projectCount"], data["documentCount"]) == (1, 2), "one framework, so one project"
        assert "Convert to interpolated string" in titles(await agent.actions("Linked.cs", old))
        await agent.do("workspace-close")

        await agent.do(
            "workspace-open",
            path=str(core),
            workspaceRoot=str(folder),
            msBuildProperties={"targetFramework": "net10.0"},
        )
        assert "Convert to interpolated string" not in titles(await agent.actions("Linked.cs", old))


@pytest.mark.anyio
async def test_properties_of_the_wrong_shape_are_refused_before_anything_is_started(
    toolchain: Mapping[str, str], roslyn_dll: Path, tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "small", {"Conditional.cs": CONDITIONAL})
    async with bridge_process(toolchain, options(RealServer("roslyn", roslyn_dll), tmp_path)) as agent:
        for name, value in (
            ("configuration", "Release;DefineConstants=X"),
            ("configuration", ""),
            ("targetFramework", "$(Evil)"),
            ("artifactsPath", "relative/path"),
        ):
            error = await agent.refused("workspace-open", path=str(solution), msBuildProperties={name: value})
            assert error["code"] == "WorkspaceMsBuildPropertiesInvalid", (name, value)
            assert name in str(error["message"])
