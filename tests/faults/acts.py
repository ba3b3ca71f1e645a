"""What strangers do."""

import os
import shutil
from collections.abc import Callable, Iterable

from tests.faults.claims import (
    LATE,
    NOTHING,
    STRANGE,
    STRANGE_MODE,
    Act,
    Claim,
    Perform,
    all_targets,
    existing,
    hidden,
    hidden_with_new_parents,
    is_there,
    moved_with,
    once,
    parent_of,
    parents,
)
from tests.faults.git_acts import git_act, git_targets
from tests.faults.images import OURS, Entry, Image, entry_of, without
from tests.faults.plans import Shape
from tests.faults.seam import ReusedInodes
from tests.faults.worlds import World

# -- writers -----------------------------------------------------------------------------------------------------------


def _safe_save(content_of: Callable[[World, str], bytes]) -> Callable[[World, str], Perform]:
    """An editor that writes another file and renames it over the target."""

    def prepare(world: World, target: str) -> Perform:
        content = content_of(world, target)

        def perform() -> Claim:
            path = world.root / target
            other = world.root / "stranger.tmp"
            try:
                other.write_bytes(content)
                inode = os.lstat(other).st_ino
                other.rename(path)
            except OSError:
                other.unlink(missing_ok=True)
                return NOTHING  # no place for it at this moment
            return Claim(is_there(world, target, inode, content), hidden_with_new_parents(world, target))

        return perform

    return prepare


def _intended(world: World, target: str) -> bytes:
    step = world.shape.steps[target]
    return STRANGE if step is None else step.content


def _in_place(world: World, target: str) -> Perform:
    """A writer who opens the target when he writes."""

    def perform() -> Claim:
        path = world.root / target
        try:
            descriptor = os.open(path, os.O_WRONLY)
        except OSError:
            return NOTHING
        _overwrite(descriptor, STRANGE)
        os.close(descriptor)
        return Claim(
            _held_somewhere(world, target), hidden_with_new_parents(world, *moved_with(world.shape, target))
        )

    return perform


def _open_handle(world: World, target: str) -> Perform:
    """A writer whose handle was open all the time, so that he writes into whatever became of the file."""
    descriptor = os.open(world.root / target, os.O_WRONLY)

    def perform() -> Claim:
        _overwrite(descriptor, STRANGE)
        os.close(descriptor)
        return Claim(
            _held_somewhere(world, target), hidden_with_new_parents(world, *moved_with(world.shape, target))
        )

    return perform


def _overwrite(descriptor: int, content: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, content, 0)


def _held_somewhere(world: World, target: str) -> Callable[[Image, str], str | None]:
    """The bytes stand at the target or are kept among our things; after the last look they may be lost."""

    def verify(image: Image, moment: str) -> str | None:
        places = [name for name, entry in image.items() if entry.kind == "file" and entry.content == STRANGE]
        allowed = {os.fsencode(name) for name in moved_with(world.shape, target)}
        if moment == LATE or any(name in allowed or name.startswith(OURS + b"/") for name in places):
            return None
        return f"what was written to {target} stands nowhere (found at {places})"

    return verify


def _write_and_revert(world: World, target: str) -> Perform:
    def perform() -> Claim:
        try:
            content = (world.root / target).read_bytes()
            descriptor = os.open(world.root / target, os.O_WRONLY)
        except OSError:
            return NOTHING
        _overwrite(descriptor, STRANGE)
        _overwrite(descriptor, content)
        os.close(descriptor)
        return NOTHING

    return perform


# -- attributes --------------------------------------------------------------------------------------------------------


