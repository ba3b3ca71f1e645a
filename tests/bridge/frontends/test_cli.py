"""The command line, as a person and as a client's configuration use it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import version

import click
import pytest

from bridge.frontends import cli
from bridge.options import Options, environment_name, option_names, read_options
from tests.bridge.frontends.peer import WAIT_SECONDS, Peer

COMMAND = (sys.executable, "-m", "bridge")


def run(*arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200", **(environ or {})},
    )


def test_version_is_that_of_the_distribution() -> None:
    ran = run("--version")
    assert (ran.returncode, ran.stdout) == (0, f"roslyn-bridge {version('roslyn-bridge')}\n")


def test_help_names_the_commands() -> None:
    ran = run("--help")
    assert ran.returncode == 0
    assert "mcp" in ran.stdout
    assert "doctor" in ran.stdout


@pytest.mark.parametrize("command", ["mcp", "doctor"])
def test_help_lists_each_option_with_its_default_and_environment_twin(command: str) -> None:
    text = " ".join(run(command, "--help").stdout.split())
    for name in option_names():
        default = cli.DEFAULT_WORDS.get(name) or cli._default_text(getattr(Options(), name))
        assert f"--{name.replace('_', '-')} " in text
        assert f"[default: {default}; env: {environment_name(name)}]" in text


def test_the_help_texts_cover_the_options_exactly() -> None:
    assert tuple(cli.OPTION_HELP) == option_names()
    assert set(cli.DEFAULT_WORDS) == {f.name for f in fields(Options) if f.default is None}


def given_to(*arguments: str) -> dict[str, str | None]:
    """What the mcp command is called with."""
    parser = cli.main.commands["mcp"]
    context = click.Context(parser)
    parser.parse_args(context, list(arguments))
    return context.params


def test_each_option_reaches_the_options_in_kebab_case() -> None:
    values = {
        "server": "embedded",
        "server_path": "/opt/server.dll",
        "restore": "never",
        "server_view": "overlay",
        "external_changes": "report",
        "warm_up": "off",
        "watch": "off",
        "line_endings": "keep",
        "commit_validation": "no-new-compiler-errors",
        "tool_output_schema_mode": "Full",
        "state_directory": "/var/state",
    }
    texts = {name: values.get(name, "7") for name in option_names()}
    arguments = [word for name, text in texts.items() for word in (f"--{name.replace('_', '-')}", text)]
    assert given_to(*arguments) == texts
    options = read_options(given_to(*arguments), {})
    assert options.warnings == ()
    assert all(getattr(options, name) != getattr(Options(), name) for name in option_names())


def test_an_option_that_is_not_given_leaves_the_environment_its_say() -> None:
    options = read_options(
        given_to("--restore", "never"), {"ROSLYN_BRIDGE_LEASE_WAIT": "0", "ROSLYN_BRIDGE_RESTORE": "auto"}
    )
    assert (options.lease_wait, options.restore) == (0.0, "never")


def test_an_unknown_option_is_refused_with_the_nearest_one_and_nothing_on_stdout() -> None:
    ran = run("mcp", "--load-timeuot", "5")
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert "--load-timeout" in ran.stderr


def test_a_bad_value_falls_back_with_a_warning_and_the_server_runs() -> None:
    with Peer([*COMMAND, "mcp", "--load-timeout", "soon", "--server", "embedded"]) as peer:
        peer.open()
        peer.close_input()
        assert peer.wait_end() == 0
        assert "StartupConfigurationFallback" in peer.stderr
        assert "--load-timeout" in peer.stderr


def test_the_installed_command_serves() -> None:
    from pathlib import Path

    command = Path(sys.executable).with_name("roslyn-bridge")
    if not command.exists():
        pytest.skip("the distribution is not installed in this environment")
    with Peer([str(command), "mcp"]) as peer:
        peer.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        line = peer.receive_line()
        assert line is not None
        assert json.loads(line)["id"] == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_standard_stream_is_said(closed: str) -> None:
    ran = subprocess.run(
        ["sh", "-c", f'exec "$0" -m bridge mcp {closed}', sys.executable],
        stderr=subprocess.PIPE,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert ran.returncode == 1
    assert "stdin and stdout must be open" in ran.stderr


def test_the_doctor_runs_and_its_exit_code_says_whether_there_is_a_server() -> None:
    found = run("doctor", "--server", "embedded")
    assert (found.returncode, "Language server" in found.stdout) == (0, True)
    assert run("doctor", "--server-path", "/nowhere/roslyn-language-server").returncode == 1
