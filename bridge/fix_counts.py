"""How many diagnostics a fix-all of the server's own mends, and how many it leaves.

Nobody tells: the answer of a fix-all is an edit.  So the changed documents are asked for their diagnostics as they are,
and as they would be.  What can be counted like that is bounded: Roslyn runs all analyzers over each document for it,
which takes longer than the fix-all itself.  Beyond the bounds, and wherever an answer is not the whole, the counts are
unknown with a reason; they are never a part of themselves.

Which diagnostic is counted?  The ones that the server names for the fix.  It names none when the fix belongs to one
that it shows under another id (a fix for unused usings is for a hidden twin of IDE0005).  Then it is the one kind of
those touching the place that becomes fewer in the document where the fix was listed, and none if there are several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from bridge.errors import BridgeError
from bridge.observations import Pulled, PullOne, pull_each
from bridge.progress import ProgressSink, Stage
from bridge.questions import ask
from bridge.workspace import Workspace
from lsp_client.errors import LanguageServerError
from lsp_client.messages import Diagnostic
from lsp_client.session import Session
from transactions.overlay import Overlay

MOST_COUNTED = 50
"""Changed documents whose diagnostics are counted; as many as a fix-all may change unless the caller wants more."""

MOST_COMPILED = 500
"""The same where the compiler alone is asked."""

LONGEST_COUNT = 30.0
"""Seconds for both counts together: a document takes tenths of one on two idle cores."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Diagnostics before and after; either both are known, or ``unknown`` says why not."""

    before: int | None
    after: int | None
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class Mended:
    """What is known beforehand of the diagnostics that a fix belongs to.

    ``ids`` as the server names them; where it names none, ``candidates`` are the ids that touch the fix's place in
    ``origin``, the document that offers it.
    """

    ids: frozenset[str]
    candidates: frozenset[str]
    origin: Path


def not_counted(reason: str) -> Counts:
    """Nothing is known, and why."""
    return Counts(None, None, reason)


async def count(
    workspace: Workspace, mended: Mended, planned: Overlay, documents: Sequence[Path], tell: ProgressSink
) -> Counts:
    """Count in the changed ``documents`` on the current tree, and on ``planned``.  Needs the writer's lease."""
    if not (mended.ids or mended.candidates):
        return not_counted("The server does not say which diagnostics this fix belongs to.")
    most = MOST_COMPILED if _is_of_compiler(mended) else MOST_COUNTED
    if len(documents) > most:
        return not_counted(f"{len(documents)} documents change; diagnostics are counted in at most {most}.")
    with anyio.move_on_after(LONGEST_COUNT):
        try:
            before = await _pulled(workspace, workspace.overlay, documents, mended, Stage(tell, 0, 50))
            after = await _pulled(workspace, planned, documents, mended, Stage(tell, 50, 100))
        except (LanguageServerError, BridgeError) as error:
            return not_counted(f"The diagnostics could not be counted: {error}")
        return _compared(workspace, mended, before, after)
    return not_counted(f"The server did not give all diagnostics within {LONGEST_COUNT:g} s.")


async def _pulled(
    workspace: Workspace, tree: Overlay, documents: Sequence[Path], mended: Mended, tell: ProgressSink
) -> Pulled:
    physical = workspace.load.links.physical
    there = [path for path in documents if tree.exists(physical(path))]

    async def question(session: Session) -> Pulled:
        structure = workspace.structure
        return await pull_each(session, structure, there, _pull_for(mended), tell=tell, doing="Counting in")

    return await ask(workspace, question, about=tree)


def _pull_for(mended: Mended) -> PullOne:
    return Session.compiler_diagnostics if _is_of_compiler(mended) else Session.diagnostics


def _is_of_compiler(mended: Mended) -> bool:
    """Whether only the compiler's own diagnostics are to be counted, which are had ten times faster alone."""
    return bool(mended.ids) and all(found.startswith("CS") for found in mended.ids)


def _compared(workspace: Workspace, mended: Mended, before: Pulled, after: Pulled) -> Counts:
    missing = {**before.missing, **after.missing}
    if missing:
        path, reason = next(iter(missing.items()))
        return not_counted(f"{workspace.relative(path)} could not be asked about: {reason}")
    ids = mended.ids or _fewer(mended, before.diagnostics, after.diagnostics)
    if not ids:
        return not_counted(
            "The server does not say which of the diagnostics at this place the fix belongs to."
        )
    earlier = _occurrences(before.diagnostics, ids)
    if earlier == 0:
        return not_counted(f"The server does not report {', '.join(sorted(ids))} in these documents.")
    return Counts(earlier, _occurrences(after.diagnostics, ids))


def _fewer(
    mended: Mended,
    before: Mapping[Path, Sequence[Diagnostic]],
    after: Mapping[Path, Sequence[Diagnostic]],
) -> frozenset[str]:
    """The one candidate that becomes fewer where the fix was listed; nothing when there are several."""
    earlier, later = ({mended.origin: state.get(mended.origin, ())} for state in (before, after))
    fewer = frozenset(
        one for one in mended.candidates if _occurrences(later, {one}) < _occurrences(earlier, {one})
    )
    return fewer if len(fewer) == 1 else frozenset()


def _occurrences(found: Mapping[Path, Sequence[Diagnostic]], ids: frozenset[str] | set[str]) -> int:
    """How many there are; what several projects say of one place of a file is one."""
    return sum(len({(d.id, d.range) for d in diagnostics if d.id in ids}) for diagnostics in found.values())
