"""From the path a caller gives to the list of projects it means.

Accepted are ``.sln``, ``.slnx``, ``.slnf`` and ``.csproj`` files, or a folder that holds exactly one of them.  In a
folder a solution outranks the project files beside it: who writes a solution means it to be the whole.  Two
solutions of any kind (also ``X.sln`` beside ``X.slnx``) are two candidates, and the caller chooses.

Reading a solution finds *names*; whether its projects load is for ``projects`` to say.  Nothing is dropped in
silence: projects of other languages and missing files are listed like the rest.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bridge.jsonc import parse_jsonc
from bridge.msbuild_xml import MalformedXml, local_name, read_xml

SOLUTION_SUFFIXES = (".sln", ".slnx", ".slnf")
PROJECT_SUFFIX = ".csproj"
ACCEPTED = "a .sln, .slnx, .slnf or .csproj file, or a folder with exactly one of them"
OTHER_PROJECT_SUFFIXES = (
    ".vbproj",
    ".fsproj",
    ".vcxproj",
    ".sqlproj",
    ".shproj",
    ".pyproj",
    ".esproj",
    ".dcproj",
)
PATH_LIMIT = 4096
"""Characters of a path: more than any system takes, and few enough to repeat in a message."""
HINT_DEPTH = 3
"""How many folders below a folder without a solution are searched for one to suggest."""
HINT_LIMIT = 20
"""Candidates named in one message."""

_SOLUTION_FOLDER = "2150E333-8FDC-42A3-9474-1A3956D46DE8"
_PROJECT_LINE = re.compile(
    r'Project\("\{([0-9A-Fa-f-]{36})\}"\)\s*=\s*"([^"]*)"\s*,\s*"([^"]*)"\s*,\s*"\{?([0-9A-Fa-f-]{36})\}?"'
)

RefusalCode = Literal[
    "WorkspacePathInvalid", "WorkspacePathAmbiguous", "WorkspaceNotSupported", "WorkspaceLoadFailed"
]


class PathRefused(Exception):
    """The path, or the solution file behind it, cannot be opened.

    ``code`` is a workspace code, ``message`` a sentence for the caller, ``candidates`` the paths to choose from.
    """

    def __init__(self, code: RefusalCode, message: str, candidates: tuple[Path, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.candidates = candidates


@dataclass(frozen=True, slots=True)
class SolutionProject:
    """One project a solution names.  It may be missing on disk."""

    path: Path
    """Absolute and normalised; the letter case is that of the solution file."""
    name: str
    kind: Literal["csharp", "other"]
    type: str
    """What the solution says about its kind: a GUID, a type name, or the file's suffix."""


def locate(path: Path) -> Path:
    """The solution or project file that ``path`` means, absolute, with links in its folder resolved.

    Raises ``PathRefused``: ``WorkspacePathInvalid`` (not absolute, missing, something else), ``WorkspaceNotSupported``
    (a project of another language), ``WorkspacePathAmbiguous`` (a folder with several candidates).
    """
    _check_text(str(path))
    if not path.is_absolute():
        raise PathRefused("WorkspacePathInvalid", f"The path {path} is not absolute; expected {ACCEPTED}.")
    try:
        if path.is_dir():
            return _locate_in_folder(path.resolve())
        if not path.exists():
            raise PathRefused("WorkspacePathInvalid", _missing(path))
        # The file itself may be a link: its projects are found from where the link stands, as MSBuild does.
        return _accept_file(path.parent.resolve() / path.name)
    except OSError as error:
        reason = error.strerror or str(error)
        raise PathRefused("WorkspacePathInvalid", f"The path {path} could not be read: {reason}.") from error


def _check_text(text: str) -> None:
    """Refuse what no system takes as a path, without repeating it whole."""
    if len(text) > PATH_LIMIT:
        reason = f"has {len(text)} characters, more than the {PATH_LIMIT} of a path"
    elif "\0" in text:
        reason = "holds a NUL character"
    elif any("\ud800" <= character <= "\udfff" for character in text):
        reason = "holds half a surrogate pair"
    else:
        return
    raise PathRefused("WorkspacePathInvalid", f"The path {text[:100]!a} {reason}; expected {ACCEPTED}.")


