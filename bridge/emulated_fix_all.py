"""The bridge's own fix-all, made of single fixes, for servers that have none.

The server's report about the whole solution says where the diagnostic stands, hidden ones included.  Then, in rounds:

    ask for the fix at each place, document by document --> take what does not touch --> plan it on the tree
            ^                                                                              |
            +------------- fewer than before, and some still have the fix <---- count -----+

It is over when the diagnostic is gone, or when nothing that is left is offered the fix.  Every round must leave fewer
of them in the scope: a fix that does not mend, or makes as many as it mends, is a refusal and no loop.  Rounds, fixes
and seconds are bounded, and whatever is cut short is a refusal, never a part of the result.

The server sees the tree of each round (``bridge.questions.ask`` with ``about``), so this needs the writer's lease.
Nothing is staged here, and there is nothing to undo: whoever asks the server next shows it the current revision
again, whether this has ended well, was refused, was cancelled, or the server was killed under it.

What makes it quick: documents are asked about side by side, because csharp-ls answers so; a place that an earlier fix
of its document reaches is not asked about in that round (removing unused usings mends a document at once); and the
count after a round is the only other question.  All fixes of a round are asked for before the server is shown its
result: csharp-ls compares with the texts it has loaded whenever it makes a fix, and takes four times as long for each
when 160 documents have been shown other texts since, even when they have been shown the old ones again.  For that
reason the answers are kept, and ``replay`` makes the same tree of them without asking for all of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from bridge.action_references import ActionReference
from bridge.code_actions import resolved
from bridge.emulated_scopes import diagnostic_mended
from bridge.errors import BridgeError
from bridge.fix_rounds import Answer, NotOneChange, Rounds, fix_from, merged
from bridge.fix_titles import ONLY_DIAGNOSTIC, same_fix
from bridge.progress import ProgressSink
from bridge.questions import ask
from bridge.resolution import documents_at, is_generated_document
from bridge.server_edits import range_to_server
from bridge.side_by_side import side_by_side
from bridge.staging import plan_edit
from bridge.workspace import Workspace
from lsp_client.dialects.base import ActionListing, ServerAction
from lsp_client.dialects.common import touching
from lsp_client.messages import Diagnostic
from lsp_client.session import Session
from lsp_client.workspace_report import workspace_report
from transactions.edits import WorkspaceEdit
from transactions.overlay import Overlay
from transactions.text import LineEndingPolicy

LONGEST: Final = 300.0
"""Seconds for one fix-all.  One that mends 160 documents takes ten on two idle cores."""

REPORT_WAIT: Final = 240.0
"""Seconds for one report about the whole solution: the server compiles everything for it."""

MOST_ROUNDS: Final = 40
"""Fixes that touch each other take a round each; a chain longer than this is hardly what somebody meant."""

MOST_FIXES: Final = 5000
"""Single fixes that are asked for, over all rounds."""

AT_ONCE: Final = 4
"""Documents asked about at a time.  csharp-ls answers questions that only read side by side; beyond the number of
cores there is nothing to gain, and with one in reserve no core waits for us."""

MOST_ASKED_AGAIN: Final = 4
"""Fixes that are asked for again when they are staged; each may take csharp-ls a tenth of a second by then."""

DOCUMENTS_A_TURN: Final = 50
"""Documents between two looks at the bounds."""

Places = Mapping[Path, tuple[Diagnostic, ...]]
"""Diagnostics by document in path order, each in the order of places."""


@dataclass(frozen=True, slots=True)
class Emulated:
    """What a fix-all would make of the current revision.

    ``affected_before`` and ``remaining_after`` count the diagnostic in the scope; both are ``None``, with the
    ``reason``, where the server cannot know them all.
    """

    planned: Overlay
    affected_before: int | None
    remaining_after: int | None
    reason: str | None
    answers: Rounds
    """What the server gave; ``replay`` makes the same of it again."""


@dataclass(frozen=True, slots=True)
class _State:
    """A tree, and what the server reports about the scope on it."""

    tree: Overlay
    everything: Places
    found: Places
    """The one diagnostic among everything."""

    @property
    def count(self) -> int:
        return sum(map(len, self.found.values()))


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be mended, where, and within which bounds."""

    workspace: Workspace
    reference: ActionReference
    action: ServerAction
    diagnostic_id: str
    scope: str
    covers: Callable[[Path], bool]
    """Whether a document is in the scope and may be changed; generated code may not, as in Roslyn's own fix-all.
    Reads the disk the first time."""
    max_documents: int
    line_endings: LineEndingPolicy

    @property
    def title(self) -> str:
        return self.action.title

    def refusal(self, why: str, code: str = "FixAllUnavailable") -> BridgeError:
        return BridgeError(code, f"{self.title!r} cannot be made for the whole {self.scope.lower()}: {why}")

    def named(self, path: Path, item: Diagnostic | None = None) -> str:
        """A document or a place in it, for a sentence; lines count from one there."""
        name = self.workspace.relative(path)
        return name if item is None else f"{name}, line {item.range.start.line + 1}"


