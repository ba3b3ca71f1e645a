"""What ``roslyn-bridge recover`` does.  Blocks; each method prints, and returns the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from bridge.frontends.recovery_cases import Cases, Refused, short_id, shown
from bridge.frontends.recovery_sheet import Sheet, commits_are
from bridge.state_directory import StateDirectory
from bridge.strangers import Stranger
from transactions.errors import TransactionError, WorkspaceBusy
from transactions.exporting import export, export_marked
from transactions.recovery import RecoveryItem, pending, recover
from transactions.resolving import Choice, discard, discard_marker, resolve
from transactions.workshop import main_workshop

NOTHING_LEFT = 0
SOMETHING_LEFT = 1
REFUSED = 3

LOCK_WAIT = 10.0
"""Seconds to wait for a bridge that is committing in the same workspace."""


class Desk:
    """The commands, on one state directory and the place of a workspace if that was given."""

    def __init__(self, state_directory: StateDirectory, root: Path | None) -> None:
        self._cases = Cases(state_directory, root)
        self._sheet = Sheet(self._cases)
        self._code = NOTHING_LEFT

    def list(self) -> int:
        """Everything unfinished."""
        with self._told():
            self._list(pending(self._cases.state))
        return self._code

    def run(self, commit_id: str | None) -> int:
        """Recover one commit, or all (with ``--root`` those that belong there), and list what is left."""
        with self._told():
            before = pending(self._cases.state)
            left: dict[str, RecoveryItem] = {}
            for wanted in self._cases.to_recover(before, commit_id):
                ended = recover(self._cases.state, wait=LOCK_WAIT, only=wanted, root=self._cases.root)
                left |= {item.commit_id: item for item in ended}
            still = pending(self._cases.state)
            gone = len({item.commit_id for item in before} - {item.commit_id for item in still})
            if gone:
                self._sheet.say(f"{commits_are(gone)} recovered.", "green")
            # What a recovery says of a commit is more than its record says; of the others there is no more.
            self._list([left.get(item.commit_id, item) for item in still])
        return self._code

    def _list(self, items: Sequence[RecoveryItem]) -> None:
        if self._sheet.show_all(items):
            self._code = SOMETHING_LEFT

    def explain(self, commit_id: str) -> int:
        """One commit in full."""
        with self._told():
            found = self._cases.found(commit_id)
            if isinstance(found, Stranger):
                self._sheet.explain_stranger(found)
            else:
                self._sheet.explain_own(found)
            self._code = SOMETHING_LEFT
        return self._code

    def resolve(self, commit_id: str, paths: Sequence[Path], choice: str) -> int:
        """Decide files."""
        with self._told():
            item = self._cases.own(commit_id)
            named = [self._cases.named(item, path) for path in paths]
            left = resolve(
                self._cases.state,
                item.commit_id,
                named,
                cast("Choice", choice),
                root=self._cases.root,
                wait=LOCK_WAIT,
            )
            if left is not None and not left.is_blocking:
                self._sheet.say(f"Done; the commit {item.commit_id} is over. {left.message}", "green")
                for path in left.paths:
                    self._sheet.say(f"    {shown(path)}")
            elif left is None:
                self._sheet.say(f"Done; nothing is left of commit {item.commit_id}.", "green")
            else:
                self._sheet.say("Done for these files. Still to be decided:")
                for path in left.paths:
                    self._sheet.say(f"    {shown(path)}")
                self._code = SOMETHING_LEFT
        return self._code

    def export(self, commit_id: str, directory: Path) -> int:
        """Copy everything out."""
        with self._told():
            found = self._cases.found(commit_id)
            target = directory.absolute()
            if isinstance(found, Stranger):
                exported = export_marked(found.root, self._cases.state, found.commit_id, target)
                forget = self._cases.line("discard", short_id(found), "--marker")
            else:
                exported = export(self._cases.state, found.commit_id, target, root=self._cases.root)
                forget = self._cases.line("discard", short_id(found))
            self._sheet.show_copies(target, exported)
            self._sheet.say(f"To forget the commit now: {forget}")
            self._code = SOMETHING_LEFT
        return self._code

    def discard(self, commit_id: str) -> int:
        """Forget a commit."""
        with self._told():
            found = self._cases.found(commit_id)
            if isinstance(found, Stranger):
                line = self._cases.line("discard", short_id(found), "--marker")
                raise Refused(f"Its record is not here; there is only its marker. To take that away: {line}")
            discarded = discard(self._cases.state, found.commit_id, root=self._cases.root, wait=LOCK_WAIT)
            self._sheet.say(
                f"Commit {found.commit_id} is forgotten. The files of the workspace were not touched.",
                "green",
            )
            if discarded.left:
                self._sheet.say("This is still there, because it is not ours or could not be removed:")
                for path in discarded.left:
                    self._sheet.say(f"    {shown(path)}")
            if not discarded.has_workspace:
                line = self._cases.command.line("discard", found.commit_id, "--marker", "--root", "PATH")
                self._sheet.say(
                    "Its workspace was not found. If it was moved, its marker still keeps bridges out of it:"
                )
                self._sheet.say(f"    {line}")
        return self._code

    def discard_marker(self, commit_id: str) -> int:
        """Forget the marker of another bridge."""
        with self._told():
            if self._cases.root is None:
                raise Refused("Say with --root under which workspace the marker lies.")
            found = self._cases.found(commit_id)
            if not isinstance(found, Stranger):
                line = self._cases.line("explain", short_id(found))
                raise Refused(
                    f"The record of commit {found.commit_id} is here, so it can be finished, and its marker is needed "
                    f"for that. For what to do: {line}"
                )
            try:
                discard_marker(found.root, found.commit_id, wait=LOCK_WAIT)
            except TransactionError as error:
                if found.needed_user is None or isinstance(error, WorkspaceBusy):
                    raise
                raise Refused(f"{error} Run this as user {found.needed_user}.") from error
            self._sheet.say(
                f"The marker is gone; bridges open and commit under {shown(found.root)} again.", "green"
            )
            kept = found.root.joinpath(*main_workshop(found.commit_id))
            if kept.exists():
                self._sheet.say(
                    f"What that commit kept is still in {shown(kept)}; delete it when you do not need it."
                )
                note = found.marker.note
                if note is not None and note.files:
                    self._sheet.show_files(note.files, found.root, set(), kept=True)
        return self._code

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Refusals are said, not raised."""
        try:
            yield
        except (TransactionError, Refused) as error:
            self._sheet.refuse(error)
            self._code = REFUSED