def _accept_file(path: Path) -> Path:
    suffix = path.suffix.lower()
    if not path.is_file():
        raise PathRefused(
            "WorkspacePathInvalid", f"{path} is neither a file nor a folder; expected {ACCEPTED}."
        )
    if suffix in SOLUTION_SUFFIXES or suffix == PROJECT_SUFFIX:
        return path
    if suffix in OTHER_PROJECT_SUFFIXES:
        raise PathRefused("WorkspaceNotSupported", f"{path} is no C# project; expected {ACCEPTED}.")
    raise PathRefused("WorkspacePathInvalid", f"{path} is no solution or project; expected {ACCEPTED}.")


def _missing(path: Path) -> str:
    parent = next((p for p in path.parents if p.is_dir()), path)
    nearest = "" if parent == path.parent else f"; the nearest folder that exists is {parent}"
    return f"The path {path} does not exist{nearest}. Expected {ACCEPTED}."


def _locate_in_folder(folder: Path) -> Path:
    files = sorted(entry for entry in folder.iterdir() if entry.is_file())
    solutions = tuple(f for f in files if f.suffix.lower() in SOLUTION_SUFFIXES)
    candidates = solutions or tuple(f for f in files if f.suffix.lower() == PROJECT_SUFFIX)
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise PathRefused(
            "WorkspacePathAmbiguous",
            f"The folder {folder} holds {len(candidates)} candidates: {_names(candidates)}. Give the path of one.",
            candidates,
        )
    others = tuple(f for f in files if f.suffix.lower() in OTHER_PROJECT_SUFFIXES)
    if others:
        raise PathRefused(
            "WorkspaceNotSupported",
            f"The folder {folder} holds no C# project, only {_names(others)}.",
            others,
        )
    below = tuple(_solutions_below(folder))
    hint = f" Below it: {_names(below, folder)}." if below else ""
    raise PathRefused(
        "WorkspacePathInvalid",
        f"The folder {folder} holds no solution or C# project; expected {ACCEPTED}.{hint}",
        below,
    )


def _names(paths: Sequence[Path], base: Path | None = None) -> str:
    shown = [str(p.relative_to(base)) if base else p.name for p in paths[:HINT_LIMIT]]
    return ", ".join(shown) + (f" and {len(paths) - HINT_LIMIT} more" if len(paths) > HINT_LIMIT else "")


def _solutions_below(folder: Path) -> Iterator[Path]:
    """Up to ``HINT_LIMIT`` solutions a few folders down, else nothing: a hint, not a search."""
    level, found = [folder], 0
    for _ in range(HINT_DEPTH):
        below: list[Path] = []
        for parent in level[:200]:  # a folder with more folders than that is no place to guess in
            below += sorted(d for d in _directories(parent) if d.name not in ("bin", "obj", "node_modules"))
        for directory in below:
            for entry in sorted(_files(directory)):
                if entry.suffix.lower() in SOLUTION_SUFFIXES and found < HINT_LIMIT:
                    found += 1
                    yield entry
        level = below


def _directories(folder: Path) -> list[Path]:
    try:
        return [
            Path(e.path)
            for e in os.scandir(folder)
            if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)
        ]
    except OSError:
        return []


def _files(folder: Path) -> list[Path]:
    try:
        return [Path(e.path) for e in os.scandir(folder) if e.is_file()]
    except OSError:
        return []


def read_projects(path: Path) -> tuple[SolutionProject, ...]:
    """The projects that a solution, filter or project file names, in its order, each path once.

    ``path`` comes from ``locate``.  Raises ``PathRefused`` with ``WorkspaceLoadFailed`` and the reason when the file
    cannot be understood, when a filter names a project its solution does not have, or when no project is named.
    """
    suffix = path.suffix.lower()
    if suffix == PROJECT_SUFFIX:
        return (SolutionProject(path, path.stem, "csharp", PROJECT_SUFFIX),)
    if suffix == ".slnf":
        projects: Iterable[SolutionProject] = _read_slnf(path)
    elif suffix == ".slnx":
        projects = _read_slnx(path)
    else:
        projects = _read_sln(path)
    once = {project.path: project for project in projects}
    if not once:
        raise _unreadable(path, "it names no project")
    return tuple(once.values())


