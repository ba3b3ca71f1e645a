"""Staged new files in a rename: whether the server finds uses in them, and the proof that it does.

A file that is not on disk has no uses to a server that has only the disk to go by: Roslyn takes it for no member of a
project, csharp-ls compiles it and leaves out every place in it.  In a tree of its own (``--server-view overlay``) both
tell of it as of any other file.  So a file without a search, with one of the names in it, is a refusal; and in a file
with one, each word that bears a name must be a use of something that the server tells of.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from bridge.bindings import Bound, Unproved
from bridge.identifiers import CONTEXTUAL_KEYWORDS
from bridge.membership import named
from bridge.spots import Spot, Texts
from bridge.words import whole_words
from bridge.workspace import Workspace
from lsp_client.session import Session


def require_searched(workspace: Workspace, session: Session, texts: Texts, names: Collection[str]) -> None:
    """Refuses where a staged new file, in which the server finds no uses, has a word of these names or a ``cref``.

    Nothing could be proved of it, and what the server says of a symbol that is declared there is not true.  Raises
    Unproved.
    """
    unsearched = workspace.unsearched
    concerned = sorted(path for path in unsearched if _bears(texts, path, names))
    if concerned:
        reasons = "; ".join(sorted({unsearched[path].rstrip(".") for path in concerned}))
        raise Unproved(
            f"{session.server_name} finds no uses in staged new files ({named(workspace, concerned)}): {reasons}. "
            f"{_way_out(session)}"
        )


def _bears(texts: Texts, path: Path, names: Collection[str]) -> bool:
    """Whether one of the names stands in the code of a file, or where a documentation comment may refer to it."""
    text, scanned = texts.text(path), texts.scan(path)
    if text is None or any(word.value in names for word in scanned.words):
        return text is not None
    comments = (text.text[part.start : part.end] for part in scanned.stretches if part.kind == "comment")
    return any(
        "cref" in comment and any(True for name in names for _ in whole_words(comment, name))
        for comment in comments
    )


def _way_out(session: Session) -> str:
    if session.has_tree:
        return "Commit first, then rename."
    if session.tree_refused is not None:
        return f"Commit first, then rename. (A view of its own cannot be had: {session.tree_refused}.)"
    return "Commit first, then rename; or start the bridge with --server-view overlay, which needs no commit for it."


def words_in_new_files(
    workspace: Workspace, texts: Texts, files: Sequence[Path], names: Collection[str]
) -> list[Spot]:
    """The words of code in staged new files that bear one of the names, and must be uses of something."""
    created = frozenset(workspace.overlay.created)
    return [
        Spot(path, word.end)
        for path in files
        if path in created
        for word in texts.scan(path).words
        if word.value in names and not word.is_conditional and word.value not in CONTEXTUAL_KEYWORDS
    ]


def require_answered(texts: Texts, symbols: Sequence[Bound], words: Sequence[Spot]) -> None:
    """Raises Unproved where the server tells nothing of a word, as if it did not compile the file."""
    covered = {use for bound in symbols for use in bound.uses}
    silent = sorted(set(words) - covered)
    if silent:
        raise Unproved(
            f"The server tells nothing of the name at {texts.place(silent[0])}, in a staged new file. Commit first, or "
            "mend the code there."
        )
