"""From a symbol selector to one symbol: the word that stands for it, and what is declared there.

A place names the symbol of the word at it, wherever that is declared.  A documentation comment id names a declaration;
it is looked for among the declarations of the documents that hold its name, and must fit exactly one symbol.  Nothing
is guessed: what does not fit is ``SymbolNotFound``, and what fits twice ``SymbolAmbiguous``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import BridgeError
from bridge.identifiers import KEYWORDS, without_attribute_suffix
from bridge.spots import Spot, Texts
from bridge.words import Word
from lsp_client import navigation
from lsp_client.failures import DocumentNotSeen
from lsp_client.navigation import Declared
from lsp_client.session import Session


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol of the source.

    ``word`` is the one to ask about; ``declarations`` are those that the server names; ``declared`` is what the outline
    of its document has there, ``None`` for what no outline has (locals, parameters, type parameters, labels).
    ``asked_short`` says that it was asked for by the short form of an attribute's name.
    """

    name: str
    word: Spot
    declarations: tuple[Spot, ...]
    declared: Declared | None
    asked_short: bool
    is_outlined: bool
    """Whether the server has an outline of the document that declares it."""

    @property
    def is_type(self) -> bool:
        """Whether it is a class, struct, interface, enum or record."""
        return self.declared is not None and self.declared.kind in navigation.TYPE_KINDS

    @property
    def is_member(self) -> bool:
        """Whether it is a member of a type that is no type itself."""
        return (
            self.declared is not None and not self.is_type and self.declared.kind != navigation.NAMESPACE_KIND
        )

    @property
    def is_method(self) -> bool:
        """Whether it is a method of a type."""
        return self.declared is not None and self.declared.kind in navigation.METHOD_KINDS

    @property
    def is_property(self) -> bool:
        """Whether it is a property of a type."""
        return self.declared is not None and self.declared.kind == navigation.PROPERTY_KIND


class Outlines:
    """What documents declare, asked for once each; on the tree that the server is shown."""

    def __init__(self, session: Session, texts: Texts) -> None:
        self._session = session
        self._texts = texts
        self._known: dict[Path, tuple[Declared, ...]] = {}
        self.missing: set[Path] = set()
        """Files that were asked about, and for which the server has no single document."""

    async def of(self, path: Path) -> tuple[Declared, ...]:
        """The declarations of a file; empty where the server has no single document for it."""
        if path not in self._known:
            try:
                found = await navigation.declared_symbols(self._session, self._texts.document(path))
            except DocumentNotSeen:
                found = ()
                self.missing.add(path)
            self._known[path] = found
        return self._known[path]

    async def at(self, spot: Spot) -> Declared | None:
        """What is declared by a word."""
        for declared in await self.of(spot.path):
            start, end = self._texts.span(spot.path, declared.selection)
            if end == spot.end or (declared.kind == navigation.NAMESPACE_KIND and start < spot.end <= end):
                return declared
        return None

    def spot(self, path: Path, declared: Declared) -> Spot:
        """The word that a declaration names itself by."""
        return Spot(path, self._texts.span(path, declared.selection)[1])


def word_at(texts: Texts, path: Path, index: int) -> Word:
    """The word at a place of a file.  Raises ``SymbolNotFound``."""
    word = texts.word_at(path, index)
    text = texts.text(path)
    if word is None or text is None:
        raise _not_found("There is no name in code at this place.")
    if word.value in KEYWORDS and not text.text.startswith("@", word.start):
        raise _not_found(f"{word.value!r} is a keyword, which names no symbol.")
    return word


async def symbol_at(session: Session, texts: Texts, outlines: Outlines, spot: Spot) -> Symbol:
    """The symbol of a word, constructors standing for their type.

    Raises ``SymbolNotFound``, ``SymbolCannotBeRenamed`` for what no source declares, DocumentNotSeen, and the failures
    of a question.
    """
    word = texts.word_of(spot)
    if word is None:
        raise _not_found("There is no name in code at this place.")
    path, place = texts.question(spot)
    declarations = tuple(sorted(texts.spots(await navigation.definitions(session, path, place))))
    if not declarations:
        declarations = await _declared_uses(session, texts, outlines, spot, word)
    declared = await outlines.at(declarations[0])
    if declared is not None and declared.kind == navigation.CONSTRUCTOR_KIND and declared.around:
        declared = declared.around[-1]
        declarations = (outlines.spot(declarations[0].path, declared),)
    name = _declared_name(texts, declarations[0], word)
    anchor = declarations[0] if declared is not None else spot
    return Symbol(
        name,
        anchor,
        declarations,
        declared,
        asked_short=word.value != name,
        is_outlined=declarations[0].path not in outlines.missing,
    )


async def _declared_uses(
    session: Session, texts: Texts, outlines: Outlines, spot: Spot, word: Word
) -> tuple[Spot, ...]:
    """The declarations among the uses of a symbol whose definition the server does not name.

    Servers do not name that of a namespace, which has many, nor that of what an assembly declares, which has none here.
    """
    path, place = texts.question(spot)
    uses = sorted(texts.spots(await navigation.references(session, path, place)))
    if not uses:
        raise _not_found(f"The server knows no symbol for {word.value!r} at this place.")
    for use in uses:
        declared = await outlines.at(use)
        if declared is not None and declared.kind == navigation.NAMESPACE_KIND:
            return (use,)
    raise BridgeError(
        "SymbolCannotBeRenamed",
        f"{word.value!r} is declared in an assembly, not in the source of this workspace.",
    )


def _declared_name(texts: Texts, declaration: Spot, asked: Word) -> str:
    """The name at a declaration.  Raises ``SymbolNotFound`` where the word asked about is not that name."""
    word = texts.word_of(declaration)
    if word is None:
        raise _not_found(f"The server declares {asked.value!r} where there is no name.")
    if asked.value not in (word.value, without_attribute_suffix(word.value)):
        raise _not_found(f"{asked.value!r} stands for {word.value!r} here and is not its name.")
    return word.value


async def overloads_of(
    texts: Texts, outlines: Outlines, symbol: Symbol, paths: Sequence[Path]
) -> frozenset[Spot]:
    """The other methods of that name in the same type, by the words that declare them.

    ``paths`` are the files that may declare them.
    """
    if symbol.declared is None or not symbol.is_method:
        return frozenset()
    home = [around.name for around in symbol.declared.around]
    found = set()
    for path in paths:
        for declared in await outlines.of(path):
            if declared.kind in navigation.METHOD_KINDS and [a.name for a in declared.around] == home:
                spot = outlines.spot(path, declared)
                word = texts.word_of(spot)
                if word is not None and word.value == symbol.name:
                    found.add(spot)
    return frozenset(found - set(symbol.declarations))


def _not_found(message: str) -> BridgeError:
    return BridgeError("SymbolNotFound", message)
