"""Sort using directives.

The order is Roslyn's with "System first": global ones, then namespaces (System before all others), then static ones,
then aliases; names by parts, ignoring case.

What moves is the *item*: the directive with the comment lines right above it and the comment behind it. What stays is
everything that gives the block its shape: line breaks stay in their slots, and items never leave their block. A block
ends at a blank line, at a preprocessor line, or at anything that is no directive. A block in which something shares a
line with a directive is left alone, and so is a list in which the grammar did not understand something.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Node

from bridge.embedded_server.actions.base import Action, Outcome, Place
from bridge.embedded_server.edits import Edit
from bridge.embedded_server.syntax import Source, has_error_child, nodes_of_types

TITLE = "Sort usings"

_CONTAINERS = ("compilation_unit", "declaration_list")


@dataclass(frozen=True, slots=True)
class _Item:
    """A directive with what belongs to it: characters from ``start`` to ``end``, no line break at the end."""

    start: int
    end: int
    key: tuple[object, ...]


def offer(place: Place) -> Action | None:
    """The action, when the place touches a block of usings that is out of order."""
    for block in _blocks(place.source):
        if place.touches(block[0].start, block[-1].end) and _sorted_block(place.source, block):
            return Action(
                TITLE, "SortUsings", run=lambda: Outcome(sort(place.source, place.path)), fix_all=sort
            )
    return None


def sort(source: Source, _path: Path) -> tuple[Edit, ...]:
    """The edits that put every block of usings of the document in order."""
    return tuple(edit for block in _blocks(source) for edit in _sorted_block(source, block))


def _sorted_block(source: Source, block: Sequence[_Item]) -> list[Edit]:
    wanted = sorted(block, key=lambda item: item.key)
    return [
        Edit(slot.start, slot.end, source.text[item.start : item.end])
        for slot, item in zip(block, wanted, strict=True)
        if slot is not item
    ]


def _blocks(source: Source) -> Iterator[list[_Item]]:
    for container in nodes_of_types(source, _CONTAINERS):
        # Types hold a declaration_list as well, but never a using directive: they yield nothing.
        if _is_understood(container):
            yield from _blocks_of(source, container)


def _is_understood(container: Node) -> bool:
    usings = [child for child in container.children if child.type == "using_directive"]
    return bool(usings) and not has_error_child(container) and not any(node.has_error for node in usings)


def _blocks_of(source: Source, container: Node) -> Iterator[list[_Item]]:
    block: list[_Item] = []
    for directive in (child for child in container.children if child.type == "using_directive"):
        item = _item(source, directive)
        if item is None or (block and not _follows(source, block[-1], item)):
            yield from _worth_sorting(block)
            block = []
        if item is not None:
            block.append(item)
    yield from _worth_sorting(block)


def _worth_sorting(block: list[_Item]) -> Iterator[list[_Item]]:
    if len(block) > 1:
        yield block


def _follows(source: Source, before: _Item, after: _Item) -> bool:
    """Whether ``after`` begins on the line right below ``before``."""
    return source.lines.line_of(after.start) == source.lines.line_of(before.end) + 1


def _item(source: Source, directive: Node) -> _Item | None:
    """The directive with its comments, or None when it shares a line with something else."""
    start, end = source.start(directive), source.end(directive)
    following = directive.next_sibling
    if (
        following is not None
        and following.type == "comment"
        and _same_line(source, end, source.start(following))
    ):
        end = source.end(following)
    if not source.starts_line(start) or source.rest_of_line(end):
        return None
    # Items begin where their line's text begins: the indentation belongs to the slot.
    return _Item(_with_comments_above(source, directive, start), end, _key(source, directive))


def _with_comments_above(source: Source, directive: Node, start: int) -> int:
    node = directive.prev_sibling
    while node is not None and node.type == "comment":
        above = source.start(node)
        if (
            not source.starts_line(above)
            or source.rest_of_line(source.end(node))
            or source.lines.line_of(source.end(node)) != source.lines.line_of(start) - 1
        ):
            return start
        if _is_file_header(node):
            return source.start(directive)  # the first lines of a file speak about it, not about a using
        start, node = above, node.prev_sibling
    return start


def _is_file_header(comment: Node) -> bool:
    return comment.prev_sibling is None and comment.parent is not None and comment.parent.parent is None


def _same_line(source: Source, left: int, right: int) -> bool:
    return source.lines.line_of(left) == source.lines.line_of(right)


def _key(source: Source, directive: Node) -> tuple[object, ...]:
    words = {child.type for child in directive.children}
    alias = directive.child_by_field_name("name")
    names = [child for child in directive.named_children if child.type != "comment"]
    shown = source.text_of(alias if alias is not None else names[-1]) if names else ""
    parts = ["".join(part.split()).removeprefix("@") for part in shown.removeprefix("global::").split(".")]
    kind = 2 if alias is not None else 1 if "static" in words else 0
    system_first = 0 if kind < 2 and parts[0] == "System" else 1
    return (
        "global" not in words,
        kind,
        system_first,
        [part.lower() for part in parts],
        parts,
    )
