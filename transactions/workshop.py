"""Where artifacts wait and displaced files are kept: the directories of ours that a commit uses.

There is one for each commit, `<root>/.vs/roslyn-bridge/commits/<id>`, closed to others and hidden from git. Nothing of
ours stands beside the sources. Only where a directory cannot exchange files with that place (it lies on another mount)
is a dot-named directory made inside it, for as long as the commit lasts; MSBuild's globs skip names with a dot.

Whether files can be exchanged is asked of the system by a rename from there to the directory of a name that does not
exist. Linux compares the mounts and their read-only state before it looks for the name, so the answer is EXDEV or EROFS
where a real rename would fail and ENOENT where it would not, and no name of ours appears anywhere. Equal device numbers
would prove nothing: a bind mount has its parent's.
"""

import errno
import hashlib
import re
import stat
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from transactions.access_lists import ACCESS_LIST, DEFAULT_LIST, list_of_new
from transactions.journal import CommitRecord
from transactions.places import Directory, FileFacts, Inode, Places, inode_of

HOME: Directory = (".vs", "roslyn-bridge", "commits")
_NOBODY = "roslyn-bridge-no-such-name"
_OWNER_ONLY = 0o700
_NEW_FILE = 0o666
_NEW_DIRECTORY = 0o777
_HIDES_ALL = b"*\n"
HIDING = ".gitignore"

# The names in a workshop: `journal`, `recovery`, `resolving` and `marker` give them.
_FILE_NAME = re.compile(r"[0-9]+\.(new|old|copy|aside[0-9]*)|marker")
_STAGED_DIRECTORY_NAME = re.compile(r"[0-9]+\.dir")

MAKE_ATTEMPTS = 3
"""Another bridge that ends its commit removes the empty parents that we are about to use; then they are made again."""

SYNC_EACH_MAX = 8
"""Up to so many files or directories are synced one by one; beyond that one sync of the file system is cheaper."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a new file takes over from the file whose place or name it takes."""

    mode: int
    owner: int
    group: int
    extended: Mapping[str, bytes]


