"""The contracts beside the repository, when they are there.

They lie at ``../shared/contracts`` as seen from the repository's root.  Without them the tests that need them are
skipped, each with the reason below, and the others still hold validation and publication against each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import TypeAlias, cast

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from schemas.catalog import CATALOG
from tests.shared import CONTRACTS

Schema: TypeAlias = dict[str, object]

EXTRA_TOOLS = frozenset({"format-project"})
"""Tools of ours that no contract has."""

TOOLS = tuple(tool for tool in CATALOG if tool not in EXTRA_TOOLS)
"""The tools that have a contract."""

needs_contracts = pytest.mark.skipif(
    not CONTRACTS.is_dir(), reason=f"../shared/contracts is not there: {len(TOOLS)} contracts are not checked"
)

_FORMATS = FormatChecker(formats=())
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)


@_FORMATS.checks("uuid")
def _is_uuid(value: object) -> bool:
    return not isinstance(value, str) or _UUID.fullmatch(value) is not None


def judge(schema: Mapping[str, object]) -> Draft202012Validator:
    """A judge of documents that takes formats seriously."""
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=_FORMATS)


@cache
def contract(tool: str) -> Mapping[str, object]:
    """A tool's contract as it lies on disk."""
    return cast("Mapping[str, object]", _read(f"{tool}.json"))


@cache
def _read(name: str) -> object:
    return json.loads((CONTRACTS / name).read_text(encoding="utf-8"))


def _whole(schema: object) -> Schema:
    """The schema with everything it refers to under its own ``$defs``."""
    shared = cast("Mapping[str, object]", _read("common.json"))["$defs"]
    local = json.loads(json.dumps(schema).replace("common.json#/$defs/", "#/$defs/"))
    return {**local, "$defs": deepcopy(shared)}


@cache
def input_contract(tool: str) -> Schema:
    """The contract of a tool's arguments, closed: unknown members are refused, as we mean to."""
    return cast("Schema", _closed(_whole(contract(tool)["input"])))


@cache
def data_contract(tool: str) -> Schema:
    """The contract of a tool's data."""
    return _whole(contract(tool)["output"])


@cache
def answer_contract(tool: str) -> Schema:
    """The contract of a tool's structured answer."""
    whole = _whole({})
    definitions = cast("dict[str, Schema]", whole["$defs"])
    definitions["Data"] = _whole(contract(tool)["output"])
    del definitions["Data"]["$defs"]
    success = definitions["SuccessResponse"]
    cast("Schema", success["properties"])["data"] = {"$ref": "#/$defs/Data"}
    branches = [{"$ref": "#/$defs/SuccessResponse"}, {"$ref": "#/$defs/ErrorResponse"}]
    return {"type": "object", "oneOf": branches, "$defs": definitions}


def _closed(node: object) -> object:
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed: dict[str, object] = {}
    for keyword, value in node.items():
        if keyword in ("properties", "$defs"):
            closed[keyword] = {name: _closed(member) for name, member in value.items()}
        else:
            closed[keyword] = _closed(value)
    return {**closed, "additionalProperties": False} if "properties" in closed else closed


def descriptions(node: object) -> list[str]:
    """All descriptions in a schema or contract."""
    if isinstance(node, list):
        return [text for item in node for text in descriptions(item)]
    if not isinstance(node, dict):
        return []
    own = [node["description"]] if isinstance(node.get("description"), str) else []
    return own + [text for value in node.values() for text in descriptions(value)]


def contract_descriptions() -> set[str]:
    """Every description and summary in the contracts of the tools we have, and in what they share."""
    files = [contract(tool) for tool in TOOLS]
    return set(descriptions([*files, _read("common.json")])) | {str(file["summary"]) for file in files}
