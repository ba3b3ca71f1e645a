"""A commit that meets a full disk, in a process with mounts of its own: ``python -m tests.bridge.full_disk PLACE FREE DIR``.

PLACE is ``state`` or ``workspace``: which of them lies on a file system in memory that is full but for FREE pages when the
commit comes.  The exit code is 0 when all held, and ``NOT_ALLOWED`` where a process may not have mounts of its own.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import anyio

from tests.bridge.agent import opened
from tests.faults.mounts import enlarge, leave, small_memory
from tests.transactions.worlds import picture

NOT_ALLOWED = 77
PAGE = 4096
PAGES = 160
FILE = "Core/Apple.cs"


def fill(directory: Path, free: int) -> None:
    """Leave exactly so many pages."""
    descriptor = os.open(directory / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(descriptor, b"x" * PAGE)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        size = os.fstat(descriptor).st_size
        os.ftruncate(descriptor, size - size % PAGE - free * PAGE)
    finally:
        os.close(descriptor)


async def story(place: str, free: int, above: Path) -> None:
    full = above / ("state" if place == "state" else "Läden & mehr")
    full.mkdir()
    small_memory(full, pages=PAGES, inodes=500)
    async with opened(above) as made:
        agent = made.agent
        text = "// a long file\n" * 5000  # more than the free pages hold
        made.file(FILE).write_text(text)
        await agent.actions_after_change(FILE)
        await agent.start()
        await agent.stage_first(FILE)
        fill(full, free)
        before = {name: entry for name, entry in picture(made.root).items() if not name.startswith(".vs")}
        refusal = await agent.refused("transaction-commit")
        assert (refusal.code, refusal.kind) in (
            ("CommitPreparationFailed", "RetryRequest"),
            ("CommitLockFailed", "RetryRequest"),
        ), refusal
        assert "space" in refusal.message.lower(), refusal.message
        after = {name: entry for name, entry in picture(made.root).items() if not name.startswith(".vs")}
        assert after == before
        assert not made.file(".vs/roslyn-bridge/commits").exists()
        assert not made.file(".vs/roslyn-bridge/pending").exists()
        status = await agent.status()
        assert status.state == "TransactionActive"
        enlarge(full)
        assert (await agent.commit()).committed
        assert made.file(FILE).read_text() == "// line 5000\n" + text


def main() -> None:
    place, free, above = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    try:
        leave()
    except OSError:
        sys.exit(NOT_ALLOWED)
    anyio.run(story, place, free, above)


if __name__ == "__main__":
    main()
