"""Whether an edit does what its action's title promises, where the title says that files come, go or change their names.

Servers lose operations on files when they turn a change of the solution into an edit: "Rename file to …" arrives with no
edits at all, and "Move type to …" could arrive as the deletion alone, which would destroy the type.  So for the closed
list of titles below the planned tree is looked at, not the edit's form: a creation may be said in several ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from transactions.errors import EditRefused
from transactions.overlay import Overlay


@dataclass(frozen=True, slots=True)
class _Step:
    """What an edit makes of the files, seen from the file its action started from."""

    before: Overlay
    after: Overlay
    origin: Path

    def created(self) -> Iterator[Path]:
        """Where a file stands that did not stand there before, be it a moved one.

        Its origin tells, because on a disk that is blind for case a file under its old name seems to be there already.
        """
        for path in self.after.touched_paths:
            if not self.after.exists(path):
                continue
            if not self.before.exists(path) or self.after.origin(path) != self.before.origin(path):
                yield path

    def makes(self, name: str) -> bool:
        """Whether a file comes to have this name."""
        return any(path.name == name for path in self.created())

    @property
    def changes_origin(self) -> bool:
        return self.before.text(self.origin) != self.after.text(self.origin)

    @property
    def leaves_origin(self) -> bool:
        """Whether nothing stands any more where the action was offered."""
        return not self.after.exists(self.origin)


def _moves_type(step: _Step, name: str) -> str | None:
    if not step.makes(name):
        return f"{name} is not created"
    return None if step.changes_origin else "nothing is taken out of the file it is in"


def _renames_file(step: _Step, name: str) -> str | None:
    if not step.makes(name):
        return f"there is no {name} afterwards"
    return None if step.leaves_origin else "the file is still there under its old name"


def _makes_a_file(step: _Step, _name: str) -> str | None:
    return None if any(step.created()) else "no file is created"


_PROMISES: Final[tuple[tuple[re.Pattern[str], Callable[[_Step, str], str | None]], ...]] = (
    (re.compile(r"Move type to (?P<name>.+\.cs)"), _moves_type),
    (re.compile(r"Rename file to (?P<name>.+\.cs)"), _renames_file),
    (re.compile(r"(?:.* - )?Generate \w+ '(?P<name>.+)' in new file"), _makes_a_file),
)
"""Titles, and what is missing from a step that falls short of them."""


def require_whole(title: str, origin: Path, before: Overlay, after: Overlay) -> None:
    """Raises ``EditRefused`` when the step from one tree to the next is not all that the title says.

    ``origin`` is the physical path of the file that the action was offered in.
    """
    for pattern, missing in _PROMISES:
        found = pattern.fullmatch(title)
        reason = None if found is None else missing(_Step(before, after, origin), found["name"])
        if reason is not None:
            raise EditRefused(f"The server gave an incomplete edit for {title!r}: {reason}.", [origin])
