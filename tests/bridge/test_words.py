"""Where words stand: in code, in comments, in strings."""

import pytest

from bridge.words import scan, whole_words


def words(text: str) -> list[str]:
    return [word.value for word in scan(text).words]


def stretches(text: str, kind: str) -> list[str]:
    return [text[part.start : part.end] for part in scan(text).stretches if part.kind == kind]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.b(c)", ["a", "b", "c"]),
        ("@class x1 = 0xFFu;", ["class", "x1"]),
        (r"\u0061b", ["ab"]),
        ("a // b\nc /* d\n e */ f", ["a", "c", "f"]),
        ("'a' b '\\'' c", ["b", "c"]),
        ('"a \\" b" c', ["c"]),
        ('@"a ""b"" \\" c', ["c"]),
        ('"unfinished a\nb', ["b"]),
        ('$"a {b} {{c}} {d:N2} {(e ? f : g)}" h', ["b", "d", "e", "f", "g", "h"]),
        ('$"a {global::b.C} {x::y}" h', ["global", "b", "C", "x", "y", "h"]),
        ('$"{ $"{ a }" + "b" }" c', ["a", "c"]),
        ('$@"x {a} ""y"" \\" b @$"{c}\\" d', ["a", "b", "c", "d"]),
        ('"""a "b" c""" d', ["d"]),
        ('$$"""a {b} {{c}} {{{d}}}""" e', ["c", "d", "e"]),
        ('$"""{a} "b" """ c', ["a", "c"]),
        ("#region a b\nc\n#endregion d\ne", ["c", "e"]),
        ('/// <see cref="A.B(c)"/> d <paramref name="e"/>\nf', ["A", "B", "c", "e", "f"]),
        ('// cref="a"\nb', ["b"]),
        ("Größe 変数", ["Größe", "変数"]),
        ("1.Far() 2e5.x", ["Far", "x"]),
    ],
)
def test_words_of_code_are_found_and_no_others(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_words_between_if_and_endif_are_conditional() -> None:
    text = "a\n#if X\nb\n  # if Y\nc\n#else\nd\n#endif\ne\n#endif\nf"
    assert {word.value for word in scan(text).words if word.is_conditional} == {"b", "c", "d", "e"}


def test_comments_and_strings_are_told_apart_without_their_code() -> None:
    text = '/// <see cref="Apple"/> eats\nvar s = $"an {Apple} core"; // Apple'
    assert stretches(text, "comment") == ['/// <see cref="', '"/> eats', "// Apple"]
    assert stretches(text, "string") == ["an {", "} core"]


@pytest.mark.parametrize("text", ['"', '$"{', '$"{"', '"""', '$$"""{{', "/*", "'", "@", "\\u", "#if", '$"{a'])
def test_a_text_that_ends_anywhere_is_scanned_to_its_end(text: str) -> None:
    for part in scan(text).stretches:
        assert 0 <= part.start <= part.end <= len(text)


def test_whole_words_are_no_parts_of_longer_ones() -> None:
    assert list(whole_words("Order Orders MyOrder Order_1 (Order)", "Order")) == [0, 30]
