"""Which projects a solution names and which files a project holds, as far as that can be told without MSBuild.

A project holds the ``.cs`` files below its folder, without ``bin``, ``obj``, hidden folders and folders of other
projects: the SDK's default globs. What a project file adds or removes on top of that is not looked at, and the load
says so.
"""

import json
import os.path
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

_CSHARP = ".csproj"
_SLN_PROJECT = re.compile(r'^\s*Project\("[^"]*"\)\s*=\s*"[^"]*"\s*,\s*"([^"]+)"', re.MULTILINE)
_OUTPUT_FOLDERS = {"bin", "obj"}

# The first C# version of target frameworks that are older than C# 10's (.NET 6).
_OLD_FRAMEWORK = re.compile(r"^(netstandard\d|netcoreapp\d|net5\.0|net[1-4]\d{1,2}$)")
_OLD_FRAMEWORK_VERSION = 9.0
_NEW_FRAMEWORK = re.compile(r"^net(\d+)\.\d")
_NEW_FRAMEWORK_VERSION = 10.0


class UnreadableError(Exception):
    """A solution or project file that is not there or not in its format; the text says why."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project that was opened; ``folder`` is where its files are."""

    path: Path
    language_version: float | None

    @property
    def folder(self) -> Path:
        """The folder of the project file."""
        return self.path.parent


def read_solution(path: Path) -> tuple[Path, ...]:
    """The C# projects that a ``.sln``, ``.slnx`` or ``.slnf`` names, in its order. Raises UnreadableError."""
    text = _read(path)
    match path.suffix.lower():
        case ".sln":
            names = _SLN_PROJECT.findall(text)
        case ".slnx":
            names = [name for project in _xml(path, text).iter("Project") if (name := project.get("Path"))]
        case ".slnf":
            return _read_filter(path, text)
        case other:
            raise UnreadableError(f"'{other}' is no solution file")
    return _projects_at(path.parent, names)


def read_project(path: Path) -> Project:
    """A project file, read for what syntax needs. Raises UnreadableError."""
    root = _xml(path, _read(path))
    shared = _shared_properties(path.parent)
    return Project(path, _language_version([root] if shared is None else [root, shared]))


def documents_of(project: Project, all_projects: tuple[Project, ...]) -> Iterator[Path]:
    """The source files of a project, in a fixed order."""
    nested = {other.folder for other in all_projects if other.folder != project.folder}
    yield from _sources_below(project.folder, nested, is_project_folder=True)


def owner_of(path: Path, projects: tuple[Project, ...]) -> Project | None:
    """The project with the nearest folder above ``path``; None for a file outside all projects, or in its outputs."""
    owners = [project for project in projects if path.is_relative_to(project.folder)]
    owner = max(owners, key=lambda project: len(project.folder.parts), default=None)
    if owner is None:
        return None
    folders = path.relative_to(owner.folder).parts[:-1]
    is_output = bool(folders) and folders[0] in _OUTPUT_FOLDERS
    return None if is_output or any(folder.startswith(".") for folder in folders) else owner


def _sources_below(folder: Path, nested: set[Path], *, is_project_folder: bool) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError:
        return  # a folder that cannot be read holds nothing for us
    if not is_project_folder and any(entry.suffix == _CSHARP for entry in entries):
        return
    for entry in entries:
        if entry.is_dir():
            is_output = is_project_folder and entry.name in _OUTPUT_FOLDERS
            if (
                not is_output
                and not entry.name.startswith(".")
                and not entry.is_symlink()
                and entry not in nested
            ):
                yield from _sources_below(entry, nested, is_project_folder=False)
        elif entry.suffix.lower() == ".cs":
            yield entry


def _read_filter(path: Path, text: str) -> tuple[Path, ...]:
    try:
        solution = json.loads(text)["solution"]
        base = path.parent / _native(str(solution["path"]))
        names = [str(name) for name in solution["projects"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"the solution filter cannot be read: {error}") from error
    return _projects_at(base.parent, names)


def _projects_at(folder: Path, names: list[str]) -> tuple[Path, ...]:
    paths = [Path(_normal(folder / _native(name))) for name in names]
    return tuple(path for path in paths if path.suffix.lower() == _CSHARP)


def _native(name: str) -> str:
    return name.replace("\\", "/")


def _normal(path: Path) -> str:
    return os.path.normpath(path)  # pathlib cannot take ".." out without asking the disk


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(str(error)) from error


def _xml(path: Path, text: str) -> ElementTree.Element:
    try:
        # The user's own project files; no entity of theirs is resolved outside the document.
        return ElementTree.fromstring(text)  # noqa: S314
    except ElementTree.ParseError as error:
        raise UnreadableError(f"{path.name} is not well-formed XML: {error}") from error


def _shared_properties(folder: Path) -> ElementTree.Element | None:
    """The nearest ``Directory.Build.props`` from ``folder`` up: MSBuild imports that one by itself."""
    for parent in (folder, *folder.parents):
        path = parent / "Directory.Build.props"
        if path.is_file():
            try:
                return _xml(path, _read(path))
            except UnreadableError:
                return None
    return None


def _language_version(files: Sequence[ElementTree.Element]) -> float | None:
    """The oldest C# version that the files themselves are clear about, the project's own first; None when none is."""
    for root in files:
        if stated := _values(root, "LangVersion"):
            return min((_number(text) for text in stated), key=lambda version: version or float("inf"))
    for root in files:
        names = [*_values(root, "TargetFramework"), *_values(root, "TargetFrameworks")]
        versions = [_framework_version(name) for value in names for name in value.split(";")]
        if versions:
            return min((version for version in versions if version is not None), default=None)
    return None


def _values(root: ElementTree.Element, name: str) -> list[str]:
    """The non-empty values of a property, wherever in the file it is set."""
    return [text for node in root.iter() if _local(node) == name and (text := (node.text or "").strip())]


def _framework_version(name: str) -> float | None:
    if _OLD_FRAMEWORK.match(name):
        return _OLD_FRAMEWORK_VERSION
    return _NEW_FRAMEWORK_VERSION if _NEW_FRAMEWORK.match(name) else None


def _number(text: str) -> float | None:
    """``latest``, ``preview`` and the like are no numbers: None."""
    try:
        return float(text)
    except ValueError:
        return None


def _local(node: ElementTree.Element) -> str:
    return node.tag.rpartition("}")[2]
