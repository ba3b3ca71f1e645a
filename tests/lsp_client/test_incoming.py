"""Whatever a server asks while it works is answered at once, in a form that it survives."""

from pathlib import Path

import msgspec
import pytest

from lsp_client.dialects import CSHARP_LS, EMBEDDED, ROSLYN, Dialect
from lsp_client.dialects.base import LoadTarget
from lsp_client.errors import ResponseError
from lsp_client.incoming import Incoming
from lsp_client.loading import LoadWatch

pytestmark = pytest.mark.anyio
every_dialect = pytest.mark.parametrize("dialect", [ROSLYN, CSHARP_LS, EMBEDDED], ids=lambda d: d.name)


def incoming(dialect: Dialect, root: Path) -> Incoming:
    return Incoming(dialect, LoadTarget(root / "App.slnx", root), LoadWatch())


def raw(params: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(params))


REGISTRATION = {"registrations": [{"id": "1", "method": "textDocument/diagnostic", "registerOptions": None}]}


@every_dialect
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("window/workDoneProgress/create", {"token": "t"}),
        ("client/registerCapability", REGISTRATION),
        ("client/registerCapability", {"odd": True}),
        ("client/unregisterCapability", {"unregisterations": []}),
        ("window/showMessageRequest", {"type": 1, "message": "?", "actions": [{"title": "Yes"}]}),
        ("workspace/_roslyn_projectNeedsRestore", {"projectFilePaths": []}),
        ("workspace/diagnostic/refresh", None),
        ("workspace/_somethingNobodyKnows", {"a": 1}),
    ],
)
async def test_null_is_the_answer_that_says_nothing_and_is_no_error(
    tmp_path: Path, dialect: Dialect, method: str, params: object
) -> None:
    assert await incoming(dialect, tmp_path).answer(method, raw(params)) is None


@every_dialect
async def test_every_setting_asked_for_has_an_answer_in_its_place(tmp_path: Path, dialect: Dialect) -> None:
    items = [{"section": "csharp|unknown"}, {}, {"section": "csharp|background_analysis.unknown"}]
    answers = await incoming(dialect, tmp_path).answer("workspace/configuration", raw({"items": items}))
    assert answers == [None, None, None]
    with pytest.raises(ResponseError):
        await incoming(dialect, tmp_path).answer("workspace/configuration", raw({"items": 5}))


async def test_the_kinds_of_diagnostics_that_are_registered_later_are_remembered(tmp_path: Path) -> None:
    watch = LoadWatch()
    heard = Incoming(ROSLYN, LoadTarget(tmp_path / "App.slnx", tmp_path), watch)
    options = {"identifier": "syntax"}
    registration = {"id": "1", "method": "textDocument/diagnostic", "registerOptions": options}
    await heard.answer("client/registerCapability", raw({"registrations": [registration]}))
    assert watch.diagnostic_sources == {"syntax"}


async def test_the_folder_of_the_workspace_is_told(tmp_path: Path) -> None:
    folders = await incoming(ROSLYN, tmp_path).answer("workspace/workspaceFolders", raw(None))
    assert folders == [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]


@pytest.mark.parametrize("params", [{"edit": 5}, {}, None])
async def test_an_edit_to_apply_that_cannot_be_read_is_not_applied(tmp_path: Path, params: object) -> None:
    desk = incoming(ROSLYN, tmp_path)
    with desk.edits.open() as taken:
        answer = await desk.answer("workspace/applyEdit", raw(params))
    assert isinstance(answer, dict)
    assert answer["applied"] is False
    assert answer["failureReason"]
    assert taken == []
