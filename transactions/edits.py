"""From a workspace edit to the next overlay, or to a refusal. Never to half of it.

A `WorkspaceEdit` is an ordered list of operations on a virtual tree. Each operation sees what the ones before it left,
so a file can be renamed and then edited under its new name. Text edits are special: all `DocumentEdit`s of one file
refer to the same text, until a create, rename or delete of that very file stands between them. They are therefore
collected for each file and applied together.

Several `DocumentEdit`s of one file are what a server sends for a file that belongs to several projects or target
frameworks: one list for each. Equal edits in different lists are one edit; others must neither overlap nor touch, else
the lists contradict each other. Inside one list nothing is merged: two equal inserts are two inserts.

Servers leave the creation of files unsaid: a `DocumentEdit` that inserts at 0:0 of a file that is not there creates it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from transactions.baseline import Baseline
from transactions.errors import EditRefused, LinkedDocumentConflict, TextError
from transactions.overlay import Overlay, Staged
from transactions.targets import Targets
from transactions.text import UTF8, LineEndingPolicy, Position, SourceText, Span, TextEdit, TextEncoding

_START = Position(0, 0)


@dataclass(frozen=True, slots=True)
class DocumentEdit:
    """Text edits of one file, all of which refer to its text before them.

    `version` is the document version that the server worked on; None when it did not say.
    """

    path: Path
    version: int | None
    edits: tuple[TextEdit, ...]


@dataclass(frozen=True, slots=True)
class CreateFile:
    """Make an empty file. `overwrite` wins over `ignore_if_exists`."""

    path: Path
    overwrite: bool = False
    ignore_if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameFile:
    """Move a file. `overwrite` wins over `ignore_if_exists`."""

    old: Path
    new: Path
    overwrite: bool = False
    ignore_if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """Remove a file."""

    path: Path
    ignore_if_missing: bool = False


Operation = DocumentEdit | CreateFile | RenameFile | DeleteFile


@dataclass(frozen=True, slots=True)
class WorkspaceEdit:
    """Operations in the order in which they happen.

    `versions` are those under which documents were open at the server when it made the edit.
    """

    operations: tuple[Operation, ...]
    versions: Mapping[Path, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewFileStyle:
    """How a created file is written. None leaves the choice to the file that the action started from."""

    encoding: TextEncoding | None = None
    line_ending: str | None = None


def is_csharp_source(path: Path) -> bool:
    """The default rule for files that may be edited."""
    return path.suffix.casefold() == ".cs"


def _nothing(_: Path) -> bool:
    return False


def _no_style(_: Path) -> NewFileStyle | None:
    return None


@dataclass(frozen=True, slots=True)
class EditPolicy:
    """What the planner may do and what it must know about the workspace.

    `origin` is the file that the action started from; a created file is written like it, unless `new_file_style` (which knows `.editorconfig`) says more.
    `line_endings` is `adapt` (new text takes the file's line ends where it has one kind only) or `keep`.
    """

    root: Path
    is_source: Callable[[Path], bool] = is_csharp_source
    line_endings: LineEndingPolicy = "adapt"
    origin: Path | None = None
    new_file_style: Callable[[Path], NewFileStyle | None] = _no_style
    is_generated: Callable[[Path], bool] = _nothing


def plan(edit: WorkspaceEdit, overlay: Overlay, baseline: Baseline, policy: EditPolicy) -> Overlay:
    """The overlay after the whole edit.

    Raises EditRefused (`UnsupportedChange`) or LinkedDocumentConflict; the given overlay is never changed.
    """
    return _Planner(overlay, baseline, policy).run(edit)


def require_editable(path: Path, overlay: Overlay, baseline: Baseline, policy: EditPolicy) -> None:
    """Raises EditRefused where `plan` would refuse any text edit of the file `path`."""
    _Planner(overlay, baseline, policy).require_editable(path)


class _Planner:
    """The state of one planning run: the draft, and the text edits that wait for the rest of their file's."""

    def __init__(self, overlay: Overlay, baseline: Baseline, policy: EditPolicy) -> None:
        self._draft = overlay.draft()
        self._policy = policy
        self._targets = Targets(policy.root, baseline, policy.is_source, policy.is_generated)
        self._case_rule = baseline.case_rule
        self._versions: Mapping[Path, int] = {}
        self._pending: dict[Path, list[tuple[TextEdit, ...]]] = {}
        self._created: set[Path] = set()
        self._asked_for_something = False

    def run(self, edit: WorkspaceEdit) -> Overlay:
        self._versions = edit.versions
        for operation in edit.operations:
            match operation:
                case DocumentEdit():
                    self._collect(operation)
                case CreateFile():
                    self._create(operation)
                case RenameFile():
                    self._rename(operation)
                case DeleteFile():
                    self._delete(operation)
        for target in list(self._pending):
            self._apply_pending(target)
        if not self._asked_for_something:
            raise EditRefused("The server gave an incomplete edit: it changes nothing.")
        return self._draft.freeze()

    def require_editable(self, path: Path) -> None:
        target = self._spelled(self._targets.for_edit(path))
        self._require_changeable(target)
        if self._draft.text(target) is None:
            raise EditRefused(f"{target} is read-only to us, or is not there.", [target])

    def _collect(self, operation: DocumentEdit) -> None:
        target = self._spelled(self._targets.for_edit(operation.path))
        self._require_version(operation, target)
        if operation.edits:
            self._asked_for_something = True
            self._pending.setdefault(target, []).append(operation.edits)
        elif not self._draft.exists(target):
            raise EditRefused(
                f"The server gave an incomplete edit: {operation.path} does not exist, and no text is given for it.",
                [operation.path],
            )

    def _require_version(self, operation: DocumentEdit, target: Path) -> None:
        known = self._versions.get(operation.path, self._versions.get(target))
        if operation.version is not None and known is not None and operation.version != known:
            raise EditRefused(
                f"The server's edit of {operation.path} is for version {operation.version}; the text is at {known}.",
                [operation.path],
            )

    def _create(self, operation: CreateFile) -> None:
        target = self._targets.for_entry(operation.path)
        existing = self._spelled(target)
        self._apply_pending(existing)
        self._asked_for_something = True
        if not self._draft.exists(existing):
            self._require_free_place(target)
            self._put_new(target, "")
        elif operation.overwrite:
            self._require_changeable(existing)
            self._draft.put(
                existing, Staged(SourceText("", self._encoding_for(existing)), self._draft.origin(existing))
            )
            self._created.add(existing)
        elif not operation.ignore_if_exists:
            raise EditRefused(f"{operation.path} exists already and cannot be created.", [operation.path])

    def _rename(self, operation: RenameFile) -> None:
        old = self._spelled(self._targets.for_entry(operation.old))
        new = self._targets.for_entry(operation.new)
        in_the_way = self._spelled(new)
        self._apply_pending(old)
        self._apply_pending(in_the_way)
        text = self._existing_text(old, operation.old, "renamed")
        if old == new:
            return
        self._asked_for_something = True
        if in_the_way != old and self._draft.exists(in_the_way):
            if not operation.overwrite:
                if operation.ignore_if_exists:
                    return
                raise EditRefused(
                    f"{operation.old} cannot be renamed to {operation.new}, which exists already.",
                    [operation.old, operation.new],
                )
            self._require_changeable(in_the_way)
            self._draft.delete(in_the_way)
        self._require_free_place(new)
        origin = self._draft.origin(old)
        self._draft.delete(old)
        self._draft.put(new, Staged(text, origin))
        if old in self._created:
            self._created.remove(old)
            self._created.add(new)

    def _delete(self, operation: DeleteFile) -> None:
        target = self._spelled(self._targets.for_entry(operation.path))
        self._apply_pending(target)
        self._asked_for_something = True
        if operation.ignore_if_missing and not self._draft.exists(target):
            return
        self._existing_text(target, operation.path, "deleted")
        self._draft.delete(target)
        self._created.discard(target)

    def _apply_pending(self, target: Path) -> None:
        lists = self._pending.pop(target, None)
        if lists is None:
            return
        try:
            if self._draft.exists(target):
                self._change(target, lists)
            else:
                self._create_by_insert(target, lists)
        except TextError as error:
            raise EditRefused(
                f"{target} cannot be edited as the server asks: {error.message}", [target]
            ) from error

    def _change(self, target: Path, lists: Sequence[tuple[TextEdit, ...]]) -> None:
        self._require_changeable(target)
        text = self._draft.text(target)
        if text is None:
            raise EditRefused(f"{target} is read-only to us.", [target])
        spans = _merged_spans(target, text, lists)
        if target in self._created and not text.text:
            first = SourceText.new("".join(new_text for _, _, new_text in spans), like=text)
            changed = self._styled(target, first)
        else:
            changed = text.with_spans(spans, line_endings=self._policy.line_endings)
        self._draft.put(target, Staged(changed, self._draft.origin(target)))

    def _create_by_insert(self, target: Path, lists: Sequence[tuple[TextEdit, ...]]) -> None:
        if any(edit.range.start != _START or edit.range.end != _START for edits in lists for edit in edits):
            raise EditRefused(f"{target} does not exist, and the edit is no insert at its start.", [target])
        self._require_free_place(target)
        spans = _merged_spans(target, SourceText(""), lists)
        text = "".join(new_text for _, _, new_text in spans)
        if not text:
            raise EditRefused(
                f"The server gave an incomplete edit: {target} does not exist, and its text is empty.",
                [target],
            )
        self._put_new(target, text)

    def _put_new(self, target: Path, text: str) -> None:
        new = SourceText.new(text, like=SourceText("", self._encoding_for(target)))
        self._draft.put(target, Staged(self._styled(target, new), None))
        self._created.add(target)

    def _encoding_for(self, target: Path) -> TextEncoding:
        style = self._policy.new_file_style(target)
        if style is not None and style.encoding is not None:
            return style.encoding
        like = self._origin_text()
        return UTF8 if like is None else like.encoding

    def _styled(self, target: Path, text: SourceText) -> SourceText:
        """A created file's text with its line ends brought to one kind."""
        if self._policy.line_endings == "keep":
            return text
        style = self._policy.new_file_style(target)
        like = self._origin_text()
        line_ending = None if style is None else style.line_ending
        if line_ending is None and like is not None:
            line_ending = like.dominant_line_ending
        return text.with_line_endings(line_ending or "\n")

    def _origin_text(self) -> SourceText | None:
        """The text of the file that the action started from, as it was before the edit where the edit removes it."""
        origin = self._policy.origin
        if origin is None:
            return None
        return self._draft.text(origin) or self._draft.baseline.text(origin)

    def _existing_text(self, target: Path, path: Path, what: str) -> SourceText:
        if not self._draft.exists(target):
            raise EditRefused(f"{path} does not exist and cannot be {what}.", [path])
        self._require_changeable(target)
        text = self._draft.text(target)
        if text is None:
            raise EditRefused(f"{path} is read-only to us and cannot be {what}.", [path])
        return text

    def _require_changeable(self, target: Path) -> None:
        if not self._draft.is_touched(
            target
        ):  # what the transaction holds already was checked when it came in
            self._targets.require_changeable(target)
            self._targets.require_copyable_attributes(target)

    def _require_free_place(self, target: Path) -> None:
        self._targets.require_creatable(target)
        for parent in target.parents:
            if self._draft.is_touched(parent) and self._draft.exists(parent):
                raise EditRefused(f"{target} would stand below {parent.name}, which is a file.", [target])

    def _spelled(self, target: Path) -> Path:
        """The entry that a path means where names differ by more than case: the one that is there, however spelled."""
        if not self._case_rule.is_blind_for(target):
            return target
        folded = target.name.casefold()
        for path in self._draft.touched_paths:
            if path.parent == target.parent and path.name.casefold() == folded and self._draft.exists(path):
                return path
        on_disk = self._case_rule.spelling(target)
        spelled = target if on_disk is None else target.with_name(on_disk)
        return spelled if self._draft.exists(spelled) else target


def _merged_spans(target: Path, text: SourceText, lists: Sequence[tuple[TextEdit, ...]]) -> list[Span]:
    """One list of spans from the edit lists of one file; see the module's head for what may be merged."""
    if len(lists) == 1:
        return text.spans_of(lists[0])
    kept: list[tuple[Span, int]] = []
    for number, edits in enumerate(lists):
        known = Counter(span for span, _ in kept)
        for span in text.spans_of(edits):
            if known[span]:
                known[span] -= 1
            else:
                kept.append((span, number))
    kept.sort(key=lambda entry: entry[0][:2])
    for (earlier, one), (later, another) in pairwise(kept):
        if one != another and later[0] <= earlier[1]:
            raise LinkedDocumentConflict(
                f"{target} belongs to several projects, and the server's edits for them contradict each other.",
                [target],
            )
    return [span for span, _ in kept]
