"""Opening on real servers: what is there is counted and answered for at once, what is not is said with its reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from tests.real.conftest import CopySample, RealServer
from tests.real.mcp_agent import Agent, Json, bridge_process, offset_of
from tests.real.small import PROJECT, errors, options, small_solution, titles

TWO_TYPES = "namespace Small;\n\npublic class First\n{\n}\n\npublic class Second\n{\n}\n"
TWO = {"Two.cs": TWO_TYPES}


def messages(data: Json, identity: str) -> list[str]:
    """What a load said under one id."""
    return [str(d["message"]) for d in cast("list[Json]", data["loadDiagnostics"]) if d["id"] == identity]


async def close(agent: Agent, opened: Json) -> None:
    workspace = cast("Json", opened["workspace"])
    await agent.do("workspace-close", workspace={"workspaceId": workspace["workspaceId"]})


# --- what is there ------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_solution_filter_and_project_open_with_true_counts_and_the_first_question_is_answered_in_full(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    program = two_projects / "src/App/Program.cs"
    place = offset_of(program, "class Program") + 6
    only_library = two_projects / "Only.slnf"
    kept = {"solution": {"path": "TwoProjects.sln", "projects": ["src\\Library\\Library.csproj"]}}
    only_library.write_text(json.dumps(kept))
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        folder = await agent.refused("workspace-open", path=str(two_projects))
        assert folder["code"] == "WorkspacePathAmbiguous"
        assert "TwoProjects.sln, TwoProjects.slnx" in str(folder["message"])
        only_library.unlink()

        solution = await agent.do("workspace-open", path=str(two_projects / "TwoProjects.sln"))
        assert (solution["projectCount"], solution["documentCount"], errors(solution)) == (3, 21, [])
        first = titles(await agent.actions("src/App/Program.cs", place))
        assert first, "the first question after the open is answered"
        assert titles(await agent.actions("src/App/Program.cs", place)) == first
        await close(agent, solution)

        project = await agent.do("workspace-open", path=str(program.parent), workspaceRoot=str(two_projects))
        assert (project["projectCount"], project["documentCount"], errors(project)) == (2, 18, [])
        assert titles(await agent.actions("src/App/Program.cs", place)) == first
        await close(agent, project)

        only_library.write_text(json.dumps(kept))
        filtered = await agent.do("workspace-open", path=str(only_library))
        assert (filtered["projectCount"], filtered["documentCount"], errors(filtered)) == (1, 15, [])
        shapes = offset_of(two_projects / "src/Library/Shapes.cs", "class ") + 6
        assert "Move type to Shape.cs" in titles(await agent.actions("src/Library/Shapes.cs", shapes))
        unknown = await agent.refused_listing("src/App/Program.cs", 0)
        assert unknown["code"] == "DocumentNotFound"


@pytest.mark.anyio
async def test_the_bakery_with_its_odd_names_is_opened_whole(
    real_server: RealServer, sample: CopySample, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    bakery = sample("bakery")
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        data = await agent.do("workspace-open", path=str(bakery))
        assert (data["projectCount"], data["documentCount"], errors(data)) == (3, 19, [])
        for path in ("src/Bakery.Core/With Space/Jam Jar.cs", "src/Bakery.Core/Recipes/Café.cs"):
            start = offset_of(bakery / path, "class ") + 6
            assert "Extract base class..." in titles(await agent.actions(path, start)), path


@pytest.mark.anyio
async def test_a_multi_target_solution_counts_a_project_for_each_framework(
    real_server: RealServer, sample: CopySample, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    folder = sample("MultiTarget")
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        data = await agent.do("workspace-open", path=str(folder))
        assert (data["projectCount"], data["documentCount"], errors(data)) == (3, 6, [])
        told = [d for d in cast("list[Json]", data["loadDiagnostics"]) if d["severity"] == "Warning"]
        if real_server.kind == "csharp-ls":
            (warning,) = told
            assert "Core.csproj (net10.0, netstandard2.0)" in str(warning["message"])
        else:
            assert told == []
        program = offset_of(folder / "Consumer/Program.cs", "System")
        assert "Remove unnecessary usings" not in titles(await agent.actions("Consumer/Program.cs", program))


@pytest.mark.anyio
async def test_odd_letters_in_folder_names_neither_hide_files_nor_move_edits(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "with space" / "Ünï çödé 漢" / "C# 100% #1 [x] & co", TWO, "Smäll Ö")
    (solution.parent / "x%20y.cs").write_text(TWO_TYPES.replace("First", "Third").replace("Second", "Fourth"))
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        data = await agent.do("workspace-open", path=str(solution.parent))
        assert (data["projectCount"], data["documentCount"], errors(data)) == (1, 2, [])
        if real_server.kind == "csharp-ls":  # it decodes paths twice, and so cannot be asked about this file
            unseen = await agent.refused_listing("x%20y.cs", TWO_TYPES.index("First"))
            assert unseen["code"] == "CodeActionsUnavailable"
        else:
            third = titles(await agent.actions("x%20y.cs", TWO_TYPES.index("First")))
            assert "Move type to Third.cs" in third
        await agent.do("transaction-start")
        await agent.stage("Two.cs", offset_of(solution.parent / "Two.cs", "First"), "Move type to First.cs")
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    assert sorted(path.name for path in solution.parent.glob("*.cs")) == [
        "First.cs",
        "Two.cs",
        "x%20y.cs",
    ]
    assert "class First" in (solution.parent / "First.cs").read_text()
    assert "class First" not in (solution.parent / "Two.cs").read_text()


@pytest.mark.anyio
async def test_a_folder_that_msbuild_takes_for_another_is_refused_instead_of_opened_empty(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "a%20b", TWO)
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        error = await agent.refused("workspace-open", path=str(solution))
        assert error["code"] == "WorkspaceLoadFailed"
        assert "'%20'" in str(error["message"])


# --- what is not --------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_projects_that_failed_are_named_and_the_healthy_ones_answer(
    real_server: RealServer, sample: CopySample, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    broken = sample("Broken")
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        data = await agent.do("workspace-open", path=str(broken))
        assert (data["projectCount"], data["documentCount"]) == (5, 5)
        (failed,) = messages(data, "WorkspaceProjectLoadFailed")
        assert "InvalidXml.csproj" in failed
        assert "MSB4025" in failed
        (restore,) = messages(data, "WorkspaceRestoreFailed")
        assert "No.Such.Package.In.The.Feed" in restore
        said = "\n".join(messages(data, "LanguageServerLoadMessage"))
        assert "InvalidXml.csproj" in said
        assert "DoesNotExist.csproj" in said
        status = await agent.do("workspace-status", detail="Full")
        assert status["loadDiagnostics"] == data["loadDiagnostics"]

        fix = offset_of(broken / "SemanticErrors/Errors.cs", "List<int>")
        assert "using System.Collections.Generic;" in titles(
            await agent.actions("SemanticErrors/Errors.cs", fix)
        )
        healthy = offset_of(broken / "Healthy/Fine.cs", "number")
        assert titles(await agent.actions("Healthy/Fine.cs", healthy))
        orphan = await agent.refused_listing("InvalidXml/Orphan.cs", 0)
        assert orphan["code"] == "DocumentNotFound"


@pytest.mark.anyio
async def test_a_missing_restore_is_done_and_said_or_only_said(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "packages", TWO)
    package = (
        '<ItemGroup><PackageReference Include="Newtonsoft.Json" Version="13.0.4" /></ItemGroup>\n</Project>'
    )
    (solution.with_suffix(".csproj")).write_text(PROJECT.replace("</Project>", package))
    uses = "using Newtonsoft.Json;\n\nclass Uses { string Text() => JsonConvert.SerializeObject(1); }\n"
    (solution.parent / "Uses.cs").write_text(uses)
    place = uses.index("JsonConvert")

    async with bridge_process(toolchain, options(real_server, tmp_path, "--restore", "never")) as agent:
        data = await agent.do("workspace-open", path=str(solution))
        (needed,) = messages(data, "WorkspaceRestoreNeeded")
        assert "Small.csproj" in needed
        assert not (solution.parent / "obj/project.assets.json").exists()
        offered = titles(await agent.actions("Uses.cs", place))
        assert any("Generate class 'JsonConvert'" in title for title in offered), offered
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        data = await agent.do("workspace-open", path=str(solution))
        (restored,) = messages(data, "WorkspaceRestored")
        assert "Small.slnx" in restored
        assert errors(data) == []
        offered = titles(await agent.actions("Uses.cs", place))
        assert not any("Generate class" in title for title in offered), "the package is seen"


@pytest.mark.anyio
async def test_paths_that_cannot_be_opened_are_refused_by_name_and_the_process_goes_on(
    toolchain: Mapping[str, str], roslyn_dll: Path, tmp_path: Path
) -> None:
    server = RealServer("roslyn", roslyn_dll)
    text = tmp_path / "notes.txt"
    text.write_text("no solution")
    basic = tmp_path / "Old.vbproj"
    basic.write_text("<Project />")
    garbage = tmp_path / "Garbage.sln"
    garbage.write_text("this is no solution file")
    empty = tmp_path / "empty"
    empty.mkdir()
    mixed = tmp_path / "Mixed.slnx"
    mixed.write_text('<Solution><Project Path="Old.vbproj" /></Solution>')
    gone = tmp_path / "Gone.slnx"
    gone.write_text('<Solution><Project Path="no/such/App.csproj" /></Solution>')
    expected = {
        tmp_path / "no" / "such.sln": ("WorkspacePathInvalid", str(tmp_path)),
        text: ("WorkspacePathInvalid", "notes.txt"),
        empty: ("WorkspacePathInvalid", "empty"),
        basic: ("WorkspaceNotSupported", "Old.vbproj"),
        mixed: ("WorkspaceNotSupported", "Old.vbproj"),
        garbage: ("WorkspaceLoadFailed", "header"),
        gone: ("WorkspaceLoadFailed", "App.csproj"),
        Path("relative.sln"): ("WorkspacePathInvalid", "absolute"),
    }
    async with bridge_process(toolchain, options(server, tmp_path)) as agent:
        for path, (code, word) in expected.items():
            error = await agent.refused("workspace-open", path=str(path))
            assert (error["code"], word in str(error["message"])) == (code, True), error
        assert (await agent.do("workspace-list"))["workspaces"] == []


@pytest.mark.anyio
async def test_a_missing_sdk_and_a_missing_pinned_sdk_are_told_from_each_other(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "pinned", TWO)
    without = {name: value for name, value in toolchain.items() if not name.startswith("DOTNET_ROOT")}
    without["PATH"] = str(tmp_path)
    async with bridge_process(without, options(real_server, tmp_path)) as agent:
        error = await agent.refused("workspace-open", path=str(solution))
        assert error["code"] == "DotnetSdkNotFound"
        assert "SDK" in str(error["message"])

    pin = {"sdk": {"version": "9.9.999", "rollForward": "disable"}}
    (solution.parent / "global.json").write_text(json.dumps(pin))
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        error = await agent.refused("workspace-open", path=str(solution))
        assert error["code"] == "DotnetSdkNotFound"
        assert "9.9.999" in str(error["message"]), "the wanted version is named"
        assert "10.0." in str(error["message"]), "and what there is"
        (solution.parent / "global.json").unlink()
        assert (await agent.do("workspace-open", path=str(solution)))["projectCount"] == 1


@pytest.mark.anyio
async def test_no_server_at_all_is_said_with_the_way_to_get_one(
    toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "small", TWO)
    bare = {
        **toolchain,
        "HOME": str(tmp_path / "home"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "DOTNET_CLI_HOME": str(tmp_path / "cli"),
        "PATH": str(Path(toolchain["DOTNET_ROOT"])),
    }
    state = ("--state-directory", str(tmp_path / "state"))
    async with bridge_process(bare, ["--server", "roslyn", *state]) as agent:
        error = await agent.refused("workspace-open", path=str(solution))
        assert error["code"] == "LanguageServerNotFound"
        assert "dotnet tool install --global roslyn-language-server --prerelease" in str(error["message"])
    async with bridge_process(bare, ["--server", "csharp-ls", *state]) as agent:
        error = await agent.refused("workspace-open", path=str(solution))
        assert error["code"] == "LanguageServerNotFound"
        assert "csharp-ls" in str(error["message"])


@pytest.mark.anyio
async def test_the_last_words_of_a_server_that_dies_at_its_start_reach_the_caller_scrubbed_and_bounded(
    toolchain: Mapping[str, str], csharp_ls_dll: Path, tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "small", TWO)
    loud = tmp_path / "csharp-ls"
    loud.write_text(
        "#!/bin/sh\n"
        'i=0\nwhile [ $i -lt 500 ]; do echo "noise $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" >&2; i=$((i+1)); done\n'
        "printf 'Fatal: the \\033[31mflux\\033[0m is broken\\000\\n' >&2\nexit 7\n"
    )
    loud.chmod(0o755)
    async with bridge_process(toolchain, options(RealServer("csharp-ls", loud), tmp_path)) as agent:
        error = await agent.refused("workspace-open", path=str(solution))
        assert error["code"] == "LanguageServerFailed"
        message = str(error["message"])
        assert "flux" in message
        assert "\x1b" not in message
        assert "\x00" not in message
        assert len(message) < 3000

    # A program for another runtime: the words of the .NET host itself.
    runtime = csharp_ls_dll.with_suffix(".runtimeconfig.json")
    other = tmp_path / "other"
    other.mkdir()
    (other / csharp_ls_dll.name).write_bytes(csharp_ls_dll.read_bytes())
    settings = json.loads(runtime.read_text())
    settings["runtimeOptions"]["framework"] = {"name": "Microsoft.NETCore.App", "version": "99.0.0"}
    settings["runtimeOptions"].pop("frameworks", None)
    (other / runtime.name).write_text(json.dumps(settings))
    server = RealServer("csharp-ls", other / csharp_ls_dll.name)
    async with bridge_process(toolchain, options(server, tmp_path)) as agent:
        error = await agent.refused("workspace-open", path=str(solution))
        assert error["code"] == "DotnetSdkNotFound"
        assert "99.0.0" in str(error["message"])