def _chmod(world: World, target: str) -> Perform:
    original = os.lstat(world.root / target).st_ino
    step = world.shape.steps[target]
    stays = step is None or step.origin is None  # a file that is moved takes its mode along

    def perform() -> Claim:
        path = world.root / target
        if path.is_dir():
            return NOTHING  # the commit has made a directory of it, which is another scenario's
        try:
            path.chmod(STRANGE_MODE)
            inode = os.lstat(path).st_ino
        except OSError:
            return NOTHING

        def verify(image: Image, moment: str) -> str | None:
            entry = image.get(os.fsencode(target))
            if entry is None or entry.kind != "file" or entry.mode == STRANGE_MODE:
                return None
            # If it was our file that he changed, the mode goes with it when it is taken back.
            is_owed = stays and inode in (original, os.lstat(path).st_ino)
            return f"{target} has the mode {entry.mode:o} again" if is_owed else None

        return Claim(verify, _without_modes(moved_with(world.shape, target)))

    return perform


def _without_modes(names: Iterable[str]) -> Callable[[Image], Image]:
    raw = {os.fsencode(name) for name in names}

    def seen(image: Image) -> Image:
        return {
            name: Entry(entry.kind, entry.content, 0, 0, 0, (), entry.links) if name in raw else entry
            for name, entry in image.items()
        }

    return seen


def _touch(world: World, target: str) -> Perform:
    def perform() -> Claim:
        try:
            os.utime(world.root / target)
        except OSError:
            return NOTHING
        return NOTHING

    return perform


# -- something else in the place of a file, with the inode that the file had ---------------------------------------------


def _in_its_place(
    make: Callable[[World, str], None], *, tells_birth: bool
) -> Callable[[World, str], Perform]:
    """Somebody removes the file at the target, and makes something there that is given its inode."""

    def prepare(world: World, target: str) -> Perform:
        system = ReusedInodes(tells_birth=tells_birth)
        world.system = system

        def perform() -> Claim:
            path = world.root / target
            removed = None
            try:
                removed = path.lstat()
                path.unlink()
            except OSError:
                if os.path.lexists(path):
                    return NOTHING  # the commit has made a directory of it, which is another scenario's
            try:
                make(world, target)
            except OSError:
                return NOTHING  # no place for it at this moment
            made = entry_of(os.fsencode(path))
            inode = os.lstat(path).st_ino
            if removed is not None:
                system.reused(removed, os.lstat(path))

            def verify(image: Image, moment: str) -> str | None:
                is_his = image.get(os.fsencode(target)) == made and os.lstat(path).st_ino == inode
                return None if is_his else f"{target} is {image.get(os.fsencode(target))}"

            return Claim(verify, hidden_with_new_parents(world, target))

        return perform

    return prepare


def _make_directory(world: World, target: str) -> None:
    (world.root / target).mkdir()


def _make_pipe(world: World, target: str) -> None:
    os.mkfifo(world.root / target)


def _make_link(world: World, target: str) -> None:
    (world.root / target).symlink_to("nowhere")


def _make_same_file(world: World, target: str) -> None:
    path = world.root / target
    path.write_bytes(_intended(world, target))
    path.chmod(STRANGE_MODE)


# -- directories -------------------------------------------------------------------------------------------------------


def _swap_for_link(world: World, target: str) -> Perform:
    """The directory is moved elsewhere and a link to it left in its place."""
    parent = parent_of(target)
    moved = parent + ".moved"

    def perform() -> Claim:
        try:
            (world.root / parent).rename(world.root / moved)
        except OSError:
            return NOTHING
        (world.root / parent).symlink_to(moved)

        def verify(image: Image, moment: str) -> str | None:
            entry = image.get(os.fsencode(parent))
            return None if entry is not None and entry.kind == "link" else f"{parent} is no link any more"

        followed = _followed(os.fsencode(parent), os.fsencode(moved))
        # An empty directory of ours may stay behind in what he moved away: nothing leads to it any more.
        new = [
            name
            for name, entry in world.after.items()
            if entry.kind == "directory" and name not in world.before
        ]
        own = hidden(map(os.fsdecode, new), below=False)

        def seen(image: Image) -> Image:
            return own(followed(image))

        return Claim(verify, seen, hidden([parent, moved]))

    return perform


