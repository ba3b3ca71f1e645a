"""The bridge's private place on disk: made once, owned by the user, closed to everybody else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs

from bridge.errors import BridgeError

PRIVATE_DIRECTORY = 0o700
WRITABLE_BY_OTHERS = 0o022
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
        if stat.S_ISLNK(status.st_mode) or not stat.S_ISDIR(status.st_mode):
            raise BridgeError("WorkspaceLoadFailed", f"The state directory {path} is a link or no directory.")
        if status.st_uid != os.geteuid():
            raise BridgeError("WorkspaceLoadFailed", f"The state directory {path} belongs to another user.")
        if status.st_mode & WRITABLE_BY_OTHERS:
            raise BridgeError(
                "WorkspaceLoadFailed",
                f"The state directory {path} can be written by other users, so what is in it may be theirs. "
                f"Look at it, then: chmod 700 {path}",
            )
        if stat.S_IMODE(status.st_mode) != PRIVATE_DIRECTORY:
            path.chmod(PRIVATE_DIRECTORY)
    except OSError as error:
        raise BridgeError(
            "WorkspaceLoadFailed", f"The state directory {path} cannot be used: {error}"
        ) from error
