"""Add braces."""

import pytest

from bridge.embedded_server.actions import add_braces
from bridge.embedded_server.edits import apply
from bridge.embedded_server.syntax import Source
from tests.bridge.embedded_server.checks import FILE, check, code, leaf, place


def in_method(body: str) -> str:
    lines = "".join(f"        {line}\n" if line else "\n" for line in body.splitlines())
    return f"class C\n{{\n    void M()\n    {{\n{lines}    }}\n}}\n"


def everywhere(text: str) -> str:
    return apply(text, add_braces.add_everywhere(Source(text), FILE))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if (a)\n    b();", "if (a)\n{\n    b();\n}"),
        ("if (a) b();", "if (a)\n{\n    b();\n}"),
        ("if (a) // why\n    b(); // so", "if (a) // why\n{\n    b(); // so\n}"),
        ("if (a) b(); // so", "if (a)\n{\n    b(); // so\n}"),
        ("if (a)\n    // why\n    b();", "if (a)\n{\n    // why\n    b();\n}"),
        ("if (a) /* why */ b();", "if (a) /* why */\n{\n    b();\n}"),
        ("if (a)\n    b();\nelse\n    c();", "if (a)\n{\n    b();\n}\nelse\n{\n    c();\n}"),
        ("if (a) b(); else c();", "if (a)\n{\n    b();\n}\nelse\n{\n    c();\n}"),
        (
            "if (a) b();\nelse if (c) d();\nelse e();",
            "if (a)\n{\n    b();\n}\nelse if (c)\n{\n    d();\n}\nelse\n{\n    e();\n}",
        ),
        ("if (a)\n{\n    b();\n}\nelse c();", "if (a)\n{\n    b();\n}\nelse\n{\n    c();\n}"),
        ("for (;;)\n    b();", "for (;;)\n{\n    b();\n}"),
        ("foreach (var x in y)\n    b();", "foreach (var x in y)\n{\n    b();\n}"),
        ("while (a)\n    b();", "while (a)\n{\n    b();\n}"),
        ("do\n    b();\nwhile (a);", "do\n{\n    b();\n}\nwhile (a);"),
        ("do b(); while (a);", "do\n{\n    b();\n}\nwhile (a);"),
        ("using (a)\n    b();", "using (a)\n{\n    b();\n}"),
        ("lock (a)\n    b();", "lock (a)\n{\n    b();\n}"),
        ("fixed (int* p = q)\n    b();", "fixed (int* p = q)\n{\n    b();\n}"),
        ("using (a)\nusing (b)\n    c();", "using (a)\nusing (b)\n{\n    c();\n}"),
        (
            "while (a)\n    if (b)\n        c();",
            "while (a)\n{\n    if (b)\n    {\n        c();\n    }\n}",
        ),
        (
            "if (a)\n    while (b) c();\nelse\n    d();",
            "if (a)\n{\n    while (b)\n    {\n        c();\n    }\n}\nelse\n{\n    d();\n}",
        ),
        ("if (a) while (b) c(); else d();", "if (a)\n{\n    while (b) { c(); }\n}\nelse\n{\n    d();\n}"),
        ("x(); if (a) b(); y();", "x(); if (a) { b(); } y();"),
        ("x(); if (a) b(); else c(); y();", "x(); if (a) { b(); } else { c(); } y();"),
        ("if (a)\n    b(); else c();", "if (a)\n{\n    b();\n}\nelse\n{\n    c();\n}"),
        ("if (a)\n    return;   ", "if (a)\n{\n    return;   \n}"),
        ("if (a)\n    b(\n        1,\n        2);", "if (a)\n{\n    b(\n        1,\n        2);\n}"),
        ('if (a) s = @"x\n  y"; // z', 'if (a)\n{\n    s = @"x\n  y"; // z\n}'),
    ],
)
def test_every_layout_gets_its_braces(before: str, after: str) -> None:
    source = Source(in_method(before))
    assert source.error_count == 0
    result = everywhere(source.text)
    assert result == in_method(after)
    assert Source(result).error_count == 0
    assert everywhere(result) == result


@pytest.mark.parametrize(
    "body",
    [
        "while (a) ;",
        "if (a) { b(); } else if (c) { d(); }",
        "using (a)\nusing (b)\n{\n}",
        'var s = $"{Run(() => { if (a) b(); })}";',
        "if (a)\n#if X\n    b();\n#endif\n    c();",
        "if (a) b(; x();",
    ],
    ids=["empty body", "nothing missing", "stacked", "inside a string", "directives", "errors"],
)
def test_what_must_be_left_alone_is(body: str) -> None:
    text = in_method(body)
    assert everywhere(text) == text


def test_line_ends_and_tabs_are_the_files_own() -> None:
    text = "class C\r\n{\r\n\tvoid M()\r\n\t{\r\n\t\tif (a) b();\r\n\t}\r\n}\r\n"
    assert everywhere(text) == (
        "class C\r\n{\r\n\tvoid M()\r\n\t{\r\n\t\tif (a)\r\n\t\t{\r\n\t\t\tb();\r\n\t\t}\r\n\t}\r\n}\r\n"
    )


def test_emoji_before_the_statement_do_not_shift_the_braces() -> None:
    assert everywhere(in_method('x("😀"); if (a) b("😀"); y();')) == in_method(
        'x("😀"); if (a) { b("😀"); } y();'
    )


def test_errors_in_one_member_leave_the_others_their_braces() -> None:
    bare = "        if (a)\n            b();\n"
    text = f"class C\n{{\n    void M()\n    {{\n{bare}        c(;\n    }}\n    void N()\n    {{\n{bare}    }}\n}}\n"
    assert Source(text).error_count == 1
    before, _, after = text.rpartition(bare)
    assert everywhere(text) == before + bare.replace("\n", "\n        {\n", 1) + "        }\n" + after


def test_a_long_chain_is_answered_quickly_and_in_full() -> None:
    chain = "if (a) b();\n" + "else if (a) b();\n" * 1000
    result = everywhere(in_method(chain))
    assert result.count("{") == 2 + 1001


TWO = code(
    """
    class C
    {
        void M()
        {
            while (a)
                if (b)<|>
                    c();
        }
    }
    """
)


def test_this_statement_is_the_innermost_one_at_the_caret() -> None:
    after = TWO.replace("<|>", "").replace(
        "            if (b)\n                c();\n",
        "            if (b)\n            {\n                c();\n            }\n",
    )
    check(add_braces.offer, TWO, after, "To this 'if' statement")


def test_the_whole_document_is_offered_beside_it() -> None:
    action = add_braces.offer(place(TWO))
    assert action is not None
    assert [child.title for child in action.children] == ["To this 'if' statement", add_braces.EVERYWHERE]
    assert leaf(action, "To this 'if' statement").fix_all is not None


def test_a_single_statement_is_offered_alone() -> None:
    action = add_braces.offer(place(in_method("if (a) b<|>();")))
    assert action is not None
    assert [child.title for child in action.children] == ["To this 'if' statement"]


def test_a_selection_offers_the_first_statement_in_it() -> None:
    action = add_braces.offer(place(in_method("<|>x();\nwhile (a) b();\nif (a) b();<|>")))
    assert action is not None
    assert action.children[0].title == "To this 'while' statement"


@pytest.mark.parametrize(
    "text",
    [
        in_method("x<|>();\nif (a) b();"),
        in_method("if (a)\n{\n    x<|>();\n}\nelse b();"),
        in_method("if (a) { b<|>(); }"),
        "<|>",
    ],
)
def test_it_is_not_offered_beside_such_a_statement(text: str) -> None:
    assert add_braces.offer(place(text)) is None
