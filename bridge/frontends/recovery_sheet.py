"""What ``roslyn-bridge recover`` prints: text for a terminal, in which every command can be copied into a shell."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from bridge.frontends.recovery_cases import Cases, short_id, shown
from bridge.frontends.recovery_files import contents_kept, did, standing
from bridge.strangers import Stranger
from transactions.exporting import Exported
from transactions.marker import KeptFile
from transactions.recovery import RecoveryItem, is_going_on
from transactions.workshop import main_workshop

_IS_GOING_ON = "A bridge is at it right now; look again when it is done."

_COPIES = {
    "before": "the files as they were before the commit",
    "after": "the files as the commit wanted them, as far as they are not in place",
    "displaced": "what stood in their place and is neither",
    "disk": "what stands in their place now and is neither",
    "unassigned": "what was kept and belongs to no file that is known of",
    "record": "the record itself",
}


class Sheet:
    """A terminal, and the commits that are spoken of."""

    def __init__(self, cases: Cases) -> None:
        self._cases = cases
        self._out = Console(highlight=False, soft_wrap=True)
        self._errors = Console(highlight=False, soft_wrap=True, stderr=True)

    def say(self, text: str, style: str = "") -> None:
        """One line or more."""
        self._out.print(Text(text, style=style))  # a ``Text``: a path may hold what looks like markup

    def refuse(self, error: Exception) -> None:
        """A refusal, to stderr."""
        self._errors.print(Text(str(error), style="red"))

    def show_all(self, items: Sequence[RecoveryItem]) -> bool:
        """The items, and the commits of other bridges; whether there is anything at all."""
        strangers = self._cases.strangers()
        if not items and not strangers:
            self.say("Nothing is unfinished.", "green")
            return False
        for stranger in strangers:
            self.say(f"Another bridge's commit is unfinished in {shown(stranger.root)}:", "yellow")
            self.say(f"\n{short_id(stranger)}  {shown(stranger.marker.path)}", "bold")
            self.say(f"    {shown(stranger.origin)} {stranger.finishing}")
        if items:
            self.say(f"{commits_are(len(items))} unfinished:", "yellow")
        for item in items:
            where = item.loaded_path or item.root
            self.say(
                f"\n{short_id(item)}  {item.state or item.code}  {'' if where is None else shown(where)}",
                "bold",
            )
            self.say(f"    {_IS_GOING_ON if is_going_on(item) else item.message}")
            for path in item.paths:
                self.say(f"        {shown(path)}")
        first = items[0] if items else strangers[0]
        self.say(f"\nFor what to do: {self._cases.line('explain', short_id(first))}")
        return True

    def explain_own(self, item: RecoveryItem) -> None:
        """One commit whose record is here."""
        self.say(f"Commit {item.commit_id}", "bold")
        self._fact("opened from", item.loaded_path)
        self._fact("workspace", item.root)
        self._fact("state", item.state or "cannot be told")
        if item.code is not None:
            self._fact("trouble", item.code)
        self.say(f"\n{_IS_GOING_ON if is_going_on(item) else item.message}")
        files = self._cases.files(item)
        root = self._cases.root or item.root
        undecided = {path for path in item.paths if item.root is not None}
        if files and root is not None:
            self.show_files(
                files, root, {os.fspath(path.relative_to(item.root or root)) for path in undecided}
            )
            if undecided:
                self.say("  * is for you to decide")
        self._show_ways_out(item, self._cases.at_stake(item, files))

    def explain_stranger(self, stranger: Stranger) -> None:
        """One commit of another bridge."""
        self.say(f"Commit {stranger.commit_id}", "bold")
        self._fact("opened from", stranger.loaded_path)
        self._fact("workspace", stranger.root)
        self._fact("state", "cannot be told: its record is not in the state directory here")
        self._fact("record in", stranger.record_directory or "cannot be told")
        self._fact("marker", stranger.marker.path)
        workshop = stranger.root.joinpath(*main_workshop(stranger.commit_id))
        self._fact("kept files", workshop if os.path.lexists(workshop) else "none")
        self.say(f"\n{stranger.origin}")
        note = stranger.marker.note
        if note is not None and note.files:
            self.show_files(note.files, stranger.root, set(), kept=True)
        short = short_id(stranger)
        ways = [("copy what is kept to a folder", self._cases.line("export", short, _copies_folder(short)))]
        ways.append(("then let bridges work here again", self._cases.line("discard", short, "--marker")))
        self.say(f"\n{stranger.finishing}")
        self.say("If its state directory is lost for good, the files stay as they are now, and you can:")
        self._show_ways(ways)
        if stranger.needed_user is not None:
            self.say(f"Both need the rights of user {stranger.needed_user}.", "yellow")

    def show_copies(self, target: Path, exported: Exported) -> None:
        """What an export has made."""
        self.say(f"Copied to {shown(target)}, for you alone to read:", "green")
        for name, meaning in _COPIES.items():
            if (target / name).is_dir():
                self.say(f"    {name + '/':<12} {meaning}")
        if not exported.has_workspace:
            self.say("The workspace was not found, so what is kept under it was not copied.", "yellow")
        if exported.unread:
            self.say("These could not be read, and are where they were:", "yellow")
            for path in exported.unread:
                self.say(f"    {shown(path)}")

    def show_files(
        self, files: Sequence[KeptFile], root: Path, marked: Collection[str], *, kept: bool = False
    ) -> None:
        """Each target of a commit and how it stands; with ``kept`` also which file of a workshop holds what."""
        self.say("\nThe files of this commit, and what is on the disk now:")
        for file in files:
            mark = "*" if file.name in marked else " "
            self.say(f"  {mark} {did(file):<8} {shown(file.name)}: {standing(root / file.name, file)}")
            for name, meaning in contents_kept(root, file) if kept else ():
                self.say(f"               {meaning} in {shown(root.joinpath(*file.workshop, name))}")

    def _show_ways_out(self, item: RecoveryItem, at_stake: Sequence[str]) -> None:
        short = short_id(item)
        ways: list[tuple[str, str]] = []
        if (
            item.state in ("Prepared", "Applying", "Restored", "Committed", "RecoveryIncomplete")
            or not item.state
        ):
            ways.append(("try the recovery again", self._cases.line("run", short)))
        if item.root is not None and not item.root.is_dir():
            moved = self._cases.command.line("run", short, "--root", "PATH")
            ways.append(("say where the workspace is now", moved))
        if item.state in ("RecoveryConflict", "RecoveryIncomplete"):
            ways.append(("keep what is on the disk now", self._cases.line("resolve", short, "--keep-disk")))
            ways.append(
                ("put the files back as they were", self._cases.line("resolve", short, "--take-before"))
            )
            ways.append(
                ("take what the commit wanted, if kept", self._cases.line("resolve", short, "--take-after"))
            )
            one = self._cases.one_path(item)
            ways.append(("decide one file alone", self._cases.line("resolve", short, one, "--keep-disk")))
        ways.append(
            ("copy all that is known to a folder", self._cases.line("export", short, _copies_folder(short)))
        )
        ways.append(("forget it, after such a copy", self._cases.line("discard", short)))
        self.say("\nWhat you can do:")
        self._show_ways(ways)
        if at_stake and item.state in ("RecoveryConflict", "RecoveryIncomplete"):
            self.say("\n--take-before and --take-after destroy what somebody else wrote into:", "yellow")
            for name in at_stake:
                self.say(f"    {shown(name)}")
            self.say("Copy all to a folder first, or copy these files yourself.", "yellow")

    def _show_ways(self, ways: Sequence[tuple[str, str]]) -> None:
        for what, how in ways:
            self.say(f"  {what:<36} {how}")

    def _fact(self, label: str, value: object) -> None:
        if value is not None:
            self.say(f"  {label:<12} {shown(value)}")


def commits_are(count: int) -> str:
    """The beginning of a sentence."""
    return "1 commit is" if count == 1 else f"{count} commits are"


def _copies_folder(short: str) -> Path:
    """Where copies of a commit may go: in no workspace, and the user's own."""
    return Path.home() / f"roslyn-bridge-{short}"
