"""What a listing says of its actions is true on real servers: kinds, diagnostics, filters, menus, scopes, places."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from tests.real.conftest import CopySample, RealServer
from tests.real.mcp_agent import Agent, Json, bridge_process, offset_of
from tests.real.small import options, small_solution, titles

ERRORS = """using System.Text;

namespace Small;

public class Rectangle
{
    private readonly List<int> _sides = new();

    public int Sum()
    {
        return Compute(_sides);
    }
}
"""


def by_title(listing: Json) -> dict[str, Json]:
    return {str(action["title"]): action for action in items(listing)}


def items(listing: Json) -> list[Json]:
    return cast("list[Json]", cast("Json", listing["actions"])["items"])


def ids_of(action: Json) -> list[str] | None:
    """The diagnostics an action says it belongs to; ``None`` when it says nothing."""
    if action.get("diagnostics") is None:
        return None
    page = cast("Json", action["diagnostics"])
    return [str(item["id"]) for item in cast("list[Json]", page["items"])]


@pytest.mark.anyio
async def test_kinds_diagnostics_menus_and_scopes_are_true(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = small_solution(tmp_path / "small", {"Errors.cs": ERRORS})
    add_using = "using System.Collections.Generic;"
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(solution))
        unknown_type = ERRORS.index("List<int>") + 1
        everything = await agent.listing("Errors.cs", unknown_type)
        found = by_title(everything)
        assert found[add_using]["kind"] == "CodeFix"
        assert ids_of(found[add_using]) == ["CS0246"]
        location = cast("Json", found[add_using]["location"])
        assert location["span"] == {"start": ERRORS.index("List<int>"), "length": len("List<int>")}
        assert (location["line"], location["column"]) == (6, 21)
        assert found["Encapsulate field: '_sides' (and use property)"]["kind"] == "Refactoring"

        fixes = await agent.listing("Errors.cs", unknown_type, kinds="CodeFixes")
        refactorings = await agent.listing("Errors.cs", unknown_type, kinds="Refactorings")
        assert {a["kind"] for a in items(fixes)} == {"CodeFix"}
        assert {a["kind"] for a in items(refactorings)} == {"Refactoring"}
        assert len(items(fixes)) + len(items(refactorings)) == len(items(everything))
        assert (fixes.get("undecided"), refactorings.get("undecided")) == (None, None)

        matching = await agent.listing("Errors.cs", unknown_type, kinds="CodeFixes", diagnosticIds=["CS0246"])
        other = await agent.listing("Errors.cs", unknown_type, kinds="CodeFixes", diagnosticIds=["CS9999"])
        assert add_using in by_title(matching)
        assert add_using not in by_title(other)
        assert all(ids_of(action) is None for action in items(other)), "only what is not known may stay"
        assert bool(other.get("undecided")) == bool(items(other)), "and what stays is said to be undecided"

        unknown_name = by_title(await agent.listing("Errors.cs", ERRORS.index("Compute(") + 1))
        assert ids_of(unknown_name["Generate method 'Compute'"]) == ["CS0103"]
        usings = await agent.listing("Errors.cs", 1)
        unused = by_title(usings)["Remove unnecessary usings"]
        assert unused["kind"] == "CodeFix"
        assert not [title for title in titles(items(usings)) if title.startswith("Fix All")]
        assert unused["fixAllScopes"] == ["Document", "Project", "Solution"]
        if real_server.kind == "roslyn":
            nested = found["Generate class 'List' in new file"]
            assert nested["titlePath"] == ["Generate type 'List'", "Generate class 'List' in new file"]
            assert not any(action.get("kindInferred") for action in items(everything))
            whole = by_title(await agent.listing("Errors.cs", 0, len(ERRORS)))
            assert whole[add_using]["location"] == location, "not the whole document"
        else:
            assert ids_of(unused) == ["CS8019"]
            assert found["Encapsulate field: '_sides' (and use property)"]["kindInferred"] is True
            # Over two different errors it cannot be told which of them a fix is for, and that is said.
            both = await agent.listing(
                "Errors.cs", 0, len(ERRORS), kinds="CodeFixes", diagnosticIds=["CS0246"]
            )
            assert "diagnostics" in str(both["undecided"])


@pytest.mark.anyio
async def test_a_file_of_several_projects_is_answered_for_the_named_one_or_said_to_be_out_of_reach(
    real_server: RealServer, sample: CopySample, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    folder = sample("MultiTarget")
    modern = offset_of(folder / "Linked.cs", 'return $"{name}') + 8
    old = offset_of(folder / "Linked.cs", "return name +") + 8

    async def offered(agent: Agent, start: int, project: Json, path: str = "Linked.cs") -> Json:
        return await agent.ask(
            "list-code-actions",
            document={"path": path, "project": project},
            range={"start": start, "length": 0},
            expectedSnapshot=agent.snapshot,
            kinds="All",
            limit=200,
        )

    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(folder))
        assert (await agent.refused_listing("Linked.cs", modern))["code"] == "DocumentAmbiguous"
        ten: Json = {"name": "Core", "targetFramework": "net10.0"}
        standard: Json = {"name": "Core", "targetFramework": "netstandard2.0"}
        if real_server.kind == "csharp-ls":
            # It loads net10.0 of Core, and has no single document for what Consumer compiles as well.
            for path, project, code in (
                ("Linked.cs", ten, "DocumentInSeveralProjects"),
                ("Linked.cs", standard, "CodeActionsUnavailable"),
                ("Core/Clock.cs", standard, "CodeActionsUnavailable"),
            ):
                answer = await offered(agent, modern, project, path)
                assert not answer["ok"], "an empty or another framework's list would be no answer"
                assert cast("Json", answer["error"])["code"] == code
            clock = offset_of(folder / "Core/Clock.cs", "class Clock") + 6
            answer = await offered(agent, clock, ten, "Core/Clock.cs")
            assert "Extract interface..." in by_title(cast("Json", answer["data"]))
            return
        in_ten = by_title(cast("Json", (await offered(agent, modern, ten))["data"]))
        in_standard = by_title(cast("Json", (await offered(agent, modern, standard))["data"]))
        assert "Convert to raw string" in in_ten
        assert "Convert to raw string" not in in_standard, "there the line is not compiled"
        assert "Convert to interpolated string" not in by_title(
            cast("Json", (await offered(agent, old, ten))["data"])
        )
        await agent.do("transaction-start")
        answer = await offered(agent, old, standard)
        convert = by_title(cast("Json", answer["data"]))["Convert to interpolated string"]
        await agent.do("stage-code-action", actionId=convert["actionId"], expectedSnapshot=agent.snapshot)
        assert any(line.startswith("+") and '$"{name}' in line for line in await linked_diff(agent, standard))


async def linked_diff(agent: Agent, project: Json) -> list[str]:
    """The staged lines of the linked file, asked for in one of its projects."""
    preview = await agent.do(
        "transaction-preview", document={"path": "Linked.cs", "project": project}, includeDiff=True
    )
    hunks = cast("list[Json]", cast("Json", preview["diff"])["hunks"])
    return [line for hunk in hunks for line in cast("list[str]", hunk["lines"])]


@pytest.mark.anyio
async def test_a_linked_file_of_two_projects_gives_no_false_nothing(
    real_server: RealServer, two_projects: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    """And in the same process: places on the first line of a file with a mark stay where they are."""
    info = two_projects / "shared/BuildInfo.cs"
    bom = "src/Library/Encodings/BomFile.cs"
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(two_projects / "TwoProjects.slnx"))
        answer = await agent.ask(
            "list-code-actions",
            document={"path": "shared/BuildInfo.cs", "project": {"name": "App"}},
            range={"start": offset_of(info, "string.Format") + 8, "length": 0},
            expectedSnapshot=agent.snapshot,
            kinds="All",
            limit=200,
        )
        if real_server.kind == "csharp-ls":
            assert cast("Json", answer["error"])["code"] == "DocumentInSeveralProjects"
        else:
            assert "Convert to interpolated string" in by_title(cast("Json", answer["data"]))

        await agent.do("transaction-start")
        word = offset_of(two_projects / bom, "Word()")
        first = titles(await agent.actions(bom, 1))
        assert "Remove unnecessary usings" in first
        members = titles(await agent.actions(bom, word))
        for _ in range(2):
            await agent.stage(bom, 1, "Remove unnecessary usings")
            lines = await agent.diff_lines(bom)
            removed = {line for line in lines if line.startswith("-")}
            assert removed == {"-using System;", "-using System.Text;", "-"}, lines
            await agent.do("transaction-history", direction="Undo", expectedSnapshot=agent.snapshot)
            assert titles(await agent.actions(bom, 1)) == first, "a close would shift this line by one"
            assert titles(await agent.actions(bom, word)) == members
        await agent.do("transaction-rollback")
        assert titles(await agent.actions(bom, 1)) == first


@pytest.mark.anyio
async def test_after_a_project_file_changed_on_disk_later_stages_land_in_the_right_place(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    text = (
        "namespace Small;\n\npublic class First\n{\n    private int _one;\n}\n\npublic class Second\n{\n}\n"
    )
    solution = small_solution(tmp_path / "small", {"Two.cs": text})
    project = solution.with_suffix(".csproj")
    attribute = "Add 'DebuggerDisplay' attribute"
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(solution))
        await agent.do("transaction-start")
        await agent.stage("Two.cs", text.index("First"), attribute)
        await agent.do(
            "transaction-rollback"
        )  # the document stays open in csharp-ls, with the text of the disk
        epoch = cast("int", agent.snapshot["workspaceEpoch"])

        project.write_text(project.read_text().replace("<ImplicitUsings>disable", "<ImplicitUsings>enable"))
        (project.parent / "Third.cs").write_text("namespace Small;\n\npublic class Third\n{\n}\n")
        await agent.do("transaction-start")
        assert agent.snapshot["workspaceEpoch"] == epoch + 1
        status = await agent.do("workspace-status")
        assert status["documentCount"] == 2

        await agent.stage("Two.cs", text.index("First"), attribute)
        second = (await current_text(agent, "Two.cs", text)).index("Second")
        await agent.stage("Two.cs", second, attribute)
        await agent.stage("Third.cs", len("namespace Small;\n\npublic class "), attribute)
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    written = (project.parent / "Two.cs").read_text()
    mark = '[DebuggerDisplay($"{{{nameof(GetDebuggerDisplay)}(),nq}}")]\n'
    assert f"{mark}public class First\n" in written
    assert f"{mark}public class Second\n" in written
    assert mark in (project.parent / "Third.cs").read_text()


async def current_text(agent: Agent, path: str, before: str) -> str:
    """The staged text of a document whose diff is one hunk with all of its lines."""
    preview = await agent.do("transaction-preview", document={"path": path}, includeDiff=True)
    lines = before.splitlines()
    for hunk in reversed(cast("list[Json]", cast("Json", preview["diff"])["hunks"])):
        start = cast("int", hunk["originalStartLine"]) - 1
        count = cast("int", hunk["originalLineCount"])
        kept = [line[1:] for line in cast("list[str]", hunk["lines"]) if not line.startswith("-")]
        lines[start : start + count] = kept
    return "\n".join(lines) + "\n"


@pytest.mark.anyio
async def test_right_after_a_commit_that_created_a_file_another_file_is_answered_with_the_new_type(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    user = "namespace Small;\n\npublic class User\n{\n    public int Ask(Service service) => service.Count();\n}\n"
    solution = small_solution(tmp_path / "small", {"User.cs": user})
    unknown = user.index("Service service")
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(solution))
        await agent.do("transaction-start")
        offered = await agent.actions("User.cs", unknown)
        create = next(a for a in offered if str(a["title"]).endswith("Generate class 'Service' in new file"))
        await agent.do("stage-code-action", actionId=create["actionId"], expectedSnapshot=agent.snapshot)
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
        assert (solution.parent / "Service.cs").is_file()

        # Only a server that compiles the new file can offer to add a member to it, and no type any more.
        after = titles(await agent.actions("User.cs", user.index("Count()")))
        assert any("Generate method 'Count'" in title for title in after), after
        types = titles(await agent.actions("User.cs", unknown))
        assert not any("Generate class 'Service'" in title for title in types), types
        status = await agent.do("workspace-status")
        assert status["documentCount"] == 2
        await agent.do("transaction-start")
        await agent.stage("User.cs", user.index("Count()"), "Generate method 'Count'")
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    assert "int Count()" in (solution.parent / "Service.cs").read_text()


UNRESOLVABLE = """namespace Small;

