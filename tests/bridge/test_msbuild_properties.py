"""The properties a caller may set: which are taken, which are refused, and how they are carried."""

from pathlib import Path

import pytest

from bridge.msbuild_properties import MsBuildProperties, MsBuildPropertiesInvalid


def test_nothing_given_carries_nothing() -> None:
    assert MsBuildProperties.check({}).environment() == {}
    assert MsBuildProperties.check({"configuration": None}) == MsBuildProperties()


def test_each_property_becomes_the_variable_that_msbuild_reads(tmp_path: Path) -> None:
    given = {
        "artifactsPath": str(tmp_path),
        "configuration": "Release",
        "platform": "x64",
        "targetFramework": "net10.0-windows",
        "runtimeIdentifier": "linux-x64",
    }
    assert MsBuildProperties.check(given).environment() == {
        "ArtifactsPath": str(tmp_path.resolve()),
        "Configuration": "Release",
        "Platform": "x64",
        "TargetFramework": "net10.0-windows",
        "RuntimeIdentifier": "linux-x64",
    }


@pytest.mark.parametrize("spelling", ["Any CPU", "AnyCPU", "any cpu"])
def test_any_cpu_is_spelt_as_projects_spell_it(spelling: str) -> None:
    assert MsBuildProperties.check({"platform": spelling}).platform == "AnyCPU"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("configuration", "", "empty"),
        ("configuration", "  ", "empty"),
        ("configuration", " Release", "expected"),
        ("configuration", "Debug;Platform=x", "expected"),
        ("configuration", "$(Evil)", "expected"),
        ("configuration", "../up", "expected"),
        ("configuration", "a\nb", "expected"),
        ("configuration", "a\0b", "expected"),
        ("targetFramework", "net10.0;net8.0", "net10.0"),
        ("targetFramework", "10", "net10.0"),
        ("runtimeIdentifier", "linux x64", "linux-x64"),
        ("artifactsPath", "relative", "not absolute"),
        ("artifactsPath", "/no/such/directory", "no existing directory"),
        ("artifactsPath", "/tmp\0", "character"),
        ("artifactsPath", "/tmp/$(x)", "character"),
        ("configuratoin", "Release", "known are artifactsPath, configuration"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_the_reason(name: str, value: str, words: str) -> None:
    with pytest.raises(MsBuildPropertiesInvalid, match=words) as caught:
        MsBuildProperties.check({name: value})
    assert caught.value.code == "WorkspaceMsBuildPropertiesInvalid"


def test_an_artifacts_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(MsBuildPropertiesInvalid, match="no existing directory"):
        MsBuildProperties.check({"artifactsPath": str(file)})
