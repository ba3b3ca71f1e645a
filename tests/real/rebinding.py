"""A solution of renames that would change the meaning of code although it compiles, and of harmless ones beside them.

The word to rename is the one that follows ``/*->*/`` in its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MARK: Final = "/*->*/"


@dataclass(frozen=True)
class Case:
    """One file with one rename to try in it."""

    text: str
    new_name: str
    says: str = ""
    """What a refusal must say."""

    @property
    def place(self) -> int:
        """The index of the word to rename."""
        return self.text.index(MARK) + len(MARK)


REBOUND: Final[Mapping[str, Case]] = {
    "a member hides that of the base class": Case(
        """namespace HidesBase;
public class Base { public string Name() => "base"; }
public class Derived : Base { public string /*->*/Title() => "derived"; }
public static class User { public static string Use(Derived d) => d.Name() + d.Title(); }
""",
        "Name",
    ),
    "a collection initializer takes the renamed method": Case(
        """namespace Initializer;
public class Bag : System.Collections.Generic.List<object> { public void /*->*/Put(int n) { } }
public static class User { public static Bag Use() => new Bag { 1, 2 }; }
""",
        "Add",
    ),
    "an interface is implemented by the renamed method": Case(
        """namespace Implements;
public interface IRun { string Run(); }
public class Base { public string Run() => "base"; }
public class Derived : Base, IRun { public string /*->*/Go() => "derived"; }
public static class User { public static string Use(IRun r) => r.Run(); }
""",
        "Run",
    ),
    "a discard becomes an assignment": Case(
        """namespace Discard;
public static class C
{
    public static int M() { int /*->*/kept = 1; _ = System.Math.Abs(2); return kept; }
}
""",
        "_",
    ),
    "an object initializer sets the renamed property": Case(
        """namespace ObjectInitializer;
public class Base { public int Size { get; set; } }
public class Derived : Base { public int /*->*/Width { get; set; } }
public static class User { public static Derived Use() => new Derived { Size = 1, Width = 2 }; }
""",
        "Size",
    ),
    "a property pattern looks at the renamed property": Case(
        """namespace PropertyPattern;
public class Base { public int Size => 1; }
public class Derived : Base { public int /*->*/Width => 2; }
public static class User { public static bool Use(Derived d) => d is { Size: 1 } && d.Width == 2; }
""",
        "Size",
    ),
    "a deconstruction takes the renamed method": Case(
        """namespace Deconstruction;
public class Pair { public void /*->*/Split(out int a, out int b) { a = 1; b = 2; } }
public static class Extensions { public static void Deconstruct(this Pair p, out int a, out int b) { a = 3; b = 4; } }
public static class User { public static int Use(Pair p) { var (a, b) = p; return a + b; } }
""",
        "Deconstruct",
    ),
    "an await takes the renamed method": Case(
        """namespace Awaiting;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;
public class Job { public TaskAwaiter<int> /*->*/Run() => Task.FromResult(1).GetAwaiter(); }
public static class Extensions { public static TaskAwaiter<int> GetAwaiter(this Job j) => Task.FromResult(2).GetAwaiter(); }
public static class User { public static async Task<int> Use(Job j) => await j; }
""",
        "GetAwaiter",
    ),
    "a foreach takes the renamed method": Case(
        """namespace Each;
public class Rows { public System.Collections.Generic.IEnumerator<int> /*->*/Backwards() => null; }
public static class Extensions { public static System.Collections.Generic.IEnumerator<int> GetEnumerator(this Rows r) => null; }
public static class User { public static int Use(Rows rows) { int n = 0; foreach (int r in rows) { n += r; } return n; } }
""",
        "GetEnumerator",
    ),
    "a call that expands params takes the renamed method": Case(
        """namespace Expanded;
public static class C
{
    public static string Tell(params int[] all) => "params";
    public static string /*->*/Say(int one) => "one";
    public static string Use() => Tell(1) + Say(2);
}
""",
        "Tell",
    ),
    "a call that leaves out an argument takes the renamed method": Case(
        """namespace Optional;
public static class C
{
    public static string Tell(int one, int two = 2) => "optional";
    public static string /*->*/Say(int one) => "one";
    public static string Use() => Tell(1) + Say(2);
}
""",
        "Tell",
    ),
    "a nested type hides the inherited one": Case(
        """namespace InheritedType;
