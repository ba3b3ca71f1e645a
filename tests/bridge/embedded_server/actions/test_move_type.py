"""Move a type to its own file."""

from pathlib import Path

import pytest

from bridge.embedded_server.actions import move_type
from bridge.embedded_server.edits import apply
from tests.bridge.embedded_server.checks import code, outcome, place


def check_moved(before: str, left: str, moved: str, name: str = "B") -> None:
    at = place(before)
    result = outcome(move_type.offer, at)
    (new_file,) = result.new_files
    assert new_file.path == Path(f"/nowhere/{name}.cs")
    assert apply(at.source.text, result.edits) == left
    assert new_file.text == moved


def test_a_type_moves_with_its_comments_usings_and_namespace() -> None:
    check_moved(
        code(
            """
            // Licence

            using System;
            global using Never;
            using static System.Math; // 😀

            namespace N.M
            {
                using Inner;

                class A
                {
                }

                /// <summary>😀</summary>
                [Obsolete]
                public sealed class B<|><T>
                {
                    string s = @"raw
            text";
                } // end

                class C { }
            }
            """
        ),
        code(
            """
            // Licence

            using System;
            global using Never;
            using static System.Math; // 😀

            namespace N.M
            {
                using Inner;

                class A
                {
                }

                class C { }
            }
            """
        ),
        code(
            """
            // Licence

            using System;
            using static System.Math;

            namespace N.M
            {
                using Inner;

                /// <summary>😀</summary>
                [Obsolete]
                public sealed class B<T>
                {
                    string s = @"raw
            text";
                } // end
            }
            """
        ),
    )


def test_a_file_scoped_namespace_goes_along() -> None:
    check_moved(
        "using System;\n\nnamespace N;\n\nusing Inner;\n\nclass A { }\n\nenum <|>B { One }\n",
        "using System;\n\nnamespace N;\n\nusing Inner;\n\nclass A { }\n",
        "using System;\n\nnamespace N;\n\nusing Inner;\n\nenum B { One }\n",
    )


def test_nested_namespaces_go_along() -> None:
    check_moved(
        "namespace N\n{\n    namespace M\n    {\n        class A { }\n        struct <|>B { }\n    }\n}\n",
        "namespace N\n{\n    namespace M\n    {\n        class A { }\n    }\n}\n",
        "namespace N\n{\n    namespace M\n    {\n        struct B { }\n    }\n}\n",
    )


def test_the_first_type_takes_the_blank_line_after_it_along() -> None:
    check_moved(
        "namespace N\n{\n    class <|>B { }\n\n    class A { }\n}\n",
        "namespace N\n{\n    class A { }\n}\n",
        "namespace N\n{\n    class B { }\n}\n",
    )


@pytest.mark.parametrize(
    ("before", "left", "moved"),
    [
        ("class A { }\nclass <|>B { }", "class A { }", "class B { }\n"),
        ("class A { }\n\nclass <|>B { }\n", "class A { }\n", "class B { }\n"),
        ("class <|>B { }\nclass A { }", "class A { }", "class B { }\n"),
        (
            "class A { }\r\n\r\nrecord <|>B(int X);\r\n\r\nclass C { }\r\n",
            "class A { }\r\n\r\nclass C { }\r\n",
            "record B(int X);\r\n",
        ),
        ("class A { }\ndelegate void <|>B();\n", "class A { }\n", "delegate void B();\n"),
    ],
)
def test_line_ends_at_the_end_of_the_file_stay_as_they_were(before: str, left: str, moved: str) -> None:
    check_moved(before, left, moved)


def test_the_nullable_context_goes_along() -> None:
    check_moved(
        "#nullable enable\nclass A { }\n#nullable disable\nclass <|>B { }\n",
        "#nullable enable\nclass A { }\n#nullable disable\n",
        "#nullable disable\n\nclass B { }\n",
    )


def test_conditional_usings_go_along_and_assembly_attributes_do_not() -> None:
    check_moved(
        "#if X\nusing One;\n#else\nusing Two;\n#endif\n[assembly: Foo]\nclass A { }\nclass <|>B { }\n",
        "#if X\nusing One;\n#else\nusing Two;\n#endif\n[assembly: Foo]\nclass A { }\n",
        "#if X\nusing One;\n#else\nusing Two;\n#endif\n\nclass B { }\n",
    )


def test_a_comment_about_another_type_is_no_header() -> None:
    check_moved(
        "/// <summary>A</summary>\nclass A { }\n\nclass <|>B { }\n",
        "/// <summary>A</summary>\nclass A { }\n",
        "class B { }\n",
    )


def test_statements_of_the_program_stay() -> None:
    check_moved(
        "using System;\n\nConsole.WriteLine(new B());\n\nclass <|>B { }\n\nclass A { }\n",
        "using System;\n\nConsole.WriteLine(new B());\n\nclass A { }\n",
        "using System;\n\nclass B { }\n",
    )


@pytest.mark.parametrize(
    "text",
    [
        "class <|>B { }\n",
        "class <|>File { }\nclass B { }\n",
        "class A { }\nclass B { void <|>M() { } }\n",
        "class A { class <|>B { } }\n",
        "class A { } class <|>B { }\n",
        "class A { }\nfile class <|>B { }\n",
        "file class A { }\nclass <|>B { A a; }\n",
        "class A { }\n#if X\nclass <|>B { }\n#endif\n",
        "class A { }\n#region r\nclass <|>B\n{\n#endregion\n}\n",
        "class A { }\nclass <|>B { void M( { }\n",
        "<|>",
    ],
    ids=[
        "the only type",
        "the file's own type",
        "caret in a member",
        "nested",
        "shared line",
        "file-local",
        "uses a file-local type",
        "conditional",
        "half a region",
        "errors",
        "empty",
    ],
)
def test_it_is_not_offered_where_it_could_be_wrong(text: str) -> None:
    assert move_type.offer(place(text)) is None


def test_it_is_not_offered_when_the_file_is_there() -> None:
    text = "class A { }\nclass <|>B { }\n"
    assert move_type.offer(place(text, taken={Path("/nowhere/B.cs")})) is None
