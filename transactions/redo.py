"""Going forward: a commit whose instant has come is completed, never undone.

Everything had been applied and synced when `Committed` was published, so there is usually nothing to do but to look. What
is missing all the same is done again from the artifacts, which wait in the workshops until the record is gone:

| operation       | at the target  | the artifact         | what is done                                       |
|-----------------|----------------|----------------------|----------------------------------------------------|
| Create, Replace | the artifact   | –                    | nothing                                            |
| Create, Replace | nothing        | waits                | it is moved there                                  |
| Replace         | the original   | waits                | they change places                                 |
| Create, Replace | somebody's     | waits                | conflict                                           |
| Create, Replace | anything       | does not wait        | nothing: it was there, and somebody went on from it|
| Delete          | the original   | –                    | it is moved into the workshop, if there is one     |
| Delete          | anything else  | –                    | nothing                                            |

An artifact waits if it is the recorded file with the recorded hash. A workshop that is gone was tidied away after all was
applied: what looks like a deleted original then is a file that was given its inode.
"""

from transactions.journal import CommitPlan, PlannedDirectory, PlannedEntry
from transactions.moving import move
from transactions.places import Places
from transactions.restore import RESTORE_ATTEMPTS, Result, Unrestored, is_obstructed, is_ours


class Redoer:
    """Completes one plan."""

    def __init__(self, places: Places, plan: CommitPlan) -> None:
        self._places = places
        self._plan = plan

    def run(self) -> Unrestored:
        """What could not be completed. Raises nothing of the system's."""
        order = {"Delete": 0, "Replace": 1, "Create": 2}
        entries = sorted(self._plan.entries, key=lambda entry: order[entry.operation])
        deletes = [entry for entry in entries if entry.operation == "Delete"]
        others = [entry for entry in entries if entry.operation != "Delete"]
        first = self._redo_all(deletes)
        directories_refused = False in {self._make(planned) for planned in self._plan.directories}
        second = self._redo_all(others)
        return Unrestored(
            first.conflicts + second.conflicts, first.refused + second.refused, directories_refused
        )

    def _redo_all(self, entries: list[PlannedEntry]) -> Unrestored:
        conflicts: list[PlannedEntry] = []
        pending = entries
        for _ in range(RESTORE_ATTEMPTS):
            refused: list[PlannedEntry] = []
            for entry in pending:
                try:
                    if self._redo(entry) is Result.CONFLICT:
                        conflicts.append(entry)
                except OSError:
                    refused.append(entry)
            pending = refused
        return Unrestored(tuple(conflicts), tuple(pending))

    def _redo(self, entry: PlannedEntry) -> Result:
        places = self._places
        if is_obstructed(places, entry.directory):
            return Result.CONFLICT if self._waits(entry) else Result.RESTORED
        is_original = places.is_file_of(entry.original, entry.directory, entry.name)
        if entry.operation == "Delete":
            has_workshop = places.is_directory(entry.workshop[:-1], entry.workshop[-1])
            return self._remove(entry) if is_original and has_workshop else Result.RESTORED
        if not self._waits(entry):
            return Result.RESTORED
        if places.inode(entry.directory, entry.name) is None:
            move(places, entry.workshop, entry.new_name, entry.directory, entry.name)
        elif is_original and self._is_unchanged(entry):
            workshop, directory = places.pair(entry.workshop, entry.directory)
            places.system.exchange(entry.new_name, workshop, entry.name, directory)
            if not places.is_file_of(entry.original, entry.workshop, entry.new_name):
                places.system.exchange(entry.new_name, workshop, entry.name, directory)
                return Result.CONFLICT
        else:
            return Result.CONFLICT
        return Result.RESTORED

    def _remove(self, entry: PlannedEntry) -> Result:
        if not self._is_unchanged(entry):
            return Result.RESTORED
        places = self._places
        move(places, entry.directory, entry.name, entry.workshop, entry.old_name)
        if places.is_file_of(entry.original, entry.workshop, entry.old_name):
            return Result.RESTORED
        move(places, entry.workshop, entry.old_name, entry.directory, entry.name)  # it was put there just now
        return Result.CONFLICT

    def _waits(self, entry: PlannedEntry) -> bool:
        wanted = entry.intended
        if wanted is None or not self._places.is_file_of(wanted, entry.workshop, entry.new_name):
            return False
        return self._places.facts(entry.workshop, entry.new_name).sha256 == wanted.sha256

    def _is_unchanged(self, entry: PlannedEntry) -> bool:
        facts = self._places.facts(entry.directory, entry.name)
        return entry.original is not None and facts.sha256 == entry.original.sha256

    def _make(self, planned: PlannedDirectory) -> bool:
        """Whether a directory is there, or was not refused."""
        above, name = planned.directory[:-1], planned.directory[-1]
        try:
            if not is_obstructed(self._places, above) and is_ours(
                self._places, planned, planned.workshop, planned.staged_name
            ):
                move(self._places, planned.workshop, planned.staged_name, above, name)
        except FileExistsError:
            return True
        except OSError:
            return False
        return True
