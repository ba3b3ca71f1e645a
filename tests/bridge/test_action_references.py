"""Action ids: bounded in number and time, and used once."""

from pathlib import Path

import pytest

from bridge.action_references import ActionReference, ActionReferences
from bridge.errors import BridgeError
from bridge.snapshots import SnapshotId
from transactions.text import Position, Range


def reference(title: str) -> ActionReference:
    caret = Range(Position(0, 0), Position(0, 0))
    return ActionReference(
        SnapshotId("w", 1, "s", None), 1, Path("/w/a.cs"), caret, (title,), "Refactoring", ()
    )


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_an_id_finds_its_reference_until_it_is_used() -> None:
    references = ActionReferences(lifetime=10, limit=5)
    (one,) = references.add([reference("one")])
    assert references.find(one.upper()).title_path == ("one",)
    references.consume(one)
    with pytest.raises(BridgeError) as refused:
        references.find(one)
    assert refused.value.code == "ActionExpired"


def test_an_id_dies_of_age() -> None:
    clock = Clock()
    references = ActionReferences(lifetime=10, limit=5, now=clock)
    (one,) = references.add([reference("one")])
    clock.seconds += 9
    (two,) = references.add([reference("two")])
    clock.seconds += 2
    with pytest.raises(BridgeError):
        references.find(one)
    assert references.find(two).title_path == ("two",)
    assert len(references) == 1


def test_the_oldest_ids_make_room_for_new_ones() -> None:
    references = ActionReferences(lifetime=10, limit=3)
    old = references.add([reference("a"), reference("b")])
    new = references.add([reference("c"), reference("d")])
    assert len(references) == 3
    with pytest.raises(BridgeError):
        references.find(old[0])
    assert [references.find(key).title_path for key in (old[1], *new)] == [("b",), ("c",), ("d",)]


def test_a_listing_that_cannot_be_kept_whole_is_refused() -> None:
    references = ActionReferences(lifetime=10, limit=1)
    with pytest.raises(BridgeError) as refused:
        references.add([reference("a"), reference("b")])
    assert refused.value.code == "ActionReferenceCapacityExceeded"
    assert len(references) == 0
