"""What one kind of language server is like: the seam between the session and its servers.

A dialect answers every question of the kind "how does this server ...?": how it is launched, when its load has
ended, how its lists of actions are read, which notifications it survives, what its file events mean to it.  It
deliberately knows no process, no MCP, no workspace and no transaction; what it needs of its one running server it
gets through `Port`.  Nothing outside this package asks which server it is talking to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from lsp_client.messages import Diagnostic, Range
from lsp_client.texts import LineRule

ActionKind = Literal["CodeFix", "Refactoring"]
Severity = Literal["error", "warning", "info"]
EventKind = Literal["created", "changed", "deleted"]
LoadSignal = Literal["began", "ended", "reloaded", "failed"]
Deletion = Literal["empty text", "file event"]

FIX_ALL_SCOPES = ("Document", "Project", "Solution")
"""The scopes of a fix-all that have a name here; servers may offer more, which are left out."""

DOCUMENT_NOTIFICATIONS = frozenset(
    {
        "initialized",
        "exit",
        "$/cancelRequest",
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/didClose",
        "workspace/didChangeWatchedFiles",
    }
)
"""The notifications every server here understands; a dialect adds its own."""


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """What a server is to load.

    ``path`` is the solution, filter or project file; ``root`` the workspace folder, and the server's working
    directory, so that a ``global.json`` beside the solution counts; ``projects`` the project files in it, as far as
    they are known, and ``documents`` how many files they compile (``None``: not known).  ``automatic_restore`` lets a server that can run ``dotnet restore`` do so by itself.
    """

    path: Path
    root: Path
    projects: tuple[Path, ...] = ()
    automatic_restore: bool = False
    documents: int | None = None


@dataclass(frozen=True, slots=True)
class LoadMessage:
    """One thing the server said about a load; ``project`` when it was about one project."""

    severity: Severity
    text: str
    project: Path | None = None


@dataclass(frozen=True, slots=True)
class LoadReport:
    """How a load went, in the server's words, and what this server can never do (``limits``, short phrases).

    ``tree_refused`` says why it has no tree of its own to look at, where it was to have one.
    """

    messages: tuple[LoadMessage, ...]
    limits: tuple[str, ...]
    tree_refused: str | None = None

    @property
    def errors(self) -> tuple[LoadMessage, ...]:
        """The messages that report a failure."""
        return tuple(message for message in self.messages if message.severity == "error")


@dataclass(frozen=True, slots=True)
class ServerAction:
    """One code action as its server offers it; a leaf, never a group and never a "Fix All" twin.

    ``title_path`` holds all titles from the menu down, its last one being ``title``.  ``kind`` is the server's own
    word, or, with ``kind_inferred``, a conclusion of the dialect.  ``diagnostics`` are the (id, message) pairs a code
    fix belongs to; ``None`` means that this cannot be known.  ``range`` is the zero-based UTF-16 range that was
    asked about, ``place`` the range of the first of its diagnostics, ``None`` where no diagnostic gives it one.  ``payload`` goes back to the server verbatim.  ``ambiguous`` says that the same title occurs more
    than once at this place: resolving takes the first, which is this one.  ``needs`` is the reason why an omitted
    action cannot be used.
    """

    title: str
    title_path: tuple[str, ...]
    kind: ActionKind
    kind_inferred: bool
    diagnostics: tuple[tuple[str, str], ...] | None
    range: Range
    fix_all_scopes: tuple[str, ...]
    payload: msgspec.Raw
    is_preferred: bool = False
    needs: str | None = None
    ambiguous: bool = False
    fix_all_payload: msgspec.Raw | None = None
    place: Range | None = None


@dataclass(frozen=True, slots=True)
class ActionListing:
    """The usable actions of one place, and the ones left out (each with its ``needs``).

    ``diagnostics_known``: every code fix here names its diagnostics.  ``kinds_decided``: each ``kind`` is the
    server's word or follows from a rule that held; when it is false, some kinds are only likely.
    """

    actions: tuple[ServerAction, ...]
    omitted: tuple[ServerAction, ...] = ()
    diagnostics_known: bool = True
    kinds_decided: bool = True

    @property
    def left_out(self) -> int:
        """How many actions the server offered that cannot be used."""
        return len(self.omitted)


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A change on disk that has already happened."""

    path: Path
    kind: EventKind


