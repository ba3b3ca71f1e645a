"""The bridge's private place on disk: made once, owned by the user, closed to everybody else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs

from bridge.errors import BridgeError
from transactions.private_directory import is_only_readable_by_others, refusal, trouble_with

PRIVATE_DIRECTORY = 0o700
OUR_NAME = "roslyn-bridge"


class StateDirectory:
    """Folders below the state directory; each is made when first asked for."""

    def __init__(self, given: Path | None = None) -> None:
        self.given = given
        # Below a given directory we keep to a folder of our own: its permissions are ours to set, the given one's not.
        self.path = (
            (given / OUR_NAME) if given else Path(platformdirs.user_state_dir(OUR_NAME, appauthor=False))
        )

    def mend(self) -> None:
        """Close an existing state directory to everybody else; makes nothing.  Raises as ``directory`` does."""
        if os.path.lexists(self.path):
            _make_private(self.path)

    def directory(self, name: str) -> Path:
        """The private folder ``name``.

        Raises ``BridgeError`` (``WorkspaceLoadFailed``) when it is a link, belongs to somebody else, can be written by
        others or cannot be made.
        """
        for path in (self.path, self.path / name):
            _make_private(path)
        return self.path / name


def given_for(private: Path) -> Path | None:
    """What ``--state-directory`` has to be for a bridge to use a private directory; ``None`` where nothing leads there."""
    return private.parent if private.name == OUR_NAME else None


def _make_private(path: Path) -> None:
    try:
        path.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        status = path.lstat()
        trouble = trouble_with(path, status)
        is_ours_to_close = trouble is not None and is_only_readable_by_others(status)
        if trouble is not None and not is_ours_to_close:
            raise _unusable(path, trouble)
        if stat.S_IMODE(status.st_mode) != PRIVATE_DIRECTORY:
            path.chmod(PRIVATE_DIRECTORY)
    except OSError as error:
        raise _unusable(path, refusal(path, error)) from error


def _unusable(path: Path, reason: str) -> BridgeError:
    return BridgeError("WorkspaceLoadFailed", f"The state directory {path} {reason}")