async def emulate(
    workspace: Workspace,
    reference: ActionReference,
    action: ServerAction,
    scope: str,
    *,
    max_documents: int,
    line_endings: LineEndingPolicy,
    tell: ProgressSink,
) -> Emulated:
    """What the action does for every occurrence of its diagnostic in ``scope``, on top of the current revision.

    ``action`` is the one that ``reference`` names, listed just now.  ``max_documents`` bounds the documents that may
    change.  Needs the writer's lease; stages nothing.  Raises ``FixAllUnavailable``, ``FixAllLimitExceeded``, the
    refusals of an edit, and the server's own failures.
    """
    job = _job(workspace, reference, action, scope, max_documents=max_documents, line_endings=line_endings)
    with anyio.move_on_after(LONGEST):
        return await _in_rounds(job, tell)
    raise job.refusal(f"it is not done after {LONGEST:g} s.")


async def replay(
    workspace: Workspace,
    reference: ActionReference,
    action: ServerAction,
    scope: str,
    answers: Rounds,
    *,
    max_documents: int,
    line_endings: LineEndingPolicy,
) -> Overlay:
    """The tree that ``emulate`` gave, made again from the server's answers of then.

    Only for the same snapshot and the same server process, so that the same questions are about the same texts.  Those
    of the first round are asked again, all of them or ``MOST_ASKED_AGAIN`` among them.  Needs the writer's lease; stages
    nothing.  Raises ``FixAllUnavailable`` when one is answered otherwise, and the refusals of an edit.
    """
    job = _job(workspace, reference, action, scope, max_documents=max_documents, line_endings=line_endings)
    again = _spread(answers[0], MOST_ASKED_AGAIN)
    for before, now in zip(again, await ask(workspace, partial(_asked_again, job, again)), strict=True):
        if now != before:
            raise job.refusal(
                f"the server would make another change of {job.named(before.path, before.item)} now."
            )
    tree = workspace.overlay
    for taken in answers:
        tree = await _planned(job, tree, taken)
    return tree


