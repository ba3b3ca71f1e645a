"""Questions to the language server that only read: how often they are put, and when they are put again.

A server that died under a question is started anew and sees the same texts, so the question is put once more.  A
server that says "content modified" on texts that nobody moved was asked too early, and is asked again as well.
Everything else is the asker's.  A file for which the server has no document is a refusal with a code of its own, and
never "nothing": csharp-ls has none for a file that several projects compile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from bridge.errors import BridgeError
from bridge.resolution import describe_owners
from bridge.workspace import Workspace
from lsp_client.errors import CONTENT_MODIFIED, RequestTimedOut, ResponseError, ServerGone
from lsp_client.failures import DocumentNotSeen
from lsp_client.session import Session
from transactions.overlay import Overlay

T = TypeVar("T")

READ_ATTEMPTS = 2
"""A question that only reads is put once more when the server died under it."""

MODIFIED_ATTEMPTS = 3
"""A server that says "content modified" on unmoved text is synchronised and asked again: it may be busy with its own."""


async def ask(
    workspace: Workspace,
    question: Callable[[Session], Awaitable[T]],
    *,
    about: Overlay | None = None,
    modified_attempts: int = MODIFIED_ATTEMPTS,
) -> T:
    """Put a question that only reads; again when the server died, or when it says that the text has moved.

    At most ``modified_attempts`` times for the latter; what is more than reading is put again at most once.
    Needs a lease.  ``about`` is a tree other than the current one that the server is shown for it; that needs the
    writer's lease, and the next question about the current tree takes the server back.  Raises what the question
    raises, with ``DocumentNotSeen`` as the refusal that ``not_seen`` makes of it.
    """
    deaths = modified = 0
    while True:
        try:
            return await question(await workspace.ready_session(about))
        except ServerGone:
            deaths += 1
            if deaths == READ_ATTEMPTS:
                raise
        except DocumentNotSeen as error:
            raise not_seen(workspace, error) from error
        except RequestTimedOut:
            workspace.doubt_server()
            raise
        except ResponseError as error:
            modified += 1
            if error.code != CONTENT_MODIFIED or modified == modified_attempts:
                raise


def not_seen(
    workspace: Workspace, error: DocumentNotSeen, *, otherwise: str = "DocumentNotSeen"
) -> BridgeError:
    """The refusal for a file of which the server has no document.

    ``DocumentInSeveralProjects`` where that is the reason, else the code ``otherwise``.
    """
    documents = workspace.structure.documents_at(error.path)
    if len(documents) < 2 or error.loaded is not None:
        return BridgeError(otherwise, str(error))
    owners = describe_owners(workspace.structure, documents)
    return BridgeError(
        "DocumentInSeveralProjects",
        f"{workspace.relative(error.path)} is in several projects ({owners}), and {error.server} has no single "
        "document for it, so it cannot be asked about.",
    )
