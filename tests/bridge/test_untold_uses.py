"""The syntax that uses members by their names, each in a text, and the texts that only look like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.code_text import Code
from bridge.untold_uses import NAMES, TABLE, untold_use
from bridge.words import scan
from tests.bridge.promises import keeps


def code(text: str, file: str = "C.cs") -> Code:
    """One document."""
    return Code(Path(file), file, text, scan(text))


BOUND = [
    ("a query", "Select", "var q = from int r in rows select r;"),
    ("an index from the end", "Length", "var x = rows[^1];"),
    ("an index from the end", "Count", "Index i = ^2;"),
    ("a value of type Index or Range", "Count", "int At(Index i) => rows[i];"),
    ("a range", "Slice", "var x = rows[1..];"),
    ("a list pattern", "Count", "if (rows is [1, _]) { }"),
    ("a list pattern", "Length", "if (o is { Rows: [1] }) { }"),
    ("a list pattern in a switch", "Count", "var n = rows switch { [] => 0, _ => 1 };"),
    ("a list pattern in a switch", "Length", "var n = rows switch { null => 0, [1, _] when n => 1 };"),
    ("a spread element", "MoveNext", "int[] a = [.. rows];"),
    ("a using statement or declaration", "Dispose", "using (Open()) { }"),
    ("a using statement or declaration", "Dispose", "using var x = Open();"),
    ("a using statement or declaration", "DisposeAsync", "await using File<int> x = Open();"),
    ("a foreach", "Dispose", "foreach (var r in rows) { }"),
    ("an await foreach", "GetAsyncEnumerator", "await foreach (var r in rows) { }"),
    ("an await", "GetResult", "await job;"),
    ("an async method builder", "SetResult", "[AsyncMethodBuilder(typeof(B))] class Job { }"),
    ("a collection expression", "Add", "Bag b = [1, 2];"),
    ("a collection expression", "Add", "Use([1]);"),
    ("a collection expression", "Add", "return [];"),
    ("a collection expression", "Add", "Bag Make() => [1];"),
    ("a positional pattern", "Deconstruct", "if (p is (1, _)) { }"),
    ("a positional pattern", "Deconstruct", "if (p is Point(1, _)) { }"),
    ("a positional pattern", "Deconstruct", "switch (p) { case (1, 2): break; }"),
    ("a positional pattern in a switch", "Deconstruct", "var n = p switch { (1, _) => 1, _ => 0 };"),
    ("a positional pattern in a switch", "Deconstruct", "var n = p switch { null => 1, Point(1, _) => 0 };"),
    (
        "a positional pattern in a switch",
        "Deconstruct",
        "var n = p switch { null => 1, ({ X: 1 }, _) => 0 };",
    ),
    ("a deconstruction in a foreach", "Deconstruct", "foreach (var (a, b) in rows) { }"),
    ("a record", "PrintMembers", "public record R(int X);"),
    ("a record", "EqualityContract", "record class R;"),
    ("a record", "Equals", "readonly record struct R<T>(T X);"),
    ("an interpolated string handler", "AppendLiteral", "[InterpolatedStringHandler] ref struct H { }"),
    ("a fixed statement", "GetPinnableReference", "fixed (int* p = rows) { }"),
]

NOT_BOUND = [
    ("Select", "// from a in b select a\nvar from = 1; foreach (var x in y) { }"),
    ("Length", 'int x = a ^ b; rows[0] = 1; string s = $"[^1] {x}";'),
    ("Count", "[Fact] public int M() => 1;\nint[] a = new int[1];"),
    ("Slice", 'var s = "1..2"; // [1..]'),
    ("Dispose", "using System;\nusing static System.Math;\nusing Text = System.String;\nglobal using X;"),
    ("GetAwaiter", "async Task M() { } // await x"),
    ("GetAsyncEnumerator", "foreach (var x in y) { } await z;"),
    ("Add", "[Fact] void M([In] int a) { x[0] = 1; var b = new Bag { 1, 2 }; int[] c; }\n[assembly: X]"),
    ("Deconstruct", "if (x is Point p) { } f(1, 2); var (a, b) = p;"),
    ("Equals", 'class A { int record; string s = "record R("; }'),
    ("AppendFormatted", 'var s = $"{x}";'),
    ("GetPinnableReference", "fixed int x[2]; // fixed (a)"),
    ("Anything", "from a in b select a; [^1] await foreach using (x) record R(int X);"),
]


@keeps("rename.unverified")
@pytest.mark.parametrize(("title", "name", "text"), BOUND)
def test_a_name_is_in_doubt_where_its_syntax_stands(title: str, name: str, text: str) -> None:
    reason = untold_use(["Other", name], [code("class A { }\n"), code(f"\n\n{text}\n", "D.cs")])
    assert reason is not None
    assert f"{name!r} by its name for " in reason
    assert "D.cs:3" in reason
    only = next(s for s in TABLE if s.title == title)
    assert name in only.names
    assert any(hint in text for hint in only.hints)
    assert only.pattern.search(code(text).code), "the row itself fits, and not only another one of the name"


@pytest.mark.parametrize(("name", "text"), NOT_BOUND)
def test_what_only_looks_like_it_is_no_doubt(name: str, text: str) -> None:
    assert untold_use([name], [code(text)]) is None


def test_every_row_of_the_table_has_an_example() -> None:
    assert {title for title, _, _ in BOUND} == {syntax.title for syntax in TABLE}
    assert {name for _, name, _ in BOUND} <= NAMES
