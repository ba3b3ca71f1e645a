"""The unfinished commits that a person can name: those of one state directory, and strangers' in one workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from bridge.frontends.recovery_files import is_strangers
from bridge.recover_command import RecoverCommand
from bridge.state_directory import StateDirectory
from bridge.strangers import Stranger
from transactions.marker import PENDING, KeptFile, kept_files
from transactions.records import existing_records
from transactions.recovery import RecoveryItem, foreign_markers, pending
from transactions.system import SYSTEM

SHORT_ID = 8
"""Characters of an id that are shown where the whole one is not needed; any beginning that is unique is taken."""


class Refused(Exception):
    """What was asked for cannot be done; the text says why."""


class Cases:
    """One state directory, and the place of a workspace if that was given."""

    def __init__(self, state_directory: StateDirectory, root: Path | None) -> None:
        self.state = state_directory.path
        self.command = RecoverCommand(state_directory.given)
        self.root = None if root is None else Path(os.path.realpath(root))

    def line(self, *words: str | Path) -> str:
        """A command that works on what this one works on."""
        return self.command.line(*words, root=self.root)

    def found(self, commit_id: str) -> RecoveryItem | Stranger:
        """The unfinished commit that an id, or the beginning of one, names: ours, or a stranger's under ``--root``."""
        see_all = f"To see them all: {self.line('list')}"
        if not commit_id.strip():  # every id begins with nothing, and an unset variable is no decision
            raise Refused(f"An empty id names no commit. {see_all}")
        everything: tuple[RecoveryItem | Stranger, ...] = (*pending(self.state), *self.strangers())
        found = [one for one in everything if one.commit_id.startswith(commit_id.lower())]
        if len(found) == 1:
            return found[0]
        if found:
            raise Refused(f"Several unfinished commits begin with {commit_id!r}. {see_all}")
        hint = "" if self.root is not None else " Of another bridge's commit, say the workspace with --root."
        raise Refused(f"No unfinished commit begins with {commit_id!r}. {see_all}{hint}")

    def own(self, commit_id: str) -> RecoveryItem:
        """The same where a record is needed."""
        found = self.found(commit_id)
        if isinstance(found, Stranger):
            line = self.line("explain", short_id(found))
            raise Refused(
                f"The record of commit {found.commit_id} is not in the state directory {shown(self.state)}. {found.origin} "
                f"For what to do: {line}"
            )
        return found

    def strangers(self) -> tuple[Stranger, ...]:
        """The commits of other bridges under ``--root``."""
        if self.root is None:
            return ()
        try:
            found = foreign_markers(self.root, self.state)
        except OSError as error:
            raise Refused(f"{shown(self.root)} cannot be looked at: {error.strerror or error}.") from error
        return tuple(Stranger(marker, marker.root, self.state, self.command) for marker in found)

    def to_recover(self, items: Sequence[RecoveryItem], commit_id: str | None) -> Sequence[str | None]:
        """The ids to recover one by one: what was named, or what belongs to the root; ``None`` for all at once."""
        if commit_id is not None:
            return [self.own(commit_id).commit_id]
        if self.root is None:
            return [None]  # all of them, and with one word
        here = {marker.name for marker in self.root.joinpath(*PENDING).glob("*")}
        return [item.commit_id for item in items if item.root == self.root or item.commit_id in here]

    def named(self, item: RecoveryItem, path: Path) -> Path:
        """A path as the commit knows it: given in full, from the workspace's root, or from where we are."""
        if path.is_absolute() or item.root is None:
            return path
        if item.root / path in item.paths:
            return path
        here = Path.cwd() / path
        root = self.root or item.root
        return here.relative_to(root) if here.is_relative_to(root) else path

    @staticmethod
    def one_path(item: RecoveryItem) -> str:
        """A file of the commit that is to be decided, as ``named`` takes it wherever the workspace is."""
        if not item.paths or item.root is None:
            return "PATH"
        relative = os.fspath(item.paths[0].relative_to(item.root))
        return f"./{relative}" if relative.startswith("-") else relative  # which would be an option

    def files(self, item: RecoveryItem) -> tuple[KeptFile, ...]:
        """The targets of a commit, as far as its record can be read."""
        with existing_records(self.state, SYSTEM) as records:
            try:
                record = None if records is None else records.read(item.commit_id)
            except OSError:
                return ()
        return () if record is None or record.manifest is None else kept_files(record.manifest.entries)

    def at_stake(self, item: RecoveryItem, files: Sequence[KeptFile]) -> tuple[str, ...]:
        """The files that are for a person to decide and hold what nobody else has."""
        root = self.root or item.root
        if root is None or item.root is None:
            return ()
        undecided = {os.fspath(path.relative_to(item.root)) for path in item.paths}
        return tuple(
            file.name
            for file in files
            if (file.name in undecided or not undecided) and is_strangers(root / file.name, file)
        )


def shown(value: object) -> str:
    """A text or path for people: what a terminal cannot show is written as an escape."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def short_id(found: RecoveryItem | Stranger) -> str:
    """The beginning of its id."""
    return found.commit_id[:SHORT_ID]
