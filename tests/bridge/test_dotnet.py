"""The SDK: the environment its processes get, what is installed, and whether a pin can be met."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from bridge.dotnet import SdkMissing, check_sdk, child_environment, installed_sdks, read_pin
from bridge.msbuild_properties import MsBuildProperties
from tests.bridge.scripted_dotnet import ScriptedDotnet

LIST = "8.0.100 [/usr/share/dotnet/sdk]\n10.0.401 [/usr/share/dotnet/sdk with space]\n"


@pytest.fixture
def scripted(tmp_path: Path) -> ScriptedDotnet:
    scripted = ScriptedDotnet(tmp_path / "sdk")
    scripted.answer("--list-sdks", LIST)
    return scripted


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "code" / "deep"
    folder.mkdir(parents=True)
    return folder


def test_the_environment_is_quiet_and_leaves_no_build_nodes() -> None:
    environment = child_environment({"HOME": "/h"})
    assert environment["HOME"] == "/h"
    assert environment["MSBUILDDISABLENODEREUSE"] == "1"
    assert environment["DOTNET_CLI_UI_LANGUAGE"] == "en-US"
    assert environment["DOTNET_CLI_TELEMETRY_OPTOUT"] == "1"


def test_what_another_dotnet_left_in_the_environment_is_not_passed_on() -> None:
    environment = child_environment({"MSBuildSDKsPath": "/old", "MSBUILD_EXE_PATH": "/old"})
    assert "/old" not in environment.values()


def test_the_chosen_dotnet_comes_first_and_once(tmp_path: Path) -> None:
    dotnet = tmp_path / "dotnet"
    dotnet.touch()
    environment = child_environment(
        {"PATH": f"/usr/bin:{tmp_path}:/bin", "DOTNET_ROOT": "/other"}, dotnet=dotnet
    )
    assert environment["PATH"] == f"{tmp_path}:/usr/bin:/bin"
    assert environment["DOTNET_ROOT"] == str(tmp_path)


def test_properties_replace_every_spelling_and_ours_stays_untouched() -> None:
    ours = {"CONFIGURATION": "Debug", "platform": "x86", "Other": "1"}
    properties = MsBuildProperties.check({"configuration": "Release"})
    environment = child_environment(ours, properties=properties)
    assert environment["Configuration"] == "Release"
    assert "CONFIGURATION" not in environment
    assert environment["platform"] == "x86"
    assert ours == {"CONFIGURATION": "Debug", "platform": "x86", "Other": "1"}


@pytest.mark.anyio
async def test_installed_sdks_are_listed_with_their_folders(scripted: ScriptedDotnet, folder: Path) -> None:
    sdks = await installed_sdks(scripted.path, {}, folder)
    assert [(sdk.version, str(sdk.directory)) for sdk in sdks] == [
        ("8.0.100", "/usr/share/dotnet/sdk"),
        ("10.0.401", "/usr/share/dotnet/sdk with space"),
    ]


@pytest.mark.anyio
async def test_without_a_pin_the_newest_sdk_is_taken(scripted: ScriptedDotnet, folder: Path) -> None:
    assert await check_sdk(scripted.path, {}, folder) == "10.0.401"


@pytest.mark.anyio
async def test_no_dotnet_is_said(folder: Path) -> None:
    with pytest.raises(SdkMissing, match="no dotnet command"):
        await check_sdk(None, {}, folder)
    with pytest.raises(SdkMissing, match="could not be asked"):
        await check_sdk(folder / "dotnet", {}, folder)


@pytest.mark.anyio
async def test_a_runtime_without_an_sdk_is_said(scripted: ScriptedDotnet, folder: Path) -> None:
    scripted.answer("--list-sdks", "")
    with pytest.raises(SdkMissing, match="only runtimes"):
        await check_sdk(scripted.path, {}, folder)


@pytest.mark.anyio
async def test_a_pin_that_is_met_gives_the_sdk_it_leads_to(scripted: ScriptedDotnet, folder: Path) -> None:
    (folder.parent / "global.json").write_text(
        '{"sdk": {"version": "8.0.0", "rollForward": "latestFeature"}}'
    )
    scripted.answer("--version", "8.0.100\n")
    assert await check_sdk(scripted.path, {}, folder) == "8.0.100"
    assert scripted.calls[-1][1] == str(folder)


@pytest.mark.anyio
async def test_a_pin_that_is_not_met_names_what_is_wanted_and_what_is_there(
    scripted: ScriptedDotnet, folder: Path
) -> None:
    pin = folder.parent / "global.json"
    pin.write_text('{ /* why */ "sdk": { "version": "9.0.999", "rollForward": "disable", } }')
    scripted.answer("--version", code=155)
    with pytest.raises(SdkMissing) as caught:
        await check_sdk(scripted.path, {}, folder)
    assert caught.value.code == "DotnetSdkNotFound"
    for words in (str(pin), "9.0.999", "disable", "8.0.100", "10.0.401"):
        assert words in caught.value.message


@pytest.mark.parametrize("text", ["{", "\x00"])
def test_a_global_json_that_cannot_be_read_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "global.json"
    path.write_text(text)
    with pytest.raises(SdkMissing, match="could not be read"):
        read_pin(path)


@pytest.mark.parametrize("text", ["{}", "[]", '{"sdk": 1}', '{"sdk": {"version": 8}}'])
def test_a_global_json_without_a_version_pins_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "global.json"
    path.write_text(text)
    assert read_pin(path).version is None


@pytest.mark.real
@pytest.mark.anyio
async def test_the_real_dotnet_judges_pins(dotnet: Path, toolchain: Mapping[str, str], folder: Path) -> None:
    environment = child_environment(toolchain, dotnet=dotnet)
    assert (await check_sdk(dotnet, environment, folder)).startswith("10.0.")
    (folder / "global.json").write_text('{"sdk": {"version": "10.0.100", "rollForward": "latestFeature"}}')
    assert (await check_sdk(dotnet, environment, folder)).startswith("10.0.")
    (folder / "global.json").write_text('{"sdk": {"version": "4.5.6"}}')
    with pytest.raises(SdkMissing, match=r"4\.5\.6.*installed: 10\.0\."):
        await check_sdk(dotnet, environment, folder)
