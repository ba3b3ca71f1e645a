"""Why a language server cannot be had or cannot be used: the failures of whole servers.

The tree (``errors.py`` holds the failures of single messages and channels)::

    LanguageServerError                      errors.py
    ├── LanguageServerNotFound               no server of the wanted kind on this machine
    ├── DotnetSdkNotFound                    a server was found, but nothing that could run it
    ├── LanguageServerFailed                 the process could not be started, died, or did not come back
    ├── WorkspaceLoadFailed                  the server runs, but says that it cannot load the solution
    ├── WorkspaceLoadTimedOut                the load neither ended nor failed within its bound
    ├── MsBuildPropertiesRejected            the server cannot honour the properties it was asked for
    ├── NotificationRefused                  our own mistake: a notification this server may not survive
    ├── CommandRefused                       an action would do more than its edit says, or what is not known
    ├── DocumentNotSeen                      the server has no document for a file, so its "none" means nothing
    └── NotSupported                         the server has no such feature; asking it would give a false "none"
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_client.errors import LanguageServerError

if TYPE_CHECKING:
    from lsp_client.dialects.base import LoadMessage


class LanguageServerNotFound(LanguageServerError):
    """No language server of the wanted kind was found.

    ``tried`` names the places that were looked at, in order; ``hint`` says how to install one.
    """

    def __init__(self, tried: Sequence[str], hint: str = "") -> None:
        self.tried = tuple(tried)
        self.hint = hint
        places = "; ".join(self.tried) if self.tried else "nowhere"
        super().__init__(
            f"No C# language server was found (looked at: {places})." + (f" {hint}" if hint else "")
        )


class DotnetSdkNotFound(LanguageServerError):
    """The ``dotnet`` command that the server needs was not found, or has no SDK."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class LanguageServerFailed(LanguageServerError):
    """The server process could not be started, ended by itself, or did not come back in time.

    ``stderr_tail`` holds its last words, already bounded and scrubbed.
    """

    def __init__(self, message: str, stderr_tail: str = "") -> None:
        self.message = message
        self.stderr_tail = stderr_tail
        super().__init__(message)


class WorkspaceLoadFailed(LanguageServerError):
    """The server said that the solution cannot be loaded; ``messages`` are its own words, in order."""

    def __init__(self, message: str, messages: Sequence[LoadMessage] = ()) -> None:
        self.message = message
        self.messages = tuple(messages)
        super().__init__(message)


class WorkspaceLoadTimedOut(LanguageServerError):
    """The load did not end within ``seconds``."""

    def __init__(self, seconds: float, stderr_tail: str = "") -> None:
        self.seconds = seconds
        self.stderr_tail = stderr_tail
        super().__init__(f"The language server did not finish loading within {seconds:g} s.")


class MsBuildPropertiesRejected(LanguageServerError):
    """The server cannot evaluate the projects with the properties that were asked for."""

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class NotificationRefused(LanguageServerError):
    """A notification outside the dialect's closed list was about to be sent; nothing was written.

    This is our own mistake, found before it can do harm: csharp-ls stops for good at a notification that it
    does not know.
    """

    def __init__(self, method: str, server: str) -> None:
        self.method = method
        self.server = server
        super().__init__(f"The notification '{method}' is not on the list of those that {server} survives.")


class NotSupported(LanguageServerError):
    """The server lacks ``feature``; an empty answer would read as "there is none"."""

    def __init__(self, feature: str, server: str) -> None:
        self.feature = feature
        self.server = server
        super().__init__(f"{server} does not offer {feature}.")


class CommandRefused(LanguageServerError):
    """An action would run ``command``, and all that this does is not in the edit that came of it, or not known."""

    def __init__(self, command: str, server: str) -> None:
        self.command = command
        self.server = server
        super().__init__(
            f"{server} would run the command '{command[:200]}', and what that does cannot be staged."
        )


class DocumentNotSeen(LanguageServerError):
    """The server has no single document for ``path``: it is in no loaded project, or in several.

    ``loaded`` is the one target framework that the server has loaded where another one was asked about.  An empty answer
    about the document would mean "don't know".
    """

    def __init__(self, path: Path, server: str, *, loaded: str | None = None) -> None:
        self.path = path
        self.server = server
        self.loaded = loaded
        reason = (
            "the file is in no loaded project, is linked into several, or is compiled for several frameworks"
            if loaded is None
            else f"it has loaded the target framework {loaded} alone, and was asked about another one"
        )
        super().__init__(f"{server} has no single document for '{path.name}': {reason}.")