public class Line
{
    private readonly string _name;
    private readonly Unknown _unknown;
}
"""


@pytest.mark.anyio
async def test_what_csharp_ls_lists_and_can_never_resolve_is_refused_and_nothing_is_lost(
    csharp_ls_dll: Path, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    """These need a dialog that the server has no service for; its answer is an internal error."""
    solution = small_solution(tmp_path / "small", {"Line.cs": UNRESOLVABLE})
    server = RealServer("csharp-ls", csharp_ls_dll)
    name, unknown = UNRESOLVABLE.index("Line"), UNRESOLVABLE.index("Unknown")
    async with bridge_process(toolchain, options(server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(solution))
        await agent.do("transaction-start")
        await agent.stage("Line.cs", name, "Add 'DebuggerDisplay' attribute")
        staged = await agent.do("transaction-preview", includePatch=True)
        shift = await shift_of(agent, "Line.cs", UNRESOLVABLE)
        before = agent.snapshot
        for place, title in (
            (name + shift, "Generate Equals(...)..."),
            (name + shift, "Generate Equals and GetHashCode..."),
            (name + shift, "Generate constructor from members..."),
            (unknown + shift, "Generate type 'Unknown' - Generate new type..."),
        ):
            offered = await agent.actions("Line.cs", place)
            action = next((a for a in offered if a["title"] == title), None)
            assert action is not None, f"{title!r} is not among {titles(offered)}"
            error = await agent.refused(
                "stage-code-action", actionId=action["actionId"], expectedSnapshot=agent.snapshot
            )
            assert error["code"] == "ActionUnavailable"
            assert title in str(error["message"])
        assert agent.snapshot == before
        assert await agent.do("transaction-preview", includePatch=True) == staged
        await agent.stage("Line.cs", unknown + shift, "Generate type 'Unknown' - Generate nested class")
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    assert "DebuggerDisplay" in (solution.parent / "Line.cs").read_text()


async def shift_of(agent: Agent, path: str, before: str) -> int:
    """By how much a staged change above the class has moved it."""
    now = await current_text(agent, path, before)
    return now.index("class Line") - before.index("class Line")