@dataclass(frozen=True, slots=True)
class ProjectChoice:
    """The project in whose context a document is meant that several projects, or several frameworks, compile.

    ``name`` as MSBuild has it; ``target_framework`` where the project has several.
    """

    name: str
    target_framework: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentView:
    """The differences to the disk that a server must see.

    ``texts`` holds the whole text (no byte order mark) of each document that differs, created ones included;
    ``created`` those of them that are not on disk; ``deleted`` the files on disk that are to be gone.
    """

    texts: Mapping[Path, str] = field(default_factory=dict)
    created: frozenset[Path] = frozenset()
    deleted: frozenset[Path] = frozenset()


@dataclass(frozen=True, slots=True)
class Heard:
    """What one notification of the server meant for the load."""

    signal: LoadSignal | None = None
    message: LoadMessage | None = None
    version: str | None = None
    percent: float | None = None
    progress: str | None = None


NOTHING_HEARD = Heard()


class Watch(Protocol):
    """The story of the loads, as far as the server has told it."""

    @property
    def ended(self) -> int:
        """How many loads have ended, well or not."""

    @property
    def reloads(self) -> int:
        """How many times projects were evaluated again after the first load."""

    @property
    def failure(self) -> str | None:
        """Why the newest load failed as a whole, in the server's words."""

    @property
    def messages(self) -> tuple[LoadMessage, ...]:
        """What was said about the projects; errors win over successes of the same project."""

    async def ended_beyond(self, count: int) -> None:
        """Wait until ``ended`` is greater than ``count``, or the newest load has failed.  Not bounded."""

    async def begun_beyond(self, count: int) -> None:
        """Wait until more than ``count`` loads have begun.  Not bounded."""

    async def reloaded_beyond(self, count: int) -> None:
        """Wait until ``reloads`` is greater than ``count``.  Not bounded."""

    async def active_beyond(self, count: int) -> None:
        """Wait until ``activity`` is greater than ``count``.  Not bounded."""

    @property
    def begun(self) -> int:
        """How many loads have begun."""

    @property
    def activity(self) -> int:
        """Grows with every sign of a load going on."""


class Port(Protocol):
    """What a dialect may do with its running server."""

    @property
    def target(self) -> LoadTarget:
        """What the server was asked to load."""

    @property
    def watch(self) -> Watch:
        """What the server has said about its loads."""

    @property
    def load_timeout(self) -> float:
        """The longest load, in seconds."""

    async def ask(self, method: str, params: object, *, timeout: float | None = None) -> msgspec.Raw:
        """Ask the server; the bound is the request timeout unless another is given, in seconds."""

    async def tell(self, method: str, params: object) -> None:
        """Notify the server.  Raises NotificationRefused for a method outside the dialect's list."""

    def probe_file(self) -> Path | None:
        """Some source file that the server should know."""

    def text_seen(self, path: Path) -> str | None:
        """The text the server has for a document: the open one, else the one on disk; ``None`` when there is none."""


class Holder(Port, Protocol):
    """A port that also keeps documents open, for the handling of file events."""

    def is_open(self, path: Path) -> bool:
        """Whether the document is open in the server."""

    def text_on_disk(self, path: Path) -> str | None:
        """The decoded text of a file without its byte order mark; None when it is missing or unreadable."""

    def has_byte_order_mark(self, path: Path) -> bool:
        """Whether the file on disk starts with a byte order mark, or is no UTF-8 at all."""

    async def hold(self, path: Path, text: str) -> None:
        """Show the server this text, the one on disk, by an open document that outlives the view.

        While the view differs at this path nothing is sent; afterwards the document goes back to the disk by a
        change instead of a close.
        """

    async def let_go(self, path: Path) -> None:
        """End a hold; the document is closed unless the view or a question wants it open."""

    def forget_documents(self) -> None:
        """The server dropped all open texts; the current view has to be sent again in full."""


