"""The outline of a document: what is declared in what, as ``textDocument/documentSymbol`` shows it.

Names carry the signature as Roslyn writes it (``Add(int, int) : int``): parameter types as they are spelled in the
text, since syntax knows no others.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from lsprotocol.types import SymbolKind
from tree_sitter import Node

from bridge.embedded_server.syntax import Source, name_of

_KINDS = {
    "namespace_declaration": SymbolKind.Namespace,
    "file_scoped_namespace_declaration": SymbolKind.Namespace,
    "class_declaration": SymbolKind.Class,
    "record_declaration": SymbolKind.Class,
    "struct_declaration": SymbolKind.Struct,
    "interface_declaration": SymbolKind.Interface,
    "enum_declaration": SymbolKind.Enum,
    "enum_member_declaration": SymbolKind.EnumMember,
    "delegate_declaration": SymbolKind.Function,
    "method_declaration": SymbolKind.Method,
    "local_function_statement": SymbolKind.Function,
    "constructor_declaration": SymbolKind.Constructor,
    "destructor_declaration": SymbolKind.Method,
    "operator_declaration": SymbolKind.Operator,
    "conversion_operator_declaration": SymbolKind.Operator,
    "property_declaration": SymbolKind.Property,
    "indexer_declaration": SymbolKind.Property,
    "event_declaration": SymbolKind.Event,
    "field_declaration": SymbolKind.Field,
    "event_field_declaration": SymbolKind.Event,
}

_FIELDS = {"field_declaration", "event_field_declaration"}


@dataclass(frozen=True, slots=True)
class Symbol:
    """A declaration. Offsets are characters: of the whole declaration, and of its name."""

    name: str
    kind: SymbolKind
    start: int
    end: int
    name_start: int
    name_end: int
    children: tuple["Symbol", ...]


def outline(source: Source) -> tuple[Symbol, ...]:
    """The declarations of the document, outermost first."""
    found = list(_symbols(source, source.root))
    for index, symbol in enumerate(found):
        # The grammar ends a file-scoped namespace at its semicolon; what follows it belongs to it.
        if symbol.kind == SymbolKind.Namespace and _is_file_scoped(source, symbol):
            rest = tuple(found[index + 1 :])
            end = max([symbol.end, *(other.end for other in rest)])
            whole = Symbol(
                symbol.name, symbol.kind, symbol.start, end, symbol.name_start, symbol.name_end, rest
            )
            return (*found[:index], whole)
    return tuple(found)


def _is_file_scoped(source: Source, symbol: Symbol) -> bool:
    return source.text[symbol.end - 1 : symbol.end] == ";"


def _symbols(source: Source, node: Node) -> Iterator[Symbol]:
    for child in node.named_children:
        if child.type in _FIELDS:
            yield from _fields(source, child)
        elif child.type in _KINDS:
            yield _symbol(source, child)
        elif child.type == "declaration_list" or child.type.startswith(
            ("preproc_", "ERROR", "enum_member_decl", "global_statement")
        ):
            yield from _symbols(source, child)


def _symbol(source: Source, node: Node) -> Symbol:
    name = _name_node(node)
    children = () if node.type in {"method_declaration"} else tuple(_symbols(source, node))
    kind = _KINDS[node.type]
    if node.type == "record_declaration" and any(child.type == "struct" for child in node.children):
        kind = SymbolKind.Struct
    return Symbol(
        _label(source, node),
        kind,
        source.start(node),
        source.end(node),
        source.start(name),
        source.end(name),
        children,
    )


def _name_node(node: Node) -> Node:
    for field in ("name", "operator", "type"):
        found = node.child_by_field_name(field)
        if found is not None:
            return found
    return node


def _label(source: Source, node: Node) -> str:
    name = name_of(source, node) or _special_name(source, node)
    parameters = node.child_by_field_name("parameters")
    shown = name + _type_parameters(source, node)
    if parameters is not None and node.type != "record_declaration":
        opening, closing = ("[", "]") if node.type == "indexer_declaration" else ("(", ")")
        shown += f"{opening}{', '.join(_parameter_types(source, parameters))}{closing}"
    result = _result_type(node)
    return f"{shown} : {_one_line(source.text_of(result))}" if result is not None else shown


def _special_name(source: Source, node: Node) -> str:
    match node.type:
        case "indexer_declaration":
            return "this"
        case "operator_declaration":
            operator = node.child_by_field_name("operator")
            return f"operator {source.text_of(operator)}" if operator is not None else "operator"
        case "conversion_operator_declaration":
            return "operator"
        case _:
            return "?"


def _type_parameters(source: Source, node: Node) -> str:
    found = node.child_by_field_name("type_parameters")
    if found is None:
        found = next((child for child in node.named_children if child.type == "type_parameter_list"), None)
    return _one_line(source.text_of(found)) if found is not None else ""


def _parameter_types(source: Source, parameters: Node) -> Iterator[str]:
    for parameter in parameters.named_children:
        kind = parameter.child_by_field_name("type")
        if parameter.type == "parameter" and kind is not None:
            yield _one_line(source.text_of(kind))


def _result_type(node: Node) -> Node | None:
    if node.type in {"method_declaration", "local_function_statement"}:
        returns = node.child_by_field_name("returns")
        return returns if returns is not None else node.child_by_field_name("type")
    if node.type in {
        "property_declaration",
        "indexer_declaration",
        "event_declaration",
        "operator_declaration",
    }:
        return node.child_by_field_name("type")
    return None


def _fields(source: Source, node: Node) -> Iterator[Symbol]:
    declaration = next((child for child in node.named_children if child.type == "variable_declaration"), None)
    if declaration is None:
        return
    is_constant = any(
        child.type == "modifier" and source.text_of(child) == "const" for child in node.children
    )
    kind = SymbolKind.Constant if is_constant else _KINDS[node.type]
    type_node = declaration.child_by_field_name("type")
    suffix = f" : {_one_line(source.text_of(type_node))}" if type_node is not None else ""
    for declarator in declaration.named_children:
        name = declarator.child_by_field_name("name")
        if declarator.type == "variable_declarator" and name is not None:
            yield Symbol(
                source.text_of(name) + suffix,
                kind,
                source.start(node),
                source.end(node),
                source.start(name),
                source.end(name),
                (),
            )


def _one_line(text: str) -> str:
    return " ".join(text.split())
