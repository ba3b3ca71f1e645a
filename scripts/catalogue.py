"""Tries every code action that a server lists for the files of some solutions.

    python scripts/catalogue.py SOLUTION ... --server KIND [--server-path PATH] [--most-places N] [--seed N]

Each action is staged on a fresh transaction, judged and rolled back; ``tests/real/catalogue.py`` says what is broken.
Prints offered, staged, refused by code, and broken, with the distinct titles over all solutions; the exit code is 1 when
something is broken.  Asked about are all C# files under a solution's folder.  Nothing is written to them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bridge.options import Options, read_options
from tests.real.catalogue import Record, catalogue_of, try_files


async def run(options: Options, solutions: list[Path], *, most_places: int | None, seed: int) -> Record:
    """The record of one server."""
    record = None
    for solution in solutions:
        async with catalogue_of(options, solution, record) as catalogue:
            files = sorted(p for p in solution.parent.rglob("*.cs") if not {"obj", "bin"} & set(p.parts))
            await try_files(catalogue, files, random=Random(seed), most_places=most_places, tell=print)
            record = catalogue.record
    assert record is not None
    return record


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(
        description="Tries every code action that is listed for the files of some solutions."
    )
    parser.add_argument("solution", type=Path, nargs="+")
    parser.add_argument("--server", default="auto")
    parser.add_argument("--server-path")
    parser.add_argument("--most-places", type=int, help="places of each file to ask at, drawn by --seed")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    options = read_options({"server": given.server, "server_path": given.server_path, "line_endings": "keep"})
    solutions = [path.resolve() for path in given.solution]
    record = anyio.run(lambda: run(options, solutions, most_places=given.most_places, seed=given.seed))
    print(*record.lines(), sep="\n")
    return 1 if record.broken else 0


if __name__ == "__main__":
    sys.exit(main())
