"""Outlines and folds in the shapes of the protocol."""

from collections.abc import Iterable, Iterator

from bridge.embedded_server.folding import Fold
from bridge.embedded_server.outline import Symbol
from bridge.embedded_server.syntax import Source
from bridge.embedded_server.wire import Json, range_of


def tree(source: Source, symbol: Symbol) -> Json:
    """A DocumentSymbol with everything in it, for clients that show a tree."""
    return {
        "name": symbol.name,
        "detail": symbol.name,
        "kind": int(symbol.kind),
        "range": range_of(source, symbol.start, symbol.end),
        "selectionRange": range_of(source, symbol.name_start, symbol.name_end),
        "children": [tree(source, child) for child in symbol.children],
    }


def flat(source: Source, symbols: Iterable[Symbol], uri: str, container: str | None) -> Iterator[Json]:
    """SymbolInformation for the symbols and everything in them, for all other clients."""
    for symbol in symbols:
        item: Json = {
            "name": symbol.name,
            "kind": int(symbol.kind),
            "location": {"uri": uri, "range": range_of(source, symbol.start, symbol.end)},
        }
        if container is not None:
            item["containerName"] = container
        yield item
        yield from flat(source, symbol.children, uri, symbol.name)


def fold(source: Source, what: Fold) -> Json:
    """A FoldingRange."""
    first, last = source.lines.position_at(what.start), source.lines.position_at(what.end)
    item: Json = {
        "startLine": first.line,
        "startCharacter": first.character,
        "endLine": last.line,
        "endCharacter": last.character,
    }
    return {**item, "kind": what.kind} if what.kind else item
