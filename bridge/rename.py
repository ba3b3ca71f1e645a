"""Renaming a symbol: the server's edit, and the proof that it changes names and nothing else.

Servers rename to anything they are told, say nothing of conflicts and honour no option.  So the bridge judges the name
(``identifiers``), finds out what is to be renamed (``symbols``), plans the edit as a whole without staging it, and has
the server look at the planned tree: is each use still a use of what it was (``bindings``), and does everything compile
that did (``validation_gate``)?  Only then it is staged, as one revision.  What cannot be told is refused as
``RenameUnverified``; a conflict is ``RenameConflict``, and may be let through by ``allow_conflicts``.

A staged file that is not on disk takes part where the server finds uses in it: each of its words that bears one of the
names must be a use of something that the server tells of, before and after.  Where it finds none there, which is so
wherever the server has only the disk to go by, a rename that such a file may be concerned by is refused.

Of a symbol that is declared partly in generated code, the generated files are proved with the new name and not staged:
the next build writes them anew.  Until then what is staged does not fit them: the errors are no conflicts, because the
proof sees the new name in both halves, and the answer, previews, the gate and the commit say where they come from.

Options are honoured or refused, never passed over.  The text of comments and strings is replaced here, as servers do
not; a file is renamed here or not at all, whatever the server wants; whether overloads follow is the server's way, and
refused where it is not the caller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio import to_thread

from bridge.bindings import Bound, Unproved, carried_spot, changed_bindings, symbols_at, uses_of
from bridge.carrying import Carried, Names, Scanned, carried
from bridge.diagnostics import Finding
from bridge.errors import BridgeError
from bridge.identifiers import ATTRIBUTE_SUFFIX, CONTEXTUAL_KEYWORDS, Name, without_attribute_suffix
from bridge.membership import named
from bridge.mentions import Mention, in_code_files, in_other_files
from bridge.name_doubts import Renaming, by_name, by_syntax, has_modifier, in_unsearched
from bridge.new_files import require_answered, require_searched, words_in_new_files
from bridge.observations import can_look, doubt_about_generated
from bridge.progress import ProgressSink, to_nobody
from bridge.questions import ask
from bridge.server_edits import workspace_edit_from_server
from bridge.spots import Spot, Texts, UnknownPlace, documents_with
from bridge.staging import Staged, plan_edit, stage_planned
from bridge.symbols import Outlines, Symbol, overloads_of, symbol_at
from bridge.validation_gate import new_errors_between
from bridge.words import scan
from bridge.workspace import Workspace
from lsp_client import navigation
from lsp_client.errors import CONTENT_MODIFIED, ResponseError
from lsp_client.session import Session
from transactions import edits
from transactions.errors import EditRefused
from transactions.overlay import Overlay
from transactions.overlay import Staged as StagedFile
from transactions.text import LineEndingPolicy, Range, Span, TextEdit

LONGEST_PROOF = 300.0
"""Seconds for the uses of all symbols concerned, before and after; one search through a large solution takes seconds."""

UNREACHED_BY_RENAME = frozenset({"CS0115", "CS0535", "CS0539", "CS0540", "CS0738", "CS9333"})
"""Errors of a member whose overridden or implemented one kept its name: that one is declared in an assembly."""

MOST_CONFLICTS = 5
"""Conflicts that a refusal names."""

LONGEST_EXCERPT = 60
"""Characters of code that one conflict shows."""

COMPOSED = "The new name was put into Unicode's form C (letters with their marks as one character), as C# wants names."


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the caller wants besides the new name."""

    overloads: bool = False
    strings: bool = False
    comments: bool = False
    file: bool = False
    allow_conflicts: bool = False


