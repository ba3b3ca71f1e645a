"""The way out for a person: what recovery leaves alone is decided or discarded by hand.

Deciding a file puts the wanted contents where the path is, by the same careful renames: what stands there is moved aside
into the workshop first, so a crash in the middle leaves a record that can be decided again. When nothing is left to
decide, the record ends like any other. Before a record may be discarded it must have been copied out (`exporting`), because
then the originals go.
"""

import errno
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transactions.errors import CommitLockFailed, RecoveryRefused
from transactions.exporting import EXPORTED, EXPORTED_WORKSPACE
from transactions.journal import PlannedEntry
from transactions.lock import commit_lock
from transactions.marker import PENDING, markers, put_marker_aside, remove_marker
from transactions.moving import move
from transactions.places import Directory, Places
from transactions.record import Manifest, StateRecord
from transactions.records import Record, Records, existing_records, required
from transactions.recovery import (
    Copies,
    RecoveryItem,
    RootUnavailable,
    end,
    item_from,
    record_root,
    relative_path,
    say,
    tidy_root,
    with_workshops,
    workshops_of,
)
from transactions.restore import Restorer, displaced_name, is_obstructed, sync_touched
from transactions.system import SYSTEM, System
from transactions.workshop import HIDING, main_workshop

Choice = Literal["keep-disk", "take-before", "take-after"]

_HOLDS_CONTENTS = re.compile(r"[0-9]+\.(new|old|aside[0-9]*)")
"""The names in a workshop of what stood, or was to stand, at a target."""

_DECIDABLE = frozenset({"RecoveryConflict", "RecoveryIncomplete", "Committed"})


def resolve(
    state_directory: Path,
    commit_id: str,
    paths: Sequence[Path],
    choice: Choice,
    *,
    root: Path | None = None,
    wait: float = 0.0,
    system: System = SYSTEM,
) -> RecoveryItem | None:
    """Decides some files of a commit, or all that are undecided when `paths` is empty; None when that ends it.

    An item that is not blocking tells of files of somebody's that are kept. `paths` are absolute or relative to the root.
    Raises RecoveryRefused (when it could be done in part only, it says for which files), WorkspaceBusy, CommitLockFailed,
    CommitUnrecordable.
    """
    with existing_records(state_directory, system) as found:
        records, record = required(found, commit_id)
        try:
            is_written = choice != "keep-disk"
            with record_root(record, root, wait, system, is_written=is_written) as opened:
                _, record = required(records, commit_id)  # it may have changed while we waited
                return _Decision(records, record, opened.places).make(paths, choice)
        except (RootUnavailable, OSError) as error:
            raise _refused(commit_id, error) from error


@dataclass(frozen=True, slots=True)
class Discarded:
    """A commit that is forgotten. `left` is what stays under the workspace: what is not ours, or could not be removed.

    Without `has_workspace` its workspace was not where it had been, so that a marker may be left wherever that is now.
    """

    has_workspace: bool
    left: tuple[Path, ...] = ()


def discard(
    state_directory: Path,
    commit_id: str,
    *,
    root: Path | None = None,
    wait: float = 0.0,
    system: System = SYSTEM,
) -> Discarded:
    """Forgets a commit with all that it kept; the tree stays as it is. An export must have been made before.

    Whatever the tree holds or the system refuses there, the record ends, and what is left is told. What lies in a workshop
    is removed only if it is known to be ours, so a record that cannot be read leaves all of it. Raises RecoveryRefused (also
    when `root` is given and is not that workspace, and when the record itself cannot be removed), WorkspaceBusy,
    CommitUnrecordable.
    """
    with existing_records(state_directory, system) as found:
        records, record = required(found, commit_id)
        try:
            if not records.has(commit_id, EXPORTED):
                raise RecoveryRefused(
                    f"Export the record {commit_id} first; discarding it drops the originals."
                )
            discarded = _tidied(records, record, root, wait, system)
            records.remove(commit_id)
        except OSError as error:
            raise _refused(commit_id, error) from error
    return discarded


def _tidied(records: Records, record: Record, root: Path | None, wait: float, system: System) -> Discarded:
    said = record.manifest or record.owner
    has_seen_all = records.has(record.commit_id, EXPORTED_WORKSPACE)
    try:
        with record_root(record, root, wait, system, is_written=False, may_be_copy=True) as opened:
            if not has_seen_all:
                raise RecoveryRefused(
                    f"The record {record.commit_id} was exported without its workspace, so what is kept there was not "
                    "copied. Export it once more, to another folder."
                )
            places = opened.places
            left = tidy_root(places, record, strangers_files(places, record))
            return Discarded(has_workspace=True, left=tuple(places.root / path for path in left))
    except RootUnavailable as error:
        if root is not None:
            raise RecoveryRefused(f"{error} Nothing was discarded.", [root]) from error
        return Discarded(has_workspace=False)
    except (CommitLockFailed, OSError):
        place = root or (None if said is None else Path(said.root.path))
        return Discarded(has_workspace=True, left=() if place is None else _still_there(place, record))


