"""A workspace on a read-only mount, in a process with mounts of its own: ``python -m tests.bridge.read_only DIR``."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from tests.bridge.agent import APPLE, scene
from tests.bridge.full_disk import NOT_ALLOWED
from tests.faults.mounts import bind_read_only, leave, remount_writable

FILE = "Core/Apple.cs"


async def story(above: Path) -> None:
    async with scene(above) as made:
        agent = made.agent
        bind_read_only(made.root)
        opening = await agent.open(made.solution)
        assert "WorkspaceInstanceStatusUnavailable" in [d.id for d in opening.load_diagnostics]
        await agent.start()
        (action, *_) = await agent.actions(FILE)
        refusal = await agent.refused("stage-code-action", actionId=action.action_id)
        assert (refusal.code, FILE in refusal.message) == ("UnsupportedChange", True), refusal
        assert not made.file(".vs").exists()
        remount_writable(made.root)
        await agent.stage_first(FILE)
        bind_read_only(made.root)
        refusal = await agent.refused("transaction-commit")
        assert (refusal.code, refusal.kind) == ("CommitLockFailed", "RetryRequest"), refusal
        assert "ead-only" in refusal.message, refusal.message
        assert made.file(FILE).read_text() == APPLE
        assert (await agent.status()).state == "TransactionActive"
        remount_writable(made.root)
        assert (await agent.commit()).committed
        assert made.file(FILE).read_text() != APPLE


def main() -> None:
    try:
        leave()
    except OSError:
        sys.exit(NOT_ALLOWED)
    anyio.run(story, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
