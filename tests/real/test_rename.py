"""Renames on both real servers: what would change the meaning of code is refused, what would not is staged.

One solution, loaded once for each server; see ``rebinding.py`` for what is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from lsp_client.showing import LATER, NO_PLACE
from tests.bridge.promises import keeps
from tests.lsp_client.inside import views
from tests.real.conftest import RealServer, run_dotnet
from tests.real.mcp_agent import Agent, Json, bridge_process, offset_of, tree_of
from tests.real.new_files import renamed_before_the_commit
from tests.real.rebinding import HARMLESS, REBOUND, REWRITTEN, TAKEN_OVER, UNTOLD, Case
from tests.real.small import options, small_solution

__all__ = ["views"]  # a fixture, used by its name

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("no_dotnet_left")]

CASES: Mapping[str, Case] = {**REBOUND, **REWRITTEN, **UNTOLD, **TAKEN_OVER, **HARMLESS}
FILES: Mapping[str, str] = {label: f"F{number:02}.cs" for number, label in enumerate(CASES)}

DOTTED = "Dotted.cs"
DOTTED_TEXT = """namespace Dot.Ted
{
    public class Shelf
    {
        public int Width;
        public class Board { public int Thick; }
        public class Row<T> { public void Put<U>(T book, U[] more) { } }
    }
    namespace Deep.Down { public enum Level { Low } }
}
"""
SCOPED_TEXT = "namespace File.Scoped;\n\npublic class Lamp\n{\n    public void Lit() { }\n}\n"
DOTTED_IDS = (
    "T:Dot.Ted.Shelf",
    "F:Dot.Ted.Shelf.Width",
    "F:Dot.Ted.Shelf+Board.Thick",
    "T:Dot.Ted.Shelf.Row`1",
    "M:Dot.Ted.Shelf.Row`1.Put``1(`0,``0[])",
    "F:Dot.Ted.Deep.Down.Level.Low",
    "M:File.Scoped.Lamp.Lit",
)

MOVED_TEXT = """namespace Moved
{
    public class First { }
    public class Second { public First Other; }
}
"""

FIXED = "Fixed.cs"
FIXED_TEXT = """using System;