def _still_there(root: Path, record: Record) -> tuple[Path, ...]:
    folders = (*workshops_of(record), (*PENDING, record.commit_id))
    return tuple(path for folder in folders if os.path.lexists(path := root.joinpath(*folder)))


def discard_marker(root: Path, commit_id: str, *, wait: float = 0.0, system: System = SYSTEM) -> None:
    """Takes away the marker of a bridge that will not come back; what its workshop holds stays.

    The marker goes into the workshop, where it still tells which file there is which. Raises RecoveryRefused,
    WorkspaceBusy, CommitLockFailed.
    """
    real = Path(os.path.realpath(root))
    with commit_lock(real, wait=wait, system=system):
        try:
            with Places(system, real) as places:
                if commit_id not in {marker.commit_id for marker in markers(places)}:
                    raise RecoveryRefused(f"There is no marker {commit_id} under {real}.", [real])
                with suppress(PermissionError):  # then the workshop is for its owner alone to use
                    put_marker_aside(places, commit_id, main_workshop(commit_id))
                remove_marker(places, commit_id)
        except OSError as error:
            raise _refused(commit_id, error) from error


def _refused(commit_id: str, error: Exception) -> RecoveryRefused:
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return RecoveryRefused(f"The record {commit_id} cannot be worked on: {reason}")


