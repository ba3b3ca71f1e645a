"""Revisions come and go, and each keeps the identity that it had."""

from pathlib import Path

import pytest

from tests.transactions.worlds import staged, write
from transactions.baseline import Baseline
from transactions.errors import RevisionCapacityReached, TransactionHistoryUnavailable
from transactions.overlay import Overlay
from transactions.transaction import Transaction, TransactionInfo


@pytest.fixture
def baseline(tmp_path: Path) -> Baseline:
    write(tmp_path, {"A.cs": b"a\n", "B.cs": b"b\n"})
    return Baseline(tmp_path)


def step(baseline: Baseline, text: str) -> Overlay:
    return staged(baseline, {"A.cs": text})


def test_a_new_transaction_stands_at_its_baseline_under_the_id_it_was_started_from(
    baseline: Baseline,
) -> None:
    transaction = Transaction(baseline, "base", max_revisions=3)

    assert transaction.snapshot_id == "base"
    assert transaction.changes() == ()
    assert transaction.info() == TransactionInfo(
        revision=0,
        revision_count=0,
        max_revisions=3,
        remaining_revisions=3,
        can_mutate=True,
        can_undo=False,
        can_redo=False,
        can_commit=False,
        can_rollback=True,
    )


def test_undo_and_redo_bring_back_the_snapshot_ids(baseline: Baseline) -> None:
    transaction = Transaction(baseline, "base")
    assert transaction.stage(step(baseline, "1\n"), "rename-symbol", "first")
    first = transaction.snapshot_id
    assert transaction.stage(step(baseline, "2\n"), "format-document", "second", snapshot_id="given")

    assert transaction.snapshot_id == "given"
    transaction.undo()
    assert transaction.snapshot_id == first
    transaction.undo()
    assert transaction.snapshot_id == "base"
    assert transaction.current.changes() == ()
    transaction.redo()
    transaction.redo()
    assert transaction.snapshot_id == "given"
    assert [revision.operation for revision in transaction.revisions] == ["rename-symbol", "format-document"]


def test_staging_after_undo_drops_what_was_undone(baseline: Baseline) -> None:
    transaction = Transaction(baseline, "base")
    for number in range(3):
        transaction.stage(step(baseline, f"{number}\n"), "tool", "step")
    transaction.undo()
    transaction.undo()
    transaction.stage(step(baseline, "other\n"), "tool", "other")

    assert transaction.revision == transaction.revision_count == 2
    with pytest.raises(TransactionHistoryUnavailable):
        transaction.redo()


def test_a_stage_that_changes_nothing_adds_no_revision_and_keeps_what_was_undone(baseline: Baseline) -> None:
    transaction = Transaction(baseline, "base")
    transaction.stage(step(baseline, "1\n"), "tool", "step")
    transaction.stage(step(baseline, "2\n"), "tool", "step")
    transaction.undo()
    before = transaction.snapshot_id

    assert not transaction.stage(step(baseline, "1\n"), "tool", "the same again")
    assert transaction.snapshot_id == before
    assert transaction.revision_count == 2
    transaction.undo()
    assert not transaction.stage(step(baseline, "a\n"), "tool", "what the disk holds already")


def test_the_capacity_is_counted_from_the_current_place(baseline: Baseline) -> None:
    transaction = Transaction(baseline, "base", max_revisions=2)
    transaction.stage(step(baseline, "1\n"), "tool", "step")
    transaction.stage(step(baseline, "2\n"), "tool", "step")

    assert not transaction.info().can_mutate
    assert transaction.info().remaining_revisions == 0
    for refused in (
        transaction.ensure_capacity,
        lambda: transaction.stage(step(baseline, "3\n"), "tool", "step"),
    ):
        with pytest.raises(RevisionCapacityReached) as refusal:
            refused()
        assert refusal.value.code == "RevisionCapacityReached"
    transaction.undo()
    transaction.ensure_capacity()
    assert transaction.stage(step(baseline, "3\n"), "tool", "step")


def test_nothing_to_undo_or_redo_is_said(baseline: Baseline) -> None:
    transaction = Transaction(baseline, "base")
    for move in (transaction.undo, transaction.redo):
        with pytest.raises(TransactionHistoryUnavailable):
            move()


def test_a_conflicted_transaction_can_only_be_rolled_back_or_moved(baseline: Baseline) -> None:
    transaction = Transaction(baseline, "base")
    transaction.stage(step(baseline, "1\n"), "tool", "step")
    info = transaction.info(conflicted=True)

    assert not info.can_mutate
    assert not info.can_commit
    assert info.can_undo
    assert info.can_rollback
