"""How fixes and refactorings are told apart in a list of csharp-ls, which marks neither.

A list holds all refactorings first and all fixes after them.  Fixes come only from compiler diagnostics that touch
the range, so without one there is no fix.  With one, the border is found by asking a second time for a place that
has the same diagnostics but other refactorings: the whole document (or, when that was asked for, just the span of
the diagnostics).  What a diagnostic offers does not depend on the range asked for, while hardly a refactoring fits
both a caret and a whole file.  So the fixes are the longest tail of the list whose titles occur in the second list.
The few refactorings that do fit both are known and left out of the comparison.  A title that the server itself
marks, or that belongs to one kind by its nature, settles its side of the border.  When the second question fails,
the kinds are likely ones, and the listing says that it is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from lsp_client.dialects.base import ActionListing, ServerAction
from lsp_client.dialects.common import TITLE_TAKEN, id_and_message_of, unusable
from lsp_client.messages import CodeAction, Diagnostic, Range

REMOVE_USINGS: Final = "Remove unnecessary usings"
UNUSED_USING: Final = "CS8019"
"""Hidden, and so not always among the pulled diagnostics; the server maps it to that one fix."""

_WIDE_REFACTORINGS: Final = re.compile(r"^(?:Encapsulate fields?\b|Sort Usings$)")
"""Refactorings that fit a caret as well as a whole document."""


@dataclass(frozen=True, slots=True)
class Offer:
    """One action as listed."""

    raw: msgspec.Raw
    action: CodeAction

    @property
    def is_marked_fix(self) -> bool:
        """The server says it, or the title cannot be anything else."""
        return (self.action.kind or "").startswith("quickfix") or self.action.title == REMOVE_USINGS


def classify(
    offers: Sequence[Offer],
    place: Range,
    near: Sequence[Diagnostic],
    comparison: frozenset[str] | None,
    edit_commands: frozenset[str] = frozenset(),
) -> ActionListing:
    """The listing of these offers: kinds by the rule at the top, diagnostics where there is only one they can be of.

    ``near`` are the diagnostics that touch the place; ``comparison`` the titles of the second list, empty when there
    was no diagnostic to ask about, ``None`` when the second question failed.  ``edit_commands`` are the dialect's.
    """
    offers = _usings_once(offers)
    border = _border(offers, comparison if near else frozenset())
    ids = {item.id for item in near}
    only = id_and_message_of(near) if len(ids) == 1 else None
    titles = [offer.action.title for offer in offers]
    actions: list[ServerAction] = []
    omitted: list[ServerAction] = []
    for index, offer in enumerate(offers):
        title = offer.action.title
        action = _server_action(
            offer, place, is_fix=index >= border or offer.is_marked_fix, only=only, near=near
        )
        action = replace(action, ambiguous=titles.count(title) > 1)
        reason = TITLE_TAKEN if title in titles[:index] else unusable(offer.action, edit_commands)
        if reason is None:
            actions.append(action)
        else:
            omitted.append(replace(action, needs=reason))
    return ActionListing(
        tuple(actions),
        tuple(omitted),
        diagnostics_known=all(a.diagnostics is not None for a in actions if a.kind == "CodeFix"),
        kinds_decided=comparison is not None or not near,
    )


def _usings_once(offers: Sequence[Offer]) -> list[Offer]:
    """Removing usings is listed once for each using, and mends the whole document each time: it is one action."""
    first = next((offer for offer in offers if offer.action.title == REMOVE_USINGS), None)
    return [offer for offer in offers if offer is first or offer.action.title != REMOVE_USINGS]


def _border(offers: Sequence[Offer], comparison: frozenset[str] | None) -> int:
    """The index of the first fix.  Without a second list: the first one that can be nothing else."""
    marked = next((i for i, offer in enumerate(offers) if offer.is_marked_fix), len(offers))
    if comparison is None:
        return marked
    border = len(offers)
    while border > 0 and _in_both(offers[border - 1], comparison):
        border -= 1
    return min(border, marked)


def _in_both(offer: Offer, comparison: frozenset[str]) -> bool:
    title = offer.action.title
    return offer.is_marked_fix or (title in comparison and not _WIDE_REFACTORINGS.match(title))


def _server_action(
    offer: Offer,
    place: Range,
    *,
    is_fix: bool,
    only: tuple[tuple[str, str], ...] | None,
    near: Sequence[Diagnostic],
) -> ServerAction:
    title = offer.action.title
    diagnostics: tuple[tuple[str, str], ...] | None = ()
    of_diagnostic: Range | None = None
    if is_fix:
        diagnostics = only
        of_diagnostic = near[0].range if len(near) == 1 else None
        if title == REMOVE_USINGS:
            unused = [item for item in near if item.id == UNUSED_USING]
            diagnostics = id_and_message_of(unused) or ((UNUSED_USING, ""),)
            of_diagnostic = unused[0].range if unused else None
    return ServerAction(
        title=title,
        title_path=(title,),
        kind="CodeFix" if is_fix else "Refactoring",
        kind_inferred=not (offer.action.kind or "").startswith("quickfix"),
        diagnostics=diagnostics,
        range=place,
        fix_all_scopes=(),
        payload=offer.raw,
        is_preferred=bool(offer.action.is_preferred),
        place=of_diagnostic,
    )
