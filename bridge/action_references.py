"""Action references: what an opaque ``actionId`` stands for, for how long, and for which state.

An id is a recipe, not a live action: it holds where the action was found and how it was named, and staging finds it
again.  It is bound to one snapshot and one server process, lives a bounded time, is used up by a stage, and never
leaves the process.  When the store is full the oldest ids go first; a single listing larger than the store is
refused, because its first ids would be dead on arrival.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bridge.errors import BridgeError
from bridge.fix_rounds import Rounds
from bridge.snapshots import SnapshotId
from lsp_client.dialects.base import ProjectChoice
from transactions.text import Range


@dataclass(frozen=True, slots=True)
class ActionReference:
    """Where an action was offered and what identifies it there."""

    snapshot: SnapshotId
    generation: int
    """The server process that offered it; a later process answers for itself."""
    document: Path
    range: Range
    """The place that was asked about, not the place of a diagnostic."""
    title_path: tuple[str, ...]
    kind: str
    fix_all_scopes: tuple[str, ...]
    project: ProjectChoice | None = None
    """In whose context it was offered, for a file of several projects."""


@dataclass(frozen=True, slots=True)
class PreparedFixAll:
    """A fix-all that was computed once: staging computes it again and demands the same."""

    action: ActionReference
    """The fix that it starts from."""
    scope: str
    most_documents: int
    """How many documents it may change."""
    fingerprint: str
    """Of all that it changes; see ``bridge.fix_all``."""
    answers: Rounds | None
    """The server's answers of which the bridge put it together; ``None`` when the server made it."""

    @property
    def snapshot(self) -> SnapshotId:
        """The state that it was computed for."""
        return self.action.snapshot


Reference: TypeAlias = ActionReference | PreparedFixAll
"""What an id may stand for."""


class ActionReferences:
    """The live references of one workspace.

    ``lifetime`` is in seconds; ``now`` is a monotonic clock in seconds.
    """

    def __init__(self, *, lifetime: float, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        self._lifetime = lifetime
        self._limit = limit
        self._now = now
        self._live: dict[str, tuple[float, Reference]] = {}

    def __len__(self) -> int:
        return len(self._live)

    def add(self, references: Sequence[Reference]) -> tuple[str, ...]:
        """Give every reference an id.  Raises ``ActionReferenceCapacityExceeded`` when they cannot all be kept."""
        if len(references) > self._limit:
            raise BridgeError(
                "ActionReferenceCapacityExceeded",
                f"{len(references)} actions were asked for; at most {self._limit} references can be kept.",
            )
        self._drop_expired()
        while len(self._live) + len(references) > self._limit:
            del self._live[next(iter(self._live))]
        born = self._now()
        ids = tuple(str(uuid.uuid4()) for _ in references)
        self._live.update((key, (born, reference)) for key, reference in zip(ids, references, strict=True))
        return ids

    def find(self, action_id: str) -> Reference:
        """The reference behind an id.  Raises ``ActionExpired`` when it is unknown, too old or used up."""
        self._drop_expired()
        found = self._live.get(action_id.lower())
        if found is None:
            raise BridgeError(
                "ActionExpired",
                "This action id is unknown, too old, used up, or of a language server that has ended. "
                "List the actions again.",
            )
        return found[1]

    def consume(self, action_id: str) -> None:
        """Use an id up."""
        self._live.pop(action_id.lower(), None)

    def clear(self) -> None:
        """Forget all ids: the state they were given for is over."""
        self._live.clear()

    def _drop_expired(self) -> None:
        # Insertion order is age order, so the first live one ends the search.
        oldest_birth = self._now() - self._lifetime
        for key, (born, _) in list(self._live.items()):
            if born > oldest_birth:
                return
            del self._live[key]
