"""The seam for what survives a crash: what a commit tells the outside while it goes on.

A commit needs no journal to be all-or-nothing against ordinary errors; it restores by looking at the disk. A journal
makes the same plan known to a later process. The order of calls is the contract:

    begin → workshop* → prepared → applying → (committed | restored | unrestored) → finished

`begin` and each `workshop` come before the thing they name exists on disk, so nothing of ours can be on a disk that the
record does not know. `prepared` hands over the whole plan when every artifact is written and synced; `applying` comes
before the first target is touched. `committed` is **the instant**: when it is called, every target is applied, verified
and synced, and afterwards nothing is undone. `finished` comes when the workshops are gone.

Raising OSError from `begin`, `workshop`, `prepared` or `applying` stops the commit before anything happened. `committed`
may raise OSError only while the instant can still be called off; once its publication was attempted it raises
`CommitUnconfirmed` or nothing, and nothing is undone. The last three never raise: what they could not do is left for
recovery. `journal.NullJournal` keeps nothing; `file_journal.FileJournal` is the one that survives.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from transactions.places import Directory, FileFacts, Inode

EntryOperation = Literal["Create", "Replace", "Delete"]


@dataclass(frozen=True, slots=True)
class PlannedEntry:
    """One target: what stands there, what shall stand there, and where both are kept meanwhile.

    `original` are the facts of the file that the commit displaces, `intended` those of the artifact that takes its
    place. The artifact waits in `workshop` under `new_name`; an exchange leaves the original under that same name,
    any other way of displacing it puts it under `old_name`. Who is who is told by inode.
    """

    number: int
    directory: Directory
    name: str
    operation: EntryOperation
    original: FileFacts | None
    intended: FileFacts | None
    workshop: Directory
    moved_from: str | None = None  # relative to the root

    @property
    def new_name(self) -> str:
        return f"{self.number:06}.new"

    @property
    def old_name(self) -> str:
        return f"{self.number:06}.old"


@dataclass(frozen=True, slots=True)
class PlannedDirectory:
    """A directory that the targets need. It waits, empty, in `workshop` under `staged_name` and is moved to its place.

    So it is known to be ours from the start, and making it needs no space when the targets are touched.
    """

    number: int
    directory: Directory
    inode: Inode
    workshop: Directory
    born: str | None = None  # see `places`

    @property
    def staged_name(self) -> str:
        return f"{self.number:06}.dir"


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """Everything that must be known to go back, or forward. `directories` are in the order of making, parents first."""

    commit_id: str
    root: Path
    entries: tuple[PlannedEntry, ...]
    directories: tuple[PlannedDirectory, ...]
    workshops: tuple[Directory, ...]


class CommitRecord(Protocol):
    """The record of one commit; see the module's head for the order of calls."""

    def workshop(self, directory: Directory) -> None:
        """A directory of ours (relative to the root) is about to be made."""

    def prepared(self, plan: CommitPlan) -> None:
        """Every artifact of the plan is written and synced."""

    def applying(self) -> None:
        """The next step touches a target."""

    def committed(self) -> None:
        """The instant: all is applied, verified and synced."""

    def restored(self) -> None:
        """The before-image is back."""

    def unrestored(self, paths: Sequence[Path], refused: bool) -> None:  # said once, by name
        """The before-image is not back at these paths; the workshops are left as they are.

        `refused`: the system refused at least one step, so trying again may help. Else strangers' files are in the way.
        """

    def finished(self) -> None:
        """Nothing of ours is left under the root."""


class Journal(Protocol):
    """Where records are kept."""

    def begin(self, commit_id: str, root: Path) -> CommitRecord:
        """Opens the record of a commit that is about to start."""


class _NullRecord:
    def workshop(self, directory: Directory) -> None: ...
    def prepared(self, plan: CommitPlan) -> None: ...
    def applying(self) -> None: ...
    def committed(self) -> None: ...
    def restored(self) -> None: ...
    def unrestored(self, paths: Sequence[Path], refused: bool) -> None: ...  # the seam's signature
    def finished(self) -> None: ...


class NullJournal:
    """Keeps nothing. With it, a crash inside a commit leaves what it leaves."""

    def begin(self, commit_id: str, root: Path) -> CommitRecord:  # noqa: ARG002  # the seam's signature
        """A record that forgets."""
        return _NullRecord()
