"""Documents from a JSON Schema, and documents that nearly fit it.

Knows the keywords that our schemas and the contracts use, and fails on any other: a keyword that were passed over in
silence would make the comparison blind to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import TypeAlias, cast

from hypothesis import strategies as st

Json: TypeAlias = object
Schema: TypeAlias = Mapping[str, object]

_SAID: frozenset[str] = frozenset(
    {
        "description",
        "title",
        "default",
        "examples",
        "$comment",
        "$schema",
        "$defs",
        "discriminator",
        "x-given",
    }
)
_DONE: frozenset[str] = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "minItems", "uniqueItems"}
    | {"minimum", "maximum", "minLength", "format", "pattern"}
)


def documents(schema: Schema, *, text: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Json]:
    """Documents that are valid under ``schema``; free text comes from ``text``."""
    return _Maker(schema, text if text is not None else st.text(max_size=6)).make(schema)


class _Maker:
    def __init__(self, root: Schema, text: st.SearchStrategy[str]) -> None:
        self._definitions = cast("Mapping[str, Schema]", root.get("$defs", {}))
        self._text = text

    def make(self, schema: Schema) -> st.SearchStrategy[Json]:
        schema = self._merged(schema)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                rest = {name: value for name, value in schema.items() if name != keyword}
                choices = cast("list[Schema]", schema[keyword])
                return st.one_of([self.make(_both(rest, self._merged(choice))) for choice in choices])
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(cast("list[Json]", schema["enum"]))
        unknown = set(schema) - _SAID - _DONE
        assert not unknown, f"no documents can be made for the keywords {unknown}"
        types = schema.get("type", ["object", "string", "integer", "null"])
        names = [types] if isinstance(types, str) else cast("list[str]", types)
        return st.one_of([self._of_type(name, schema) for name in names])

    def _merged(self, schema: Schema) -> Schema:
        """The schema without references and ``allOf``."""
        if "$ref" in schema:
            name = str(schema["$ref"]).removeprefix("#/$defs/")
            rest = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
            return _both(self._merged(self._definitions[name]), rest)
        if "allOf" in schema:
            merged: Schema = {keyword: value for keyword, value in schema.items() if keyword != "allOf"}
            for part in cast("list[Schema]", schema["allOf"]):
                merged = _both(merged, self._merged(part))
            return merged
        return schema

    def _of_type(self, name: str, schema: Schema) -> st.SearchStrategy[Json]:
        match name:
            case "null":
                return st.none()
            case "boolean":
                return st.booleans()
            case "integer":
                return self._integers(schema)
            case "string":
                return self._strings(schema)
            case "array":
                return self._arrays(schema)
            case "object":
                return self._objects(schema)
        raise AssertionError(f"no documents can be made for the type {name}")

    def _integers(self, schema: Schema) -> st.SearchStrategy[Json]:
        low = cast("int | None", schema.get("minimum"))
        high = cast("int | None", schema.get("maximum"))
        whole = st.integers(low, high)
        as_float = st.integers(max(low or 0, -(2**53)), min(high or 2**53, 2**53)).map(float)
        return st.one_of(whole, as_float)

    def _strings(self, schema: Schema) -> st.SearchStrategy[Json]:
        if schema.get("format") == "uuid":
            return st.one_of(st.uuids().map(str), st.uuids().map(lambda value: str(value).upper()))
        if "pattern" in schema:
            return st.from_regex(re.compile(str(schema["pattern"]), re.ASCII), fullmatch=True)
        least = cast("int", schema.get("minLength", 0))
        return self._text.filter(lambda value: len(value) >= least)

    def _arrays(self, schema: Schema) -> st.SearchStrategy[Json]:
        items = self.make(cast("Schema", schema.get("items", {})))
        least = cast("int", schema.get("minItems", 0))
        unique = schema.get("uniqueItems") is True
        lists = st.lists(items, min_size=least, max_size=3, unique_by=repr if unique else None)
        return cast("st.SearchStrategy[Json]", lists)

    def _objects(self, schema: Schema) -> st.SearchStrategy[Json]:
        members = cast("Mapping[str, Schema]", schema.get("properties", {}))
        required = cast("list[str]", schema.get("required", []))
        made = {name: self.make(member) for name, member in members.items()}
        fixed = {name: made[name] for name in required}
        optional = {name: member for name, member in made.items() if name not in required}
        return cast("st.SearchStrategy[Json]", st.fixed_dictionaries(fixed, optional=optional))


def _both(one: Schema, other: Schema) -> Schema:
    """What holds when both schemas hold; members and items are combined, the second speaks for all else."""
    merged: dict[str, object] = dict(one)
    for keyword, value in other.items():
        if keyword == "properties" and keyword in merged:
            members = cast("Mapping[str, Schema]", merged[keyword])
            added = cast("Mapping[str, Schema]", value)
            merged[keyword] = {
                name: _both(members.get(name, {}), added.get(name, {})) for name in {**members, **added}
            }
        elif keyword == "items" and keyword in merged:
            merged[keyword] = _both(cast("Schema", merged[keyword]), cast("Schema", value))
        else:
            merged[keyword] = value
    return merged


_MISFITS: tuple[Json, ...] = (
    *(None, True, False, 0, 1, 1.0, -0.0, 1.5, -1, 2**31 - 1, 2**31, 2.0**31, 2**70),
    *("", "x", "1", "true", "Full", "Undo", "Document", "CodeFixes", "codefixes", "00:05:00", "5 min"),
    "01234567-89ab-cdef-0123-456789ABCDEF",
    "0123456789abcdef0123456789abcdef",
    "{01234567-89ab-cdef-0123-456789abcdef}",
    "urn:uuid:01234567-89ab-cdef-0123-456789abcdef",
    "01234567-89ab-cdef-0123-456789abcdef\n",
    *([], [None], [1], ["x"], {}, {"x": 1}),
)
"""What is put where something else belongs; some of it fits by chance, which is just as good a question."""


@st.composite
def near_misses(draw: st.DrawFn, source: st.SearchStrategy[Json]) -> Json:
    """Documents of ``source`` with one or two members replaced, removed or added.  Most, not all, do not fit."""
    box = {"": deepcopy(draw(source))}
    for _ in range(draw(st.integers(1, 2))):
        holder, key = draw(st.sampled_from(_places(box)))
        action = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        target = holder[key]
        if action == "add" and isinstance(target, dict):
            target[draw(st.sampled_from(["unknownMember", "workspace_id", "Path", "_meta"]))] = "x"
        elif action == "remove" and key != "":
            del holder[key]
        else:
            holder[key] = deepcopy(draw(st.sampled_from(_MISFITS)))
    return box[""]


def _places(node: Json) -> list[tuple[dict[object, Json], object]]:
    """Every member and entry in a document, as its holder and its name or index."""
    found: list[tuple[dict[object, Json], object]] = []
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in entries:
        found.append((cast("dict[object, Json]", node), key))
        found.extend(_places(value))
    return found
