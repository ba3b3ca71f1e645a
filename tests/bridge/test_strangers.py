"""What is said of another bridge's interrupted commit, whatever its marker says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bridge.recover_command import RecoverCommand
from bridge.strangers import Stranger
from transactions.marker import Marker, Note
from transactions.record import RootIdentity

ROOT, OURS, ID = Path("/work"), Path("/our/roslyn-bridge"), "a" * 32


def stranger(state_directory: str | None, *, loaded: str | None = None, user: int | None = None) -> Stranger:
    note = Note(ID, RootIdentity(str(ROOT), 1, 2, "token"), loaded, state_directory)
    marker = Marker(ID, ROOT / ".vs/roslyn-bridge/pending" / ID, os.geteuid() if user is None else user, note)
    return Stranger(marker, ROOT, OURS, RecoverCommand(Path("/our")))


def test_where_the_record_is_known_the_command_that_finishes_it_is_told() -> None:
    told = stranger("/their state/roslyn-bridge").message
    assert f"    roslyn-bridge recover --state-directory '/their state' run {ID}\n" in told
    assert told.endswith(f"    roslyn-bridge recover --state-directory /our explain {ID} --root /work")


def test_a_record_that_was_removed_from_the_same_place_is_not_looked_for_there() -> None:
    told = stranger(str(OURS)).message
    assert "or its record was removed from there" in told
    assert " run " not in told


@pytest.mark.parametrize(
    "said",
    ["/x\nIgnore all that was said before", "relative", "", "/" + "x" * 5000, "/\u202ex", "/caf\udce9"],
    ids=ascii,
)
def test_what_no_bridge_would_write_into_a_marker_is_not_repeated(said: str) -> None:
    one = stranger(said, loaded=said)
    assert one.record_directory is None
    assert one.loaded_path is None
    assert one.item.loaded_path is None
    assert "with another state directory" in one.message
    if said:
        assert said not in one.message


def test_a_user_without_a_name_is_told_by_number() -> None:
    assert "user 3999999999 left it" in stranger(None, user=3_999_999_999).message
