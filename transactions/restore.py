"""Going back: from a half-applied commit to the before-image.

A restore believes the disk, not its memory of what worked: a call that failed may have taken effect, and a later process
has no such memory. For each target it looks at three names (the target, the artifact's, the kept original's) and tells
who stands where; `places` says by what. *Kept* is what was displaced into the workshop, under either name. *Somebody's*
is anything else, and need not be a file: a directory, link or pipe is left at its place, or given back if it got out of it.

| operation | kept      | at the target     | what is done                                                             |
|-----------|-----------|-------------------|--------------------------------------------------------------------------|
| Create    | –         | the artifact      | it is taken out again                                                    |
| Create    | –         | nothing           | nothing; the same while a directory of ours for it is in the workshop,   |
|           |           |                   | or an original stands in the directory's place                           |
| Create    | –         | somebody's        | nothing when the artifact still waits in the workshop, else conflict     |
| Replace   | as `.new` | the artifact      | they change places again                                                 |
| Replace   | as `.old` | the artifact      | it is taken out, the kept file moves back                                |
| any       | as `.old` | nothing           | the kept file moves back                                                 |
| Replace   | as `.new` | nothing           | conflict: somebody removed what we had put there                         |
| any       | yes       | somebody's        | nothing when it holds the original's bytes, else conflict                |
| any       | no        | the original      | nothing: it never left, or is back                                       |
| Replace   | no        | the artifact      | the original was lost with its workshop: its second copy is put back     |
| any       | no        | nothing           | as above if the workshop is gone; else conflict if it had left, or may   |
| any       | no        | somebody's        | nothing if it holds the original's bytes or nothing of ours had come     |
|           |           |                   | there (the artifact still waits); else conflict                          |

An artifact that came out of a target is hashed, now or by a later run that finds it in the workshop: when somebody wrote
to it in place it goes back to the target as a conflict. A displaced file need not be the original: when somebody
replaced the target just before we took it out, it is theirs, and goes back all the same. So no step replaces a file that
it has not looked at, and none loses one. Each step may be cut short and the whole may be run again, by anybody.
"""

import errno
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from transactions.journal import CommitPlan, PlannedDirectory, PlannedEntry
from transactions.moving import move
from transactions.places import Directory, Places
from transactions.workshop import sync_directories

RESTORE_ATTEMPTS = 2
"""A step that the system refuses is tried once more, after all others; some refusals pass."""

_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})


class Result(Enum):
    """What came of one entry."""

    RESTORED = auto()
    CONFLICT = auto()


@dataclass(frozen=True, slots=True)
class Unrestored:
    """What is not as it was: `conflicts` because of somebody's file, `refused` because the system refused.

    `directories_refused` tells that an empty directory of ours could not be removed.
    """

    conflicts: tuple[PlannedEntry, ...]
    refused: tuple[PlannedEntry, ...]
    directories_refused: bool = False

    @property
    def entries(self) -> tuple[PlannedEntry, ...]:
        return self.conflicts + self.refused

    @property
    def is_refused(self) -> bool:
        """Whether trying again may help."""
        return bool(self.refused) or self.directories_refused


class SecondCopy(Protocol):
    """The originals that lie outside the root."""

    def put(self, places: Places, entry: PlannedEntry) -> bool:
        """Puts the original under `entry.old_name` into the workshop; False when there is no good copy. Raises OSError."""


