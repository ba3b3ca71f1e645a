"""The command line: ``roslyn-bridge mcp`` serves an agent, ``roslyn-bridge doctor`` talks to a person.

Start-up counts, so this module imports nothing but click; what a command needs is imported inside it.  Options are
taken as text and judged by ``bridge.options``: a bad value falls back to its default and is reported.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import click

from bridge.frontends.recover import recover
from bridge.options import Options, environment_name, option_names, read_options
from bridge.version import DISTRIBUTION, bridge_version

OPTION_HELP: Mapping[str, tuple[str, str]] = {
    "server": (
        "auto|roslyn|csharp-ls|embedded",
        "Which language server to run; auto takes the best one found.",
    ),
    "server_path": ("PATH", "An explicit server: a .dll (run through dotnet) or an executable."),
    "load_timeout": ("SECONDS", "The longest load of a solution."),
    "request_timeout": ("SECONDS", "The longest wait for one answer of the language server."),
    "restart_timeout": ("SECONDS", "How long a call waits for a language server that is being started anew."),
    "lease_wait": (
        "SECONDS",
        "How long a call waits for another one on the same workspace; 0 answers WorkspaceBusy at once.",
    ),
    "server_view": (
        "text|overlay",
        "Whether the server sees staged files as open documents alone, or also in its folder (Linux).",
    ),
    "restore": ("auto|never", "Whether 'dotnet restore' may run before a load that needs it."),
    "external_changes": (
        "pick-up|report",
        "Whether a change on disk outside a transaction is picked up, or reported as WorkspaceOutOfDate.",
    ),
    "warm_up": (
        "auto|off",
        "Whether a server compiles a little of what it has loaded before the first question about it.",
    ),
    "watch": (
        "auto|off",
        "Whether folders are watched, so that a change on disk is told before the next call meets it.",
    ),
    "line_endings": (
        "adapt|keep",
        "Whether inserted text takes the line ends of its file, when those are uniform.",
    ),
    "commit_validation": (
        "none|no-new-compiler-errors",
        "Whether a commit is refused that would bring compiler errors into its projects or their dependants.",
    ),
    "max_transaction_revisions": ("COUNT", "How many staged steps one transaction holds."),
    "max_concurrent_queries": ("COUNT", "How many queries run at once on one workspace."),
    "max_workspaces": ("COUNT", "How many workspaces may be open at once."),
    "code_action_reference_lifetime": ("SECONDS", "How long an action id stays valid."),
    "code_action_reference_limit": ("COUNT", "How many action ids are kept; the oldest ones expire first."),
    "default_max_results": ("COUNT", "The cap of a collection whose tool names none."),
    "tool_output_schema_mode": ("Omit|Full", "Whether tools/list publishes output schemas."),
    "state_directory": ("PATH", "Where private state lies."),
}
"""What each option of ``bridge.options`` takes and means, for people."""

DEFAULT_WORDS: Mapping[str, str] = {
    "server_path": "none; see doctor for what is found",
    "state_directory": "the user's state directory of this system",
}
"""How to say the defaults that are no plain value."""


class BridgeCommand(click.Command):
    """A command whose help gives each option lines of its own: their environment twins are long names."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options' part of the help."""
        with formatter.section("Options"):
            for parameter in self.get_params(ctx):
                record = parameter.get_help_record(ctx)
                if record is None:
                    continue
                names, text = record
                formatter.write_text(names)
                with formatter.indentation():
                    for sentence in text.split("\n"):
                        formatter.write_text(sentence)


def bridge_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add every option of ``bridge.options`` to a command, in their order; each arrives as its text or ``None``."""
    for name in reversed(option_names()):
        metavar, text = OPTION_HELP[name]
        default = DEFAULT_WORDS.get(name) or _default_text(getattr(Options(), name))
        decorate = click.option(
            f"--{name.replace('_', '-')}",
            name,
            metavar=metavar,
            help=f"{text}\n[default: {default}; env: {environment_name(name)}]",
        )
        command = decorate(command)
    return command


def _default_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"{DISTRIBUTION} {bridge_version()}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Safe, transactional C# changes on top of real C# language servers."""


@main.command(cls=BridgeCommand)
@bridge_options
def mcp(**given: str | None) -> None:
    """Serve one MCP client on stdin and stdout.

    Each option can also be given by its environment variable; the command line wins.  A value that cannot be used
    falls back to its default: a warning on stderr says so, and so does the tool server-status.
    """
    if None in (sys.stdin, sys.stdout):
        raise click.ClickException("stdin and stdout must be open: an MCP client talks through them")
    if sys.stdin.isatty():
        click.echo(
            "Waiting for an MCP client on stdin; this command is started by clients, not by hand.", err=True
        )
    # Until the handlers of the server are in place there is nothing to clean up; an interrupt just ends us.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Imports make objects by the hundred thousand and no garbage: the collector would walk them again and again. It
    # is switched on when the tools are open.
    gc.disable()
    _end_now(run_mcp(read_options(given)))


def run_mcp(options: Options) -> int:
    """Serve until the client leaves or a signal comes; returns the exit code."""
    import logging  # noqa: PLC0415  # start-up

    import anyio  # noqa: PLC0415

    from bridge.frontends.mcp import serve  # noqa: PLC0415

    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    for warning in options.warnings:
        logging.getLogger(__name__).warning("%s: %s", warning.code, warning.message)

    async def run() -> int:
        return await serve(options, version=bridge_version())

    return anyio.run(run)


def _end_now(code: int) -> NoReturn:
    """End without waiting for threads: one may be stuck in a write to a client that does not read."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue  # whoever read it is gone
    os._exit(code)


@main.command(cls=BridgeCommand)
@bridge_options
def doctor(**given: str | None) -> None:
    """Say which language server would be used, where it comes from, and how to get a better one."""
    from bridge.frontends.doctor import examine  # noqa: PLC0415  # rich and discovery are for people only

    sys.exit(examine(read_options(given), os.environ, Path.home(), bridge_version()))


main.add_command(recover)
