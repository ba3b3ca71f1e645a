"""Places on read-only mounts, in a process with mounts of its own: ``python -m tests.bridge.read_only PLACE DIR``.

PLACE is ``workspace`` or ``state``: what cannot be written, at first from the beginning and then when the commit comes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from tests.bridge.agent import APPLE, scene
from tests.bridge.full_disk import NOT_ALLOWED
from tests.faults.mounts import bind_read_only, leave, remount_writable

FILE = "Core/Apple.cs"


async def workspace_story(above: Path) -> None:
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


async def state_story(above: Path) -> None:
    state = above / "state"
    state.mkdir()
    bind_read_only(state)
    async with scene(above) as made:
        agent = made.agent
        refusal = await agent.refused("workspace-open", path=str(made.solution))
        assert refusal.code == "WorkspaceLoadFailed", refusal
        _require_advice(refusal.message, state)
        remount_writable(state)
        await agent.open(made.solution)
        await agent.start()
        await agent.stage_first(FILE)
        bind_read_only(state)
        refusal = await agent.refused("transaction-commit")
        assert (refusal.code, refusal.kind) == ("CommitPreparationFailed", "RetryRequest"), refusal
        _require_advice(refusal.message, state)
        assert made.file(FILE).read_text() == APPLE
        assert not made.file(".vs/roslyn-bridge/commits").exists()
        assert (await agent.status()).state == "TransactionActive"
        remount_writable(state)
        assert (await agent.commit()).committed
        assert made.file(FILE).read_text() != APPLE


def _require_advice(message: str, state: Path) -> None:
    for words in (str(state), "ead-only", "--state-directory"):
        assert words in message, message


STORIES = {"workspace": workspace_story, "state": state_story}


def main() -> None:
    try:
        leave()
    except OSError:
        sys.exit(NOT_ALLOWED)
    anyio.run(STORIES[sys.argv[1]], Path(sys.argv[2]))


if __name__ == "__main__":
    main()
