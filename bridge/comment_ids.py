"""From a documentation comment id (``M:Shop.Cart.Add(System.Int32)``) to the word that declares the symbol.

The id names a declaration by kind, full name and parameter types.  The documents that hold the name are asked what they
declare; kind, names around it and number of type parameters must be equal, and parameter types must agree as far as
source tells: source may write ``int`` for ``System.Int32`` and leave namespaces out, and a type parameter has no name
in an id.  So several methods can fit, and then the id is ``SymbolAmbiguous``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anyio import to_thread

from bridge.bindings import uses_of
from bridge.errors import BridgeError
from bridge.identifiers import value_of
from bridge.questions import ask
from bridge.resolution import matching_projects
from bridge.spots import Spot, Texts, documents_with
from bridge.symbols import Outlines
from bridge.words import Word
from bridge.workspace import Workspace
from lsp_client import navigation
from lsp_client.navigation import Declared
from lsp_client.session import Session
from schemas.selectors import ProjectSelector

_ID: Final = re.compile(r"(?P<kind>[TMPFEN]):(?P<name>[^()~]+)(?:\((?P<parameters>.*)\))?(?:~.*)?")
_SEGMENT: Final = re.compile(r"(?P<name>[^`]+)(?:``?(?P<arity>\d+))?")

_KINDS: Final[Mapping[str, frozenset[int]]] = {
    "T": navigation.TYPE_KINDS | navigation.METHOD_KINDS,
    "M": navigation.METHOD_KINDS,
    "P": frozenset({7}),
    "F": frozenset({8, 13, 14, 22}),
    "E": frozenset({24}),
    "N": frozenset({navigation.NAMESPACE_KIND}),
}
"""Kinds of the outline for each letter; a delegate is a type to the id and may be a function to a server."""

_ALIASES: Final = {
    "bool": "Boolean",
    "byte": "Byte",
    "sbyte": "SByte",
    "char": "Char",
    "decimal": "Decimal",
    "double": "Double",
    "float": "Single",
    "int": "Int32",
    "uint": "UInt32",
    "nint": "IntPtr",
    "nuint": "UIntPtr",
    "long": "Int64",
    "ulong": "UInt64",
    "short": "Int16",
    "ushort": "UInt16",
    "object": "Object",
    "string": "String",
    "dynamic": "Object",
}
_ATTRIBUTES: Final = re.compile(r"\s*(?:\[[^\]]*\]\s*)+")
_MODIFIERS: Final = re.compile(r"\b(?:ref|out|in|this|params|scoped|readonly)\b\s*")


@dataclass(frozen=True, slots=True)
class CommentId:
    """An id, taken apart: names with their numbers of type parameters, the outermost first."""

    kind: str
    segments: tuple[tuple[str, int], ...]
    parameters: tuple[str, ...] | None

    @property
    def name(self) -> str:
        """The symbol's own name."""
        return self.segments[-1][0]


def read_comment_id(text: str) -> CommentId:
    """Raises ``SymbolSelectorInvalid``, also for what is declared by no name of its own (``#ctor``, operators, indexers).

    Nested types may be set apart by ``+`` as well, which is how reflection writes them.
    """
    found = _ID.fullmatch(text)
    segments = [_SEGMENT.fullmatch(part) for part in re.split(r"[.+]", found["name"])] if found else [None]
    if found is None or None in segments:
        raise BridgeError("SymbolSelectorInvalid", f"{text[:200]!r} is no documentation comment id.")
    parameters = found["parameters"]
    is_indexer = found["kind"] == "P" and bool(parameters)
    if "#" in found["name"] or is_indexer or segments[-1] is None or segments[-1]["name"].startswith("op_"):
        raise BridgeError(
            "SymbolSelectorInvalid",
            "A constructor, an operator, an indexer or an explicit implementation has no name of its own.",
        )
    return CommentId(
        found["kind"],
        tuple((part["name"], int(part["arity"] or 0)) for part in segments if part is not None),
        None if found["kind"] not in "MP" else tuple(_split(parameters or "")),
    )


def _split(parameters: str) -> list[str]:
    """A list's parts; commas inside of brackets do not separate."""
    parts: list[str] = []
    depth, start = 0, 0
    for place, character in enumerate(parameters):
        depth += (character in "{<([") - (character in "}>)]")
        if character == "," and depth == 0:
            parts.append(parameters[start:place])
            start = place + 1
    return [part.strip() for part in (*parts, parameters[start:]) if part.strip()]


