"""The documents of a project without asking MSBuild: the SDK's default globs, as far as they can be read by eye.

Used where no .NET SDK is.  Known: every ``*.cs`` below the project's folder, without its ``bin`` and ``obj``, without dot
folders and without the folders of other projects; then ``Compile`` items of the project file itself with plain paths or
globs.  Not known, and said in ``notes``: conditions, properties, imports, ``Directory.Build.props``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.msbuild_xml import MalformedXml, local_name, read_xml

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

FILE_LIMIT = 200_000
"""Files looked at for one project: the largest known have 50,000; more is a folder that is no project."""


@dataclass(frozen=True, slots=True)
class GlobbedProject:
    """What can be seen of a project without evaluating it."""

    files: tuple[Path, ...]
    references: tuple[Path, ...]
    target_framework: str | None
    """When the file names exactly one in plain text."""
    directories: tuple[Path, ...]
    notes: tuple[str, ...]
    """What the file says that was not understood; empty when the answer is as good as MSBuild's."""


def glob_project(project: Path) -> GlobbedProject:
    """Read ``project`` by the default globs; raises ``MalformedXml``."""
    root = read_xml(project)
    folder = project.parent
    found, directories = _sources_below(folder)
    notes: dict[str, None] = {}
    if (
        _property(root, "EnableDefaultItems") == "false"
        or _property(root, "EnableDefaultCompileItems") == "false"
    ):
        found = []
    files = dict.fromkeys(found)
    for item in _items(root, "Compile"):
        for action in ("Include", "Remove"):  # an Update changes no more than metadata
            text = item.get(action)
            if text is None:
                continue
            if not _is_plain(item, root, text):
                notes[f'Compile {action}="{text[:120]}" depends on more than the file says'] = None
                continue
            for pattern in (part.strip() for part in text.split(";")):
                if not pattern:
                    continue
                if action == "Include":
                    excluded = _Matcher(folder, item.get("Exclude") or "")
                    files |= dict.fromkeys(p for p in _expand(folder, pattern) if not excluded(p))
                else:
                    removed = _Matcher(folder, pattern)
                    files = {path: None for path in files if not removed(path)}
    references = [
        Path(os.path.normpath(folder / part.strip().replace("\\", "/")))
        for item in _items(root, "ProjectReference")
        for part in (item.get("Include") or "").split(";")
        if part.strip() and "$(" not in part
    ]
    framework = _property(root, "TargetFramework")
    return GlobbedProject(
        files=tuple(files),
        references=tuple(dict.fromkeys(references)),
        target_framework=framework if framework and "$(" not in framework else None,
        directories=tuple(directories),
        notes=tuple(notes),
    )


def is_old_style(root: Element) -> bool:
    """Whether a project file is of the time before SDKs: it imports the C# targets itself and names no SDK."""
    if root.get("Sdk") or any(local_name(e) == "Sdk" or e.get("Sdk") for e in root.iter()):
        return False
    imports = [e.get("Project") or "" for e in root.iter() if local_name(e) == "Import"]
    return any("microsoft.csharp.targets" in text.lower() for text in imports)


def _items(root: Element, name: str) -> Iterable[Element]:
    return (
        item
        for group in root
        if local_name(group) == "ItemGroup"
        for item in group
        if local_name(item) == name
    )


def _property(root: Element, name: str) -> str | None:
    """The last plain value of a property; its letters as written, ``true`` and ``false`` in lower case."""
    values = [
        e.text.strip() for e in root.iter() if local_name(e) == name and e.text and not e.get("Condition")
    ]
    if not values:
        return None
    return values[-1].lower() if values[-1].lower() in ("true", "false") else values[-1]


def _is_plain(item: Element, root: Element, text: str) -> bool:
    if item.get("Condition") or any(
        mark in text + (item.get("Exclude") or "") for mark in ("$(", "@(", "%(")
    ):
        return False
    groups = (g for g in root if local_name(g) == "ItemGroup" and g.get("Condition"))
    return not any(item is child for group in groups for child in group)


def _sources_below(folder: Path) -> tuple[list[Path], list[Path]]:
    """The ``*.cs`` files the default glob takes, and the folders it looked into, both sorted by path."""
    files: list[Path] = []
    directories: list[Path] = []
    waiting = [folder]
    while waiting and len(files) < FILE_LIMIT:
        directory = waiting.pop()
        try:
            with os.scandir(directory) as scan:
                entries = list(scan)
        except OSError:
            continue
        if directory != folder and any(e.name.lower().endswith(".csproj") for e in entries):
            continue
        directories.append(directory)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                is_output = directory == folder and entry.name in ("bin", "obj")
                if not is_output and not entry.name.startswith("."):
                    waiting.append(Path(entry.path))
            elif entry.name.lower().endswith(".cs"):
                files.append(Path(entry.path))
    return sorted(files), sorted(directories)


def _expand(folder: Path, pattern: str) -> list[Path]:
    """The files an ``Include`` pattern means; a plain path counts whether or not the file exists, as in MSBuild."""
    whole = pattern.replace("\\", "/")
    if "*" not in whole and "?" not in whole:
        return [Path(os.path.normpath(folder / whole))]
    fixed: list[str] = []
    for part in whole.split("/"):
        if "*" in part or "?" in part:
            break
        fixed.append(part)
    base = Path(os.path.normpath(folder / "/".join(fixed))) if fixed != [""] else Path("/")
    matches = _Matcher(folder, pattern)
    found: list[Path] = []
    for directory, _, names in os.walk(base):
        found += [path for path in (Path(directory, name) for name in sorted(names)) if matches(path)]
        if len(found) > FILE_LIMIT:
            break
    return sorted(found)


class _Matcher:
    """Whether a path matches one of several MSBuild globs (``**``, ``*``, ``?``), relative to a folder."""

    def __init__(self, folder: Path, patterns: str) -> None:
        parts = [part.strip().replace("\\", "/") for part in patterns.split(";") if part.strip()]
        wholes = [os.path.normpath(folder / part) for part in parts]
        self._expressions = [re.compile(_expression(whole), re.IGNORECASE) for whole in wholes]

    def __call__(self, path: Path) -> bool:
        text = path.as_posix()
        return any(expression.fullmatch(text) for expression in self._expressions)


def _expression(glob: str) -> str:
    pieces = re.split(r"(/\*\*(?=/)|/\*\*$|\*|\?)", glob)
    meanings = {"*": "[^/]*", "?": "[^/]"}
    return "".join(
        "(?:/.*)?" if piece.startswith("/**") else meanings.get(piece, re.escape(piece))
        for piece in pieces
        if piece
    )


def describe_malformed(error: MalformedXml) -> str:
    """The sentence for a project file that could not be read."""
    return f"The project file could not be read: {error.reason}."
