"""Tries every code action that a server lists for the files of a solution: python scripts/catalogue.py SOLUTION ...

    python scripts/catalogue.py SOLUTION --server KIND [--server-path PATH] [--most-places N] [--seed N] [FILE ...]

Each action is staged on a fresh transaction, judged and rolled back; ``tests/real/catalogue.py`` says what is broken.
Prints offered, staged, refused by code, and broken; the exit code is 1 when something is.  SOLUTION is not written to.
Without FILE all C# files under the solution's folder are asked about.
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


async def run(
    options: Options, solution: Path, files: list[Path], *, most_places: int | None, seed: int
) -> Record:
    """The record of one server."""
    async with catalogue_of(options, solution) as catalogue:
        await try_files(catalogue, files, random=Random(seed), most_places=most_places, tell=print)
        return catalogue.record


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Tries every code action that is listed for some files.")
    parser.add_argument("solution", type=Path)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--server", default="auto")
    parser.add_argument("--server-path")
    parser.add_argument("--most-places", type=int, help="places of each file to ask at, drawn by --seed")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    options = read_options({"server": given.server, "server_path": given.server_path, "line_endings": "keep"})
    solution = given.solution.resolve()
    files = [path.resolve() for path in given.files] or sorted(
        path for path in solution.parent.rglob("*.cs") if not {"obj", "bin"} & set(path.parts)
    )
    record = anyio.run(lambda: run(options, solution, files, most_places=given.most_places, seed=given.seed))
    print(*record.lines(), sep="\n")
    return 1 if record.broken else 0


if __name__ == "__main__":
    sys.exit(main())
