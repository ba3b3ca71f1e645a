"""How our models differ from plain pydantic ones, in one place.

Names are snake_case in Python and camelCase on the wire.  A JSON document knows three things where Python has one
``None``: a member that is absent, one that is null, and one that has a value.  The contracts say for each member
which of them may occur, and the types below carry that into the models:

===================  =======================  ============================  ===========================
type of a member     in a document            in Python                     when we answer
===================  =======================  ============================  ===========================
``T``                must be there, no null   must be given                 always there
``Omittable[T]``     absent, or a value       ``None`` stands for absent    absent when ``None``
``OrNull[T]``        absent, null or a value  ``None`` stands for both      absent when ``None``
``T | None``         must be there, may null  must be given                 there, as null when ``None``
``Given[T]``         may be absent, no null   must be given                 always there
===================  =======================  ============================  ===========================

``Given`` is for answers: the contract leaves the member optional, but this bridge always has it, so the type checker
asks for it while the published schema does not.  ``Given[OrNull[T]]`` must be given, if only as ``None``.

Whole numbers are JSON Schema's: ``1.0`` is one, ``true`` and ``"1"`` are none.  Nothing is converted from text.
Models are built on first use (``defer_build``): a process that never calls a tool never pays for its models.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Generic, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StrictBool,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import core_schema

from schemas.surrogates import scrubbed

T = TypeVar("T")

INT32_MAX: Final = 2**31 - 1
GIVEN_MARK: Final = "x-given"
"""Marks a member in a generated schema; ``publication`` takes it, and the member's name from ``required``, away."""


class _NotNull:
    """Takes the null out of ``T | None``: in a document only absence means nothing."""

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        schema = handler(source)
        if schema["type"] != "nullable":
            raise TypeError(f"expected an optional type, got {source!r}")
        inner: core_schema.CoreSchema = schema["schema"]
        return inner


class _Given:
    """Puts the mark on a member that the contract leaves optional and we always give."""

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {**handler(schema), GIVEN_MARK: True}


class NullMeans:
    """Annotates a member whose null, like its absence, stands for a default."""

    def __init__(self, default: object) -> None:
        self.default = default

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        default = self.default
        nullable = core_schema.nullable_schema(handler(source))
        return core_schema.no_info_after_validator_function(
            lambda value: default if value is None else value, nullable
        )


class _AnyText:
    """Lets text with lone surrogates into an answer, for ``scrubbed`` to mend.

    Whether pydantic's own text does depends on its other constraints, so this does not ask it.
    """

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(str)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {"type": "string"}


def _is_none(value: object) -> bool:
    return value is None


def _whole_number(value: object) -> object:
    """JSON Schema counts 1.0 among the integers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_INTEGRAL: Final[BeforeValidator] = BeforeValidator(_whole_number)

Omittable: TypeAlias = Annotated[T | None, _NotNull(), Field(exclude_if=_is_none)]
OrNull: TypeAlias = Annotated[T | None, Field(exclude_if=_is_none)]
Given: TypeAlias = Annotated[T, _Given()]

ListOf: TypeAlias = Annotated[list[T], Field(fail_fast=True)]
"""A list in a request; a long list of wrong entries is refused at the first one."""

Text: TypeAlias = Annotated[str, _AnyText()]
"""Text of an answer."""
Flag: TypeAlias = StrictBool
Integer: TypeAlias = Annotated[int, Field(strict=True), _INTEGRAL]
Offset: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=INT32_MAX), _INTEGRAL]
"""A whole number from 0 to 2^31-1: offsets, lengths and limits."""
Uuid: TypeAlias = Annotated[
    str,
    StringConstraints(
        strict=True,
        to_lower=True,
        pattern=r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
    ),
    WithJsonSchema({"type": "string", "format": "uuid"}),
]
"""A UUID as 36 characters; read in either case, kept in lower case so that equal ids are equal text."""


class Wire(BaseModel):
    """Base of everything that crosses the wire; immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        defer_build=True,
    )


class Request(Wire):
    """Base of what callers send: unknown members are refused, and nothing is converted."""

    model_config = ConfigDict(strict=True)


class Data(Wire):
    """Base of what callers receive.  Published open: later versions may add members."""

    may_be_null: ClassVar[bool] = True
    """Whether the contract lets an answer carry null in the place of this data (only read on a tool's own data)."""
    is_closed: ClassVar[bool] = False
    """Whether the published schema forbids members it does not name."""

    def wire(self) -> dict[str, object]:
        """The JSON object of this value: camelCase names, absent members left out, no lone surrogates."""
        return scrubbed(self.model_dump(mode="json"))


class Page(Data, Generic[T]):
    """A bounded list in an answer."""

    items: Given[OrNull[tuple[T, ...]]] = Field(description="The entries; absent when they cannot be known.")
    has_more: Given[bool] = Field(description="Whether entries beyond these exist.")
    total_count: OrNull[Integer] = Field(
        None, description="Size of the whole result, when known without more work."
    )
