"""What clients get to see of our models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import ClassVar, cast

import pytest
from jsonschema import Draft202012Validator
from mcp import Client, types
from mcp.server import Server, ServerRequestContext
from pydantic import Field

from schemas.catalog import CATALOG, Effects, ToolEntry
from schemas.publication import Schema, input_schema, output_schema, publish
from schemas.wire import Data, Given, Request, Text
from tests.schemas.contracts import contract_descriptions, descriptions, needs_contracts

every_entry = pytest.mark.parametrize("entry", CATALOG.values(), ids=lambda entry: entry.name)

LARGEST_SHARE = 1_450
"""Bytes that a tool may add, on average, to the tool list without output schemas, as compact JSON: every conversation
pays for them.  A symbol selector alone has 2,000, because the contract lets it name a place in two ways."""


def nodes(schema: object) -> Iterator[Schema]:
    """Every schema inside of a schema."""
    if isinstance(schema, list):
        for item in schema:
            yield from nodes(item)
    elif isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)


def published() -> list[Schema]:
    return [schema for entry in CATALOG.values() for schema in publish(entry, "Full") if schema is not None]


def published_tools(mode: str) -> list[types.Tool]:
    return [
        types.Tool(
            name=entry.name,
            title=entry.title,
            description=entry.summary,
            input_schema=input_schema(entry),
            output_schema=output_schema(entry) if mode == "Full" else None,
            annotations=types.ToolAnnotations.model_validate(entry.annotations),
        )
        for entry in CATALOG.values()
    ]


@every_entry
def test_output_schemas_are_published_only_when_asked_for(entry: ToolEntry) -> None:
    assert publish(entry, "Omit") == (input_schema(entry), None)
    assert publish(entry, "Full") == (input_schema(entry), output_schema(entry))


@every_entry
def test_roots_are_objects_because_one_other_root_loses_clients_the_whole_list(entry: ToolEntry) -> None:
    assert input_schema(entry)["type"] == "object"
    assert output_schema(entry)["type"] == "object"
    assert len(cast("list[object]", output_schema(entry)["oneOf"])) == 2


@every_entry
def test_what_is_published_is_a_schema_of_the_draft_of_2020(entry: ToolEntry) -> None:
    Draft202012Validator.check_schema(input_schema(entry))
    Draft202012Validator.check_schema(output_schema(entry))


def test_no_member_has_true_or_false_for_a_schema() -> None:
    for node in nodes(published()):
        members = node.get("properties", {})
        assert isinstance(members, dict)
        assert all(isinstance(member, dict) for member in members.values())


def test_no_reference_is_left_for_a_client_to_resolve() -> None:
    assert not any("$ref" in node or "$defs" in node for node in nodes(published()))


def test_no_marks_of_ours_and_no_titles_or_null_defaults_are_published() -> None:
    for node in nodes(published()):
        assert "x-given" not in node
        assert not isinstance(node.get("title"), str)
        assert node.get("default", 0) is not None


@every_entry
def test_every_object_in_a_request_is_closed(entry: ToolEntry) -> None:
    for node in nodes(input_schema(entry)):
        if isinstance(node.get("properties"), dict):
            assert node["additionalProperties"] is False


def test_the_tool_list_stays_small(record_property: Callable[[str, object], None]) -> None:
    tools = [tool.model_dump(by_alias=True, exclude_none=True) for tool in published_tools("Omit")]
    size = len(json.dumps(tools, separators=(",", ":")))
    full = [tool.model_dump(by_alias=True, exclude_none=True) for tool in published_tools("Full")]
    record_property("tools/list bytes", size)
    record_property("tools/list bytes with output schemas", len(json.dumps(full, separators=(",", ":"))))
    assert size <= LARGEST_SHARE * len(CATALOG)


def test_what_is_published_names_no_product_but_the_languages_own() -> None:
    text = json.dumps([published(), [entry.summary for entry in CATALOG.values()]]).lower()
    assert "workbench" not in text
    assert "lantean" not in text


@needs_contracts
def test_every_description_is_in_our_own_words() -> None:
    ours = set(descriptions(published())) | {entry.summary for entry in CATALOG.values()}
    assert not ours & contract_descriptions()


@pytest.mark.anyio
@pytest.mark.parametrize("era", ["legacy", "auto"])
@pytest.mark.parametrize("mode", ["Omit", "Full"])
async def test_the_sdk_lists_every_tool_with_its_exact_schemas_in_both_protocol_eras(
    era: str, mode: str
) -> None:
    async def list_tools(
        context: ServerRequestContext[object], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=published_tools(mode))

    server = Server("published", on_list_tools=list_tools)
    async with Client(server, mode="legacy" if era == "legacy" else "auto") as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(listed) == list(CATALOG)
    for name, entry in CATALOG.items():
        assert listed[name].input_schema == input_schema(entry)
        assert listed[name].output_schema == (output_schema(entry) if mode == "Full" else None)


class TreeRequest(Request):
    """A request of its own for the test below."""


class Tree(Data):
    """A type that contains itself."""

    name: Text
    children: Given[tuple[Tree, ...]]


class TreeData(Data):
    """An answer with such a type in it."""

    may_be_null: ClassVar[bool] = False

    tree: Tree = Field(description="The root.")


def test_a_type_that_contains_itself_keeps_a_definition() -> None:
    entry = ToolEntry("tree", "Tree", "", Effects(), "none", __name__, "Tree")
    vars(entry).update(request_model=TreeRequest, data_model=TreeData)
    schema = output_schema(entry)
    judge = Draft202012Validator(schema)
    leaf: dict[str, object] = {"name": "leaf", "children": []}
    assert judge.is_valid({"ok": True, "data": {"tree": {"name": "root", "children": [leaf, leaf]}}})
    assert not judge.is_valid({"ok": True, "data": {"tree": {"name": "root", "children": [{"name": 1}]}}})
