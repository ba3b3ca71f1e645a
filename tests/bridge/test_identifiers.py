"""What is a C# name, and which spellings are the same one."""

import pytest

from bridge.identifiers import (
    LONGEST_NAME,
    NotAnIdentifier,
    read_name,
    value_of,
    without_attribute_suffix,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Order", "Order"),
        ("_", "_"),
        ("_x1", "_x1"),
        ("@class", "class"),
        ("@Order", "Order"),
        ("Größe", "Größe"),
        ("変数", "変数"),
        ("ⅷ", "ⅷ"),
        (r"\u004frder", "Order"),
        (r"Or\U00000064er", "Order"),
        ("Or\u00adder", "Order"),
        ("a\u203fb", "a\u203fb"),
        ("x\u0301", "x\u0301"),
        ("var", "var"),
        ("value", "value"),
        ("await", "await"),
    ],
)
def test_names_are_read_as_the_compiler_compares_them(text: str, value: str) -> None:
    assert read_name(text).value == value
    assert value_of(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "@",
            "1 bad",
            "1a",
            "a b",
            "a-b",
            "a.b",
            "class",
            "true",
            "Order\n",
            " Order",
            "a@b",
            "@@a",
            "a\0",
        ),
        *(
            "x\u00b2",
            "\u0301e",
            "😀",
            "𝒳",
            r"\u0031a",
            r"\u00",
            r"\uD800",
            "€uro",
            "a\u2028",
            "List<int>",
            "~A",
        ),
        "n" * (LONGEST_NAME + 1),
    ],
)
def test_what_the_compiler_would_not_read_as_one_name_is_refused(text: str) -> None:
    with pytest.raises(NotAnIdentifier):
        read_name(text)


def test_a_keyword_is_told_to_take_an_at_sign() -> None:
    with pytest.raises(NotAnIdentifier, match="'@event'"):
        read_name("event")


@pytest.mark.parametrize(
    ("name", "short"), [("MarkAttribute", "Mark"), ("Attribute", None), ("Mark", None), ("Attributes", None)]
)
def test_the_short_form_of_an_attribute(name: str, short: str | None) -> None:
    assert without_attribute_suffix(name) == short


def test_letters_with_their_marks_apart_are_composed() -> None:
    name = read_name("caf\u0065\u0301")
    assert (name.value, name.is_composed) == ("caf\u00e9", True)
    assert not read_name("caf\u00e9").is_composed
