"""The outline of a document."""

from collections.abc import Iterable

from lsprotocol.types import SymbolKind

from bridge.embedded_server.outline import Symbol, outline
from bridge.embedded_server.syntax import Source
from tests.bridge.embedded_server.checks import code


def shown(symbols: Iterable[Symbol], depth: int = 0) -> list[str]:
    return [
        line
        for symbol in symbols
        for line in ["  " * depth + f"{symbol.kind.name} {symbol.name}", *shown(symbol.children, depth + 1)]
    ]


def test_every_kind_of_declaration_is_shown_with_its_signature() -> None:
    source = Source(
        code(
            """
            namespace A.B
            {
                class C<T>
                {
                    const int One = 1, Two = 2;
                    string name;
                    public event Action Changed;
                    public C(int x) { }
                    ~C() { }
                    public int Add(int a, List<int> b) => a;
                    void N<U>() { }
                    public string Name { get; set; }
                    public int this[int i] => i;
                    public static C<T> operator +(C<T> a, C<T> b) => a;
                    interface I { }
                }
                enum E { X, Y }
                record R(int Z);
                record struct S(int Z);
                struct P { }
                delegate int D(string s);
            }
            """
        )
    )
    assert shown(outline(source)) == [
        "Namespace A.B",
        "  Class C<T>",
        "    Constant One : int",
        "    Constant Two : int",
        "    Field name : string",
        "    Event Changed : Action",
        "    Constructor C(int)",
        "    Method C()",
        "    Method Add(int, List<int>) : int",
        "    Method N<U>() : void",
        "    Property Name : string",
        "    Property this[int] : int",
        "    Operator operator +(C<T>, C<T>) : C<T>",
        "    Interface I",
        "  Enum E",
        "    EnumMember X",
        "    EnumMember Y",
        "  Class R",
        "  Struct S",
        "  Struct P",
        "  Function D(string)",
    ]


def test_what_follows_a_file_scoped_namespace_is_in_it() -> None:
    text = "namespace A;\n\nclass B { }\n"
    (namespace,) = outline(Source(text))
    assert [child.name for child in namespace.children] == ["B"]
    assert text[namespace.start : namespace.end].endswith("class B { }")


def test_names_are_at_their_place_behind_an_emoji() -> None:
    text = "/* 😀 */ class Möhre { }"
    (symbol,) = outline(Source(text))
    assert text[symbol.name_start : symbol.name_end] == "Möhre"
    assert symbol.kind is SymbolKind.Class


def test_a_broken_text_still_has_an_outline() -> None:
    assert "Class A" in shown(outline(Source("class A { void M( { } }\nclass B { }")))


def test_an_empty_text_has_an_empty_outline() -> None:
    assert outline(Source("")) == ()
