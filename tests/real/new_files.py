"""A type that is generated into a new file and renamed before the commit, its file and others along with it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from tests.real.mcp_agent import Agent, Json


def symbol(comment_id: str) -> Json:
    """A symbol by its documentation comment id."""
    return {"documentationCommentId": comment_id}


async def rename(agent: Agent, comment_id: str, new_name: str, **more: object) -> Json:
    """The data of a rename that must be staged."""
    return await agent.do(
        "rename-symbol",
        symbol=symbol(comment_id),
        newName=new_name,
        expectedSnapshot=agent.snapshot,
        **more,
    )


async def staged(agent: Agent) -> list[tuple[str, str]]:
    """The changed documents with the kind of each change."""
    preview = await agent.do("transaction-preview")
    documents = cast("list[Json]", preview["documents"])
    return sorted((str(cast("Json", d["document"])["path"]), str(d["changeKind"])) for d in documents)


async def renamed_before_the_commit(agent: Agent, root: Path) -> None:
    """``Small.Models.Two`` was generated into ``Two.cs``; ``One.cs`` and ``User.cs`` use it.

    At the end ``Three.cs`` declares ``Four``, and nothing is on disk.
    """
    before = await staged(agent)
    assert ("Two.cs", "Added") in before
    taken = await agent.refused(
        "rename-symbol",
        symbol=symbol("T:Small.Models.Two"),
        newName="One",
        expectedSnapshot=agent.snapshot,
    )
    assert taken["code"] == "RenameConflict"
    assert "Two.cs:" in str(taken["message"]), "a place in the new file is seen"

    await rename(agent, "T:Small.Models.Two", "Three", renameFile=True)
    assert [path for path, kind in await staged(agent) if kind == "Added"] == ["Three.cs"]
    for direction, name in (("Undo", "Two"), ("Redo", "Three")):
        await agent.do("transaction-history", direction=direction, expectedSnapshot=agent.snapshot)
        assert any(f"class {name}" in line for line in await agent.diff_lines(f"{name}.cs"))
    # The file that has come by a rename is one like others; so is one from the disk that was moved, there and back.
    await rename(agent, "T:Small.Models.Three", "Four")
    await rename(agent, "T:Small.Models.One", "Uno", renameFile=True)
    assert ("Uno.cs", "Added") in await staged(agent)
    await rename(agent, "T:Small.Models.Uno", "One", renameFile=True)
    assert await staged(agent) == [("One.cs", "Modified"), ("Three.cs", "Added"), ("User.cs", "Modified")]
    assert any("new Four()" in line for line in await agent.diff_lines("User.cs"))
    assert not (root / "Three.cs").exists()
