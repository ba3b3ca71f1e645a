"""Names that become something else: inferred members, properties of records, attributes."""

from __future__ import annotations

import pytest

from bridge.bound_by_name import (
    inferred_name,
    is_member_access,
    named_in_attributes,
    native_name,
    taken_property,
)
from bridge.code_text import Code
from tests.bridge.promises import keeps
from tests.bridge.test_untold_uses import code


def marked(text: str) -> tuple[Code, int, int]:
    """A text with one word between guillemets: the text without them, and the word's place."""
    start, end = text.index("«"), text.index("»") - 1
    return code(text.replace("«", "").replace("»", "")), start, end


@keeps("rename.binding")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = new { «a» };", "anonymous type"),
        ("x = new { b, p.«X», c };", "anonymous type"),
        ("x = new { b = 1, f(1, 2).y[0]?.«X» };", "anonymous type"),
        ("x = new { this.«a» }", "anonymous type"),
        ("x = new { X = p.«X» };", None),
        ("x = new { b = «a» };", None),
        ("x = new { «a».Length };", None),
        ("x = new { n = f(«a», 1) };", None),
        ("x = new { n = 1 + «a» };", None),
        ("x = new Foo { «a», b };", None),
        ("x = new[] { «a», b };", None),
        ("x = (1, «a»);", "tuple"),
        ("return («a», p.b);", "tuple"),
        ("Use((p.«X», 1));", "tuple"),
        ("x => («a», 1);", "tuple"),
        ("Use(«a», 1);", None),
        ("Use<int>(«a», 1);", None),
        ("x = (n: «a», 1);", None),
        ("(«a», b) = p;", None),
        ("f = («a», b) => 1;", None),
        ("void M(int «a», int b) { }", None),
        ("x = («a»);", None),
        ("x is («a», 1)", None),
        ('x = $"{«a»}, {b}";', None),
    ],
)
def test_a_member_takes_its_name_from_the_end_of_an_expression(text: str, found: str | None) -> None:
    assert inferred_name(*marked(text)) == found


def test_a_member_is_used_behind_a_dot_or_in_a_pattern() -> None:
    assert is_member_access(code("t?.a;"), ["b", "a"])
    assert is_member_access(code("t is { a: 1 }"), ["a"])
    assert not is_member_access(code("a; t.ab; // t.a"), ["a"])


@keeps("rename.binding")
@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("record B { public int Size { get; } }\nrecord D(int «Width») : B;", True),
        ("record B { public int Size => 1; }\nrecord D(int «Width») : B;", True),
        ("record B { public int Size; }\nrecord D(int «Width») : B;", True),
        ("record B(int Size);\nrecord D(int «Width») : B(Width);", True),
        ("record D(int «Width») { public int Size { get; init; } = 2; }", True),
        ("record B { public int Width { get; } }\nrecord D(int «Width») : B;", True),
        ("record B(int «Width»);\nrecord D(int Size) : B(Size);", True),
        ("record B { public int «Width» { get; } }\nrecord D(int Width) : B;", True),
        ("class B { public int «Width» { get; } }\nrecord D(int Width) : R;", False),
        ("record B { public int Size { get; } }\nrecord D(int «Width»);", False),
        ("record B(int Size);\nrecord D(int «Width») { }", False),
        ("record B { public int Size() { get(); } }\nrecord D(int «Width») : B;", False),
        ("class B { public int Size { get; } }\nclass D { void M(int «Width») { } }", False),
    ],
)
def test_a_positional_parameter_may_meet_a_property_of_its_record(text: str, is_taken: bool) -> None:
    source, start, end = marked(text)
    reason = taken_property(source, start, end, ["Width", "Size"], [source])
    assert (reason is not None) == is_taken


@keeps("rename.binding")
@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ('class N { [DllImport("c")] static extern int «getpid»(); }', True),
        ('class N { [LibraryImport("c")] internal static partial int «getpid»(); }', True),
        ('class N { [DllImport("c", EntryPoint = "getpid")] static extern int «Pid»(); }', False),
        ("class N { [UnsafeAccessor(UnsafeAccessorKind.Method)] static extern int «Get»(C c); }", True),
        ("class N { [UnsafeAccessor(UnsafeAccessorKind.Constructor)] static extern C «Get»(); }", False),
        ('class N { [DllImport("c")] static extern int getpid(int «a»); }', False),
        ('class N { [DllImport("c")] static extern int getpid(); int «Other»() => 1; }', False),
    ],
)
def test_attributes_of_native_calls_take_the_name_of_the_method(text: str, is_taken: bool) -> None:
    assert (native_name(*marked(text)) is not None) == is_taken


@keeps("rename.binding")
@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ('[UnsafeAccessor(UnsafeAccessorKind.Field, Name = "old")] static extern ref int F(C «c»);', True),
        ('[CollectionBuilder(typeof(B), "old")] class «C» { }', True),
        ('void M(int «old», [CallerArgumentExpression("old")] string s = "") { }', True),
        ('void M(int old, [CallerArgumentExpression("old")] string s = "") { } int «x»;', False),
        ('void M(int «x», [CallerArgumentExpression(nameof(x))] string s = "") { }', False),
        ('[Obsolete("old")] void «M»() { } // UnsafeAccessor(Name = "old")', False),
    ],
)
def test_attributes_name_members_by_strings(text: str, is_named: bool) -> None:
    source, start, _ = marked(text)
    assert bool(list(named_in_attributes(["old", "new"], [source], (source, start)))) == is_named
