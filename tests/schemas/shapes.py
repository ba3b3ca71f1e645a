"""What a schema says, without how it says it, so that two of them can be compared member by member.

Generated documents find a difference by luck, deep inside an answer by much luck; this finds it every time.  It knows
only the keywords that our schemas and the contracts use, and fails on any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

Schema: TypeAlias = Mapping[str, object]

_LIMITS = ("minimum", "maximum", "minLength", "minItems", "uniqueItems", "format", "pattern", "const")
_PROSE = {"description", "default", "$comment", "$schema", "$defs"}


@dataclass(frozen=True)
class Shape:
    """The meaning of one schema."""

    types: frozenset[str] = frozenset()
    members: Mapping[str, Shape] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    closed: bool = False
    items: Shape | None = None
    choices: frozenset[object] | None = None
    limits: Mapping[str, object] = field(default_factory=dict)
    branches: tuple[Shape, ...] = ()


def shape(schema: Schema, root: Schema | None = None) -> Shape:
    """The meaning of a schema whose references lead to ``$defs`` of ``root``."""
    root = schema if root is None else root
    definitions = cast("Mapping[str, Schema]", root.get("$defs", {}))
    found = Shape()
    if "$ref" in schema:
        found = shape(definitions[str(schema["$ref"]).removeprefix("#/$defs/")], root)
    for part in cast("list[Schema]", schema.get("allOf", [])):
        found = _both(found, shape(part, root))
    if "anyOf" in schema:
        real, null = cast("list[Schema]", schema["anyOf"])
        assert null == {"type": "null"}, "the only choice of types that is used is one or null"
        inner = shape(real, root)
        found = _both(found, Shape(**{**vars(inner), "types": inner.types | {"null"}}))
    return _both(found, _own(schema, root))


def _own(schema: Schema, root: Schema) -> Shape:
    unknown = set(schema) - _PROSE - set(_LIMITS)
    unknown -= {"$ref", "allOf", "anyOf", "oneOf", "type", "properties", "required"}
    unknown -= {"additionalProperties", "items", "enum"}
    assert not unknown, f"nothing is known of the keywords {unknown}"
    kind = schema.get("type", [])
    names = [kind] if isinstance(kind, str) else cast("list[str]", kind)
    members = cast("Mapping[str, Schema]", schema.get("properties", {}))
    limits = {keyword: schema[keyword] for keyword in _LIMITS if keyword in schema}
    if "pattern" in limits:
        limits["pattern"] = str(limits["pattern"]).replace(r"\d", "[0-9]")
    choices = cast("list[object] | None", schema.get("enum"))
    return Shape(
        types=frozenset(names) if "const" not in schema else frozenset(),
        members={name: shape(member, root) for name, member in members.items()},
        required=frozenset(cast("list[str]", schema.get("required", []))),
        closed=schema.get("additionalProperties") is False,
        items=shape(cast("Schema", schema["items"]), root) if "items" in schema else None,
        choices=None if choices is None else frozenset(choices) - {None},
        limits=limits,
        branches=tuple(shape(branch, root) for branch in cast("list[Schema]", schema.get("oneOf", []))),
    )


def _both(one: Shape, other: Shape) -> Shape:
    empty = Shape()
    items = other.items if one.items is None else one.items
    if one.items is not None and other.items is not None:
        items = _both(one.items, other.items)
    return Shape(
        types=one.types | other.types if not (one.types and other.types) else one.types & other.types,
        members={
            name: _both(one.members.get(name, empty), other.members.get(name, empty))
            for name in {**one.members, **other.members}
        },
        required=one.required | other.required,
        closed=one.closed or other.closed,
        items=items,
        choices=one.choices if other.choices is None else other.choices,
        limits={**one.limits, **other.limits},
        branches=one.branches or other.branches,
    )


def differences(contract: Shape, ours: Shape, path: str = "") -> Iterator[str]:
    """What the two do not agree on, a line each; ``+path`` is a member that only we have."""
    for aspect in ("types", "required", "closed", "choices", "limits"):
        expected, found = getattr(contract, aspect), getattr(ours, aspect)
        if expected != found:
            yield f"{path}: {aspect} {found}, the contract has {expected}"
    for name, member in contract.members.items():
        if name in ours.members:
            yield from differences(member, ours.members[name], f"{path}.{name}")
        else:
            yield f"{path}.{name}: missing"
    yield from (f"+{path}.{name}" for name in ours.members if name not in contract.members)
    if (contract.items is None) != (ours.items is None):
        yield f"{path}[]: only one of the two says what the entries are"
    elif contract.items is not None and ours.items is not None:
        yield from differences(contract.items, ours.items, f"{path}[]")
    if len(contract.branches) != len(ours.branches):
        yield f"{path}: {len(ours.branches)} branches, the contract has {len(contract.branches)}"
    for index, (expected, found) in enumerate(zip(contract.branches, ours.branches, strict=False)):
        yield from differences(expected, found, f"{path}<{index}>")
