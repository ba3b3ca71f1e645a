"""The PATH as it may be searched while the current directory is somebody's workspace."""

from __future__ import annotations

import os
from collections.abc import Mapping


def absolute_path(environ: Mapping[str, str]) -> str:
    """The PATH without its relative and empty entries.

    Those mean the current directory, which is the workspace's: a program that lies there must not be run.
    """
    entries = environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry))  # noqa: PTH117  # no Path to make
