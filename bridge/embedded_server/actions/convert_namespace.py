"""Turn a block-scoped namespace into a file-scoped one, and back.

Both ways every line inside moves by one level of indentation, except lines that begin inside a raw or verbatim string
(their white space is part of a value) and preprocessor lines. The whole file must be understood: re-indenting is only
safe when it is known where strings are.

File-scoped is offered where C# allows it: one namespace in the file, nothing beside it but usings and attributes,
no namespace inside it, and a project whose language version is not known to be older than C# 10.
"""

from collections.abc import Iterator
from pathlib import Path

from tree_sitter import Node

from bridge.embedded_server.actions.base import Action, DocumentFix, Outcome, Place
from bridge.embedded_server.edits import Edit, in_order
from bridge.embedded_server.syntax import TYPE_DECLARATIONS, Source

TO_FILE_SCOPED = "Convert to file-scoped namespace"
TO_BLOCK_SCOPED = "Convert to block-scoped namespace"

_FIRST_VERSION = 10.0  # of C#, with file-scoped namespaces

_MAY_STAND_BESIDE = frozenset(
    {
        "using_directive",
        "extern_alias_directive",
        "global_attribute",
        "comment",
        "preproc_region",
        "preproc_endregion",
        "preproc_nullable",
        "preproc_pragma",
        "preproc_line",
        "preproc_define",
        "preproc_undef",
        "shebang_directive",
    }
)
"""What may stand beside the namespace at the top of a file; ``#if`` around or beside it is not looked into."""


def offer(place: Place) -> Action | None:
    """The action that fits the namespace whose header the place touches."""
    source = place.source
    block = _convertible_block(source)
    if block is not None:
        header_end = source.start(_body(block)) + 1
        if place.has_language(_FIRST_VERSION) and place.touches(source.start(block), header_end):
            return _action(place, TO_FILE_SCOPED, to_file_scoped, _FIRST_VERSION)
    file_scoped = _convertible_file_scoped(source)
    if file_scoped is not None and place.touches(source.start(file_scoped), source.end(file_scoped)):
        return _action(place, TO_BLOCK_SCOPED, to_block_scoped)
    return None


def _action(place: Place, title: str, convert: DocumentFix, version: float | None = None) -> Action:
    return Action(
        title,
        "ConvertNamespace",
        run=lambda: Outcome(convert(place.source, place.path)),
        fix_all=convert,
        language_version=version,
    )


def to_file_scoped(source: Source, _path: Path) -> tuple[Edit, ...]:
    """The edits that make the file's one namespace file-scoped; none where that cannot be done."""
    namespace = _convertible_block(source)
    if namespace is None:
        return ()
    body = _body(namespace)
    opening, closing = source.start(body), source.end(body) - 1
    name_end = source.end(_name(namespace))
    semicolon = Edit(name_end, name_end, ";")
    if not source.text[opening + 1 : closing].strip():
        header = source.text[:opening].rstrip()
        return in_order([semicolon, Edit(len(header), source.end(namespace), "")])
    edits = [
        semicolon,
        _without_opening(source, name_end, opening),
        _without_closing(source, opening, closing, source.end(namespace)),
    ]
    first, last = source.lines.line_of(opening), source.lines.line_of(closing)
    unit = _inner_indentation(source, namespace, body)
    edits += (_dedent(source, line, unit) for line in _movable(source, first + 1, last))
    return in_order(edits)


def to_block_scoped(source: Source, _path: Path) -> tuple[Edit, ...]:
    """The edits that give the file's file-scoped namespace a block; none where that cannot be done."""
    namespace = _convertible_file_scoped(source)
    if namespace is None:
        return ()
    lines, line_break = source.lines, source.line_break
    semicolon = source.end(namespace) - 1
    header = lines.line_of(semicolon)
    opening = Edit(lines.visible_end(header), lines.visible_end(header), f"{line_break}{{")
    first = header + 1
    if first + 1 < lines.count and source.is_blank(first):
        opening = Edit(opening.start, lines.visible_end(first), opening.text)
        first += 1
    last = lines.count - 1
    while last > header and source.is_blank(last):
        last -= 1
    end = lines.visible_end(last)
    unit = source.indent_unit
    edits = [
        Edit(semicolon, semicolon + 1, ""),
        opening,
        *(
            Edit(lines.starts[line], lines.starts[line], unit)
            for line in _movable(source, first, last + 1)
            if not source.is_blank(line)
        ),
        Edit(end, end, f"{line_break}}}"),
    ]
    return in_order(edits)