def underlying_solution(path: Path) -> Path:
    """The solution that a ``.slnf`` filters, else ``path`` itself; raises ``PathRefused``."""
    return _filter_of(path)[0] if path.suffix.lower() == ".slnf" else path


def _unreadable(path: Path, reason: str) -> PathRefused:
    return PathRefused("WorkspaceLoadFailed", f"{path} could not be read as a solution: {reason}.")


def _decoded(path: Path) -> str:
    """Text of a solution file: by its BOM, else UTF-8, else the legacy code page of old Visual Studios."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _project(base: Path, written: str, name: str, kind: str) -> SolutionProject:
    """``written`` is the path as the solution spells it: either slash, relative to ``base`` or absolute."""
    path = Path(os.path.normpath(base / written.replace("\\", "/")))
    is_csharp = path.suffix.lower() == PROJECT_SUFFIX
    return SolutionProject(
        path, name or path.stem, "csharp" if is_csharp else "other", kind or path.suffix.lower()
    )


def _read_sln(path: Path) -> Iterator[SolutionProject]:
    lines = _decoded(path).splitlines()
    if not any("Microsoft Visual Studio Solution File, Format Version" in line for line in lines[:5]):
        raise _unreadable(path, "it has no solution file header")
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if not stripped.startswith("Project("):
            continue
        match = _PROJECT_LINE.match(stripped)
        if match is None:
            raise _unreadable(path, f"line {number} starts a project and has not its form")
        kind, name, written, _ = match.groups()
        if kind.upper() != _SOLUTION_FOLDER:
            yield _project(path.parent, written, name, kind.upper())


def _read_slnx(path: Path) -> Iterator[SolutionProject]:
    try:
        root = read_xml(path)
    except MalformedXml as error:
        raise _unreadable(path, error.reason) from error
    if local_name(root) != "Solution":
        raise _unreadable(path, f"its root element is <{local_name(root)[:40]}>, not <Solution>")
    for element in root.iter():
        if local_name(element) == "Project":
            written = element.get("Path")
            if not written:
                raise _unreadable(path, "it has a <Project> without a Path")
            yield _project(path.parent, written, element.get("DisplayName") or "", element.get("Type") or "")


def _filter_of(path: Path) -> tuple[Path, tuple[str, ...]]:
    """The solution of a filter, and the project paths it keeps, as written."""
    try:
        value = parse_jsonc(_decoded(path))
    except ValueError as error:
        raise _unreadable(path, f"it is not JSON ({error})") from error
    solution = value.get("solution") if isinstance(value, dict) else None
    written = solution.get("path") if isinstance(solution, dict) else None
    if not isinstance(solution, dict) or not isinstance(written, str) or not written:
        raise _unreadable(path, "it has no solution.path")
    kept = solution.get("projects", [])
    if not isinstance(kept, list):
        raise _unreadable(path, "its solution.projects is no list")
    names = tuple(name for name in kept if isinstance(name, str))
    if len(names) != len(kept):
        raise _unreadable(path, "its solution.projects holds something that is no path")
    target = Path(os.path.normpath(path.parent / written.replace("\\", "/")))
    if target.suffix.lower() not in (".sln", ".slnx"):
        raise _unreadable(path, f"it filters {target}, which is no .sln or .slnx")
    if not target.is_file():
        raise _unreadable(path, f"the solution it filters, {target}, does not exist")
    return target, names


def _read_slnf(path: Path) -> Iterator[SolutionProject]:
    solution, names = _filter_of(path)
    known = {project.path: project for project in read_projects(solution)}
    for name in names:
        wanted = _project(solution.parent, name, "", "").path
        if wanted not in known:
            # The build tools refuse such a filter as well, so no server would load it.
            raise _unreadable(path, f"it names {name}, which {solution.name} does not have")
        yield known[wanted]
