"""What is right. The judge looks at the disk alone; what we said about it must agree with what it sees.

    committed                   the after-image, exactly, and no record left
    refused, conflict,
    taken back                  the before-image, exactly, and no record left
    unrestored, interrupted,
    killed, power lost          anything, as long as a recovery without faults leads to the before-image or the
                                after-image, exactly, and no record is left

Exactly means: every entry under the root, extra ones too, with content, mode, owner, extended attributes, link targets
and number of names. What a stranger did is taken out of the comparison by the scenario (see `strangers`), never by us.
"""

import os
import stat
from collections.abc import Collection

from tests.faults.images import OLD_NS, OURS, Image, differences, image_of, without
from tests.faults.worlds import Outcome, World

BEFORE, AFTER = "before", "after"

LOCK_FILE = (OURS + b"/roslyn-bridge/locks/commit.lock",)

CLEAN_ENDS: dict[str, str] = {
    "committed": AFTER,
    "refused": BEFORE,
    "conflict": BEFORE,
    "taken back": BEFORE,
}


class NotHeld(Exception):
    """A scenario did not hold; the text says what was seen."""


def side_of(image: Image, before: Image, after: Image) -> str:
    """Which of the two an image is. Raises NotHeld with the shorter list of differences."""
    if not differences(image, after):
        return AFTER
    to_before = differences(image, before)
    if not to_before:
        return BEFORE
    to_after = differences(image, after)
    name, shorter = (BEFORE, to_before) if len(to_before) <= len(to_after) else (AFTER, to_after)
    raise NotHeld(f"neither before nor after; nearest is {name}: " + "; ".join(shorter[:4]))


def require(world: World, allowed: Collection[str], *, lock_may_stay: bool = False) -> str:
    """The tree is one of the allowed images, and no record is left. Gives the one it is.

    The folders and the empty file of a lock may be left by a crash before there was a record, and by who could not lock
    it: it may be somebody else's.
    """
    image: Image = world.image()
    if lock_may_stay and OURS in image:
        image = without_lock(image)
    side = side_of(image, world.before, world.after)
    if side not in allowed:
        raise NotHeld(f"the tree is the {side}-image, which it must not be")
    require_times(world, side)
    require_idle(world)
    return side


def without_lock(image: Image) -> Image:
    """An image less the empty lock file and the folders that lead to it, if there is nothing else of ours."""
    ours = {name: entry for name, entry in image.items() if name == OURS or name.startswith(OURS + b"/")}
    if all(
        entry.kind == "directory" or (name in LOCK_FILE and not entry.content) for name, entry in ours.items()
    ):
        return without(image, OURS)
    return image


def require_outcome(world: World, outcome: Outcome) -> None:
    """A run that had no stranger ended as it said, or recovers to one of both images."""
    if outcome.kind == "broken":
        raise NotHeld(f"an exception that nobody promised: {outcome.said}")
    wanted = CLEAN_ENDS.get(outcome.kind)
    if outcome.is_clean and wanted is not None:
        require(world, {wanted}, lock_may_stay=outcome.kind == "refused")


def require_times(world: World, side: str) -> None:
    """Files that are not concerned keep their times; those that were written have new ones, for the build's sake."""
    for name, entry in (world.after if side == AFTER else world.before).items():
        if entry.kind != "file":
            continue
        path = os.path.join(os.fsencode(world.root), name)
        is_old = os.lstat(path).st_mtime_ns == OLD_NS
        concerned = os.fsdecode(name) in world.shape.steps
        if not concerned and not is_old:
            raise NotHeld(f"{os.fsdecode(name)!r} was touched, and it is no target")
        if concerned and side == AFTER and is_old:
            raise NotHeld(f"{os.fsdecode(name)!r} was written and has an old time")


def require_idle(world: World) -> None:
    """The state directory holds no record: nothing but empty directories and empty files (locks)."""
    left = [
        os.fsdecode(name)
        for name, entry in image_of(os.fsencode(world.state)).items()
        if entry.kind != "directory" and entry.content
    ]
    if left:
        raise NotHeld(f"left in the state directory: {left[:5]}")


def is_regular(path: bytes) -> bool:
    """Whether a regular file stands at a path."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
