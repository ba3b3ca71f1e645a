"""Microsoft's Roslyn language server (``Microsoft.CodeAnalysis.LanguageServer``), and servers of its dialect.

What a client must know, in short:

- ``initialized`` waits for our answers to registrations and configuration, and an error answer ends the process.
- A mistake with open documents ends the process; changes must carry a range.
- A load starts by ``solution/open`` or ``project/open`` and has *ended* at
  ``workspace/projectInitializationComplete``.  A solution that cannot be read never gets there: only an error in the
  log tells.
- Actions are listed in groups and with a "Fix All" twin beside each action that has one: see ``roslyn_listing``.
- File events are taken in some time later, without an answer.  So a changed file is shown by an open document, and
  for created and deleted files the membership in a project is asked for until it is as it should be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import msgspec

from lsp_client.capabilities import client_capabilities
from lsp_client.dialects.base import (
    DOCUMENT_NOTIFICATIONS,
    NOTHING_HEARD,
    ActionListing,
    Deletion,
    FileEvent,
    Heard,
    Holder,
    LoadMessage,
    LoadTarget,
    Port,
    ProjectChoice,
    ServerAction,
    Severity,
)
from lsp_client.dialects.common import (
    DOTNET_VARIABLES,
    LOG_SEVERITIES,
    SOLUTION_SUFFIXES,
    answers_a_question,
    document,
    first_lines,
    is_project_file,
    lsp_diagnostics,
    nearest_project,
    progress_heard,
    touching,
    wire_events,
)
from lsp_client.dialects.roslyn_listing import read_listing
from lsp_client.errors import ProtocolViolation, ResponseError
from lsp_client.failures import DocumentNotSeen, WorkspaceLoadFailed
from lsp_client.messages import (
    Diagnostic,
    LoggedMessage,
    Range,
    decode,
    decode_optional,
)
from lsp_client.texts import LineRule
from lsp_client.uris import path_to_uri

LOAD_ERROR_GRACE: Final = 5.0
"""Seconds without any sign of a load after the server logged that it could not open the solution.  The server says
nothing more then; one that goes on loading all the same gives a sign within this time."""

TAKE_IN_TIMEOUT: Final = 20.0
"""Seconds until a created, deleted or project file must have shown its effect: a reload is batched by 0.1 s and takes
about a second for one project, several on a busy machine."""

SECOND_LOOK: Final = 2.0
"""Seconds for a second reload to follow the first: events that arrive apart make more than one batch."""

MEMBERSHIP_INTERVAL: Final = 0.1
"""Seconds between two questions about membership, when the server gives no sign of its own."""

MAX_HELD: Final = 256
"""More changed files than this at once (another branch was checked out) are for a new process, not for open documents."""

RELOAD_FILES: Final = frozenset({"global.json", ".editorconfig", ".globalconfig"})
"""Taken in without a sign, if at all."""

_LOADED: Final = re.compile(r"^Successfully completed load of (?P<project>.+)$")
_TROUBLE: Final = re.compile(
    r"^(?P<kind>Error|Warning) while loading (?P<project>.+?proj): (?P<text>.*)$", re.DOTALL
)
_UNRESOLVED: Final = re.compile(r"^Project (?P<project>.+?proj) has unresolved dependencies")
_RELOADED: Final = re.compile(r"^Completed \(re\)load of ")
_CONTEXT: Final = re.compile(r"^(?:\[[^\]]*\] )+")
_VERSION: Final = re.compile(r"Server information:?\s*version:?\s*(?P<version>\S+(?: \([^)]*\))?)")
_OPEN_FAILED: Final = re.compile(r"solution/open|project/open|OpenSolution|OpenProjects")
SETTINGS: Final[Mapping[str, object]] = {
    # Pulled by us alone, so the wide scope costs nothing until somebody asks for closed files.
    "background_analysis.dotnet_compiler_diagnostics_scope": "fullSolution",
    "background_analysis.dotnet_analyzer_diagnostics_scope": "openFiles",
    # Never shown by us.
    "code_lens.dotnet_enable_references_code_lens": "false",
    "code_lens.dotnet_enable_tests_code_lens": "false",
    # May download sources.
    "navigation.dotnet_navigate_to_source_link_and_embedded_sources": "false",
}
"""What differs from the server's defaults, by section without its language prefix."""

