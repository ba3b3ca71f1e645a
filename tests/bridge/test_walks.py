"""Random walks through the tools beside a model of a few lines: what is said, staged and written must agree at each step.

The walks mix everything that tests elsewhere look at one by one: staging, undo and redo, commits and rollbacks, changes
by strangers, reloads, and the death of the server.  A failing walk is repeated by its seed.
"""

import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.bridge.agent import APPLE, Scene, opened
from tests.bridge.promises import keeps

pytestmark = pytest.mark.anyio

FILE = "Core/Apple.cs"
WALKS = 12
STEPS = 25


@dataclass
class Model:
    """What should be: the disk, and the texts of the revisions with their snapshot ids."""

    disk: str = APPLE
    revisions: list[tuple[str, str]] | None = None
    """Text and snapshot id of each revision, the baseline first; ``None`` without a transaction."""
    current: int = 0
    conflicted: bool = False
    stale: bool = False
    """Somebody wrote on the disk, and no call has met it yet."""
    epoch: int = 1
    retired: set[str] = field(default_factory=set)

    @property
    def text(self) -> str:
        return self.disk if self.revisions is None else self.revisions[self.current][0]


class Walk:
    """One walk."""

    def __init__(self, made: Scene, chance: random.Random) -> None:
        self.made = made
        self.agent = made.agent
        self.chance = chance
        self.model = Model()
        self.path = made.file(FILE)
        self.strangers = 0

    async def run(self, steps: int) -> None:
        self.committed_id = self.agent.identity.snapshot_id
        walks: list[Callable[[], Awaitable[None]]] = [
            self.start, self.stage, self.stage, self.stage, self.undo, self.undo, self.redo,
            self.commit, self.roll_back, self.stranger, self.touch, self.kill, self.reload,
        ]  # fmt: skip
        for _ in range(steps):
            await self.chance.choice(walks)()
            await self.check()

    # --- steps ------------------------------------------------------------------------------------------

    async def start(self) -> None:
        if self.model.revisions is not None:
            self._meet_the_stranger()
            expected = "TransactionConflicted" if self.model.conflicted else "TransactionAlreadyActive"
            assert (await self.agent.refused("transaction-start")).code == expected
            return
        self._pick_up()
        await self.agent.start()
        self._note_committed_id()
        self.model.revisions, self.model.current = [(self.model.disk, self.committed_id)], 0

    async def stage(self) -> None:
        if not await self._may_move():
            return
        revisions = self.model.revisions
        assert revisions is not None
        (action,) = await self.agent.actions(FILE)
        assert (await self.agent.stage(action)).staged
        text = f"// line {self.model.text.count(chr(10))}\n{self.model.text}"
        self.model.retired |= {snapshot for _, snapshot in revisions[self.model.current + 1 :]}
        assert self.agent.identity.snapshot_id not in self.model.retired | {s for _, s in revisions}
        revisions[self.model.current + 1 :] = [(text, self.agent.identity.snapshot_id)]
        self.model.current += 1

    async def undo(self) -> None:
        await self._move("Undo", -1)

    async def redo(self) -> None:
        await self._move("Redo", 1)

    async def _move(self, direction: str, step: int) -> None:
        if not await self._may_move():
            return
        assert self.model.revisions is not None
        if 0 <= self.model.current + step < len(self.model.revisions):
            await (self.agent.undo() if step < 0 else self.agent.redo())
            self.model.current += step
        else:
            refusal = await self.agent.refused("transaction-history", direction=direction)
            assert refusal.code == "TransactionHistoryUnavailable"

    async def commit(self) -> None:
        if self.model.revisions is None:
            assert (await self.agent.refused("transaction-commit")).code == "NoActiveTransaction"
        elif self.model.conflicted or (self.model.stale and self.model.current > 0):
            assert (await self.agent.refused("transaction-commit")).code == "TransactionConflicted"
            self._meet_the_stranger()
        else:
            done = await self.agent.commit()
            assert done.committed is (self.model.current > 0)
            if done.committed:
                self.model.disk = self.model.text
                self.model.revisions = None
                assert self.agent.identity.snapshot_id != self.committed_id
                self.committed_id = self.agent.identity.snapshot_id

    async def roll_back(self) -> None:
        if self.model.revisions is None:
            assert (await self.agent.refused("transaction-rollback")).code == "NoActiveTransaction"
            return
        assert (await self.agent.roll_back()).state == "Ready"
        if self.model.conflicted:
            self.model.epoch += 1
            self._note_committed_id()
            self.model.stale = False
        self.model.revisions, self.model.conflicted = None, False
        assert self.agent.identity.snapshot_id == self.committed_id

    async def stranger(self) -> None:
        self.strangers += 1
        self.model.disk = f"// stranger {self.strangers}\n{self.path.read_text(encoding='utf-8')}"
        self.path.write_text(self.model.disk, encoding="utf-8")
        self.model.stale = True

    async def touch(self) -> None:
        os.utime(self.path, ns=(1, self.chance.randrange(10**18)))

    async def kill(self) -> None:
        self.made.server.kill()

    async def reload(self) -> None:
        if self.model.revisions is not None:
            assert (await self.agent.refused("workspace-reload")).code == "WorkspaceReloadBlocked"
            return
        await self.agent.reload()
        self.model.stale = False
        self.model.epoch += 1
        self._note_committed_id()

    # --- what strangers do to us ------------------------------------------------------------------------

    def _note_committed_id(self) -> None:
        self.committed_id = self.agent.identity.snapshot_id

    def _pick_up(self) -> None:
        if self.model.stale:
            self.model.stale = False
            self.model.epoch += 1

    def _meet_the_stranger(self) -> None:
        if self.model.stale and self.model.revisions is not None:
            self.model.conflicted, self.model.stale = True, False

    async def _may_move(self) -> bool:
        """Whether a mutation is possible; if not, it is refused for the right reason."""
        arguments = {"direction": "Undo"}
        if self.model.revisions is None:
            refusal = await self.agent.refused("transaction-history", **arguments)
            assert refusal.code == "NoActiveTransaction"
            self._pick_up()
            return False
        self._meet_the_stranger()
        if self.model.conflicted:
            refusal = await self.agent.refused("transaction-history", **arguments)
            assert refusal.code == "TransactionConflicted"
            return False
        return True

    # --- what must hold after each step -----------------------------------------------------------------

    async def check(self) -> None:
        model = self.model
        assert self.path.read_text(encoding="utf-8") == model.disk
        self._meet_the_stranger()
        if model.revisions is None and model.stale:
            await self.agent.refused("list-code-actions", document={"path": FILE}, kinds="All")
            self._pick_up()
            await self.agent.status()
            self._note_committed_id()
        if model.conflicted:
            refusal = await self.agent.refused("list-code-actions", document={"path": FILE}, kinds="All")
            assert refusal.code == "TransactionConflicted"
        else:
            await self.agent.status()
            (action,) = await self.agent.actions(FILE)
            assert action.title == f"Add line {model.text.count(chr(10))}"
        status = await self.agent.status()
        if model.revisions is None:
            assert status.state == "Ready"
            assert status.transaction is None
        else:
            assert status.state == ("TransactionConflicted" if model.conflicted else "TransactionActive")
            assert status.transaction is not None
            assert status.transaction.revision == model.current
            assert status.transaction.revision_count == len(model.revisions) - 1
            assert self.agent.identity.snapshot_id == model.revisions[model.current][1]
            added = model.text.count("\n") - model.revisions[0][0].count("\n")
            changed = (await self.agent.preview()).documents
            assert [d.preview.added_lines for d in changed if d.preview] == ([added] if added else [])
        assert self.agent.identity.workspace_epoch == model.epoch


@keeps("external.conflict", "death.staged", "snapshot.undo", "snapshot.commit")
@pytest.mark.parametrize("seed", range(WALKS))
async def test_a_random_walk_agrees_with_the_model_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("lsp_client.supervisor.RESTART_DELAYS", (0.0,) * 50)
    async with opened(tmp_path, max_transaction_revisions=STEPS) as made:
        await Walk(made, random.Random(seed)).run(STEPS)
