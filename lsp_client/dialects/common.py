"""Small things that several dialects share; all pure but for the one question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lsp_client.dialects.base import FileEvent, Heard, LoadTarget, Port, Severity
from lsp_client.errors import METHOD_NOT_FOUND, ProtocolViolation, ResponseError
from lsp_client.messages import (
    CodeAction,
    Diagnostic,
    ProgressParams,
    Range,
    WorkDoneProgress,
    decode,
    decode_optional,
    decode_plain,
)
from lsp_client.texts import scrub
from lsp_client.uris import path_to_uri

LOG_SEVERITIES: Final[Mapping[int, Severity]] = {1: "error", 2: "warning", 3: "info", 4: "info", 5: "info"}
"""LSP's message types as severities."""

DOTNET_VARIABLES: Final[Mapping[str, str]] = {
    # A build node that outlives a restore keeps its pipe open, and the load never ends.
    "MSBUILDDISABLENODEREUSE": "1",
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "DOTNET_NOLOGO": "1",
    # Profiling the first runs of methods costs more than it gives back in the life of such a server.  Processor time
    # for a load and a fix-all over 160 documents: csharp-ls 22 s with it and 17 s without, Roslyn 15 and 13.
    "DOTNET_TieredPGO": "0",
    # How long no new method must have been met before hot ones are compiled again, in hexadecimal milliseconds: in the
    # first seconds that competes with the work itself.  Load and fix-all of csharp-ls: 15.3 s of processor for 16.6 s.
    "DOTNET_TC_CallCountingDelayMs": "500",
}
"""What every server that runs ``dotnet`` needs in its environment."""

SOLUTION_SUFFIXES: Final = frozenset({".sln", ".slnx", ".slnf"})
"""Solutions and their filters."""

_ABOUT_THE_RULE: Final = re.compile(
    r"^(?:Suppress or configure issues$|(?:Suppress|Configure) [A-Za-z]+\d+\b|Configure severity )"
)
"""Titles of what silences a diagnostic or sets its severity, and of the group that holds them."""

_BEYOND_SOURCE: Final = re.compile(
    r"(?:.* - )?(?:Install package '|Find and install latest version|Use local version '|Install version '"
    r"|Install with package manager|Add (?:project |assembly )?reference to ')"
)
"""Titles of what installs a package or changes a project: an edit of sources could be but half of it."""

TITLE_TAKEN: Final = "another action of the same title comes first"
"""Why an action cannot be used that the server would not tell from the one before it."""

EVENT_KINDS: Final = {"created": 1, "changed": 2, "deleted": 3}

MAX_TEXT: Final = 2000
"""How much of one log line is kept, in characters: stack traces follow the sentence that matters."""


def document(path: Path) -> dict[str, str]:
    """A ``TextDocumentIdentifier``."""
    return {"uri": path_to_uri(path)}


def wire_events(events: Iterable[FileEvent]) -> list[dict[str, object]]:
    """File events as the protocol has them."""
    return [{"uri": path_to_uri(event.path), "type": EVENT_KINDS[event.kind]} for event in events]


def lsp_diagnostics(diagnostics: Sequence[Diagnostic]) -> list[dict[str, object]]:
    """Diagnostics as context of a question: only the fields that servers match by."""
    return [
        {
            "range": item.range,
            "message": item.message,
            **({} if item.severity is None else {"severity": item.severity}),
            **({} if item.code is None else {"code": item.code}),
        }
        for item in diagnostics
    ]


def touching(place: Range, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics that share at least a boundary with the place, as servers themselves judge it."""
    return tuple(
        item for item in diagnostics if item.range.start <= place.end and place.start <= item.range.end
    )


def hull(diagnostics: Sequence[Diagnostic]) -> Range:
    """The smallest range that holds all of them; there must be at least one."""
    return Range(min(item.range.start for item in diagnostics), max(item.range.end for item in diagnostics))


def suppresses_or_configures(title_path: Sequence[str]) -> bool:
    """Whether an action silences a diagnostic or sets its severity; it mends nothing, so it is never made for a scope."""
    return any(_ABOUT_THE_RULE.match(title) for title in title_path)


def command_of(action: CodeAction) -> str | None:
    """The name of the command that a list entry runs, be it an action with a command or a command alone."""
    if action.command is None:
        return None
    match decode_plain(action.command):
        case str() as name:
            return name
        case {"command": str() as name}:
            return name
        case _:
            return ""


def unusable(action: CodeAction, edit_commands: frozenset[str]) -> str | None:
    """Why an action cannot be tried, by its list entry alone; ``None`` when it can."""
    if action.disabled is not None:
        return action.disabled.reason or "disabled"
    command = command_of(action)
    if command is not None and command not in edit_commands:
        return "command"
    return "project change" if _BEYOND_SOURCE.match(action.title) else None


def id_and_message_of(diagnostics: Iterable[Diagnostic]) -> tuple[tuple[str, str], ...]:
    """What identifies diagnostics wherever they stand; each once, in their order."""
    return tuple(dict.fromkeys((item.id or "", scrub(item.message)) for item in diagnostics))


def is_project_file(path: Path) -> bool:
    """Whether the path names a project rather than a solution or filter."""
    return path.suffix.lower().endswith("proj")


def nearest_project(path: Path, target: LoadTarget) -> Path | None:
    """The project whose directory is the nearest above the file; ``None`` when no known project's is.

    Several projects in one directory: the first one in the target's order.
    """
    known = {project.parent: project for project in reversed(target.projects)}
    if is_project_file(target.path):
        known.setdefault(target.path.parent, target.path)
    for directory in path.parents:
        if directory in known:
            return known[directory]
    return None


def first_lines(text: str) -> str:
    """The sentence of a log line, without the stack that follows it."""
    kept = [line for line in text.splitlines() if not line.lstrip().startswith("at ")]
    return "\n".join(kept)[:MAX_TEXT].strip()


def progress_heard(params: msgspec.Raw) -> Heard:
    """Work-done progress as news for whoever waits.  Raises ProtocolViolation for odd params."""
    progress = decode(decode(params, ProgressParams).value, WorkDoneProgress)
    text = progress.message or progress.title or ""
    return Heard(percent=progress.percentage, progress=text)


async def answers_a_question(port: Port) -> bool:
    """Whether the server answers a question that needs its real work.

    An unknown method is answered by a server whose work has stopped, so that is no proof; any other answer is.
    """
    probe = port.probe_file()
    try:
        if probe is None:
            await port.ask("workspace/symbol", {"query": "Program"})
        else:
            await port.ask("textDocument/documentSymbol", {"textDocument": document(probe)})
    except ResponseError as error:
        return error.code != METHOD_NOT_FOUND
    except ProtocolViolation:
        return False
    return True


async def has_symbols(port: Port, path: Path) -> bool:
    """Whether the server lists the symbols of the file, be there none: ``null`` means that it has no such document."""
    try:
        raw = await port.ask("textDocument/documentSymbol", {"textDocument": document(path)})
        return decode_optional(raw, list[msgspec.Raw]) is not None
    except (ResponseError, ProtocolViolation):
        return False
