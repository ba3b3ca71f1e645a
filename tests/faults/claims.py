"""A stranger, and what he is owed afterwards."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.faults.images import Image
from tests.faults.plans import Put, Shape
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


def hidden(names: Iterable[str], *, below: bool = True) -> Callable[[Image], Image]:
    """Leaves names out of an image, and all below them."""
    raw = {os.fsencode(name) for name in names}

    def seen(image: Image) -> Image:
        return {
            name: entry
            for name, entry in image.items()
            if name not in raw and not (below and any(name.startswith(each + b"/") for each in raw))
        }

    return seen


def hidden_with_new_parents(world: World, *names: str) -> Callable[[Image], Image]:
    """Leaves names out of an image, and the directories that may have to stay because of them."""
    left_out = set(names)
    for name in names:
        parts = name.split("/")
        above = ["/".join(parts[:length]) for length in range(1, len(parts))]
        left_out.update(directory for directory in above if not _was_directory(world, directory))
    return hidden(left_out, below=False)


def _was_directory(world: World, name: str) -> bool:
    entry = world.before.get(os.fsencode(name))
    return entry is not None and entry.kind == "directory"


def existing(shape: Shape) -> list[str]:
    return [name for name in shape.steps if name in shape.files]


def all_targets(shape: Shape) -> list[str]:
    return list(shape.steps)


def moved_with(shape: Shape, target: str) -> list[str]:
    """A target and the names that its file moves to."""
    moved = [name for name, step in shape.steps.items() if isinstance(step, Put) and step.origin == target]
    return [target, *moved]


def is_there(world: World, target: str, inode: int, content: bytes) -> Callable[[Image, str], str | None]:
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


def parent_of(target: str) -> str:
    return target.split("/", maxsplit=1)[0]


def parents(shape: Shape) -> list[str]:
    """One target for each directory at the top."""
    return list({parent_of(target): target for target in shape.steps}.values())


def once(shape: Shape) -> list[str]:
    return [next(iter(shape.steps))]