class Workshops:
    """The workshops of one commit."""

    def __init__(self, places: Places, commit_id: str, record: CommitRecord) -> None:
        self._places = places
        self._record = record
        self._sibling_name = f".roslyn-bridge-{commit_id[:12]}"
        self._for: dict[Directory, Directory] = {}
        self._parents_made: list[Directory] = []
        self._artifacts: list[tuple[Directory, str]] = []
        self._staged_directories: list[tuple[Directory, str]] = []
        self.main = main_workshop(commit_id)
        self.all: list[Directory] = []

    def open(self) -> None:
        """Makes the main workshop. Raises OSError."""
        self._record.workshop(self.main)
        self.all.append(self.main)
        for attempt in range(1, MAKE_ATTEMPTS + 1):
            try:
                for length in range(1, len(HOME) + 1):
                    self._make_parent(self.main[:length])
                self._places.system.make_directory(self.main[-1], self._places.descriptor(HOME), _OWNER_ONLY)
                hand_nothing_down(self._places, self.main)
                break
            except FileNotFoundError:
                if attempt == MAKE_ATTEMPTS:
                    raise
                for length in range(len(HOME), 0, -1):
                    self._places.forget(self.main[:length])
        self.write(self.main, HIDING, _HIDES_ALL, None)

    def _make_parent(self, directory: Directory) -> None:
        parent = self._places.descriptor(directory[:-1])
        if self._places.inode(directory[:-1], directory[-1]) is not None:
            return
        self._parents_made.append(directory)
        with suppress(FileExistsError):
            self._places.system.make_directory(directory[-1], parent)

    def for_directory(self, directory: Directory) -> Directory:
        """The workshop for targets in an existing directory; made if it is not there yet. Raises OSError."""
        workshop = self._for.get(directory)
        if workshop is None:
            workshop = self._for[directory] = (
                self.main if self._reaches(directory) else self._make_sibling(directory)
            )
        return workshop

    def _reaches(self, directory: Directory) -> bool:
        places = self._places
        if places.device(directory) != places.device(self.main):
            return False
        try:
            ours, theirs = places.pair(self.main, directory)
            places.system.rename(_NOBODY, ours, _NOBODY, theirs)
        except FileNotFoundError:
            return True
        except OSError as error:
            if error.errno == errno.EXDEV:
                return False
            raise
        return True

    def _make_sibling(self, directory: Directory) -> Directory:
        workshop = (*directory, self._sibling_name)
        self._record.workshop(workshop)
        self.all.append(workshop)
        self._places.system.make_directory(workshop[-1], self._places.descriptor(directory), _OWNER_ONLY)
        hand_nothing_down(self._places, workshop)
        return workshop

    def make_directory(self, workshop: Directory, name: str, parent: Directory) -> tuple[Inode, str | None]:
        """Makes an empty directory that will be moved below `parent`, whose group and access rules it takes over.

        Gives what it is known by: its inode, and what `Places.born` says of it. Raises OSError.
        """
        system = self._places.system
        system.make_directory(name, self._places.descriptor(workshop))
        self._staged_directories.append((workshop, name))
        descriptor = system.open_directory(name, self._places.descriptor(workshop))
        try:
            default = system.attributes(self._places.descriptor(parent)).get(DEFAULT_LIST)
            if default is not None:
                system.set_attribute(descriptor, ACCESS_LIST, list_of_new(default, _NEW_DIRECTORY))
                system.set_attribute(descriptor, DEFAULT_LIST, default)
            status = system.fstat(descriptor)
            above = system.fstat(self._places.descriptor(parent))
            mode = stat.S_IMODE(status.st_mode)
            wanted = mode & ~stat.S_ISGID | above.st_mode & stat.S_ISGID
            if above.st_mode & stat.S_ISGID and status.st_gid != above.st_gid:
                system.set_owner(descriptor, -1, above.st_gid)
            if mode != wanted:
                system.set_mode(descriptor, wanted)
        finally:
            system.close(descriptor)
        return inode_of(status), self._places.born(workshop, name)

    def write(
        self,
        workshop: Directory,
        name: str,
        data: bytes,
        attributes: Attributes | None,
        parent: Directory | None = None,
    ) -> FileFacts:
        """Writes one artifact, with the attributes of the file it follows or those of a new file. Raises OSError.

        A new file will be moved into `parent`, whose group and access rules it takes over.
        """
        system = self._places.system
        descriptor = system.open_new(name, self._places.descriptor(workshop), _NEW_FILE)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[system.write(descriptor, rest) :]
            if attributes is not None:
                self._put_on(descriptor, attributes)
            elif parent is not None:
                self._inherit(descriptor, self._places.descriptor(parent))
            status = system.fstat(descriptor)
        finally:
            system.close(descriptor)
        self._artifacts.append((workshop, name))
        mode = stat.S_IMODE(status.st_mode)
        sha256 = hashlib.sha256(data).digest()
        born = self._places.born(workshop, name)
        return FileFacts(inode_of(status), mode, status.st_uid, status.st_gid, status.st_nlink, sha256, born)

    def _inherit(self, descriptor: int, parent: int) -> None:
        """Gives a new file the group and the access list that it would get if it were made in `parent`."""
        system = self._places.system
        above = system.fstat(parent)
        if above.st_mode & stat.S_ISGID:
            system.set_owner(descriptor, -1, above.st_gid)
        default = system.attributes(parent).get(DEFAULT_LIST)
        if default is not None:
            system.set_attribute(descriptor, ACCESS_LIST, list_of_new(default, _NEW_FILE))

    def _put_on(self, descriptor: int, attributes: Attributes) -> None:
        system = self._places.system
        status = system.fstat(descriptor)
        if (status.st_uid, status.st_gid) != (attributes.owner, attributes.group):
            system.set_owner(descriptor, attributes.owner, attributes.group)
        for name, value in attributes.extended.items():
            system.set_attribute(descriptor, name, value)
        # Last: giving a file away takes set-id bits from it, and an access list among the attributes moves the bits.
        if stat.S_IMODE(system.fstat(descriptor).st_mode) != attributes.mode:
            system.set_mode(descriptor, attributes.mode)

    def sync(self) -> None:
        """Puts every artifact, and every directory made for them, on the disk. Raises OSError."""
        if len(self._artifacts) > SYNC_EACH_MAX and sync_file_systems(self._places, self.all):
            return
        for workshop, name in self._artifacts:
            descriptor = self._places.system.open_file(name, self._places.descriptor(workshop))
            try:
                self._places.system.sync(descriptor)
            finally:
                self._places.system.close(descriptor)
        for workshop, name in self._staged_directories:
            descriptor = self._places.system.open_directory(name, self._places.descriptor(workshop))
            try:
                self._places.system.sync(descriptor)
            finally:
                self._places.system.close(descriptor)
        parents = (directory[:-1] for directory in (*self._parents_made, *self.all))
        sync_directories(self._places, {*self.all, *parents})

    def remove(self, keep: Collection[tuple[Directory, str]] = ()) -> tuple[Directory, ...]:
        """Removes all of it but the entries to keep, and gives the workshops with something in them that stays.

        What is gone already is fine. Raises OSError for what the system refuses to remove.
        """
        left = []
        for workshop in reversed(self.all):
            kept = {name for directory, name in keep if directory == workshop}
            if remove_workshop(self._places, workshop, kept):
                left.append(workshop)
        for directory in reversed(self._parents_made):
            with suppress(FileNotFoundError):
                self._remove_parent(directory)
        return tuple(left)

    def _remove_parent(self, directory: Directory) -> None:
        try:
            self._places.system.remove_directory(directory[-1], self._places.descriptor(directory[:-1]))
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            self._places.forget(directory)


