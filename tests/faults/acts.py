"""What strangers do, each with what he is owed afterwards."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faults.images import OURS, Entry, Image
from tests.faults.plans import Put, Shape
from tests.faults.skips import skip
from tests.faults.worlds import World

STRANGE = b"// a stranger was here\n"
STRANGE_MODE = 0o604

LATE = "cleaning"
"""The phase in which the displaced files have been looked at for the last time."""

AFTER_THE_INSTANT = frozenset({"committing", "cleaning", "crashed"})


@dataclass(frozen=True, slots=True)
class Claim:
    """What a stranger is owed: `verify` gives what is wrong with it (told the phase in which he came), or None.

    `seen` takes out of an image what the comparison with before and after must not look at.
    """

    verify: Callable[[Image, str], str | None] = lambda image, moment: None
    seen: Callable[[Image], Image] = lambda image: image
    seen_in_conflict: Callable[[Image], Image] | None = None  # instead of `seen` when a person has to decide


NOTHING = Claim()

Perform = Callable[[], Claim]


@dataclass(frozen=True, slots=True)
class Act:
    """One stranger. `prepare` is called before the commit and gives what happens in the middle of it."""

    name: str
    prepare: Callable[[World, str], Perform]
    targets: Callable[[Shape], Iterable[str]]
    needs_handle: bool = False
    is_slow: bool = False


def _hidden(names: Iterable[str], *, below: bool = True) -> Callable[[Image], Image]:
    """Leaves names out of an image, and all below them."""
    raw = {os.fsencode(name) for name in names}

    def seen(image: Image) -> Image:
        return {
            name: entry
            for name, entry in image.items()
            if name not in raw and not (below and any(name.startswith(each + b"/") for each in raw))
        }

    return seen


def _hidden_with_new_parents(world: World, *names: str) -> Callable[[Image], Image]:
    """Leaves names out of an image, and the directories that may have to stay because of them."""
    hidden = set(names)
    for name in names:
        parts = name.split("/")
        above = ["/".join(parts[:length]) for length in range(1, len(parts))]
        hidden.update(directory for directory in above if os.fsencode(directory) not in world.before)
    return _hidden(hidden, below=False)


def _existing(shape: Shape) -> list[str]:
    return [name for name in shape.steps if name in shape.files]


def _all(shape: Shape) -> list[str]:
    return list(shape.steps)


def _moved_with(shape: Shape, target: str) -> list[str]:
    """A target and the names that its file moves to."""
    moved = [name for name, step in shape.steps.items() if isinstance(step, Put) and step.origin == target]
    return [target, *moved]


def _is_there(world: World, target: str, inode: int, content: bytes) -> Callable[[Image, str], str | None]:
    def verify(image: Image, moment: str) -> str | None:
        try:
            found = os.lstat(world.root / target)
        except OSError:
            return f"{target} is gone"
        if found.st_ino != inode:
            return f"{target} is another file now"
        if image[os.fsencode(target)].content != content:
            return f"{target} holds {image[os.fsencode(target)].content[:40]!r}"
        return None

    return verify


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
            return Claim(_is_there(world, target, inode, content), _hidden_with_new_parents(world, target))

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
            _held_somewhere(world, target), _hidden_with_new_parents(world, *_moved_with(world.shape, target))
        )

    return perform


def _open_handle(world: World, target: str) -> Perform:
    """A writer whose handle was open all the time, so that he writes into whatever became of the file."""
    descriptor = os.open(world.root / target, os.O_WRONLY)

    def perform() -> Claim:
        _overwrite(descriptor, STRANGE)
        os.close(descriptor)
        return Claim(
            _held_somewhere(world, target), _hidden_with_new_parents(world, *_moved_with(world.shape, target))
        )

    return perform


def _overwrite(descriptor: int, content: bytes) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, content, 0)


def _held_somewhere(world: World, target: str) -> Callable[[Image, str], str | None]:
    """The bytes stand at the target or are kept among our things; after the last look they may be lost."""

    def verify(image: Image, moment: str) -> str | None:
        places = [name for name, entry in image.items() if entry.kind == "file" and entry.content == STRANGE]
        allowed = {os.fsencode(name) for name in _moved_with(world.shape, target)}
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
        try:
            path.chmod(STRANGE_MODE)
            inode = os.lstat(path).st_ino
        except OSError:
            return NOTHING

        def verify(image: Image, moment: str) -> str | None:
            entry = image.get(os.fsencode(target))
            if entry is None or entry.mode == STRANGE_MODE:
                return None
            # If it was our file that he changed, the mode goes with it when it is taken back.
            is_owed = stays and inode in (original, os.lstat(path).st_ino)
            return f"{target} has the mode {entry.mode:o} again" if is_owed else None

        return Claim(verify, _without_modes(_moved_with(world.shape, target)))

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


# -- directories -------------------------------------------------------------------------------------------------------


def _parent(target: str) -> str:
    return target.split("/", maxsplit=1)[0]


def _parents(shape: Shape) -> list[str]:
    """One target for each directory at the top."""
    return list({_parent(target): target for target in shape.steps}.values())


def _swap_for_link(world: World, target: str) -> Perform:
    """The directory is moved elsewhere and a link to it left in its place."""
    parent = _parent(target)
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
        own = _hidden(map(os.fsdecode, new), below=False)

        def seen(image: Image) -> Image:
            return own(followed(image))

        return Claim(verify, seen, _hidden([parent, moved]))

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
    parent = _parent(target)

    def perform() -> Claim:
        if not (world.root / parent).is_dir():
            return NOTHING
        shutil.rmtree(world.root / parent, ignore_errors=True)
        return Claim(seen=_hidden([parent]))

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
        return Claim(_is_there(world, theirs, inode, STRANGE), _hidden_with_new_parents(world, theirs))

    return perform


def _unlink_lock(world: World, target: str) -> Perform:
    def perform() -> Claim:
        (world.root / ".vs/roslyn-bridge/locks/commit.lock").unlink(missing_ok=True)
        return NOTHING

    return perform


def _once(shape: Shape) -> list[str]:
    return [next(iter(shape.steps))]


# -- git ---------------------------------------------------------------------------------------------------------------

_GIT = shutil.which("git")
_GIT_ENVIRONMENT: Mapping[str, str] = {
    "PATH": os.environ.get("PATH", ""),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def _git(root: Path, *arguments: str) -> None:
    command = [_GIT or "git", "-c", "core.autocrlf=false", "-c", "gc.auto=0", *arguments]
    subprocess.run(command, cwd=root, env=_GIT_ENVIRONMENT, capture_output=True, check=False)


def _git_act(*arguments: str, resets: bool) -> Callable[[World, str], Perform]:
    """A git command in a work tree that was clean before the commit."""

    def prepare(world: World, target: str) -> Perform:
        _git(world.root, "init", "-q", "-b", "main")
        _git(world.root, "add", "-A")
        _git(world.root, "commit", "-q", "-m", "before")

        def perform() -> Claim:
            _git(world.root, *arguments)
            # Git makes tracked files what they were, with its own modes, and takes new ones away or hides them.
            return Claim(
                _tracked_are_whole(world, resets=resets),
                _hidden([".git", *world.shape.steps, *_git_hides(world.shape)]),
            )

        return perform

    return prepare


def _git_hides(shape: Shape) -> list[str]:
    """Directories that only targets live in: git removes those that it empties."""
    return [_parent(target) for target in shape.steps]


def _tracked_are_whole(world: World, *, resets: bool) -> Callable[[Image, str], str | None]:
    """All files of before are there with their bytes, or all are as after.

    A command that `resets` tracked files after the instant may mix the two.
    """

    def verify(image: Image, moment: str) -> str | None:
        names = [os.fsencode(name) for name in world.shape.files]
        is_before = [_same_bytes(image.get(name), world.before.get(name)) for name in names]
        is_after = [_same_bytes(image.get(name), world.after.get(name)) for name in names]
        mixed = all(one or other for one, other in zip(is_before, is_after, strict=True))
        if all(is_before) or all(is_after) or (mixed and resets and moment in AFTER_THE_INSTANT):
            return None
        wrong = [
            name for name, one, other in zip(names, is_before, is_after, strict=True) if not one and not other
        ]
        return f"tracked files are neither before nor after, or mixed: {wrong or names}"

    return verify


def _same_bytes(one: Entry | None, other: Entry | None) -> bool:
    return (one is None and other is None) or (
        one is not None and other is not None and one.content == other.content
    )


def _git_targets(shape: Shape) -> list[str]:
    if _GIT is None:
        skip("strangers who run git: there is no git here")
        return []
    return _once(shape) if shape.name in GIT_SHAPES else []


GIT_SHAPES = frozenset({"replace", "move and edit", "swap", "mixed", "new directories"})


ACTS: tuple[Act, ...] = (
    Act("an editor's safe-save", _safe_save(lambda world, target: STRANGE), _all),
    Act("a safe-save of the very bytes that we intend", _safe_save(_intended), _all),
    Act("a write in place", _in_place, _all),
    Act("a write through a handle that was open before", _open_handle, _existing, needs_handle=True),
    Act("write and revert", _write_and_revert, _existing),
    Act("chmod", _chmod, _existing),
    Act("touch", _touch, _existing),
    Act("directory swapped for a link", _swap_for_link, _parents),
    Act("parent removed", _remove_parent, _parents),
    Act("a file in our new directory", _file_in_new_directory, _new_directories),
    Act("lock unlinked", _unlink_lock, _once),
    Act("git checkout", _git_act("checkout", "-q", "--", ".", resets=True), _git_targets, is_slow=True),
    Act("git stash", _git_act("stash", "-q", "-u", resets=True), _git_targets, is_slow=True),
    Act("git clean -fdx", _git_act("clean", "-q", "-fdx", resets=False), _git_targets, is_slow=True),
)
