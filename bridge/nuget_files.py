"""The files a NuGet restore leaves for MSBuild, and which of them change nothing that we ask.

Every restore writes ``<project>.nuget.g.props`` and ``.nuget.g.targets``.  For most projects they only say where packages
lie; for some they import files of packages, and those may add anything.  Telling the two apart spares the evaluation
of a whole solution after its first restore.
"""

from __future__ import annotations

from pathlib import Path

from bridge.msbuild_xml import MalformedXml, local_name, parse_xml

ASSETS_NAME = "project.assets.json"
"""Read by build targets, never by an evaluation."""
RECORD_NAME = "project.nuget.cache"
"""NuGet's record of its last run, beside the assets: it says whether that succeeded."""

_SAYING_NOTHING = frozenset(
    {
        "Project",
        "PropertyGroup",
        "ItemGroup",
        "ImportGroup",
        "RestoreSuccess",
        "RestoreTool",
        "ProjectAssetsFile",
        "NuGetPackageRoot",
        "NuGetPackageFolders",
        "NuGetProjectStyle",
        "NuGetToolVersion",
        "SourceRoot",
    }
)
"""Elements that a restore writes for a project without packages: places and versions, all NuGet's own."""


def is_generated_by_restore(path: Path) -> bool:
    """Whether the name is that of a file which a restore writes for MSBuild."""
    return path.name.endswith((".nuget.g.props", ".nuget.g.targets"))


def is_inert(path: Path, content: bytes) -> bool:
    """Whether a file is a restore's and, by its ``content``, changes no evaluation: nothing imported, nothing added."""
    if not is_generated_by_restore(path):
        return False
    try:
        return all(local_name(element) in _SAYING_NOTHING for element in parse_xml(content).iter())
    except MalformedXml:
        return False
