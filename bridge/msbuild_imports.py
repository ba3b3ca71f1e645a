"""Which files take part in the evaluation of a project: its imports.

MSBuild does not list them in its JSON output (``MSBuildAllProjects`` names the newest one only), and printing the
flattened project costs as much as the evaluation itself.  So the imports are followed here, in the XML, as far as
they are plain: paths made of the properties that the evaluation has answered, of the well-known ``MSBuildThisFile...``
ones, and of ``GetPathOfFileAbove``.  When one is not plain, the scan says so (``complete`` is false) and the caller asks
MSBuild for the flattened project after all; ``imports_in_flattened`` reads it.

Files of the SDK and of restored packages are not followed: they do not change under a running bridge.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bridge.msbuild_xml import MalformedXml, local_name, read_xml

IMPORT_LIMIT = 500
"""Files followed for one project; more than that is a loop that normalising paths did not show."""

_PROPERTY = re.compile(r"\$\((\w+)\)")
_FILE_ABOVE = re.compile(
    r"""\$\(\[MSBuild\]::GetPathOfFileAbove\(\s*['"]?([^'",()]+)['"]?\s*(?:,\s*['"]?((?:\$\(\w+\)|[^'"()])*)['"]?\s*)?\)\)""",
    re.IGNORECASE,
)
_FLATTENED_PATH = re.compile(r"^(/.+|[A-Za-z]:\\.+)$")
CONVENTIONAL = ("Directory.Build.props", "Directory.Build.targets", "Directory.Packages.props")
"""Files that MSBuild takes from the project's folder, else from the nearest one above that has it."""


@dataclass(frozen=True, slots=True)
class ImportScan:
    """``present`` files took part; ``absent`` ones would, if they were made; without ``complete`` some are unknown."""

    present: tuple[Path, ...]
    absent: tuple[Path, ...]
    complete: bool


def scan_imports(project: Path, properties: Mapping[str, str]) -> ImportScan:
    """Follow the imports of ``project`` given the evaluated ``properties`` (by MSBuild's names)."""
    known = {name.lower(): value for name, value in properties.items()}
    folder = str(project.parent) + os.sep
    known |= {
        "msbuildprojectdirectory": str(project.parent),
        "msbuildprojectname": project.stem,
        "msbuildprojectfile": project.name,
        "msbuildprojectfullpath": str(project),
        "msbuildprojectextension": project.suffix,
    }
    waiting = [project]
    present: dict[Path, None] = {}
    absent: dict[Path, None] = {}
    complete = True
    for name in CONVENTIONAL:
        nearest, above = _nearest(project.parent, name)
        absent |= dict.fromkeys(above)
        waiting += [nearest] if nearest else []
    extensions = Path(known.get("msbuildprojectextensionspath") or folder + "obj")
    leaves = [project.with_name(project.name + ".user")]
    leaves += [extensions / f"{project.name}.nuget.g.{kind}" for kind in ("props", "targets")]
    for leaf in leaves:
        (present if leaf.is_file() else absent)[leaf] = None
    while waiting and len(present) < IMPORT_LIMIT:
        file = waiting.pop()
        if file in present:
            continue
        if not file.is_file():
            absent[file] = None
            continue
        present[file] = None
        for written in _imports_written_in(file):
            found = _resolve(written, file, known)
            if found is None:
                complete = False
            else:
                waiting += found
    return ImportScan(tuple(present), tuple(p for p in absent if p not in present), complete and not waiting)


def _nearest(folder: Path, name: str) -> tuple[Path | None, list[Path]]:
    """The nearest file of that name at or above ``folder``, and the nearer places where it could appear."""
    nearer: list[Path] = []
    for directory in (folder, *folder.parents):
        path = directory / name
        if path.is_file():
            return path, nearer
        nearer.append(path)
    return None, nearer


def _imports_written_in(file: Path) -> Iterator[str]:
    try:
        root = read_xml(file)
    except MalformedXml:
        return  # the evaluation has its own words for this
    for element in root.iter():
        if local_name(element) == "Import" and not element.get("Sdk"):
            written = element.get("Project")
            if written:
                yield written


def _resolve(written: str, file: Path, known: Mapping[str, str]) -> list[Path] | None:
    """The files an import means; none for the SDK's own; ``None`` when its path is not plain."""
    here = {
        "msbuildthisfiledirectory": str(file.parent) + os.sep,
        "msbuildthisfile": file.name,
        "msbuildthisfilename": file.stem,
        "msbuildthisfilefullpath": str(file),
        "msbuildthisfileextension": file.suffix,
    }

    def expand(text: str) -> str | None:
        missing = False

        def value_of(match: re.Match[str]) -> str:
            nonlocal missing
            value = here.get(match[1].lower(), known.get(match[1].lower()))
            missing = missing or value is None
            return value or ""

        expanded = _PROPERTY.sub(value_of, text)
        return None if missing else expanded

    above = _FILE_ABOVE.fullmatch(written.strip())
    if above is not None:
        start = expand(above[2] or "$(MSBuildThisFileDirectory)")
        if start is None:
            return None
        nearest, _ = _nearest(Path(os.path.normpath(file.parent / start)), above[1].strip())
        return [nearest] if nearest else []
    if re.match(
        r"\$\((MSBuild(Tools|Extensions|Bin|SDKs|Sdk)\w*|NuGetPackageRoot|Pkg\w+|VSToolsPath)\)",
        written,
        re.I,
    ):
        return []  # of the SDK, of Visual Studio or of a package
    path = expand(written)
    if path is None or "$(" in path or "@(" in path:
        return None
    whole = os.path.normpath(file.parent / path.replace("\\", "/"))
    if any(mark in whole for mark in "*?"):
        parent, pattern = os.path.split(whole)
        if any(mark in parent for mark in "*?"):
            return None
        return sorted(Path(parent).glob(pattern))
    return [Path(whole)]


def imports_in_flattened(text: str) -> tuple[Path, ...]:
    """The files that ``dotnet msbuild -preprocess`` names above each part of the flattened project.

    Each stands alone on its line, followed by a line of equals signs.
    """
    lines = text.splitlines()
    found: dict[Path, None] = {}
    for line, following in pairwise(lines):
        if following.startswith("====") and _FLATTENED_PATH.match(line):
            found[Path(line)] = None
    return tuple(found)
