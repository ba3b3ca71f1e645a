"""Sort usings."""

import pytest

from bridge.embedded_server.actions import sort_usings
from bridge.embedded_server.edits import apply
from bridge.embedded_server.syntax import Source
from tests.bridge.embedded_server.checks import FILE, check, code, place


def sorted_text(text: str) -> str:
    return apply(text, sort_usings.sort(Source(text), FILE))


def test_system_comes_first_and_case_does_not_count() -> None:
    check(
        sort_usings.offer,
        code(
            """
            using Zeta;
            using alpha;<|>
            using System.Text;
            using Beta;
            using System;
            """
        ),
        code(
            """
            using System;
            using System.Text;
            using alpha;
            using Beta;
            using Zeta;
            """
        ),
    )


def test_static_and_alias_usings_come_after_namespaces() -> None:
    check(
        sort_usings.offer,
        code(
            """
            using F = System.IO.File;<|>
            using static System.Math;
            using B;
            using static A.C;
            using E = System.Environment;
            """
        ),
        code(
            """
            using B;
            using static System.Math;
            using static A.C;
            using E = System.Environment;
            using F = System.IO.File;
            """
        ),
    )


def test_global_usings_stay_before_the_others() -> None:
    assert sorted_text("using A;\nglobal using B;\n") == "global using B;\nusing A;\n"


def test_parts_of_a_name_are_compared_one_by_one() -> None:
    assert sorted_text("using A1.B;\nusing A.C;\n") == "using A.C;\nusing A1.B;\n"


def test_names_under_global_and_with_an_at_sign_sort_as_names() -> None:
    assert sorted_text("using Z;\nusing global::System;\nusing @B;\n") == (
        "using global::System;\nusing @B;\nusing Z;\n"
    )


def test_comments_above_and_behind_move_along() -> None:
    check(
        sort_usings.offer,
        code(
            """
            // The file.

            using Zeta; // last
            // about
            // System
            using System; /* first */<|>
            """
        ),
        code(
            """
            // The file.

            // about
            // System
            using System; /* first */
            using Zeta; // last
            """
        ),
    )


def test_the_first_comment_of_a_file_is_its_header_and_stays() -> None:
    check(
        sort_usings.offer,
        "// Licence\n// and more\nusing B;<|>\nusing A;\n",
        "// Licence\n// and more\nusing A;\nusing B;\n",
    )


def test_blocks_between_blank_lines_are_sorted_each_by_itself() -> None:
    text = "using B;\nusing A;\n\nusing System;\nusing Microsoft;\n"
    assert sorted_text(text) == "using A;\nusing B;\n\nusing System;\nusing Microsoft;\n"


def test_nothing_moves_across_a_preprocessor_line() -> None:
    text = "using C;\nusing B;\n#region more\nusing A;\n#endregion\n"
    assert sorted_text(text) == "using B;\nusing C;\n#region more\nusing A;\n#endregion\n"


def test_usings_in_a_namespace_are_sorted_where_they_are() -> None:
    check(
        sort_usings.offer,
        "namespace N\n{\n    using B;\n    <|>using A;\n    class C { }\n}\n",
        "namespace N\n{\n    using A;\n    using B;\n    class C { }\n}\n",
    )


def test_line_ends_stay_in_their_place() -> None:
    assert sorted_text("using B;\r\nusing C;\nusing A;") == "using A;\r\nusing B;\nusing C;"


def test_an_emoji_and_a_line_separator_do_not_shift_anything() -> None:
    assert sorted_text("// 😀\u2028using B; // 😀😀\nusing A;\n") == "// 😀\u2028using A;\nusing B; // 😀😀\n"


def test_only_what_moves_is_edited() -> None:
    edits = sort_usings.sort(Source("using A;\nusing C;\nusing B;\nusing D;\n"), FILE)
    assert [(edit.start, edit.end) for edit in edits] == [(9, 17), (18, 26)]


@pytest.mark.parametrize(
    "text",
    [
        "using A;\nusing B;<|>\n",
        "using B; using A;<|>\n",
        "using B;\nusing A;\n\nclass C<|> { }\n",
        "using B;<|>\nusing A\nclass C { }\n",
        "using B;<|>\nusing A.;\n",
        "class C<|> { }",
        "<|>",
    ],
    ids=["in order", "one line", "elsewhere", "a missing semicolon", "half a name", "none", "empty"],
)
def test_it_is_not_offered_without_something_to_do_or_without_understanding(text: str) -> None:
    assert sort_usings.offer(place(text)) is None
