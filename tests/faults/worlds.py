"""One commit with its tree and its state directory, and the only place here that calls the code under test."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults import ours
from tests.faults.images import Entry, image_of
from tests.faults.plans import Shape
from tests.faults.seam import Cancelled, Seam
from transactions.case_rule import CaseRule
from transactions.errors import (
    CommitConflict,
    CommitFailed,
    CommitLockFailed,
    CommitPreparationFailed,
    CommitUnconfirmed,
    RecoveryPending,
    WorkspaceBusy,
)
from transactions.system import SYSTEM, System


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: "committed", "refused" (nothing touched), "conflict", "taken back", "unrestored",
    "unconfirmed", "pending" (another commit is unfinished), "interrupted" or "broken" (an exception that nobody promised).
    """

    kind: str
    said: str = ""
    evidence: bool = False  # the result names things of ours that were left on purpose

    @property
    def is_clean(self) -> bool:
        """Whether nothing may be left to do."""
        return self.kind in ("committed", "refused", "conflict", "taken back") and not self.evidence


class World:
    """A tree that was built from a shape, a transaction over it, and what the tree may become."""

    def __init__(
        self,
        shape: Shape,
        root: Path,
        state: Path,
        case_rule: CaseRule | None = None,
        *,
        is_built: bool = False,
    ) -> None:
        self.shape = shape
        self.root = root
        self.state = state
        self.system: System = SYSTEM  # what a stranger has to work on
        root.mkdir(exist_ok=True)
        state.mkdir(mode=0o700, exist_ok=True)
        if not is_built:
            shape.build(root)
        self.overlay = shape.stage(root, case_rule)
        self.changes = self.overlay.changes()
        self.before: dict[bytes, Entry] = image_of(os.fsencode(root))
        self.after = shape.after(root)
        self._commits = 0

    def image(self) -> dict[bytes, Entry]:
        """The tree as it is now."""
        return image_of(os.fsencode(self.root))

    def commit(self, system: System) -> Outcome:
        """Commits. A `Seam` is told the phases."""
        try:
            self._commits += 1
            baseline = self.overlay.baseline
            result = ours.commit(self.root, self.state, self.changes, baseline, system, self._commits)
        except CommitConflict as error:
            return Outcome("conflict", error.message)
        except CommitPreparationFailed as error:
            return Outcome("refused", error.message)
        except CommitUnconfirmed as error:
            return Outcome("unconfirmed", error.message)
        except CommitFailed as error:
            return Outcome("taken back" if error.restored else "unrestored", error.message)
        except RecoveryPending as error:
            return Outcome("pending", error.message)
        except (WorkspaceBusy, CommitLockFailed) as error:
            return Outcome("refused", error.message)
        except (MemoryError, Cancelled) as error:
            return Outcome("interrupted", type(error).__name__)
        except Exception as error:  # noqa: BLE001  # it becomes a verdict
            return Outcome("broken", f"{type(error).__name__}: {error}")
        finally:
            _finished(system)
        return Outcome("committed", evidence=bool(result.kept or result.leftovers))

    def recover(self, system: System, *, moved: bool = False) -> ours.Recovered:
        """Recovers everything that the state directory holds, as a new process would; told of the place, if `moved`."""
        if isinstance(system, Seam):
            system.phase = "recovering"
        return ours.recover(self.state, system, self.root if moved else None)


def _finished(system: System) -> None:
    if isinstance(system, Seam):
        system.phase = "finished"


class Ground:
    """A directory where worlds are made and thrown away again."""

    def __init__(self, above: Path, state_above: Path | None = None) -> None:
        """`state_above` is where the state directories lie, when that is elsewhere."""
        self.above = above
        self.state_above = above if state_above is None else state_above
        self._count = 0

    @contextmanager
    def world(self, shape: Shape, case_rule: CaseRule | None = None) -> Iterator[World]:
        """A new world, gone afterwards."""
        world = self.lasting_world(shape, case_rule)
        try:
            yield world
        finally:
            for directory in (world.root, world.state):
                shutil.rmtree(directory, ignore_errors=True)

    def lasting_world(self, shape: Shape, case_rule: CaseRule | None = None) -> World:
        """A new world that stays as long as the ground does."""
        root, state = self.next_pair()
        return World(shape, root, state, case_rule)

    def below(self, name: str) -> "Ground":
        """Ground of one's own for another process."""
        for directory in {self.above, self.state_above}:
            (directory / name).mkdir()
        return Ground(self.above / name, self.state_above / name)

    def next_pair(self) -> tuple[Path, Path]:
        """Names for a root and a state directory that are not there yet."""
        self._count += 1
        return self.above / f"root{self._count}", self.state_above / f"state{self._count}"