public class Base { public class Part { public static string Id = "base"; } }
public class Derived : Base { public class /*->*/Piece { public static string Id = "derived"; } }
public static class User { public static string Use() => Derived.Part.Id + Derived.Piece.Id; }
""",
        "Part",
    ),
}
"""Compiles before and would compile after, and no server has anything to say."""

REWRITTEN: Final[Mapping[str, Case]] = {
    "local shadows a field that a lambda uses": Case(
        """namespace LocalField;
public class C
{
    private int total = 1;
    public int M() { int /*->*/part = 2; System.Func<int> f = () => total + part; return f(); }
}
""",
        "total",
    ),
    "parameter shadows a property": Case(
        """namespace ParameterProperty;
public class C
{
    public int Size => 1;
    public int M(int /*->*/size) => Size + size;
}
""",
        "Size",
    ),
    "a better overload takes the calls": Case(
        """namespace Overload;
public static class C
{
    public static string Tell(object o) => "object";
    public static string /*->*/Say(string s) => "string";
    public static string Use() => Tell("x") + Say("y");
}
""",
        "Tell",
    ),
    "the renamed method's own calls take another overload": Case(
        """namespace OwnCalls;
public static class C
{
    public static string Tell(int o) => "int";
    public static string /*->*/Say(long s) => "long";
    public static string Use() => Tell(1) + Say(2);
}
""",
        "Tell",
    ),
    "an instance method is taken before an extension method": Case(
        """namespace InstanceExtension;
public class C { public string /*->*/Own(int n) => "instance"; }
public static class Extensions { public static string Extra(this C c, int n) => "extension"; }
public static class User { public static string Use(C c) => c.Extra(1) + c.Own(2); }
""",
        "Extra",
    ),
    "an extension method nearer by takes the calls": Case(
        """namespace Far { public static class E { public static string Far(this int n) => "far"; } }
namespace Near
{
    using Far;
    public static class E { public static string /*->*/Close(this int n) => "near"; }
    public static class User { public static string Use() => 1.Far() + 2.Close(); }
}
""",
        "Far",
    ),
    "a type nearer by hides the imported one": Case(
        """namespace Distant { public class Thing { public override string ToString() => "distant"; } }
namespace Here
{
    using Distant;
    public class /*->*/Item { public override string ToString() => "here"; }
    public static class User { public static object[] Use() => new object[] { new Thing(), new Item() }; }
}
""",
        "Thing",
    ),
    "a nested type hides the outer one": Case(
        """namespace Nested;
public class Node { public int Depth; }
public class Tree
{
    public class /*->*/Leaf { public int Depth; }
    public int Use() => new Node().Depth + new Leaf().Depth;
}
""",
        "Node",
    ),
    "a type parameter hides a type": Case(
        """namespace TypeParameter;
public class Part { }
public class Box</*->*/T> where T : new() { public object Use() => new Part(); public T Make() => new T(); }
""",
        "Part",
    ),
    "a pattern variable hides a field": Case(
        """namespace Pattern;
public class C
{
    private string text = "field";
    public string M(object o) => o is string /*->*/found ? text + found : text;
}
""",
        "text",
    ),
    "a lambda's parameter hides a field": Case(
        """namespace Lambda;
public class C
{
    private int step = 5;
    public System.Func<int, int> M() => /*->*/x => x + step;
}
""",
        "step",
    ),
    "a local function hides a method": Case(
        """namespace LocalFunction;
public class C
{
    private string Read() => "method";
    public string M() { string /*->*/Local() => "local"; return Read() + Local(); }
}
""",
        "Read",
    ),
    "a property is taken where the type of its name was meant": Case(
        """namespace ColorColor;
public class Shade { public static string Default => "type"; public string Default2 => "instance"; }
public class Paint { public Other /*->*/Tone => new Other(); public string Use() => Shade.Default + Tone.Default; }
public class Other { public string Default => "other"; }
""",
        "Shade",
    ),
    "a member is taken before what using static brings": Case(
        """namespace Imported { public static class Maths { public static string Twice(int n) => "imported"; } }
