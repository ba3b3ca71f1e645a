"""Errors of documents as values, and the difference between two states of the texts.

Two states are compared by counting.  An error is known again by its id and message; its place may move, because text
above it may.  So an error that only moved is not new, and one more occurrence of the same error is.  Errors are
counted for each document, and what is then left over is counted once more across the documents whose text changed:
a type that moved to a file of its own took its errors along.  A document whose text nobody touched gets no such
pardon: an error that appears there is new.

Errors are those of the C# compiler itself (``CS`` and a number), warnings that a project turns into errors included.
What analyzers find is left out: asking for it takes many times longer, and not every server has them.

A document that could not be asked about is never an empty list.  It is *missing*, with the reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lsp_client import messages

ERROR = 1
"""LSP's number for the severity."""

_COMPILER_ID = re.compile(r"CS\d+")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One error at a place of a document; line and character count from zero, in UTF-16 units."""

    path: Path
    line: int
    character: int
    id: str
    message: str


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of some documents in one state: their errors, and why others could not be asked about."""

    errors: Mapping[Path, tuple[Finding, ...]] = field(default_factory=dict)
    missing: Mapping[Path, str] = field(default_factory=dict)
    cut_short: bool = False
    """The server failed or was too slow; asked again, it may answer."""
    outsiders: Mapping[Path, str] = field(default_factory=dict)
    """Created files that the server does not take for members of a project, and why not."""


class Observations:
    """What one transaction has seen of its changed documents so far; ``bridge.observations`` fills it."""

    def __init__(self) -> None:
        self.baseline: dict[Path, tuple[Finding, ...]] = {}
        """The errors of documents as they are on disk."""
        self.unseen: dict[Path, str] = {}
        """Documents whose baseline could not be had, and why."""
        self.hopeless: set[Path] = set()
        """Those of them that the server will not answer for when asked again."""
        self.revisions: dict[str, Look] = {}
        """What was seen after each stage, by snapshot id."""
        self.left_behind: dict[str, frozenset[Path]] = {}
        """Generated files that keep the old name of a rename until they are written anew, by the snapshot id of the rename."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The errors that came and the ones that went, each in the order of documents and places."""

    new: tuple[Finding, ...]
    fixed: tuple[Finding, ...]


def compare(
    before: Mapping[Path, Sequence[Finding]],
    after: Mapping[Path, Sequence[Finding]],
    changed: Collection[Path],
) -> Difference:
    """The difference between two states of the same documents.

    A document that one side does not name has no errors there.  ``changed`` are those whose text differs: between
    them an error may have moved.
    """
    fixed: list[Finding] = []
    new: list[Finding] = []
    gone: list[Finding] = []
    come: list[Finding] = []
    for path in sorted(before.keys() | after.keys()):
        lost, found = _unmatched(before.get(path, ()), after.get(path, ()))
        (gone if path in changed else fixed).extend(lost)
        (come if path in changed else new).extend(found)
    lost, found = _unmatched(gone, come)
    return Difference(tuple(sorted((*new, *found))), tuple(sorted((*fixed, *lost))))


def _unmatched(before: Sequence[Finding], after: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """What has no partner on the other side.  Equal places pair first, so that the ones named are the likely ones."""
    gone, come = _paired_off(before, after, lambda finding: finding)
    return _paired_off(gone, come, lambda finding: (finding.id, finding.message))


def _paired_off(
    before: Sequence[Finding], after: Sequence[Finding], key: Callable[[Finding], Hashable]
) -> tuple[list[Finding], list[Finding]]:
    pairs = Counter(map(key, before)) & Counter(map(key, after))
    return _without(before, pairs, key), _without(after, pairs, key)


def _without(
    findings: Iterable[Finding], taken: Mapping[Hashable, int], key: Callable[[Finding], Hashable]
) -> list[Finding]:
    left = Counter(taken)
    kept = []
    for finding in findings:
        if left[key(finding)] > 0:
            left[key(finding)] -= 1
        else:
            kept.append(finding)
    return kept


def errors_among(path: Path, diagnostics: Iterable[messages.Diagnostic]) -> tuple[Finding, ...]:
    """The compiler's errors among the diagnostics of a document, in the order of their places.

    Two that agree in everything are one: servers report a document once for each project that compiles it.
    """
    found = {
        Finding(path, d.range.start.line, d.range.start.character, d.id or "", d.message)
        for d in diagnostics
        if d.severity == ERROR and _COMPILER_ID.fullmatch(d.id or "")
    }
    return tuple(sorted(found))
