"""Move a type to a file of its own.

The new file gets everything that gave the type its meaning in the old one: the file's header comment, the last
``#nullable``, extern aliases and usings (also conditional ones, but not global ones, which hold anyway), the chain of
namespaces with their own usings, and the type's text as it stands, comments above it included.

Not offered: for the only type of a file and for the one that the file is named after; when a file of the new name is
there; for types inside ``#if``; when a ``#region`` begins or ends in the middle of it; when the type shares a line with
other code; when it is file-local, or uses a type that is local to the file.
"""

from collections.abc import Iterator
from pathlib import Path

from tree_sitter import Node

from bridge.embedded_server.actions.base import Action, NewFile, Outcome, Place
from bridge.embedded_server.edits import Edit, in_order
from bridge.embedded_server.positions import LINE_BREAKS
from bridge.embedded_server.syntax import (
    TYPE_DECLARATIONS,
    Source,
    has_error_child,
    name_of,
    nodes_of_types,
    walk,
)

_NAMESPACES = {"namespace_declaration", "file_scoped_namespace_declaration"}
_IMPORTS = {"using_directive", "extern_alias_directive"}
_CONDITIONAL = {"preproc_if", "preproc_elif", "preproc_else"}


def title(name: str) -> str:
    """What the menu says for a type of this name."""
    return f"Move type to {name}.cs"


def offer(place: Place) -> Action | None:
    """The action for the top-level type whose header (everything before its body) the place touches."""
    source = place.source
    types = list(_top_level_types(source.root))
    if len(types) < 2:
        return None
    chosen = next((node for node in types if _header_touches(place, node)), None)
    if chosen is None:
        return None
    name = name_of(source, chosen)
    target = place.path.with_name(f"{name}.cs")
    if name == place.path.stem or place.exists(target) or not _may_move(source, chosen, types):
        return None
    return Action(title(name), "MoveTypeToFile", run=lambda: _move(source, chosen, target))


def _top_level_types(container: Node) -> Iterator[Node]:
    for child in container.children:
        if child.type in TYPE_DECLARATIONS:
            yield child
        elif child.type == "namespace_declaration":
            body = child.child_by_field_name("body")
            yield from _top_level_types(body) if body is not None else ()


def _header_touches(place: Place, node: Node) -> bool:
    body = node.child_by_field_name("body")
    end = place.source.start(body) + 1 if body is not None else place.source.end(node)
    return place.touches(place.source.start(node), end)


def _may_move(source: Source, node: Node, types: list[Node]) -> bool:
    start, end = _span(source, node)
    first, last = source.lines.line_of(start), source.lines.line_of(end)
    return (
        not node.has_error
        and bool(name_of(source, node))
        and not any(has_error_child(container) for container in _containers(node))
        and source.starts_line(start)
        and not _foreign_rest(source, end)
        and not _is_file_local(source, node)
        and not _uses_any(
            source, node, {name_of(source, other) for other in types if _is_file_local(source, other)}
        )
        and _has_whole_regions(source, first, last)
    )


def _containers(node: Node) -> Iterator[Node]:
    while node.parent is not None:
        node = node.parent
        yield node


def _is_file_local(source: Source, node: Node) -> bool:
    return any(child.type == "modifier" and source.text_of(child) == "file" for child in node.children)


def _uses_any(source: Source, node: Node, names: set[str]) -> bool:
    return bool(names) and any(
        found.type == "identifier" and source.text_of(found) in names for found in walk(node)
    )


def _has_whole_regions(source: Source, first: int, last: int) -> bool:
    depth = 0
    for line in range(first, last + 1):
        if not source.is_directive(line) or line in source.protected_lines:
            continue
        words = source.text[source.lines.starts[line] : source.lines.visible_end(line)].lstrip(" \t#").split()
        word = words[0] if words else ""
        depth += {"region": 1, "if": 1, "endregion": -1, "endif": -1}.get(word, 0)
        if depth < 0:
            return False
    return depth == 0


def _foreign_rest(source: Source, end: int) -> bool:
    rest = source.rest_of_line(end)
    return bool(rest) and not rest.startswith("//")


def _span(source: Source, node: Node) -> tuple[int, int]:
    """The type with the comment lines right above it, in characters; a blank or preprocessor line ends them."""
    start = source.start(node)
    above = node.prev_sibling
    while above is not None and above.type == "comment":
        comment_end = source.lines.line_of(source.end(above))
        if not source.starts_line(source.start(above)) or comment_end != source.lines.line_of(start) - 1:
            break
        start, above = source.start(above), above.prev_sibling
    return start, source.end(node)


def _move(source: Source, node: Node, target: Path) -> Outcome:
    start, end = _span(source, node)
    lines = source.lines
    first, last = lines.line_of(start), lines.line_of(end)
    moved = source.text[lines.starts[first] : lines.visible_end(last)]
    text = _new_file(source, node, start, moved)
    return Outcome(in_order([_removal(source, first, last)]), (NewFile(target, text),))


