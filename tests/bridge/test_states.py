"""The table of states: what may happen where, and that nothing else may."""

import pytest

from bridge.states import TRANSITIONS, Event, State, next_state
from tests.bridge.promises import keeps

PROMISED = {
    (State.READY, Event.TRANSACTION_STARTED): State.TRANSACTION_ACTIVE,
    (State.TRANSACTION_ACTIVE, Event.COMMITTED): State.READY,
    (State.TRANSACTION_ACTIVE, Event.ROLLED_BACK): State.READY,
    (State.READY, Event.EXTERNAL_CHANGE): State.OUT_OF_DATE,
    (State.TRANSACTION_ACTIVE, Event.EXTERNAL_CHANGE): State.TRANSACTION_CONFLICTED,
    (State.TRANSACTION_CONFLICTED, Event.ROLLED_BACK): State.OUT_OF_DATE,
    (State.OUT_OF_DATE, Event.PICKED_UP): State.READY,
}
"""The transitions of the published behaviour."""

OUR_OWN = {
    (State.READY, Event.PICKED_UP): State.READY,  # a change that is picked up at once, or a reload
    (State.OUT_OF_DATE, Event.READ_FAILED): State.OUT_OF_DATE,
}


@keeps("workspace.states")
def test_the_table_is_the_promised_one_and_says_what_is_our_own() -> None:
    assert {**PROMISED, **OUR_OWN} == TRANSITIONS


@keeps("workspace.states")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_a_move_that_is_not_in_the_table_is_a_mistake_of_ours(state: State, event: Event) -> None:
    if (state, event) in TRANSITIONS:
        assert next_state(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(KeyError):
            next_state(state, event)


def test_every_state_can_be_reached_and_left() -> None:
    assert {to for _, to in TRANSITIONS.items()} == set(State)
    assert {come for come, _ in TRANSITIONS} == set(State)


def test_the_names_of_the_states_are_those_of_the_contract() -> None:
    assert {state.value for state in State} == {
        "Ready",
        "TransactionActive",
        "TransactionConflicted",
        "WorkspaceOutOfDate",
    }