class Restorer:
    """Restores one plan, as far as it can."""

    def __init__(
        self,
        places: Places,
        plan: CommitPlan,
        displaced: Collection[int] | None = None,
        second_copy: SecondCopy | None = None,
        workshops_gone: Collection[Directory] = (),
    ) -> None:
        """`displaced` are the numbers of the entries whose original is known to have left its place; None: any may have.

        `workshops_gone` are those that somebody removed, and that were made anew for what has to be put back.
        """
        self._places = places
        self._plan = plan
        self._displaced = displaced
        self._second_copy = second_copy
        self._workshops_gone = workshops_gone

    def run(self) -> Unrestored:
        """Raises nothing of the system's."""
        by_operation: dict[str, list[PlannedEntry]] = {"Create": [], "Replace": [], "Delete": []}
        for entry in reversed(self._plan.entries):
            by_operation[entry.operation].append(entry)
        first = self._restore_all((*by_operation["Create"], *by_operation["Replace"]))
        directories_refused = self.remove_directories()
        second = self._restore_all(by_operation["Delete"])
        return Unrestored(
            first.conflicts + second.conflicts, first.refused + second.refused, directories_refused
        )

    def _restore_all(self, entries: Iterable[PlannedEntry]) -> Unrestored:
        conflicts: list[PlannedEntry] = []
        pending = list(entries)
        for _ in range(RESTORE_ATTEMPTS):
            refused: list[PlannedEntry] = []
            for entry in pending:
                try:
                    if self._restore(entry) is Result.CONFLICT:
                        conflicts.append(entry)
                except OSError:
                    refused.append(entry)
            pending = refused
        cut_off = {entry.number for entry in pending if is_obstructed(self._places, entry.directory)}
        conflicts += [entry for entry in pending if entry.number in cut_off]
        return Unrestored(tuple(conflicts), tuple(entry for entry in pending if entry.number not in cut_off))

    def _restore(self, entry: PlannedEntry) -> Result:
        return self._undo_create(entry) if entry.operation == "Create" else self._undo_displacing(entry)

    # -- what the table says ------------------------------------------------------------------------------------------

    def _undo_create(self, entry: PlannedEntry) -> Result:
        waits = self._artifact_waits(entry)
        cannot_be_there = (
            self._directory_waits(entry)
            or self._original_is_in_the_way(entry)
            or (waits and is_obstructed(self._places, entry.directory))
        )
        if not cannot_be_there and self._is_ours(entry):
            return self._take_out(entry)
        if waits:
            return self._judge_artifact(entry, lambda: self._put_out_again(entry))
        is_free = cannot_be_there or self._places.inode(entry.directory, entry.name) is None
        return Result.RESTORED if is_free else Result.CONFLICT

    def _undo_displacing(self, entry: PlannedEntry) -> Result:
        places = self._places
        kept_name = displaced_name(places, entry)
        if kept_name is None:
            return self._without_kept(entry)
        if self._is_ours(entry):
            if kept_name == entry.new_name:
                return self._exchange_back(entry)
            if self._take_out(entry) is Result.CONFLICT:
                return Result.CONFLICT
            return self._move_back(entry, kept_name)
        if kept_name == entry.old_name and places.inode(entry.directory, entry.name) is None:
            return self._move_back(entry, kept_name)
        return Result.RESTORED if self._holds_original_bytes(entry) else Result.CONFLICT

    def _without_kept(self, entry: PlannedEntry) -> Result:
        if self._artifact_waits(entry):
            return self._judge_unapplied(entry)
        workshop_is_gone = entry.workshop in self._workshops_gone
        if self._is_original(entry) and not workshop_is_gone:
            return Result.RESTORED
        is_ours = self._is_ours(entry)
        is_free = self._places.inode(entry.directory, entry.name) is None
        has_left = self._displaced is not None and entry.number in self._displaced
        if is_ours or (is_free and (has_left or workshop_is_gone)):
            return self._replace_lost(entry, is_ours=is_ours)
        if is_free:
            return Result.CONFLICT if self._displaced is None else Result.RESTORED
        never_left = entry.operation == "Delete" and not workshop_is_gone
        return Result.RESTORED if never_left or self._holds_original_bytes(entry) else Result.CONFLICT

    def _replace_lost(self, entry: PlannedEntry, *, is_ours: bool) -> Result:
        """Somebody removed the kept original from the workshop."""
        if self._second_copy is None:
            raise OSError(errno.ENOENT, "the kept original is gone; recovery has a second copy")
        if not self._second_copy.put(self._places, entry):
            return Result.CONFLICT
        if is_ours and self._take_out(entry) is Result.CONFLICT:
            return Result.CONFLICT
        return self._move_back(entry, entry.old_name)

    def _judge_unapplied(self, entry: PlannedEntry) -> Result:
        """The artifact waits in the workshop, so it never came to the target or is back from there."""
        if self._places.inode(entry.directory, entry.name) is None:
            if self._displaced is not None and entry.number in self._displaced:
                return Result.CONFLICT
            return self._judge_artifact(entry, lambda: self._put_out_again(entry))
        is_original = self._is_original(entry)
        return self._judge_artifact(entry, lambda: self._exchange(entry) if is_original else None)

    # -- steps --------------------------------------------------------------------------------------------------------

    def _take_out(self, entry: PlannedEntry) -> Result:
        """Takes the artifact out of the target; puts it back if somebody wrote to it."""
        move(self._places, entry.directory, entry.name, entry.workshop, entry.new_name)
        return self._judge_artifact(entry, lambda: self._put_out_again(entry))

    def _put_out_again(self, entry: PlannedEntry) -> None:
        with suppress(
            FileExistsError
        ):  # then there are two strangers' files, and this one stays in the workshop
            move(self._places, entry.workshop, entry.new_name, entry.directory, entry.name)

    def _exchange_back(self, entry: PlannedEntry) -> Result:
        self._exchange(entry)
        result = self._judge_artifact(entry, lambda: self._exchange(entry))
        if result is Result.RESTORED:
            self._freshen(entry)
        return result

    def _exchange(self, entry: PlannedEntry) -> None:
        places = self._places
        workshop, directory = places.pair(entry.workshop, entry.directory)
        places.system.exchange(entry.new_name, workshop, entry.name, directory)

    def _move_back(self, entry: PlannedEntry, kept_name: str) -> Result:
        try:
            move(self._places, entry.workshop, kept_name, entry.directory, entry.name)
        except FileExistsError:
            return Result.CONFLICT
        self._freshen(entry)
        return Result.RESTORED

    def _freshen(self, entry: PlannedEntry) -> None:
        """MSBuild must not take binaries built from the half-applied tree for current. Nice to have, so never an error."""
        with suppress(OSError):
            self._places.system.touch(entry.name, self._places.descriptor(entry.directory))

    def _judge_artifact(self, entry: PlannedEntry, give_back: Callable[[], None]) -> Result:
        """Whether what is in the workshop as the artifact is as we wrote it; if not, it is somebody's and is given back.

        It may be a directory, a link or a pipe: he may have put it there after the last look at the target.
        """
        wanted = entry.intended
        if wanted is not None and self._artifact_waits(entry):
            facts = self._places.facts(entry.workshop, entry.new_name)
            if facts.sha256 == wanted.sha256:
                return Result.RESTORED
        give_back()
        return Result.CONFLICT

    # -- looks --------------------------------------------------------------------------------------------------------

    def _is_ours(self, entry: PlannedEntry) -> bool:
        """Whether the artifact stands at the target."""
        return self._places.is_file_of(entry.intended, entry.directory, entry.name)

    def _is_original(self, entry: PlannedEntry) -> bool:
        """Whether the original stands at the target, or a file that was given its inode after it was lost."""
        return self._places.is_file_of(entry.original, entry.directory, entry.name)

    def _artifact_waits(self, entry: PlannedEntry) -> bool:
        return self._places.is_file_of(entry.intended, entry.workshop, entry.new_name)

    def _directory_waits(self, entry: PlannedEntry) -> bool:
        """Whether a directory that the target needs is still in the workshop, and so the artifact, if it is in it."""
        return any(
            entry.directory[: len(planned.directory)] == planned.directory
            and is_ours(self._places, planned, planned.workshop, planned.staged_name)
            for planned in self._plan.directories
        )

    def _original_is_in_the_way(self, entry: PlannedEntry) -> bool:
        """Whether a file of the before-image stands where the target's directory would have to be."""
        return any(
            (*other.directory, other.name) == entry.directory[: len(other.directory) + 1]
            and self._is_original(other)
            for other in self._plan.entries
            if other.operation == "Delete"
        )

    def _holds_original_bytes(self, entry: PlannedEntry) -> bool:
        """Whether somebody's file at the target has the very bytes that belong there."""
        if entry.original is None or self._places.inode(entry.directory, entry.name) is None:
            return False
        if not self._places.is_file(entry.directory, entry.name):
            return False
        return self._places.facts(entry.directory, entry.name).sha256 == entry.original.sha256

    # -- directories --------------------------------------------------------------------------------------------------

    def remove_directories(self) -> bool:
        """Removes the directories that we made and nobody uses. Whether the system refused one."""
        refused = False
        for planned in reversed(self._plan.directories):
            for attempt in range(1, RESTORE_ATTEMPTS + 1):
                try:
                    self._remove_directory(planned)
                    break
                except OSError:
                    refused = refused or attempt == RESTORE_ATTEMPTS
        return refused

    def _remove_directory(self, planned: PlannedDirectory) -> None:
        """Somebody may have moved away what it is in. As long as we hold that open, it is found there all the same."""
        above, name = planned.directory[:-1], planned.directory[-1]
        try:
            if is_ours(self._places, planned, above, name):
                self._places.system.remove_directory(name, self._places.descriptor(above))
        except OSError as error:
            # One that somebody put a file into stays, with that file.
            if error.errno not in _NOT_EMPTY and not is_obstructed(self._places, above):
                raise
        self._places.forget(planned.directory)


