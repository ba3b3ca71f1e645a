"""Documentation comment ids are taken apart exactly, and what has no name of its own is refused."""

import pytest

from bridge.comment_ids import CommentId, read_comment_id
from bridge.errors import BridgeError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T:Shop.Cart", CommentId("T", (("Shop", 0), ("Cart", 0)), None)),
        ("T:Box`2", CommentId("T", (("Box", 2),), None)),
        ("M:A.B.C", CommentId("M", (("A", 0), ("B", 0), ("C", 0)), ())),
        ("M:A.C``1(``0,System.Int32)", CommentId("M", (("A", 0), ("C", 1)), ("``0", "System.Int32"))),
        ("M:A.C(D{E,F},G[0:,0:])", CommentId("M", (("A", 0), ("C", 0)), ("D{E,F}", "G[0:,0:]"))),
        ("M:A.op(B)~C", CommentId("M", (("A", 0), ("op", 0)), ("B",))),
        ("P:A.B", CommentId("P", (("A", 0), ("B", 0)), ())),
        ("F:A.b", CommentId("F", (("A", 0), ("b", 0)), None)),
        ("E:A.C", CommentId("E", (("A", 0), ("C", 0)), None)),
        ("F:A.B+C.D", CommentId("F", (("A", 0), ("B", 0), ("C", 0), ("D", 0)), None)),
        ("N:A.B", CommentId("N", (("A", 0), ("B", 0)), None)),
    ],
)
def test_an_id_is_kind_names_and_parameters(text: str, expected: CommentId) -> None:
    assert read_comment_id(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Shop.Cart",
        "X:A",
        "T:",
        "T:A..B",
        "M:A.#ctor",
        "M:A.op_Addition(A,A)",
        "P:A.Item(System.Int32)",
        "M:A.I#M",
        "T:A.",
        "!:A",
    ],
)
def test_what_names_no_declaration_by_a_name_is_refused(text: str) -> None:
    with pytest.raises(BridgeError) as refusal:
        read_comment_id(text)
    assert refusal.value.code == "SymbolSelectorInvalid"
