"""Edits of one text."""

import pytest

from bridge.embedded_server.edits import Edit, OverlapError, apply, in_order


def test_edits_refer_to_the_old_text() -> None:
    assert apply("abc", [Edit(2, 3, "C"), Edit(0, 1, "AA")]) == "AAbC"


def test_insertions_at_one_place_keep_their_order() -> None:
    assert apply("ab", [Edit(1, 1, "x"), Edit(1, 1, "y")]) == "axyb"


def test_an_insertion_comes_before_a_replacement_that_begins_there() -> None:
    assert apply("ab", [Edit(1, 2, "B"), Edit(1, 1, "x")]) == "axB"


def test_an_edit_that_changes_nothing_is_dropped() -> None:
    assert in_order([Edit(1, 1, "")]) == ()


def test_an_overlap_is_refused() -> None:
    with pytest.raises(OverlapError):
        in_order([Edit(0, 2, "x"), Edit(1, 3, "y")])
