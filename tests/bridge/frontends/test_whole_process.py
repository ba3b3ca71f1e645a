"""The whole bridge as a client starts it: the real tools over the embedded server, and no process left at any end."""

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import psutil
import pytest
from mcp import Client, StdioServerParameters

from tests.bridge.frontends.peer import ERAS, WAIT_SECONDS, Message, Peer

SAMPLE = Path(__file__).parents[3] / "scripts" / "sample"


def start(tmp_path: Path, era: str = "handshake") -> Peer:
    command = [
        sys.executable,
        "-m",
        "bridge",
        "mcp",
        "--server",
        "embedded",
        "--state-directory",
        str(tmp_path),
    ]
    return Peer(command, era=era)


@pytest.fixture(scope="module", params=ERAS)
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with start(tmp_path_factory.mktemp("state"), request.param) as opened:
        yield opened.open()


@pytest.fixture
def solution(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLE, tmp_path / "sample")
    return tmp_path / "sample" / "Sample.slnx"


def refusal(answer: Message) -> Mapping[str, object]:
    """The envelope of a refused call."""
    assert answer["isError"] is True, answer
    envelope = answer["structuredContent"]
    assert isinstance(envelope, dict)
    assert envelope["ok"] is False
    return envelope


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("workspace-open", {"pth": "/x"}, ["pth", "path"]),
        ("workspace-open", {}, ["path"]),
        ("workspace-open", {"path": 5}, ["path"]),
        ("transaction-history", {"action": "undoo"}, ["action"]),
    ],
)
def test_arguments_that_break_the_contract_are_refused_by_name(
    peer: Peer, tool: str, arguments: Mapping[str, object], words: list[str]
) -> None:
    error = refusal(peer.call(tool, **arguments))["error"]
    assert isinstance(error, dict)
    assert error["code"] == "InvalidRequest"
    assert all(word in error["message"] for word in words), error["message"]


def test_a_question_before_anything_is_open_says_what_to_do(peer: Peer) -> None:
    envelope = refusal(peer.call("transaction-preview"))
    assert "WorkspaceNotOpen" in str(envelope["error"])
    assert "workspace-open" in str(envelope["continuation"])


def test_ten_megabytes_in_a_wrong_place_are_refused_briefly_and_nothing_is_lost(peer: Peer) -> None:
    answer = peer.call("workspace-open", path="x" * 10_000_000)
    refusal(answer)
    assert len(str(answer)) < 10_000
    refusal(peer.call("workspace-open", **{"y" * 10_000_000: 1}))
    assert peer.data("server-status")["languageServers"] == []


def test_an_unknown_tool_is_named_with_its_nearest_neighbour(peer: Peer) -> None:
    peer.start_call("workspace-opne")
    error = peer.receive()["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32602
    assert "workspace-open" in error["message"]


def open_sample(peer: Peer, solution: Path) -> list[psutil.Process]:
    """Open the solution and return all processes below the bridge."""
    peer.open().data("workspace-open", path=str(solution))
    family = psutil.Process(peer.process.pid).children(recursive=True)
    assert family
    return family


def end_by_eof(peer: Peer) -> None:
    peer.close_input()


ENDS: Mapping[str, tuple[Callable[[Peer], None], int]] = {
    "end of input": (end_by_eof, 0),
    "SIGTERM": (lambda peer: peer.process.send_signal(signal.SIGTERM), 0),
    "SIGINT": (lambda peer: peer.process.send_signal(signal.SIGINT), 130),
    "kill -9": (lambda peer: peer.process.kill(), -signal.SIGKILL),
}


def require_gone(family: list[psutil.Process]) -> None:
    _gone, alive = psutil.wait_procs(family, WAIT_SECONDS)
    assert alive == []


@pytest.mark.parametrize("way", ENDS)
def test_no_end_leaves_a_process(way: str, tmp_path: Path, solution: Path) -> None:
    end, exit_code = ENDS[way]
    with start(tmp_path / "state") as peer:
        family = open_sample(peer, solution)
        end(peer)
        assert peer.wait_end() == exit_code
        require_gone(family)
        assert "Traceback" not in peer.stderr


@pytest.mark.slow
@pytest.mark.parametrize("way", ENDS)
def test_no_end_leaves_a_process_of_a_server_that_stands_still(
    way: str, tmp_path: Path, solution: Path
) -> None:
    """A stopped process answers nothing, reads nothing and takes no signal but the last one."""
    end, exit_code = ENDS[way]
    with start(tmp_path / "state") as peer:
        family = open_sample(peer, solution)
        server = peer.data("server-status")["languageServers"]
        assert isinstance(server, list)
        os.kill(server[0]["pid"], signal.SIGSTOP)
        end(peer)
        assert peer.wait_end() == exit_code
        require_gone(family)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["end of input", "SIGTERM", "SIGINT"])
def test_no_end_leaves_a_process_when_even_the_guard_stands_still(
    way: str, tmp_path: Path, solution: Path
) -> None:
    end, exit_code = ENDS[way]
    with start(tmp_path / "state") as peer:
        family = open_sample(peer, solution)
        for process in family:
            process.suspend()
        end(peer)
        assert peer.wait_end() == exit_code
        require_gone(family)


@pytest.mark.parametrize("way", ENDS)
def test_an_end_in_the_middle_of_a_load_leaves_no_process(way: str, tmp_path: Path, solution: Path) -> None:
    end, exit_code = ENDS[way]
    with start(tmp_path / "state") as peer:
        peer.open().start_call("workspace-open", {"progressToken": 1}, path=str(solution))
        assert peer.receive()["method"] == "notifications/progress"
        family = psutil.Process(peer.process.pid).children(recursive=True)
        end(peer)
        assert peer.wait_end() == exit_code
        require_gone(family)
        require_gone(processes_that_name(tmp_path))  # what was started in the very moment of the end
        assert processes_that_name(tmp_path) == []


def processes_that_name(folder: Path) -> list[psutil.Process]:
    """The processes of this machine with the folder on their command line."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(folder) in " ".join(process.cmdline()):
                found.append(process)
    return found


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_sdks_own_client_is_content_with_schemas_and_answers(
    mode: Literal["legacy", "auto"], tmp_path: Path, solution: Path
) -> None:
    """It checks each structured answer against the published output schema."""
    arguments = ["-m", "bridge", "mcp", "--server", "embedded", "--tool-output-schema-mode", "Full"]
    server = StdioServerParameters(
        command=sys.executable, args=[*arguments, "--state-directory", str(tmp_path / "state")]
    )
    async with Client(server, mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["workspace-open"].output_schema is not None
        assert tools["server-status"].annotations is not None
        assert tools["server-status"].annotations.read_only_hint is True
        opened = await client.call_tool("workspace-open", {"path": str(solution)})
        assert opened.is_error is False
        for tool in ("server-status", "workspace-list", "workspace-status"):
            assert (await client.call_tool(tool, {})).is_error is False
        assert (await client.call_tool("transaction-commit", {})).is_error is True
