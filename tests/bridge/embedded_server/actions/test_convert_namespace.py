"""Namespaces, file-scoped and block-scoped."""

import pytest

from bridge.embedded_server.actions import convert_namespace
from bridge.embedded_server.edits import apply
from bridge.embedded_server.syntax import Source
from tests.bridge.embedded_server.checks import FILE, check, code, place

offer = convert_namespace.offer


def to_file_scoped(text: str) -> str:
    return apply(text, convert_namespace.to_file_scoped(Source(text), FILE))


def to_block_scoped(text: str) -> str:
    return apply(text, convert_namespace.to_block_scoped(Source(text), FILE))


BLOCK = code(
    '''
    // 😀
    using System;

    namespace<|> A.B
    {
        using C;

        /* one
           two */
        class D
        {
            string s = @"raw
        text";
    #if X
            int x;
    #endif
            string t = """
                kept
                """;
        }
    }
    '''
)

FILE_SCOPED = code(
    '''
    // 😀
    using System;

    namespace<|> A.B;

    using C;

    /* one
       two */
    class D
    {
        string s = @"raw
        text";
    #if X
        int x;
    #endif
        string t = """
                kept
                """;
    }
    '''
)


def test_a_block_becomes_file_scoped_without_touching_strings_and_directives() -> None:
    check(offer, BLOCK, FILE_SCOPED.replace("<|>", ""))


def test_a_file_scoped_one_becomes_a_block_without_touching_strings_and_directives() -> None:
    check(offer, FILE_SCOPED, BLOCK.replace("<|>", ""))


def test_there_and_back_gives_the_same_text() -> None:
    block = BLOCK.replace("<|>", "")
    assert to_block_scoped(to_file_scoped(block)) == block


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("namespace A {\n  class B { }\n}\n", "namespace A;\n\nclass B { }\n"),
        ("namespace A\n{\n\n    class B { }\n}\n", "namespace A;\n\nclass B { }\n"),
        ("namespace A // why\n{ // so\n    class B { }\n}\n", "namespace A; // why\n// so\nclass B { }\n"),
        ("namespace A { class B { } }\n", "namespace A;\n\nclass B { }\n"),
        ("namespace A\n{\n}\n", "namespace A;\n"),
        ("namespace A { }", "namespace A;"),
        ("namespace A\n{\n    class B { }\n}", "namespace A;\n\nclass B { }"),
        ("namespace A\n{\n    class B { }\n} // end\n", "namespace A;\n\nclass B { }\n // end\n"),
        ("namespace A\n{\n    class B { }\n};\n", "namespace A;\n\nclass B { }\n"),
        ("namespace A\r\n{\r\n\tclass B\r\n\t{\r\n\t}\r\n}\r\n", "namespace A;\r\n\r\nclass B\r\n{\r\n}\r\n"),
        ("namespace A\n{\n    class B { }\n  // less\n}\n", "namespace A;\n\nclass B { }\n// less\n"),
    ],
)
def test_every_layout_of_a_block_becomes_file_scoped(before: str, after: str) -> None:
    assert to_file_scoped(before) == after
    assert Source(after).error_count == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("namespace A;\n\nclass B { }\n", "namespace A\n{\n    class B { }\n}\n"),
        ("namespace A;\nclass B { }", "namespace A\n{\n    class B { }\n}"),
        (
            "namespace A; // why\n\nclass B\n{\n\tint x;\n}\n",
            "namespace A // why\n{\n\tclass B\n\t{\n\t\tint x;\n\t}\n}\n",
        ),
        ("namespace A;\r\n\r\nclass B { }\r\n\r\n", "namespace A\r\n{\r\n    class B { }\r\n}\r\n\r\n"),
        ("namespace A;\n", "namespace A\n{\n}\n"),
        ("namespace A;", "namespace A\n{\n}"),
        (
            "namespace A;\n\n#region r\nclass B { }\n#endregion\n",
            "namespace A\n{\n#region r\n    class B { }\n#endregion\n}\n",
        ),
    ],
)
def test_every_layout_of_a_file_scoped_one_gets_a_block(before: str, after: str) -> None:
    assert to_block_scoped(before) == after
    assert Source(after).error_count == 0


@pytest.mark.parametrize(
    "text",
    [
        "<|>namespace A { } namespace B { }",
        "<|>namespace A\n{\n    namespace B\n    {\n    }\n}\n",
        "<|>namespace A\n{\n}\nclass C { }\n",
        "#if X\n<|>namespace A\n{\n}\n#endif\n",
        "<|>namespace A\n{\n    class B { void M( { }\n}\n",
        "<|>namespace A; class B { }\n",
        "namespace A\n{\n    class <|>B { }\n}\n",
        "<|>Console.WriteLine();\nnamespace A\n{\n}\n",
    ],
    ids=[
        "two",
        "nested",
        "a type beside",
        "conditional",
        "errors",
        "shared line",
        "caret elsewhere",
        "statements",
    ],
)
def test_it_is_not_offered_where_it_could_be_wrong(text: str) -> None:
    assert offer(place(text)) is None


@pytest.mark.parametrize(("version", "offered"), [(None, True), (9.0, False), (10.0, True), (14.0, True)])
def test_file_scoped_is_offered_only_where_the_language_has_it(version: float | None, offered: bool) -> None:
    at = place("namespace<|> A\n{\n}\n", language_version=version)
    assert (offer(at) is not None) == offered


def test_block_scoped_is_offered_in_every_version() -> None:
    assert offer(place("namespace<|> A;\n", language_version=9.0)) is not None
