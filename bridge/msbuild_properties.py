"""The MSBuild properties a caller may set for one workspace, and how they reach its processes.

MSBuild reads environment variables as properties, weaker than what a project file sets.  That is the only way in:
no language server takes properties in its protocol.  They are put into the environment of that workspace's own
child processes, never into ours.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

INVALID = "WorkspaceMsBuildPropertiesInvalid"

_NAMES: Mapping[str, str] = {
    "artifactsPath": "ArtifactsPath",
    "configuration": "Configuration",
    "platform": "Platform",
    "targetFramework": "TargetFramework",
    "runtimeIdentifier": "RuntimeIdentifier",
}
"""The caller's names and MSBuild's."""

_SHAPES: Mapping[str, tuple[re.Pattern[str], str]] = {
    "configuration": (re.compile(r"[\w.\- ]{1,100}"), "letters, digits, '.', '-', '_' and spaces"),
    "platform": (re.compile(r"[\w.\- ]{1,100}"), "letters, digits, '.', '-', '_' and spaces"),
    "targetFramework": (
        re.compile(r"[A-Za-z][A-Za-z0-9.\-]{1,60}"),
        "a framework's short name such as net10.0",
    ),
    "runtimeIdentifier": (
        re.compile(r"[A-Za-z][A-Za-z0-9.\-_]{1,60}"),
        "a runtime identifier such as linux-x64",
    ),
}
"""What a value may look like: these become parts of output paths, and ``$(...)`` or ``;`` mean more to MSBuild."""


class MsBuildPropertiesInvalid(Exception):
    """A property of the caller cannot be used.  ``code`` is ``WorkspaceMsBuildPropertiesInvalid``."""

    code = INVALID

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class MsBuildProperties:
    """Checked properties; ``None`` leaves what the projects say."""

    artifacts_path: Path | None = None
    """An existing absolute directory that takes the place of every ``bin`` and ``obj``."""
    configuration: str | None = None
    platform: str | None = None
    target_framework: str | None = None
    runtime_identifier: str | None = None

    @classmethod
    def check(cls, given: Mapping[str, str | None]) -> MsBuildProperties:
        """From the caller's names (``artifactsPath``, ``configuration``, ``platform``, ``targetFramework``,
        ``runtimeIdentifier``); a name with ``None`` counts as not given.

        Raises ``MsBuildPropertiesInvalid`` for an unknown name, an empty value, a value of the wrong shape, and an
        artifacts path that is no existing absolute directory.
        """
        values = {name: value for name, value in given.items() if value is not None}
        for name, value in values.items():
            _check_one(name, value)
        artifacts = values.get("artifactsPath")
        platform = values.get("platform")
        if platform is not None and platform.replace(" ", "").lower() == "anycpu":
            # Solutions spell it with a space, projects without: projects are what is evaluated.
            platform = "AnyCPU"
        return cls(
            artifacts_path=None if artifacts is None else Path(artifacts).resolve(),
            configuration=values.get("configuration"),
            platform=platform,
            target_framework=values.get("targetFramework"),
            runtime_identifier=values.get("runtimeIdentifier"),
        )

    def environment(self) -> dict[str, str]:
        """The environment variables that carry the properties; only those that are set."""
        values = (getattr(self, field.name) for field in fields(self))
        return {
            name: str(value) for name, value in zip(_NAMES.values(), values, strict=True) if value is not None
        }


def _check_one(name: str, value: str) -> None:
    if name not in _NAMES:
        raise MsBuildPropertiesInvalid(
            f"The MSBuild property {name[:80]!r} cannot be set; known are {', '.join(_NAMES)}."
        )
    if not value.strip():
        raise MsBuildPropertiesInvalid(f"The MSBuild property {name} is empty; leave it out instead.")
    if name == "artifactsPath":
        _check_artifacts_path(value)
        return
    shape, expected = _SHAPES[name]
    if value != value.strip() or not shape.fullmatch(value):
        raise MsBuildPropertiesInvalid(f"The MSBuild property {name} is {value[:80]!r}; expected {expected}.")


def _check_artifacts_path(value: str) -> None:
    path = Path(value)
    if "\0" in value or ";" in value or "$(" in value or "%" in value:
        raise MsBuildPropertiesInvalid(
            "The MSBuild property artifactsPath holds a character MSBuild would read."
        )
    if not path.is_absolute():
        raise MsBuildPropertiesInvalid(
            f"The MSBuild property artifactsPath is {value[:200]!r}, which is not absolute."
        )
    if not path.is_dir():
        raise MsBuildPropertiesInvalid(
            f"The MSBuild property artifactsPath is {value[:200]!r}, which is no existing directory."
        )