class Dialect(Protocol):
    """One kind of server.  Implementations are immutable values."""

    @property
    def name(self) -> str:
        """``roslyn``, ``csharp-ls`` or ``embedded``."""

    @property
    def display_name(self) -> str:
        """The name for people."""

    @property
    def limits(self) -> tuple[str, ...]:
        """What this server cannot do, in short phrases for people."""

    @property
    def syntax_only(self) -> bool:
        """Whether the server knows syntax but no meaning."""

    @property
    def has_diagnostics(self) -> bool:
        """Whether asking for diagnostics makes sense."""

    @property
    def has_formatting(self) -> bool:
        """Whether the server formats documents."""

    @property
    def edit_commands(self) -> frozenset[str]:
        """The server's commands that do nothing but bring an edit by ``workspace/applyEdit``; all others are never run."""

    @property
    def compiler_sources(self) -> tuple[str, ...]:
        """The kinds of diagnostics that together are the compiler's own; empty where they cannot be told apart."""

    @property
    def has_fix_all(self) -> bool:
        """Whether the server has a request of its own that makes a fix for every occurrence in a scope."""

    @property
    def notifications(self) -> frozenset[str]:
        """The closed list of notifications that this server survives."""

    @property
    def created_files_become_members(self) -> bool:
        """Whether an opened document that is not on disk is compiled with its project.

        What holds for one running server is asked of its session: see ``Session.outsiders``.
        """

    @property
    def supports_target_framework(self) -> bool:
        """Whether the property ``TargetFramework`` in the environment decides which framework is loaded."""

    @property
    def loads_every_framework(self) -> bool:
        """Whether a project for several target frameworks is answered for each of them, not for one alone."""

    @property
    def diagnostics_need_open_document(self) -> bool:
        """Whether a document must be open for its diagnostics to be computed."""

    @property
    def close_shows_disk(self) -> bool:
        """Whether closing a document shows the text on disk as it was; if not, it is changed back and kept open."""

    @property
    def needs_known_document(self) -> bool:
        """Whether opening a file on disk that the server has no document for would do harm."""

    @property
    def reload_forgets_texts(self) -> bool:
        """Whether the server silently drops all open texts when it loads anew."""

    @property
    def deletion(self) -> Deletion:
        """How a staged deletion is shown."""

    @property
    def line_rule(self) -> LineRule:
        """How the server counts lines."""

    def accepts(self, path: Path) -> bool:
        """Whether the server can open this kind of solution or project file."""

    def command_line(
        self, command: Sequence[str], target: LoadTarget, *, log_directory: Path, client_process_id: int
    ) -> tuple[str, ...]:
        """The complete command line."""

    def environment(self) -> Mapping[str, str]:
        """Variables that the server needs set; a caller's own values of the same names are overridden."""

    def capabilities(self) -> dict[str, object]:
        """The client capabilities for ``initialize``."""

    def configuration(self, section: str, target: LoadTarget) -> object:
        """The answer for one section of ``workspace/configuration``; ``None`` keeps the server's default."""

    def hear(self, method: str, params: msgspec.Raw, target: LoadTarget) -> Heard:
        """What a notification means for the load.  Never raises for odd params: they mean nothing."""

    async def load(self, port: Port) -> None:
        """Start the load and wait until questions will be answered truly.

        Raises WorkspaceLoadFailed.  Not bounded: the session bounds it.
        """

    async def warm_up(self, port: Port) -> None:
        """Ask what makes the server compile what it loads, while nobody waits for an answer.

        Runs beside the load and may go on after it.  Raises what asking raises; nothing depends on it.
        """

    async def knows(self, port: Port, path: Path) -> bool:
        """Whether an empty answer about the file means "none": it is a document of the loaded solution."""

    async def identify(self, port: Port, path: Path, project: ProjectChoice | None) -> Mapping[str, object]:
        """The ``TextDocumentIdentifier`` that means the document as ``project`` compiles it, if that can be said.

        Raises DocumentNotSeen when the server knows the document, and not in that project.
        """

    async def list_actions(
        self,
        port: Port,
        path: Path,
        place: Range,
        diagnostics: Sequence[Diagnostic] | None,
        project: ProjectChoice | None = None,
    ) -> ActionListing:
        """The actions of a place.  ``diagnostics`` are those of the whole document, ``None`` when not pulled."""

    def elsewhere(self, action: ServerAction, path: Path, place: Range) -> ServerAction | None:
        """A listed action for another place, ready to be resolved there without a listing of that place.

        Resolving it is an error where it is not offered.  ``None`` where the server identifies actions by more than
        title and place.
        """

    async def files_changed(self, holder: Holder, events: Sequence[FileEvent]) -> bool:
        """Make changes on disk known.  True: the server is known to have taken them in."""

    def used_target_framework(self, stderr: str) -> str | None:
        """The target framework the server says it has chosen for all projects; ``None`` when it does not say."""

    async def is_alive(self, port: Port) -> bool:
        """Whether a real question is answered.  Bounded by the caller."""
