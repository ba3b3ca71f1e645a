"""Seeded defects: mistakes in our own commit that somebody could make, each of which the scenarios must notice.

A harness that finds nothing proves nothing by it. Each defect is a change of a few words of the source (see `mutants`).
"""

import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.faults import errors, kills, power, strangers
from tests.faults import places as unusual
from tests.faults.judge import NotHeld
from tests.faults.mutants import OutOfDate, changed
from tests.faults.plans import BY_NAME
from tests.faults.scenarios import NotHeldUnfaulted, Scenario
from tests.faults.worlds import Ground
from transactions import commit, file_journal, marker, places, records, recovery, restore, system, workshop
from transactions.system import SYSTEM

__all__ = ["DEFECTS", "Defect", "OutOfDate", "caught"]

Hunt = Callable[[Ground], Iterator[Scenario]]


@dataclass(frozen=True, slots=True)
class Defect:
    """One mistake: where `old` stands in the source of `module`, `new` is written. `hunts` are tried in turn."""

    name: str
    module: types.ModuleType
    old: str
    new: str
    hunts: tuple[Hunt, ...]


SUSPECTS_MAX = 20
"""Scenarios that did not hold with a defect, of which one must hold without it."""


def caught(ground: Ground, defect: Defect) -> str | None:
    """What noticed the defect: the name of a scenario that holds without it; None when nothing did. Raises OutOfDate."""
    for hunt in defect.hunts:
        with changed(defect.module, defect.old, defect.new):
            suspects = _not_held(ground, hunt)
        if not suspects:
            continue
        if suspects == [UNDISTURBED]:
            return UNDISTURBED
        wrong_anyway = _wrong_anyway(ground, hunt, set(suspects))
        found = next((key for key in suspects if key not in wrong_anyway), None)
        if found is not None:
            return found
    return None


UNDISTURBED = "an undisturbed commit"


def _not_held(ground: Ground, hunt: Hunt) -> list[str]:
    found: list[str] = []
    try:
        for scenario in hunt(ground):
            try:
                scenario.run(ground)
            except NotHeld:
                found.append(scenario.key)
                if len(found) == SUSPECTS_MAX:
                    break
    except (NotHeldUnfaulted, NotHeld):
        return [UNDISTURBED]
    return found


def _wrong_anyway(ground: Ground, hunt: Hunt, keys: set[str]) -> set[str]:
    """Those of some scenarios that do not hold without the defect either, and so prove nothing."""
    wrong = set()
    for scenario in hunt(ground):
        if scenario.key in keys:
            try:
                scenario.run(ground)
            except NotHeld:
                wrong.add(scenario.key)
    return wrong


def _errors(name: str) -> Hunt:
    return lambda ground: errors.of_shape(ground, BY_NAME[name], "real", SYSTEM, few=True)


def _kills(name: str) -> Hunt:
    return lambda ground: kills.in_commit(ground, BY_NAME[name])


def _restores(name: str) -> Hunt:
    return lambda ground: kills.in_restore(ground, BY_NAME[name])


def _recoveries(name: str) -> Hunt:
    return lambda ground: kills.in_recovery(ground, BY_NAME[name])


def _stops(name: str) -> Hunt:
    return lambda ground: kills.stopped(ground, BY_NAME[name])


def _power(name: str) -> Hunt:
    return lambda ground: power.of_shape(ground, BY_NAME[name])


def _power_again(name: str) -> Hunt:
    """Only disks that fail a second time, in the recovery."""
    return lambda ground: (
        scenario for scenario in power.of_shape(ground, BY_NAME[name]) if "again" in scenario.fault
    )


def _moved(name: str) -> Hunt:
    return lambda ground: unusual.moved(ground, BY_NAME[name])


def _strangers(name: str, act: str) -> Hunt:
    return lambda ground: strangers.of_act(ground, BY_NAME[name], act)


