"""Edits that a server wants applied by itself, by ``workspace/applyEdit``.

There is one occasion on which such an edit is wanted: a command that we have asked for is known to carry its edit that
way.  Then exactly one is taken, to be staged like the edit of an action.  At all other times, and for a second one
(which would be made for a text that nobody has), the answer is ``applied: false``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from lsp_client.errors import ProtocolViolation
from lsp_client.messages import WorkspaceEdit, decode


class _Params(msgspec.Struct, frozen=True):
    edit: WorkspaceEdit


class EditIntake:
    """Where the edits of one server process go.  One command at a time."""

    def __init__(self) -> None:
        self._taken: list[WorkspaceEdit] | None = None
        self.refused = 0
        """How many edits were turned away."""

    @contextmanager
    def open(self) -> Iterator[list[WorkspaceEdit]]:
        """While the block runs an edit is taken; the list holds it afterwards."""
        taken: list[WorkspaceEdit] = []
        self._taken = taken
        try:
            yield taken
        finally:
            self._taken = None

    def answer(self, params: msgspec.Raw) -> dict[str, object]:
        """The answer to ``workspace/applyEdit``."""
        if self._taken is None:
            return self._refuse("This client applies no edits on request.")
        if self._taken:
            return self._refuse(
                "One edit was taken already; a second one is for a text that is not there yet."
            )
        try:
            self._taken.append(decode(params, _Params).edit)
        except ProtocolViolation as error:
            return self._refuse(f"The edit cannot be read: {error.detail}")
        return {"applied": True}

    def _refuse(self, reason: str) -> dict[str, object]:
        self.refused += 1
        return {"applied": False, "failureReason": reason}
