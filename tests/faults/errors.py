"""Calls that fail: each call of each shape, with every error that the system can give there, once and from there on."""

import errno
from collections.abc import Iterator, Sequence

from tests.faults.plans import Shape
from tests.faults.scenarios import TIDIED_LATER, Run, Scenario, at, calls_of, commit_with, judge_run
from tests.faults.seam import (
    FOR_EVER,
    Call,
    Cancelled,
    Fails,
    FailsAllOf,
    Fault,
    Raises,
    Seam,
    WithoutRenames,
)
from tests.faults.worlds import Ground
from transactions.system import SYSTEM, System

CHANGING_ERRORS = (
    errno.EIO,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EACCES,
    errno.EROFS,
    errno.EXDEV,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EMFILE,
    errno.EBUSY,
    errno.ESTALE,
    errno.EINTR,
)
LOOKING_ERRORS = (errno.EIO, errno.EACCES, errno.EMFILE, errno.ESTALE, errno.ELOOP, errno.EINTR)
AFTER_ERRORS = (errno.EIO, errno.EINTR, errno.ENOSPC)
"""Errors that a call may report although it took effect (a network file system, a disk that fails late)."""

NEEDS_SPACE = frozenset(
    {
        "open_new",
        "open_lock",
        "write",
        "set_attribute",
        "make_directory",
        "link",
        "sync",
        "sync_file_system",
        "close",
    }
)
NEEDS_INODE = frozenset({"open_new", "make_directory"})
OPENS = frozenset({"open_new", "open_file", "open_directory"})

IN_FULL = ("mixed",)
"""Shapes of which every call fails in every way; of the others every call fails in some."""

WITHOUT_RENAMES = ("replace", "move over", "swap", "mixed")

PLACES: dict[str, System] = {
    "real": SYSTEM,
    "no exchange": WithoutRenames(links=True),
    "no exchange, no links": WithoutRenames(links=False),
}


def _faults(call: Call, *, few: bool) -> Iterator[tuple[str, Fault, bool]]:
    """Name, fault, and whether it lasts. With `few` each call gets another error."""
    number = call.number
    errors = CHANGING_ERRORS if call.changes else LOOKING_ERRORS
    for error in _part(errors, number) if few else errors:
        yield f"{errno.errorcode[error]} once", Fails(number, error), False
    yield "EIO from here on", Fails(number, errno.EIO, times=FOR_EVER), True
    if not few or call.changes:
        yield "EIO twice", Fails(number, errno.EIO, times=2), True
        yield "no memory before", Raises(number, MemoryError), True
        yield "cancelled before", Raises(number, Cancelled), True
    if call.changes:
        yield from _changing_faults(call, few=few)


def _part(errors: tuple[int, ...], number: int) -> set[int]:
    return {errors[number % len(errors)]}


def _changing_faults(call: Call, *, few: bool) -> Iterator[tuple[str, Fault, bool]]:
    number = call.number
    for error in AFTER_ERRORS[:1] if few else AFTER_ERRORS:
        yield f"{errno.errorcode[error]} after the effect", Fails(number, error, after=True), False
    if call.name in NEEDS_SPACE:
        yield "full disk from here on", FailsAllOf(number, errno.ENOSPC, NEEDS_SPACE), True
    if (
        call.name in NEEDS_INODE
    ):  # what is there can be renamed and removed, so nothing may be left of a refused commit
        yield "no inode from here on", FailsAllOf(number, errno.ENOSPC, NEEDS_INODE), False
    yield "read-only from here on", FailsAllOf(number, errno.EROFS, CHANGING_NAMES), True
    if few:
        return
    yield "no memory after", Raises(number, MemoryError, after=True), True
    yield "cancelled after", Raises(number, Cancelled, after=True), True
    yield "EIO after the effect from here on", Fails(number, errno.EIO, after=True, times=FOR_EVER), True
    if call.name in NEEDS_SPACE:
        yield "quota from here on", FailsAllOf(number, errno.EDQUOT, NEEDS_SPACE), True
    if call.name in OPENS:
        yield "no descriptors from here on", FailsAllOf(number, errno.EMFILE, OPENS), True


CHANGING_NAMES = frozenset(
    {
        *("open_new", "open_lock", "write", "set_owner", "set_mode", "set_attribute", "touch", "sync"),
        "remove_attribute",
        *(
            "sync_file_system",
            "make_directory",
            "remove_directory",
            "remove",
            "move",
            "exchange",
            "link",
            "rename",
        ),
    }
)


def scenarios(ground: Ground, shapes: Sequence[Shape]) -> Iterator[Scenario]:
    """All of this kind."""
    for place, base in PLACES.items():
        for shape in shapes:
            if place == "real" or shape.name in WITHOUT_RENAMES:
                few = place != "real" or shape.name not in IN_FULL
                yield from of_shape(ground, shape, place, base, few=few)


def of_shape(ground: Ground, shape: Shape, place: str, base: System, *, few: bool) -> Iterator[Scenario]:
    """All of one shape in one place."""
    for call in calls_of(ground, shape, base):
        faults = list(_faults(call, few=few))
        for name, fault, lasts in faults[call.number % 3 :: 3] if few else faults:
            lasting = lasts or call.phase in TIDIED_LATER
            yield at("errors", place, shape, call, name, _run(shape, base, fault, lasting=lasting))
        if call.name.startswith("write"):
            yield at("errors", place, shape, call, "short write", _run_short(shape, base, call.number, None))
            full = FailsAllOf(call.number + 1, errno.ENOSPC, NEEDS_SPACE)
            yield at(
                "errors",
                place,
                shape,
                call,
                "short write, then full",
                _run_short(shape, base, call.number, full),
            )


def _run(shape: Shape, base: System, fault: Fault, *, lasting: bool) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            outcome, _ = commit_with(fault, base, world)
            judge_run(world, outcome, lasting=lasting)

    return run


def _run_short(shape: Shape, base: System, number: int, fault: Fault | None) -> Run:
    def run(ground: Ground) -> None:
        with ground.world(shape) as world:
            seam = Seam(fault, base)
            seam.short_write_at = number
            judge_run(world, world.commit(seam), lasting=fault is not None)

    return run