async def spot_of_comment_id(workspace: Workspace, text: str, project: ProjectSelector | None) -> Spot:
    """The word that declares the one symbol with this id.  Needs a lease.

    Raises ``SymbolSelectorInvalid``, ``SymbolNotFound``, ``SymbolAmbiguous``, the codes of a project, and the failures
    of a question.
    """
    wanted = read_comment_id(text)
    tree = workspace.overlay
    texts = Texts(workspace, tree)
    paths = await to_thread.run_sync(documents_with, workspace, tree, (wanted.name,))
    if project is not None:
        ids = {found.id for found in matching_projects(workspace, project)}
        paths = tuple(
            path
            for path in paths
            if any(found.id in ids for found in workspace.structure.compiling(texts.document(path)))
        )

    async def question(session: Session) -> Spot:
        outlines = Outlines(session, texts)
        fitting = [spot for path in paths for spot in await _declared_in(texts, outlines, path, wanted)]
        if not fitting:
            raise BridgeError(
                "SymbolNotFound",
                f"No document's outline declares {text[:200]!r}. What no outline has (such as a parameter of a record) "
                "is named by its place: location.span or location.selection, with the document's path.",
            )
        if len(fitting) > 1 and not (await uses_of(session, texts, fitting[0])).issuperset(fitting):
            places = ", ".join(texts.place(spot) for spot in fitting[:10])
            raise BridgeError(
                "SymbolAmbiguous", f"{text[:200]!r} may be any of {places}; name it by its place."
            )
        return fitting[0]

    return await ask(workspace, question)


async def _declared_in(texts: Texts, outlines: Outlines, path: Path, wanted: CommentId) -> list[Spot]:
    found = []
    for declared in await outlines.of(path):
        if declared.kind not in _KINDS[wanted.kind]:
            continue
        if wanted.kind == "N":
            found += _namespace_word(texts, path, declared, [name for name, _ in wanted.segments])
        elif _segments(texts, path, declared) == list(wanted.segments):
            spot = outlines.spot(path, declared)
            if wanted.parameters is None or _parameters_agree(texts, spot, wanted.parameters):
                found.append(spot)
    return found


def _segments(texts: Texts, path: Path, declared: Declared) -> list[tuple[str, int]]:
    """Names and numbers of type parameters of a declaration and of what is around it, as the text has them."""
    found: list[tuple[str, int]] = []
    text = texts.text(path)
    for part in (*declared.around, declared):
        if part.kind == navigation.NAMESPACE_KIND:
            found += [(word.value, 0) for word in _namespace_words(texts, path, part)]
        elif text is not None:
            start, end = texts.span(path, part.selection)
            found.append((value_of(text.text[start:end]), _arity(text.text, end)))
    return found


def _namespace_words(texts: Texts, path: Path, declared: Declared) -> list[Word]:
    """The names of one declaration of a namespace.

    For ``namespace A.B`` servers have one symbol, named ``B`` or ``A.B``, whose place is the whole ``A.B``.
    """
    start, end = texts.span(path, declared.selection)
    return [word for word in texts.scan(path).words if start <= word.start and word.end <= end]


def _namespace_word(texts: Texts, path: Path, declared: Declared, wanted: list[str]) -> list[Spot]:
    """The word for a namespace in a declaration that may declare several, ``A`` and ``A.B``; none when it is not there."""
    around = [name for part in declared.around for name in _namespace_words(texts, path, part)]
    own = _namespace_words(texts, path, declared)
    names = [word.value for word in (*around, *own)][: len(wanted)]
    at = len(wanted) - len(around) - 1
    return [Spot(path, own[at].end)] if names == wanted and at >= 0 else []


def _arity(text: str, end: int) -> int:
    """How many type parameters follow a declared name."""
    list_of_them = re.compile(r"\s*<([^>]*)>").match(text, end)
    return 0 if list_of_them is None else list_of_them[1].count(",") + 1


def _parameters_agree(texts: Texts, spot: Spot, wanted: tuple[str, ...]) -> bool:
    text = texts.text(spot.path)
    if text is None:
        return False
    opening = re.compile(r"\s*(?:<[^>]*>)?\s*[(\[]").match(text.text, spot.end)
    if opening is None:
        return not wanted
    written = _split(text.text[opening.end() : _closing(text.text, opening.end())])
    return len(written) == len(wanted) and all(
        _type_agrees(source, name) for source, name in zip(written, wanted, strict=True)
    )


def _closing(text: str, at: int) -> int:
    depth = 1
    for place in range(at, len(text)):
        depth += (text[place] in "([") - (text[place] in ")]")
        if depth == 0:
            return place
    return len(text)


def _type_agrees(parameter: str, wanted: str) -> bool:
    """Whether a parameter as it is written can be one of that type."""
    behind = _ATTRIBUTES.match(parameter)
    bare = parameter if behind is None else parameter[behind.end() :]
    plain = " ".join(_MODIFIERS.sub("", bare.partition("=")[0]).split())
    source = _simple(plain.rpartition(" ")[0].rstrip("?*"))
    name = _simple(wanted.rstrip("@*").replace("{", "<").replace("}", ">").replace("0:", ""))
    is_type_parameter = "`" in name
    return is_type_parameter or name in {source, f"Nullable<{source}>"}


def _simple(name: str) -> str:
    """A type without namespaces, blanks, marks of nullable references, and keywords for types."""
    parts = re.split(r"([<>,\[\]])", name.replace(" ", "").replace("global::", "").replace("?", ""))
    simple = (part.rpartition(".")[2] for part in parts)
    return "".join(_ALIASES.get(part, part) for part in simple)
