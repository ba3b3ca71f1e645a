"""From our models to the JSON Schemas that clients see (draft 2020-12).

Pydantic makes a schema of each model; what follows here makes it small and safe to publish:

- a type that may be null becomes ``"type": [..., "null"]``;
- titles, null defaults and model docstrings go: they cost tokens in every conversation and say nothing new;
- references are inlined, because some clients resolve none; only a type that contains itself stays in ``$defs``;
- requests are closed (``additionalProperties: false``), answers open, as validation and the contracts have it;
- the root is always an object: one bad root makes clients lose the whole list of tools.

Nothing is published before somebody asks; each result is made once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from schemas.catalog import ToolEntry
from schemas.envelope import Failure, Success
from schemas.wire import GIVEN_MARK, Data, Wire

if TYPE_CHECKING:
    from schemas.server import OutputSchemaMode

Schema: TypeAlias = dict[str, object]
_REFERENCE: Final = "#/$defs/"
_FIRST: Final = ("type", "description")


def publish(entry: ToolEntry, mode: OutputSchemaMode) -> tuple[Schema, Schema | None]:
    """A tool's input schema, and its output schema if ``mode`` is ``Full``.  Read only: the dicts are shared."""
    return input_schema(entry), output_schema(entry) if mode == "Full" else None


def input_schema(entry: ToolEntry) -> Schema:
    """The schema of a tool's arguments."""
    return _published(entry.request_model)


@cache
def output_schema(entry: ToolEntry) -> Schema:
    """The schema of a tool's structured answer: a success with the tool's data, or a failure."""
    data = dict(_published(entry.data_model))
    definitions = data.pop("$defs", None)
    success = dict(_published(Success))
    members = cast("Schema", success["properties"])
    success["properties"] = {**members, "data": _or_null(data) if entry.data_model.may_be_null else data}
    schema: Schema = {"type": "object", "oneOf": [success, _published(Failure)]}
    return schema if definitions is None else {**schema, "$defs": definitions}


@cache
def _published(model: type[Wire]) -> Schema:
    return _Inliner(model.model_json_schema(schema_generator=_Generator)).root()


class _Generator(GenerateJsonSchema):
    """Pydantic's generator with our views on openness and null defaults."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        published = super().model_schema(schema)
        published.pop("description", None)  # the docstring: written for readers of the code
        model = schema["cls"]
        if issubclass(model, Data) and not model.is_closed:
            published.pop("additionalProperties", None)
        return published

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)


class _Inliner:
    """Rewrites one generated schema into its published form."""

    def __init__(self, generated: Schema) -> None:
        self._definitions = cast("Mapping[str, Schema]", generated.pop("$defs", {}))
        self._generated = generated
        self._open: list[str] = []
        self._recursive: dict[str, object] = {}

    def root(self) -> Schema:
        """The published schema; types that contain themselves are kept under its ``$defs``."""
        published = cast("Schema", self._published(self._generated))
        return {**published, "$defs": dict(self._recursive)} if self._recursive else published

    def _published(self, node: object) -> object:
        if isinstance(node, list):
            return [self._published(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return self._resolved(cast("Schema", node))
        published: Schema = {}
        for keyword, value in node.items():
            if keyword == "properties":
                published[keyword] = {name: self._published(member) for name, member in value.items()}
            elif keyword in ("title", "discriminator"):
                continue
            elif keyword in ("default", "enum", "const", "required"):
                published[keyword] = value
            else:
                published[keyword] = self._published(value)
        return _in_reading_order(_compact(_with_true_required(published)))

    def _resolved(self, node: Schema) -> object:
        name = str(node["$ref"]).removeprefix(_REFERENCE)
        siblings = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
        if name in self._open:
            self._recursive[name] = {}
            return {**siblings, "$ref": _REFERENCE + name}
        self._open.append(name)
        target = cast("Schema", self._published(self._definitions[name]))
        self._open.pop()
        if name in self._recursive:
            self._recursive[name] = target
            return {**siblings, "$ref": _REFERENCE + name}
        return _in_reading_order({**target, **cast("Schema", self._published(siblings))})


def _with_true_required(schema: Schema) -> Schema:
    """``required`` as the contracts have it: without what we merely always give, with every constant."""
    members = schema.get("properties")
    if not isinstance(members, dict):
        return schema
    required = list(cast("list[str]", schema.pop("required", [])))
    for name, member in members.items():
        if member.pop(GIVEN_MARK, False) and name in required:
            required.remove(name)
        if "const" in member:
            member.pop("default", None)
            if name not in required:
                required.append(name)
    if required:
        schema["required"] = required
    return schema


def _in_reading_order(schema: Schema) -> Schema:
    """What it is and what it means come first."""
    return {keyword: schema[keyword] for keyword in sorted(schema, key=_rank)}


def _rank(keyword: str) -> int:
    return _FIRST.index(keyword) if keyword in _FIRST else len(_FIRST)


def _compact(schema: Schema) -> Schema:
    """``anyOf`` of one type and null, written as one type."""
    choices = schema.get("anyOf")
    if not isinstance(choices, list) or len(choices) != 2 or choices[1] != {"type": "null"}:
        return schema
    rest = {keyword: value for keyword, value in schema.items() if keyword != "anyOf"}
    return {**_or_null(choices[0]), **rest}


def _or_null(schema: Schema) -> Schema:
    """The schema that accepts null as well."""
    kind = schema.get("type")
    if not isinstance(kind, str) or "const" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    widened: Schema = {**schema, "type": [kind, "null"]}
    if "enum" in schema:
        widened["enum"] = [*cast("list[object]", schema["enum"]), None]
    return widened
