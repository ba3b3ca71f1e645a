"""The files a server finds in its folder, where it has a view of its own (``lsp_client.namespace``).

**The tree says which files there are; what is in them is said by open documents.**  Created files are put into the
tree, deleted ones taken out of it, and the server is told by file events, so that projects are evaluated over the
staged files under their real paths.  A changed text stays a matter of the open document alone: it hides the file in any
tree, and going back to the disk needs no change of the tree.

Going back to the disk for one question (a *visit*) would take created files out of their projects and put them back,
which costs two evaluations.  An empty file declares nothing, so on a visit they stay, without text.  A deleted file is
different: what it declared has to be there again, so a visit brings it back in earnest.

This is our end.  What the namespace refused for a path (a folder of another owner, say) is no failure: that file is
shown by its text, as everywhere else, and named in ``refused``.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

import anyio
import msgspec

from lsp_client.dialects.base import DocumentView, EventKind, FileEvent
from lsp_client.errors import LanguageServerError
from lsp_client.line_socket import LineSocket
from lsp_client.scratch import Scratch, scratch_in

OPEN_TIMEOUT: Final = 20.0
"""Seconds for the first word of the helper: one Python start and a trial, long on a machine that is loaded."""

ORDER_TIMEOUT: Final = 20.0
"""Seconds for the writer to do one order: some small files, or one mount."""

_HELPER: Final = Path(__file__).with_name("namespace.py")


class _FirstWord(msgspec.Struct):
    ready: bool = False
    refused: str | None = None
    error: int | None = None


class _Shown(msgspec.Struct):
    created: list[str] = []
    gone: list[str] = []
    refused: dict[str, str] = {}
    error: str | None = None


class _Renewed(msgspec.Struct):
    error: str | None = None


_Answer = TypeVar("_Answer", _FirstWord, _Shown, _Renewed)


class TreeLost(LanguageServerError):
    """What the server's tree looks like is not known any more; the server has to be started anew."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The staged files cannot be shown to the language server: {reason}.")


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A server that is about to be started in a view of its own: what to run, and what it gets."""

    command: tuple[str, ...]
    handed: socket.socket
    """Inherited by the server; to be closed here once that has started, or its end would not be seen."""
    scratch: Scratch
    tree: StagedTree


@contextmanager
def enclosed(
    command: Sequence[str], root: Path, parent: Path, projects: Collection[Path] = ()
) -> Iterator[Enclosure]:
    """The way to start ``command`` with a view over ``root``; its private directory is made in ``parent``.

    ``projects`` are the folders of projects, in whose ``obj`` the server will write.

    The block must last as long as the server.  Raises ``OSError``.
    """
    ours, theirs = socket.socketpair()
    with scratch_in(parent) as scratch, ours, theirs:
        ours.setblocking(False)  # noqa: FBT003 - the standard library's signature
        number = str(theirs.fileno())
        places = (number, str(root), str(scratch.path), str(len(projects)), *map(str, projects))
        helper = (sys.executable, "-I", "-S", str(_HELPER), *places)
        tree = StagedTree(LineSocket(ours), root)
        yield Enclosure((*helper, *command), theirs, scratch, tree)


class StagedTree:
    """The tree of one server process.  Callers serialise: only one call at a time."""

    def __init__(self, orders: LineSocket, root: Path) -> None:
        self._orders = orders
        self._root = root
        self.created: frozenset[Path] = frozenset()
        """Files that are in the tree, and not on disk."""
        self.gone: frozenset[Path] = frozenset()
        """Files that are on disk, and not in the tree."""
        self.refused: Mapping[Path, str] = {}
        """Why what was asked for last could not be done, by path."""
        self._asked: tuple[frozenset[Path], frozenset[Path]] = (frozenset(), frozenset())

    async def opened(self) -> str | None:
        """Wait for the helper's first word: why there is no view, ``None`` when it stands.

        Raises ``OSError`` when the command cannot be run, ``TreeLost`` when the helper ended or said nothing.
        """
        line = None
        with anyio.move_on_after(OPEN_TIMEOUT):
            line = await self._orders.next_line()
        word = _read(line, _FirstWord)
        if word.error is not None:
            raise OSError(word.error, os.strerror(word.error))
        return word.refused

    async def show(self, view: DocumentView) -> tuple[FileEvent, ...]:
        """Make the tree that of ``view``; what the server has to be told of it.  Raises ``TreeLost``."""
        created = {path: view.texts[path] for path in view.created if path in view.texts}
        outside = [path for path in (*created, *view.deleted) if not path.is_relative_to(self._root)]
        answer = await self._ask(
            {
                "do": "show",
                "created": {self._name(p): text for p, text in created.items() if p not in outside},
                "gone": [self._name(p) for p in sorted(view.deleted) if p not in outside],
            },
            _Shown,
        )
        if answer.error is not None:
            raise TreeLost(answer.error)
        before, gone_before = self.created, self.gone
        self._asked = (view.created, view.deleted)
        self.created = frozenset(self._root / name for name in answer.created)
        self.gone = frozenset(self._root / name for name in answer.gone)
        self.refused = {
            **{self._root / name: reason for name, reason in answer.refused.items()},
            **dict.fromkeys(outside, "it lies outside the workspace's folder"),
        }
        return (
            *_events("deleted", before - self.created),
            *_events("created", gone_before - self.gone),
            *_events("deleted", self.gone - gone_before),
            *_events("created", self.created - before),
        )

    async def renew(self) -> None:
        """Put a fresh view of the disk over the old one, with nothing staged.  Raises ``TreeLost``."""
        answer = await self._ask({"do": "renew"}, _Renewed)
        if answer.error is not None:
            raise TreeLost(answer.error)
        self.created = self.gone = frozenset()
        self.refused = {}
        self._asked = (frozenset(), frozenset())

    def visiting(self, view: DocumentView) -> DocumentView:
        """``view`` for one question: created files that it does not have stay in the tree, without text."""
        spare = self.created - view.created
        if view.deleted != self.gone or not spare:
            return view
        return replace(view, texts={**view.texts, **dict.fromkeys(spare, "")}, created=view.created | spare)

    def is_that_of(self, view: DocumentView) -> bool:
        """Whether ``view`` was asked for last, as far as it is a matter of the tree."""
        return self._asked == (view.created, view.deleted)

    def common(self, view: DocumentView) -> DocumentView:
        """``view`` without what is not in this tree yet, and with nothing deleted: that is told when it is done."""
        later = view.created - self.created
        texts = {path: text for path, text in view.texts.items() if path not in later}
        return DocumentView(texts, view.created - later)

    def remainder(self, view: DocumentView) -> DocumentView:
        """What of ``view`` is not said by the tree: deletions that it could not make."""
        return replace(view, deleted=view.deleted - self.gone)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    async def _ask(self, order: Mapping[str, object], form: type[_Answer]) -> _Answer:
        line = None
        # An order that was sent is done: a caller who leaves must not lose what became of it.
        with anyio.CancelScope(shield=True):
            try:
                with anyio.fail_after(ORDER_TIMEOUT):
                    await self._orders.send_line(json.dumps(order))
                    line = await self._orders.next_line()
            except (OSError, TimeoutError) as error:
                raise TreeLost(f"the process that keeps them takes no order ({error})") from error
        return _read(line, form)


def _read(line: str | None, form: type[_Answer]) -> _Answer:
    if line is None:
        raise TreeLost("the process that keeps them has ended")
    try:
        return msgspec.convert(json.loads(line), form)
    except (ValueError, msgspec.ValidationError) as error:
        raise TreeLost(f"the process that keeps them answers what is not understood ({error})") from error


def _events(kind: EventKind, paths: frozenset[Path]) -> tuple[FileEvent, ...]:
    return tuple(FileEvent(path, kind) for path in sorted(paths))
