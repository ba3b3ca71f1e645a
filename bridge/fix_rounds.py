"""One round of a fix-all made of single fixes: which of them can be made together.

All fixes of a round are computed by the server on the same texts.  They are taken in a fixed order, and one is taken
only when none of its edits overlaps or touches an edit that was taken before it: what is left out is computed anew, on
the changed texts, in the next round.  So a round gives what its fixes would give one after the other.  Two places may
have one fix (removing unused usings mends a whole document): that is taken once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.server_edits import range_from_server
from lsp_client import messages
from transactions.edits import DocumentEdit, WorkspaceEdit
from transactions.text import Range, TextEdit


@dataclass(frozen=True, slots=True)
class Fix:
    """What one fix changes: the edits of each document, all of which refer to the round's texts."""

    edits: Mapping[Path, tuple[TextEdit, ...]]

    def reaches(self, path: Path, place: messages.Range) -> bool:
        """Whether an edit of this fix overlaps or touches a place, which may be mended by it, or move."""
        return any(_meet(edit.range, range_from_server(place)) for edit in self.edits.get(path, ()))


@dataclass(frozen=True, slots=True)
class Answer:
    """A fix, with all that the server was asked by: asked again about the same texts it must say the same."""

    path: Path
    item: messages.Diagnostic
    diagnostics: tuple[messages.Diagnostic, ...]
    """All of the document."""
    fix: Fix


Rounds = tuple[tuple[Answer, ...], ...]
"""What a whole fix-all was made of, in the order in which it was taken."""


class NotOneChange(ValueError):
    """A server's edit that is more than edits of existing documents, each named once."""


def fix_from(edit: WorkspaceEdit) -> Fix:
    """The fix that an edit is.  Raises NotOneChange where it creates, moves or deletes files."""
    changes: dict[Path, tuple[TextEdit, ...]] = {}
    for operation in edit.operations:
        if not isinstance(operation, DocumentEdit):
            raise NotOneChange("it creates, moves or deletes files")
        if operation.path in changes:
            raise NotOneChange(f"it has two lists of edits for {operation.path.name}")
        if operation.edits:
            changes[operation.path] = operation.edits
    return Fix(changes)


def merged(fixes: Iterable[Fix]) -> WorkspaceEdit:
    """The fixes that can be made together, in the order given, as one edit."""
    taken: list[Fix] = []
    edits: dict[Path, list[TextEdit]] = {}
    for fix in fixes:
        if not fix.edits or fix in taken or _is_in_the_way(fix, edits):
            continue
        taken.append(fix)
        for path, changes in fix.edits.items():
            edits.setdefault(path, []).extend(changes)
    return WorkspaceEdit(tuple(DocumentEdit(path, None, tuple(edits[path])) for path in sorted(edits)))


def _is_in_the_way(fix: Fix, taken: Mapping[Path, Sequence[TextEdit]]) -> bool:
    return any(
        _meet(mine.range, other.range)
        for path, changes in fix.edits.items()
        for other in taken.get(path, ())
        for mine in changes
    )


def _meet(one: Range, other: Range) -> bool:
    return one.start <= other.end and other.start <= one.end
