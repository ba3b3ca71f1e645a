"""The options of one bridge process: their names, defaults and environment twins.

An option is given on the command line, else by its environment twin ``ROSLYN_BRIDGE_<OPTION>``, else it has its
default.  A value that cannot be used falls back to the default and leaves a start-up warning, so that a typing
mistake never changes what a client is told in silence.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, get_args

ENVIRONMENT_PREFIX = "ROSLYN_BRIDGE_"

ServerKind = Literal["auto", "roslyn", "csharp-ls", "embedded"]
ExternalChanges = Literal["pick-up", "report"]
Restore = Literal["auto", "never"]
Watch = Literal["auto", "off"]
WarmUp = Literal["auto", "off"]
LineEndings = Literal["adapt", "keep"]
ServerView = Literal["text", "overlay"]
CommitValidation = Literal["none", "no-new-compiler-errors"]
OutputSchemas = Literal["Omit", "Full"]

HOURS_24 = 24 * 3600.0
LARGEST_WAIT = 7 * 24 * 3600.0
"""No wait may be longer than a week: a number beyond it is a mistake of units."""


@dataclass(frozen=True, slots=True)
class StartupWarning:
    """One option whose given value was not usable; ``server-status`` shows it."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one process.  Every wait is in seconds."""

    server: ServerKind = "auto"
    """Which language server to run; ``auto`` takes the best one found."""
    server_path: Path | None = None
    """An explicit server: a ``.dll`` (run through ``dotnet``) or an executable."""
    load_timeout: float = 600.0
    """The longest load of a solution; large ones take minutes on cold machines."""
    request_timeout: float = 60.0
    """The longest wait for one answer of the language server."""
    restart_timeout: float = 30.0
    """How long a caller waits for a server that is being started anew."""
    lease_wait: float = 10.0
    """How long a call waits for another call on the same workspace; 0 answers ``WorkspaceBusy`` at once."""
    server_view: ServerView = "text"
    """Whether the server sees staged files as open documents alone, or also in its folder (Linux)."""
    restore: Restore = "auto"
    """Whether ``dotnet restore`` may run before a load that needs it."""
    external_changes: ExternalChanges = "pick-up"
    """Whether a change on disk outside a transaction is picked up, or reported as ``WorkspaceOutOfDate``."""
    warm_up: WarmUp = "auto"
    """Whether a server compiles what it has loaded before the first question about it."""
    watch: Watch = "auto"
    """Whether folders are watched, so that a change on disk is told before the next call meets it."""
    line_endings: LineEndings = "adapt"
    """Whether inserted text takes the line ends of its file, when those are uniform."""
    commit_validation: CommitValidation = "none"
    """Whether a commit is refused that would bring compiler errors into its projects or their dependants."""
    max_transaction_revisions: int = 20
    """How many staged steps one transaction holds."""
    max_concurrent_queries: int = 2
    """How many queries run at once on one workspace."""
    max_workspaces: int = 8
    """How many workspaces may be open: each one is a compiler in memory."""
    code_action_reference_lifetime: float = 300.0
    """How long an action id stays valid."""
    code_action_reference_limit: int = 5000
    """How many action ids are kept; the oldest ones expire first."""
    default_max_results: int = 100
    """The cap of a collection whose tool names none."""
    tool_output_schema_mode: OutputSchemas = "Omit"
    """Whether ``tools/list`` publishes output schemas."""
    state_directory: Path | None = None
    """Where private state lies; by default the user's state directory of the system."""
    warnings: tuple[StartupWarning, ...] = field(default=(), compare=False)


def _number(low: float, high: float) -> Callable[[str], float]:
    def parse(value: str) -> float:
        number = float(value)
        if not low <= number <= high:
            raise ValueError(f"expected a number from {low:g} to {high:g}")
        return number

    return parse


def _whole(low: int, high: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        number = int(value)
        if not low <= number <= high:
            raise ValueError(f"expected a whole number from {low} to {high}")
        return number

    return parse


def _choice(values: tuple[str, ...]) -> Callable[[str], str]:
    def parse(value: str) -> str:
        found = {known.lower(): known for known in values}.get(value.lower())
        if found is None:
            raise ValueError(f"expected one of {', '.join(values)}")
        return found

    return parse


def _path(value: str) -> Path:
    path = Path(value).expanduser()
    if not value or "\0" in value:
        raise ValueError("expected a path")
    return path.absolute()


def _absolute_path(value: str) -> Path:
    path = Path(value).expanduser()
    if not path.is_absolute() or "\0" in value:
        # A client starts us anywhere, often in the workspace, where our state has no place.
        raise ValueError("expected an absolute path")
    return path


PARSERS: Mapping[str, Callable[[str], object]] = {
    "server": _choice(get_args(ServerKind)),
    "server_path": _path,
    "load_timeout": _number(0.1, LARGEST_WAIT),
    "request_timeout": _number(0.1, LARGEST_WAIT),
    "restart_timeout": _number(0.1, LARGEST_WAIT),
    "lease_wait": _number(0.0, LARGEST_WAIT),
    "server_view": _choice(get_args(ServerView)),
    "restore": _choice(get_args(Restore)),
    "external_changes": _choice(get_args(ExternalChanges)),
    "warm_up": _choice(get_args(WarmUp)),
    "watch": _choice(get_args(Watch)),
    "line_endings": _choice(get_args(LineEndings)),
    "commit_validation": _choice(get_args(CommitValidation)),
    "max_transaction_revisions": _whole(1, 10_000),
    "max_concurrent_queries": _whole(1, 1_000),
    "max_workspaces": _whole(1, 1_000),
    "code_action_reference_lifetime": _number(0.001, HOURS_24),
    "code_action_reference_limit": _whole(1, 1_000_000),
    "default_max_results": _whole(1, 1_000_000),
    "tool_output_schema_mode": _choice(get_args(OutputSchemas)),
    "state_directory": _absolute_path,
}
"""How each option's text becomes its value; a parser raises ``ValueError`` with what it expected."""


def option_names() -> tuple[str, ...]:
    """The names of all options in snake_case, in the order of ``Options``."""
    return tuple(f.name for f in fields(Options) if f.name in PARSERS)


def environment_name(option: str) -> str:
    """The environment twin of an option, for example ``ROSLYN_BRIDGE_LOAD_TIMEOUT``."""
    return ENVIRONMENT_PREFIX + option.upper()


def read_options(given: Mapping[str, str | None], environ: Mapping[str, str] = os.environ) -> Options:
    """Settle every option from the command line (``given``), else its environment twin, else its default.

    ``given`` maps snake_case option names to their texts; ``None`` means "not given".  Never raises for a bad
    value: the default stands, and the returned ``warnings`` say what was refused and what was expected.
    """
    values: dict[str, object] = {}
    warnings: list[StartupWarning] = []
    for name, parse in PARSERS.items():
        sources = (
            (f"--{name.replace('_', '-')}", given.get(name)),
            (environment_name(name), environ.get(environment_name(name))),
        )
        source, text = next(((s, t) for s, t in sources if t is not None), ("", None))
        if text is None:
            continue
        try:
            values[name] = parse(text)
        except ValueError as error:
            warnings.append(
                StartupWarning(
                    "StartupConfigurationFallback",
                    f"{source}: the value {text[:80]!r} was not used ({error}); the default stands.",
                )
            )
    return Options(**values, warnings=tuple(warnings))  # type: ignore[arg-type]  # each parser returns its field's type
