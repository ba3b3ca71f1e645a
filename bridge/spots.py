"""Words of documents on one tree, named so that they can be compared and asked about.

A *spot* is a word by its file and by where it ends.  Servers speak of documents by the names that projects have for
them and of places by lines and columns; ``Texts`` goes from one to the other on one tree of texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bridge.server_edits import range_from_server
from bridge.words import Scan, Word, scan
from bridge.workspace import Workspace
from lsp_client import uris
from lsp_client.messages import Location, Position, Range
from transactions.errors import TextError
from transactions.overlay import Overlay
from transactions.text import SourceText, TextEdit


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A word, by its file and the index after it in the file's text (code points)."""

    path: Path
    end: int


class UnknownPlace(Exception):
    """A server named a place that is in no text of ours; the message says which."""


class Texts:
    """The texts of one tree, as questions and answers about them need them.  Reads the disk on first use."""

    def __init__(self, workspace: Workspace, tree: Overlay) -> None:
        self._workspace = workspace
        self._tree = tree
        self._scans: dict[Path, Scan] = {}
        self._words: dict[Path, dict[int, Word]] = {}

    def text(self, path: Path) -> SourceText | None:
        """The text of a file; ``None`` when there is none, or it is no text to us."""
        return self._tree.text(path)

    def scan(self, path: Path) -> Scan:
        """The words of a file."""
        if path not in self._scans:
            text = self.text(path)
            self._scans[path] = scan("" if text is None else text.text)
        return self._scans[path]

    def prepare(self, paths: Iterable[Path]) -> None:
        """Read and scan some files, so that nothing later has to; for a worker thread."""
        for path in paths:
            self.word_of(Spot(path, 0))

    def word_at(self, path: Path, index: int) -> Word | None:
        """The word in code that an index lies in, or else directly behind."""
        touching = [word for word in self.scan(path).words if word.start <= index <= word.end]
        return touching[-1] if touching else None

    def word_of(self, spot: Spot) -> Word | None:
        """The word at a spot; ``None`` where no word ends."""
        if spot.path not in self._words:
            self._words[spot.path] = {word.end: word for word in self.scan(spot.path).words}
        return self._words[spot.path].get(spot.end)

    def is_text(self, path: Path, start: int, end: int) -> bool:
        """Whether a stretch lies in one comment or in the text of one string."""
        return any(part.start <= start and end <= part.end for part in self.scan(path).stretches)

    def physical(self, uri: str) -> Path | None:
        """The file that a URI of the server means; ``None`` for a virtual document."""
        try:
            return self._workspace.load.links.physical(uris.uri_to_path(uri))
        except ValueError:
            return None

    def is_document(self, path: Path) -> bool:
        """Whether a project of the workspace compiles the file, or would compile it as a new one."""
        names = self._workspace.load.links.names(path)
        known = any(self._workspace.structure.documents_at(name) for name in names)
        return known or (self._tree.is_touched(path) and self._tree.exists(path))

    def spot(self, location: Location) -> Spot | None:
        """The word at a location; ``None`` for a place in an assembly or a virtual document.

        Raises UnknownPlace for a place outside of the text that we have of a document.
        """
        path = self.physical(location.uri)
        if path is None or not self.is_document(path):
            return None
        return Spot(path, self.span(path, location.range)[1])

    def spots(self, locations: Iterable[Location]) -> frozenset[Spot]:
        """The words at some locations, those in assemblies left out.  Raises as `spot` does."""
        return frozenset(spot for spot in map(self.spot, locations) if spot is not None)

    def span(self, path: Path, place: Range) -> tuple[int, int]:
        """A range of the server as indices into a file's text.  Raises UnknownPlace."""
        text = self.text(path)
        try:
            if text is not None:
                ((start, end, _),) = text.spans_of([TextEdit(range_from_server(place), "")])
                return start, end
        except TextError:
            pass
        where = f"{self._workspace.relative(path)}:{place.start.line + 1}"
        raise UnknownPlace(f"The server speaks of {where}, which is no place of the text that it was shown.")

    def question(self, spot: Spot) -> tuple[Path, Position]:
        """The document and the place in it to ask about a word: inside of it."""
        text = self.text(spot.path)
        if text is None:
            raise UnknownPlace(f"{self._workspace.relative(spot.path)} has no readable text.")
        place = text.position_of_index(max(spot.end - 1, 0))
        return self.document(spot.path), Position(place.line, place.character)

    def document(self, path: Path) -> Path:
        """The name under which projects know a file."""
        names = self._workspace.load.links.names(path)
        return next((name for name in names if self._workspace.structure.documents_at(name)), path)

    def place(self, spot: Spot) -> str:
        """A spot for people: path, line and column from one."""
        text = self.text(spot.path)
        word = self.word_of(spot)
        if text is None:
            return self._workspace.relative(spot.path)
        found = text.position_of_index(spot.end if word is None else word.start)
        return f"{self._workspace.relative(spot.path)}:{found.line + 1}:{found.character + 1}"


def documents_with(workspace: Workspace, tree: Overlay, names: Iterable[str]) -> tuple[Path, ...]:
    """The C# files of the workspace in whose text one of the names occurs, in the order of their paths.

    Reads every document once; for a worker thread.
    """
    wanted = tuple(names)
    physical = workspace.load.links.physical
    files = {physical(path) for path in workspace.structure.document_paths}
    files |= {path for path in tree.touched_paths if path.suffix.casefold() == ".cs"}
    found = []
    for path in files:
        text = tree.text(path)
        # An escape can spell any name; hardly a file has one.
        if text is not None and (any(name in text.text for name in wanted) or "\\u" in text.text):
            found.append(path)
    return tuple(sorted(found))
