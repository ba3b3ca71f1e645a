"""The parts of LSP messages that we read, as msgspec structs, and the one way to decode them.

Only fields that are read have a name here; everything else in a message is skipped, so a server may send
more than the protocol knows.  Enumerations stay plain numbers and strings: one unknown tag must not spoil a
whole report.  What has to go back to the server as it came (a code action, its ``data``) stays
``msgspec.Raw``: the very bytes.

``decode`` has two speeds.  msgspec reads the JSON of almost every message.  Where it refuses what JSON in the
field contains all the same (escapes of lone surrogates, NaN, a byte order mark), the standard library's
parser, which takes them, does the work, and the result is converted.  Strings may then hold lone surrogates;
they are kept, because replacing a character inside an edit would change what is written to a file.

Positions are zero-based lines and zero-based UTF-16 columns, as on the wire.
"""

import json
from collections.abc import Mapping
from typing import TypeAlias, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec import inspect as shapes

from lsp_client.errors import ProtocolViolation

T = TypeVar("T")

ABSENT = Raw(b"null")
"""What handlers get for params or a result that the message did not have."""


# --- places and edits -------------------------------------------------------------------------------------


class Position(Struct, frozen=True, order=True):
    """A place between two characters: zero-based ``line``, zero-based ``character`` in UTF-16 units."""

    line: int
    character: int


class Range(Struct, frozen=True):
    """From ``start`` up to, not including, ``end``."""

    start: Position
    end: Position


class Location(Struct, frozen=True):
    """A range in a document."""

    uri: str
    range: Range


class TextEdit(Struct, frozen=True, rename="camel"):
    """One replacement.  Either ``new_text`` is set or the edit is a snippet, which is no text to write."""

    range: Range
    new_text: str | UnsetType = UNSET
    snippet: object | UnsetType = UNSET
    insert_text_format: int | None = None

    def __post_init__(self) -> None:
        if self.new_text is UNSET and self.snippet is UNSET:
            raise ValueError("Object missing required field `newText`")

    @property
    def is_snippet(self) -> bool:
        """The text has placeholders: it must not reach a file."""
        return self.new_text is UNSET or self.snippet is not UNSET or self.insert_text_format == 2


