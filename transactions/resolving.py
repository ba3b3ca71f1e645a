"""The way out for a person: what recovery leaves alone is decided or discarded by hand.

Deciding a file puts the wanted contents where the path is, by the same careful renames: what stands there is moved aside
into the workshop first, so a crash in the middle leaves a record that can be decided again. When nothing is left to
decide, the record ends like any other. Before a record may be discarded it must have been copied out (`exporting`), because
then the originals go.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from transactions.errors import RecoveryRefused
from transactions.exporting import EXPORTED, EXPORTED_WORKSPACE
from transactions.journal import PlannedEntry
from transactions.lock import commit_lock
from transactions.marker import markers, put_marker_aside, remove_marker
from transactions.moving import move
from transactions.places import Places
from transactions.record import Manifest, StateRecord
from transactions.records import Record, Records, existing_records, required
from transactions.recovery import (
    Copies,
    RecoveryItem,
    RootUnavailable,
    item_from,
    record_root,
    say,
    tidy_root,
    with_workshops,
)
from transactions.restore import displaced_name
from transactions.system import SYSTEM, System
from transactions.workshop import main_workshop

Choice = Literal["keep-disk", "take-before", "take-after"]

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

    `paths` are absolute or relative to the root. Raises RecoveryRefused, WorkspaceBusy, CommitLockFailed,
    CommitUnrecordable.
    """
    with existing_records(state_directory, system) as found:
        records, record = required(found, commit_id)
        try:
            with record_root(record, root, wait, system) as opened:
                _, record = required(records, commit_id)  # it may have changed while we waited
                return _Decision(records, record, opened.places).make(paths, choice)
        except (RootUnavailable, OSError) as error:
            raise _refused(commit_id, error) from error


def discard(
    state_directory: Path,
    commit_id: str,
    *,
    root: Path | None = None,
    wait: float = 0.0,
    system: System = SYSTEM,
) -> bool:
    """Forgets a commit with all that it kept; the tree stays as it is. An export must have been made before.

    False when its workspace was not where it had been, so that a marker may be left wherever that is now. Raises
    RecoveryRefused (also when `root` is given and is not that workspace), WorkspaceBusy, CommitLockFailed,
    CommitUnrecordable.
    """
    with existing_records(state_directory, system) as found:
        records, record = required(found, commit_id)
        try:
            if not records.has(commit_id, EXPORTED):
                raise RecoveryRefused(
                    f"Export the record {commit_id} first; discarding it drops the originals."
                )
            is_tidied = _tidied(records, record, root, wait, system)
            records.remove(commit_id)
        except OSError as error:
            raise _refused(commit_id, error) from error
    return is_tidied


def _tidied(records: Records, record: Record, root: Path | None, wait: float, system: System) -> bool:
    try:
        with record_root(record, root, wait, system) as opened:
            if not records.has(record.commit_id, EXPORTED_WORKSPACE):
                raise RecoveryRefused(
                    f"The record {record.commit_id} was exported without its workspace, so what is kept there was not "
                    "copied. Export it once more, to another folder."
                )
            tidy_root(opened.places, record)
    except RootUnavailable as error:
        if root is not None:
            raise RecoveryRefused(f"{error} Nothing was discarded.", [root]) from error
        return False
    return True


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
        if choice != "keep-disk":  # which needs nothing of the tree, whatever has become of it
            self._take(manifest, chosen, choice)
        rest = tuple(path for path in undecided if path not in chosen)
        if rest:
            said = say(self._records, self._record, StateRecord("RecoveryConflict", None, rest))
            return item_from(said)
        said = say(self._records, self._record, StateRecord("Restored", "A person decided."))
        tidy_root(self._places, said)
        self._records.remove(said.commit_id)
        return None

    def _take(self, manifest: Manifest, chosen: frozenset[str], choice: Choice) -> None:
        plan, _ = with_workshops(self._places, manifest.plan(self._places))
        copies = Copies(self._records, manifest)
        entries = [entry for entry in plan.entries if _relative(entry) in chosen]
        wanted = [(entry, self._wanted_name(entry, choice, copies)) for entry in entries]
        for entry, name in sorted(wanted, key=lambda item: item[1] is not None):
            self._put(entry, name)  # what goes goes first: a file may have to take a directory's place
        for directory in {entry.directory for entry in entries}:
            with suppress(FileNotFoundError):
                self._places.sync(directory)

    def _undecided(self) -> tuple[Manifest, tuple[str, ...]]:
        record = self._record
        if record.problem is not None:
            raise RecoveryRefused(f"The record {record.commit_id} is unusable: {record.problem}")
        if record.manifest is None or record.state is None or record.state.state not in _DECIDABLE:
            raise RecoveryRefused(
                f"There is nothing to decide about {record.commit_id}; recovery will end it."
            )
        everything = tuple(_relative(entry) for entry in record.manifest.entries)
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
        """Moves what stands at the target aside, and the wanted file there. Raises OSError."""
        if name == "":
            return
        places, aside = self._places, f"{entry.number:06}.aside"
        if places.is_directory(entry.directory, entry.name):
            self._remove_directory(entry)
        elif places.inode(entry.directory, entry.name) is not None:
            with suppress(FileNotFoundError):
                places.system.remove(aside, places.descriptor(entry.workshop))
            move(places, entry.directory, entry.name, entry.workshop, aside)
        if name is None:
            return
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


def _relative(entry: PlannedEntry) -> str:
    return os.path.join(*entry.directory, entry.name)  # noqa: PTH118  # the text that state records hold
