"""What the language takes from a name beside its uses, looked for in the projects that a rename concerns.

The shapes are in ``bound_by_name`` and ``untold_uses``; here is which of them a symbol can meet, and in which files.
All of it reads files; for a worker thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridge.bound_by_name import (
    inferred_name,
    is_member_access,
    is_positional,
    named_in_attributes,
    native_name,
    taken_property,
)
from bridge.code_text import Code
from bridge.spots import Spot, Texts
from bridge.symbols import Symbol
from bridge.untold_uses import NAMES, untold_use
from bridge.validation_gate import created_in, projects_concerned
from bridge.workspace import Workspace
from lsp_client.navigation import Declared

_DERIVED: Final = re.compile(r"\b(?:class|struct|interface|record)\s+@?\w[^{;]*:")
"""A type with a base list, or with a constraint, which does no harm."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """A planned rename: ``files`` hold one of the names, ``changed`` are those that the edit changes."""

    symbol: Symbol
    new_name: str
    uses: frozenset[Spot]
    files: tuple[Path, ...]
    changed: tuple[Path, ...]
    unsearched: Mapping[Path, str]
    """Staged new files in which the server finds no uses, and why."""
    is_in_strings: bool = False
    """Whether strings with the old name are given the new one too."""

    @property
    def names(self) -> tuple[str, str]:
        """The old name and the new one."""
        return (self.symbol.name, self.new_name)


def by_name(workspace: Workspace, texts: Texts, renaming: Renaming) -> tuple[str, ...]:
    """What would mean something else because of the name alone, as halves of sentences."""
    concerned = _concerned(workspace, renaming)
    sources = [_code(workspace, texts, path) for path in renaming.files if path in concerned]
    return (
        *_program_start(workspace, texts, renaming),
        *_inferred(texts, renaming, sources),
        *_declared(workspace, texts, renaming, sources),
    )


def by_syntax(workspace: Workspace, texts: Texts, renaming: Renaming) -> str | None:
    """Why uses that nobody wrote may not be told of; ``None`` when there is no such syntax."""
    if NAMES.isdisjoint(renaming.names) or not _can_be_used_by_syntax(workspace, texts, renaming.symbol):
        return None
    paths = sorted(_concerned(workspace, renaming))
    return untold_use(renaming.names, (_code(workspace, texts, path) for path in paths))


def in_unsearched(workspace: Workspace, texts: Texts, renaming: Renaming) -> str | None:
    """Why a staged new file may use the symbol without writing its name, where the server finds no uses in that file."""
    symbol = renaming.symbol
    if not symbol.is_member and not _can_be_used_by_syntax(workspace, texts, symbol):
        return None
    for path in sorted(renaming.unsearched.keys() & _concerned(workspace, renaming)):
        code = _code(workspace, texts, path)
        if not NAMES.isdisjoint(renaming.names):
            how = f"Syntax in {code.label} may use {min(NAMES.intersection(renaming.names))!r}"
        elif _DERIVED.search(code.code):
            how = f"A type in {code.label} has a base, and may override or implement a member by it"
        else:
            continue
        return f"{how} unseen, for no uses are found in that staged new file ({renaming.unsearched[path]})"
    return None


def has_modifier(modifier: str, texts: Texts, spot: Spot, declared: Declared | None) -> bool:
    """Whether a word stands before a declared name in its declaration; not for what no outline has."""
    if declared is None:
        return False
    start, _ = texts.span(spot.path, declared.range)
    return any(w.value == modifier and start <= w.start < spot.end for w in texts.scan(spot.path).words)


def _concerned(workspace: Workspace, renaming: Renaming) -> frozenset[Path]:
    """The files of the projects with a changed file and of those that reference them."""
    links = workspace.load.links
    names = [name for path in renaming.changed for name in links.names(path)]
    projects = projects_concerned(workspace.structure, names)
    documents = {links.physical(document.path) for project in projects for document in project.documents}
    created = created_in(workspace.structure, workspace.overlay, projects)
    return frozenset(documents.union(renaming.changed, created))


def _code(workspace: Workspace, texts: Texts, path: Path) -> Code:
    text = texts.text(path)
    return Code(path, workspace.relative(path), "" if text is None else text.text, texts.scan(path))


def _can_be_used_by_syntax(workspace: Workspace, texts: Texts, symbol: Symbol) -> bool:
    """Methods and properties, and what may be one where the server has no outline."""
    if symbol.is_method or symbol.is_property or not symbol.is_outlined:
        return True
    return any(
        is_positional(_code(workspace, texts, spot.path), start, spot.end)
        for spot, start in _starts(texts, symbol.declarations)
    )


def _starts(texts: Texts, spots: Iterable[Spot]) -> Iterator[tuple[Spot, int]]:
    for spot in spots:
        word = texts.word_of(spot)
        if word is not None:
            yield spot, word.start


def _program_start(workspace: Workspace, texts: Texts, renaming: Renaming) -> Iterator[str]:
    symbol = renaming.symbol
    if renaming.new_name != "Main" or not symbol.is_method:
        return
    if not has_modifier("static", texts, symbol.word, symbol.declared):
        return
    for project in workspace.structure.compiling(texts.document(symbol.word.path)):
        kind = project.properties.get("OutputType", "")
        if kind.casefold() != "library":
            yield (
                f"{texts.place(symbol.word)} would be a static method 'Main', which a program starts with, and "
                f"{project.name} {'is' if kind else 'may be'} a program"
            )
            return


def _inferred(texts: Texts, renaming: Renaming, sources: Iterable[Code]) -> Iterator[str]:
    """Members whose names are inferred from the renamed word.

    Those of a tuple exist in the source only, so they matter where one of the names is used as a member.
    """
    if renaming.symbol.is_type:
        return
    known = {source.path: source for source in sources}
    is_used: bool | None = None
    for spot, start in _starts(texts, sorted(renaming.uses)):
        source = known.get(spot.path)
        found = None if source is None else inferred_name(source, start, spot.end)
        if source is None or found is None:
            continue
        if found == "tuple" and is_used is None:
            is_used = any(is_member_access(other, renaming.names) for other in known.values())
        if found == "anonymous type" or is_used:
            yield f"its name is inferred as a member name of the {found} at {source.place(start)}"


def _declared(
    workspace: Workspace, texts: Texts, renaming: Renaming, sources: Iterable[Code]
) -> Iterator[str]:
    """What the declaration itself and attributes anywhere take from the name."""
    all_sources = tuple(sources)
    is_member = renaming.symbol.is_property or renaming.symbol.declared is None
    parameter = None
    for spot, start in _starts(texts, renaming.symbol.declarations):
        source = _code(workspace, texts, spot.path)
        parameter = (source, start)
        native = native_name(source, start, spot.end)
        if native is not None:
            yield native
        taken = taken_property(source, start, spot.end, renaming.names, all_sources)
        if taken is not None and is_member:
            yield taken
    left = (renaming.new_name,) if renaming.is_in_strings else renaming.names
    yield from named_in_attributes(left, all_sources, parameter)
