"""Formatting on real servers: by the rules of .editorconfig, in line ends of the file, bounded to a range."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from tests.real.conftest import RealServer
from tests.real.mcp_agent import Json, bridge_process
from tests.real.small import options, small_solution

UGLY = "class Ugly{\n  int  A( int x ){ return x ;}\n      int B(int x){return x;}\n}\n"
TIDY = "class Ugly\n{\n\tint A(int x) { return x; }\n\tint B(int x) { return x; }\n}\n"
CONFIG = "root = true\n\n[*.cs]\nindent_style = tab\ntab_width = 4\nindent_size = 4\n"


@pytest.mark.anyio
async def test_documents_ranges_and_projects_are_formatted_as_editorconfig_says(
    real_server: RealServer, toolchain: Mapping[str, str], tmp_path: Path
) -> None:
    crlf = UGLY.replace("\n", "\r\n").replace("Ugly", "Windows")
    solution = small_solution(tmp_path / "small", {"Ugly.cs": UGLY, "Tidy.cs": TIDY.replace("Ugly", "Tidy")})
    (solution.parent / "Windows.cs").write_bytes(crlf.encode())
    (solution.parent / ".editorconfig").write_text(CONFIG)
    async with bridge_process(toolchain, options(real_server, tmp_path)) as agent:
        await agent.do("workspace-open", path=str(solution))
        await agent.do("transaction-start")

        async def formatted(tool: str, **target: object) -> Json:
            return await agent.do(tool, expectedSnapshot=agent.snapshot, **target)

        ugly: Json = {"document": {"path": "Ugly.cs"}}
        line = {"start": UGLY.index("  int"), "length": UGLY.index("      int") - UGLY.index("  int") - 1}
        assert (await formatted("format-document", **ugly, range=line))["staged"]
        added = [text for text in await agent.diff_lines("Ugly.cs") if text.startswith("+")]
        assert added == ["+\tint A(int x) { return x; }"]
        assert not (await formatted("format-document", document={"path": "Tidy.cs"}))["staged"]
        project = await formatted("format-project", project={"name": "Small"})
        assert (project["staged"], project["documentCount"]) == (True, 3)
        assert cast("Json", project["notFormatted"])["totalCount"] == 0
        assert not (await formatted("format-project", project={"name": "Small"}))["staged"]
        await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    assert (solution.parent / "Ugly.cs").read_bytes() == TIDY.encode()
    assert (solution.parent / "Windows.cs").read_bytes() == TIDY.replace("Ugly", "Windows").replace(
        "\n", "\r\n"
    ).encode()
