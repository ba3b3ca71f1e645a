"""The pending table: one outcome a request, whatever order things come in."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_client.errors import ResponseError, ServerGone
from lsp_client.requests import Outcome, PendingRequests


class Box:
    """Takes outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []


def registered(table: PendingRequests, method: str = "m") -> tuple[int, Box]:
    box = Box()
    return table.register(method, box.outcomes.append), box


def test_a_result_reaches_the_request_with_its_id() -> None:
    table = PendingRequests()
    first, first_box = registered(table)
    second, second_box = registered(table)
    assert first != second
    assert table.complete(second, msgspec.Raw(b"2"))
    assert [bytes(raw) for raw in second_box.outcomes if isinstance(raw, msgspec.Raw)] == [b"2"]
    assert first_box.outcomes == []
    assert len(table) == 1


def test_an_error_reaches_the_request_with_its_id() -> None:
    table = PendingRequests()
    request_id, box = registered(table)
    error = ResponseError("m", -32801, "moved")
    assert table.fail(request_id, error)
    assert box.outcomes == [error]
    assert len(table) == 0


def test_an_answer_for_no_open_request_changes_nothing() -> None:
    table = PendingRequests()
    request_id, box = registered(table)
    assert not table.complete(request_id + 7, msgspec.Raw(b"1"))
    assert table.complete(request_id, msgspec.Raw(b"1"))
    assert not table.complete(request_id, msgspec.Raw(b"2"))
    assert not table.fail(request_id, ResponseError("m", 1, "x"))
    assert len(box.outcomes) == 1


def test_a_cancelled_request_never_gets_an_outcome() -> None:
    table = PendingRequests()
    request_id, box = registered(table)
    assert table.cancel(request_id)
    assert not table.cancel(request_id)
    assert not table.complete(request_id, msgspec.Raw(b"1"))
    assert table.fail_all(ServerGone("over")) == 0
    assert box.outcomes == []
    assert len(table) == 0


def test_the_end_fails_every_open_request_with_an_exception_of_its_own() -> None:
    table = PendingRequests()
    boxes = [registered(table)[1] for _ in range(3)]
    assert table.fail_all(ServerGone("over", 3, "last words")) == 3
    outcomes = [box.outcomes[0] for box in boxes]
    assert all(
        isinstance(o, ServerGone) and (o.exit_code, o.stderr_tail) == (3, "last words") for o in outcomes
    )
    assert len({id(outcome) for outcome in outcomes}) == 3
    assert len(table) == 0


def test_nothing_can_be_registered_after_the_end() -> None:
    table = PendingRequests()
    table.fail_all(ServerGone("over"))
    with pytest.raises(ServerGone, match="over"):
        registered(table)
    table.fail_all(ServerGone("over again"))
    with pytest.raises(ServerGone, match="over"):
        registered(table)


def test_the_method_of_an_open_request_is_known() -> None:
    table = PendingRequests()
    request_id, _ = registered(table, "textDocument/hover")
    assert table.method_of(request_id) == "textDocument/hover"
    table.cancel(request_id)
    assert table.method_of(request_id) is None


@given(st.lists(st.tuples(st.sampled_from(["register", "complete", "fail", "cancel"]), st.integers(1, 8))))
def test_whatever_happens_each_request_has_at_most_one_outcome_and_none_is_lost(
    steps: list[tuple[str, int]],
) -> None:
    table = PendingRequests()
    boxes: dict[int, Box] = {}
    cancelled: set[int] = set()
    for step, target in steps:
        if step == "register":
            request_id, box = registered(table)
            boxes[request_id] = box
        elif step == "complete":
            table.complete(target, msgspec.Raw(b"1"))
        elif step == "fail":
            table.fail(target, ResponseError("m", 1, "x"))
        elif table.cancel(target):
            cancelled.add(target)
    table.fail_all(ServerGone("over"))
    for request_id, box in boxes.items():
        assert len(box.outcomes) == (0 if request_id in cancelled else 1)
    assert len(table) == 0
