"""Errors that staging makes and mends, and the gate before a commit, as both real servers judge them.

Two projects, one of which uses the other: what breaks in the dependant is found by the gate, and by a preview once the
dependant's document has changed too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from tests.real.conftest import RealServer
from tests.real.mcp_agent import Agent, Json, bridge_process
from tests.real.small import PROJECT, options

CRATE, USE = "Wares/Crate.cs", "Shop/Use.cs"

CRATE_TEXT = """using System;

namespace Wares
{
    public class Crate
    {
        private readonly int size;
        private readonly string label;
    }

    public class Note
    {
        private StringBuilder text;
    }
}
"""

USE_TEXT = """namespace Shop
{
    public static class Use
    {
        public static Wares.Crate Empty() => new Wares.Crate();
    }
}
"""

FIELDS = (
    CRATE_TEXT.index("private readonly int"),
    len("private readonly int size;\n        private readonly string label;"),
)


def shop(folder: Path) -> Path:
    """The solution; ``Shop`` references ``Wares``."""
    reference = '  <ItemGroup><ProjectReference Include="../Wares/Wares.csproj" /></ItemGroup>\n</Project>'
    files = {
        "Wares/Wares.csproj": PROJECT,
        CRATE: CRATE_TEXT,
        "Shop/Shop.csproj": PROJECT.replace("</Project>", reference),
        USE: USE_TEXT,
        "All.slnx": '<Solution>\n  <Project Path="Wares/Wares.csproj" />\n  <Project Path="Shop/Shop.csproj" />\n</Solution>\n',
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "All.slnx"


async def errors(agent: Agent) -> tuple[list[tuple[str, str, int]], list[tuple[str, str, int]], object]:
    """New and fixed errors of the preview, and its doubt."""
    change = cast("Json", (await agent.do("transaction-preview"))["diagnosticsChange"])

    def listed(member: str) -> list[tuple[str, str, int]]:
        items = cast("list[Json]", cast("Json", change[member])["items"])
        return [(str(e["id"]), str(e["path"]), cast("int", e["line"])) for e in items]

    return listed("newErrors"), listed("fixedErrors"), change.get("unreliable")


@pytest.mark.anyio
async def test_a_preview_tells_what_became_of_errors_and_the_gate_looks_at_dependants(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    solution = shop(tmp_path / "shop")
    folder = solution.parent
    gate = ("--commit-validation", "no-new-compiler-errors")
    async with bridge_process(toolchain, options(real_server, tmp_path, *gate)) as agent:
        await agent.do("workspace-open", path=str(solution))

        # An error that was there moves down, which is none of our doing; the gate compares with the disk and agrees.
        await agent.do("transaction-start")
        await agent.stage(CRATE, CRATE_TEXT.index("Crate"), "Add 'DebuggerDisplay' attribute")
        assert await errors(agent) == ([], [], None)
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)

        # A fix: one error less.
        text = (folder / CRATE).read_text()
        place = text.index("StringBuilder")
        fixed_error = ("CS0246", CRATE, text.count("\n", 0, place) + 1)
        await agent.do("transaction-start")
        await agent.stage(CRATE, place, "using System.Text;")
        assert await errors(agent) == ([], [fixed_error], None)
        await agent.do("transaction-history", direction="Undo", expectedSnapshot=agent.snapshot)
        assert await errors(agent) == ([], [], None)
        await agent.do("transaction-history", direction="Redo", expectedSnapshot=agent.snapshot)
        assert await errors(agent) == ([], [fixed_error], None)
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
        text = (folder / CRATE).read_text()
        assert "using System.Text;" in text

        # A constructor that its user does not know: the changed document is fine, its dependant is not.
        await agent.do("transaction-start")
        start = text.index("private readonly int")
        await agent.stage(CRATE, start, "Generate constructor 'Crate(", FIELDS[1])
        assert await errors(agent) == ([], [], None)
        refusal = await agent.refused("transaction-commit", expectedSnapshot=agent.snapshot)
        assert refusal["code"] == "NewCompilerErrors"
        found = [(d["id"], d["path"], d["line"]) for d in cast("list[Json]", refusal["diagnostics"])]
        assert found == [("CS7036", USE, 5)]
        assert (folder / CRATE).read_text() == text

        # The dependant changes as well: its baseline is the disk, not the state that the first revision left.
        await agent.stage(USE, USE_TEXT.index("Empty"), "Replace 'Empty' with property")
        new, fixed, doubt = await errors(agent)
        assert ([(code, path) for code, path, _ in new], fixed, doubt) == ([("CS7036", USE)], [], None)
        await agent.do("transaction-rollback")

        # A new file: csharp-ls compiles it, Microsoft's server not before it finds it in its folder, and that is said.
        await agent.do("transaction-start")
        await agent.stage(CRATE, text.index("Note"), "Move type to Note.cs")
        new, fixed, doubt = await errors(agent)
        assert (new, fixed) == ([], [])
        # For the baseline of one more document the new file goes, and comes back.
        await agent.stage(USE, USE_TEXT.index("Empty"), "Replace 'Empty' with property")
        assert await errors(agent) == ([], [], doubt)
        answer = await agent.ask("transaction-commit", expectedSnapshot=agent.snapshot)
        if real_server.kind == "roslyn" and agent.view == "text":
            assert "Wares/Note.cs" in str(doubt)
            assert cast("Json", answer["error"])["code"] == "CompilerValidationIncomplete"
        else:
            assert doubt is None
            assert cast("Json", answer["data"])["committed"] is True
