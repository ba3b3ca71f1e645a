"""Which documents one server process has open, and with which text.  Pure: it makes notifications, it sends none.

Roslyn ends itself when a document is opened twice, or changed or closed while it is not open; so the table is
exact, and a mistake of ours is a LedgerError before anything is sent.  One ledger belongs to one server
process and is keyed by URI strings, compared as we spelled them.

A change is always one *ranged* replacement of the whole text, from 0:0 to the end of the text the server has:
older Roslyn builds fall over a change without a range, and a range must stay inside the last line that
exists.  Where that end is depends on what the server takes for a line end, see ``LineRule``.

A server can lose its open texts while its process goes on: csharp-ls goes back to the texts on disk whenever
it reloads a project, and says nothing.  ``forget_all`` records that.  The documents can then be opened again
at once; they must not be closed first, because the close moves the columns of line 1 of a file with a byte
order mark.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from lsp_client.errors import LedgerError
from lsp_client.texts import LineRule, end_position


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification to send: method and params, the latter plain JSON values."""

    method: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """A document as the server has it: its text without byte order mark, and the version last sent."""

    uri: str
    language_id: str
    text: str
    version: int


class DocumentLedger:
    """The open documents of one server process."""

    def __init__(self, line_rule: LineRule = LineRule.LSP) -> None:
        self._line_rule = line_rule
        self._documents: dict[str, OpenDocument] = {}
        # The last version sent for each URI.  It outlives a close: versions of a name never go backwards.
        self._versions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._documents)

    def __contains__(self, uri: object) -> bool:
        return uri in self._documents

    @property
    def open_uris(self) -> frozenset[str]:
        """The URIs of the open documents."""
        return frozenset(self._documents)

    def get(self, uri: str) -> OpenDocument | None:
        """The open document, or None."""
        return self._documents.get(uri)

    def open(self, uri: str, language_id: str, text: str) -> Notification:
        """Open a document with its whole text.  Raises LedgerError when it is open."""
        if uri in self._documents:
            raise LedgerError(f"a document is opened twice: {uri}")
        document = self._enter(uri, language_id, text)
        return Notification(
            "textDocument/didOpen",
            {
                "textDocument": {
                    "uri": uri,
                    "languageId": language_id,
                    "version": document.version,
                    "text": text,
                }
            },
        )

    def change(self, uri: str, text: str) -> tuple[Notification, ...]:
        """Replace the text; nothing is to be sent when it is the same.  Raises LedgerError when not open."""
        old = self._existing(uri, "changed")
        if old.text == text:
            return ()
        document = self._enter(uri, old.language_id, text)
        line, character = end_position(old.text, self._line_rule)
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": line, "character": character}}
        return (
            Notification(
                "textDocument/didChange",
                {
                    "textDocument": {"uri": uri, "version": document.version},
                    "contentChanges": [{"range": whole, "text": text}],
                },
            ),
        )

    def close(self, uri: str) -> Notification:
        """Close a document: the server goes back to the text on disk.  Raises LedgerError when not open."""
        self._existing(uri, "closed")
        del self._documents[uri]
        return Notification("textDocument/didClose", {"textDocument": {"uri": uri}})

    def forget_all(self) -> tuple[OpenDocument, ...]:
        """The server lost its open texts: nothing counts as open any more, and nothing is to be closed.

        Returns what was open, so that it can be opened again in full.
        """
        lost = tuple(self._documents.values())
        self._documents.clear()
        return lost

    def _enter(self, uri: str, language_id: str, text: str) -> OpenDocument:
        version = self._versions.get(uri, 0) + 1
        self._versions[uri] = version
        document = OpenDocument(uri, language_id, text, version)
        self._documents[uri] = document
        return document

    def _existing(self, uri: str, what: str) -> OpenDocument:
        document = self._documents.get(uri)
        if document is None:
            raise LedgerError(f"a document is {what} that is not open: {uri}")
        return document