@dataclass(frozen=True, slots=True)
class Renamed:
    """What became of a rename.  ``mentions`` are places of the staged text where the old name was left."""

    staged: Staged
    mentions: tuple[Mention, ...] = ()
    dropped_edits: int = 0
    conflicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    """A rename before it is proved: what it is about, the edit, and all that was asked of the server before it."""

    symbol: Symbol
    new_name: str
    uses: frozenset[Spot]
    edit: Mapping[Path, tuple[edits.DocumentEdit, ...]]
    files: tuple[Path, ...]
    overloads: frozenset[Spot]
    move: edits.RenameFile | None

    @property
    def names(self) -> Names:
        """How the symbol is spelled before and after."""
        old, new = self.symbol.name, self.new_name
        return Names({old, *_short_forms(old)}, {new, *_short_forms(new)})


async def stage_rename(
    workspace: Workspace,
    spot: Spot,
    name: Name,
    wishes: Wishes,
    *,
    line_endings: LineEndingPolicy,
    tell: ProgressSink = to_nobody,
) -> Renamed:
    """Rename the symbol of a word and stage it as one revision.  Needs the writer's lease and a transaction.

    Raises ``SymbolNotFound``, ``SymbolCannotBeRenamed``, ``RenameOptionUnavailable``, ``RenameConflict``,
    ``RenameUnverified``, ``NotSupported``, ``DocumentInSeveralProjects``, ``DocumentNotSeen``, and the refusals of an
    edit.  Any of them leaves the transaction as it was.
    """
    require_semantics(workspace)
    before = workspace.overlay
    try:
        plan = await _plan(workspace, before, spot, name, wishes)
        if plan is None:
            return Renamed(Staged(staged=False, summary=f"It is called {name.value!r} already."))
        done = await _proved_and_staged(workspace, before, plan, wishes, line_endings=line_endings, tell=tell)
        return replace(done, notes=(*done.notes, COMPOSED)) if name.is_composed else done
    except (UnknownPlace, Unproved) as error:
        raise _unverified(str(error)) from error


def require_semantics(workspace: Workspace) -> None:
    """Raises ``NotSupported`` for a server that knows syntax only."""
    dialect = workspace.request.launch.dialect
    if dialect.syntax_only or not can_look(workspace):
        raise BridgeError(
            "NotSupported",
            f"{dialect.display_name} knows the syntax of C# and not its meaning, so it renames nothing. Open the "
            "workspace with another language server.",
        )


# --- what is to be renamed -----------------------------------------------------------------------------------


async def _plan(
    workspace: Workspace, before: Overlay, spot: Spot, name: Name, wishes: Wishes
) -> _Plan | None:
    """What the server would do, asked on the current texts; ``None`` when the symbol has that name already."""
    texts = Texts(workspace, before)

    async def question(session: Session) -> _Plan | None:
        require_searched(workspace, session, texts, _spellings_at(texts, spot))
        outlines = Outlines(session, texts)
        symbol = await symbol_at(session, texts, outlines, spot)
        new_name = _final_name(symbol, name)
        if new_name == symbol.name:
            return None
        _require_renamable(workspace, symbol, new_name)
        spellings = {symbol.name, new_name, *_short_forms(symbol.name, new_name)}
        files = await to_thread.run_sync(documents_with, workspace, before, spellings)
        require_searched(workspace, session, texts, spellings)
        uses = await uses_of(session, texts, symbol.word)
        if not uses:
            raise _unverified(
                f"{session.server_name} tells no use of {symbol.name!r}, not even its declaration."
            )
        await _require_root_in_source(texts, outlines, symbol, uses)
        edit = await _edit_for(session, texts, symbol, new_name)
        return _Plan(
            symbol,
            new_name,
            uses,
            _by_file(workspace, edit),
            files,
            await overloads_of(texts, outlines, symbol, files) - uses,
            _file_move(workspace, texts, symbol, new_name) if wishes.file else None,
        )

    return await ask(workspace, question, about=before)