_AUTOMATIC_RESTORE: Final = "projects.dotnet_enable_automatic_restore"


class _Toast(msgspec.Struct, frozen=True, rename="camel"):
    message: str = ""
    message_type: int = 3


class _Contexts(msgspec.Struct, frozen=True):
    contexts: list[_ProjectContext] = msgspec.field(default_factory=list, name="_vs_projectContexts")


class _RawContexts(msgspec.Struct, frozen=True):
    contexts: list[msgspec.Raw] = msgspec.field(default_factory=list, name="_vs_projectContexts")


class _ProjectContext(msgspec.Struct, frozen=True):
    label: str = msgspec.field(default="", name="_vs_label")
    is_miscellaneous: bool = msgspec.field(default=False, name="_vs_is_miscellaneous")


@dataclass(frozen=True, slots=True)
class RoslynDialect:
    """Microsoft's server; see the top of the module."""

    name: str = "roslyn"
    display_name: str = "Roslyn language server"
    limits: tuple[str, ...] = ()
    syntax_only: bool = False
    has_diagnostics: bool = True
    has_formatting: bool = True
    edit_commands: frozenset[str] = frozenset()
    compiler_sources: tuple[str, ...] = ("syntax", "DocumentCompilerSemantic")
    has_fix_all: bool = True
    notifications: frozenset[str] = DOCUMENT_NOTIFICATIONS | {
        "solution/open",
        "project/open",
        "workspace/didChangeConfiguration",
    }
    created_files_become_members: bool = False
    supports_target_framework: bool = True
    loads_every_framework: bool = True
    diagnostics_need_open_document: bool = True
    close_shows_disk: bool = True
    needs_known_document: bool = False
    reload_forgets_texts: bool = False
    deletion: Deletion = "empty text"
    line_rule: LineRule = LineRule.ROSLYN

    def accepts(self, path: Path) -> bool:
        """Solutions, filters and C# projects."""
        return path.suffix.lower() in {*SOLUTION_SUFFIXES, ".csproj"}

    def command_line(
        self, command: Sequence[str], target: LoadTarget, *, log_directory: Path, client_process_id: int
    ) -> tuple[str, ...]:
        """The documented line; every option is given, because old builds demand them."""
        del target  # it is opened by a message
        return (
            *command,
            "--stdio",
            "--logLevel",
            "Information",
            "--extensionLogDirectory",
            str(log_directory),
            "--telemetryLevel",
            "off",
            "--clientProcessId",
            str(client_process_id),
        )

    def environment(self) -> Mapping[str, str]:
        """What its .NET processes need."""
        return DOTNET_VARIABLES

    def capabilities(self) -> dict[str, object]:
        """With dynamic registration: watching is ours, and all sources of diagnostics answer."""
        return client_capabilities(dynamic_registration=True, applies_edits=bool(self.edit_commands))

    def configuration(self, section: str, target: LoadTarget) -> object:
        """Settings by name; ``None`` keeps a default, and is the only safe answer for what is unknown."""
        plain = section.partition("|")[2] or section
        if plain == _AUTOMATIC_RESTORE:
            return "true" if target.automatic_restore else "false"
        return SETTINGS.get(plain)

    # --- loading ----------------------------------------------------------------------------------------

    def hear(self, method: str, params: msgspec.Raw, target: LoadTarget) -> Heard:
        """Readiness, log lines, toasts and progress."""
        try:
            match method:
                case "workspace/projectInitializationComplete":
                    return Heard(signal="ended")
                case "window/logMessage":
                    return self._log_line(decode(params, LoggedMessage), target)
                case "window/_roslyn_showToast":
                    toast = decode(params, _Toast)
                    return _shown(toast.message, toast.message_type)
                case "window/showMessage":
                    shown = decode(params, LoggedMessage)
                    return _shown(shown.message, shown.type)
                case "$/progress":
                    return progress_heard(params)
                case _:
                    return NOTHING_HEARD
        except ProtocolViolation:
            return NOTHING_HEARD

    def _log_line(self, logged: LoggedMessage, target: LoadTarget) -> Heard:
        text = _CONTEXT.sub("", logged.message)
        if found := _TROUBLE.match(text):
            severity: Severity = "error" if found["kind"] == "Error" else "warning"
            return Heard(message=LoadMessage(severity, found["text"].strip() or text, Path(found["project"])))
        if found := _LOADED.match(text):
            return Heard(message=LoadMessage("info", text, Path(found["project"])))
        if found := _UNRESOLVED.match(text):
            return Heard(message=LoadMessage("warning", text, Path(found["project"])))
        if _RELOADED.match(text):
            return Heard(signal="reloaded")
        if found := _VERSION.search(text):
            return Heard(version=found["version"].rstrip(","))
        severity = LOG_SEVERITIES.get(logged.type, "info")
        of_restore = logged.message.startswith("[Restore]")
        if severity == "error" and not of_restore and _tells_of_failed_open(logged.message, target):
            return Heard(signal="failed", message=LoadMessage("error", first_lines(text)))
        if severity == "info" or not (of_restore or logged.message.startswith("[LanguageServerProject")):
            return NOTHING_HEARD
        return Heard(message=LoadMessage(severity, first_lines(text)))

    async def load(self, port: Port) -> None:
        """Open the solution or project and wait for the end of its load.

        Raises WorkspaceLoadFailed when the server logged that it could not open it and then fell silent.
        """
        ended = port.watch.ended
        target = port.target
        if is_project_file(target.path):
            await port.tell("project/open", {"projects": [path_to_uri(target.path)]})
        else:
            await port.tell("solution/open", {"solution": path_to_uri(target.path)})
        await port.watch.ended_beyond(ended)
        while port.watch.ended <= ended:
            activity = port.watch.activity
            with anyio.move_on_after(LOAD_ERROR_GRACE) as silence:
                await port.watch.active_beyond(activity)
            if silence.cancelled_caught:
                raise WorkspaceLoadFailed(port.watch.failure or "the load failed", port.watch.messages)

    async def warm_up(self, port: Port) -> None:
        """Nothing: its first answer costs seconds of one core, and asked beside a caller's it makes that one wait."""
        del port

    # --- code actions -----------------------------------------------------------------------------------

    async def knows(self, port: Port, path: Path) -> bool:
        """It answers with empty lists about a file it has never heard of, so membership is asked for."""
        return await is_member(port, path)

    async def identify(self, port: Port, path: Path, project: ProjectChoice | None) -> Mapping[str, object]:
        """With the server's own word for the project, which it takes for the first one otherwise."""
        if project is None:
            return document(path)
        raw = await port.ask("textDocument/_vs_getProjectContexts", {"_vs_textDocument": document(path)})
        known = decode_optional(raw, _RawContexts)
        contexts = () if known is None else known.contexts
        for context in contexts:
            if _means(decode(context, _ProjectContext), project):
                return {**document(path), "_vs_projectContext": context}
        if len(contexts) > 1:
            raise DocumentNotSeen(path, self.display_name)
        return document(path)

    async def list_actions(
        self,
        port: Port,
        path: Path,
        place: Range,
        diagnostics: Sequence[Diagnostic] | None,
        project: ProjectChoice | None = None,
    ) -> ActionListing:
        """The leaves at a place.  The diagnostics given as context come back on the fixes that belong to them."""
        context = touching(place, diagnostics or ())
        raw = await port.ask(
            "textDocument/codeAction",
            {
                "textDocument": await self.identify(port, path, project),
                "range": place,
                "context": {"diagnostics": lsp_diagnostics(context)},
            },
        )
        known = context if diagnostics is not None else None
        return read_listing(raw, place, known, self.edit_commands)

    def elsewhere(self, action: ServerAction, path: Path, place: Range) -> ServerAction | None:
        """Never: its actions carry what only a listing knows."""
        del action, path, place
        return None

    # --- files ------------------------------------------------------------------------------------------

    async def files_changed(self, holder: Holder, events: Sequence[FileEvent]) -> bool:
        """Tell, show changed files by open documents, and wait until members came and went."""
        if any(_needs_new_process(event.path) for event in events):
            return False
        sources = [event for event in events if event.path.suffix.lower() == ".cs"]
        others = [event for event in events if event.path.suffix.lower() != ".cs"]
        changed = [event.path for event in sources if event.kind == "changed"]
        moved = [event for event in sources if event.kind != "changed"]
        if len(changed) > MAX_HELD:
            return False
        told = [event for event in events if not (event.kind == "changed" and holder.is_open(event.path))]
        owners = {event.path: nearest_project(event.path, holder.target) for event in moved}
        told += [FileEvent(owner, "changed") for owner in dict.fromkeys(owners.values()) if owner is not None]
        reloads = holder.watch.reloads
        if told:
            await holder.tell("workspace/didChangeWatchedFiles", {"changes": wire_events(told)})
        for event in moved:
            if event.kind == "deleted":
                await holder.let_go(event.path)
        for path in changed:
            text = holder.text_on_disk(path)
            if text is not None:
                await holder.hold(path, text)
        if moved or others:
            return None not in owners.values() and await self._taken_in(holder, moved, reloads)
        return True

    async def _taken_in(self, holder: Holder, moved: Sequence[FileEvent], reloads: int) -> bool:
        """Whether the projects were evaluated again, and the moved files are where that leaves them.

        A created file that is no member after the reload belongs to no project: its absence is the answer.  A
        deleted file that still is a member means that the server has not understood.
        """
        with anyio.move_on_after(TAKE_IN_TIMEOUT) as bound:
            await holder.watch.reloaded_beyond(reloads)
        if bound.cancelled_caught:
            return bool(moved) and not await self._misplaced(holder, moved)
        with anyio.move_on_after(SECOND_LOOK):
            while await self._misplaced(holder, moved):
                with anyio.move_on_after(MEMBERSHIP_INTERVAL):
                    await holder.watch.reloaded_beyond(holder.watch.reloads)
        return not any(event.kind == "deleted" for event in await self._misplaced(holder, moved))

    async def _misplaced(self, holder: Holder, moved: Sequence[FileEvent]) -> list[FileEvent]:
        """Those of the moved files that are no member yet, or still one."""
        return [event for event in moved if await is_member(holder, event.path) != (event.kind == "created")]

    def used_target_framework(self, stderr: str) -> str | None:
        """It chooses none: the environment decides."""
        del stderr
        return None

    async def is_alive(self, port: Port) -> bool:
        """Asks for the symbols of a file it should know."""
        return await answers_a_question(port)


