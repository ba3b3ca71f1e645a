"""Files with odd names through the tools: staged, previewed, patched, committed; or refused, and nothing is lost."""

import base64
import os
import unicodedata
from pathlib import Path

import pytest

from schemas.surrogates import scrubbed_text
from tests.bridge.agent import APPLE as APPLE_TEXT
from tests.bridge.agent import opened
from tests.bridge.played_server import Offer, create

pytestmark = pytest.mark.anyio

APPLE = "Core/Apple.cs"


@pytest.mark.parametrize(
    "name",
    [
        "line\nbreak.cs",
        "%20.cs",
        "a%2Fb#?.cs",
        "trailing...cs",
        " space .cs",
        unicodedata.normalize("NFC", "Größe.cs"),
        unicodedata.normalize("NFD", "Größe.cs"),
        os.fsdecode(b"caf\xe9.cs"),
    ],
    ids=ascii,
)
async def test_a_file_with_an_odd_name_is_staged_previewed_and_committed(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as made:
        agent, path = made.agent, made.file("Core") / name
        made.server.offers = [Offer("Make", lambda _path, _text: create(path, "class Odd { }\n"))]
        await agent.start()
        await agent.stage_first(APPLE)
        (added,) = (await agent.preview()).documents
        assert added.document is not None
        owner = made.workspace.structure.owner_of(path)
        assert owner is not None
        assert (owner.name, added.document.project_id) == ("Core", owner.id), (
            "it names the project that would own it"
        )
        assert added.document.path == scrubbed_text(f"Core/{name}")
        data = await agent.preview(
            document={"documentId": added.document.document_id}, includeDiff=True, includePatch=True
        )
        assert data.diff is not None
        assert data.diff.hunks[0].lines == ("+class Odd { }",)
        assert data.patch is not None
        content = data.patch.content or ""
        patch = base64.b64decode(content) if data.patch.encoding == "base64" else content.encode()
        assert patch.count(b"new file mode 100644") == 1
        await agent.commit()
        assert path.read_bytes() == b"class Odd { }\n"
        assert (await agent.status()).state == "Ready"


@pytest.mark.parametrize(
    "name",
    ["x" * 300 + ".cs", "/".join(["deep"] * 1000) + "/X.cs", "trailing.cs.", "name.cs "],
    ids=["name", "path", "dot", "space"],
)
async def test_a_name_that_cannot_be_is_refused_when_staged_and_nothing_is_lost(
    tmp_path: Path, name: str
) -> None:
    async with opened(tmp_path) as made:
        agent, path = made.agent, made.file("Core") / name
        await agent.start()
        await agent.stage_first(APPLE)
        staged = agent.identity
        made.server.offers = [Offer("Make", lambda _path, _text: create(path, "class Odd { }\n"))]
        (action,) = await agent.actions(APPLE)
        refusal = await agent.refused("stage-code-action", actionId=action.action_id)
        assert refusal.code == "UnsupportedChange"
        assert agent.identity == staged
        await agent.commit()
        assert made.file(APPLE).read_text(encoding="utf-8") == f"// line 5\n{APPLE_TEXT}"


async def test_a_file_that_became_a_directory_is_a_conflict_that_can_be_previewed_and_rolled_back(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as made:
        await made.agent.start()
        await made.agent.stage_first(APPLE)
        made.file(APPLE).unlink()
        (made.file(APPLE) / "Inner").mkdir(parents=True)
        refusal = await made.agent.refused("transaction-commit")
        assert (refusal.code, refusal.tools) == ("TransactionConflicted", ("transaction-rollback",))
        data = await made.agent.preview(document={"path": APPLE}, includeDiff=True, includePatch=True)
        assert data.diff is not None
        assert data.patch is not None
        await made.agent.roll_back()
        assert (made.file(APPLE) / "Inner").is_dir()
