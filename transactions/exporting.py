"""Copies for people of all that is known of an unfinished commit: plain files in a folder of their own.

    record/      the files of the record, as they are
    before/      the targets as they were before the commit
    after/       the targets as the commit wanted them, as far as they are not in place
    displaced/   what stood at a target and is neither: directories with all in them, links as links
    disk/        what stands at the targets now, where it is neither
    unassigned/  what lies in a workshop and belongs to no target that we know of

Which file of a workshop belongs to which target is told by the plan in the record, or, where there is none to read, by
the marker under the root (`marker`). What it is, is told by its hash alone. Sources may be confidential and the folder
may lie anywhere, so nobody else can read it, and it never lies in the workspace (where it could be built, or committed to
git) or in the state directory. A record may be discarded after an export, so the copies are on the disk before it is noted.
"""

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from transactions.errors import RecoveryRefused
from transactions.marker import KeptFile, Note, kept_files, markers, read_marker
from transactions.places import Directory, Places
from transactions.record import Manifest
from transactions.records import (
    PRIVATE_DIRECTORY,
    PRIVATE_FILE,
    Record,
    Records,
    existing_records,
    required,
)
from transactions.recovery import Copies, again, is_root_of, workshops_of
from transactions.system import SYSTEM, System
from transactions.workshop import HIDING, main_workshop

EXPORTED = "exported"
EXPORTED_WORKSPACE = "exported-workspace"
"""Notes in a record: it was copied out, and so was what lies under its root."""

_NOT_READABLE = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.ESTALE, errno.EIO})
"""One file that a failing disk does not give must not keep a person from all others, and from ending the record."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What came of an export. `unread` are files that could not be copied; they are where they were.

    `has_workspace` tells whether the workspace was there, so that what is kept under it was copied too.
    """

    has_workspace: bool
    unread: tuple[Path, ...]


def export(
    state_directory: Path,
    commit_id: str,
    directory: Path,
    *,
    root: Path | None = None,
    system: System = SYSTEM,
) -> Exported:
    """Copies all that is known of a commit to `directory`, which must be new or empty. Changes nothing else.

    Raises RecoveryRefused.
    """
    with existing_records(state_directory, system) as found:
        records, record = required(found, commit_id)
        said = record.manifest or record.owner
        place = root or (None if said is None else Path(said.root.path))
        try:
            copies = _Copies(_made(directory, (place, state_directory)))
            copies.record(records, commit_id)
            has_workspace = place is not None and _copy_workspace(copies, record, place, root, system)
            if record.manifest is not None:
                copies.second_copies(records, record.manifest)
            copies.sync()
            records.note(commit_id, EXPORTED)
            if has_workspace:
                records.note(commit_id, EXPORTED_WORKSPACE)
        except OSError as error:
            raise RecoveryRefused(
                f"The record {commit_id} cannot be copied to {directory}: {error.strerror or error}. What is "
                "there by now is not complete.",
                [directory],
            ) from error
    return Exported(has_workspace, tuple(copies.unread))


def export_marked(
    root: Path, state_directory: Path, commit_id: str, directory: Path, *, system: System = SYSTEM
) -> Exported:
    """The same for a commit whose record is not ours, or lost: what its marker and its workshops under `root` tell.

    Raises RecoveryRefused.
    """
    real = Path(os.path.realpath(root))
    try:
        with Places(system, real) as places:
            if commit_id not in {marker.commit_id for marker in markers(places)}:
                raise RecoveryRefused(f"There is no marker {commit_id} under {real}.", [real])
            note = read_marker(places, commit_id)
            copies = _Copies(_made(directory, (real, state_directory)))
            copies.workspace(places, () if note is None else note.files, _marked_workshops(commit_id, note))
            copies.sync()
    except OSError as error:
        raise RecoveryRefused(
            f"What the commit {commit_id} kept cannot be copied to {directory}: {error.strerror or error}.",
            [directory],
        ) from error
    return Exported(has_workspace=True, unread=tuple(copies.unread))


