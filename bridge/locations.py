"""From a location selector to a stretch of one document's current text."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.errors import BridgeError
from bridge.projects import Document
from bridge.resolution import resolve_document, resolve_range
from bridge.workspace import Workspace
from schemas.selectors import DocumentSelector, LocationSelector, TextSelection
from transactions.text import SourceText, TextEdit


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a document: indices into its text (code points)."""

    document: Document
    start: int
    end: int


def resolve_location(workspace: Workspace, selector: LocationSelector) -> Place:
    """The one place that a selector names.

    Raises ``LocationSelectorInvalid``, ``LocationNotFound``, ``LocationAmbiguous``, ``InvalidRange``, and the codes of
    a document.
    """
    if selector.span is not None and selector.selection is None:
        document, text = _document(workspace, selector.span.document)
        place = resolve_range(text, selector.span.range)
        ((start, end, _),) = text.spans_of([TextEdit(place, "")])
        return Place(document, start, end)
    if selector.selection is not None and selector.span is None:
        document, text = _document(workspace, selector.selection.document)
        return _selected(document, text, selector.selection)
    raise BridgeError("LocationSelectorInvalid", "Give exactly one of span and selection to name a place.")


def _document(workspace: Workspace, selector: DocumentSelector) -> tuple[Document, SourceText]:
    document = resolve_document(workspace, selector)
    text = workspace.text(document.path)
    if text is None:
        reason = workspace.unreadable_reason(document.path)
        raise BridgeError(
            "LocationNotFound", f"{workspace.relative(document.path)} has no text to look at: {reason}."
        )
    return document, text


def _selected(document: Document, text: SourceText, selection: TextSelection) -> Place:
    before, after = selection.context_before or "", selection.context_after or ""
    wanted = before + selection.selected_text + after
    first = text.text.find(wanted)
    if first < 0:
        raise BridgeError("LocationNotFound", f"{document.path.name} does not hold the selected text.")
    if text.text.find(wanted, first + 1) >= 0:
        raise BridgeError(
            "LocationAmbiguous",
            f"{document.path.name} holds the selected text more than once; give more of what stands around it.",
        )
    start = first + len(before)
    return Place(document, start, start + len(selection.selected_text))
