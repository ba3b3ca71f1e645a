"""Random walks of edits, undo, redo and commit, against a dictionary of bytes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.transactions.worlds import picture, write
from transactions.baseline import Baseline
from transactions.commit import commit
from transactions.edits import (
    CreateFile,
    DeleteFile,
    DocumentEdit,
    EditPolicy,
    Operation,
    RenameFile,
    WorkspaceEdit,
    plan,
)
from transactions.errors import EditRefused, TransactionHistoryUnavailable
from transactions.text import Range, SourceText, TextEdit
from transactions.transaction import Transaction

NAMES = ("A.cs", "B.cs", "Sub/C.cs", "Sub/Deep/D.cs", "É.cs")
CONTENTS = (
    b"one\r\ntwo\r\n",
    b"one\ntwo\n",
    b"\xef\xbb\xbfmark\n",
    b"\xff\xfe" + "wide \U0001f642\r\n".encode("utf-16-le"),
    b"legacy \xe4\n",
    b"mixed\r\nends\n",
    b"no final newline",
    b"",
)
Model = dict[str, bytes]


@dataclass(frozen=True)
class Step:
    """One thing to do; which one, and with what, is drawn at random and read as far as it makes sense."""

    kind: str
    name: str = ""
    other: str = ""
    where: int = 0
    length: int = 0
    text: str = ""


STEPS = st.builds(
    Step,
    st.sampled_from(
        ["edit", "edit", "edit", "insert", "create", "rename", "rename", "delete", "undo", "redo", "commit"]
    ),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES),
    st.integers(0, 30),
    st.integers(0, 6),
    st.sampled_from(["", "x", "\n", "y\r\nz", "é", "\U0001f642"]),
)


@dataclass
class Walk:
    """The real thing and the model of it, side by side."""

    root: Path
    disk: Model
    baseline: Baseline = field(init=False)
    transaction: Transaction = field(init=False)
    states: list[Model] = field(init=False)

    def __post_init__(self) -> None:
        write(self.root, self.disk)
        self.begin()

    def begin(self) -> None:
        self.baseline = Baseline(self.root)
        self.transaction = Transaction(self.baseline, "base", max_revisions=100)
        self.states = [dict(self.disk)]

    @property
    def model(self) -> Model:
        return self.states[self.transaction.revision]

    def take(self, step: Step) -> None:
        match step.kind:
            case "undo" | "redo":
                self.move(step.kind)
            case "commit":
                self.commit()
            case _:
                self.stage(step)

    def move(self, direction: str) -> None:
        transaction = self.transaction
        if direction == "undo" and transaction.revision > 0:
            transaction.undo()
        elif direction == "redo" and transaction.revision < len(self.states) - 1:
            transaction.redo()
        else:
            with pytest.raises(TransactionHistoryUnavailable):
                transaction.undo() if direction == "undo" else transaction.redo()

    def commit(self) -> None:
        self.disk = self.model
        commit(self.root, self.transaction.changes(), self.baseline)
        self.begin()

    def stage(self, step: Step) -> None:
        expected = dict(self.model)
        operation, is_fit = self.fitted(step, expected)
        policy = EditPolicy(self.root, line_endings="keep")
        edit = WorkspaceEdit((operation,))
        if not is_fit:
            with pytest.raises(EditRefused):
                plan(edit, self.transaction.current, self.baseline, policy)
            return
        overlay = plan(edit, self.transaction.current, self.baseline, policy)
        is_new = expected != self.model
        assert self.transaction.stage(overlay, step.kind, "a step") == is_new
        if is_new:
            del self.states[self.transaction.revision :]
            self.states.append(expected)

    def fitted(self, step: Step, model: Model) -> tuple[Operation, bool]:
        """The operation of a step, the model changed by it, and whether it must be accepted."""
        path, other = self.root / step.name, self.root / step.other
        data = model.get(step.name)
        match step.kind:
            case "create":
                model.setdefault(step.name, b"")
                return CreateFile(path), data is None
            case "delete":
                model.pop(step.name, None)
                return DeleteFile(path), data is not None
            case "rename":
                is_fit = data is not None and step.name != step.other and step.other not in model
                if is_fit and data is not None:
                    model[step.other] = model.pop(step.name)
                return RenameFile(path, other), is_fit
            case "insert" if data is None:
                return self.edited(step, model, SourceText(""), is_there=False)
        return self.edited(step, model, SourceText.decode(data or b""), is_there=data is not None)

    def edited(self, step: Step, model: Model, text: SourceText, *, is_there: bool) -> tuple[Operation, bool]:
        """An edit of code points where they fall between characters, done on the model by slicing."""
        start = min(step.where, len(text.text))
        end = min(start + step.length, len(text.text))
        places = [text.position_at(len(text.text[:index].encode("utf-16-le")) // 2) for index in (start, end)]
        operation = DocumentEdit(self.root / step.name, None, (TextEdit(Range(*places), step.text),))
        changed = text.text[:start] + step.text + text.text[end:]
        try:
            encoded = text.encoding.bom + changed.encode(text.encoding.codec)
        except UnicodeEncodeError:
            return operation, False
        if not is_there:
            if step.text:
                model[step.name] = step.text.encode()
            return operation, bool(step.text)  # an insert at the start of a missing file creates it
        model[step.name] = encoded
        return operation, True

    def check(self) -> None:
        overlay = self.transaction.current
        for name in NAMES:
            text = overlay.text(self.root / name)
            assert (None if text is None else text.encode()) == self.model.get(name), name
        found = {name: content for name, (_, content) in picture(self.root).items() if name.endswith(".cs")}
        assert found == self.disk
        assert self.baseline.changed_since() == ()
        assert len(self.states) == self.transaction.revision_count + 1


@contextmanager
def no_leftovers(root: Path) -> Iterator[None]:
    yield
    assert not (root / ".vs").exists()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(CONTENTS), max_size=4),
    st.lists(STEPS, max_size=14),
)
def test_random_walks_agree_with_a_dictionary_of_bytes(
    new_root: Callable[[], Path], disk: Model, steps: list[Step]
) -> None:
    walk = Walk(new_root(), disk)
    with no_leftovers(walk.root):
        for step in [*steps, Step("commit")]:
            walk.take(step)
            walk.check()
