"""A seeded sample of what the real servers offer is staged, judged and rolled back; ``scripts/catalogue.py`` does all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from bridge.options import read_options
from tests.real.catalogue import catalogue_of, simple_reading, template_of, try_files
from tests.real.conftest import CopySample, RealServer
from tests.real.mcp_agent import tree_of

SEED = 20261130
MOST_PLACES = 6
MOST_OFFERS = 12
FEWEST_TRIED = 20
"""Offers that the sample must come to, or the test has shown nothing."""

FILES = ("src/Bakery.Core/Orders/OrderService.cs", "src/Bakery.App/Program.cs")


@pytest.mark.anyio
async def test_a_sample_of_what_is_offered_is_staged_right_or_refused_by_a_code(
    real_server: RealServer,
    toolchain: Mapping[str, str],
    sample: CopySample,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in toolchain.items():
        monkeypatch.setenv(name, value)
    root = sample("bakery")
    before = tree_of(root)
    options = read_options(
        {
            "server": real_server.kind,
            "server_path": str(real_server.path),
            "line_endings": "keep",
            "state_directory": str(tmp_path / "state"),
        }
    )
    async with catalogue_of(options, root / "Bakery.sln") as catalogue:
        files = [root / name for name in FILES]
        await try_files(
            catalogue, files, random=Random(SEED), most_places=MOST_PLACES, most_offers=MOST_OFFERS
        )
    record = catalogue.record
    assert not record.broken, "\n".join(record.lines())
    assert record.offered >= FEWEST_TRIED
    assert record.staged > record.offered / 4, "\n".join(record.lines())
    assert record.offered == record.staged + record.without_effect + record.refused.total()
    assert tree_of(root) == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Generate method 'Add'", "Generate method 'Sub'"),
        ("using System.Text;", "using System.Linq;"),
        ("Rename file to Jam.cs", "Rename file to Oven.cs"),
        ("Fix 3 of 5", "Fix 1 of 12"),
        ("Use 'List<int>' instead of \"x\"", "Use 'int' instead of \"y z\""),
    ],
)
def test_titles_that_differ_in_names_only_are_of_one_template(first: str, second: str) -> None:
    assert template_of(first) == template_of(second)


def test_titles_that_differ_in_words_are_of_two_templates() -> None:
    assert template_of("Make 'x' static") != template_of("Make 'x' readonly")


def test_the_second_reading_tells_a_text_from_a_wrong_one(tmp_path: Path) -> None:
    path = tmp_path / "A b.cs"
    path.write_bytes("\ufeffa🙂c\r\nd\n".encode())
    place = {"start": {"line": 0, "character": 1}, "end": {"line": 0, "character": 3}}
    insert = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 0}}
    edits = [
        {"range": insert, "newText": "x"},
        {"range": place, "newText": "é"},
        {"range": insert, "newText": "y"},
    ]
    uri = path.as_uri()
    moved = (tmp_path / "C.cs").as_uri()
    read = simple_reading(
        {
            "documentChanges": [
                {"textDocument": {"uri": uri}, "edits": edits},
                {"kind": "rename", "oldUri": uri, "newUri": moved},
                {"textDocument": {"uri": moved}, "edits": [{"range": place, "newText": ""}]},
            ],
            "changes": {uri: []},
        }
    )
    assert read == {path: None, tmp_path / "C.cs": "a\r\nxyd\n"}
