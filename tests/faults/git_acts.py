"""Git commands that somebody runs in the middle of a commit."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.faults.claims import AFTER_THE_INSTANT, Claim, Perform, hidden, once, parent_of
from tests.faults.images import Entry, Image
from tests.faults.plans import Shape
from tests.faults.skips import skip
from tests.faults.worlds import World

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


def git_act(*arguments: str, resets: bool) -> Callable[[World, str], Perform]:
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
                hidden([".git", *world.shape.steps, *_git_hides(world.shape)]),
            )

        return perform

    return prepare


def _git_hides(shape: Shape) -> list[str]:
    """Directories that only targets live in: git removes those that it empties."""
    return [parent_of(target) for target in shape.steps]


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


def git_targets(shape: Shape) -> list[str]:
    if _GIT is None:
        skip("strangers who run git: there is no git here")
        return []
    return once(shape) if shape.name in GIT_SHAPES else []


GIT_SHAPES = frozenset({"replace", "move and edit", "swap", "mixed", "new directories"})