def _final_name(symbol: Symbol, name: Name) -> str:
    """At the short form of an attribute the new name is a short form too."""
    if symbol.asked_short and not name.value.endswith(ATTRIBUTE_SUFFIX):
        return name.value + ATTRIBUTE_SUFFIX
    return name.value


def _short_forms(*names: str) -> Iterator[str]:
    yield from (short for short in map(without_attribute_suffix, names) if short is not None)


def _spellings_at(texts: Texts, spot: Spot) -> Set[str]:
    """How the symbol of a word may be spelled, before anything is known of it."""
    word = texts.word_of(spot)
    return set() if word is None else {word.value, *_short_forms(word.value), word.value + ATTRIBUTE_SUFFIX}


def _require_renamable(workspace: Workspace, symbol: Symbol, new_name: str) -> None:
    if symbol.is_method and symbol.name == "Main":
        raise _cannot("Main is where a program starts, and is found by its name.")
    if symbol.is_type and new_name in CONTEXTUAL_KEYWORDS:
        raise BridgeError(
            "InvalidRequest",
            f"{new_name!r} is a word of the language in some places; a type of that name would change what it means.",
        )
    if all(_is_generated(workspace, spot.path) for spot in symbol.declarations):
        raise _cannot(
            f"{symbol.name!r} is declared in generated code only, which the next build writes anew."
        )


async def _require_root_in_source(
    texts: Texts, outlines: Outlines, symbol: Symbol, uses: frozenset[Spot]
) -> None:
    """Refuses an override of what an assembly declares: none of the declarations begins the chain."""
    if not has_modifier("override", texts, symbol.word, symbol.declared):
        return
    for path in sorted({use.path for use in uses}):
        for declared in await outlines.of(path):
            found = outlines.spot(path, declared)
            if found in uses and not has_modifier("override", texts, found, declared):
                return
    raise _cannot(f"{symbol.name!r} overrides a member that is declared in an assembly and keeps its name.")


async def _edit_for(session: Session, texts: Texts, symbol: Symbol, new_name: str) -> edits.WorkspaceEdit:
    path, place = texts.question(symbol.word)
    try:
        told = await navigation.rename(session, path, place, new_name)
    except ResponseError as error:
        if error.code == CONTENT_MODIFIED:
            raise
        raise _cannot(f"{session.server_name} cannot rename {symbol.name!r}: {error.message}") from error
    if told is None:
        raise _cannot(f"{session.server_name} does not rename {symbol.name!r}.")
    return workspace_edit_from_server(told, versions=session.document_versions)


def _by_file(
    workspace: Workspace, edit: edits.WorkspaceEdit
) -> Mapping[Path, tuple[edits.DocumentEdit, ...]]:
    """The text edits of each file under its present path; a move of a file is ours to make or to leave."""
    present: dict[Path, Path] = {}
    found: dict[Path, tuple[edits.DocumentEdit, ...]] = {}
    for operation in edit.operations:
        match operation:
            case edits.RenameFile(old=old, new=new):
                present[new] = present.get(old, old)
            case edits.DocumentEdit() if operation.edits:
                path = workspace.load.links.physical(present.get(operation.path, operation.path))
                found[path] = (*found.get(path, ()), replace(operation, path=path))
            case edits.DocumentEdit():
                pass
            case _:
                raise EditRefused("The server's edit for a rename creates or deletes a file.")
    return found


def _file_move(workspace: Workspace, texts: Texts, symbol: Symbol, new_name: str) -> edits.RenameFile | None:
    """The file of a type that bears its name, to be called after the new one."""
    if not symbol.is_type:
        return None
    for spot in symbol.declarations:
        if spot.path.stem == symbol.name and not _is_generated(workspace, spot.path):
            path = texts.document(spot.path)
            return edits.RenameFile(path, path.with_stem(new_name))
    return None


def _is_generated(workspace: Workspace, path: Path) -> bool:
    names = workspace.load.links.names(path)
    known = [document for name in names for document in workspace.structure.documents_at(name)]
    return bool(known) and all(document.is_generated for document in known)