namespace Importing
{
    using static Imported.Maths;
    public class C { public static string /*->*/Own(long n) => "member"; public static string Use() => Twice(1) + Own(2); }
}
""",
        "Twice",
    ),
    "a namespace nearer by hides another": Case(
        """namespace Outer.Tools { public static class T { public static string Id = "outer"; } }
namespace Outer.Inner./*->*/Things { public static class T { public static string Id = "inner"; } }
namespace Outer.Inner { public static class User { public static string Use() => Tools.T.Id + Things.T.Id; } }
""",
        "Tools",
    ),
    "nameof means another member": Case(
        """namespace NameOf;
public class Base { public int Count => 1; }
public class Derived : Base
{
    public long /*->*/Number => 2;
    public string Use() => nameof(Count) + nameof(Number);
}
""",
        "Count",
    ),
    "foreach takes the renamed method": Case(
        """namespace OwnEach;
public class Rows : System.Collections.Generic.List<int>
{
    public System.Collections.Generic.IEnumerator<int> /*->*/Backwards() => GetEnumerator();
}
public static class User { public static int Use(Rows rows) { int n = 0; foreach (int r in rows) { n += r; } return n; } }
""",
        "GetEnumerator",
    ),
}
"""The same, but servers write other code in the places where the name is taken."""

UNTOLD: Final[Mapping[str, Case]] = {
    "a query takes the renamed method": Case(
        """namespace Query;
using System.Linq;
public class Rows : System.Collections.Generic.List<int>
{
    public int[] /*->*/Map(System.Func<int, int> f) => new int[0];
}
public static class User { public static object Use(Rows rows) => from r in rows select r + 1; }
""",
        "Select",
    ),
    "an index from the end takes the renamed property": Case(
        """namespace FromEnd;
public class Base { public int Length => 3; public int this[int i] => i; }
public class Rows : Base { public int /*->*/Size => 5; }
public static class User { public static int Use(Rows rows) => rows[^1] + rows.Size; }
""",
        "Length",
    ),
    "a range takes the renamed method": Case(
        """namespace Ranges;
public class Base { public int Length => 3; public int Slice(int a, int b) => 1; }
public class Rows : Base { public int /*->*/Cut(int a, int b) => 2; }
public static class User { public static int Use(Rows rows) => rows[1..] + rows.Cut(1, 2); }
""",
        "Slice",
    ),
    "a list pattern takes the renamed property": Case(
        """namespace ListPattern;
public class Base { public int Count => 3; public int this[int i] => i; }
public class Rows : Base { public int /*->*/Total => 1; }
public static class User { public static bool Use(Rows rows) => rows is [0] && rows.Total == 1; }
""",
        "Count",
    ),
    "an asynchronous loop takes the renamed method": Case(
        """namespace AsyncEach;
using System.Threading.Tasks;
public class Steps { public int Current => 1; public ValueTask<bool> MoveNextAsync() => new(false); }
public class Rows { public Steps /*->*/Slowly() => new Steps(); }
public static class Extensions { public static Steps GetAsyncEnumerator(this Rows rows) => new Steps(); }
public static class User { public static async Task Use(Rows rows) { await foreach (int row in rows) { } } }
""",
        "GetAsyncEnumerator",
    ),
    "a collection expression takes the renamed method": Case(
        """namespace Expression;
public class Bag : System.Collections.Generic.List<object> { public void /*->*/Put(int n) { } }
public static class User { public static Bag Use() { Bag bag = [1, 2]; return bag; } }
""",
        "Add",
    ),
    "a positional pattern takes the renamed method": Case(
        """namespace Positional;
public class Pair { public void /*->*/Split(out int a, out int b) { a = 1; b = 2; } }
public static class Extensions { public static void Deconstruct(this Pair p, out int a, out int b) { a = 3; b = 4; } }
public static class User { public static bool Use(Pair p) => p is (1, 2); }
""",
        "Deconstruct",
    ),
    "a record takes the renamed method for its own": Case(
        """namespace OwnEquals;