namespace Fixed
{
    public class Crate : IDisposable
    {
        public override string ToString() => "crate";
        public void Dispose() { }
        public void Put(int weight) { }
        public void Put(string label) { Console.WriteLine(label); }
        public static void Main() { using var crate = new Crate(); crate.Put(1); }
    }
}
"""


def place(path: str, text: str, index: int) -> Json:
    """A symbol by the place of a word."""
    start = len(text[:index].encode("utf-16-le")) // 2
    return {"location": {"span": {"document": {"path": path}, "range": {"start": start, "length": 0}}}}


async def tried(agent: Agent, symbol: Json, new_name: str, **more: object) -> Json:
    """The envelope of one rename; a staged one is undone again."""
    answer = await agent.ask(
        "rename-symbol", symbol=symbol, newName=new_name, expectedSnapshot=agent.snapshot, **more
    )
    if answer["ok"]:
        await agent.do("transaction-history", direction="Undo", expectedSnapshot=agent.snapshot)
    return answer


async def code(agent: Agent, word: str, new_name: str, number: int = 0, **more: object) -> object:
    """The code of a refused rename in ``Fixed.cs``, ``None`` for a staged one."""
    index = -1
    for _ in range(number + 1):
        index = FIXED_TEXT.index(word, index + 1)
    answer = await tried(agent, place(FIXED, FIXED_TEXT, index), new_name, **more)
    return None if answer["ok"] else cast("Json", answer["error"])["code"]


@keeps("rename.binding", "rename.kinds", "rename.options", "rename.new-files")
async def test_renames_that_would_change_the_meaning_are_refused_and_harmless_ones_are_not(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    """One long story, because each load costs seconds."""
    texts = {FILES[label]: case.text for label, case in CASES.items()}
    solution = small_solution(
        tmp_path / "small",
        {
            **texts,
            FIXED: FIXED_TEXT,
            DOTTED: DOTTED_TEXT,
            "Scoped.cs": SCOPED_TEXT,
            "Moved.cs": MOVED_TEXT,
        },
    )
    run_dotnet(toolchain, solution.parent, "restore", solution.name)
    before = tree_of(solution.parent)
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(solution))
        await agent.do("transaction-start")
        assert len(REBOUND) + len(REWRITTEN) >= 20
        await _each_is_judged(agent)
        await _fixed_names_stay(agent)
        await _dotted_namespaces(agent)
        await _overloads(agent, real_server)
        await _a_new_file(agent, real_server)
        assert tree_of(solution.parent) == before, "nothing is written by staging, refusing and undoing"
        await _committed(agent, solution, toolchain if real_server.kind == "csharp-ls" else None)


ONE = "namespace Small.Models;\n\npublic class One\n{\n    public object Made = new Two();\n}\n"
USER = "namespace Small.Models;\n\npublic class User\n{\n    public object Made = new Two();\n}\n"


@keeps("rename.new-files")
async def test_csharp_ls_renames_a_type_in_a_staged_new_file_where_it_has_a_view_of_its_own(
    csharp_ls_dll: Path, toolchain: Mapping[str, str], tmp_path: Path, views: None
) -> None:
    """Roslyn does so in ``test_server_view.py``, where it has been loaded already."""
    root = small_solution(tmp_path / "small", {"One.cs": ONE, "User.cs": USER}).parent
    run_dotnet(toolchain, root, "restore")
    server = RealServer("csharp-ls", csharp_ls_dll)
    gate = ("--commit-validation", "no-new-compiler-errors")
    before = tree_of(root)
    async with bridge_process(
        toolchain, options(server, tmp_path, "--server-view", "overlay", *gate)
    ) as agent:
        await agent.do("workspace-open", path=str(root / "Small.slnx"))
        await agent.do("transaction-start")
        generate = "Generate type 'Two' - Generate class 'Two' in new file"
        await agent.stage("One.cs", offset_of(root / "One.cs", "Two"), generate)
        await renamed_before_the_commit(agent, root)
        assert tree_of(root) == before
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    assert sorted(path.name for path in root.glob("*.cs")) == ["One.cs", "Three.cs", "User.cs"]
    assert [(root / name).read_text().count("Four") for name in ("One.cs", "Three.cs", "User.cs")] == [
        1,
        2,
        1,
    ]


async def _each_is_judged(agent: Agent) -> None:
    wrong = []
    for label, case in CASES.items():
        answer = await tried(agent, place(FILES[label], case.text, case.place), case.new_name)
        error = cast("Json", answer.get("error") or {"code": None, "message": ""})
        expected = None if label in HARMLESS else "RenameUnverified" if label in UNTOLD else "RenameConflict"
        said = "would mean" if label in REBOUND else "would be rewritten" if label in REWRITTEN else case.says
        # The stand-in for Microsoft's server renames no namespaces at all.
        accepted = {expected, "SymbolCannotBeRenamed"} if "namespace" in label else {expected}
        if error["code"] not in accepted or (error["code"] == expected and said not in str(error["message"])):
            wrong.append((label, error))
    assert wrong == []


async def _fixed_names_stay(agent: Agent) -> None:
    """What assemblies declare, Main, and names that are none."""
    assert await code(agent, "Console", "Terminal") == "SymbolCannotBeRenamed"
    assert await code(agent, "ToString", "Text") == "SymbolCannotBeRenamed"
    assert await code(agent, "Dispose()", "Close") == "SymbolCannotBeRenamed"
    assert await code(agent, "Main", "Begin") == "SymbolCannotBeRenamed"
    assert await code(agent, "Crate", "1 bad") == "InvalidRequest"
    assert await code(agent, "public", "Open") == "SymbolNotFound"
    assert await code(agent, "Crate", "Box", renameFile=True) is None
    answer = await agent.do(
        "rename-symbol",
        symbol={"documentationCommentId": "T:Fixed.Crate"},
        newName="@Crate",
        expectedSnapshot=agent.snapshot,
    )
    assert answer["staged"] is False


async def _dotted_namespaces(agent: Agent) -> None:
    """Both servers call ``namespace Dot.Ted`` by its last name only."""
    for comment_id in DOTTED_IDS:
        answer = await tried(agent, {"documentationCommentId": comment_id}, "Renamed")
        assert answer["ok"], (comment_id, answer)


async def _overloads(agent: Agent, server: RealServer) -> None:
    """csharp-ls renames them always, Roslyn never; neither is passed over."""
    always = server.kind == "csharp-ls"
    for wish, honoured in ((True, always), (False, not always)):
        found = await code(agent, "Put(int", "Store", renameOverloads=wish)
        assert found == (None if honoured else "RenameOptionUnavailable")
    symbol = {"documentationCommentId": "M:Fixed.Crate.Put(System.String)"}
    answer = await tried(agent, cast("Json", symbol), "Store", renameOverloads=always)
    assert answer["ok"], answer


async def _a_new_file(agent: Agent, server: RealServer) -> None:
    """Where it is shown by its text no use in it is found before the commit, and each server has its own reason."""
    await agent.stage("Moved.cs", MOVED_TEXT.index("Second"), "Move type to Second.cs")
    for comment_id in ("T:Moved.Second", "T:Moved.First"):
        answer = await tried(agent, {"documentationCommentId": comment_id}, "Third")
        assert answer["ok"] == (agent.view == "overlay"), answer
        if agent.view == "overlay":
            continue
        error = cast("Json", answer["error"])
        assert error["code"] == "RenameUnverified"
        assert f"(Second.cs): {NO_PLACE if server.kind == 'csharp-ls' else LATER}" in str(error["message"])
        assert "--server-view overlay" in str(error["message"])
    answer = await tried(agent, {"documentationCommentId": "T:Fixed.Crate"}, "Box")
    assert answer["ok"], "a name that the new file does not have"
    await agent.do("transaction-history", direction="Undo", expectedSnapshot=agent.snapshot)


async def _committed(agent: Agent, solution: Path, toolchain: Mapping[str, str] | None) -> None:
    """A rename with all that a type has, written, built, and taken back to the byte."""
    label = next(iter(HARMLESS))
    case, path = HARMLESS[label], FILES[label]
    before = (solution.parent / path).read_bytes()
    for old, new in (("Apple", case.new_name), (case.new_name, "Apple")):
        data = await agent.do(
            "rename-symbol",
            symbol={"documentationCommentId": f"T:Harmless.{old}"},
            newName=new,
            expectedSnapshot=agent.snapshot,
        )
        if old == "Apple":
            left = cast("list[Json]", cast("Json", data["notRenamed"])["items"])
            assert [mention["kind"] for mention in left] == ["Comment", "String"]
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
        if toolchain is not None and old == "Apple":
            run_dotnet(toolchain, solution.parent, "build", "-v", "q")
        await agent.do("transaction-start")
    assert (solution.parent / path).read_bytes() == before
