"""A document of several projects is named to Roslyn in the words that Roslyn itself has for the project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import msgspec
import pytest

from lsp_client.dialects import CSHARP_LS, ROSLYN
from lsp_client.dialects.base import Port, ProjectChoice
from lsp_client.failures import DocumentNotSeen
from lsp_client.messages import encode

PATH = Path("/w/Linked.cs")


class Answering:
    """A server that answers the one question about projects, and notes that it was asked."""

    def __init__(self, *labels: str) -> None:
        self.asked: list[str] = []
        contexts = [{"_vs_label": label, "_vs_id": f"id of {label}", "_vs_kind": 2} for label in labels]
        self._answer = json.dumps({"_vs_projectContexts": contexts, "_vs_defaultIndex": 0}).encode()

    async def ask(self, method: str, params: object, *, timeout: float | None = None) -> msgspec.Raw:
        self.asked.append(method)
        return msgspec.Raw(self._answer)


async def meant(server: Answering, project: ProjectChoice | None) -> str | None:
    """The id of the project context that goes to the server."""
    identified = await ROSLYN.identify(cast("Port", server), PATH, project)
    wire = json.loads(encode(identified))
    assert wire["uri"] == "file:///w/Linked.cs"
    context = wire.get("_vs_projectContext")
    return None if context is None else str(context["_vs_id"])


@pytest.mark.anyio
@pytest.mark.parametrize("label", ["Core(netstandard2.0)", "Core (netstandard2.0)"])
async def test_the_context_of_the_chosen_framework_goes_back_verbatim(label: str) -> None:
    server = Answering("Consumer", "Core(net10.0)", label)
    assert await meant(server, ProjectChoice("Core", "netstandard2.0")) == f"id of {label}"


@pytest.mark.anyio
async def test_a_project_of_one_framework_is_known_by_its_name_alone() -> None:
    server = Answering("Consumer", "Core(net10.0)")
    assert await meant(server, ProjectChoice("Consumer", "net10.0")) == "id of Consumer"


@pytest.mark.anyio
async def test_a_document_of_one_project_costs_no_question() -> None:
    server = Answering("Consumer")
    assert await meant(server, None) is None
    assert server.asked == []


@pytest.mark.anyio
async def test_a_project_that_the_server_does_not_know_is_not_replaced_by_another() -> None:
    with pytest.raises(DocumentNotSeen):
        await meant(Answering("Consumer", "Other"), ProjectChoice("Core", "net10.0"))
    assert await meant(Answering("Renamed"), ProjectChoice("Core", "net10.0")) is None, "there is but one"


@pytest.mark.anyio
async def test_csharp_ls_is_not_told_what_it_cannot_use() -> None:
    server = Answering()
    identified = await CSHARP_LS.identify(cast("Port", server), PATH, ProjectChoice("Core", "net10.0"))
    assert dict(identified) == {"uri": "file:///w/Linked.cs"}
    assert server.asked == []
