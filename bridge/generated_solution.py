"""A solution made for projects that have none, or not the one that is needed.

For servers that open solutions only, and for a restore of some projects of a solution.  It is of the old format, with
absolute paths: every SDK and csharp-ls reads that, ``.slnx`` only the newer ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from bridge.solutions import PathRefused
from bridge.stable_ids import stable_guid

_CSHARP = "9A19103F-16F7-4668-BE54-9A1E7A4F7556"
"""The type of a C# project in the SDK style."""


def write_generated_solution(
    csproj: Path,
    directory: Path,
    references: Sequence[Path] = (),
    *,
    stands_for: Path | None = None,
    configurations: Sequence[str] = ("Debug|Any CPU", "Release|Any CPU"),
) -> Path:
    """Write a ``.sln`` into ``directory`` that holds ``csproj`` and ``references``, and give its path.

    ``references`` are the project's transitive project references.  The name is made from the path it stands for (by
    default ``csproj``; a solution filter names its own), the content from the arguments, so writing it again changes
    nothing.

    Raises ``PathRefused`` (``WorkspaceNotSupported``) for a path that the format cannot hold, and ``OSError``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    text = _solution_text(list(dict.fromkeys((csproj, *references))), configurations)
    origin = stands_for or csproj
    target = directory / f"{origin.stem}.{sha256(os.fsencode(origin)).hexdigest()[:12]}.sln"
    data = b"\xef\xbb\xbf" + text.encode("utf-8")
    if not (target.is_file() and target.read_bytes() == data):
        temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        temporary.write_bytes(data)
        temporary.replace(target)
    return target


def _solution_text(projects: Sequence[Path], configurations: Sequence[str]) -> str:
    lines = ["", "Microsoft Visual Studio Solution File, Format Version 12.00", "# Visual Studio Version 17"]
    for project in projects:
        if any(mark in str(project) for mark in '"\r\n') or not str(project).isprintable():
            raise PathRefused("WorkspaceNotSupported", f"A solution cannot hold the path {str(project)!r}.")
        lines.append(f'Project("{{{_CSHARP}}}") = "{project.stem}", "{project}", "{_guid_of(project)}"')
        lines.append("EndProject")
    # Without configurations the build tools find no project to restore in it.
    lines += ["Global", "\tGlobalSection(SolutionConfigurationPlatforms) = preSolution"]
    lines += [f"\t\t{name} = {name}" for name in configurations]
    lines += ["\tEndGlobalSection", "\tGlobalSection(ProjectConfigurationPlatforms) = postSolution"]
    for project in projects:
        for name in configurations:
            lines += [f"\t\t{_guid_of(project)}.{name}.{key} = {name}" for key in ("ActiveCfg", "Build.0")]
    lines += ["\tEndGlobalSection", "EndGlobal", ""]
    return "\r\n".join(lines)


def _guid_of(project: Path) -> str:
    return "{" + stable_guid(str(project)).upper() + "}"