# --- what comes of it ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The planned trees: ``staged`` is to be the next revision but for a moved file, ``proved`` has generated files too."""

    staged: Overlay
    proved: Overlay
    ways: Mapping[Path, Carried]
    generated: frozenset[Path]
    """Those of the changed files that the next build writes anew."""
    dropped_edits: int


async def _proved_and_staged(
    workspace: Workspace,
    before: Overlay,
    plan: _Plan,
    wishes: Wishes,
    *,
    line_endings: LineEndingPolicy,
    tell: ProgressSink,
) -> Renamed:
    texts = Texts(workspace, before)
    await to_thread.run_sync(texts.prepare, plan.files)
    outcome = await _outcome(workspace, before, plan, _in_text(workspace, texts, plan, wishes), line_endings)
    after = Texts(workspace, outcome.proved)
    await to_thread.run_sync(after.prepare, plan.files)
    _require_overloads(texts, after, plan, outcome, wishes)
    conflicts = tuple(_rewritten(workspace, texts, after, outcome))
    _refuse(plan, conflicts, wishes)
    bound, changed, unsearched = await _bindings(workspace, texts, after, plan, outcome)
    renaming = Renaming(
        plan.symbol, plan.new_name, plan.uses, plan.files, tuple(outcome.ways), unsearched, wishes.strings
    )
    taken_over = await to_thread.run_sync(by_name, workspace, texts, renaming)
    conflicts += (*_not_renamed(texts, after, plan, outcome), *changed, *taken_over)
    if not plan.symbol.is_member:  # of a member the compiler may know a better reason
        _refuse(plan, conflicts, wishes)
    conflicts += await _errors(workspace, before, plan, outcome, wishes, tell=tell)
    _refuse(plan, conflicts, wishes)
    untold = await to_thread.run_sync(_untold, workspace, texts, renaming)
    if untold is not None and not wishes.allow_conflicts:
        raise _unverified(f"{untold}, and servers do not tell of such uses.")
    conflicts += () if untold is None else (untold,)
    title = f"Rename {plan.symbol.name!r} to {plan.new_name!r}"
    tree = outcome.staged
    if plan.move is not None:
        move = edits.WorkspaceEdit((plan.move,))
        tree = await plan_edit(workspace, move, origin=None, line_endings=line_endings, base=tree)
    staged = await stage_planned(workspace, tree, tool="rename-symbol", description=title, name=title)
    if outcome.generated:
        snapshot = workspace.require_transaction().snapshot_id
        workspace.observations.left_behind[snapshot] = outcome.generated
    mentions, notes = await _mentions(workspace, plan, outcome, bound)
    notes += tuple(_notes(workspace, plan, outcome, wishes))
    return Renamed(staged, mentions, outcome.dropped_edits, conflicts, notes)


def _untold(workspace: Workspace, texts: Texts, renaming: Renaming) -> str | None:
    """Why there may be uses that the server has not told of."""
    return by_syntax(workspace, texts, renaming) or in_unsearched(workspace, texts, renaming)


def _refuse(plan: _Plan, conflicts: Sequence[str], wishes: Wishes) -> None:
    if conflicts and not wishes.allow_conflicts:
        more = f", and {len(conflicts) - MOST_CONFLICTS} more" if len(conflicts) > MOST_CONFLICTS else ""
        raise BridgeError(
            "RenameConflict",
            f"{plan.symbol.name!r} cannot become {plan.new_name!r}: {'; '.join(conflicts[:MOST_CONFLICTS])}{more}. "
            "Nothing was staged.",
        )


