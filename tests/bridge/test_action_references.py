"""Action ids: bounded in number and time, and used once."""

from pathlib import Path

import pytest

from bridge.action_references import ActionReference, ActionReferences, PreparedFixAll, Reference
from bridge.errors import CONTINUATIONS, Action, BridgeError
from bridge.options import HOURS_24, Options, read_options
from bridge.snapshots import SnapshotId
from transactions.text import Position, Range


def reference(title: str) -> ActionReference:
    caret = Range(Position(0, 0), Position(0, 0))
    return ActionReference(
        SnapshotId("w", 1, "s", None), 1, Path("/w/a.cs"), caret, (title,), "Refactoring", ()
    )


def titles(reference: Reference) -> tuple[str, ...]:
    assert isinstance(reference, ActionReference)
    return reference.title_path


class Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_an_id_finds_its_reference_until_it_is_used() -> None:
    references = ActionReferences(lifetime=10, limit=5)
    (one,) = references.add([reference("one")])
    assert titles(references.find(one.upper())) == ("one",)
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
    assert titles(references.find(two)) == ("two",)
    assert len(references) == 1


def test_the_oldest_ids_make_room_for_new_ones() -> None:
    references = ActionReferences(lifetime=10, limit=3)
    old = references.add([reference("a"), reference("b")])
    new = references.add([reference("c"), reference("d")])
    assert len(references) == 3
    with pytest.raises(BridgeError):
        references.find(old[0])
    assert [titles(references.find(key)) for key in (old[1], *new)] == [("b",), ("c",), ("d",)]


def test_a_listing_that_cannot_be_kept_whole_is_refused() -> None:
    references = ActionReferences(lifetime=10, limit=1)
    with pytest.raises(BridgeError) as refused:
        references.add([reference("a"), reference("b")])
    assert refused.value.code == "ActionReferenceCapacityExceeded"
    assert len(references) == 0


def test_looking_at_an_id_does_not_lengthen_its_life() -> None:
    clock = Clock()
    references = ActionReferences(lifetime=10, limit=5, now=clock)
    (one,) = references.add([reference("one")])
    for _ in range(3):
        clock.seconds += 3
        references.find(one)
    clock.seconds += 1
    with pytest.raises(BridgeError):
        references.find(one)


def test_a_prepared_fix_all_is_kept_by_the_rules_of_any_id() -> None:
    clock = Clock()
    references = ActionReferences(lifetime=10, limit=2, now=clock)
    listed = reference("fix")
    (action_id,) = references.add([listed])
    clock.seconds += 5
    prepared = PreparedFixAll(listed, "Project", 50, "fingerprint", None)
    (prepared_id,) = references.add([prepared])
    assert prepared_id != action_id
    assert (references.find(prepared_id), prepared.snapshot) == (prepared, listed.snapshot)
    assert references.find(action_id) is listed, "preparing does not use its action up"
    references.add([reference("other")])
    with pytest.raises(BridgeError):
        references.find(action_id)
    clock.seconds += 10
    with pytest.raises(BridgeError):
        references.find(prepared_id)


def test_ids_live_five_minutes_unless_told_otherwise_and_never_more_than_a_day() -> None:
    assert Options().code_action_reference_lifetime == 300
    for text, seconds in (("1", 1.0), (str(HOURS_24), HOURS_24)):
        assert (
            read_options({"code_action_reference_lifetime": text}, {}).code_action_reference_lifetime
            == seconds
        )
    for text in ("0", "-1", "86401", "nan", "inf", "soon"):
        options = read_options({"code_action_reference_lifetime": text}, {})
        assert options.code_action_reference_lifetime == 300
        assert [warning.code for warning in options.warnings] == ["StartupConfigurationFallback"]


def test_every_code_of_an_action_id_says_what_to_do_next() -> None:
    again = (
        "ActionExpired",
        "ActionAmbiguous",
        "ActionUnavailable",
        "SnapshotMismatch",
        "MutationCandidateChanged",
    )
    less = ("ActionReferenceCapacityExceeded", "FixAllLimitExceeded")
    expected = {**dict.fromkeys(again, Action.RESOLVE_AGAIN), **dict.fromkeys(less, Action.NARROW)}
    assert {code: CONTINUATIONS[code] for code in expected} == expected
    assert CONTINUATIONS["FixAllUnavailable"] is None
