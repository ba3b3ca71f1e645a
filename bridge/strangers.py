"""Interrupted commits of other bridges: their markers stand in a workspace, and their records are not ours.

Whose state directory has the record can finish such a commit, and nobody else; a person who has lost that directory can
copy out what the workspace holds, and give the rest up.  All that is said here says which of both is possible, and how.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bridge.recover_command import RecoverCommand
from bridge.state_directory import given_for
from transactions.marker import Marker
from transactions.private_directory import user_name
from transactions.recovery import RecoveryItem

RECORD_ELSEWHERE = "RecoveryRecordElsewhere"
"""The code of such a commit in ``server-status``."""

LONGEST_PATH = 1024
"""Characters of a path in a marker that are repeated."""


@dataclass(frozen=True, slots=True)
class Stranger:
    """A marker in ``root`` whose record is not in ``state_directory`` (the private one), which ``command`` is for."""

    marker: Marker
    root: Path
    state_directory: Path
    command: RecoverCommand

    @property
    def commit_id(self) -> str:
        """The commit that it marks."""
        return self.marker.commit_id

    @property
    def loaded_path(self) -> Path | None:
        """What its bridge had open, if the marker tells."""
        note = self.marker.note
        return None if note is None else _presentable(note.loaded_path)

    @property
    def record_directory(self) -> Path | None:
        """The private state directory that has its record, if the marker tells."""
        note = self.marker.note
        return None if note is None else _presentable(note.state_directory)

    @property
    def origin(self) -> str:
        """Who left it, as a sentence."""
        who = f"A bridge of user {user_name(self.marker.user)}"
        kept = self.record_directory
        if kept is None:
            return f"{who} left it, with another state directory."
        if kept == self.state_directory:
            return f"{who} left it, with a state directory of the same name, {kept}, or its record was removed from there."
        return f"{who} left it, with the state directory {kept}."

    @property
    def needed_user(self) -> str | None:
        """Who may read and remove what it left, if that is not the user of this process (or one who may do anything)."""
        is_ours = os.geteuid() in (0, self.marker.user)
        return None if is_ours else user_name(self.marker.user)

    @property
    def finishing(self) -> str:
        """How it is finished by whoever has its record, as a sentence."""
        kept = self.record_directory
        if kept is None or kept == self.state_directory:
            return "It is recovered when that bridge starts again."
        run = RecoverCommand(given_for(kept)).line("run", self.commit_id)
        return f"It is recovered when a bridge with that state directory starts again, or now, by that user:\n    {run}"

    @property
    def giving_up(self) -> str:
        """What is left to do without its record, as a sentence."""
        explain = self.command.line("explain", self.commit_id, root=self.root)
        return f"If that state directory is lost for good, this tells what is kept and how to go on:\n    {explain}"

    @property
    def message(self) -> str:
        """All of it; each command stands on a line of its own."""
        return f"Its record is not in this bridge's state directory. {self.origin} {self.finishing}\n{self.giving_up}"

    @property
    def item(self) -> RecoveryItem:
        """The same as an unfinished commit; its state is in its record, so nobody here knows it."""
        return RecoveryItem(
            self.commit_id, self.root, self.loaded_path, None, RECORD_ELSEWHERE, self.message, ()
        )


def _presentable(said: str | None) -> Path | None:
    """A path that a marker tells of; ``None`` for text that only somebody who means harm puts there.

    Whoever can write to the workspace can write a marker, and what it says is repeated to people and agents.
    """
    if said is None or len(said) > LONGEST_PATH or not said.isprintable() or not said.startswith("/"):
        return None
    return Path(said)
