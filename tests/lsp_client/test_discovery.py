"""Servers are found where people have them, the newest first, and never by the names of the test toolchain."""

import os
from pathlib import Path

import pytest

from lsp_client.discovery import (
    discover,
    find_dotnet,
    install_hint,
    kind_of,
    version_key,
)
from lsp_client.failures import DotnetSdkNotFound, LanguageServerNotFound
from lsp_client.search_path import absolute_path

ROSLYN_DLL = "Microsoft.CodeAnalysis.LanguageServer.dll"
CSHARP_LS_DLL = "CSharpLanguageServer.dll"
EMBEDDED = ("python", "-m", "embedded")


class Machine:
    """A home directory and an environment of their own."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.home.mkdir()
        self.bin.mkdir()
        self.environ = {"PATH": str(self.bin)}

    def file(self, *parts: str, executable: bool = False) -> Path:
        path = self.home.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        if executable:
            path.chmod(0o755)
        return path

    def on_path(self, name: str) -> Path:
        path = self.bin / name
        path.touch()
        path.chmod(0o755)
        return path

    def roslyn_tool(self, version: str) -> Path:
        store = (".dotnet", "tools", ".store", "roslyn-language-server", version)
        package = ("roslyn-language-server.linux-x64", version, "tools", "net10.0", "linux-x64")
        return self.file(*store, *package, ROSLYN_DLL)

    def csharp_ls_tool(self, version: str) -> Path:
        store = (".dotnet", "tools", ".store", "csharp-ls", version)
        return self.file(*store, "csharp-ls", version, "tools", "net10.0", "any", CSHARP_LS_DLL)

    def extension(self, version: str, folder: str = ".vscode") -> Path:
        return self.file(
            folder, "extensions", f"ms-dotnettools.csharp-{version}-linux-x64", ".roslyn", ROSLYN_DLL
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def dotnet(machine: Machine) -> Path:
    return machine.on_path("dotnet")


def found(machine: Machine, kind: str = "auto", path: Path | None = None) -> tuple[str, tuple[str, ...]]:
    launch = discover(kind, path, machine.environ, machine.home, embedded_command=EMBEDDED)
    return launch.dialect.name, launch.command


def test_nothing_found_leaves_the_embedded_server(machine: Machine) -> None:
    assert found(machine) == ("embedded", EMBEDDED)


def test_without_an_embedded_server_the_places_and_the_remedy_are_told(machine: Machine) -> None:
    with pytest.raises(
        LanguageServerNotFound, match="dotnet tool install --global roslyn-language-server --prerelease"
    ) as caught:
        discover("auto", None, machine.environ, machine.home)
    assert any("PATH" in place for place in caught.value.tried)
    assert any("VS Code" in place for place in caught.value.tried)


@pytest.mark.parametrize("kind", ["roslyn", "csharp-ls"])
def test_a_wanted_kind_is_never_replaced_by_another(machine: Machine, dotnet: Path, kind: str) -> None:
    other = machine.csharp_ls_tool("0.28.0") if kind == "roslyn" else machine.roslyn_tool("5.12.0")
    assert other.exists()
    with pytest.raises(LanguageServerNotFound):
        found(machine, kind)


def test_roslyn_wins_over_csharp_ls_and_that_over_the_embedded_one(machine: Machine, dotnet: Path) -> None:
    csharp_ls = machine.csharp_ls_tool("0.28.0")
    assert found(machine) == ("csharp-ls", (str(dotnet), str(csharp_ls)))
    roslyn = machine.roslyn_tool("5.12.0-1.26426.8")
    assert found(machine) == ("roslyn", (str(dotnet), str(roslyn)))
    assert found(machine, "embedded") == ("embedded", EMBEDDED)


def test_of_several_versions_the_newest_is_taken_by_number(machine: Machine, dotnet: Path) -> None:
    machine.roslyn_tool("5.9.0-1.26279.7")
    newest = machine.roslyn_tool("5.12.0-1.26426.8")
    machine.roslyn_tool("5.10.0-1.26359.5")
    assert found(machine)[1][1] == str(newest)
    launch = discover("roslyn", None, machine.environ, machine.home)
    assert (launch.origin, launch.version_hint) == (".NET tool", "5.12.0-1.26426.8")


@pytest.mark.parametrize("folder", [".vscode", ".vscode-insiders", ".vscode-server", ".cursor"])
def test_the_newest_extension_of_any_editor_is_found(machine: Machine, dotnet: Path, folder: str) -> None:
    machine.extension("2.90.60")
    newest = machine.extension("2.100.11", folder)
    assert found(machine) == ("roslyn", (str(dotnet), str(newest)))


def test_an_extension_with_only_the_program_is_run_directly(machine: Machine) -> None:
    program = machine.file(
        ".vscode",
        "extensions",
        "ms-dotnettools.csharp-2.80.1-linux-x64",
        ".roslyn",
        "Microsoft.CodeAnalysis.LanguageServer",
    )
    assert found(machine) == ("roslyn", (str(program),))


def test_masons_package_and_its_command_are_found(machine: Machine, dotnet: Path) -> None:
    shim = machine.file(".local", "share", "nvim", "mason", "bin", "csharp-ls", executable=True)
    assert found(machine) == ("csharp-ls", (str(shim),))
    dll = machine.file(".local", "share", "nvim", "mason", "packages", "roslyn", "libexec", ROSLYN_DLL)
    assert found(machine) == ("roslyn", (str(dotnet), str(dll)))


def test_the_environment_variable_of_vs_code_wins_over_installed_ones(machine: Machine, dotnet: Path) -> None:
    machine.roslyn_tool("99.0.0")
    named = machine.file("own", ROSLYN_DLL)
    machine.environ["DOTNET_ROSLYN_SERVER_PATH"] = str(named)
    assert found(machine) == ("roslyn", (str(dotnet), str(named)))


def test_the_path_is_the_last_place(machine: Machine) -> None:
    command = machine.on_path("roslyn-language-server")
    assert found(machine) == ("roslyn", (str(command),))
    assert found(machine, "roslyn")[1] == (str(command),)


def test_the_toolchains_variables_are_not_discovered(machine: Machine, dotnet: Path) -> None:
    machine.environ |= {
        "ROSLYN_LS": str(machine.file("t", ROSLYN_DLL)),
        "CSHARP_LS": str(machine.file("t", CSHARP_LS_DLL)),
    }
    assert found(machine)[0] == "embedded"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (ROSLYN_DLL, "roslyn"),
        ("Microsoft.CodeAnalysis.LanguageServer", "roslyn"),
        ("roslyn-language-server", "roslyn"),
        ("roslyn-language-server.exe", "roslyn"),
        (CSHARP_LS_DLL, "csharp-ls"),
        ("csharp-ls", "csharp-ls"),
    ],
)
def test_the_name_of_an_explicit_server_tells_its_kind(
    machine: Machine, dotnet: Path, name: str, kind: str
) -> None:
    path = machine.file("servers", name, executable=True)
    dialect, command = found(machine, "auto", path)
    assert dialect == kind
    assert command == ((str(dotnet), str(path)) if name.endswith(".dll") else (str(path),))


def test_an_explicit_server_of_an_unknown_name_needs_its_kind(machine: Machine) -> None:
    path = machine.file("server", executable=True)
    with pytest.raises(LanguageServerNotFound, match="say which one it is"):
        found(machine, "auto", path)
    assert found(machine, "csharp-ls", path) == ("csharp-ls", (str(path),))


def test_an_explicit_server_that_is_not_there_is_no_reason_to_take_another(
    machine: Machine, dotnet: Path
) -> None:
    machine.roslyn_tool("5.12.0")
    with pytest.raises(LanguageServerNotFound, match="no file"):
        found(machine, "auto", machine.home / ROSLYN_DLL)


def test_a_dll_without_dotnet_says_that_an_sdk_is_missing(machine: Machine) -> None:
    path = machine.roslyn_tool("5.12.0")
    with pytest.raises(DotnetSdkNotFound, match="SDK"):
        found(machine, "roslyn", path)
    with pytest.raises(DotnetSdkNotFound):
        found(machine, "roslyn")
    assert found(machine, "auto")[0] == "embedded"


def test_dotnet_is_that_of_dotnet_root_before_that_of_the_path(machine: Machine, dotnet: Path) -> None:
    assert find_dotnet(machine.environ) == dotnet
    own = machine.file("dotnet10", "dotnet", executable=True)
    assert find_dotnet({**machine.environ, "DOTNET_ROOT": str(own.parent)}) == own
    assert find_dotnet({**machine.environ, "DOTNET_ROOT": str(machine.home)}) == dotnet
    assert find_dotnet({"PATH": os.devnull}) is None


def test_a_program_in_the_current_directory_is_never_taken(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = machine.file("workspace", "dotnet", executable=True)
    machine.file("workspace", "roslyn-language-server", executable=True)
    monkeypatch.chdir(planted.parent)
    for path in (".", "", f".{os.pathsep}", "../workspace"):
        assert find_dotnet({"PATH": path}) is None
    assert absolute_path({"PATH": f".{os.pathsep}{os.pathsep}/usr/bin{os.pathsep}bin"}) == "/usr/bin"


def test_versions_are_sorted_by_their_numbers_with_releases_after_their_previews() -> None:
    versions = ["5.10.0", "5.9.0", "5.10.0-2.1", "5.10.0-10.1", "5.10.0-9.1", "", "12"]
    assert sorted(versions, key=version_key) == [
        "",
        "5.9.0",
        "5.10.0-2.1",
        "5.10.0-9.1",
        "5.10.0-10.1",
        "5.10.0",
        "12",
    ]


def test_the_hint_names_the_command_that_installs() -> None:
    assert "csharp-ls" in install_hint("csharp-ls")
    assert "roslyn-language-server --prerelease" in install_hint("auto")
    assert kind_of(Path("clangd")) is None
