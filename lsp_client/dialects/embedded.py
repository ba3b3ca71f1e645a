"""Our own syntax-only server, which speaks Roslyn's dialect.

It is a stand-in and says so: it knows no meaning, so no diagnostics, no references, no rename.  It reads files when
asked, so file events need no confirmation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lsp_client.dialects.base import FileEvent, Holder, LoadTarget, Port, ProjectChoice
from lsp_client.dialects.common import document, has_symbols, wire_events
from lsp_client.dialects.roslyn import RoslynDialect


@dataclass(frozen=True, slots=True)
class EmbeddedDialect(RoslynDialect):
    """The embedded server; see the top of the module."""

    name: str = "embedded"
    display_name: str = "Embedded syntax server"
    limits: tuple[str, ...] = ("syntax only",)
    syntax_only: bool = True
    has_diagnostics: bool = False
    created_files_become_members: bool = True  # no answer of it depends on another file
    has_formatting: bool = False
    supports_target_framework: bool = True
    diagnostics_need_open_document: bool = False

    def command_line(
        self, command: Sequence[str], target: LoadTarget, *, log_directory: Path, client_process_id: int
    ) -> tuple[str, ...]:
        """The caller's command and the pipe."""
        del target, log_directory
        return (*command, "--stdio", "--clientProcessId", str(client_process_id))

    def environment(self) -> Mapping[str, str]:
        """Nothing: it runs no .NET."""
        return {}

    async def knows(self, port: Port, path: Path) -> bool:
        """Any C# file will do."""
        return await has_symbols(port, path)

    async def identify(self, port: Port, path: Path, project: ProjectChoice | None) -> Mapping[str, object]:
        """By its path alone: the syntax of a file is the same in all its projects."""
        del port, project
        return document(path)

    async def files_changed(self, holder: Holder, events: Sequence[FileEvent]) -> bool:
        """Tell; project and solution files are read by it only while it loads."""
        if any(event.path.suffix.lower() != ".cs" for event in events):
            return False
        if told := [event for event in events if not holder.is_open(event.path)]:
            await holder.tell("workspace/didChangeWatchedFiles", {"changes": wire_events(told)})
        for event in events:
            if event.kind == "deleted":
                await holder.let_go(event.path)
            text = holder.text_on_disk(event.path) if holder.is_open(event.path) else None
            if text is not None:
                await holder.hold(event.path, text)
        return True