def _spread(answers: Sequence[Answer], most: int) -> Sequence[Answer]:
    """All of them, or ``most`` from the first to the last at equal distances."""
    if len(answers) <= most:
        return answers
    return [answers[number * (len(answers) - 1) // (most - 1)] for number in range(most)]


async def _asked_again(job: _Job, answers: Sequence[Answer], session: Session) -> list[Answer | None]:
    questions = [partial(_fix_at, job, a.path, a.item, a.diagnostics, session) for a in answers]
    return await side_by_side(questions, at_once=AT_ONCE)


def _job(
    workspace: Workspace,
    reference: ActionReference,
    action: ServerAction,
    scope: str,
    *,
    max_documents: int,
    line_endings: LineEndingPolicy,
) -> _Job:
    diagnostic_id = diagnostic_mended(action)
    owners = documents_at(workspace, reference.document)
    if diagnostic_id is None or len(owners) != 1:
        raise BridgeError(
            "FixAllUnavailable", f"It is not known which one diagnostic {action.title!r} mends here."
        )
    project_id = owners[0].project_id

    @cache
    def covers(path: Path) -> bool:
        in_scope = any(
            not document.is_generated
            and (scope != "Project" or document.project_id == project_id)
            and (scope != "Document" or path == reference.document)
            for document in documents_at(workspace, path)
        )
        return in_scope and not is_generated_document(workspace, path)

    return _Job(workspace, reference, action, diagnostic_id, scope, covers, max_documents, line_endings)


async def _in_rounds(job: _Job, tell: ProgressSink) -> Emulated:
    tell(0, f"Looking for {job.diagnostic_id}")
    first = state = await _looked_at(job, job.workspace.overlay)
    _require_one_candidate(job, first)
    rounds: list[tuple[Answer, ...]] = []
    for _ in range(MOST_ROUNDS):
        answers = await _offered(job, state, MOST_FIXES - sum(map(len, rounds)))
        if not answers:
            break
        rounds.append(answers)
        tree = await _planned(job, state.tree, answers)
        state = await _after(job, state, tree)
        tell(100 * (1 - state.count / first.count), f"{state.count} {job.diagnostic_id} left")
        if not state.found:
            break
    else:
        raise job.refusal(f"it is not done after {MOST_ROUNDS} rounds of fixes.")
    if not rounds:
        raise job.refusal("the server offers it at no place any more.")
    return _counted(job, first, state, tuple(rounds))


async def _planned(job: _Job, base: Overlay, answers: Sequence[Answer]) -> Overlay:
    """The tree with the fixes of one round."""
    edit = merged(answer.fix for answer in answers)
    origin, line_endings = job.reference.document, job.line_endings
    tree = await plan_edit(job.workspace, edit, origin=origin, line_endings=line_endings, base=base)
    current = job.workspace.overlay
    if sum(tree.text(p) != current.text(p) for p in tree.touched_paths) > job.max_documents:
        raise _over_the_limit(job)
    return tree


async def _after(job: _Job, before: _State, tree: Overlay) -> _State:
    """What is there after a round; it must be less."""
    after = await _looked_at(job, tree)
    if after.count >= before.count:
        raise job.refusal(f"{before.count} {job.diagnostic_id} were there, and {after.count} are after it.")
    return after


def _counted(job: _Job, first: _State, last: _State, rounds: Rounds) -> Emulated:
    unknown = _unknown_project(job)
    if unknown is not None:
        reason = f"{job.named(unknown)} could not be loaded, so its diagnostics are not known."
        return Emulated(last.tree, None, None, reason, rounds)
    return Emulated(last.tree, first.count, last.count, None, rounds)


def _unknown_project(job: _Job) -> Path | None:
    """A project of the scope about which the server can say nothing, because its load failed."""
    load = job.workspace.load
    told = () if load.report is None else load.report.errors
    failed = (*(f.path for f in load.structure.failed), *(m.project for m in told if m.project is not None))
    if job.scope == "Solution":
        return next(iter(failed), None)
    owners = documents_at(job.workspace, job.reference.document)
    own = {project.path for d in owners if (project := load.structure.project(d.project_id)) is not None}
    return next((path for path in failed if path in own), None)


# --- where the diagnostic stands ----------------------------------------------------------------------------


async def _looked_at(job: _Job, tree: Overlay) -> _State:
    """The tree with what the server reports about the documents of the scope."""

    async def question(session: Session) -> Places:
        blind = sorted(path for path in session.unseen_documents if job.covers(path))
        if blind:
            raise job.refusal(f"the server does not see what is staged in {job.named(blind[0])}.")
        report = await workspace_report(session, timeout=REPORT_WAIT)
        return await to_thread.run_sync(within, report)

    def within(report: Places) -> Places:
        return {path: items for path, items in report.items() if items and job.covers(path)}

    everything = await ask(job.workspace, question, about=tree)
    ours = {
        path: tuple(item for item in items if item.id == job.diagnostic_id)
        for path, items in everything.items()
    }
    found = {path: items for path, items in ours.items() if items}
    shared = next((path for path in found if len(documents_at(job.workspace, path)) > 1), None)
    if shared is not None:
        raise job.refusal(
            f"{job.named(shared)} has {job.diagnostic_id} too and belongs to several projects, and the server "
            "offers nothing for such a file."
        )
    return _State(tree, everything, found)


def _require_one_candidate(job: _Job, state: _State) -> None:
    """The whole report may know more diagnostics at the place than the list of actions did."""
    if not job.covers(job.reference.document):
        raise job.refusal("its place is in generated code, which a fix-all leaves as it is.")
    place = range_to_server(job.reference.range)
    ids = {item.id for item in touching(place, state.everything.get(job.reference.document, ()))}
    if job.diagnostic_id not in ids:
        raise job.refusal(f"the server does not report {job.diagnostic_id} at its place.")
    if len(ids) > 1 and job.title not in ONLY_DIAGNOSTIC:
        names = ", ".join(sorted(found or "" for found in ids))
        raise job.refusal(f"it may belong to any of {names}, which all stand at its place.")


# --- the fixes of one round ---------------------------------------------------------------------------------


async def _offered(job: _Job, state: _State, most: int) -> tuple[Answer, ...]:
    """The fixes of a round, in the order of documents and places; ``most`` bounds how many there may be.

    Raises ``FixAllLimitExceeded`` as soon as they change too many documents.
    """
    paths = list(state.found)
    answers: list[Answer] = []
    for start in range(0, len(paths), DOCUMENTS_A_TURN):
        turn = paths[start : start + DOCUMENTS_A_TURN]
        answers += await ask(job.workspace, partial(_offered_in, job, state, turn), about=state.tree)
        if len({path for answer in answers for path in answer.fix.edits}) > job.max_documents:
            raise _over_the_limit(job)
        if len(answers) > most:
            raise job.refusal(f"it takes more than {MOST_FIXES} single fixes.")
    return tuple(answers)


async def _offered_in(job: _Job, state: _State, paths: Sequence[Path], session: Session) -> list[Answer]:
    of_documents = await side_by_side(
        [partial(_offered_for, job, state, path, session) for path in paths], at_once=AT_ONCE
    )
    return [answer for answers in of_documents for answer in answers]


async def _offered_for(job: _Job, state: _State, path: Path, session: Session) -> list[Answer]:
    """The fixes of one document.  A place that an earlier one reaches has to wait: it may be mended already."""
    answers: list[Answer] = []
    text = state.tree.text(job.workspace.load.links.physical(path))
    async with session.looking_at({} if text is None else {path: text.text}):
        for item in state.found[path]:
            if not any(answer.fix.reaches(path, item.range) for answer in answers):
                answer = await _fix_at(job, path, item, state.everything[path], session)
                answers += [] if answer is None else [answer]
    return answers


async def _fix_at(
    job: _Job, path: Path, item: Diagnostic, diagnostics: tuple[Diagnostic, ...], session: Session
) -> Answer | None:
    """The fix of one diagnostic, ``None`` where it is not offered."""
    place = job.named(path, item)
    edit = await _unlisted(job, path, item, session)
    if edit is None:
        action = _the_same(job, await session.list_actions(path, item.range, diagnostics), place)
        if action is None:
            return None
        edit = await resolved(session, action)
    try:
        fix = fix_from(edit)
    except NotOneChange as error:
        raise job.refusal(f"at {place} {error}.") from error
    outside = next((p for p in fix.edits if not job.covers(p)), None)
    if outside is not None:
        raise job.refusal(f"at {place} it changes {job.named(outside)}, outside of the scope.")
    return Answer(path, item, diagnostics, fix) if fix.edits else None


async def _unlisted(job: _Job, path: Path, item: Diagnostic, session: Session) -> WorkspaceEdit | None:
    """The edit of the fix at a place that was not listed, which halves the work: resolving lists it anyway.

    Only for a title that no other fix and no refactoring bears; ``None`` where it takes a listing to know.
    """
    if job.title not in ONLY_DIAGNOSTIC:
        return None
    action = session.dialect.elsewhere(job.action, path, item.range)
    if action is None:
        return None
    try:
        return await resolved(session, action)
    except BridgeError:
        return None  # whether it is not offered or something is wrong, a listing will tell


def _the_same(job: _Job, listing: ActionListing, place: str) -> ServerAction | None:
    """The one action of a listing that is the job's fix, ``None`` when there is none."""
    if not listing.kinds_decided:
        raise job.refusal(f"fixes and refactorings cannot be told apart at {place}.")
    means_it = same_fix(job.title)
    *menu, _ = job.reference.title_path
    offered = [
        action
        for action in listing.actions
        if action.kind == "CodeFix" and [*action.title_path[:-1]] == menu and means_it(action.title)
    ]
    if len(offered) > 1 or any(action.ambiguous for action in offered):
        raise job.refusal(f"it is offered more than once at {place}, and the server cannot tell them apart.")
    return offered[0] if offered else None


def _over_the_limit(job: _Job) -> BridgeError:
    return job.refusal(f"more than {job.max_documents} documents would change.", "FixAllLimitExceeded")
