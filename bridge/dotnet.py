"""The .NET SDK of this machine: the environment its processes get, and whether it is the one that is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bridge.children import ChildFailed, run
from bridge.jsonc import parse_jsonc
from bridge.msbuild_properties import MsBuildProperties
from lsp_client.search_path import absolute_path

SDK_QUESTION_WAIT = 30.0
"""Seconds for ``dotnet --list-sdks`` and ``--version``: milliseconds when warm, seconds on a cold disk."""

_FIXED: Mapping[str, str] = {
    # Build nodes would outlive their parent by 15 minutes, and the MSBuild server by as much.
    "MSBUILDDISABLENODEREUSE": "1",
    "DOTNET_CLI_USE_MSBUILD_SERVER": "0",
    # We read what the tools say: English, without banners and colours.
    "DOTNET_CLI_UI_LANGUAGE": "en-US",
    "VSLANG": "1033",
    "DOTNET_NOLOGO": "1",
    "MSBUILDTERMINALLOGGER": "off",
    "DOTNET_CLI_WORKLOAD_UPDATE_NOTIFY_DISABLE": "true",
    # A tool that looks at code has no business with telemetry, certificates or the user's PATH.
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "DOTNET_SKIP_FIRST_TIME_EXPERIENCE": "1",
    "DOTNET_GENERATE_ASPNET_CERTIFICATE": "false",
    "DOTNET_ADD_GLOBAL_TOOLS_TO_PATH": "false",
}
_INHERITED_BY_MISTAKE = ("MSBuildSDKsPath", "MSBuildExtensionsPath", "MSBUILD_EXE_PATH", "DOTNET_HOST_PATH")
"""Set by the ``dotnet`` that started us, if one did; they would bind its SDK instead of the one chosen here."""


class SdkMissing(Exception):
    """No usable SDK.  ``code`` is ``DotnetSdkNotFound``; ``message`` says what is wanted and what is there."""

    code = "DotnetSdkNotFound"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Sdk:
    """One installed SDK: its version, for example ``10.0.401``, and the folder that holds it."""

    version: str
    directory: Path


@dataclass(frozen=True, slots=True)
class SdkPin:
    """What a ``global.json`` asks for; ``None`` where it says nothing."""

    path: Path
    version: str | None
    roll_forward: str | None


def child_environment(
    environ: Mapping[str, str],
    *,
    dotnet: Path | None = None,
    properties: MsBuildProperties | None = None,
) -> dict[str, str]:
    """The environment for a language server or SDK tool: that of ``environ``, made quiet, English and short-lived.

    ``dotnet`` (the ``dotnet`` executable) is put first on the PATH and becomes ``DOTNET_ROOT``: servers look for it
    by either.  ``properties`` replace every spelling of the same variable that was there, since MSBuild does not
    tell upper from lower case.
    """
    environment = {name: value for name, value in environ.items() if name not in _INHERITED_BY_MISTAKE}
    environment.update(_FIXED)
    if dotnet is not None:
        home = dotnet.resolve().parent
        rest = [part for part in absolute_path(environment).split(os.pathsep) if part and part != str(home)]
        environment["PATH"] = os.pathsep.join([str(home), *rest])
        environment["DOTNET_ROOT"] = str(home)
    chosen = properties.environment() if properties is not None else {}
    lowered = {name.lower() for name in chosen}
    for name in [name for name in environment if name.lower() in lowered]:
        del environment[name]
    return environment | chosen


async def installed_sdks(dotnet: Path, environment: Mapping[str, str], directory: Path) -> tuple[Sdk, ...]:
    """The SDKs that ``dotnet --list-sdks`` names; none for a runtime-only installation.

    Raises ``SdkMissing`` when ``dotnet`` cannot be run at all.
    """
    try:
        answer = await run(
            [dotnet, "--list-sdks"], cwd=directory, environment=environment, seconds=SDK_QUESTION_WAIT
        )
    except ChildFailed as failure:
        raise SdkMissing(f"{dotnet} could not be asked for its SDKs: {failure.message}") from failure
    if answer.returncode != 0:
        raise SdkMissing(f"{dotnet} could not be asked for its SDKs: {answer.output_tail[-500:]}")
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    found = (re.fullmatch(r"(\S+) \[(.+)\]", line.strip()) for line in lines)
    return tuple(Sdk(match[1], Path(match[2])) for match in found if match)


def find_global_json(directory: Path) -> Path | None:
    """The ``global.json`` that governs ``directory``: its own, else that of the nearest parent."""
    for folder in (directory, *directory.parents):
        path = folder / "global.json"
        if path.is_file():
            return path
    return None


def read_pin(global_json: Path) -> SdkPin:
    """What the file asks for; raises ``SdkMissing`` when it cannot be read, as ``dotnet`` then takes no SDK for sure."""
    try:
        value = parse_jsonc(global_json.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise SdkMissing(f"{global_json} could not be read: {error}") from error
    sdk = value.get("sdk") if isinstance(value, dict) else None
    if not isinstance(sdk, dict):
        return SdkPin(global_json, None, None)
    version, roll_forward = sdk.get("version"), sdk.get("rollForward")
    return SdkPin(
        global_json,
        version if isinstance(version, str) else None,
        roll_forward if isinstance(roll_forward, str) else None,
    )


async def check_sdk(dotnet: Path | None, environment: Mapping[str, str], directory: Path) -> str:
    """The version of the SDK that ``dotnet`` takes in ``directory``.

    A pin in ``global.json`` is decided by ``dotnet`` itself, whose roll-forward rules grow with each release; the
    message of the refusal then names the version wanted and those found.  Raises ``SdkMissing``.
    """
    if dotnet is None:
        raise SdkMissing("No .NET SDK was found: there is no dotnet command. Install the .NET SDK.")
    sdks = await installed_sdks(dotnet, environment, directory)
    if not sdks:
        raise SdkMissing(f"{dotnet} has no SDK installed, only runtimes. Install the .NET SDK.")
    global_json = find_global_json(directory)
    if global_json is None:
        return sdks[-1].version
    pin = read_pin(global_json)
    try:
        answer = await run(
            [dotnet, "--version"], cwd=directory, environment=environment, seconds=SDK_QUESTION_WAIT
        )
    except ChildFailed as failure:
        raise SdkMissing(f"{dotnet} could not be asked for its version: {failure.message}") from failure
    if answer.returncode == 0:
        return answer.stdout.decode("utf-8", "replace").strip()
    wanted = f"SDK {pin.version}" if pin.version else "an SDK that is not installed"
    rule = f" (rollForward {pin.roll_forward})" if pin.roll_forward else ""
    found = ", ".join(sdk.version for sdk in sdks)
    raise SdkMissing(f"{global_json} asks for {wanted}{rule}; installed: {found}.")