def _followed(link: bytes, moved: bytes) -> Callable[[Image], Image]:
    """An image with the moved directory back in its place. Links inside lead where they led."""

    def seen(image: Image) -> Image:
        if moved not in image:
            return image
        found = {name: entry for name, entry in image.items() if name != link}
        return {
            (link + name[len(moved) :] if name == moved or name.startswith(moved + b"/") else name): entry
            for name, entry in found.items()
        }

    return seen


def _remove_parent(world: World, target: str) -> Perform:
    parent = parent_of(target)

    def perform() -> Claim:
        if not (world.root / parent).is_dir():
            return NOTHING
        shutil.rmtree(world.root / parent, ignore_errors=True)
        return Claim(seen=hidden([parent]))

    return perform


def _new_directories(shape: Shape) -> list[str]:
    """A target in each directory that the commit makes."""
    made: dict[str, str] = {}
    there = {os.path.dirname(name) for name in shape.files}
    for target in shape.steps:
        directory = os.path.dirname(target)
        if directory not in there and target not in shape.files:
            made[directory] = target
    return list(made.values())


def _file_in_new_directory(world: World, target: str) -> Perform:
    directory = os.path.dirname(target)
    theirs = f"{directory}/theirs.txt"

    def perform() -> Claim:
        path = world.root / theirs
        try:
            path.write_bytes(STRANGE)
        except OSError:
            return NOTHING
        inode = os.lstat(path).st_ino
        return Claim(is_there(world, theirs, inode, STRANGE), hidden_with_new_parents(world, theirs))

    return perform


def _unlink_lock(world: World, target: str) -> Perform:
    def perform() -> Claim:
        (world.root / ".vs/roslyn-bridge/locks/commit.lock").unlink(missing_ok=True)
        return NOTHING

    return perform


def _take_marker(world: World, target: str) -> Perform:
    """Somebody lets others work here in spite of an unfinished commit, so a recovery must not change the tree any more."""

    def perform() -> Claim:
        for marker in (world.root / ".vs/roslyn-bridge/pending").glob("*"):
            marker.unlink()
        found = without(world.image(), OURS)

        def verify(image: Image, moment: str) -> str | None:
            is_untouched = moment != "crashed" or without(image, OURS) == found
            return None if is_untouched else "the recovery changed the tree"

        return Claim(verify, seen_in_conflict=lambda image: {})

    return perform


ACTS: tuple[Act, ...] = (
    Act("an editor's safe-save", _safe_save(lambda world, target: STRANGE), all_targets),
    Act("a safe-save of the very bytes that we intend", _safe_save(_intended), all_targets),
    Act("a write in place", _in_place, all_targets),
    Act("a write through a handle that was open before", _open_handle, existing, needs_handle=True),
    Act("a directory in its place", _in_its_place(_make_directory, tells_birth=False), all_targets),
    Act("a pipe in its place", _in_its_place(_make_pipe, tells_birth=False), all_targets),
    Act("a link in its place", _in_its_place(_make_link, tells_birth=False), all_targets),
    Act(
        "the very bytes that we intend in its place",
        _in_its_place(_make_same_file, tells_birth=True),
        all_targets,
    ),
    Act("write and revert", _write_and_revert, existing),
    Act("chmod", _chmod, existing),
    Act("touch", _touch, existing),
    Act("directory swapped for a link", _swap_for_link, parents),
    Act("parent removed", _remove_parent, parents),
    Act("a file in our new directory", _file_in_new_directory, _new_directories),
    Act("lock unlinked", _unlink_lock, once),
    Act("our marker taken away", _take_marker, once),
    Act("git checkout", git_act("checkout", "-q", "--", ".", resets=True), git_targets, is_slow=True),
    Act("git stash", git_act("stash", "-q", "-u", resets=True), git_targets, is_slow=True),
    Act("git clean -fdx", git_act("clean", "-q", "-fdx", resets=False), git_targets, is_slow=True),
)