def _rewritten(workspace: Workspace, texts: Texts, after: Texts, outcome: _Outcome) -> Iterator[str]:
    """Where the name is taken, and the server would write other code to keep the meaning."""
    for path, way in outcome.ways.items():
        old, new = texts.text(path), after.text(path)
        for change in way.changes:
            is_code = not texts.is_text(path, change.start, change.end)
            if is_code and not change.is_rename and old is not None and new is not None:
                line = old.position_of_index(change.start).line + 1
                yield (
                    f"{workspace.relative(path)}:{line} would be rewritten, "
                    f"{_excerpt(old.text[change.start : change.end])} to "
                    f"{_excerpt(new.text[change.new_start : change.new_end])}, because the name is taken there"
                )


def _excerpt(code: str) -> str:
    return repr(code if len(code) <= LONGEST_EXCERPT else f"{code[:LONGEST_EXCERPT]}…")


def _in_text(
    workspace: Workspace, texts: Texts, plan: _Plan, wishes: Wishes
) -> Mapping[Path, tuple[edits.DocumentEdit, ...]]:
    """The old name in the comments and strings that the caller wants renamed too."""
    kinds = {*(["Comment"] if wishes.comments else []), *(["String"] if wishes.strings else [])}
    found: dict[Path, list[TextEdit]] = {}
    for mention in in_code_files(texts, plan.files, plan.symbol.name, frozenset()) if kinds else ():
        text = texts.text(mention.path)
        if mention.kind in kinds and text is not None and not _is_generated(workspace, mention.path):
            place = text.position_at(text.offset_at(mention.position))
            end = replace(place, character=place.character + len(plan.symbol.name))
            found.setdefault(mention.path, []).append(TextEdit(Range(place, end), plan.new_name))
    return {path: (edits.DocumentEdit(path, None, tuple(changes)),) for path, changes in found.items()}


async def _outcome(
    workspace: Workspace,
    before: Overlay,
    plan: _Plan,
    in_text: Mapping[Path, tuple[edits.DocumentEdit, ...]],
    line_endings: LineEndingPolicy,
) -> _Outcome:
    """Plan the edit.  Raises the refusals of an edit, and Unproved when the planned texts are not what it says."""
    together = {
        path: (*plan.edit.get(path, ()), *in_text.get(path, ())) for path in plan.edit.keys() | in_text.keys()
    }
    generated = frozenset(path for path in together if _is_generated(workspace, path))
    operations = tuple(e for path, found in together.items() if path not in generated for e in found)
    origin = plan.symbol.word.path
    staged = await plan_edit(
        workspace, edits.WorkspaceEdit(operations), origin=origin, line_endings=line_endings, base=before
    )
    spans = {path: _spans(before, path, found) for path, found in together.items()}
    draft = staged.draft()
    for path in generated:
        text = before.text(path)
        if text is not None:
            draft.put(path, StagedFile(text.with_spans(spans[path]), before.origin(path)))
    proved = draft.freeze()
    dropped = sum(len(spans[path]) for path in generated)
    ways = await to_thread.run_sync(_ways, workspace, before, proved, spans, plan.names)
    return _Outcome(staged, proved, ways, generated, dropped)


def _spans(tree: Overlay, path: Path, found: Sequence[edits.DocumentEdit]) -> list[Span]:
    """The edits of one file in order; a server repeats them for each project that compiles it."""
    text = tree.text(path)
    if text is None:
        return []
    return text.spans_of(tuple(dict.fromkeys(edit for changes in found for edit in changes.edits)))


def _ways(
    workspace: Workspace, before: Overlay, after: Overlay, spans: Mapping[Path, list[Span]], names: Names
) -> Mapping[Path, Carried]:
    ways = {}
    for path, changes in spans.items():
        old, new = before.text(path), after.text(path)
        way = None
        if old is not None and new is not None:
            way = carried(
                Scanned(old.text, scan(old.text)), Scanned(new.text, scan(new.text)), changes, names
            )
        if way is None:
            raise _unverified(f"The planned text of {workspace.relative(path)} is not what the edit says.")
        ways[path] = way
    return ways


