"""A short version of scripts/bench_startup.py, with slack for a busy machine; the script holds the exact limits."""

import pytest

from scripts import bench_startup

SLACK = 1.25
"""Few runs on a shared machine scatter; a real mistake (one heavy import, one slow layer) is far beyond this."""


@pytest.mark.slow
def test_start_up_is_near_that_of_an_empty_server() -> None:
    floor, bridge = bench_startup.measure_start(runs=5)
    assert bridge / floor <= bench_startup.START_LIMIT * SLACK


@pytest.mark.slow
def test_a_minimal_server_status_is_near_an_empty_tool() -> None:
    floor, bridge = bench_startup.measure_calls(calls=200)
    assert bridge / floor <= bench_startup.CALL_LIMIT * SLACK
