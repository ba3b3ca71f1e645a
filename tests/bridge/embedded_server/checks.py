"""Before and after, for refactorings: a text with a caret goes in, a text comes out."""

from collections.abc import Callable, Collection
from pathlib import Path
from textwrap import dedent

from bridge.embedded_server.actions.base import Action, Outcome, Place
from bridge.embedded_server.edits import apply
from bridge.embedded_server.syntax import Source

CARET = "<|>"
FILE = Path("/nowhere/File.cs")

Offer = Callable[[Place], Action | None]


def code(text: str) -> str:
    """A text block as it is written in a test: without the common indentation and the first line break."""
    return dedent(text).removeprefix("\n")


def place(
    text: str, path: Path = FILE, taken: Collection[Path] = (), language_version: float | None = None
) -> Place:
    """The place of the caret in ``text``, or from the first to the second of two."""
    before, _, rest = text.partition(CARET)
    selected, second, after = rest.partition(CARET)
    start = len(before)
    end = start + len(selected) if second else start
    source = Source(before + selected + after)
    return Place(source, path, start, end, lambda other: other in taken, language_version)


def leaf(action: Action, *titles: str) -> Action:
    """The action below a group that the titles lead to."""
    for title in titles:
        action = next(child for child in action.children if child.title == title)
    return action


def outcome(offer: Offer, at: Place, *titles: str) -> Outcome:
    """What the offered action does; it must be offered, and leave a text that is understood as well as before."""
    action = offer(at)
    assert action is not None
    run = leaf(action, *titles).run
    assert run is not None
    result = run()
    assert Source(apply(at.source.text, result.edits)).error_count <= at.source.error_count
    assert all(Source(new_file.text).error_count == 0 for new_file in result.new_files)
    return result


def check(offer: Offer, before: str, after: str, *titles: str) -> None:
    """The action offered at the caret of ``before`` gives ``after``."""
    at = place(before)
    assert apply(at.source.text, outcome(offer, at, *titles).edits) == after