def _changed_words(texts: Texts, outcome: _Outcome) -> Iterator[Spot]:
    """The words of code that the edit changes."""
    for path, way in outcome.ways.items():
        for change in way.changes:
            yield from (Spot(path, end) for end in change.ends if texts.word_of(Spot(path, end)) is not None)


def _require_overloads(texts: Texts, after: Texts, plan: _Plan, outcome: _Outcome, wishes: Wishes) -> None:
    """Refuses when there are overloads and the server does not do with them what the caller wants.

    Without an outline of the document that declares it nobody can say what else is renamed, so nothing else may be.
    """
    if not plan.symbol.is_outlined:
        others = set(_changed_words(texts, outcome)) - plan.uses.union(plan.symbol.declarations)
        renamed = sorted(spot for spot in others if _has_new_name(after, outcome, spot, plan))
        if renamed or wishes.file:
            raise _unverified(
                f"The document that declares {plan.symbol.name!r} is one of several projects, and the server has no single "
                "document for it, so neither overloads nor its file can be told."
            )
    changed = {spot for spot in plan.overloads if _has_new_name(after, outcome, spot, plan)}
    if wishes.overloads and plan.overloads - changed:
        raise BridgeError(
            "RenameOptionUnavailable",
            f"{plan.symbol.name!r} has other overloads ({len(plan.overloads)}), and this language server renames one at a "
            "time. Rename each, or leave renameOverloads out.",
        )
    if not wishes.overloads and changed:
        raise BridgeError(
            "RenameOptionUnavailable",
            f"This language server would rename other overloads of {plan.symbol.name!r} too "
            f"({len(changed)}: {', '.join(texts.place(spot) for spot in sorted(changed)[:MOST_CONFLICTS])}). Say renameOverloads: true if "
            "that is wanted.",
        )


def _has_new_name(after: Texts, outcome: _Outcome, spot: Spot, plan: _Plan) -> bool:
    place = carried_spot(spot, outcome.ways)
    word = None if place is None else after.word_of(place)
    return word is not None and word.value in plan.names.new


# --- the proofs ----------------------------------------------------------------------------------------------


async def _bindings(
    workspace: Workspace, texts: Texts, after: Texts, plan: _Plan, outcome: _Outcome
) -> tuple[frozenset[Spot], tuple[str, ...], Mapping[Path, str]]:
    """The words of the old name that symbols answer for, what would be used otherwise than before, and the staged new
    files in which nothing was searched for.

    Raises ``RenameUnverified`` and Unproved.
    """
    known = (Bound(plan.symbol.word, plan.uses),)
    words = [
        Spot(path, word.end)
        for path in plan.files
        for word in texts.scan(path).words
        if word.value in plan.names.new or (word.is_conditional and word.value == plan.symbol.name)
    ]
    words += _changed_words(texts, outcome)
    in_new_files = words_in_new_files(workspace, texts, plan.files, plan.names.both)

    async def asked_before(session: Session) -> tuple[Bound, ...]:
        require_searched(workspace, session, texts, plan.names.both)
        found = await symbols_at(session, texts, (*words, *in_new_files), known)
        require_answered(texts, found, in_new_files)
        return found

    symbols: tuple[Bound, ...] = ()
    unsearched: Mapping[Path, str] = {}

    async def asked_after(session: Session) -> tuple[str, ...]:
        nonlocal unsearched
        _require_shown(workspace, session, outcome)
        require_searched(workspace, session, texts, plan.names.both)
        unsearched = workspace.unsearched
        return await changed_bindings(session, texts, after, symbols, outcome.ways)

    try:
        with anyio.fail_after(LONGEST_PROOF):
            symbols = await ask(workspace, asked_before, about=workspace.overlay)
            told = await ask(workspace, asked_after, about=outcome.proved)
    except TimeoutError as error:
        raise _unverified(f"The server took longer than {LONGEST_PROOF:g} s to find all uses.") from error
    return frozenset(use for bound in symbols for use in bound.uses), told, unsearched


