"""What ``roslyn-bridge recover`` does and says.  Blocks; each method prints, and returns the exit code."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.text import Text

from bridge.frontends.recovery_files import contents_kept, did, is_strangers, standing
from bridge.recover_command import RecoverCommand
from bridge.state_directory import StateDirectory
from bridge.strangers import Stranger
from transactions.errors import TransactionError, WorkspaceBusy
from transactions.exporting import Exported, export, export_marked
from transactions.marker import PENDING, KeptFile, kept_files
from transactions.records import existing_records
from transactions.recovery import RecoveryItem, foreign_markers, is_going_on, pending, recover
from transactions.resolving import Choice, discard, discard_marker, resolve
from transactions.system import SYSTEM
from transactions.workshop import main_workshop

NOTHING_LEFT = 0
SOMETHING_LEFT = 1
REFUSED = 3

LOCK_WAIT = 10.0
"""Seconds to wait for a bridge that is committing in the same workspace."""

SHORT_ID = 8
"""Characters of an id that are shown where the whole one is not needed; any beginning that is unique is taken."""


class Refused(Exception):
    """What was asked for cannot be done; the text says why."""


class Desk:
    """One state directory, and the place a workspace was moved to, if it was."""

    def __init__(self, state_directory: StateDirectory, root: Path | None) -> None:
        self._state = state_directory.path
        self._command = RecoverCommand(state_directory.given)
        self._root = None if root is None else Path(os.path.realpath(root))
        self._out = Console(highlight=False, soft_wrap=True)
        self._errors = Console(highlight=False, soft_wrap=True, stderr=True)
        self._code = NOTHING_LEFT

    # --- the commands -------------------------------------------------------------------------------------

    def list(self) -> int:
        """Everything unfinished."""
        with self._told():
            self._show_all(pending(self._state))
        return self._code

    def run(self, commit_id: str | None) -> int:
        """Recover one commit, or all (with ``--root`` those that belong there), and list what is left."""
        with self._told():
            before = pending(self._state)
            left: dict[str, RecoveryItem] = {}
            for wanted in self._to_recover(before, commit_id):
                ended = recover(self._state, wait=LOCK_WAIT, only=wanted, root=self._root)
                left |= {item.commit_id: item for item in ended}
            still = pending(self._state)
            gone = len({item.commit_id for item in before} - {item.commit_id for item in still})
            if gone:
                self._say(f"{_commits(gone)} recovered.", "green")
            # What a recovery says of a commit is more than its record says; of the others there is no more.
            self._show_all([left.get(item.commit_id, item) for item in still])
        return self._code

    def _to_recover(self, items: Sequence[RecoveryItem], commit_id: str | None) -> Sequence[str | None]:
        if commit_id is not None:
            return [self._own(commit_id).commit_id]
        if self._root is None:
            return [None]  # all of them, and with one word
        here = {marker.name for marker in self._root.joinpath(*PENDING).glob("*")}
        return [item.commit_id for item in items if item.root == self._root or item.commit_id in here]

    def explain(self, commit_id: str) -> int:
        """One commit in full."""
        with self._told():
            found = self._found(commit_id)
            if isinstance(found, Stranger):
                self._explain_stranger(found)
            else:
                self._explain_own(found)
            self._code = SOMETHING_LEFT
        return self._code

    def _explain_own(self, item: RecoveryItem) -> None:
        self._say(f"Commit {item.commit_id}", "bold")
        self._fact("opened from", item.loaded_path)
        self._fact("workspace", item.root)
        self._fact("state", item.state or "cannot be told")
        if item.code is not None:
            self._fact("trouble", item.code)
        self._say(f"\n{_IS_GOING_ON if is_going_on(item) else item.message}")
        files = self._files(item)
        root = self._root or item.root
        undecided = {path for path in item.paths if item.root is not None}
        if files and root is not None:
            self._show_files(
                files, root, {os.fspath(path.relative_to(item.root or root)) for path in undecided}
            )
            if undecided:
                self._say("  * is for you to decide")
        self._show_ways_out(item, self._at_stake(item, files))

    def _explain_stranger(self, stranger: Stranger) -> None:
        self._say(f"Commit {stranger.commit_id}", "bold")
        self._fact("opened from", stranger.loaded_path)
        self._fact("workspace", stranger.root)
        self._fact("state", "cannot be told: its record is not in the state directory here")
        self._fact("record in", stranger.record_directory or "cannot be told")
        self._fact("marker", stranger.marker.path)
        workshop = stranger.root.joinpath(*main_workshop(stranger.commit_id))
        self._fact("kept files", workshop if os.path.lexists(workshop) else "none")
        self._say(f"\n{stranger.origin}")
        note = stranger.marker.note
        if note is not None and note.files:
            self._show_files(note.files, stranger.root, set(), kept=True)
        short = stranger.commit_id[:SHORT_ID]
        ways = [("copy what is kept to a folder", self._line("export", short, _copies_folder(short)))]
        ways.append(("then let bridges work here again", self._line("discard", short, "--marker")))
        self._say(f"\n{stranger.finishing}")
        self._say("If its state directory is lost for good, the files stay as they are now, and you can:")
        self._show_ways(ways)
        if stranger.needed_user is not None:
            self._say(f"Both need the rights of user {stranger.needed_user}.", "yellow")

    def resolve(self, commit_id: str, paths: Sequence[Path], choice: str) -> int:
        """Decide files."""
        with self._told():
            item = self._own(commit_id)
            named = [self._named(item, path) for path in paths]
            left = resolve(
                self._state, item.commit_id, named, cast("Choice", choice), root=self._root, wait=LOCK_WAIT
            )
            if left is not None and not left.is_blocking:
                self._say(f"Done; the commit {item.commit_id} is over. {left.message}", "green")
                for path in left.paths:
                    self._say(f"    {shown(path)}")
            elif left is None:
                self._say(f"Done; nothing is left of commit {item.commit_id}.", "green")
            else:
                self._say("Done for these files. Still to be decided:")
                for path in left.paths:
                    self._say(f"    {shown(path)}")
                self._code = SOMETHING_LEFT
        return self._code

    def export(self, commit_id: str, directory: Path) -> int:
        """Copy everything out."""
        with self._told():
            found = self._found(commit_id)
            target = directory.absolute()
            if isinstance(found, Stranger):
                exported = export_marked(found.root, self._state, found.commit_id, target)
                forget = self._line("discard", found.commit_id[:SHORT_ID], "--marker")
            else:
                exported = export(self._state, found.commit_id, target, root=self._root)
                forget = self._line("discard", _short(found))
            self._show_copies(target, exported)
            self._say(f"To forget the commit now: {forget}")
            self._code = SOMETHING_LEFT
        return self._code

    def _show_copies(self, target: Path, exported: Exported) -> None:
        self._say(f"Copied to {shown(target)}, for you alone to read:", "green")
        for name, meaning in _COPIES.items():
            if (target / name).is_dir():
                self._say(f"    {name + '/':<12} {meaning}")
        if not exported.has_workspace:
            self._say("The workspace was not found, so what is kept under it was not copied.", "yellow")
        if exported.unread:
            self._say("These could not be read, and are where they were:", "yellow")
            for path in exported.unread:
                self._say(f"    {shown(path)}")

    def discard(self, commit_id: str) -> int:
        """Forget a commit."""
        with self._told():
            found = self._found(commit_id)
            if isinstance(found, Stranger):
                line = self._line("discard", found.commit_id[:SHORT_ID], "--marker")
                raise Refused(f"Its record is not here; there is only its marker. To take that away: {line}")
            discarded = discard(self._state, found.commit_id, root=self._root, wait=LOCK_WAIT)
            self._say(
                f"Commit {found.commit_id} is forgotten. The files of the workspace were not touched.",
                "green",
            )
            if discarded.left:
                self._say("This is still there, because it is not ours or could not be removed:")
                for path in discarded.left:
                    self._say(f"    {shown(path)}")
            if not discarded.has_workspace:
                line = self._command.line("discard", found.commit_id, "--marker", "--root", "PATH")
                self._say(
                    "Its workspace was not found. If it was moved, its marker still keeps bridges out of it:"
                )
                self._say(f"    {line}")
        return self._code

    def discard_marker(self, commit_id: str) -> int:
        """Forget the marker of another bridge."""
        with self._told():
            if self._root is None:
                raise Refused("Say with --root under which workspace the marker lies.")
            found = self._found(commit_id)
            if not isinstance(found, Stranger):
                line = self._line("explain", _short(found))
                raise Refused(
                    f"The record of commit {found.commit_id} is here, so it can be finished, and its marker is needed "
                    f"for that. For what to do: {line}"
                )
            try:
                discard_marker(self._root, found.commit_id, wait=LOCK_WAIT)
            except TransactionError as error:
                if found.needed_user is None or isinstance(error, WorkspaceBusy):
                    raise
                raise Refused(f"{error} Run this as user {found.needed_user}.") from error
            self._say(
                f"The marker is gone; bridges open and commit under {shown(self._root)} again.", "green"
            )
            kept = self._root.joinpath(*main_workshop(found.commit_id))
            if kept.exists():
                self._say(
                    f"What that commit kept is still in {shown(kept)}; delete it when you do not need it."
                )
                note = found.marker.note
                if note is not None and note.files:
                    self._show_files(note.files, found.root, set(), kept=True)
        return self._code

    # --- finding ------------------------------------------------------------------------------------------

    def _found(self, commit_id: str) -> RecoveryItem | Stranger:
        """The unfinished commit that an id, or the beginning of one, names: ours, or a stranger's under ``--root``."""
        see_all = f"To see them all: {self._line('list')}"
        if (
            not commit_id.strip()
        ):  # every id begins with nothing, and a script's unset variable is no decision
            raise Refused(f"An empty id names no commit. {see_all}")
        everything: tuple[RecoveryItem | Stranger, ...] = (*pending(self._state), *self._strangers())
        found = [one for one in everything if one.commit_id.startswith(commit_id.lower())]
        if len(found) == 1:
            return found[0]
        if found:
            raise Refused(f"Several unfinished commits begin with {commit_id!r}. {see_all}")
        hint = "" if self._root is not None else " Of another bridge's commit, say the workspace with --root."
        raise Refused(f"No unfinished commit begins with {commit_id!r}. {see_all}{hint}")

    def _own(self, commit_id: str) -> RecoveryItem:
        """The same where a record is needed."""
        found = self._found(commit_id)
        if isinstance(found, Stranger):
            line = self._line("explain", found.commit_id[:SHORT_ID])
            raise Refused(
                f"The record of commit {found.commit_id} is not in the state directory {shown(self._state)}. {found.origin} "
                f"For what to do: {line}"
            )
        return found

    def _strangers(self) -> tuple[Stranger, ...]:
        """The commits of other bridges under ``--root``."""
        if self._root is None:
            return ()
        try:
            found = foreign_markers(self._root, self._state)
        except OSError as error:
            raise Refused(f"{shown(self._root)} cannot be looked at: {error.strerror or error}.") from error
        return tuple(Stranger(marker, self._root, self._state, self._command) for marker in found)

    def _named(self, item: RecoveryItem, path: Path) -> Path:
        """A path as the commit knows it: given in full, from the workspace's root, or from where we are."""
        if path.is_absolute() or item.root is None:
            return path
        if item.root / path in item.paths:
            return path
        here = Path.cwd() / path
        root = self._root or item.root
        return here.relative_to(root) if here.is_relative_to(root) else path

    # --- saying -------------------------------------------------------------------------------------------

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Refusals are said, not raised."""
        try:
            yield
        except (TransactionError, Refused) as error:
            self._errors.print(Text(str(error), style="red"))
            self._code = REFUSED

    def _say(self, text: str, style: str = "") -> None:
        self._out.print(Text(text, style=style))  # a ``Text``: a path may hold what looks like markup

    def _fact(self, label: str, value: object) -> None:
        if value is not None:
            self._say(f"  {label:<12} {shown(value)}")

    def _line(self, *words: str | Path) -> str:
        """A command that works on what this one works on."""
        return self._command.line(*words, root=self._root)

    def _show_all(self, items: Sequence[RecoveryItem]) -> None:
        strangers = self._strangers()
        if not items and not strangers:
            self._say("Nothing is unfinished.", "green")
            return
        self._code = SOMETHING_LEFT
        for stranger in strangers:
            self._say(f"Another bridge's commit is unfinished in {shown(stranger.root)}:", "yellow")
            self._say(f"\n{stranger.commit_id[:SHORT_ID]}  {shown(stranger.marker.path)}", "bold")
            self._say(f"    {shown(stranger.origin)} {stranger.finishing}")
        if items:
            self._say(f"{_commits(len(items))} unfinished:", "yellow")
        for item in items:
            where = item.loaded_path or item.root
            self._say(
                f"\n{_short(item)}  {item.state or item.code}  {'' if where is None else shown(where)}",
                "bold",
            )
            self._say(f"    {_IS_GOING_ON if is_going_on(item) else item.message}")
            for path in item.paths:
                self._say(f"        {shown(path)}")
        first = items[0].commit_id if items else strangers[0].commit_id
        self._say(f"\nFor what to do: {self._line('explain', first[:SHORT_ID])}")

    def _show_files(
        self, files: Sequence[KeptFile], root: Path, marked: Collection[str], *, kept: bool = False
    ) -> None:
        """Each target of a commit and how it stands; with ``kept`` also which file of a workshop holds what."""
        self._say("\nThe files of this commit, and what is on the disk now:")
        for file in files:
            mark = "*" if file.name in marked else " "
            self._say(f"  {mark} {did(file):<8} {shown(file.name)}: {standing(root / file.name, file)}")
            for name, meaning in contents_kept(root, file) if kept else ():
                self._say(f"               {meaning} in {shown(root.joinpath(*file.workshop, name))}")

    def _files(self, item: RecoveryItem) -> tuple[KeptFile, ...]:
        with existing_records(self._state, SYSTEM) as records:
            try:
                record = None if records is None else records.read(item.commit_id)
            except OSError:
                return ()
        return () if record is None or record.manifest is None else kept_files(record.manifest.entries)

    def _at_stake(self, item: RecoveryItem, files: Sequence[KeptFile]) -> tuple[str, ...]:
        """The files that are for a person to decide and hold what nobody else has."""
        root = self._root or item.root
        if root is None or item.root is None:
            return ()
        undecided = {os.fspath(path.relative_to(item.root)) for path in item.paths}
        return tuple(
            file.name
            for file in files
            if (file.name in undecided or not undecided) and is_strangers(root / file.name, file)
        )

    def _show_ways_out(self, item: RecoveryItem, at_stake: Sequence[str]) -> None:
        short = _short(item)
        ways: list[tuple[str, str]] = []
        if (
            item.state in ("Prepared", "Applying", "Restored", "Committed", "RecoveryIncomplete")
            or not item.state
        ):
            ways.append(("try the recovery again", self._line("run", short)))
        if item.root is not None and not item.root.is_dir():
            moved = self._command.line("run", short, "--root", "PATH")
            ways.append(("say where the workspace is now", moved))
        if item.state in ("RecoveryConflict", "RecoveryIncomplete"):
            ways.append(("keep what is on the disk now", self._line("resolve", short, "--keep-disk")))
            ways.append(("put the files back as they were", self._line("resolve", short, "--take-before")))
            ways.append(
                ("take what the commit wanted, if kept", self._line("resolve", short, "--take-after"))
            )
            one = item.paths[0] if item.paths else "PATH"
            ways.append(("decide one file alone", self._line("resolve", short, one, "--keep-disk")))
        ways.append(
            ("copy all that is known to a folder", self._line("export", short, _copies_folder(short)))
        )
        ways.append(("forget it, after such a copy", self._line("discard", short)))
        self._say("\nWhat you can do:")
        self._show_ways(ways)
        if at_stake and item.state in ("RecoveryConflict", "RecoveryIncomplete"):
            self._say("\n--take-before and --take-after destroy what somebody else wrote into:", "yellow")
            for name in at_stake:
                self._say(f"    {shown(name)}")
            self._say("Copy all to a folder first, or copy these files yourself.", "yellow")

    def _show_ways(self, ways: Sequence[tuple[str, str]]) -> None:
        for what, how in ways:
            self._say(f"  {what:<36} {how}")


_COPIES = {
    "before": "the files as they were before the commit",
    "after": "the files as the commit wanted them, as far as they are not in place",
    "displaced": "what stood in their place and is neither",
    "disk": "what stands in their place now and is neither",
    "unassigned": "what was kept and belongs to no file that is known of",
    "record": "the record itself",
}
_IS_GOING_ON = "A bridge is at it right now; look again when it is done."


def shown(value: object) -> str:
    """A text or path for people: what a terminal cannot show is written as an escape."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _short(item: RecoveryItem) -> str:
    return item.commit_id[:SHORT_ID]


def _commits(count: int) -> str:
    return "1 commit is" if count == 1 else f"{count} commits are"


def _copies_folder(short: str) -> Path:
    """Where copies of a commit may go: in no workspace, and the user's own."""
    return Path.home() / f"roslyn-bridge-{short}"
