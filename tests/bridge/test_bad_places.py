"""Issue 4's bad input, end to end: an agent on stdio, the bridge as a process, and places and names that cannot be used.

Each is answered by a code and a sentence, and nothing is lost.  What needs mounts is in ``read_only`` and ``full_disk``.
"""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import anyio
import pytest

from tests.bridge.agent import APPLE, write_solution
from tests.bridge.played_server import Json, Offer, PlayedServer, create, insert, playing
from tests.bridge.promises import keeps
from tests.real.mcp_agent import Agent, bridge_process, tree_of
from tests.transactions.worlds import picture

pytestmark = pytest.mark.anyio

BOUND = 90.0

NAMES = (
    "line\nbreak.cs",
    "%20.cs",
    "a%2Fb#?.cs",
    "trailing...cs",
    " space .cs",
    unicodedata.normalize("NFC", "Größe.cs"),
    unicodedata.normalize("NFD", "Größe.cs"),
    "\u202egnp.cs",
    "x" * 251 + ".cs",
)
NOT_UTF8 = os.fsdecode(b"caf\xe9.cs")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory on another device than ``tmp_path``."""
    above = Path("/dev/shm")
    if not above.is_dir() or above.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second device here")
    with tempfile.TemporaryDirectory(dir=above) as directory:
        yield Path(directory)


@asynccontextmanager
async def bridge(server: PlayedServer, state: Path) -> AsyncIterator[Agent]:
    options = ["--server", "embedded", "--server-path", str(server.path), "--state-directory", str(state)]
    async with bridge_process(os.environ, options) as agent:
        yield agent


def edit(path: Path, _text: str) -> Sequence[Json]:
    return [insert(path, "// edited\n")]


def making(path: Path) -> Offer:
    return Offer("Make", lambda _path, _text: create(path, "class X { }\n"))


async def stage_the_only_action(agent: Agent, path: str) -> None:
    data = await agent.do(
        "list-code-actions", document={"path": path}, kinds="All", expectedSnapshot=agent.snapshot
    )
    (action,) = cast("list[Json]", cast("Json", data["actions"])["items"])
    await agent.do("stage-code-action", actionId=action["actionId"], expectedSnapshot=agent.snapshot)


async def test_files_with_odd_names_are_edited_and_committed_and_what_no_caller_can_name_is_left_alone(
    tmp_path: Path,
) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    for name in (*NAMES, NOT_UTF8):
        (root / "Core" / name).write_text(APPLE)
    with anyio.fail_after(BOUND):
        async with playing() as server, bridge(server, tmp_path / "state") as agent:
            server.offers = [Offer("Edit", edit)]
            await agent.do("workspace-open", path=str(solution))
            await agent.do("transaction-start")
            for name in NAMES:
                await stage_the_only_action(agent, f"Core/{name}")
            error = await agent.refused(
                "list-code-actions",
                document={"path": "Core/caf\ufffd.cs"},
                kinds="All",
                expectedSnapshot=agent.snapshot,
            )
            assert error["code"] == "DocumentNotFound"
            preview = await agent.do("transaction-preview")
            documents = cast("list[dict[str, Json]]", preview["documents"])
            assert {entry["document"]["path"] for entry in documents} == {f"Core/{name}" for name in NAMES}
            await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    for name in NAMES:
        assert (root / "Core" / name).read_text() == f"// edited\n{APPLE}"
    assert (root / "Core" / NOT_UTF8).read_text() == APPLE


async def test_names_that_cannot_be_and_a_file_that_became_a_directory_are_refused_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    with anyio.fail_after(BOUND):
        async with playing() as server, bridge(server, tmp_path / "state") as agent:
            await agent.do("workspace-open", path=str(solution))
            await agent.do("transaction-start")
            server.offers = [Offer("Edit", edit)]
            await stage_the_only_action(agent, "Core/Apple.cs")
            for name in ("x" * 300 + ".cs", "/".join(["deep"] * 1000) + "/X.cs", "trailing.cs."):
                server.offers = [making(root / "Core" / name)]
                (action,) = await agent.actions("Core/Apple.cs", 0)
                error = await agent.refused(
                    "stage-code-action", actionId=action["actionId"], expectedSnapshot=agent.snapshot
                )
                assert (error["code"], len(str(error["message"])) < 6000) == ("UnsupportedChange", True)
            (root / "Core/Apple.cs").unlink()
            (root / "Core/Apple.cs/Inner").mkdir(parents=True)
            before = tree_of(root)
            error = await agent.refused("transaction-commit", expectedSnapshot=agent.snapshot)
            assert error["code"] == "TransactionConflicted"
            assert "Core/Apple.cs" in str(error["message"])
            await agent.do("transaction-rollback")
            assert tree_of(root) == before


def a_link(ours: Path) -> None:
    ours.parent.mkdir()
    ours.with_name("target").mkdir()
    ours.symlink_to(ours.with_name("target"))


def a_file(ours: Path) -> None:
    ours.parent.mkdir()
    ours.write_text("no directory")


def open_to_writers(ours: Path) -> None:
    ours.mkdir(parents=True)
    ours.chmod(0o777)


def in_a_file(ours: Path) -> None:
    ours.parent.write_text("no directory")


def too_long(ours: Path) -> None:
    """Nothing is there, and nothing can be."""


@keeps("recovery.state-directory")
@pytest.mark.parametrize(
    ("spoil", "advice"),
    [
        (a_link, "Put a directory in its place"),
        (a_file, "Move it away"),
        (open_to_writers, "chmod 700"),
        (in_a_file, "is no directory"),
        (too_long, "choose another place with --state-directory"),
    ],
)
async def test_a_state_directory_that_cannot_be_used_refuses_by_a_sentence_that_says_what_to_do(
    tmp_path: Path, spoil: Callable[[Path], None], advice: str
) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    state = tmp_path / ("x" * 300 if spoil is too_long else "state")
    spoil(state / "roslyn-bridge")
    before = picture(root)
    with anyio.fail_after(BOUND):
        async with playing() as server, bridge(server, state) as agent:
            error = await agent.refused("workspace-open", path=str(solution))
            assert error["code"] == "WorkspaceLoadFailed"
            assert f"The state directory {state / 'roslyn-bridge'} " in str(error["message"])
            assert advice in str(error["message"])
    assert picture(root) == before


async def test_a_state_directory_on_another_device_is_the_normal_case(tmp_path: Path, memory: Path) -> None:
    root = tmp_path / "Läden & mehr"
    solution = write_solution(root)
    with anyio.fail_after(BOUND):
        async with playing() as server, bridge(server, memory / "state") as agent:
            server.offers = [Offer("Edit", edit)]
            await agent.do("workspace-open", path=str(solution))
            await agent.do("transaction-start")
            await stage_the_only_action(agent, "Core/Apple.cs")
            await agent.do("transaction-commit", expectedSnapshot=agent.snapshot)
    assert (root / "Core/Apple.cs").read_text() == f"// edited\n{APPLE}"