def _convertible_block(source: Source) -> Node | None:
    """The one block-scoped namespace of a file in which nothing forbids a file-scoped one."""
    others = [child for child in source.root.children if child.type not in _MAY_STAND_BESIDE]
    if source.root.has_error or len(others) != 1 or others[0].type != "namespace_declaration":
        return None
    body = _body(others[0])
    if any(child.type == "namespace_declaration" for child in _members(body)):
        return None
    if not _is_alone(source, others[0]):
        return None
    return others[0]


def _convertible_file_scoped(source: Source) -> Node | None:
    if source.root.has_error:
        return None
    found = [child for child in source.root.children if child.type == "file_scoped_namespace_declaration"]
    if len(found) != 1 or not source.starts_line(source.start(found[0])):
        return None
    rest = source.rest_of_line(source.end(found[0]))
    return found[0] if not rest or rest.startswith("//") else None


def _is_alone(source: Source, namespace: Node) -> bool:
    """Whether nothing but comments shares the first and the last line of the namespace."""
    rest = source.rest_of_line(source.end(namespace))
    return source.starts_line(source.start(namespace)) and (not rest or rest.startswith("//"))


def _members(body: Node) -> Iterator[Node]:
    """What the body holds, looking through ``#if``."""
    for child in body.named_children:
        if child.type.startswith("preproc_"):
            yield from _members(child)
        else:
            yield child


def _body(namespace: Node) -> Node:
    body = namespace.child_by_field_name("body")
    return body if body is not None else namespace  # one without a body is an error node, kept out before


def _name(namespace: Node) -> Node:
    name = namespace.child_by_field_name("name")
    return name if name is not None else namespace


def _inner_indentation(source: Source, namespace: Node, body: Node) -> str:
    """What the members' lines have more than the namespace's own line."""
    outer = source.indentation(source.lines.line_of(source.start(namespace)))
    for child in body.named_children:
        inner = source.indentation(source.lines.line_of(source.start(child)))
        is_measure = child.type in TYPE_DECLARATIONS or child.type == "using_directive"
        if is_measure and source.starts_line(source.start(child)):
            return inner[len(outer) :] if inner.startswith(outer) else ""
    return source.indent_unit


def _without_opening(source: Source, name_end: int, opening: int) -> Edit:
    """Take the opening brace away so that one blank line separates the header from what follows."""
    lines = source.lines
    line = lines.line_of(opening)
    has_own_line = source.starts_line(opening)
    rest = source.rest_of_line(opening + 1)
    start = opening
    while start > name_end and source.text[start - 1] in " \t":
        start -= 1
    if rest:  # code or a comment goes on behind the brace
        code = lines.visible_end(line) - len(source.text[opening + 1 : lines.visible_end(line)].lstrip())
        return Edit(start, code, "" if has_own_line else source.line_break * 2)
    next_is_blank = line + 1 >= lines.count or source.is_blank(line + 1)
    if has_own_line:
        end = lines.end_with_break(line) if next_is_blank else lines.visible_end(line)
        return Edit(start, end, "")
    return Edit(start, lines.visible_end(line), "" if next_is_blank else source.line_break)


def _without_closing(source: Source, opening: int, closing: int, end: int) -> Edit:
    """Take the closing brace (and a semicolon behind it, up to ``end``) away, with its line if it has one."""
    lines = source.lines
    line = lines.line_of(closing)
    start = closing
    while start > opening + 1 and source.text[start - 1] in " \t":
        start -= 1
    if source.starts_line(closing) and not source.rest_of_line(end):
        is_last = lines.end_with_break(line) == lines.visible_end(line)
        if is_last and lines.line_of(opening) < line - 1:
            # Without a final line break before, there is none after.
            return Edit(lines.visible_end(line - 1), lines.visible_end(line), "")
        return Edit(lines.starts[line], lines.end_with_break(line), "")
    return Edit(start, end, "")


def _movable(source: Source, first: int, end: int) -> Iterator[int]:
    """The lines from ``first`` up to ``end`` whose indentation may be changed."""
    for line in range(first, end):
        if line not in source.protected_lines and not source.is_directive(line):
            yield line


def _dedent(source: Source, line: int, unit: str) -> Edit:
    """Take one level of indentation off a line, or what there is of it."""
    indentation = source.indentation(line)
    start = source.lines.starts[line]
    taken = len(unit) if indentation.startswith(unit) else min(len(indentation), len(unit))
    return Edit(start, start + taken, "")
