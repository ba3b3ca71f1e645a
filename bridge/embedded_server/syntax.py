"""One C# text with its tree-sitter tree.

tree-sitter parses UTF-8 and answers in bytes; everything else in this package speaks of characters. The two meet in
``Source.start``/``Source.end`` only.

The grammar is older than the language: it marks valid new C# as erroneous. So "has errors" here means "not
understood", never "wrong", and the only conclusion drawn from it is to keep one's hands off.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property

import tree_sitter_c_sharp
from tree_sitter import Language, Node, Parser, Query, QueryCursor

from bridge.embedded_server.positions import LineMap

_LANGUAGE = Language(tree_sitter_c_sharp.language())
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHUNK = 1024  # characters between two remembered byte offsets: a look-up decodes at most this much

TYPE_DECLARATIONS = frozenset(
    {
        "class_declaration",
        "struct_declaration",
        "interface_declaration",
        "enum_declaration",
        "record_declaration",
        "delegate_declaration",
    }
)

MULTI_LINE_TOKENS = frozenset(
    {
        "raw_string_literal",
        "verbatim_string_literal",
        "interpolated_string_expression",
    }
)
"""Tokens whose inner lines belong to the program's meaning: their white space is never touched."""


class Source:
    """A text, its lines and its tree. Immutable; made anew for every text."""

    def __init__(self, text: str) -> None:
        self.text = text
        # A lone surrogate can arrive through JSON and has no bytes; the stand-in takes as many as it would.
        self._encodable = text if text.isascii() else _SURROGATE.sub("\ufffd", text)
        self._data = self._encodable.encode("utf-8")
        self._one_byte_each = len(self._data) == len(text)
        self.root: Node = Parser(_LANGUAGE).parse(_as_the_grammar_sees(self._data)).root_node

    @cached_property
    def lines(self) -> LineMap:
        """The lines of the text."""
        return LineMap(self.text)

    @cached_property
    def _chunk_bytes(self) -> list[int]:
        offsets = [0]
        for start in range(0, len(self.text), _CHUNK):
            offsets.append(offsets[-1] + len(self._encodable[start : start + _CHUNK].encode("utf-8")))
        return offsets

    def start(self, node: Node) -> int:
        """The character offset at which ``node`` begins."""
        return self._character(node.start_byte)

    def end(self, node: Node) -> int:
        """The character offset after ``node``."""
        return self._character(node.end_byte)

    def text_of(self, node: Node) -> str:
        """The text that ``node`` covers."""
        return self.text[self.start(node) : self.end(node)]

    def node_at(self, start: int, end: int) -> Node:
        """The smallest named node that covers the characters from ``start`` to ``end``."""
        found = self.root.named_descendant_for_byte_range(self._byte(start), self._byte(end))
        return found if found is not None else self.root

    @cached_property
    def error_count(self) -> int:
        """How many places the grammar did not understand."""
        if not self.root.has_error:
            return 0
        return sum(
            1
            for node in walk(self.root, into=lambda node: node.has_error)
            if node.is_error or node.is_missing
        )

    @cached_property
    def line_break(self) -> str:
        """The line break that new lines of this text get: the most frequent one, or ``\\n`` where there is none."""
        crlf = self.text.count("\r\n")
        counts = {"\r\n": crlf, "\n": self.text.count("\n") - crlf, "\r": self.text.count("\r") - crlf}
        best = max(counts, key=lambda ending: counts[ending])
        return best if counts[best] else "\n"

    @cached_property
    def indent_unit(self) -> str:
        """One level of indentation: what the first indented member of a type or namespace has more than its owner."""
        for node in walk(self.root, into=_may_hold_declarations):
            if node.type not in {"declaration_list", "enum_member_declaration_list"} or node.parent is None:
                continue
            owner = self.indentation(self.lines.line_of(self.start(node.parent)))
            for child in node.named_children:
                line = self.lines.line_of(self.start(child))
                inner = self.indentation(line)
                if self.starts_line(self.start(child)) and inner.startswith(owner) and inner != owner:
                    return inner[len(owner) :]
        return "    "

    def indentation(self, line: int) -> str:
        """The white space at the start of a (zero-based) line."""
        start = self.lines.starts[line]
        content = self.text[start : self.lines.visible_end(line)]
        return content[: len(content) - len(content.lstrip(" \t"))]

    def starts_line(self, offset: int) -> bool:
        """Whether only white space stands before the character offset on its line."""
        return not self.text[self.lines.starts[self.lines.line_of(offset)] : offset].strip()

    def rest_of_line(self, offset: int) -> str:
        """What follows the character offset on its line, without the line break and outer white space."""
        return self.text[offset : self.lines.visible_end(self.lines.line_of(offset))].strip()

    def is_blank(self, line: int) -> bool:
        """Whether a (zero-based) line holds nothing but white space."""
        return not self.text[self.lines.starts[line] : self.lines.visible_end(line)].strip()

    def is_directive(self, line: int) -> bool:
        """Whether a (zero-based) line looks like a preprocessor line."""
        return self.text[self.lines.starts[line] : self.lines.visible_end(line)].lstrip().startswith("#")

    def has_directive(self, first: int, last: int) -> bool:
        """Whether one of the lines from ``first`` to ``last`` looks like a preprocessor line."""
        index = bisect_left(self._directive_lines, first)
        return index < len(self._directive_lines) and self._directive_lines[index] <= last

    @cached_property
    def _directive_lines(self) -> list[int]:
        return (
            [line for line in range(self.lines.count) if self.is_directive(line)] if "#" in self.text else []
        )

    @cached_property
    def protected_lines(self) -> frozenset[int]:
        """Lines that begin inside a token whose white space has a meaning (a raw or verbatim string)."""
        found: set[int] = set()
        for node in nodes_of_types(self, MULTI_LINE_TOKENS):
            first = self.lines.line_of(self.start(node))
            found.update(range(first + 1, self.lines.line_of(self.end(node)) + 1))
        return frozenset(found)

    def _character(self, byte: int) -> int:
        if self._one_byte_each:
            return byte
        # The last entry is the end of the text, not the start of a chunk.
        chunk = min(bisect_right(self._chunk_bytes, byte) - 1, len(self._chunk_bytes) - 2)
        rest = self._data[self._chunk_bytes[chunk] : byte]
        # A node may end inside a character that only the grammar takes for several: round down to its start.
        return chunk * _CHUNK + len(rest.decode("utf-8", "ignore"))

    def _byte(self, character: int) -> int:
        if self._one_byte_each:
            return character
        chunk = character // _CHUNK
        rest = self._encodable[chunk * _CHUNK : character]
        return self._chunk_bytes[chunk] + len(rest.encode("utf-8"))


