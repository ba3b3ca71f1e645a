"""A text with its tree."""

import pytest

from bridge.embedded_server.syntax import Source, nodes_of_types, walk


@pytest.mark.parametrize(
    "text",
    [
        'class A { string s = "x"; class B { } }',
        '/* 😀é */ class A { string s = "😀"; class B { } }',
        "/* " + "é😀x" * 2000 + ' */ class A { string s = "😀"; class B { } }',
    ],
    ids=["one byte each", "mixed", "longer than a chunk"],
)
def test_offsets_are_characters_whatever_the_bytes(text: str) -> None:
    source = Source(text)
    inner = nodes_of_types(source, ["class_declaration"])[1]
    assert text[source.start(inner) : source.end(inner)] == "class B { }" == source.text_of(inner)
    assert source.node_at(source.start(inner), source.end(inner)) == inner


def test_a_lone_surrogate_is_an_error_and_no_crash() -> None:
    source = Source('class A { string s = "\ud83d"; }')
    assert all(source.start(node) <= source.end(node) <= len(source.text) for node in walk(source.root))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb\r\nc\r\n", "\r\n"),
        ("a\nb\nc\r\n", "\n"),
        ("a\rb", "\r"),
        ("a", "\n"),
        ("a\u2028b", "\n"),
    ],
)
def test_new_lines_end_as_most_lines_do(text: str, expected: str) -> None:
    assert Source(text).line_break == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class A\n{\n  int x;\n}", "  "),
        ("class A\n{\n\tint x;\n}", "\t"),
        ("namespace N\n{\n   class A\n   {\n      int x;\n   }\n}", "   "),
        ("class A { }", "    "),
    ],
)
def test_the_indentation_is_the_texts_own(text: str, expected: str) -> None:
    assert Source(text).indent_unit == expected


def test_lines_inside_a_string_are_protected() -> None:
    source = Source(
        'class A\n{\n    string s = @"one\n  two\nthree";\n    string t = """\n        x\n        """;\n}\n'
    )
    assert source.protected_lines == {3, 4, 6, 7}


def test_what_is_not_understood_is_counted() -> None:
    assert Source("class A { }").error_count == 0
    assert Source("class A { void M( { }").error_count > 0


@pytest.mark.parametrize("ending", ["\r", "\x85", "\u2028", "\u2029"])
def test_a_comment_ends_where_the_compiler_ends_it(ending: str) -> None:
    text = f"// é{ending}class A {{ }}"
    (declaration,) = nodes_of_types(Source(text), ["class_declaration"])
    assert Source(text).start(declaration) == 5


@pytest.mark.parametrize("length", [1, 1023, 1024, 1025, 2048])
def test_the_last_node_ends_at_the_end_of_the_text(length: int) -> None:
    text = "//".ljust(length, "é")
    source = Source(text)
    assert source.end(source.root) == len(text)
    assert source.node_at(len(text), len(text)) is not None