public sealed record Point(int Row) { public bool /*->*/Near(Point other) => true; public override int GetHashCode() => 1; }
public static class User { public static bool Use(Point a, Point b) => a == b; }
""",
        "Equals",
    ),
}
"""The same, and not even the uses that servers tell of show it."""

TAKEN_OVER: Final[Mapping[str, Case]] = {
    "an anonymous type has a member of the renamed name": Case(
        """namespace Anonymous;
public class Parcel { public int /*->*/Weight { get; set; } }
public static class User { public static string Use(Parcel p) => new { p.Weight }.ToString(); }
""",
        "Mass",
        "inferred as a member name of the anonymous type",
    ),
    "a tuple has a member of the renamed name": Case(
        """namespace Tuples;
public static class C { public static int M() { int /*->*/first = 1; var t = (first, 2); return t.first; } }
""",
        "start",
        "inferred as a member name of the tuple",
    ),
    "a record's parameter means the property of its base": Case(
        """namespace Inherits;
public record Base { public int Depth { get; init; } }
public record Box(int /*->*/Height) : Base;
""",
        "Depth",
        "declares 'Depth' too",
    ),
    "a native function is found by the name of the method": Case(
        """namespace Native;
using System.Runtime.InteropServices;
public static class C { [DllImport("c")] public static extern int /*->*/getpid(); }
""",
        "ProcessId",
        "takes the method's name",
    ),
    "an attribute names the parameter by a string": Case(
        """namespace CallerText;
using System.Runtime.CompilerServices;
public static class C
{
    public static string Tell(bool /*->*/holds, [CallerArgumentExpression("holds")] string text = "") => text;
}
""",
        "isTrue",
        "CallerArgumentExpression",
    ),
}
"""The name itself becomes something that no use of the symbol shows."""

HARMLESS: Final[Mapping[str, Case]] = {
    "a type with constructors, a cref, an alias and an attribute": Case(
        """using Short = Harmless.Apple;
namespace Harmless;
/// <summary>See <see cref="Apple"/>; Apple in words.</summary>
public class /*->*/Apple
{
    public Apple(int size) { Size = size; }
    public Apple() : this(1) { }
    ~Apple() { }
    public int Size { get; }
    public static Apple operator +(Apple a, Apple b) => new(a.Size + b.Size);
    public static string Name => nameof(Apple) + "Apple";
}
public static class Fruit { public static object Use(Short s) => new Short(2) + new Apple(); }
""",
        "Pear",
    ),
    "a local beside others": Case(
        """namespace Beside;
public static class C { public static int M() { int /*->*/one = 1; { int two = 2; return one + two; } } }
""",
        "first",
    ),
    "a name that another scope has": Case(
        """namespace Scopes;
public static class C
{
    public static int M() { int /*->*/a = 1; return a; }
    public static int N() { int b = 2; return b; }
}
""",
        "b",
    ),
    "an interface member with its implementations": Case(
        """namespace Interfaces;
public interface IShape { double /*->*/Area(); }
public class Square : IShape { public double Area() => 1; }
public class Circle : IShape { double IShape.Area() => 3; }
public static class User { public static double Use(IShape s, Square q) => s.Area() + q.Area(); }
""",
        "Surface",
    ),
    "a name that is a keyword": Case(
        """namespace Keyword;
public static class C { public static int M(int /*->*/kind) => kind + 1; }
""",
        "@class",
    ),
    "an alias": Case(
        """using /*->*/Txt = System.Text.StringBuilder;
namespace Alias;
public static class User { public static Txt Use() => new Txt(); }
""",
        "Builder",
    ),
    "an attribute by its short form": Case(
        """namespace ShortForm;
public class MarkAttribute : System.Attribute { public MarkAttribute(int n) { } }
[/*->*/Mark(1)] public class Marked { [MarkAttribute(2)] public int X; }
""",
        "Sign",
    ),
    "a record's parameter": Case(
        """namespace Records;
public record Point(int /*->*/X, int Y);
public static class User { public static int Use(Point p) => p.X + new Point(X: 1, Y: 2).X + (p with { X = 3 }).X; }
""",
        "Left",
    ),
    "behind an emoji": Case(
        """namespace Emoji;
public static class C { public static string /*->*/Foo(int x) => "🙂é" + x; public static string Use() { /* 🙂 */ var s = "🙂é"; return Foo(1) + s; } }
""",
        "Bar",
    ),
}
