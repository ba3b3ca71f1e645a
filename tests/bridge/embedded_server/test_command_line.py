"""How the server is started, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "bridge.embedded_server"]
ROOT = Path(__file__).parents[3]
END_SECONDS = 30.0  # start and end take half a second; the machine may be busy


def frame(**message: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def run(*options: str, sent: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *options], input=sent, capture_output=True, timeout=END_SECONDS, cwd=ROOT, check=False
    )


def test_the_real_servers_command_line_is_accepted(tmp_path: Path) -> None:
    logs = tmp_path / "new/logs"
    ended = run(
        "--stdio",
        "--logLevel=Information",
        "--extensionLogDirectory",
        str(logs),
        "--telemetryLevel",
        "off",
        sent=frame(id=1, method="shutdown") + frame(method="exit"),
    )
    assert ended.returncode == 0
    assert logs.is_dir()
    assert b'"id": 1, "jsonrpc": "2.0", "result": null' in ended.stdout


def test_an_unknown_option_ends_it_at_once() -> None:
    ended = run("--stdio", "--razorSourceGenerator", "x")
    assert ended.returncode != 0
    assert b"razorSourceGenerator" in ended.stderr


def test_without_stdio_it_does_not_start() -> None:
    assert run().returncode != 0


def test_the_end_of_its_input_ends_it() -> None:
    assert run("--stdio").returncode == 0


def test_exit_before_shutdown_is_an_error() -> None:
    assert run("--stdio", sent=frame(method="exit")).returncode == 1


def test_after_shutdown_requests_are_refused() -> None:
    sent = frame(id=1, method="shutdown") + frame(id=2, method="initialize", params={}) + frame(method="exit")
    assert b"Server was requested to shut down." in run("--stdio", sent=sent).stdout


def test_bytes_that_are_no_json_do_not_end_it() -> None:
    sent = b"Content-Length: 3\r\n\r\n{x}" + frame(id=1, method="shutdown") + frame(method="exit")
    ended = run("--stdio", sent=sent)
    assert ended.returncode == 0
    assert b'"result": null' in ended.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="the client is ended by a POSIX signal here")
def test_it_ends_with_its_client() -> None:
    client = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    server = subprocess.Popen(
        [*COMMAND, "--stdio", "--clientProcessId", str(client.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        client.kill()
        client.wait(END_SECONDS)
        assert server.wait(END_SECONDS) == 1
    finally:
        server.kill()
        for process in (client, server):
            process.communicate()
