"""The MCP front door, over real stdio with a child process, in both eras of the protocol."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import jsonschema
import pytest

from bridge.frontends import mcp
from bridge.options import Options
from schemas.catalog import ToolEntry
from tests.bridge.frontends.peer import ERAS, MODERN_META, Peer, fake_peer


@pytest.fixture(scope="module", params=ERAS)
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    with fake_peer(era=request.param) as opened:
        yield opened.open()


def test_initialize_names_the_server_and_tells_an_agent_how_to_work() -> None:
    with fake_peer() as peer:
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        result = peer.request("initialize", params)["result"]
        assert isinstance(result, dict)
        assert result["serverInfo"] == {"name": "roslyn-bridge", "title": "Roslyn Bridge", "version": "1.2.3"}
        assert result["protocolVersion"] == "2025-11-25"
        for word in ("workspace-open", "transaction-start", "stage-code-action", "continuation"):
            assert word in result["instructions"]


def test_discover_names_the_modern_version() -> None:
    with fake_peer(era="modern") as peer:
        result = peer.request("server/discover")["result"]
        assert isinstance(result, dict)
        assert result["supportedVersions"] == ["2026-07-28"]
        assert "tools" in result["capabilities"]


def test_a_call_may_be_the_very_first_message_of_the_modern_era() -> None:
    with fake_peer(era="modern") as peer:
        assert peer.data("echo", first=True) == {"first": True}


def test_a_call_before_the_handshake_is_answered_with_an_error() -> None:
    with fake_peer() as peer:
        assert "error" in peer.request("tools/call", {"name": "echo"})
        assert peer.open().data("echo") == {}


def test_tools_are_listed(peer: Peer) -> None:
    result = peer.request("tools/list")["result"]
    assert isinstance(result, dict)
    assert {"name": "echo", "inputSchema": {"type": "object"}} in result["tools"]


def test_a_cursor_that_we_never_gave_is_refused(peer: Peer) -> None:
    error = peer.request("tools/list", {"cursor": "page 2"})["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32602


def test_structured_content_arrives_as_given_beside_a_short_text(peer: Peer) -> None:
    result = peer.call("echo", text="é😀", nothing=None, nested={"list": [1, None, 2.5]}, big=2**70)
    assert result["structuredContent"] == {
        "ok": True,
        "data": {"text": "é😀", "nothing": None, "nested": {"list": [1, None, 2.5]}, "big": 2**70},
    }
    assert result["content"] == [{"type": "text", "text": "done"}]
    assert result["isError"] is False


def test_absent_and_null_arguments_reach_the_tool_as_none_at_all(peer: Peer) -> None:
    for params in ({"name": "echo"}, {"name": "echo", "arguments": None}):
        result = peer.request("tools/call", params)["result"]
        assert isinstance(result, dict)
        assert result["structuredContent"] == {"ok": True, "data": {}}


def test_a_refusal_sets_is_error_and_keeps_its_envelope(peer: Peer) -> None:
    result = peer.call("refuse")
    assert result["isError"] is True
    assert result["structuredContent"] == {
        "ok": False,
        "error": {"code": "WorkspaceNotOpen", "message": "no workspace is open"},
    }


def test_an_unknown_tool_is_a_protocol_error_that_names_the_nearest_one(peer: Peer) -> None:
    peer.start_call("ecko")
    error = peer.receive()["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32602
    assert "'ecko'" in error["message"]
    assert "'echo'" in error["message"]


def test_an_exception_leaves_a_correlation_id_and_none_of_its_text() -> None:
    with fake_peer() as peer:
        result = peer.open().call("raise")
        assert result["isError"] is True
        envelope = result["structuredContent"]
        assert isinstance(envelope, dict)
        assert envelope["error"]["code"] == "UnhandledException"
        assert "secret" not in str(result)
        peer.close_input()
        peer.wait_end()
        assert f"[correlation id {envelope['error']['correlationId']}]" in peer.stderr
        assert "ValueError: secret" in peer.stderr


@pytest.mark.parametrize("era", ERAS)
def test_tools_that_cannot_be_opened_leave_an_answering_server(era: str) -> None:
    with fake_peer("fails-to-open", era=era) as peer:
        peer.open()
        envelopes = [peer.call("echo")["structuredContent"] for _ in range(2)]
        assert "result" in peer.request("tools/list")
        peer.close_input()
        assert peer.wait_end() == 0
        assert envelopes[0] == envelopes[1]
        assert "secret" not in str(envelopes)
        [found] = re.findall(r"'code': 'UnhandledException'.*'correlationId': '(\w+)'", str(envelopes[0]))
        assert re.search(rf"{found}.*RuntimeError: secret", peer.stderr, re.DOTALL)


def test_progress_reaches_the_caller_who_asked_for_it_in_order(peer: Peer) -> None:
    request_id = peer.start_call("progress", {"progressToken": "mine"})
    messages = [peer.receive() for _ in range(4)]
    assert [message.get("params") for message in messages[:3]] == [
        {"progressToken": "mine", "progress": step, "total": 2, "message": f"step {step}"}
        for step in range(3)
    ]
    assert messages[3]["id"] == request_id


def test_progress_is_not_sent_to_a_caller_who_did_not_ask(peer: Peer) -> None:
    assert peer.call("progress")["isError"] is False


def test_calls_run_at_the_same_time(peer: Peer) -> None:
    """Each of them returns only when all are inside."""
    with fake_peer(era=peer.era) as own:
        own.open()
        ids = {own.start_call("meet", count=20) for _ in range(20)}
        assert {own.receive()["id"] for _ in range(20)} == ids


@pytest.mark.parametrize("reason", ["given up", "half \\ud83d"])
def test_a_cancelled_call_is_cancelled_and_never_answered(peer: Peer, reason: str) -> None:
    request_id = peer.start_call("wait", {"progressToken": 1}, label=reason)
    assert peer.receive()["method"] == "notifications/progress"
    params = f'{{"requestId":{request_id},"reason":"{reason}"}}'
    peer.send_bytes(f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}\n'.encode())
    cancelled = peer.data("cancelled")["cancelled"]
    assert isinstance(cancelled, list)
    assert reason in cancelled


def test_a_client_of_the_other_era_is_told_so() -> None:
    with fake_peer() as peer:
        answer = peer.open().request("tools/call", {"name": "echo", "_meta": MODERN_META})
        error = answer["error"]
        assert isinstance(error, dict)
        assert error["code"] == -32600


def test_every_tool_of_the_catalog_is_published_with_valid_schemas() -> None:
    """One bad schema would cost clients the whole list."""
    modes: tuple[Literal["Omit", "Full"], ...] = ("Omit", "Full")
    for mode in modes:
        tools = mcp.published_tools(Options(tool_output_schema_mode=mode))
        assert len({str(tool["name"]) for tool in tools}) == len(tools) > 0
        for tool in tools:
            assert ("outputSchema" in tool) == (mode == "Full")
            for key in ("inputSchema", "outputSchema"):
                schema = tool.get(key, {"type": "object"})
                assert isinstance(schema, dict)
                assert schema["type"] == "object", f"{tool['name']}: {key}"
                assert schema != {"type": "object"} or key == "outputSchema", (
                    f"{tool['name']} has lost its schema"
                )
                jsonschema.Draft202012Validator.check_schema(schema)


def test_a_schema_that_cannot_be_made_costs_its_own_tool_only_its_schema(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from schemas import publication

    whole = mcp.published_tools(Options())
    real = publication.publish

    def broken(entry: ToolEntry, mode: Literal["Omit", "Full"]) -> object:
        if entry.name == "workspace-open":
            raise RuntimeError("no schema")
        return real(entry, mode)

    monkeypatch.setattr(publication, "publish", broken)
    tools = mcp.published_tools(Options())
    assert [tool["name"] for tool in tools] == [tool["name"] for tool in whole]
    [hit] = [tool for tool, before in zip(tools, whole, strict=True) if tool != before]
    assert hit["name"] == "workspace-open"
    assert hit["inputSchema"] == {"type": "object"}
    assert "workspace-open" in caplog.text


def test_the_front_door_loads_none_of_the_application_before_the_first_answer() -> None:
    import subprocess
    import sys

    heavy = (
        "bridge.workbench",
        "bridge.errors",
        "lsp_client",
        "transactions",
        "schemas",
        "pygls",
        "lsprotocol",
        "rich",
    )
    code = f"import sys, bridge.frontends.cli, bridge.frontends.mcp\nprint([m for m in {heavy!r} if m in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert ran.stdout.strip() == "[]"
