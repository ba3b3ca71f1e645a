"""What can go wrong between us and a language server, sorted by whose fault it is.

    LanguageServerError
    ├── ServerGone          the server's: the channel ended; every waiter gets this, and every later call
    ├── ResponseError       the server's answer to one request was an error; the channel lives on
    ├── RequestTimedOut     nobody's for sure: no answer came within the bound; the channel lives on
    ├── ProtocolViolation   the server's: bytes that are no LSP, or JSON that has not the promised form
    ├── MethodNotFound      the server asked for something we do not offer (raised by our own handlers)
    └── LedgerError         ours: a document opened twice, or changed while closed; nothing was sent

Messages are sentences for people.  They never hold a lone surrogate, so they may go into any answer.
"""

from typing import NamedTuple

from lsp_client.texts import scrub

REQUEST_CANCELLED = -32800
CONTENT_MODIFIED = -32801
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603


class LastWords(NamedTuple):
    """How a server process ended: its exit code (``-N`` for signal N, None while unknown), its stderr tail."""

    exit_code: int | None
    stderr_tail: str


class LanguageServerError(Exception):
    """Base of everything that goes wrong with a language server."""


class ServerGone(LanguageServerError):
    """The channel to the server ended; whatever was asked will not be answered any more.

    ``exit_code`` is ``-N`` for a death by signal N and None while the process lives or its end is unknown.
    ``stderr_tail`` is the end of what the server said on stderr, cut to a bound; it may be empty.
    """

    def __init__(self, reason: str, exit_code: int | None = None, stderr_tail: str = "") -> None:
        self.reason = scrub(reason)
        self.exit_code = exit_code
        self.stderr_tail = scrub(stderr_tail)
        ending = "" if exit_code is None else f" (exit code {exit_code})"
        super().__init__(f"The language server is gone: {self.reason}{ending}.")

    def fresh(self) -> "ServerGone":
        """An equal exception that has not been raised yet: one object raised in many tasks mixes tracebacks."""
        return ServerGone(self.reason, self.exit_code, self.stderr_tail)


class ResponseError(LanguageServerError):
    """The server answered a request with an error; ``code`` and ``message`` are its own words.

    Raised by a handler of ours, it is what the peer is answered with.
    """

    def __init__(self, method: str, code: int, message: str, data: object | None = None) -> None:
        self.method = method
        self.code = code
        self.message = scrub(message)
        self.data = data
        super().__init__(f"{method} failed with {code}: {self.message}")


class RequestTimedOut(LanguageServerError):
    """No answer to ``method`` within ``seconds``; the server was told that nobody waits any more."""

    def __init__(self, method: str, seconds: float) -> None:
        self.method = method
        self.seconds = seconds
        super().__init__(f"{method} was not answered within {seconds:g} s.")


class ProtocolViolation(LanguageServerError):
    """The peer sent bytes that are no LSP message, or JSON that lacks the promised form."""

    def __init__(self, detail: str) -> None:
        self.detail = scrub(detail)
        super().__init__(self.detail)


class MethodNotFound(LanguageServerError):
    """Raised by our request handlers for a method they do not offer; the peer is answered -32601."""

    def __init__(self, method: str) -> None:
        self.method = method
        super().__init__(f"Method not found: {scrub(method)}")


class LedgerError(LanguageServerError):
    """A mistake of ours with open documents, found before anything was sent (it would end Roslyn)."""
