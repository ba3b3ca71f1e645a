"""Put braces around the body of if, else, for, foreach, while, do, using, lock and fixed.

A body that follows its header on a line of its own gets braces on lines of their own. A body on the header's line is
moved to its own line when the statement has its lines to itself, and gets its braces on the same line otherwise.
Several statements may end at the same place (``if (a) while (b) c();``): the closing braces that land on one spot
become one edit, innermost first, so edits never overlap.

Left alone: empty bodies (``while (x) ;``), stacked using, fixed and lock, anything within an interpolated string,
anything with preprocessor lines inside, and everything in a member that the grammar did not understand.
"""

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tree_sitter import Node

from bridge.embedded_server.actions.base import Action, Outcome, Place
from bridge.embedded_server.edits import Edit, in_order
from bridge.embedded_server.syntax import Source, nodes_of_types

TITLE = "Add braces"
EVERYWHERE = "To every statement in the document"

_KEYWORDS = {
    "if_statement": "if",
    "for_statement": "for",
    "foreach_statement": "foreach",
    "while_statement": "while",
    "do_statement": "do",
    "using_statement": "using",
    "lock_statement": "lock",
    "fixed_statement": "fixed",
}

_STACKABLE = {"using_statement", "lock_statement", "fixed_statement"}  # only with their own kind

_MEMBER_OWNERS = ("declaration_list", "compilation_unit", "accessor_list")


@dataclass(frozen=True, slots=True)
class _Body:
    """A body without braces; offsets are characters, ``header_end`` is the one after the header's last token."""

    line_start: int  # where the statement begins, or the ``else if`` chain that it is a link of
    owner_start: int
    header_end: int
    start: int
    end: int
    is_followed_by_keyword: bool  # an ``else``, or the ``while`` of a ``do``, comes after the body


@dataclass(frozen=True, slots=True)
class _Statement:
    """A statement with at least one body that lacks braces and may get them."""

    node: Node
    bodies: tuple[_Body, ...]


def offer(place: Place) -> Action | None:
    """The group of the action, when the place is in a statement with a body that lacks braces."""
    source = place.source
    statements = _statements(source)
    statement = _pointed_at(place, statements)
    if statement is None:
        return None
    children = [
        Action(
            f"To this '{_KEYWORDS[statement.node.type]}' statement",
            "AddBraces",
            run=lambda: Outcome(_edits(source, statement.bodies)),
            fix_all=add_everywhere,
        )
    ]
    if len(statements) > 1:
        everywhere = Action(EVERYWHERE, "AddBraces", run=lambda: Outcome(add_everywhere(source, place.path)))
        children.append(everywhere)
    return Action(TITLE, "AddBraces", children=tuple(children))


def add_everywhere(source: Source, _path: Path) -> tuple[Edit, ...]:
    """The edits that give every body of the document its braces."""
    return _edits(source, [body for statement in _statements(source) for body in statement.bodies])


def _pointed_at(place: Place, statements: tuple[_Statement, ...]) -> _Statement | None:
    """The innermost statement whose header or bare body holds the place, else the first whose keyword is selected."""
    lacking = {statement.node.id: statement for statement in statements}
    node: Node | None = place.source.node_at(place.start, place.end)
    # Beyond a block the caller does not point at the statement.
    while node is not None and node.type != "block":
        found = lacking.get(node.id)
        if found is not None and place.start <= found.bodies[-1].end:
            return found
        node = node.parent
    selected = (found for found in statements if place.start <= found.bodies[0].owner_start <= place.end)
    return next(selected, None)


@lru_cache(maxsize=4)  # a text is asked about many times in a row: listed at places, resolved, fixed
def _statements(source: Source) -> tuple[_Statement, ...]:
    """The statements of the document that can get braces, in the order of the text.

    A node's way up costs as many steps as it is deep, so for long ``else if`` chains everything that depends on what
    is further out is found on the way down.
    """
    chain_starts: dict[int, int] = {}
    found: list[_Statement] = []
    is_safe = _Safety(source)
    for node in nodes_of_types(source, _KEYWORDS):
        start = source.start(node)
        line_start = chain_starts.get(node.id, start)
        alternative = node.child_by_field_name("alternative")
        if alternative is not None and alternative.type == "if_statement":
            chain_starts[alternative.id] = line_start
        bodies = tuple(_bodies(source, node, start, line_start))
        if bodies and is_safe(node):
            found.append(_Statement(node, bodies))
    return tuple(found)


