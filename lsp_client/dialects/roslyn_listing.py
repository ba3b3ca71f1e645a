"""How a list of code actions is read that a server of Roslyn's dialect gives.

Actions are listed with groups (``data.NestedCodeActions``, already flat) and with a "Fix All" twin beside each action
that has one.  Here only the leaves remain, each with the scopes of its twin, and with what its groups say of it: a
leaf may name neither its kind nor its diagnostics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from lsp_client.dialects.base import FIX_ALL_SCOPES, ActionKind, ActionListing, ServerAction
from lsp_client.dialects.common import (
    TITLE_TAKEN,
    command_of,
    id_and_message_of,
    suppresses_or_configures,
    unusable,
)
from lsp_client.messages import CodeAction, Diagnostic, Range, decode, decode_optional

_DIAGNOSTIC_IN_TITLE: Final = re.compile(r"^(?:Suppress|Configure) (?P<id>[A-Za-z]+\d+)\b")

_GROUP: Final = "roslyn.client.nestedCodeAction"
_FIX_ALL: Final = "roslyn.client.fixAllCodeAction"


class _ActionData(msgspec.Struct, frozen=True, rename="pascal"):
    code_action_path: list[str] | None = None
    fix_all_flavors: list[str] | None = None
    nested_code_actions: list[msgspec.Raw] | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """One item of a list of actions, read but not yet judged."""

    raw: msgspec.Raw
    action: CodeAction
    data: _ActionData
    command: str | None
    inherited: tuple[Diagnostic, ...] | None
    kind: str | None

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.data.code_action_path or (self.action.title,))

    @property
    def is_group(self) -> bool:
        return self.command == _GROUP or bool(self.data.nested_code_actions)

    @property
    def is_fix_all(self) -> bool:
        return self.command == _FIX_ALL


def read_listing(
    raw: msgspec.Raw,
    place: Range,
    context: Sequence[Diagnostic] | None,
    edit_commands: frozenset[str] = frozenset(),
) -> ActionListing:
    """A list of actions as leaves.  ``context`` are the diagnostics that were sent along, ``None`` if unknown.

    ``edit_commands`` are those of the dialect.
    """
    entries = list(_leaves(decode_optional(raw, list[msgspec.Raw]) or (), None))
    twins = {_plain_path(entry.path): entry for entry in entries if entry.is_fix_all}
    paths = [entry.path for entry in entries if not entry.is_fix_all]
    actions: list[ServerAction] = []
    omitted: list[ServerAction] = []
    seen: set[tuple[str, ...]] = set()
    for entry in entries:
        if entry.is_fix_all:
            continue
        repeated = entry.path in seen
        seen.add(entry.path)
        action = _server_action(
            entry, place, context, twins.get(entry.path), ambiguous=paths.count(entry.path) > 1
        )
        reason = TITLE_TAKEN if repeated else unusable(entry.action, edit_commands)
        if reason is None:
            actions.append(action)
        else:
            omitted.append(replace(action, needs=reason))
    fixes = [action for action in actions if action.kind == "CodeFix"]
    return ActionListing(
        tuple(actions),
        tuple(omitted),
        diagnostics_known=all(fix.diagnostics is not None for fix in fixes),
        kinds_decided=not any(action.kind_inferred for action in actions),
    )


def _leaves(items: Iterable[msgspec.Raw], parent: _Entry | None) -> Iterator[_Entry]:
    for raw in items:
        entry = _read_entry(raw, parent)
        if entry.is_group:
            yield from _leaves(entry.data.nested_code_actions or (), entry)
        else:
            yield entry


def _read_entry(raw: msgspec.Raw, parent: _Entry | None) -> _Entry:
    action = decode(raw, CodeAction)
    data = (
        _ActionData() if action.data is None else decode_optional(action.data, _ActionData) or _ActionData()
    )
    inherited = parent.inherited if parent is not None else None
    if action.diagnostics is not None:
        inherited = tuple(action.diagnostics)
    kind = action.kind or (parent.kind if parent is not None else None)
    return _Entry(raw, action, data, command_of(action), inherited, kind)


def _server_action(
    entry: _Entry, place: Range, context: Sequence[Diagnostic] | None, twin: _Entry | None, *, ambiguous: bool
) -> ServerAction:
    kind, inferred = _kind(entry)
    if suppresses_or_configures(entry.path):
        twin = None
    scopes = (twin.data.fix_all_flavors or ()) if twin is not None else ()
    belongs_to = () if kind == "Refactoring" else _diagnostics(entry, context)
    return ServerAction(
        title=entry.action.title,
        title_path=entry.path,
        kind=kind,
        kind_inferred=inferred,
        diagnostics=None if belongs_to is None else id_and_message_of(belongs_to),
        range=place,
        fix_all_scopes=tuple(scope for scope in FIX_ALL_SCOPES if scope in scopes),
        payload=entry.raw,
        is_preferred=bool(entry.action.is_preferred),
        ambiguous=ambiguous,
        fix_all_payload=twin.raw if twin is not None else None,
        place=belongs_to[0].range if belongs_to else None,
    )


def _kind(entry: _Entry) -> tuple[ActionKind, bool]:
    kind = entry.kind or ""
    if kind == "quickfix" or kind.startswith("quickfix."):
        return "CodeFix", False
    if kind.startswith(("refactor", "source")):
        return "Refactoring", False
    return ("CodeFix" if entry.inherited else "Refactoring"), True


def _diagnostics(entry: _Entry, context: Sequence[Diagnostic] | None) -> tuple[Diagnostic, ...] | None:
    """What a fix belongs to: the server's own list, else the id that its menu names, else unknown.

    An empty list of the server means that the fix belongs to something we did not send along, a hidden diagnostic
    for instance: which one cannot be known.
    """
    if entry.inherited:
        return entry.inherited
    for title in entry.path[1:]:
        if found := _DIAGNOSTIC_IN_TITLE.match(title):
            return tuple(item for item in context or () if item.id == found["id"]) or None
    return None


def _plain_path(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path of the action whose twin this is: builds differ in whether the twin's own path has the prefix."""
    return (*path[:-1], path[-1].removeprefix("Fix All: "))
