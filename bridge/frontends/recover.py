"""``roslyn-bridge recover``: a person's way out of commits that a crash interrupted.

The commands only say what is wanted; ``recovery_desk`` does it and finds the words.  Like the rest of the command line
this module imports nothing but click, because it is loaded whenever a bridge starts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bridge.options import read_options

if TYPE_CHECKING:
    from bridge.frontends.recovery_desk import Desk

CHOICES = {
    "keep-disk": "Leave the files as they are on the disk now.",
    "take-before": "Put the files back as they were before the commit.",
    "take-after": "Give the files the contents that the commit wanted.",
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look: what was given before the name of a command counts for the command too."""

    root: Path | None
    state_directory: str | None


def _at_desk(command: Callable[..., int]) -> Callable[..., None]:
    """Give a command its desk, and the options that say where that stands; what it returns is the exit code."""

    @wraps(command)
    def at_desk(root: Path | None, state_directory: str | None, **arguments: object) -> None:
        outer = click.get_current_context().find_object(Place) or Place(None, None)
        place = Place(root or outer.root, state_directory or outer.state_directory)
        sys.exit(command(_desk(place), **arguments))

    return _placed(at_desk)


def _placed(command: Callable[..., None]) -> Callable[..., None]:
    command = click.option(
        "--state-directory",
        metavar="PATH",
        help="Where private state lies, if not in the user's state directory.",
    )(command)
    return click.option(
        "--root",
        metavar="PATH",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="The workspace: where it is now, if it was moved, or where another bridge left a commit.",
    )(command)


def _desk(place: Place) -> Desk:
    from bridge.frontends.recovery_desk import Desk  # noqa: PLC0415  # rich and the transactions: for people only
    from bridge.state_directory import StateDirectory  # noqa: PLC0415

    options = read_options({"state_directory": place.state_directory})
    refused = [warning.message for warning in options.warnings if "state" in warning.message.lower()]
    if refused:  # a bridge would fall back to the default; here that would be the wrong list
        raise click.UsageError(refused[0])
    return Desk(StateDirectory(options.state_directory), place.root)


@click.group(invoke_without_command=True)
@_placed
@click.pass_context
def recover(context: click.Context, root: Path | None, state_directory: str | None) -> None:
    """List commits that were interrupted, and finish them.

    A commit that a crash interrupted is completed or taken back when a bridge starts next. What a bridge cannot decide
    alone, because somebody changed the same files, is listed here and decided by you. Without a command: list. With
    --root alone: recover what belongs to the workspace that was moved there.

    Exit codes: 0 nothing is unfinished (any more), 1 something still is, 2 the command line is wrong, 3 refused.
    """
    context.obj = Place(root, state_directory)
    if context.invoked_subcommand is None:
        desk = _desk(context.obj)
        sys.exit(desk.list() if root is None else desk.run(None))


@recover.command("list")
@_at_desk
def list_unfinished(desk: Desk) -> int:
    """List what is unfinished; changes nothing. With --root also the marker of another bridge there."""
    return desk.list()


@recover.command()
@click.argument("commit_id", metavar="ID")
@_at_desk
def explain(desk: Desk, commit_id: str) -> int:
    """Tell what happened to one commit, how its files stand, and what can be done. Changes nothing."""
    return desk.explain(commit_id)


@recover.command()
@click.argument("commit_id", metavar="[ID]", required=False)
@_at_desk
def run(desk: Desk, commit_id: str | None) -> int:
    """Recover now what a bridge would recover at its start; then list what is left."""
    return desk.run(commit_id)


@recover.command()
@click.argument("commit_id", metavar="ID")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--keep-disk", is_flag=True, help=CHOICES["keep-disk"])
@click.option("--take-before", is_flag=True, help=CHOICES["take-before"])
@click.option("--take-after", is_flag=True, help=CHOICES["take-after"])
@_at_desk
def resolve(desk: Desk, commit_id: str, paths: tuple[Path, ...], **choices: bool) -> int:
    """Decide the files of one commit that nobody but you can decide; all of them, or the ones named."""
    chosen = [name.replace("_", "-") for name, given in choices.items() if given]
    if len(chosen) != 1:  # a decision cannot be taken back, so of two none is carried out
        raise click.UsageError(
            "Say what shall become of the files, once: --keep-disk, --take-before or --take-after."
        )
    return desk.resolve(commit_id, paths, chosen[0])


@recover.command()
@click.argument("commit_id", metavar="ID")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@_at_desk
def export(desk: Desk, commit_id: str, directory: Path) -> int:
    """Copy all that is known of one commit to a new folder of plain files. Changes nothing else."""
    return desk.export(commit_id, directory)


@recover.command()
@click.argument("commit_id", metavar="ID")
@click.option(
    "--marker",
    is_flag=True,
    help="Forget the marker that a bridge with another state directory left under --root, and will not come back for.",
)
@_at_desk
def discard(desk: Desk, commit_id: str, marker: bool) -> int:
    """Forget one commit with all that was kept for it; the files stay as they are. Needs an export before."""
    return desk.discard_marker(commit_id) if marker else desk.discard(commit_id)