def _copy_workspace(
    copies: "_Copies", record: Record, place: Path, given: Path | None, system: System
) -> bool:
    """Whether the workspace of the record is there; then what lies under it is copied. Raises RecoveryRefused, OSError."""
    said = record.manifest or record.owner
    try:
        places = Places(system, Path(os.path.realpath(place)))
    except (FileNotFoundError, NotADirectoryError):
        return False
    with places:
        if said is None or not is_root_of(
            places,
            record.commit_id,
            said.root,
            was_moved=given is not None,
            is_written=False,
            may_be_copy=True,
        ):
            if given is not None:
                raise RecoveryRefused(f"{place} is not the workspace of commit {record.commit_id}.", [place])
            return False
        files: Sequence[KeptFile] = ()
        if record.manifest is not None:
            files = kept_files(record.manifest.entries)
        elif (note := read_marker(places, record.commit_id)) is not None:
            files = note.files
        copies.workspace(places, files, workshops_of(record))
        return True


def _marked_workshops(commit_id: str, note: Note | None) -> tuple[Directory, ...]:
    named = () if note is None else (file.workshop for file in note.files)
    known = dict.fromkeys((*named, main_workshop(commit_id)))
    return tuple(place for workshop in known for place in (again(workshop), workshop))


def _made(directory: Path, forbidden: Sequence[Path | None]) -> Path:
    """The folder for the copies, made private. Raises RecoveryRefused, OSError."""
    real = Path(os.path.realpath(directory))
    for place in forbidden:
        above = None if place is None else Path(os.path.realpath(place))
        if above is not None and real.is_relative_to(above):
            raise RecoveryRefused(
                f"{directory} lies in {above}. Copies lie outside of the workspace and of the state directory: "
                "name another folder.",
                [directory],
            )
    if os.path.lexists(real) and not real.is_dir():
        raise RecoveryRefused(f"{directory} is no directory.", [directory])
    if real.is_dir() and any(real.iterdir()):
        raise RecoveryRefused(f"{directory} is not empty. Name a new folder.", [directory])
    _make_folder(real)
    real.chmod(PRIVATE_DIRECTORY)
    return real


def _make_folder(path: Path) -> None:
    missing = []
    while not path.is_dir():
        missing.append(path.name)
        path = path.parent
    for name in reversed(missing):
        path /= name
        with suppress(FileExistsError):
            path.mkdir(mode=PRIVATE_DIRECTORY)