class FormattingOptions(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a caller wants text formatted; servers of Roslyn let ``.editorconfig`` win.  Absent: not asked for."""

    # msgspec leaves out what equals its default, and the protocol demands these two.
    tab_size: int
    insert_spaces: bool
    trim_trailing_whitespace: bool | None = None
    insert_final_newline: bool | None = None


class VersionedDocument(Struct, frozen=True):
    """A document an edit was made for; ``version`` is None when the server names none."""

    uri: str
    version: int | None = None


class TextDocumentEdit(Struct, frozen=True, rename="camel"):
    """Edits of one document, all in coordinates of its old text."""

    text_document: VersionedDocument
    edits: list[TextEdit]


class FileOptions(Struct, frozen=True, rename="camel"):
    """What an operation on a file may do; absent means no."""

    overwrite: bool | None = None
    ignore_if_exists: bool | None = None
    recursive: bool | None = None
    ignore_if_not_exists: bool | None = None


NO_OPTIONS = FileOptions()


class CreateFile(Struct, frozen=True):
    """Make an empty file."""

    uri: str
    options: FileOptions = NO_OPTIONS


class RenameFile(Struct, frozen=True):
    """Move a file."""

    old_uri: str
    new_uri: str
    options: FileOptions = NO_OPTIONS


class DeleteFile(Struct, frozen=True):
    """Remove a file."""

    uri: str
    options: FileOptions = NO_OPTIONS


DocumentChange: TypeAlias = TextDocumentEdit | CreateFile | RenameFile | DeleteFile


class _WireChange(Struct, frozen=True, rename="camel"):
    """Any member of ``documentChanges``: the wire tells text edits from operations by ``kind`` alone."""

    kind: str | None = None
    text_document: VersionedDocument | None = None
    edits: list[TextEdit] | None = None
    uri: str | None = None
    old_uri: str | None = None
    new_uri: str | None = None
    options: FileOptions | None = None

    def typed(self) -> DocumentChange:
        """The change as the type its kind names; raises ProtocolViolation when it is none or lacks a part."""
        options = self.options or NO_OPTIONS
        match self:
            case _WireChange(kind=None, text_document=VersionedDocument() as document, edits=list() as edits):
                return TextDocumentEdit(document, edits)
            case _WireChange(kind="create", uri=str() as uri):
                return CreateFile(uri, options)
            case _WireChange(kind="rename", old_uri=str() as old_uri, new_uri=str() as new_uri):
                return RenameFile(old_uri, new_uri, options)
            case _WireChange(kind="delete", uri=str() as uri):
                return DeleteFile(uri, options)
            case _:
                raise ProtocolViolation(f"a document change of kind {self.kind!r} lacks a part or is unknown")


class WorkspaceEdit(Struct, frozen=True, rename="camel"):
    """A change of several files.  ``operations`` is the way to read it."""

    changes: dict[str, list[TextEdit]] | None = None
    document_changes: list[_WireChange] | None = None

    def operations(self) -> tuple[DocumentChange, ...]:
        """What to do, in order.  ``documentChanges`` wins over ``changes``, as the protocol demands.

        Raises ProtocolViolation for an operation of an unknown kind.
        """
        if self.document_changes is not None:
            return tuple(change.typed() for change in self.document_changes)
        return tuple(
            TextDocumentEdit(VersionedDocument(uri), edits) for uri, edits in (self.changes or {}).items()
        )


# --- diagnostics and code actions -------------------------------------------------------------------------


class Diagnostic(Struct, frozen=True):
    """A problem at a place.  ``severity``: 1 error, 2 warning, 3 information, 4 hint, other numbers unknown."""

    range: Range
    message: str = ""
    severity: int | None = None
    code: int | str | None = None
    source: str | None = None

    @property
    def id(self) -> str | None:
        """The code as text, ``CS0103``."""
        return None if self.code is None else str(self.code)


class DiagnosticReport(Struct, frozen=True, rename="camel"):
    """An answer to a diagnostic pull: ``full`` with items, or ``unchanged``."""

    kind: str = "full"
    items: list[Diagnostic] | None = None


class Command(Struct, frozen=True):
    """A command of the server or, with Roslyn, of the client."""

    command: str
    title: str = ""
    arguments: list[Raw] | None = None


class Disabled(Struct, frozen=True):
    """Why an action cannot be taken."""

    reason: str = ""


class CodeAction(Struct, frozen=True, rename="camel"):
    """What a listing shows of one action.  The action itself goes back as the Raw it was read from."""

    title: str
    kind: str | None = None
    diagnostics: list[Diagnostic] | None = None
    is_preferred: bool | None = None
    disabled: Disabled | None = None
    edit: WorkspaceEdit | None = None
    # Not ``Raw | None``: msgspec would read nothing but null into that.
    raw_command: Raw = msgspec.field(default=ABSENT, name="command")
    raw_data: Raw = msgspec.field(default=ABSENT, name="data")

    @property
    def command(self) -> Raw | None:
        """Raw because it is a string in a bare Command and an object in a CodeAction; None for null or absent."""
        return None if is_null(self.raw_command) else self.raw_command

    @property
    def data(self) -> Raw | None:
        """What the server keeps in the action for itself; None for null or absent."""
        return None if is_null(self.raw_data) else self.raw_data


# --- life of a session ------------------------------------------------------------------------------------


class ServerInfo(Struct, frozen=True):
    """How the server calls itself."""

    name: str = ""
    version: str | None = None


class InitializeResult(Struct, frozen=True, rename="camel"):
    """The answer to ``initialize``."""

    capabilities: dict[str, Raw]
    server_info: ServerInfo | None = None


class LoggedMessage(Struct, frozen=True):
    """``window/logMessage`` and ``window/showMessage``: 1 error, 2 warning, 3 info, 4 log, 5 debug."""

    message: str = ""
    type: int = 4


class ProgressParams(Struct, frozen=True):
    """``$/progress``."""

    token: int | str
    value: Raw = ABSENT


class WorkDoneProgress(Struct, frozen=True):
    """The value of work-done progress: ``begin``, ``report`` or ``end``; ``percentage`` is 0 to 100."""

    kind: str
    title: str | None = None
    message: str | None = None
    percentage: int | float | None = None


class ConfigurationItem(Struct, frozen=True, rename="camel"):
    """One setting the server asks for."""

    section: str | None = None


class ConfigurationParams(Struct, frozen=True):
    """``workspace/configuration``."""

    items: list[ConfigurationItem]


class Registration(Struct, frozen=True, rename="camel"):
    """One capability registered later."""

    id: str
    method: str
    register_options: Raw = ABSENT


class DiagnosticRegistration(Struct, frozen=True):
    """The options of a registration for ``textDocument/diagnostic``."""

    identifier: str | None = None


class RegistrationParams(Struct, frozen=True):
    """``client/registerCapability``."""

    registrations: list[Registration]


# --- decoding ---------------------------------------------------------------------------------------------


def decode(raw: Raw | bytes, shape: type[T]) -> T:
    """The JSON in ``raw`` as ``shape``.  Raises ProtocolViolation when it is no JSON or has another form.

    Strings may hold lone surrogates (see ``scrub``).
    """
    try:
        # The table cannot say that the decoder under a shape makes values of that shape.
        return cast(T, _decoder(shape).decode(raw))
    except msgspec.ValidationError as error:
        raise ProtocolViolation(f"unexpected form of {_name(shape)}: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_tolerantly(bytes(raw), shape)


def decode_optional(raw: Raw | bytes, shape: type[T]) -> T | None:
    """As ``decode``, with None for ``null``."""
    return None if is_null(raw) else decode(raw, shape)


def is_null(raw: Raw | bytes) -> bool:
    """Whether the JSON is ``null``, which is also what stands for an absent part."""
    return bytes(raw).strip() == b"null"


def decode_plain(raw: Raw | bytes) -> object:
    """The JSON in ``raw`` as dicts, lists, strings, numbers, booleans, None.  Raises ProtocolViolation."""
    return decode(raw, object)


def encode(value: object) -> bytes:
    """``value`` as JSON; Raw parts go out byte for byte.

    Raises ValueError or TypeError for what has no JSON, a string with a lone surrogate among them.
    """
    return _ENCODER.encode(value)


def parse_tolerantly(data: bytes) -> object:
    """Plain JSON as the standard library reads it: lone surrogates, NaN, a byte order mark are taken.

    Raises ProtocolViolation when it is no JSON.
    """
    try:
        parsed: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProtocolViolation(f"not JSON: {error}") from error
    return parsed


def raw_of(value: object) -> Raw:
    """Plain JSON values as Raw; lone surrogates become escapes again."""
    return Raw(json.dumps(value).encode("ascii"))


_ENCODER = msgspec.json.Encoder()


_DECODERS: dict[object, msgspec.json.Decoder[object]] = {}  # as many as there are shapes in the source


def _decoder(shape: type[T]) -> msgspec.json.Decoder[object]:
    decoder = _DECODERS.get(shape)
    if decoder is None:
        decoder = _DECODERS[shape] = msgspec.json.Decoder(shape)
    return decoder


def _decode_tolerantly(data: bytes, shape: type[T]) -> T:
    parsed = parse_tolerantly(data)
    try:
        return msgspec.convert(_with_raw_parts(shapes.type_info(shape), parsed), shape)
    except msgspec.ValidationError as error:
        raise ProtocolViolation(f"unexpected form of {_name(shape)}: {error}") from error


def _with_raw_parts(info: shapes.Type, value: object) -> object:
    """``value`` with those parts turned into Raw that ``info`` wants raw: ``convert`` does not do that.

    Parts that do not fit are left as they are, for ``convert`` to complain about.
    """
    match info, value:
        case shapes.RawType(), _:
            return raw_of(value)
        case shapes.UnionType(types=types), _ if value is not None:
            for member in types:
                value = _with_raw_parts(member, value)
            return value
        case shapes.ListType(item_type=item), list():
            return [_with_raw_parts(item, part) for part in value]
        case shapes.DictType(value_type=item), dict():
            return {name: _with_raw_parts(item, part) for name, part in value.items()}
        case shapes.StructType(fields=fields), dict():
            return value | _raw_fields(fields, value)
        case _:
            return value


def _raw_fields(fields: tuple[shapes.Field, ...], value: Mapping[str, object]) -> dict[str, object]:
    return {
        field.encode_name: _with_raw_parts(field.type, value[field.encode_name])
        for field in fields
        if field.encode_name in value
    }


def _name(shape: object) -> str:
    return getattr(shape, "__name__", None) or str(shape)
