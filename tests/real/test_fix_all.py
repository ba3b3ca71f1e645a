"""Fix-all of unused usings on both real servers: the server's own, and the bridge's for one that has none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from tests.real.conftest import RealServer, run_dotnet
from tests.real.mcp_agent import Agent, Json, bridge_process, tree_of
from tests.real.small import PROJECT, options

TITLE = "Remove unnecessary usings"
UNUSED = "using System.Net.Http;\nusing System.Xml;\n"
FILES = ("Core/One.cs", "Core/Two.cs", "App/Three.cs", "App/Four.cs")
IN_SCOPE = {"Document": FILES[:1], "Project": FILES[:2], "Solution": FILES[:3]}
CLEAN = FILES[3]
"""It has nothing to mend."""


def two_projects_with_unused_usings(folder: Path) -> Path:
    """``App`` references ``Core``; all files but the last have two usings too many and one that is used."""
    reference = '<ItemGroup><ProjectReference Include="../Core/Core.csproj" /></ItemGroup>\n</Project>'
    for name, project in (("Core", PROJECT), ("App", PROJECT.replace("</Project>", reference))):
        (folder / name).mkdir(parents=True)
        (folder / name / f"{name}.csproj").write_text(project)
    for number, file in enumerate(FILES):
        unused = "" if file == CLEAN else UNUSED
        used = "using System;\n\n"
        body = f"public class C{number} {{ public Type Kind => typeof(string); }}\n"
        (folder / file).write_text(f"{unused}{used}{body}")
    paths = "".join(f'  <Project Path="{name}/{name}.csproj" />\n' for name in ("Core", "App"))
    solution = folder / "Shop.slnx"
    solution.write_text(f"<Solution>\n{paths}</Solution>\n")
    return solution


async def prepared_for(agent: Agent, scope: str) -> Json:
    """The fix of the first file's unused usings for a scope."""
    offered = await agent.actions(FILES[0], 0, kinds="CodeFixes")
    (fix,) = [action for action in offered if action["title"] == TITLE]
    assert fix["fixAllScopes"] == ["Document", "Project", "Solution"]
    assert not any("Suppress" in str(a["title"]) and "fixAllScopes" in a for a in offered)
    return await agent.do(
        "prepare-fix-all", actionId=fix["actionId"], scope=scope, expectedSnapshot=agent.snapshot
    )


@pytest.mark.anyio
async def test_unused_usings_are_removed_from_every_scope_and_the_result_builds(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = two_projects_with_unused_usings(tmp_path / "shop")
    root = solution.parent
    before = tree_of(root)
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(solution), workspaceRoot=str(root))
        await agent.do("transaction-start")
        for scope, files in IN_SCOPE.items():
            prepared = await prepared_for(agent, scope)
            affected = cast("Json", prepared["affectedDocuments"])
            documents = cast("list[Json]", affected["items"])
            assert sorted(str(document["path"]) for document in documents) == sorted(files)
            assert affected["totalCount"] == len(files)
            assert prepared.get("emulated") == (True if real_server.kind == "csharp-ls" else None)
            # Roslyn reports two usings that stand together as one finding, csharp-ls each by itself.
            each = 2 if real_server.kind == "csharp-ls" else 1
            counts = prepared["affectedDiagnosticCount"], prepared["remainingDiagnosticCount"]
            assert counts == (each * len(files), 0), prepared
            action = {"actionId": prepared["actionId"], "expectedSnapshot": agent.snapshot}
            staged = await agent.do("stage-code-action", **action)
            assert staged["staged"]
            preview = await agent.do("transaction-preview", document={"path": files[-1]}, includeDiff=True)
            changed = cast("list[Json]", preview["documents"])
            assert sorted(str(cast("Json", c["document"])["path"]) for c in changed) == sorted(files)
            assert await agent.diff_lines(files[-1]) == [
                *(f"-{line}" for line in UNUSED.splitlines()),
                " using System;",
                " ",
                f" public class C{FILES.index(files[-1])} {{ public Type Kind => typeof(string); }}",
            ]
            if scope != "Solution":
                await agent.do("transaction-history", direction="Undo", expectedSnapshot=agent.snapshot)
        assert tree_of(root) == before, "nothing is written before the commit"
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    after = tree_of(root)
    assert {name for name in before if before[name] != after[name]} == set(IN_SCOPE["Solution"])
    assert all(UNUSED not in (root / file).read_text() for file in FILES)
    run_dotnet(toolchain, root, "build", solution.name, "--no-restore", "-warnaserror")
