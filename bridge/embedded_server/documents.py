"""Open texts over the disk: what the client says wins, else the file as it is now.

Trees are kept for texts that are asked about again and again (list, then resolve). A text that cannot be known any
more, because a change did not fit it, is remembered as such: no answer is better than one about another text.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bridge.embedded_server.positions import LineMap, OutsideTextError
from bridge.embedded_server.syntax import Source
from transactions.errors import UndecodableText
from transactions.text import Position, SourceText

_TREES_KEPT = 32  # a session works on a handful of files; a fix-all over a solution must not keep them all
_LARGEST_FILE_BYTES = 16 * 1024 * 1024  # no human writes this; parsing it would hold up everything else


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an open text; without ``start`` and ``end`` it replaces the whole text."""

    text: str
    start: Position | None = None
    end: Position | None = None


class TextUnknownError(Exception):
    """The client and we no longer agree on a document's text; only opening it again helps."""


class UnreadableTextError(Exception):
    """A file that is there, and is no text we can read; the message says why."""


class Documents:
    """The texts that questions are answered from."""

    def __init__(self, open_texts: Mapping[Path, str | None] | None = None) -> None:
        """``open_texts``: documents that are open from the start."""
        self._open: dict[Path, str | None] = dict(open_texts or {})
        self._trees: OrderedDict[str, Source] = OrderedDict()

    @property
    def open_texts(self) -> Mapping[Path, str | None]:
        """A copy of the open texts; None stands for one that is not known any more."""
        return dict(self._open)

    def open(self, path: Path, text: str) -> None:
        """Take over the text of a document; opening it again replaces it."""
        self._open[path] = text

    def change(self, path: Path, changes: list[Change]) -> None:
        """Apply changes in their order, each to the result of the one before.

        Raises TextUnknownError when the document is not open or a range is outside its text; such a document has no
        text until it is opened again.
        """
        text = self._open.get(path)
        self._open[path] = None
        if text is None:
            raise TextUnknownError(f"{path} is not open")
        for change in changes:
            text = _changed(text, change)
        self._open[path] = text

    def close(self, path: Path) -> None:
        """Go back to the disk for a document."""
        self._open.pop(path, None)

    def exists(self, path: Path) -> bool:
        """Whether a document is open under this path or something is there on disk."""
        return path in self._open or path.exists() or path.is_symlink()

    def text(self, path: Path) -> str | None:
        """The text of a document without byte order mark; None when there is no such document.

        Raises TextUnknownError and UnreadableTextError.
        """
        if path in self._open:
            text = self._open[path]
            if text is None:
                raise TextUnknownError(f"the text of {path} is not known after a change outside its range")
            return text
        try:
            if path.stat().st_size > _LARGEST_FILE_BYTES:
                raise UnreadableTextError(f"{path} has more than {_LARGEST_FILE_BYTES} bytes")
            return SourceText.decode(path.read_bytes()).text
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableTextError(f"{path} cannot be read: {error.strerror}") from error
        except UndecodableText as error:
            raise UnreadableTextError(f"{path} is not read: {error}") from error

    def source(self, path: Path) -> Source | None:
        """The tree of a document's text; None when there is no such document.

        Raises TextUnknownError and UnreadableTextError.
        """
        text = self.text(path)
        if text is None:
            return None
        known = self._trees.get(text)
        if known is None:
            known = self._trees[text] = Source(text)
            while len(self._trees) > _TREES_KEPT:
                self._trees.popitem(last=False)
        self._trees.move_to_end(text)
        return known


def _changed(text: str, change: Change) -> str:
    if change.start is None or change.end is None:
        return change.text
    lines = LineMap(text)
    try:
        start, end = lines.offset_at(change.start), lines.offset_at(change.end)
    except OutsideTextError as error:
        raise TextUnknownError(str(error)) from error
    if start > end:
        raise TextUnknownError("a change ends before it begins")
    return text[:start] + change.text + text[end:]