def _require_shown(workspace: Workspace, session: Session, outcome: _Outcome) -> None:
    unseen = session.unseen_documents.intersection(
        name for path in outcome.ways for name in workspace.load.links.names(path)
    )
    if unseen:
        raise Unproved(
            f"{session.server_name} cannot be shown the planned text of {named(workspace, sorted(unseen))}."
        )


def _not_renamed(texts: Texts, after: Texts, plan: _Plan, outcome: _Outcome) -> Iterator[str]:
    """Uses that bear the old name and would keep it: the server's edit is not whole."""
    for use in sorted(plan.uses.union(plan.symbol.declarations)):
        word = texts.word_of(use)
        if word is not None and word.value in plan.names.old and not _has_new_name(after, outcome, use, plan):
            yield f"the server's edit leaves out the use at {texts.place(use)}"


async def _errors(
    workspace: Workspace,
    before: Overlay,
    plan: _Plan,
    outcome: _Outcome,
    wishes: Wishes,
    *,
    tell: ProgressSink,
) -> tuple[str, ...]:
    """The compiler errors that the rename would bring.  Raises ``RenameUnverified``, ``SymbolCannotBeRenamed``.

    A document that holds neither name, and no use without the name either, is the same code to the compiler before and
    after, once the uses are proved.  So a server need not answer for it.
    """
    concerned = {*plan.files, *(use.path for use in plan.uses)}
    physical = workspace.load.links.physical
    try:
        found = await new_errors_between(
            workspace,
            before,
            outcome.proved,
            tell,
            is_unaffected=lambda path: physical(path) not in concerned,
        )
    except BridgeError as error:
        if error.code != "CompilerValidationIncomplete":
            raise
        raise _unverified(error.message) from error
    for error_found in found:
        if error_found.id in UNREACHED_BY_RENAME and not wishes.allow_conflicts:
            raise _cannot(
                "It overrides or implements a member that keeps its name, being declared in an assembly: "
                f"{_in_words(workspace, error_found)}."
            )
    return tuple(_in_words(workspace, error_found) for error_found in found)


def _in_words(workspace: Workspace, error: Finding) -> str:
    place = f"{workspace.relative(error.path)}:{error.line + 1}:{error.character + 1}"
    return f"{place} would have the error {error.id} {error.message.rstrip('.')}"


# --- what is left --------------------------------------------------------------------------------------------


async def _mentions(
    workspace: Workspace, plan: _Plan, outcome: _Outcome, bound: frozenset[Spot]
) -> tuple[tuple[Mention, ...], tuple[str, ...]]:
    still = (carried_spot(spot, outcome.ways) for spot in bound)
    answered = frozenset(spot for spot in still if spot is not None)
    texts = Texts(workspace, outcome.staged)

    def search() -> tuple[tuple[Mention, ...], tuple[str, ...]]:
        in_code = in_code_files(texts, plan.files, plan.symbol.name, answered)
        others = in_other_files(workspace.root, plan.symbol.name)
        cut = () if others.cut_short is None else (f"Mentions of the old name: {others.cut_short}.",)
        return (*in_code, *others.found), cut

    return await to_thread.run_sync(search)


def _notes(workspace: Workspace, plan: _Plan, outcome: _Outcome, wishes: Wishes) -> Iterator[str]:
    if outcome.dropped_edits:
        yield doubt_about_generated(workspace)
    if wishes.file and plan.symbol.is_type and plan.move is None:
        yield "No file bears the name of this type, so none was renamed."


def _cannot(reason: str) -> BridgeError:
    return BridgeError("SymbolCannotBeRenamed", reason)


def _unverified(reason: str) -> BridgeError:
    return BridgeError(
        "RenameUnverified", f"Whether the rename keeps the meaning of the code cannot be told. {reason}"
    )
