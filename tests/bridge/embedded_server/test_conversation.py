"""The embedded server as a child process, spoken to as an editor would."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pytest_lsp import ClientServerConfig

from lsp_client.uris import path_to_uri
from tests.bridge.embedded_server.client import LOADED, DialectClient, Json
from transactions.text import Position, Range, SourceText, TextEdit

pytestmark = [
    pytest.mark.asyncio,
    # pygls asks asyncio what inspect knows better, and the newest Python says so
    pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction' is deprecated:DeprecationWarning"),
]

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "scripts/sample"
COMMAND = [sys.executable, "-m", "bridge.embedded_server", "--stdio", "--logLevel", "Warning"]
ANSWER_SECONDS = 20.0  # of a server that answers in milliseconds, on a machine that does much else

CAPABILITIES = types.ClientCapabilities(
    workspace=types.WorkspaceClientCapabilities(
        configuration=True,
        did_change_configuration=types.DidChangeConfigurationClientCapabilities(dynamic_registration=True),
        workspace_edit=types.WorkspaceEditClientCapabilities(
            document_changes=True, resource_operations=[types.ResourceOperationKind.Create]
        ),
    ),
    text_document=types.TextDocumentClientCapabilities(
        document_symbol=types.DocumentSymbolClientCapabilities(hierarchical_document_symbol_support=True)
    ),
    window=types.WindowClientCapabilities(work_done_progress=True),
)


CONFIG = ClientServerConfig(server_command=COMMAND, client_factory=DialectClient)


@pytest_lsp.fixture(config=CONFIG)  # type: ignore[untyped-decorator]  # pytest-lsp's
async def client(lsp_client: DialectClient) -> AsyncIterator[None]:
    result = await lsp_client.initialize_session(types.InitializeParams(capabilities=CAPABILITIES))
    assert result.server_info is not None
    assert "syntax only" in result.server_info.name
    yield
    await lsp_client.shutdown_session()


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    folder = tmp_path / "a copy ä"
    shutil.copytree(SAMPLE, folder)
    return folder


async def load(client: DialectClient, folder: Path) -> None:
    async with asyncio.timeout(ANSWER_SECONDS):
        waiting = asyncio.ensure_future(client.wait_for_notification(LOADED))
        client.tell("solution/open", solution=path_to_uri(folder / "Sample.slnx"))
        await waiting


def commit(edit: Json, folder: Path) -> dict[str, str]:
    """Write an edit to disk the way the bridge understands it; returns the changed texts by file name."""
    changed: dict[str, str] = {}
    paths = {path_to_uri(path): path for path in folder.rglob("*")}
    for change in edit["documentChanges"]:
        if change.get("kind") == "create":
            path = folder / "src/Greenhouse" / change["uri"].rpartition("/")[2]
            path.touch(exist_ok=False)
            paths[change["uri"]] = path
            continue
        path = paths[change["textDocument"]["uri"]]
        text = SourceText.decode(path.read_bytes())
        edits = [TextEdit(_range(item["range"]), item["newText"]) for item in change["edits"]]
        after = text.with_edits(edits)
        path.write_bytes(after.encode())
        changed[path.name] = after.text
    return changed


def _range(value: Json) -> Range:
    start, end = value["start"], value["end"]
    return Range(Position(start["line"], start["character"]), Position(end["line"], end["character"]))


async def refused(client: DialectClient, method: str, **params: Json) -> int:
    with pytest.raises(JsonRpcException) as caught:
        await client.ask(method, **params)
    return caught.value.code


async def test_a_solution_loads_with_progress_and_a_completion_without_params(
    client: DialectClient, sample: Path
) -> None:
    await load(client, sample)
    assert client.loads == [None]
    assert client.registered == [types.WORKSPACE_DID_CHANGE_CONFIGURATION]
    (reports,) = client.progress_reports.values()
    assert [type(report).__name__ for report in reports] == [
        "WorkDoneProgressBegin",
        "WorkDoneProgressReport",
        "WorkDoneProgressReport",
        "WorkDoneProgressEnd",
    ]
    loaded = [message.message for message in client.log_messages if "completed load" in message.message]
    assert len(loaded) == 2


async def test_a_solution_that_is_not_there_is_an_error_line_and_no_completion(
    client: DialectClient, tmp_path: Path
) -> None:
    async with asyncio.timeout(ANSWER_SECONDS):
        await load_nothing(client, tmp_path)
    errors = [message for message in client.log_messages if message.type == types.MessageType.Error]
    assert [message.message.partition(":")[0] for message in errors] == [
        f"[LanguageServerProjectLoader] Error while loading {tmp_path / 'No.slnx'}"
    ]
    assert client.loads == []


async def load_nothing(client: DialectClient, folder: Path) -> None:
    client.tell("solution/open", solution=path_to_uri(folder / "No.slnx"))
    # A question behind it is answered after it: the notification has been handled by then.
    while not any(message.type == types.MessageType.Error for message in client.log_messages):
        await client.ask(types.TEXT_DOCUMENT_FOLDING_RANGE, textDocument={"uri": "file:///nowhere.cs"})


async def test_a_project_that_is_not_there_is_an_error_line_and_the_others_load(
    client: DialectClient, sample: Path
) -> None:
    (sample / "src/Greenhouse.App/Greenhouse.App.csproj").write_text("<Project>")
    await load(client, sample)
    assert client.loads == [None]
    assert sum("Error while loading" in message.message for message in client.log_messages) == 1


async def test_moving_a_type_creates_its_file(client: DialectClient, sample: Path) -> None:
    await load(client, sample)
    uri = path_to_uri(sample / "src/Greenhouse/Plants.cs")
    items = await client.actions(uri, line=8)
    assert not any("edit" in item for item in items.values())
    resolved = await client.ask(types.CODE_ACTION_RESOLVE, **items["Move type to Plant.cs"])
    assert [change.get("kind") for change in resolved["edit"]["documentChanges"]] == ["create", None, None]
    changed = commit(resolved["edit"], sample)
    assert "class Plant" in changed["Plant.cs"]
    assert "class Plant" not in changed["Plants.cs"]
    assert changed["Plant.cs"].startswith("// What grows here, and where.\n\nusing System;\n")


async def test_the_open_text_is_what_is_asked_about(client: DialectClient, sample: Path) -> None:
    uri = path_to_uri(sample / "src/Greenhouse/Season.cs")
    assert "Sort usings" not in await client.actions(uri, line=0)
    document = {"uri": uri, "languageId": "csharp", "version": 1, "text": "using 😀;\r\nusing B;\r\n"}
    client.tell(types.TEXT_DOCUMENT_DID_OPEN, textDocument=document)
    change = {
        "range": {"start": {"line": 0, "character": 6}, "end": {"line": 0, "character": 8}},
        "text": "Z",
    }
    client.tell(
        types.TEXT_DOCUMENT_DID_CHANGE, textDocument={"uri": uri, "version": 2}, contentChanges=[change]
    )
    item = (await client.actions(uri, line=0))["Sort usings"]
    resolved = await client.ask(types.CODE_ACTION_RESOLVE, **item)
    (edits,) = (change["edits"] for change in resolved["edit"]["documentChanges"])
    assert [edit["newText"] for edit in edits] == ["using B;", "using Z;"]
    client.tell(types.TEXT_DOCUMENT_DID_CLOSE, textDocument={"uri": uri})
    assert await refused(client, types.CODE_ACTION_RESOLVE, **item) == -32801


async def test_a_group_is_listed_with_its_leaves_and_resolves_to_itself(
    client: DialectClient, sample: Path
) -> None:
    uri = path_to_uri(sample / "src/Greenhouse/Watering.cs")
    group = (await client.actions(uri, line=14))["Add braces"]
    assert group["command"]["command"] == "roslyn.client.nestedCodeAction"
    assert await client.ask(types.CODE_ACTION_RESOLVE, **group) == group
    leaf = group["data"]["NestedCodeActions"][0]
    resolved = await client.ask(types.CODE_ACTION_RESOLVE, **leaf)
    text = commit(resolved["edit"], sample)["Watering.cs"]
    assert (
        "if (season == Season.Summer)\n            {\n                litres *= 1.5;\n            }\n" in text
    )


@pytest.mark.parametrize(
    ("scope", "files"),
    [
        ("Document", {"Watering.cs"}),
        (
            "Project",
            {"Watering.cs", "Climate.cs", "Compost.cs", "Harvest.cs", "Plants.cs", "Möhre.cs"},
        ),
        (
            "Solution",
            {"Watering.cs", "Climate.cs", "Compost.cs", "Harvest.cs", "Plants.cs", "Möhre.cs", "Program.cs"},
        ),
    ],
)
async def test_a_fix_all_covers_its_scope(
    client: DialectClient, sample: Path, scope: str, files: set[str]
) -> None:
    await load(client, sample)
    uri = path_to_uri(sample / "src/Greenhouse/Watering.cs")
    leaf = (await client.actions(uri, line=14))["Add braces"]["data"]["NestedCodeActions"][1]
    assert leaf["command"]["command"] == "roslyn.client.fixAllCodeAction"
    resolved = await client.ask(
        "codeAction/resolveFixAll", title=leaf["title"], data=leaf["data"], scope=scope
    )
    assert set(commit(resolved["edit"], sample)) == files


async def test_a_fix_all_keeps_every_files_bytes_in_their_way(client: DialectClient, sample: Path) -> None:
    await load(client, sample)
    uri = path_to_uri(sample / "src/Greenhouse/Catalogue.cs")
    item = (await client.actions(uri, line=2))["Convert to file-scoped namespace"]
    resolved = await client.ask("codeAction/resolveFixAll", title="x", data=item["data"], scope="Solution")
    changed = commit(resolved["edit"], sample)
    assert set(changed) == {
        "Catalogue.cs",
        "Climate.cs",
        "Harvest.cs",
        "Möhre.cs",
        "Plants.cs",
        "Watering.cs",
    }
    catalogue = (sample / "src/Greenhouse/Catalogue.cs").read_bytes()
    assert catalogue.startswith(b"\xff\xfe")
    climate = (sample / "src/Greenhouse/Climate.cs").read_bytes()
    assert climate.count(b"\n") == climate.count(b"\r\n")
    assert b"mild  below 22\r\nhot   above that" in climate


async def test_a_fix_all_covers_open_files_that_are_not_on_disk_and_no_generated_ones(
    client: DialectClient, sample: Path
) -> None:
    await load(client, sample)
    folder = sample / "src/Greenhouse"
    for name, header in (
        ("New.cs", ""),
        ("Made.g.cs", ""),
        ("TemporaryGeneratedFile_1.cs", ""),
        ("Marked.cs", "// <auto-generated/>\n\n"),
    ):
        text = f"{header}using B;\nusing A;\n"
        client.tell(
            types.TEXT_DOCUMENT_DID_OPEN,
            textDocument={
                "uri": path_to_uri(folder / name),
                "languageId": "csharp",
                "version": 1,
                "text": text,
            },
        )
    data = (await client.actions(path_to_uri(folder / "Watering.cs"), line=0))["Sort usings"]["data"]
    resolved = await client.ask("codeAction/resolveFixAll", title="x", data=data, scope="Project")
    uris = {
        change["textDocument"]["uri"].rpartition("/")[2] for change in resolved["edit"]["documentChanges"]
    }
    assert uris == {"Watering.cs", "M%C3%B6hre.cs", "New.cs"}


async def test_a_fix_all_leaves_projects_alone_whose_language_is_too_old(
    client: DialectClient, sample: Path
) -> None:
    old = sample / "src/Greenhouse.App"
    (old / "Greenhouse.App.csproj").write_text("<Project><TargetFramework>net48</TargetFramework></Project>")
    (old / "Old.cs").write_text("namespace Old\n{\n}\n")
    await load(client, sample)
    assert await client.actions(path_to_uri(old / "Old.cs"), line=0) == {}
    item = (await client.actions(path_to_uri(sample / "src/Greenhouse/Plants.cs"), line=5))[
        "Convert to file-scoped namespace"
    ]
    resolved = await client.ask("codeAction/resolveFixAll", title="x", data=item["data"], scope="Solution")
    uris = {
        change["textDocument"]["uri"].rpartition("/")[2] for change in resolved["edit"]["documentChanges"]
    }
    assert "Climate.cs" in uris
    assert "Old.cs" not in uris


async def test_a_long_fix_all_can_be_cancelled_and_holds_nobody_up(
    client: DialectClient, tmp_path: Path
) -> None:
    (tmp_path / "Many.csproj").write_text("<Project />")
    for number in range(300):
        (tmp_path / f"C{number}.cs").write_text("namespace N\n{\n" + "    class C { }\n" * 200 + "}\n")
    uri = path_to_uri(tmp_path / "C0.cs")
    async with asyncio.timeout(ANSWER_SECONDS):
        waiting = asyncio.ensure_future(client.wait_for_notification(LOADED))
        client.tell("project/open", projects=[path_to_uri(tmp_path / "Many.csproj")])
        await waiting
        data = (await client.actions(uri, line=0))["Convert to file-scoped namespace"]["data"]
        long = asyncio.ensure_future(
            client.ask("codeAction/resolveFixAll", msg_id="long", title="x", data=data, scope="Solution")
        )
        assert await client.ask(types.TEXT_DOCUMENT_FOLDING_RANGE, textDocument={"uri": uri})
        assert not long.done()
        client.cancel_request(types.CancelParams(id="long"))
        with pytest.raises(JsonRpcException) as caught:
            await long
        assert caught.value.code == -32800


async def test_a_wrong_scope_is_an_error(client: DialectClient, sample: Path) -> None:
    uri = path_to_uri(sample / "src/Greenhouse/Watering.cs")
    data = (await client.actions(uri, line=0))["Sort usings"]["data"]
    assert await refused(client, "codeAction/resolveFixAll", title="x", data=data, scope="document") == -32000
    assert await refused(client, "codeAction/resolveFixAll", title="x", data=data) == -32000


async def test_a_missing_file_has_nothing_to_offer(client: DialectClient, tmp_path: Path) -> None:
    uri = path_to_uri(tmp_path / "No.cs")
    assert await client.actions(uri, line=0) == {}
    assert await client.ask(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, textDocument={"uri": uri}) == []


async def test_a_file_that_cannot_be_read_is_an_error_and_no_empty_answer(
    client: DialectClient, tmp_path: Path
) -> None:
    (tmp_path / "Binary.cs").write_bytes(b"using B;\0")
    document = {"uri": path_to_uri(tmp_path / "Binary.cs")}
    assert await refused(client, types.TEXT_DOCUMENT_FOLDING_RANGE, textDocument=document) == -30099


async def test_a_file_that_is_no_csharp_has_nothing_to_offer(client: DialectClient, sample: Path) -> None:
    assert await client.actions(path_to_uri(sample / "README.md"), line=0) == {}


async def test_outline_and_folds_are_answered(client: DialectClient, sample: Path) -> None:
    document = {"uri": path_to_uri(sample / "src/Greenhouse/Süd beet/Möhre.cs")}
    (namespace,) = await client.ask(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, textDocument=document)
    (carrot,) = namespace["children"]
    assert carrot["name"] == "Möhre"
    assert [child["name"] for child in carrot["children"]] == [
        "Möhre(double)",
        "Length : double",
        "Show() : string",
    ]
    folds = await client.ask(types.TEXT_DOCUMENT_FOLDING_RANGE, textDocument=document)
    assert folds[0] == {
        "startLine": 0,
        "startCharacter": 0,
        "endLine": 1,
        "endCharacter": 13,
        "kind": "imports",
    }


@pytest.mark.parametrize("method", ["textDocument/diagnostic", "textDocument/hover", "no/such"])
async def test_what_needs_meaning_is_not_there(client: DialectClient, method: str) -> None:
    assert await refused(client, method, textDocument={"uri": "file:///a.cs"}) == -32601


async def test_parameters_that_do_not_fit_are_refused(client: DialectClient, sample: Path) -> None:
    document = {"uri": path_to_uri(sample / "src/Greenhouse/Season.cs")}
    nowhere = {"line": 99, "character": 0}
    far = {"start": nowhere, "end": nowhere}
    assert await refused(client, types.TEXT_DOCUMENT_CODE_ACTION, textDocument=document) == -32602
    assert await refused(client, types.TEXT_DOCUMENT_CODE_ACTION, textDocument=document, range=far) == -32602
    other = {"uri": "roslyn-source-generated://x/y.cs"}
    assert await refused(client, types.TEXT_DOCUMENT_FOLDING_RANGE, textDocument=other) == -32602


async def test_a_mistake_in_the_ledger_ends_nothing(client: DialectClient, sample: Path) -> None:
    uri = path_to_uri(sample / "src/Greenhouse/Season.cs")
    client.tell(types.TEXT_DOCUMENT_DID_CLOSE, textDocument={"uri": uri})
    client.tell(
        types.TEXT_DOCUMENT_DID_CHANGE,
        textDocument={"uri": uri, "version": 2},
        contentChanges=[{"text": "x"}],
    )
    assert await refused(client, types.TEXT_DOCUMENT_FOLDING_RANGE, textDocument={"uri": uri}) == -32801
    client.tell(types.TEXT_DOCUMENT_DID_CLOSE, textDocument={"uri": uri})
    assert await client.ask(types.TEXT_DOCUMENT_FOLDING_RANGE, textDocument={"uri": uri})