class _Safety:
    """Whether a statement may be touched; asked in the order of the text."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._interpolated = _outermost(nodes_of_types(source, ["interpolated_string_expression"]))
        self._owners = deque(nodes_of_types(source, _MEMBER_OWNERS) if source.root.has_error else ())
        self._open_owners: list[Node] = []

    def __call__(self, statement: Node) -> bool:
        lines = self._source.lines
        first = lines.line_of(self._source.start(statement))
        last = lines.line_of(self._source.end(statement))
        return (
            not self._source.has_directive(first, last)
            and not _covered(self._interpolated, statement)
            and not self._is_in_misunderstood_member(statement)
        )

    def _is_in_misunderstood_member(self, statement: Node) -> bool:
        while self._owners and self._owners[0].start_byte <= statement.start_byte:
            self._open_owners.append(self._owners.popleft())
        while self._open_owners and self._open_owners[-1].end_byte <= statement.start_byte:
            self._open_owners.pop()
        if not self._open_owners:
            return False
        members = self._open_owners[-1].children
        index = bisect_right(members, statement.start_byte, key=lambda member: member.start_byte) - 1
        return members[index].has_error


def _outermost(nodes: list[Node]) -> list[Node]:
    kept: list[Node] = []
    for node in nodes:
        if not kept or node.start_byte >= kept[-1].end_byte:
            kept.append(node)
    return kept


def _covered(nodes: list[Node], inner: Node) -> bool:
    index = bisect_right(nodes, inner.start_byte, key=lambda node: node.start_byte) - 1
    return index >= 0 and inner.end_byte <= nodes[index].end_byte


def _bodies(source: Source, statement: Node, start: int, line_start: int) -> Iterator[_Body]:
    """The bare bodies that belong to this statement itself (an ``else if`` is a statement of its own)."""
    parts = statement.children
    for body in _embedded(statement):
        index = parts.index(body)
        before = next((part for part in reversed(parts[:index]) if part.type != "comment"), None)
        if before is None or body.type in {"block", "empty_statement"}:
            continue
        if body.type == statement.type and body.type in _STACKABLE:
            continue
        if before.type == "else" and body.type == "if_statement":
            continue
        yield _Body(
            line_start,
            start,
            source.end(before),
            source.start(body),
            source.end(body),
            index + 1 < len(parts),
        )


def _embedded(statement: Node) -> list[Node]:
    if statement.type == "if_statement":
        fields = ("consequence", "alternative")
        found = [statement.child_by_field_name(field) for field in fields]
    elif statement.type in {"lock_statement", "fixed_statement"}:  # the grammar gives these bodies no name
        found = [next((node for node in reversed(statement.named_children) if node.type != "comment"), None)]
    else:
        found = [statement.child_by_field_name("body")]
    return [node for node in found if node is not None]


@dataclass(slots=True)
class _Closing:
    """Everything that lands on one spot behind one or more bodies."""

    text: str = ""
    continues_with: str | None = None  # what separates the brace from the code that follows on the line


def _edits(source: Source, bodies: Iterable[_Body]) -> tuple[Edit, ...]:
    opening: list[Edit] = []
    closing: defaultdict[int, _Closing] = defaultdict(_Closing)
    # Innermost first: of two bodies that end together, the inner one begins later.
    for body in sorted(bodies, key=lambda body: (body.end, -body.start)):
        indent = source.indentation(source.lines.line_of(body.owner_start))
        if _is_below_header(source, body):
            _close_below(source, body, indent, closing)
            opening.append(_open_below(source, body, indent))
        elif _has_own_lines(source, body):
            _close_below(source, body, indent, closing)
            opening.append(_open_and_move(source, body, indent))
        else:
            closing[body.end].text += " }"
            opening.append(_replace_blank(source, body.header_end, body.start, " { "))
    return in_order([*opening, *(_closing_edit(source, spot, what) for spot, what in closing.items())])


def _is_below_header(source: Source, body: _Body) -> bool:
    return source.lines.line_of(body.header_end) != source.lines.line_of(body.start) and source.starts_line(
        body.start
    )


def _has_own_lines(source: Source, body: _Body) -> bool:
    """Whether the statement begins its line and nothing foreign follows the body on its line.

    ``} else if`` and a second ``else if`` on one line count as the start of a line: their chain begins one.
    """
    rest = source.rest_of_line(body.end)
    return source.starts_line(body.line_start) and (
        not rest or _is_comment(rest) or body.is_followed_by_keyword
    )


def _open_below(source: Source, body: _Body, indent: str) -> Edit:
    end = source.lines.visible_end(source.lines.line_of(body.header_end))
    return Edit(end, end, f"{source.line_break}{indent}{{")


def _open_and_move(source: Source, body: _Body, indent: str) -> Edit:
    inner = f"{source.line_break}{indent}{{{source.line_break}{indent}{source.indent_unit}"
    return _replace_blank(source, body.header_end, body.start, inner)


def _replace_blank(source: Source, start: int, end: int, text: str) -> Edit:
    """Put ``text`` before ``end`` in place of the white space there; a comment between stays before it."""
    kept = source.text[start:end].rstrip()
    return Edit(start + len(kept), end, text)


def _close_below(source: Source, body: _Body, indent: str, closing: defaultdict[int, _Closing]) -> None:
    rest = source.rest_of_line(body.end)
    brace = f"{source.line_break}{indent}}}"
    if not rest or _is_comment(rest):
        closing[source.lines.visible_end(source.lines.line_of(body.end))].text += brace
    else:
        closing[body.end].text += brace
        closing[body.end].continues_with = source.line_break + indent


def _closing_edit(source: Source, spot: int, what: _Closing) -> Edit:
    if what.continues_with is None:
        return Edit(spot, spot, what.text)
    end = spot
    while end < len(source.text) and source.text[end] in " \t":
        end += 1
    return Edit(spot, end, what.text + what.continues_with)


def _is_comment(rest: str) -> bool:
    return rest.startswith("//") or (rest.startswith("/*") and rest.find("*/") == len(rest) - 2)
