"""What is read of the messages that come in; everything else in them is ignored, as Roslyn does."""

from collections.abc import Sequence

import msgspec

from bridge.embedded_server.documents import Change
from transactions import text as texts


class Position(msgspec.Struct, frozen=True):
    """Zero-based line; zero-based character in UTF-16 units."""

    line: int
    character: int

    def value(self) -> texts.Position:
        """The same position as the rest of the server knows it."""
        return texts.Position(self.line, self.character)


class Range(msgspec.Struct, frozen=True):
    """From ``start`` up to, not including, ``end``."""

    start: Position
    end: Position


class TextDocument(msgspec.Struct, frozen=True):
    """A document by its URI; ``text`` comes with didOpen only."""

    uri: str
    text: str = ""


class OfDocument(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of didOpen, didClose, documentSymbol and foldingRange."""

    text_document: TextDocument


class ContentChange(msgspec.Struct, frozen=True):
    """A change; without ``range`` the text is the whole new text."""

    text: str
    range: Range | None = None

    def value(self) -> Change:
        """The same change as the documents know it."""
        if self.range is None:
            return Change(self.text)
        return Change(self.text, self.range.start.value(), self.range.end.value())


class DidChange(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of didChange."""

    text_document: TextDocument
    content_changes: Sequence[ContentChange]


class AtRange(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of codeAction."""

    text_document: TextDocument
    range: Range


class ActionData(msgspec.Struct, frozen=True, rename="pascal"):
    """The ``data`` of a code action: enough to find the action again."""

    range: Range
    text_document: TextDocument
    code_action_path: Sequence[str]
    fix_all_flavors: Sequence[str] | None = None
    nested_code_actions: Sequence[object] | None = None


class Resolve(msgspec.Struct, frozen=True):
    """The parameters of resolve and resolveFixAll."""

    title: str
    data: ActionData
    scope: str | None = None


class SolutionOpen(msgspec.Struct, frozen=True):
    """The parameters of solution/open: the URI of a solution file."""

    solution: str


class ProjectOpen(msgspec.Struct, frozen=True):
    """The parameters of project/open: the URIs of project files."""

    projects: Sequence[str]


class Dynamic(msgspec.Struct, frozen=True, rename="camel"):
    """A client capability that says whether it may be registered later."""

    dynamic_registration: bool = False


class WorkspaceEditCapability(msgspec.Struct, frozen=True, rename="camel"):
    """Which file operations the client can carry out."""

    resource_operations: Sequence[str] = ()


class WorkspaceCapability(msgspec.Struct, frozen=True, rename="camel"):
    """The client's ``workspace`` capabilities."""

    configuration: bool = False
    did_change_configuration: Dynamic = Dynamic()
    workspace_edit: WorkspaceEditCapability = WorkspaceEditCapability()


class SymbolCapability(msgspec.Struct, frozen=True, rename="camel"):
    """How the client wants an outline."""

    hierarchical_document_symbol_support: bool = False


class DocumentCapability(msgspec.Struct, frozen=True, rename="camel"):
    """The client's ``textDocument`` capabilities."""

    document_symbol: SymbolCapability = SymbolCapability()


class WindowCapability(msgspec.Struct, frozen=True, rename="camel"):
    """The client's ``window`` capabilities."""

    work_done_progress: bool = False


class Capabilities(msgspec.Struct, frozen=True, rename="camel"):
    """What the client can do, as far as it changes what we do."""

    workspace: WorkspaceCapability = WorkspaceCapability()
    text_document: DocumentCapability = DocumentCapability()
    window: WindowCapability = WindowCapability()


class Initialize(msgspec.Struct, frozen=True, rename="camel"):
    """The parameters of initialize."""

    capabilities: Capabilities = Capabilities()
    process_id: int | None = None