@dataclass
class _Copies:
    """A folder of copies as it grows. Plain files for people, so plain calls."""

    folder: Path
    unread: list[Path] = field(default_factory=list)
    _made_in: set[Path] = field(default_factory=set)

    def record(self, records: Records, commit_id: str) -> None:
        for name in records.files(commit_id):
            self._write("record", name, records.raw(commit_id, name), "record")

    def second_copies(self, records: Records, manifest: Manifest) -> None:
        """The originals that the record itself holds; before a commit touches anything they are in no workshop."""
        copies = Copies(records, manifest)
        for entry, file in zip(manifest.entries, kept_files(manifest.entries), strict=True):
            original = copies.bytes_of(entry)
            if original is not None:
                self._write("before", file.name, original, f"{file.number:06}.second")

    def workspace(self, places: Places, files: Sequence[KeptFile], workshops: Sequence[Directory]) -> None:
        """What lies in the workshops, and what stands at the targets."""
        for workshop in workshops:
            # A workshop made anew holds what belongs into the one that was removed.
            owned = {
                name: file
                for file in files
                if workshop in (file.workshop, again(file.workshop))
                for name in file.kept_names
            }
            for name in self._names(places, workshop):
                if name != HIDING:
                    self._kept(places, workshop, name, owned.get(name))
        for file in files:
            data = self._read(places, file.path[:-1], file.path[-1])
            if data is not None and _kind(file, data) is None:
                self._write("disk", file.name, data, f"{file.number:06}.disk")

    def _kept(self, places: Places, workshop: Directory, name: str, file: KeptFile | None) -> None:
        """One entry of a workshop; a directory is somebody's, and is copied with all that is in it."""
        for above, below in self._all_in(places, workshop, name):
            data = self._read(places, above, below)
            path = os.path.join(*above[len(workshop) :], below)  # noqa: PTH118  # text
            other_name = f"{workshop[-1]}.{path}"
            if data is None:
                kind, leads_to = (
                    "unassigned" if file is None else "displaced",
                    self._link(places, above, below),
                )
                if leads_to is not None:
                    self._write(kind, _renamed(path, file), os.fsencode(leads_to), other_name, is_link=True)
                continue
            kind = "unassigned" if file is None else (_kind(file, data) or "displaced")
            self._write(kind, _renamed(path, file), data, other_name)

    def _all_in(self, places: Places, directory: Directory, name: str) -> Iterator[tuple[Directory, str]]:
        """An entry, or all entries in it that are no directories, however deep it goes."""
        waiting = [(directory, name)]
        while waiting:
            above, below = waiting.pop()
            try:
                is_directory = places.is_directory(above, below)
            except OSError as error:
                if error.errno not in _NOT_READABLE:
                    raise
                self._tell(places.path(above, below))
                continue
            if is_directory:
                waiting += [((*above, below), each) for each in self._names(places, (*above, below))]
            else:
                yield above, below

    def _link(self, places: Places, directory: Directory, name: str) -> str | None:
        """Where a link leads; None for what cannot be copied (a pipe, a device), which is told."""
        try:
            return os.readlink(name, dir_fd=places.descriptor(directory))
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in (errno.EINVAL, *_NOT_READABLE):
                raise
            self._tell(places.path(directory, name))
            return None

    def _names(self, places: Places, workshop: Directory) -> list[str]:
        try:
            return sorted(places.system.names(places.descriptor(workshop)))
        except FileNotFoundError:
            return []
        except OSError as error:
            if error.errno not in _NOT_READABLE:
                raise
            self._tell(places.path(workshop))
            return []

    def _read(self, places: Places, directory: Directory, name: str) -> bytes | None:
        """None for what is no file, or cannot be read, which is told. Raises any other OSError."""
        try:
            if not places.is_file(directory, name):
                return None
            descriptor = places.system.open_file(name, places.descriptor(directory))
            with os.fdopen(descriptor, "rb") as stream:
                return stream.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in _NOT_READABLE:
                raise
            self._tell(places.path(directory, name))
            return None

    def _tell(self, path: Path) -> None:
        if path not in self.unread:
            self.unread.append(path)

    def _write(self, kind: str, name: str, data: bytes, other_name: str, *, is_link: bool = False) -> None:
        """`other_name` is taken in `unassigned` where something else stands at the name already."""
        path = self.folder / kind / name
        create = self._create_link if is_link else self._create
        try:
            create(path, data)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            if is_link or not path.is_file() or path.read_bytes() != data:
                create(self.folder / "unassigned" / other_name, data)

    def _create(self, path: Path, data: bytes) -> None:
        _make_folder(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, PRIVATE_FILE), "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        self._made_in.update((path.parent, *path.parent.relative_to(self.folder).parents))

    def _create_link(self, path: Path, leads_to: bytes) -> None:
        _make_folder(path.parent)
        path.symlink_to(os.fsdecode(leads_to))
        self._made_in.update((path.parent, *path.parent.relative_to(self.folder).parents))

    def sync(self) -> None:
        """Put every name on the disk, too."""
        for folder in {self.folder.parent, self.folder, *(self.folder / made for made in self._made_in)}:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _renamed(path: str, file: KeptFile | None) -> str:
    """What lies in a workshop, under the name of the target it belongs to."""
    first, slash, rest = path.partition("/")
    return (first if file is None else file.name) + slash + rest


def _kind(file: KeptFile, data: bytes) -> str | None:
    """Which of the two images of a target these bytes are."""
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 == file.before:
        return "before"
    return "after" if sha256 == file.after else None
