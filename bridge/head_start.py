"""A head start: the server loads a solution while MSBuild still reads it for us.

Reading the projects takes half a second of a processor for each, loading takes a server longer still, and neither needs
the other: what a server is told beyond the path, it may be told later.  But a server that begins so early may read what
we do not answer for.  So it begins early only where

- the solution file names projects that all lie under the root (others are going to be refused),
- each of them seems to be restored (a server that loads an unrestored project knows none of its packages),

and what it has loaded counts only if, when everything is read, no input has been touched since it began: not by a
restore of ours, and not by anybody else.  Otherwise it loads once more, in a new process.  Files are judged by their
times, and the folders of the projects by the names in them, because the load itself makes ``bin`` and writes ``obj``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.fingerprints import IGNORED_FOLDERS, Fingerprints, source_directories, untouched_since
from bridge.msbuild_imports import CONVENTIONAL
from bridge.nuget_files import ASSETS_NAME
from bridge.solutions import PathRefused, read_projects
from transactions.baseline import Inputs

SHAPING_ABOVE = (*CONVENTIONAL, "global.json", ".editorconfig", ".globalconfig")
"""Found by MSBuild, the SDK and the compiler in any folder above a project."""


@dataclass(frozen=True, slots=True)
class HeadStart:
    """What a server begins to load, and how its folders were before."""

    projects: tuple[Path, ...]
    root: Path
    began_ns: int
    names: bytes
    """Of everything in the folders of the projects."""
    above: frozenset[Path]
    """The files of every folder above them that shape projects by their name."""


def head_start(path: Path, root: Path) -> HeadStart | None:
    """What a server may begin to load at once of a solution; ``None`` where it had better wait.  Blocks."""
    try:
        projects = tuple(project.path for project in read_projects(path) if project.kind == "csharp")
    except (PathRefused, OSError):
        return None  # whoever reads it next says why
    if not projects or not all(
        _is_inside(project, root) and _seems_restored(project) for project in projects
    ):
        return None
    began_ns = time.time_ns()  # before the look, so that nothing falls between the two
    folders = _folders_of(projects)
    return HeadStart(projects, root, began_ns, _names_in(folders), frozenset(_shaping_above(projects)))


def _is_inside(project: Path, root: Path) -> bool:
    try:
        return project.resolve().is_relative_to(root)
    except (OSError, RuntimeError):  # a name that no system takes, a ring of links
        return False


def _seems_restored(project: Path) -> bool:
    """By the usual place of a restore's result; a project with another one waits."""
    try:
        return (project.parent / "obj" / ASSETS_NAME).is_file()
    except OSError:
        return False


def _folders_of(projects: Sequence[Path]) -> tuple[Path, ...]:
    return source_directories([project.parent for project in projects])


def _names_in(folders: Sequence[Path]) -> bytes:
    return Fingerprints().of((), folders)


def _shaping_above(projects: Sequence[Path]) -> Iterator[Path]:
    for folder in dict.fromkeys(above for project in projects for above in project.parents):
        yield from (folder / name for name in SHAPING_ABOVE if (folder / name).is_file())


def counts(start: HeadStart, inputs: Inputs) -> bool:
    """Whether what was loaded with a head start is what the inputs are now.  Blocks."""
    folders = _folders_of(start.projects)
    if _names_in(folders) != start.names or start.above != frozenset(_shaping_above(start.projects)):
        return False
    others = {*inputs.directories, *_homes_of_absent(inputs, start.root)}.difference(folders)
    return untouched_since((*inputs.files, *others), start.began_ns)


def _homes_of_absent(inputs: Inputs, root: Path) -> Iterator[Path]:
    """The folders under the root that would have held an input which is absent: its going shows there alone."""
    for path in inputs.files:
        home = path.parent
        if home.is_relative_to(root) and home.name not in IGNORED_FOLDERS and not path.exists():
            yield home
