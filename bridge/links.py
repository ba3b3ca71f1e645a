"""Documents that are reached through symbolic links: one file under several names.

The tree of a transaction knows physical paths only, so that a file is staged and written once.  A language server knows
a document by the path its project names, which may lead through a link.  Here is the way from one to the other; without
it a server would go on answering for the old text of a file that was edited under its other name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Links:
    """The documents of one load whose path is not that of their file.  Most loads have none."""

    _physical: Mapping[Path, Path] = field(default_factory=dict)
    _others: Mapping[Path, tuple[Path, ...]] = field(default_factory=dict)

    def physical(self, path: Path) -> Path:
        """The file behind a document."""
        return self._physical.get(path, path)

    def names(self, path: Path) -> tuple[Path, ...]:
        """A file's own path, then the paths under which documents lead to it."""
        return (path, *self._others.get(path, ()))


def read_links(documents: Iterable[Path]) -> Links:
    """Look at every document and at every folder once; blocks."""
    folders: dict[Path, Path] = {}
    physical: dict[Path, Path] = {}
    others: dict[Path, tuple[Path, ...]] = {}
    for path in documents:
        if path.parent not in folders:
            folders[path.parent] = Path(os.path.realpath(path.parent))
        target = folders[path.parent] / path.name
        if target.is_symlink():
            target = Path(os.path.realpath(target))
        if target != path:
            physical[path] = target
            others[target] = (*others.get(target, ()), path)
    return Links(physical, others)