def _as_the_grammar_sees(data: bytes) -> bytes:
    """The bytes with every line end of C# written as one the grammar knows, in the same number of bytes.

    To the grammar a ``//`` comment goes on behind U+2028; to the compiler it does not.
    """
    for character in ("\x85", "\u2028", "\u2029"):
        encoded = character.encode("utf-8")
        data = data.replace(encoded, b"\n".ljust(len(encoded)))
    return data


def walk(node: Node, *, into: Callable[[Node], bool] = lambda _node: True) -> Iterator[Node]:
    """The node and all nodes below it, parents first; children are visited only where ``into`` allows."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if into(current):
            stack.extend(reversed(current.children))


def nodes_of_types(source: Source, types: Iterable[str]) -> list[Node]:
    """Every node of one of the named types, in the order of the text. Much quicker than ``walk`` on a big text."""
    found = QueryCursor(_query(tuple(sorted(types)))).captures(source.root).get("node", [])
    return sorted(found, key=lambda node: (node.start_byte, -node.end_byte))


@cache
def _query(types: tuple[str, ...]) -> Query:
    """Compiling a query takes longer than running it on a text of human size."""
    return Query(_LANGUAGE, "[" + " ".join(f"({name})" for name in types) + "] @node")


def name_of(source: Source, node: Node) -> str:
    """The declared name of a node with a ``name`` field, or an empty string."""
    name = node.child_by_field_name("name")
    return source.text_of(name) if name is not None else ""


def has_error_child(node: Node) -> bool:
    """Whether something directly below ``node`` was not understood."""
    return any(child.is_error or child.is_missing for child in node.children)


def _may_hold_declarations(node: Node) -> bool:
    return node.type != "block"