class _Decision:
    """One decision about one record, made under the lock."""

    def __init__(self, records: Records, record: Record, places: Places) -> None:
        self._records = records
        self._record = record
        self._places = places

    def make(self, paths: Sequence[Path], choice: Choice) -> RecoveryItem | None:
        manifest, undecided = self._undecided()
        chosen = self._chosen(paths, undecided)
        failures: dict[str, str] = {}
        if choice != "keep-disk":  # which needs nothing of the tree, whatever has become of it
            failures = self._take(manifest, chosen, choice)
        rest = tuple(path for path in undecided if path not in chosen or path in failures)
        if rest:
            said = say(self._records, self._record, StateRecord("RecoveryConflict", None, rest))
            if failures:
                raise self._in_part(chosen, failures)
            return item_from(said)
        said = say(self._records, self._record, StateRecord("Restored", "A person decided."))
        return end(self._records, self._places, said, strangers_files(self._places, said))

    def _in_part(self, chosen: frozenset[str], failures: Mapping[str, str]) -> RecoveryRefused:
        done = sorted(chosen.difference(failures))
        said = "; ".join(f"{path}: {why}" for path, why in sorted(failures.items()))
        beginning = f"It was done for {len(done)} files ({', '.join(done)}) and not" if done else "Not done"
        return RecoveryRefused(
            f"{beginning} for {len(failures)}, which are still to be decided. {said}",
            [self._places.root / path for path in sorted(failures)],
        )

    def _take(self, manifest: Manifest, chosen: frozenset[str], choice: Choice) -> dict[str, str]:
        """The files that could not be put in place, and why. Raises RecoveryRefused before anything is done."""
        plan, _ = with_workshops(self._places, manifest.plan(self._places))
        copies = Copies(self._records, manifest)
        entries = [entry for entry in plan.entries if relative_path(entry) in chosen]
        wanted = [(entry, self._wanted_name(entry, choice, copies)) for entry in entries]
        failures: dict[str, str] = {}
        for entry, name in sorted(wanted, key=lambda item: item[1] is not None):
            try:  # what goes goes first: a file may have to take a directory's place
                self._put(entry, name)
            except RecoveryRefused as error:
                failures[relative_path(entry)] = error.message
            except OSError as error:
                failures[relative_path(entry)] = f"{error.strerror or error}."
        if choice == "take-before":
            Restorer(self._places, plan).remove_directories()  # those of ours that are empty by now
        sync_touched(self._places, plan)
        return failures

    def _undecided(self) -> tuple[Manifest, tuple[str, ...]]:
        record = self._record
        if record.problem is not None:
            raise RecoveryRefused(f"The record {record.commit_id} is unusable: {record.problem}")
        item = item_from(record)
        if item.code == "RecoveryOriginalKept":
            kept = ", ".join(map(str, item.paths))
            raise RecoveryRefused(
                f"There is nothing to decide about {record.commit_id}, it is over. These files are kept until somebody moves "
                f"them away or deletes them: {kept}",
                item.paths,
            )
        if record.manifest is None or record.state is None or record.state.state not in _DECIDABLE:
            raise RecoveryRefused(
                f"There is nothing to decide about {record.commit_id}; recovery will end it."
            )
        everything = tuple(relative_path(entry) for entry in record.manifest.entries)
        return record.manifest, record.state.paths or everything

    def _chosen(self, paths: Sequence[Path], undecided: Sequence[str]) -> frozenset[str]:
        if not paths:
            return frozenset(undecided)
        root = self._places.root
        chosen = frozenset(
            os.fspath(path.relative_to(root) if path.is_relative_to(root) else path) for path in paths
        )
        unknown = sorted(chosen.difference(undecided))
        if unknown:
            raise RecoveryRefused(
                f"{unknown[0]} is not among the files that are to be decided.", [root / unknown[0]]
            )
        return chosen

    def _wanted_name(self, entry: PlannedEntry, choice: Choice, copies: Copies) -> str | None:
        """The name in the workshop of what shall stand at the target; empty for what stands there now, None for nothing."""
        wanted = entry.original if choice == "take-before" else entry.intended
        if wanted is None:
            return None
        if self._hash(entry, at_target=True) == wanted.sha256:
            return ""
        name = displaced_name(self._places, entry) if choice == "take-before" else entry.new_name
        if name is not None and self._hash(entry, name) == wanted.sha256:
            return name
        if choice == "take-before" and name != entry.old_name and copies.put(self._places, entry):
            return entry.old_name
        path = self._places.path(entry.directory, entry.name)
        raise RecoveryRefused(f"That text of {path} is no longer at hand.", [path])

    def _hash(self, entry: PlannedEntry, name: str = "", *, at_target: bool = False) -> bytes:
        directory, name = (entry.directory, entry.name) if at_target else (entry.workshop, name)
        if self._places.inode(directory, name) is None or not self._places.is_file(directory, name):
            return b""
        return self._places.facts(directory, name).sha256

    def _put(self, entry: PlannedEntry, name: str | None) -> None:
        """Moves what stands at the target aside, and the wanted file there. Raises RecoveryRefused, OSError.

        What stood there is dropped when the wanted file is in its place; if that fails it goes back.
        """
        if name == "":
            return
        places = self._places
        aside = None
        if places.is_directory(entry.directory, entry.name):
            self._remove_directory(entry)
        elif places.inode(entry.directory, entry.name) is not None:
            aside = self._free_name(entry)
            move(places, entry.directory, entry.name, entry.workshop, aside)
        try:
            if name is not None:
                self._put_at(entry, name)
        except OSError:
            if aside is not None:
                move(places, entry.workshop, aside, entry.directory, entry.name)
            raise
        if aside is not None:
            places.system.remove(aside, places.descriptor(entry.workshop))

    def _free_name(self, entry: PlannedEntry) -> str:
        """A name in the workshop; a decision that was cut short may have left files under others."""
        number = 0
        while (
            self._places.inode(entry.workshop, name := f"{entry.number:06}.aside{number or ''}") is not None
        ):
            number += 1
        return name

    def _put_at(self, entry: PlannedEntry, name: str) -> None:
        places = self._places
        for length in range(1, len(entry.directory) + 1):
            part = entry.directory[:length]
            if places.inode(part[:-1], part[-1]) is None:
                places.system.make_directory(part[-1], places.descriptor(part[:-1]))
        move(places, entry.workshop, name, entry.directory, entry.name)

    def _remove_directory(self, entry: PlannedEntry) -> None:
        path = self._places.path(entry.directory, entry.name)
        try:
            self._places.system.remove_directory(entry.name, self._places.descriptor(entry.directory))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise RecoveryRefused(
                f"{path} is a directory with files in it by now. Move it away and decide again.", [path]
            ) from error


def strangers_files(places: Places, record: Record) -> tuple[tuple[Directory, str], ...]:
    """The files in the workshops that are neither what the commit displaced nor what it wrote: somebody wrote them.

    All of them where the record has no plan to tell by. Raises OSError.
    """
    return tuple(
        (workshop, name)
        for workshop in workshops_of(record)
        if not is_obstructed(places, workshop)
        for name in places.system.names(places.descriptor(workshop))
        if name != HIDING and places.is_file(workshop, name) and _is_strangers(places, record, workshop, name)
    )


def _is_strangers(places: Places, record: Record, workshop: Directory, name: str) -> bool:
    if record.manifest is None:
        return record.problem is not None
    if _HOLDS_CONTENTS.fullmatch(name) is None:
        return False
    number = int(name.partition(".")[0])
    known = {
        facts.sha256
        for entry in record.manifest.entries
        if entry.number == number
        for facts in (entry.original, entry.intended)
        if facts is not None
    }
    return places.facts(workshop, name).sha256 not in known