DEFECTS: tuple[Defect, ...] = (
    # -- what is synced when
    Defect(
        "artifacts are not synced before Applying",
        commit,
        "            workshops.sync()\n",
        "",
        (_power("replace"), _power("new directories")),
    ),
    Defect(
        "the touched directories are not synced before Committed",
        commit,
        "        sync_directories(self._places, touched(plan))\n",
        "        pass\n",
        (_power("replace"), _power("move")),
    ),
    Defect(
        "the names in a record are not synced",
        records,
        "            self._places.system.rename(draft.draft_name, folder, draft.name, folder)\n        self.sync(commit_id)",
        "            self._places.system.rename(draft.draft_name, folder, draft.name, folder)\n        pass",
        (_power("replace"), _power("move")),
    ),
    Defect(
        "the files of a record are not synced",
        records,
        "            system.sync(descriptor)\n        finally:\n            system.close(descriptor)\n        return draft",
        "            pass\n        finally:\n            system.close(descriptor)\n        return draft",
        (_power("replace"), _power("move")),
    ),
    Defect(
        "a new record's folder is not synced",
        records,
        "            self._places.sync(folder[:-1])\n",
        "            pass\n",
        (_power("replace"), _power("move")),
    ),
    Defect(
        "a restore is not synced before Restored",
        recovery,
        "            sync_touched(places, plan)\n        except OSError:\n            is_on_disk = False",
        "            pass\n        except OSError:\n            is_on_disk = False",
        (_power_again("move"), _power_again("replace"), _power_again("mixed")),
    ),
    Defect(
        "the marker is not synced",
        marker,
        "    sync_folders(places, PENDING)\n",
        "    pass\n",
        (_power("mixed"),),
    ),
    # -- the order of things
    Defect(
        "Committed comes before the renames",
        commit,
        "            self._apply(plan)\n            self._verify(plan)\n            record.committed()",
        "            record.committed()\n            self._apply(plan)\n            self._verify(plan)",
        (_errors("replace"), _kills("move"), _power("replace")),
    ),
    Defect(
        "Applying is never published",
        commit,
        "            record.applying()\n",
        "",
        (_kills("move"),),
    ),
    Defect(
        "creates come before deletes",
        commit,
        'for entry in _of(plan, "Delete"):',
        'for entry in _of(plan, "Create") + _of(plan, "Delete"):',
        (_errors("move"),),
    ),
    Defect(
        "the record is removed before the workshops",
        commit,
        "        leftovers = self._clean(workshops, [",
        "        record.finished()\n        leftovers = self._clean(workshops, [",
        (_kills("replace"),),
    ),
    # -- checks
    Defect(
        "what came out of its place is not compared",
        commit,
        "if self._places.facts(entry.workshop, kept_name) != entry.original:",
        "if False:",
        (_strangers("replace", "an editor's safe-save"),),
    ),
    Defect(
        "what came out of its place is compared by its bytes alone",
        commit,
        "if self._places.facts(entry.workshop, kept_name) != entry.original:",
        "if self._places.facts(entry.workshop, kept_name).sha256 != entry.original.sha256:",
        (_strangers("swap", "chmod"), _strangers("replace", "chmod")),
    ),
    Defect(
        "a plain rename takes the place of one that never replaces",
        system,
        "self._rename(old, old_directory, new, new_directory, _RENAME_NOREPLACE)",
        "self._rename(old, old_directory, new, new_directory, 0)",
        (_strangers("create", "an editor's safe-save"), _strangers("move", "an editor's safe-save")),
    ),
    Defect(
        "an artifact that comes back is not hashed",
        restore,
        "if facts.sha256 == wanted.sha256:",
        "if True:",
        (_strangers("mixed", "a write in place"), _strangers("create", "a write in place")),
    ),
    Defect(
        "displaced files are dropped without a last look",
        commit,
        "        kept = [(entry, name) for entry in plan.entries if (name := self._rewritten_name(entry)) is not None]",
        "        kept: list[tuple[PlannedEntry, str]] = []",
        (_strangers("replace", "a write through a handle that was open before"),),
    ),
    Defect(
        "the last look before Applying is left out, and so is the comparison with the baseline",
        commit,
        "if known is None or facts.sha256 != known.sha256:",
        "if False:",
        (_strangers("replace", "a write in place"),),
    ),
    Defect(
        "the lock is not taken",
        system,
        "        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "        pass",
        (_stops("replace"), _recoveries("replace")),
    ),
    # -- who is who
    Defect(
        "a later file with the inode of ours is taken for it",
        places,
        "return born is None or is_same_birth(born, self.born(directory, name))",
        "return True",
        (_strangers("replace", "the very bytes that we intend in its place"),),
    ),
    Defect(
        "a directory with the inode of our file is taken for it",
        places,
        "if not is_kind(status.st_mode) or inode_of(status) != inode:",
        "if inode_of(status) != inode:",
        (_strangers("replace", "a directory in its place"),),
    ),
    Defect(
        "a workspace with the inode of a deleted one is taken for it",
        recovery,
        "and (is_proven or was_moved or not is_written))",
        "and True)",
        (_moved("replace"),),
    ),
    Defect(
        "a marker that was taken away is not missed",
        recovery,
        "if item.state in _WRITING_STATES and _marker_was_taken(places, record):",
        "if False:",
        (_strangers("replace", "our marker taken away"),),
    ),
    # -- faithfulness
    Defect(
        "a failed commit is not taken back",
        commit,
        "        left = Restorer(self._places, plan, self._displaced).run()",
        "        left = Restorer(self._places, replace(plan, entries=()), self._displaced).run()",
        (_errors("replace"),),
    ),
    Defect(
        "short writes are taken for whole ones",
        workshop,
        "                rest = rest[system.write(descriptor, rest) :]",
        "                system.write(descriptor, rest)\n                rest = rest[len(rest) :]",
        (_errors("replace"),),
    ),
    Defect(
        "mode, owner and attributes are not carried over",
        workshop,
        "            if attributes is not None:\n                self._put_on(descriptor, attributes)",
        "            if False:\n                self._put_on(descriptor, attributes)",
        (_errors("move"),),
    ),
    # -- recovery
    Defect(
        "recovery takes a committed record back",
        recovery,
        '                case "Applying" | "RecoveryIncomplete":',
        '                case "Applying" | "RecoveryIncomplete" | "Committed":',
        (_kills("replace"),),
    ),
    Defect(
        "recovery takes an interrupted commit for one that had not begun",
        recovery,
        '                case "Applying" | "RecoveryIncomplete":',
        '                case "RecoveryIncomplete":',
        (_kills("move"),),
    ),
    Defect(
        "a refused restore is called Restored",
        recovery,
        "    if left.is_refused or not is_on_disk:",
        "    if False:",
        (_recoveries("move"), _recoveries("replace")),
    ),
    Defect(
        "the second copy of the originals is not written",
        file_journal,
        "        packed.append(PackedOriginal(entry.number, offset, len(data), extended))\n",
        "        pass\n",
        (_strangers("swap", "git clean -fdx"), _strangers("mixed", "git clean -fdx")),
    ),
    Defect(
        "there is no trash before there is a record",
        records,
        "        self._make_folder(TRASH)\n        self._make_folder(RECOVERY)\n",
        "        self._make_folder(RECOVERY)\n",
        (_errors("replace"), _errors("create")),
    ),
    Defect(
        "new directories stay when a commit is taken back",
        restore,
        "                self._places.system.remove_directory(name, self._places.descriptor(above))",
        "                pass",
        (_errors("new directories"),),
    ),
)
