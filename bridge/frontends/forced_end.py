"""The end that waits for nobody: every process below this one is killed, then this one ends.

Language servers have a guard that takes them along when the bridge dies (``lsp_client.guard``).  A guard that
somebody has stopped cannot do that, so on the way out we look for ourselves.
"""

from __future__ import annotations

import os
from typing import NoReturn


def end_now(exit_code: int) -> NoReturn:
    """Kill all descendants and end the process with ``exit_code``.  Runs nothing else: no clean-up, no flushing."""
    try:
        import psutil  # noqa: PLC0415  # start-up is a promise, and most processes end in order

        for process in psutil.Process().children(recursive=True):
            try:
                process.kill()
            except psutil.Error:
                continue  # it has ended by itself, which is what we want
    finally:
        os._exit(exit_code)