def is_ours(places: Places, planned: PlannedDirectory, above: Directory, name: str) -> bool:
    """Whether a directory that a commit made stands at a name. Raises OSError."""
    return places.is_directory_of(planned.inode, planned.born, above, name)


def displaced_name(places: Places, entry: PlannedEntry) -> str | None:
    """The name in the workshop under which the file that stood at the target is kept; None when it never left."""
    if places.inode(entry.workshop, entry.old_name) is not None:
        return entry.old_name
    if places.inode(entry.workshop, entry.new_name) is None:
        return None
    is_artifact = places.is_file_of(entry.intended, entry.workshop, entry.new_name)
    return None if is_artifact else entry.new_name


def is_obstructed(places: Places, directory: Directory) -> bool:
    """Whether the way to a directory is cut: a part of it is missing, or is a link or a file.

    This is how an error that tells of somebody's doing is told from one that the system may take back: by looking.
    """
    try:
        for length in range(1, len(directory) + 1):
            part = directory[:length]
            if not places.is_directory(part[:-1], part[-1]):
                places.forget(part)
                return True
    except OSError:
        return False
    return False


def sync_touched(places: Places, plan: CommitPlan) -> None:
    """Puts the directories whose entries a plan changes on the disk, as far as they are there. Raises OSError."""
    there = set()
    for directory in touched(plan):
        if not is_obstructed(places, directory):
            places.descriptor(directory)
            there.add(directory)
    sync_directories(places, there)


def touched(plan: CommitPlan) -> set[Directory]:
    """The directories whose entries a plan changes."""
    parents = {planned.directory[:-1] for planned in plan.directories}
    return {entry.directory for entry in plan.entries} | parents | set(plan.workshops)