def hand_nothing_down(places: Places, workshop: Directory) -> None:
    """Takes from a workshop the access list that it got for what is made in it; the files are to get others' lists."""
    descriptor = places.descriptor(workshop)
    if DEFAULT_LIST in places.system.attributes(descriptor):
        places.system.remove_attribute(descriptor, DEFAULT_LIST)


def main_workshop(commit_id: str) -> Directory:
    """The workshop that every commit has."""
    return (*HOME, commit_id)


def remove_workshop(places: Places, workshop: Directory, kept: Collection[str] = ()) -> tuple[str, ...]:
    """Removes a workshop with all of ours in it, but for the names to keep. One that is gone is fine. Raises OSError.

    Gives the names of what stays: those to keep, and what cannot be ours. That is a directory, link or pipe under the name
    of a file, which a stranger had put in the place of a target, and all under names that we do not give.
    """
    try:
        descriptor = places.descriptor(workshop)
    except FileNotFoundError:
        return ()
    names = sorted(name for name in places.system.names(descriptor) if name != HIDING)
    staying = tuple(name for name in names if name in kept or not _remove_ours(places, workshop, name))
    if not staying:
        with suppress(FileNotFoundError):
            places.system.remove(HIDING, places.descriptor(workshop))
        with suppress(FileNotFoundError):
            places.system.remove_directory(workshop[-1], places.descriptor(workshop[:-1]))
        places.forget(workshop)
    return staying


def _remove_ours(places: Places, workshop: Directory, name: str) -> bool:
    """Removes one entry of a workshop; False when it cannot be ours, so that it stays. Raises OSError."""
    try:
        if _STAGED_DIRECTORY_NAME.fullmatch(name) and places.is_directory(workshop, name):
            _remove_staged(places, (*workshop, name))
        elif _FILE_NAME.fullmatch(name) and places.is_file(workshop, name):
            places.system.remove(name, places.descriptor(workshop))
        else:
            return False
    except FileNotFoundError:
        pass  # two may be at it
    return True


def _remove_staged(places: Places, directory: Directory) -> None:
    """Removes a staged directory. A power loss can have left artifacts in it: of two renames only the second one came."""
    for name in places.system.names(places.descriptor(directory)):
        if places.is_directory(directory, name):
            _remove_staged(places, (*directory, name))
        else:
            places.system.remove(name, places.descriptor(directory))
    places.forget(directory)
    places.system.remove_directory(directory[-1], places.descriptor(directory[:-1]))


def sync_file_systems(places: Places, directories: Iterable[Directory]) -> bool:
    """Puts the whole file systems of the directories on the disk; False where the system has no such call."""
    one_each = {places.device(directory): directory for directory in directories}
    try:
        for directory in one_each.values():
            places.system.sync_file_system(places.descriptor(directory))
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return False
    return True


def sync_directories(places: Places, directories: Collection[Directory]) -> None:
    """Puts the entries of the directories on the disk. Raises OSError."""
    if len(directories) > SYNC_EACH_MAX and sync_file_systems(places, directories):
        return
    for directory in directories:
        places.sync(directory)
