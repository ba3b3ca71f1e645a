"""What ``roslyn-bridge recover`` does and says.  Blocks; each method prints, and returns the exit code."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from rich.console import Console
from rich.text import Text

from transactions.errors import TransactionError
from transactions.exporting import export
from transactions.journal import PlannedEntry
from transactions.lock import LOCK_NAME, LOCKS
from transactions.records import existing_records
from transactions.recovery import RecoveryItem, foreign_markers, pending, recover
from transactions.resolving import Choice, discard, discard_marker, resolve
from transactions.system import SYSTEM

NOTHING_LEFT = 0
SOMETHING_LEFT = 1
REFUSED = 3

LOCK_WAIT = 10.0
"""Seconds to wait for a bridge that is committing in the same workspace."""

SHORT_ID = 8
"""Characters of an id that are shown where the whole one is not needed; any beginning that is unique is taken."""

_DID = {"Create": "created", "Replace": "changed", "Delete": "deleted"}


class Refused(Exception):
    """What was asked for cannot be done; the text says why."""


class Desk:
    """One state directory, and the place a workspace was moved to, if it was."""

    def __init__(self, state_directory: Path, root: Path | None) -> None:
        self._state = state_directory
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
        """Recover one commit, or all, and list what is left."""
        with self._told():
            before = pending(self._state)
            only = None if commit_id is None else self._item(commit_id).commit_id
            left = recover(self._state, wait=LOCK_WAIT, only=only, root=self._root)
            gone = len(
                {item.commit_id for item in before} - {item.commit_id for item in pending(self._state)}
            )
            if gone:
                self._say(f"{_commits(gone)} recovered.", "green")
            self._show_all(left)
        return self._code

    def explain(self, commit_id: str) -> int:
        """One commit in full."""
        with self._told():
            item = self._item(commit_id)
            self._say(f"Commit {item.commit_id}", "bold")
            self._fact("opened from", item.loaded_path)
            self._fact("workspace", item.root)
            self._fact("state", item.state or "cannot be told")
            if item.code is not None:
                self._fact("trouble", item.code)
            self._say(f"\n{_IS_GOING_ON if _is_going_on(item) else item.message}")
            self._show_files(item)
            self._show_ways_out(item)
            self._code = SOMETHING_LEFT
        return self._code

    def resolve(self, commit_id: str, paths: Sequence[Path], choice: str) -> int:
        """Decide files."""
        with self._told():
            item = self._item(commit_id)
            named = [self._named(item, path) for path in paths]
            left = resolve(
                self._state, item.commit_id, named, cast("Choice", choice), root=self._root, wait=LOCK_WAIT
            )
            if left is None:
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
            item = self._item(commit_id)
            export(self._state, item.commit_id, directory.absolute(), root=self._root)
            self._say(f"Copied to {shown(directory.absolute())}:", "green")
            self._say("    before/     the files as they were before the commit")
            self._say("    after/      the files as the commit wanted them, as far as they are not in place")
            self._say("    displaced/  what stood in their place and is neither")
            self._say("    record/     the record itself")
            self._say(f"To forget the commit now: roslyn-bridge recover discard {_short(item)}")
            self._code = SOMETHING_LEFT
        return self._code

    def discard(self, commit_id: str) -> int:
        """Forget a commit."""
        with self._told():
            item = self._item(commit_id)
            discard(self._state, item.commit_id, root=self._root, wait=LOCK_WAIT)
            self._say(
                f"Commit {item.commit_id} is forgotten. The files of the workspace were not touched.", "green"
            )
        return self._code

    def discard_marker(self, commit_id: str) -> int:
        """Forget the marker of another bridge."""
        with self._told():
            if self._root is None:
                raise Refused("Say with --root under which workspace the marker lies.")
            discard_marker(self._root, commit_id, wait=LOCK_WAIT)
            self._say(
                f"The marker is gone; bridges open and commit under {shown(self._root)} again.", "green"
            )
            kept = self._root / ".vs" / "roslyn-bridge" / "commits" / commit_id
            if kept.exists():
                self._say(f"What that commit kept is still in {shown(kept)}.")
        return self._code

    # --- finding ------------------------------------------------------------------------------------------

    def _item(self, commit_id: str) -> RecoveryItem:
        if (
            not commit_id.strip()
        ):  # every id begins with nothing, and a script's unset variable is no decision
            raise Refused("An empty id names no commit. To see them all: roslyn-bridge recover list")
        found = [item for item in pending(self._state) if item.commit_id.startswith(commit_id.lower())]
        if len(found) != 1:
            many = "Several unfinished commits begin" if found else "No unfinished commit begins"
            raise Refused(f"{many} with {commit_id!r}. To see them all: roslyn-bridge recover list")
        return found[0]

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

    def _show_all(self, items: Sequence[RecoveryItem]) -> None:
        markers = self._show_marker()
        if not items:
            if not markers:
                self._say("Nothing is unfinished.", "green")
            return
        self._code = SOMETHING_LEFT
        self._say(f"{_commits(len(items))} unfinished:", "yellow")
        for item in items:
            where = item.loaded_path or item.root
            self._say(
                f"\n{_short(item)}  {item.state or item.code}  {'' if where is None else shown(where)}",
                "bold",
            )
            self._say(f"    {_IS_GOING_ON if _is_going_on(item) else item.message}")
            for path in item.paths:
                self._say(f"        {shown(path)}")
        self._say(f"\nFor what to do: roslyn-bridge recover explain {_short(items[0])}")

    def _show_marker(self) -> bool:
        """Whether there is a marker of another bridge under ``--root``."""
        if self._root is None:
            return False
        try:
            marker = next(iter(foreign_markers(self._root, self._state)), None)
        except OSError as error:
            raise Refused(f"{shown(self._root)} cannot be looked at: {error.strerror or error}.") from error
        if marker is None:
            return False
        self._code = SOMETHING_LEFT
        self._say(
            f"A bridge with another state directory left the commit {marker.commit_id} unfinished:", "yellow"
        )
        self._say(f"    {shown(marker.path)}")
        self._say("    It is recovered when that bridge (of another user, or in a container) starts again.")
        self._say(
            f"    If it will not come back: roslyn-bridge recover discard {marker.commit_id} --marker --root "
            f"{shown(self._root)}"
        )
        return True

    def _show_files(self, item: RecoveryItem) -> None:
        entries = self._entries(item)
        root = self._root or item.root
        if not entries or root is None:
            return
        undecided = set(item.paths)
        self._say("\nThe files of this commit, and what is on the disk now:")
        for entry in entries:
            relative = Path(*entry.directory, entry.name)
            mark = "*" if item.root is not None and item.root / relative in undecided else " "
            self._say(
                f"  {mark} {_DID[entry.operation]:<8} {shown(relative)}: {_standing(root / relative, entry)}"
            )
        if undecided:
            self._say("  * is for you to decide")

    def _entries(self, item: RecoveryItem) -> tuple[PlannedEntry, ...]:
        with existing_records(self._state, SYSTEM) as records:
            try:
                record = None if records is None else records.read(item.commit_id)
            except OSError:
                return ()
        return () if record is None or record.manifest is None else record.manifest.entries

    def _show_ways_out(self, item: RecoveryItem) -> None:
        command = "roslyn-bridge recover"
        where = f" --root {shown(self._root)}" if self._root is not None else ""
        short = f"{_short(item)}{where}"
        ways: list[tuple[str, str]] = []
        if (
            item.state in ("Prepared", "Applying", "Restored", "Committed", "RecoveryIncomplete")
            or not item.state
        ):
            ways.append(("try the recovery again", f"{command} run {short}"))
        if item.root is not None and not item.root.is_dir():
            ways.append(("say where the workspace is now", f"{command} run {_short(item)} --root PATH"))
        if item.state in ("RecoveryConflict", "RecoveryIncomplete"):
            ways.append(("keep what is on the disk now", f"{command} resolve {short} --keep-disk"))
            ways.append(("put the files back as they were", f"{command} resolve {short} --take-before"))
            ways.append(("take what the commit wanted, if kept", f"{command} resolve {short} --take-after"))
            ways.append(("decide one file alone", f"{command} resolve {short} PATH --keep-disk"))
        ways.append(("copy all that is known to a folder", f"{command} export {short} DIR"))
        ways.append(("forget it, after such a copy", f"{command} discard {short}"))
        self._say("\nWhat you can do:")
        for what, how in ways:
            self._say(f"  {what:<36} {how}")


_IS_GOING_ON = "A bridge is at it right now; look again when it is done."


def _is_going_on(item: RecoveryItem) -> bool:
    """Whether somebody holds the commit lock of that workspace; looks, and takes nothing."""
    if item.root is None:
        return False
    try:
        descriptor = os.open(
            item.root.joinpath(*LOCKS, LOCK_NAME), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        )
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def shown(value: object) -> str:
    """A text or path for people: what a terminal cannot show is written as an escape."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _short(item: RecoveryItem) -> str:
    return item.commit_id[:SHORT_ID]


def _commits(count: int) -> str:
    return "1 commit is" if count == 1 else f"{count} commits are"


def _standing(path: Path, entry: PlannedEntry) -> str:
    """How the file on the disk compares with what the commit found, and with what it wanted."""
    before = None if entry.original is None else entry.original.sha256
    after = None if entry.intended is None else entry.intended.sha256
    try:
        now = hashlib.sha256(path.read_bytes()).digest() if os.path.lexists(path) else None
    except OSError as error:
        return f"cannot be read ({error.strerror or error})"
    if now == before:
        return "as before the commit" if now is not None else "not there, as before the commit"
    if now == after:
        return "as the commit wants it" if now is not None else "gone, as the commit wants it"
    return "somebody else's" if now is not None else "missing"
