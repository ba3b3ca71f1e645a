"""Put braces around the body of if, else, for, foreach, while, do, using, lock and fixed.

A body that follows its header on a line of its own gets braces on lines of their own. A body on the header's line is
moved to its own line when the statement has its lines to itself, and gets its braces on the same line otherwise.
Several statements may end at the same place (``if (a) while (b) c();``): the closing braces that land on one spot
become one edit, innermost first, so edits never overlap.

Left alone: empty bodies (``while (x) ;``), stacked using, fixed and lock, anything within an interpolated string,
anything with preprocessor lines inside, and everything in a member that the grammar did not understand.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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

_MEMBER_ENDS = {"declaration_list", "compilation_unit", "accessor_list"}


@dataclass(frozen=True, slots=True)
class _Body:
    """A body without braces: ``header_end`` is the character offset after the header's last token."""

    owner: Node
    header_end: int
    start: int
    end: int
    is_followed_by_keyword: bool  # an ``else``, or the ``while`` of a ``do``, comes after the body


def offer(place: Place) -> Action | None:
    """The group of the action, when the place is in a statement with a body that lacks braces."""
    statements = _statements(place.source)
    statement = _pointed_at(place, statements)
    if statement is None:
        return None
    children = [
        Action(
            f"To this '{_KEYWORDS[statement.type]}' statement",
            "AddBraces",
            run=lambda: Outcome(_edits(place.source, _bodies(place.source, statement))),
            fix_all=add_everywhere,
        )
    ]
    if len(statements) > 1:
        everywhere = Action(
            EVERYWHERE, "AddBraces", run=lambda: Outcome(add_everywhere(place.source, place.path))
        )
        children.append(everywhere)
    return Action(TITLE, "AddBraces", children=tuple(children))


def add_everywhere(source: Source, _path: Path) -> tuple[Edit, ...]:
    """The edits that give every body of the document its braces."""
    return _edits(source, [body for statement in _statements(source) for body in _bodies(source, statement)])


def _pointed_at(place: Place, statements: list[Node]) -> Node | None:
    """The innermost statement whose header or bare body holds the place, else the first whose keyword is selected."""
    lacking = {statement.id for statement in statements}
    node: Node | None = place.source.node_at(place.start, place.end)
    while (
        node is not None and node.type != "block"
    ):  # beyond a block the caller does not point at the statement
        if node.id in lacking and place.start <= list(_bodies(place.source, node))[-1].end:
            return node
        node = node.parent
    selected = (node for node in statements if place.start <= place.source.start(node) <= place.end)
    return next(selected, None)


def _statements(source: Source) -> list[Node]:
    return [
        node
        for node in nodes_of_types(source, _KEYWORDS)
        if any(_bodies(source, node)) and _may_change(source, node)
    ]


def _may_change(source: Source, statement: Node) -> bool:
    node: Node = statement
    while node.parent is not None and node.parent.type not in _MEMBER_ENDS:
        node = node.parent
        if node.type == "interpolated_string_expression":
            return False
    first, last = source.lines.line_of(source.start(statement)), source.lines.line_of(source.end(statement))
    return not node.has_error and not any(source.is_directive(line) for line in range(first, last + 1))


def _bodies(source: Source, statement: Node) -> Iterator[_Body]:
    """The bare bodies that belong to this statement itself (an ``else if`` is a statement of its own)."""
    for body in _embedded(statement):
        before, after = _token_before(body), body.next_sibling
        if body.type in {"block", "empty_statement"} or before is None:
            continue
        if body.type == statement.type and body.type in _STACKABLE:
            continue
        if before.type == "else" and body.type == "if_statement":
            continue
        yield _Body(statement, source.end(before), source.start(body), source.end(body), after is not None)


def _embedded(statement: Node) -> list[Node]:
    if statement.type == "if_statement":
        fields = ("consequence", "alternative")
        found = [statement.child_by_field_name(field) for field in fields]
    elif statement.type in {"lock_statement", "fixed_statement"}:  # the grammar gives these bodies no name
        found = [next((node for node in reversed(statement.named_children) if node.type != "comment"), None)]
    else:
        found = [statement.child_by_field_name("body")]
    return [node for node in found if node is not None]


def _token_before(body: Node) -> Node | None:
    node = body.prev_sibling
    while node is not None and node.type == "comment":
        node = node.prev_sibling
    return node


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
        indent = source.indentation(source.lines.line_of(source.start(body.owner)))
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
    """Whether the statement begins its line and nothing foreign follows the body on its line."""
    rest = source.rest_of_line(body.end)
    return source.starts_line(_chain_start(source, body.owner)) and (
        not rest or _is_comment(rest) or body.is_followed_by_keyword
    )


def _chain_start(source: Source, statement: Node) -> int:
    """Where an ``else if`` chain begins, so that ``} else if`` and ``else if`` count as the start of a line."""
    node = statement
    while node.parent is not None and node.parent.type == "if_statement":
        if node.parent.child_by_field_name("alternative") != node:
            break
        node = node.parent
    return source.start(node)


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
