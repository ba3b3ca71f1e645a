"""Two bridges race for one counter; ``scripts/race`` does it at length."""

from pathlib import Path

import pytest

from tests.bridge.promises import keeps
from tests.bridge.race import race

ROUNDS = 12
BOUND = 90.0


@keeps("commit.one-at-a-time")
@pytest.mark.anyio
@pytest.mark.parametrize("share_state", [False, True])
async def test_no_commit_of_two_racing_bridges_is_lost_and_one_of_each_round_succeeds(
    tmp_path: Path, *, share_state: bool
) -> None:
    outcome = await race(tmp_path, ROUNDS, BOUND, share_state=share_state)
    assert outcome.problems == []
    assert ROUNDS <= outcome.successes < 2 * ROUNDS, "they never met"
    assert set(outcome.codes) <= {"TransactionConflicted"}