def _removal(source: Source, first: int, last: int) -> Edit:
    """The lines of the type, with the blank lines that separated it from what came before (or comes after) it."""
    lines = source.lines
    start, end = first, last + 1
    while start > 0 and source.is_blank(start - 1):
        start -= 1
    if start == first:
        while end < lines.count - 1 and source.is_blank(end):
            end += 1
    if end >= lines.count:  # the type ends the text, and what is before it ends as the text did
        had_break = bool(lines.line_break(last))
        before = lines.starts[start] if had_break or start == 0 else lines.visible_end(start - 1)
        return Edit(before, len(source.text), "")
    return Edit(lines.starts[start], lines.starts[end], "")


def _new_file(source: Source, node: Node, start: int, moved: str) -> str:
    line_break = source.line_break
    parents = [parent for parent in _containers(node) if parent.type in _NAMESPACES]
    parents.reverse()
    file_scoped = _file_scoped_before(source, node)
    top = [*_header(source, start), *_nullable(source, node)]
    blocks = ["".join(top)] if top else []
    blocks.append(_imports(source, source.root, before=file_scoped))
    if file_scoped is not None:
        blocks.append(source.text_of(file_scoped) + line_break)
        blocks.append(_imports(source, source.root, after=file_scoped))
    opening = "".join(_opening(source, parent) for parent in parents)
    closing = "".join(
        f"{source.indentation(source.lines.line_of(source.start(parent)))}}}{line_break}"
        for parent in reversed(parents)
    )
    blocks.append(f"{opening}{moved}{line_break}{closing}")
    return line_break.join(block for block in blocks if block)


def _header(source: Source, start: int) -> list[str]:
    """The comments at the very top of the file, as whole lines, unless they speak about a type."""
    found: list[str] = []
    line = 0
    for child in source.root.children:
        is_next = source.lines.line_of(source.start(child)) == line
        if child.type != "comment" or not is_next:
            return [] if child.type in TYPE_DECLARATIONS and is_next else found
        if source.start(child) >= start:
            return []
        line = source.lines.line_of(source.end(child)) + 1
        found.append(source.text_of(child).rstrip(LINE_BREAKS) + source.line_break)
    return found


def _nullable(source: Source, node: Node) -> list[str]:
    """The last ``#nullable`` line above the type: it decides how the type's annotations are read."""
    found = [
        source.text_of(directive).rstrip(LINE_BREAKS) + source.line_break
        for directive in nodes_of_types(source, ["preproc_nullable"])
        if directive.start_byte < node.start_byte
    ]
    return found[-1:]


def _file_scoped_before(source: Source, node: Node) -> Node | None:
    for child in source.root.children:
        if child.type == "file_scoped_namespace_declaration" and child.start_byte < node.start_byte:
            return child
    return None


def _imports(
    source: Source, container: Node, *, before: Node | None = None, after: Node | None = None
) -> str:
    """The whole lines of the usings and extern aliases directly in ``container``."""
    found: list[str] = []
    for child in container.children:
        if before is not None and child.start_byte >= before.start_byte:
            break
        if (after is None or child.start_byte > after.start_byte) and _is_import(child):
            line = source.lines.line_of(source.start(child))
            text = source.indentation(line) + source.text_of(child).rstrip(LINE_BREAKS)
            found.append(text + source.line_break)
    return "".join(found)


def _is_import(node: Node) -> bool:
    if node.type in _IMPORTS:
        return not any(child.type == "global" for child in node.children)
    if node.type != "preproc_if":
        return False
    inner = [
        child for child in walk(node, into=lambda child: child.type in _CONDITIONAL) if child.type in _IMPORTS
    ]
    return bool(inner) and all(_is_conditional_import(child) for child in node.named_children)


def _is_conditional_import(node: Node) -> bool:
    """Whether a part of an ``#if`` is its condition, a comment, or a using, through all its branches."""
    if node.type in _CONDITIONAL:
        return all(_is_conditional_import(child) for child in node.named_children)
    is_condition = node.parent is not None and node.parent.child_by_field_name("condition") == node
    return is_condition or node.type == "comment" or _is_import(node)


def _opening(source: Source, namespace: Node) -> str:
    """The header of a block-scoped namespace up to its brace, and the usings inside, as they stand."""
    body = namespace.child_by_field_name("body")
    brace = source.start(body) + 1 if body is not None else source.end(namespace)
    line = source.lines.line_of(source.start(namespace))
    header = source.text[source.lines.starts[line] : brace]
    imports = _imports(source, body) if body is not None else ""
    return header + source.line_break + (imports + source.line_break if imports else "")
