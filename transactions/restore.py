"""Going back: from a half-applied commit to the before-image.

A restore believes the disk, not its memory of what worked: a call that failed may have taken effect, and a later process
has no such memory. For each target it looks at three names (the target, the artifact's, the kept original's) and tells
by inode who stands where:

| operation | what is seen                                         | what is done                                        |
|-----------|------------------------------------------------------|-----------------------------------------------------|
| Create    | the artifact at the target                           | it is taken out again                               |
| Create    | anything else                                        | nothing: we are not there                           |
| Replace   | a displaced file in the workshop, artifact at target | they change places again                            |
| Replace   | a displaced file under its own name, target free     | it is moved back                                    |
| Replace   | a displaced file, something else at the target       | conflict: the target is left, the file stays kept   |
| Replace   | no displaced file                                    | nothing: it never left                              |
| Delete    | a displaced file, target free                        | it is moved back                                    |
| Delete    | a displaced file, something at the target            | conflict, as above                                  |
| Delete    | no displaced file                                    | nothing: it never left                              |

A displaced file need not be the original: when somebody replaced the target just before we took it out, it is theirs,
and goes back all the same. What is taken out of a target is hashed, and put back as a conflict when somebody wrote to
it. So no step replaces a file that it has not looked at, and none loses one.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from enum import Enum, auto

from transactions.journal import CommitPlan, PlannedEntry
from transactions.moving import move
from transactions.places import Directory, Inode, Places

RESTORE_ATTEMPTS = 2
"""A step that the system refuses is tried once more, after all others; some refusals pass."""


class _Result(Enum):
    RESTORED = auto()
    CONFLICT = auto()


class Restorer:
    """Restores one plan. `unrestored` grows with the entries that could not be put back."""

    def __init__(
        self,
        places: Places,
        plan: CommitPlan,
        made: Mapping[Directory, Inode | None],
        displaced: Collection[int],
    ) -> None:
        """`made` are the directories that were made (None: the call failed, but may have worked); `displaced` the numbers
        of the entries whose original is known to have left its place.
        """
        self._places = places
        self._plan = plan
        self._made = made
        self._displaced = displaced
        self._taken_out: set[int] = (
            set()
        )  # entries whose artifact came out of its target and is not hashed yet

    def run(self) -> list[PlannedEntry]:
        """Restores all it can and gives back the entries that are not restored. Raises nothing of the system's."""
        by_operation: dict[str, list[PlannedEntry]] = {"Create": [], "Replace": [], "Delete": []}
        for entry in reversed(self._plan.entries):
            by_operation[entry.operation].append(entry)
        unrestored = self._restore_all((*by_operation["Create"], *by_operation["Replace"]))
        self._remove_directories()
        unrestored += self._restore_all(by_operation["Delete"])
        return unrestored

    def _restore_all(self, entries: Iterable[PlannedEntry]) -> list[PlannedEntry]:
        conflicts: list[PlannedEntry] = []
        pending = list(entries)
        for _ in range(RESTORE_ATTEMPTS):
            refused: list[PlannedEntry] = []
            for entry in pending:
                try:
                    if self._restore(entry) is _Result.CONFLICT:
                        conflicts.append(entry)
                except OSError:
                    refused.append(entry)
            pending = refused
        return conflicts + pending

    def _restore(self, entry: PlannedEntry) -> _Result:
        match entry.operation:
            case "Create":
                return self._take_out(entry)
            case "Replace":
                return self._put_back_replaced(entry)
            case "Delete":
                return self._put_back_deleted(entry)

    def _take_out(self, entry: PlannedEntry) -> _Result:
        """Takes the artifact out of the target, unless it is not there or somebody wrote to it."""
        places = self._places
        if entry.intended is None:
            return _Result.RESTORED
        if places.inode(entry.directory, entry.name) == entry.intended.inode:
            self._taken_out.add(entry.number)
            move(places, entry.directory, entry.name, entry.workshop, entry.new_name)
        elif entry.number not in self._taken_out:
            return _Result.RESTORED
        if self._is_untouched_artifact(entry):
            return _Result.RESTORED
        move(places, entry.workshop, entry.new_name, entry.directory, entry.name)
        return _Result.CONFLICT

    def _put_back_replaced(self, entry: PlannedEntry) -> _Result:
        places = self._places
        kept_name = displaced_name(places, entry)
        if kept_name is None:
            return self._judge_exchange(entry) if entry.number in self._taken_out else self._never_left(entry)
        at_target = places.inode(entry.directory, entry.name)
        if entry.intended is not None and at_target == entry.intended.inode:
            if kept_name == entry.new_name:
                return self._exchange_back(entry)
            if self._take_out(entry) is _Result.CONFLICT:
                return _Result.CONFLICT
        elif at_target is not None or kept_name == entry.new_name:
            return _Result.CONFLICT  # somebody replaced or removed what we had put there
        return self._move_back(entry, kept_name)

    def _exchange_back(self, entry: PlannedEntry) -> _Result:
        self._taken_out.add(entry.number)
        self._exchange(entry)
        return self._judge_exchange(entry)

    def _judge_exchange(self, entry: PlannedEntry) -> _Result:
        if self._is_untouched_artifact(entry):
            self._freshen(entry)
            return _Result.RESTORED
        self._exchange(entry)
        return _Result.CONFLICT

    def _put_back_deleted(self, entry: PlannedEntry) -> _Result:
        kept_name = displaced_name(self._places, entry)
        return self._never_left(entry) if kept_name is None else self._move_back(entry, kept_name)

    def _move_back(self, entry: PlannedEntry, kept_name: str) -> _Result:
        try:
            move(self._places, entry.workshop, kept_name, entry.directory, entry.name)
        except FileExistsError:
            return _Result.CONFLICT
        self._freshen(entry)
        return _Result.RESTORED

    def _never_left(self, entry: PlannedEntry) -> _Result:
        gone = entry.number in self._displaced and self._places.inode(entry.directory, entry.name) is None
        return _Result.CONFLICT if gone else _Result.RESTORED

    def _exchange(self, entry: PlannedEntry) -> None:
        places = self._places
        workshop, directory = places.pair(entry.workshop, entry.directory)
        places.system.exchange(entry.new_name, workshop, entry.name, directory)

    def _is_untouched_artifact(self, entry: PlannedEntry) -> bool:
        facts = self._places.facts(entry.workshop, entry.new_name)
        wanted = entry.intended
        return wanted is not None and (facts.inode, facts.sha256) == (wanted.inode, wanted.sha256)

    def _freshen(self, entry: PlannedEntry) -> None:
        """MSBuild must not take binaries built from the half-applied tree for current. Nice to have, so never an error."""
        with suppress(OSError):
            self._places.system.touch(entry.name, self._places.descriptor(entry.directory))

    def _remove_directories(self) -> None:
        for directory, inode in sorted(self._made.items(), key=lambda item: len(item[0]), reverse=True):
            for _ in range(RESTORE_ATTEMPTS):
                with suppress(OSError):  # a directory that somebody put a file into stays, with that file
                    found = self._places.inode(directory[:-1], directory[-1])
                    if found is None or (inode is not None and found != inode):
                        break
                    self._places.system.remove_directory(
                        directory[-1], self._places.descriptor(directory[:-1])
                    )
                    break
            self._places.forget(directory)


def displaced_name(places: Places, entry: PlannedEntry) -> str | None:
    """The name in the workshop under which the file that stood at the target is kept; None when it never left."""
    if places.inode(entry.workshop, entry.old_name) is not None:
        return entry.old_name
    at_new = places.inode(entry.workshop, entry.new_name)
    is_artifact = at_new is None or (entry.intended is not None and at_new == entry.intended.inode)
    return None if is_artifact else entry.new_name