def _needs_new_process(path: Path) -> bool:
    """A changed solution is one such case: opening it again would add to the old one, nothing unloads."""
    return path.suffix.lower() in SOLUTION_SUFFIXES or path.name.lower() in RELOAD_FILES


def _tells_of_failed_open(message: str, target: LoadTarget) -> bool:
    return _OPEN_FAILED.search(message) is not None or str(target.path) in message


def _shown(message: str, kind: int) -> Heard:
    """A message meant for the user's eyes.  It sums up what the log has said about projects already."""
    severity = LOG_SEVERITIES.get(kind, "info")
    return Heard(message=LoadMessage("warning" if severity == "error" else severity, first_lines(message)))


def _means(context: _ProjectContext, project: ProjectChoice) -> bool:
    """Labels are a project's name, with the framework in brackets where it has several; builds differ in a space."""
    label = context.label.replace(" ", "")
    name = project.name.replace(" ", "")
    return label in {name, f"{name}({project.target_framework})"}


async def is_member(port: Port, path: Path) -> bool:
    """Whether the file belongs to a loaded project."""
    params = {"_vs_textDocument": document(path)}
    try:
        raw = await port.ask("textDocument/_vs_getProjectContexts", params)
        contexts = decode_optional(raw, _Contexts)
    except (ResponseError, ProtocolViolation):
        return False
    return contexts is not None and any(not context.is_miscellaneous for context in contexts.contexts)
