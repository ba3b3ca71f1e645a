"""Words are followed through a server's smallest differences, and rewritten code is told from renames."""

import pytest

from bridge.carrying import Carried, Names, Scanned, carried
from bridge.words import scan
from transactions.text import Span


def way(old: str, new: str, spans: list[Span], names: tuple[str, str] = ("Order", "OrderLine")) -> Carried:
    found = carried(Scanned(old, scan(old)), Scanned(new, scan(new)), spans, Names({names[0]}, {names[1]}))
    assert found is not None
    return found


def test_an_insert_into_a_word_carries_its_end_and_shifts_what_follows() -> None:
    found = way("Order x = y;", "OrderLine x = y;", [(5, 5, "Line")])
    assert [found.end(place) for place in (5, 7, 11)] == [9, 11, 15]
    assert all(change.is_rename for change in found.changes)


@pytest.mark.parametrize(
    ("old", "new", "spans"),
    [
        ("a Batches b", "a Trays b", [(2, 6, "Tray"), (6, 8, "")]),
        ("a Größe b", "a Länge b", [(2, 6, "Läng")]),
        ("Order.Order(Order)", "T.T(T)", [(0, 18, "T.T(T)")]),
        ("int Order = 1;", "int @class = 1;", [(4, 9, "@class")]),
        ("int @Order = 1;", "int @class = 1;", [(5, 10, "class")]),
        ("int Order = 1;", "int Orders = 1;", [(9, 9, "s")]),
        ("~Order() { }", "~T() { }", [(1, 6, "T")]),
    ],
)
def test_what_changes_names_only_is_a_rename(old: str, new: str, spans: list[Span]) -> None:
    olds = {"Batches", "Größe", "Order"}
    news = {"Trays", "Länge", "T", "class", "Orders"}
    found = carried(Scanned(old, scan(old)), Scanned(new, scan(new)), spans, Names(olds, news))
    assert found is not None
    assert all(change.is_rename for change in found.changes)
    ends = [found.end(word.end) for word in scan(old).words]
    assert ends == [word.end for word in scan(new).words]


@pytest.mark.parametrize(
    ("old", "new", "spans"),
    [
        ("total + part", "this.total + total", [(0, 0, "this."), (8, 12, "total")]),
        ("Tell(1)", "Tell((object)1)", [(5, 5, "(object)")]),
        ("part;", "other;", [(0, 4, "other")]),
        ("part;", "total total;", [(0, 4, "total total")]),
        ("x + part", "x-total", [(1, 8, "-total")]),
    ],
)
def test_what_changes_more_than_names_is_no_rename(old: str, new: str, spans: list[Span]) -> None:
    found = way(old, new, spans, ("part", "total"))
    assert not all(change.is_rename for change in found.changes)


def test_in_rewritten_code_words_are_found_again_from_the_last_to_the_first() -> None:
    old, new = "1.Far() + 2.Close()", "Far.E.Far(1) + 2.Far()"
    found = way(old, new, [(0, 17, "Far.E.Far(1) + 2.Far")], ("Close", "Far"))
    assert [found.end(word.end) for word in scan(old).words] == [9, 20]


def test_a_word_that_was_written_over_is_lost() -> None:
    found = way("c.Extra(d)", "E.Extra(c)", [(0, 10, "E.Extra(c)")], ("Own", "Extra"))
    assert found.end(9) is None


def test_spans_that_do_not_lead_to_the_new_text_are_no_way() -> None:
    old, new = "Order", "OrderLines"
    spans: list[Span] = [(5, 5, "Line")]
    assert (
        carried(Scanned(old, scan(old)), Scanned(new, scan(new)), spans, Names({"Order"}, {"OrderLine"}))
        is None
    )
