"""What one server process sees: disk, plus the documents we hold open.

The bridge names the differences to the disk that the server must see (a `DocumentView`); this module makes the open
documents match, with as few notifications as possible and never one that the ledger forbids.  Three things make it
more than a loop over a dictionary:

- *Going back to the disk* differs by server.  With Roslyn a close does it.  csharp-ls re-reads a file when it is
  closed and shifts the columns of a byte order mark, so there the document is changed to the text on disk and stays
  open.
- *Held* documents are open with the text that is on disk, to cover the time in which the server may still have an
  older one underneath, or for good where a close does harm.  They are no difference to the disk, so no view names them.
- *Looked-at* documents are open because a question needs them open; they are counted, since two questions may look at
  the same one, and closed after the last look unless a view or a hold wants them.

The ledger is changed before a notification is sent, and sending is not interrupted, so the two cannot part.  When
sending fails all the same, the server is beyond use, and the session says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from pathlib import Path

from lsp_client.dialects.base import Dialect, DocumentView, FileEvent
from lsp_client.dialects.common import wire_events
from lsp_client.documents import DocumentLedger, Notification
from lsp_client.uris import path_to_uri

LANGUAGE_ID = "csharp"
NO_DIFFERENCES = DocumentView()


class Mirror:
    """The documents of one server process.  Callers serialise: only one call at a time."""

    def __init__(
        self,
        dialect: Dialect,
        send: Callable[[Notification], Awaitable[None]],
        read_text: Callable[[Path], str | None],
        knows: Callable[[Path], Awaitable[bool]],
    ) -> None:
        self._dialect = dialect
        self._send = send
        self._read_text = read_text
        self._knows = knows
        self._ledger = DocumentLedger(dialect.line_rule)
        self._view = NO_DIFFERENCES
        self._in_step = True
        self._paths: dict[str, Path] = {}
        self._held: set[Path] = set()
        self._looks: dict[Path, int] = {}
        self._told_deleted: set[Path] = set()
        self.unseen: set[Path] = set()
        """Files that differ from the disk in the view, but that the server has no document for."""

    @property
    def open_count(self) -> int:
        """How many documents are open in the server."""
        return len(self._ledger)

    @property
    def view(self) -> DocumentView:
        """The view that was asked for last."""
        return self._view

    @property
    def versions(self) -> dict[Path, int]:
        """The open documents, and the version last sent of each."""
        found = ((self._paths[uri], self._ledger.get(uri)) for uri in self._ledger.open_uris)
        return {path: document.version for path, document in found if document is not None}

    def is_open(self, path: Path) -> bool:
        """Whether the document is open."""
        return path_to_uri(path) in self._ledger

    def is_staged_creation(self, path: Path) -> bool:
        """Whether the view has this document, and the disk has not."""
        return path in self._view.created

    def text_of(self, path: Path) -> str | None:
        """The text of an open document."""
        document = self._ledger.get(path_to_uri(path))
        return None if document is None else document.text

    async def show(self, view: DocumentView) -> None:
        """Make the server see ``view``.  Does nothing when it does already."""
        if self._in_step and view == self._view:
            return
        self._in_step = False
        self._view = view
        wanted = self._wanted(view)
        brought_back = self._told_deleted - view.deleted
        for path in sorted(brought_back - wanted.keys()):
            await self._bring_back(path)
        for path in self._open_paths():
            if path not in wanted:
                await self._back_to_disk(path)
        self.unseen = await self._without_document(wanted, may_be_unknown=view.created | brought_back)
        for path in sorted(wanted.keys() - self.unseen):
            await self._put(path, wanted[path])
        self._told_deleted -= brought_back
        if self._dialect.deletion == "file event":
            for path in sorted(view.deleted - self._told_deleted):
                await self._tell_deleted(path)
        self._in_step = True

    async def hold(self, path: Path, text: str) -> None:
        """Show the text that is on disk now, from now on; under a view that differs, as soon as that is over."""
        self._held.add(path)
        if path not in self._wanted(self._view):
            await self._put(path, text)

    async def let_go(self, path: Path) -> None:
        """End a hold; the document is closed unless the view or a look wants it open."""
        self._held.discard(path)
        if path not in self._wanted(self._view) and self._looks.get(path, 0) == 0:
            await self._close(path)

    async def look(self, texts: Mapping[Path, str]) -> tuple[Path, ...]:
        """Open what is not open yet; returns what must be given to ``look_away`` afterwards."""
        looked: list[Path] = []
        for path, text in texts.items():
            if self._looks.get(path, 0) > 0:
                self._looks[path] += 1
            elif self.is_open(path):
                continue
            else:
                self._looks[path] = 1
                await self._put(path, text)
            looked.append(path)
        return tuple(looked)

    async def look_away(self, paths: Iterable[Path]) -> None:
        """Close what nobody looks at any more, unless the view or a hold wants it open."""
        wanted = self._wanted(self._view)
        for path in paths:
            left = self._looks.get(path, 0) - 1
            if left > 0:
                self._looks[path] = left
                continue
            self._looks.pop(path, None)
            if path not in wanted and path not in self._held:
                await self._close(path)

    def forget(self) -> None:
        """The server has dropped all open texts: the next ``show`` sends the view again, in full."""
        self._ledger.forget_all()
        self._paths.clear()
        self._held.clear()
        self._looks.clear()
        self._told_deleted.clear()
        self.unseen.clear()
        self._in_step = False

    # --- one document -----------------------------------------------------------------------------------

    def _wanted(self, view: DocumentView) -> dict[Path, str]:
        """The texts that must be open.  Where a deletion cannot be told, an empty text comes nearest to it."""
        wanted = dict(view.texts)
        if self._dialect.deletion == "empty text":
            wanted.update(dict.fromkeys(view.deleted, ""))
        return wanted

    def _open_paths(self) -> list[Path]:
        return sorted(self._paths[uri] for uri in self._ledger.open_uris)

    async def _without_document(self, wanted: Iterable[Path], *, may_be_unknown: Set[Path]) -> set[Path]:
        """The wanted files that the server has no document for, and must not be opened for that.

        All are asked about before the first text moves.  csharp-ls answers from a compilation, and would make one for
        each file if a text moved between the questions.
        """
        if not self._dialect.needs_known_document:
            return set()
        asked = [path for path in sorted(wanted) if path not in may_be_unknown and not self.is_open(path)]
        return {path for path in asked if not await self._knows(path)}

    async def _put(self, path: Path, text: str) -> None:
        """Open the document with this text, or change it to it."""
        uri = path_to_uri(path)
        if uri in self._ledger:
            for notification in self._ledger.change(uri, text):
                await self._send(notification)
        else:
            self._paths[uri] = path
            await self._send(self._ledger.open(uri, LANGUAGE_ID, text))

    async def _back_to_disk(self, path: Path) -> None:
        text = self._read_text(path)
        if text is not None and (path in self._held or not self._dialect.close_shows_disk):
            self._held.add(path)
            await self._put(path, text)
        elif text is not None and self._looks.get(path, 0) > 0:
            await self._put(path, text)
        else:
            await self._close(path)

    async def _bring_back(self, path: Path) -> None:
        """A file that was told deleted and is there again: opening it makes the server take it in anew."""
        text = self._read_text(path)
        if text is not None:
            self._held.add(path)
            await self._put(path, text)

    async def _close(self, path: Path) -> None:
        uri = path_to_uri(path)
        self._held.discard(path)
        if self._paths.pop(uri, None) is not None:
            await self._send(self._ledger.close(uri))

    async def _tell_deleted(self, path: Path) -> None:
        await self._close(path)
        self._told_deleted.add(path)
        events = wire_events([FileEvent(path, "deleted")])
        await self._send(Notification("workspace/didChangeWatchedFiles", {"changes": events}))
