"""What can be folded: bodies, runs of usings, runs of comments, and regions."""

from collections.abc import Iterator
from dataclasses import dataclass

from lsprotocol.types import FoldingRangeKind

from bridge.embedded_server.syntax import Source, nodes_of_types

_BODIES = (
    "declaration_list",
    "enum_member_declaration_list",
    "block",
    "accessor_list",
    "switch_body",
    "initializer_expression",
)


@dataclass(frozen=True, slots=True, order=True)
class Fold:
    """A stretch that can be folded, in characters; ``kind`` is empty for code."""

    start: int
    end: int
    kind: str


def folds(source: Source) -> tuple[Fold, ...]:
    """Every stretch of more than one line that can be folded, by place."""
    found = [*_bodies(source), *_runs(source, "using_directive", FoldingRangeKind.Imports)]
    found += _runs(source, "comment", FoldingRangeKind.Comment)
    found += _regions(source)
    return tuple(sorted(fold for fold in found if _spans_lines(source, fold)))


def _spans_lines(source: Source, fold: Fold) -> bool:
    return source.lines.line_of(fold.start) < source.lines.line_of(fold.end)


def _bodies(source: Source) -> Iterator[Fold]:
    for node in nodes_of_types(source, _BODIES):
        yield Fold(source.start(node), source.end(node), "")


def _runs(source: Source, kind: str, label: FoldingRangeKind) -> Iterator[Fold]:
    """Nodes of one kind on lines that follow each other."""
    run: tuple[int, int] | None = None
    for node in nodes_of_types(source, [kind]):
        start, end = source.start(node), source.end(node)
        if not source.starts_line(start):
            continue  # a comment behind code is no part of a block of comments
        if run is not None and source.lines.line_of(start) <= source.lines.line_of(run[1]) + 1:
            run = (run[0], end)
            continue
        if run is not None:
            yield Fold(*run, label)
        run = (start, end)
    if run is not None:
        yield Fold(*run, label)


def _regions(source: Source) -> Iterator[Fold]:
    open_regions: list[int] = []
    for node in nodes_of_types(source, ["preproc_region", "preproc_endregion"]):
        if node.type == "preproc_region":
            open_regions.append(source.start(node))
        elif open_regions:
            start = open_regions.pop()
            end = source.lines.visible_end(source.lines.line_of(source.start(node)))
            yield Fold(start, end, FoldingRangeKind.Region)
