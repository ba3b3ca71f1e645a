"""Created files that the language server does not take for members of a project, and what that makes doubtful.

A server compiles what its projects hold, and projects hold what is in their folders.  A file that is only staged is
compiled with them where the server takes an opened document for a member, or where it looks at a tree in which the
file is (``--server-view overlay``).  Everywhere else it stands alone: its own errors are not real ones, and neither are
those of documents that use it.  Nothing about such files is passed on without saying so.

Measured with a class staged into a new file and used from a second one, with ``--server-view text``: the
Roslyn-dialect server does not see the class (CS0246 in its user), csharp-ls does; with ``overlay`` both do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bridge.questions import ask
from bridge.workspace import Workspace
from lsp_client.session import Session
from transactions.overlay import Overlay

MOST_NAMED = 5
"""Paths that a sentence names."""


async def outsiders(workspace: Workspace, about: Overlay | None = None) -> Mapping[Path, str]:
    """Show the server a tree, by default the current one: its created files that are no members there, and why not.

    Needs a lease, for another tree the writer's.  Raises what a question to the server raises.
    """

    async def question(session: Session) -> Mapping[Path, str]:
        return session.outsiders

    return await ask(workspace, question, about=about)


def doubt_about(workspace: Workspace, found: Mapping[Path, str]) -> str:
    """A sentence about created files that are no members; empty when there are none."""
    if not found:
        return ""
    reasons = "; ".join(sorted({reason.rstrip(".") for reason in found.values()}))
    return (
        f"The server does not see {named(workspace, sorted(found))} as part of a project ({reasons}); "
        "actions and errors that depend on it are not reliable."
    )


def named(workspace: Workspace, paths: Sequence[Path]) -> str:
    """Some paths for a sentence."""
    shown = ", ".join(workspace.relative(path) for path in paths[:MOST_NAMED])
    return shown if len(paths) <= MOST_NAMED else f"{shown} and {len(paths) - MOST_NAMED} more"
