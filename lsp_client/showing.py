"""What one server process is shown: texts by its mirror and, where it has a tree of its own, files by that.

Without a tree there is little to it: a created file is an open document, and the dialect says whether that makes it a
member of a project.  With a tree, the order counts.  What leaves the tree is closed first, then the files come and go,
then the server is told and evaluates its projects, and what came into the tree is opened when that is done.  Being cut
short anywhere in this loses nothing: events that were not taken in are told again by the next `show`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from lsp_client.dialects.base import Dialect, DocumentView, FileEvent
from lsp_client.mirror import Mirror
from lsp_client.staged_tree import StagedTree, TreeLost

LATER: Final = "a created file joins its project only once it is on disk"
"""Why a created file is no member, where the server has only the disk to go by."""

NO_MEMBER: Final = "the server has not taken it into any of its projects"
"""Why a created file is no member, although the server finds it in its folder."""

NO_PLACE: Final = "it tells of no place in a file that is not on disk"
"""Why no uses are found in a created file, although the server compiles it with its project.  Seen with csharp-ls, which
leaves such places out of references and definitions, and edits them in a rename all the same."""


def limits_of(dialect: Dialect, *, in_tree: bool) -> tuple[str, ...]:
    """What a server of this kind cannot do, with or without a tree of its own to look at."""
    return dialect.limits if in_tree or dialect.created_files_become_members else (*dialect.limits, LATER)


class Showing:
    """The views of one server process.  Callers serialise: only one call at a time."""

    def __init__(
        self,
        dialect: Dialect,
        mirror: Mirror,
        tree: StagedTree | None,
        *,
        files_changed: Callable[[Sequence[FileEvent]], Awaitable[object]],
        knows: Callable[[Path], Awaitable[bool]],
    ) -> None:
        """``files_changed`` tells the server of files that came or went and waits until it has taken them in;
        ``knows`` asks whether a file is a member of a project."""
        self.outsiders: Mapping[Path, str] = {}
        """Created documents of the present view that the server does not take for members of a project, and why."""
        self._dialect = dialect
        self._mirror = mirror
        self._tree = tree
        self._files_changed = files_changed
        self._knows = knows
        self._untold: list[FileEvent] = []

    @property
    def unsearched(self) -> Mapping[Path, str]:
        """Created documents of the present view in which the server finds no uses of a symbol, and why.

        A file in the server's own tree is on disk to it.  Without one there is none that finds uses in an open document
        alone, member of a project or not.
        """
        if self._tree is not None:
            return self.outsiders
        reason = NO_PLACE if self._dialect.created_files_become_members else LATER
        return dict.fromkeys(self._mirror.view.created, reason)

    async def show(self, view: DocumentView, *, visit: bool = False) -> None:
        """Make the server see ``view``; see `StagedTree.visiting` for a visit.  Raises `TreeLost`."""
        if self._tree is None:
            await self._mirror.show(view)
            joins = self._dialect.created_files_become_members
            self.outsiders = {} if joins else dict.fromkeys(view.created, LATER)
        else:
            await self._show_in_tree(self._tree, self._tree.visiting(view) if visit else view)

    async def _show_in_tree(self, tree: StagedTree, view: DocumentView) -> None:
        if not tree.is_that_of(view):
            await self._mirror.show(tree.common(view))
            self._untold += [event for event in await tree.show(view) if _is_source(event.path)]
            self.outsiders = {
                path: tree.refused.get(path, NO_MEMBER) for path in view.created if _is_source(path)
            }
        if self._untold:
            # Whether all of it was taken in is asked file by file below.
            await self._files_changed(tuple(self._untold))
            self._untold.clear()
        for path in sorted(self.outsiders.keys() & tree.created):
            if await self._knows(path):
                self.outsiders = {other: why for other, why in self.outsiders.items() if other != path}
        await self._mirror.show(tree.remainder(view))

    def news_in(self, events: Sequence[FileEvent]) -> tuple[FileEvent, ...]:
        """What of a change on disk is new to the server: what its tree was ahead in came and went long ago."""
        if self._tree is None:
            return tuple(events)
        untold = {event.path for event in self._untold}
        members = self._tree.created - self.outsiders.keys() - untold
        gone = self._tree.gone - untold
        return tuple(
            FileEvent(event.path, "changed") if event.kind == "created" and event.path in members else event
            for event in events
            if event.kind != "deleted" or event.path not in gone
        )

    async def renew(self) -> bool:
        """Have the tree show the disk as it is now, with nothing staged; False when that takes a new process.

        What was staged in the old tree is on disk now or was dropped, and what was not is staged by the next `show`.
        """
        if self._tree is None:
            return True
        try:
            await self._tree.renew()
        except TreeLost:
            return False
        await self._mirror.show(self._tree.common(self._mirror.view))
        self._untold.clear()
        self.outsiders = {}
        return True


def _is_source(path: Path) -> bool:
    return path.suffix.lower() == ".cs"
