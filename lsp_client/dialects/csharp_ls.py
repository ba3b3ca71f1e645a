"""csharp-ls, the open C# server on Roslyn's libraries.

What a client must know, in short:

- It stops for good at a notification it does not know; while it is dead it still answers unknown *requests*.
- It loads when a question makes it load.  The end of its progress and an empty answer look the same after success
  and failure; only ``could not be loaded`` in a message, and a question really answered, tell them apart.
- After a change of a project file it loads anew, five seconds later, and silently goes back to the texts on disk.
- A close re-reads the file and shifts line 1 of one with a byte order mark, so documents are changed back instead.
- It marks no kinds, no diagnostics and no fix-alls, and it finds an action again by its title alone.
  See ``csharp_ls_listing`` for how its fixes and refactorings are told apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    has_symbols,
    hull,
    is_project_file,
    nearest_project,
    progress_heard,
    touching,
    wire_events,
)
from lsp_client.dialects.csharp_ls_listing import Offer, classify
from lsp_client.errors import ProtocolViolation, RequestTimedOut, ResponseError
from lsp_client.failures import WorkspaceLoadFailed
from lsp_client.messages import (
    ABSENT,
    CodeAction,
    Diagnostic,
    DiagnosticReport,
    LoggedMessage,
    Position,
    ProgressParams,
    Range,
    WorkDoneProgress,
    decode,
    decode_optional,
    encode,
)
from lsp_client.texts import LineRule, end_position
from lsp_client.uris import path_to_uri
from lsp_client.workspace_report import workspace_report

RELOAD_STARTS_WITHIN: Final = 20.0
"""Seconds from the event of a project file to the first sign of the reload: the server itself waits five."""

PROBE_TIMEOUT: Final = 15.0
"""Seconds for the second question that tells fixes from refactorings.  It is a listing of the whole document; a
document with so many errors that this does not suffice is left undecided."""

WARM_UP_DOCUMENTS: Final = 500
"""The largest solution that is compiled as a whole before somebody asks: some seconds on two cores."""

_PROJECT_IN_TEXT: Final = re.compile(r"'(?P<project>/[^'\n]*proj)'")
_SOLUTION_FAILED: Final = re.compile(r"^(?:csharp-ls: )?Solution .*could not be loaded")
"""Of the solution itself: MSBuild says the same of a single project, which the others do not suffer from."""
_PROJECT_FAILED: Final = re.compile(
    r"^csharp-ls: msbuildWorkspace\.Diagnostics: (?:\[(?P<kind>\w+)\] )?(?P<text>.*)", re.DOTALL
)
_FRAMEWORK: Final = re.compile(r"Will use MSBuild props: map \[[^\]\n]*\(TargetFramework, ([^)\s]+)\)")
_FINISHED: Final = re.compile(r"^csharp-ls: Finished loading solution")
_PREFIX: Final = re.compile(r"^csharp-ls: ")


class _ResolveData(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    text_document_uri: str
    range: Range


@dataclass(frozen=True, slots=True)
class CsharpLsDialect:
    """csharp-ls; see the top of the module."""

    name: str = "csharp-ls"
    display_name: str = "csharp-ls"
    limits: tuple[str, ...] = (
        "no fix-all of its own",
        "fixes for compiler diagnostics only",
        "kinds of actions are inferred",
        "files linked into several projects, or compiled for several frameworks, have no actions",
        "moved, renamed and deleted files are missing from edits",
    )
    syntax_only: bool = False
    has_diagnostics: bool = True
    has_formatting: bool = True
    edit_commands: frozenset[str] = frozenset()
    compiler_sources: tuple[str, ...] = ()
    notifications: frozenset[str] = DOCUMENT_NOTIFICATIONS
    has_fix_all: bool = False
    created_files_become_members: bool = True
    supports_target_framework: bool = False
    loads_every_framework: bool = False
    diagnostics_need_open_document: bool = False
    close_shows_disk: bool = False
    needs_known_document: bool = True
    reload_forgets_texts: bool = True
    deletion: Deletion = "file event"
    line_rule: LineRule = LineRule.ROSLYN

    def accepts(self, path: Path) -> bool:
        """Solutions and filters (seen with 0.28.0); a project has to be given through a solution that holds it."""
        return path.suffix.lower() in SOLUTION_SUFFIXES

    def command_line(
        self, command: Sequence[str], target: LoadTarget, *, log_directory: Path, client_process_id: int
    ) -> tuple[str, ...]:
        """The solution is named on the command line: left to itself the server takes the one with most projects."""
        del log_directory, client_process_id  # it has neither
        return (*command, "--solution", str(target.path))

    def environment(self) -> Mapping[str, str]:
        """English titles: they are what an action is found by."""
        return {**DOTNET_VARIABLES, "DOTNET_CLI_UI_LANGUAGE": "en-US"}

    def capabilities(self) -> dict[str, object]:
        """Without dynamic registration: everything is offered from the start, no round trip."""
        return client_capabilities(dynamic_registration=False, applies_edits=bool(self.edit_commands))

    def configuration(self, section: str, target: LoadTarget) -> object:
        """The defaults of the server are right: analyzers off, no virtual documents."""
        del section, target
        return None

    # --- loading ----------------------------------------------------------------------------------------

    def hear(self, method: str, params: msgspec.Raw, target: LoadTarget) -> Heard:
        """Log lines, messages and progress."""
        del target
        try:
            match method:
                case "window/logMessage" | "window/showMessage":
                    return _said(decode(params, LoggedMessage))
                case "$/progress":
                    return _progress(params)
                case _:
                    return NOTHING_HEARD
        except ProtocolViolation:
            return NOTHING_HEARD

    async def load(self, port: Port) -> None:
        """Ask something, which starts the load and is answered when it is over; then look at what was said.

        Raises WorkspaceLoadFailed when the solution could not be loaded, or when nothing proves that it was.
        """
        ended = port.watch.ended
        proved = await _answered(port)
        failure = port.watch.failure
        if failure is not None:
            raise WorkspaceLoadFailed(failure, port.watch.messages)
        if not proved and port.watch.ended <= ended:
            raise WorkspaceLoadFailed(
                "The server answered before it had loaded anything.", port.watch.messages
            )

    async def warm_up(self, port: Port) -> None:
        """Have all projects compiled, beside the question that proves the load, and only where that is soon done.

        To the server it is a request of the background: neither changes of documents nor questions wait for it.
        """
        documents = port.target.documents
        if documents is not None and documents <= WARM_UP_DOCUMENTS:
            await workspace_report(port, timeout=port.load_timeout)

    # --- code actions -----------------------------------------------------------------------------------

    async def knows(self, port: Port, path: Path) -> bool:
        """It answers ``null`` about a file that is no document, or several."""
        return await has_symbols(port, path)

    async def identify(self, port: Port, path: Path, project: ProjectChoice | None) -> Mapping[str, object]:
        """By its path alone: it has no document for a file of several projects."""
        del port, project
        return document(path)

    async def list_actions(
        self,
        port: Port,
        path: Path,
        place: Range,
        diagnostics: Sequence[Diagnostic] | None,
        project: ProjectChoice | None = None,
    ) -> ActionListing:
        """The actions of a place, with the kinds found by the rule of ``csharp_ls_listing``."""
        del project
        offers = await _offers(port, path, place)
        if not offers:
            return ActionListing(())
        if diagnostics is None:
            diagnostics = await _pull(port, path)
        near = touching(place, diagnostics)
        comparison: frozenset[str] | None = frozenset()
        if near and not all(offer.is_marked_fix for offer in offers):
            comparison = await _comparison(port, path, place, near)
        return classify(offers, place, near, comparison, self.edit_commands)

    def elsewhere(self, action: ServerAction, path: Path, place: Range) -> ServerAction | None:
        """It lists a place anew to resolve an action, and takes the first of its title: what it wants is the place."""
        try:
            payload = decode(action.payload, dict[str, msgspec.Raw])
            known = decode(payload.get("data", ABSENT), _ResolveData)
        except ProtocolViolation:
            return None  # another version, which keeps other data
        if known.range != action.range:
            return None
        there = {**payload, "data": _ResolveData(path_to_uri(path), place)}
        return replace(action, payload=msgspec.Raw(encode(there)), range=place, place=None, diagnostics=None)

    # --- files ------------------------------------------------------------------------------------------

    async def files_changed(self, holder: Holder, events: Sequence[FileEvent]) -> bool:
        """Tell in the way that does least harm; reload when anything but sources changed.

        Source events are taken in in order, before any later question.  A document that is open is never named in a
        "changed" event, which would replace its text; a file with a byte order mark is opened with its decoded text.
        """
        if any(event.path.suffix.lower() in SOLUTION_SUFFIXES for event in events):
            return False
        told: list[FileEvent] = []
        other = False
        for event in events:
            if event.path.suffix.lower() != ".cs":
                other = True
            elif event.kind == "deleted":
                if holder.is_open(event.path):
                    await holder.let_go(event.path)
                else:
                    told.append(event)
            elif holder.is_open(event.path) or await _is_opened_rather(holder, event):
                text = holder.text_on_disk(event.path)
                if text is not None:
                    await holder.hold(event.path, text)
            else:
                told.append(event)
        if told:
            await holder.tell("workspace/didChangeWatchedFiles", {"changes": wire_events(told)})
        return await self._reloaded(holder, events) if other else True

    async def _reloaded(self, holder: Holder, events: Sequence[FileEvent]) -> bool:
        """Make it load anew, wait for that, and note that it has forgotten the open texts.

        Only project files are watched by it, so for any other input the project nearest to it is named.
        """
        projects = [
            event.path if is_project_file(event.path) else nearest_project(event.path, holder.target)
            for event in events
            if event.path.suffix.lower() != ".cs"
        ]
        project = next((found for found in projects if found is not None), None)
        project = project or next(iter(holder.target.projects), None)
        if project is None:
            return False
        begun, ended = holder.watch.begun, holder.watch.ended
        await holder.tell(
            "workspace/didChangeWatchedFiles", {"changes": wire_events([FileEvent(project, "changed")])}
        )
        with anyio.move_on_after(RELOAD_STARTS_WITHIN) as start:
            await holder.watch.begun_beyond(begun)
        if start.cancelled_caught:
            return False
        try:
            with anyio.move_on_after(holder.load_timeout) as load:
                await holder.watch.ended_beyond(ended)
                await _answered(holder)
        finally:
            # Whatever becomes of the reload: the open texts are gone, and a wrong belief in them would put later
            # changes into the wrong place.
            holder.forget_documents()
        return not load.cancelled_caught and holder.watch.failure is None

    def used_target_framework(self, stderr: str) -> str | None:
        """It logs the global properties it sets for all projects, and those win over the environment."""
        chosen = _FRAMEWORK.findall(stderr)
        return chosen[-1] if chosen else None

    async def is_alive(self, port: Port) -> bool:
        """Asks for the symbols of a file it should know."""
        return await answers_a_question(port)


# --- what it says -------------------------------------------------------------------------------------------


def _said(logged: LoggedMessage) -> Heard:
    text = first_lines(_PREFIX.sub("", logged.message))
    if _SOLUTION_FAILED.search(logged.message):
        return Heard(signal="failed", message=LoadMessage("error", text))
    if found := _PROJECT_FAILED.match(logged.message):
        severity: Severity = "warning" if (found["kind"] or "Failure").lower() == "warning" else "error"
        project = _PROJECT_IN_TEXT.search(found["text"])
        return Heard(
            message=LoadMessage(
                severity,
                first_lines(found["text"]),
                Path(project["project"]) if project else None,
            )
        )
    if _FINISHED.match(logged.message):
        return Heard(message=LoadMessage("info", text))
    severity = LOG_SEVERITIES.get(logged.type, "info")
    return NOTHING_HEARD if severity == "info" else Heard(message=LoadMessage(severity, text))


def _progress(params: msgspec.Raw) -> Heard:
    progress = decode(decode(params, ProgressParams).value, WorkDoneProgress)
    heard = progress_heard(params)
    text = progress.title or progress.message or ""
    if progress.kind == "begin" and text.startswith("Loading workspace folder"):
        return replace(heard, signal="began")
    if progress.kind == "end" and text.startswith("Finished loading workspace folder"):
        return replace(heard, signal="ended")
    return heard


async def _is_opened_rather(holder: Holder, event: FileEvent) -> bool:
    """Whether a source file is better opened than named in an event: the event would read it with its mark.

    Not where the server has no single document for it, because opening then adds one.
    """
    if not holder.has_byte_order_mark(event.path):
        return False
    return event.kind == "created" or await has_symbols(holder, event.path)


async def _answered(port: Port) -> bool:
    """Ask a question that waits for the load.  True: the answer itself proves that something is loaded."""
    probe = port.probe_file()
    try:
        if probe is None:
            await port.ask("workspace/symbol", {"query": "Program"}, timeout=port.load_timeout)
            return False
        raw = await port.ask(
            "textDocument/documentSymbol", {"textDocument": document(probe)}, timeout=port.load_timeout
        )
        return bool(decode_optional(raw, list[msgspec.Raw]))
    except (ResponseError, ProtocolViolation):
        return False


# --- its lists of actions -----------------------------------------------------------------------------------


async def _offers(port: Port, path: Path, place: Range, *, timeout: float | None = None) -> list[Offer]:
    params = {"textDocument": document(path), "range": place, "context": {"diagnostics": []}}
    raw = await port.ask("textDocument/codeAction", params, timeout=timeout)
    items = decode_optional(raw, list[msgspec.Raw]) or []
    return [Offer(item, decode(item, CodeAction)) for item in items]


async def _pull(port: Port, path: Path) -> tuple[Diagnostic, ...]:
    raw = await port.ask("textDocument/diagnostic", {"textDocument": document(path)})
    report = decode_optional(raw, DiagnosticReport)
    return tuple(report.items or ()) if report is not None else ()


async def _comparison(
    port: Port, path: Path, place: Range, near: Sequence[Diagnostic]
) -> frozenset[str] | None:
    """The titles of a second list with the same diagnostics, ``None`` when it cannot be had."""
    text = port.text_seen(path)
    if text is None:
        return None
    whole = Range(Position(0, 0), Position(*end_position(text, LineRule.ROSLYN)))
    if place.start == whole.start and place.end >= hull(near).end:
        # All of the document that matters was asked for already: the other place is the span of the diagnostics.
        whole = hull(near)
    try:
        offers = await _offers(port, path, whole, timeout=PROBE_TIMEOUT)
    except (RequestTimedOut, ResponseError, ProtocolViolation):
        return None
    return frozenset(offer.action.title for offer in offers)
