"""What a server asks of us and tells us while it works.

Servers wait for our answers with no bound of their own, so everything is answered at once.  What we do not know is
answered `null`, and not by the protocol's "method not found": in Roslyn an error answer is an exception in whatever asked,
and one in a handler that changes its state (the start, a change of settings, an opened document) ends the process, as its
code reads; which handlers of a later version ask what cannot be known here.  csharp-ls asks nothing but what is answered
below.  So no dialect gains by the error, and one may die of it.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from lsp_client.dialects.base import Dialect, LoadTarget
from lsp_client.edit_intake import EditIntake
from lsp_client.errors import INVALID_PARAMS, ProtocolViolation, ResponseError
from lsp_client.loading import LoadWatch
from lsp_client.messages import (
    ConfigurationParams,
    DiagnosticRegistration,
    RegistrationParams,
    decode,
    is_null,
)
from lsp_client.uris import path_to_uri

logger = logging.getLogger(__name__)

QUIETLY_ANSWERED: Final = frozenset(
    {
        "client/unregisterCapability",
        "window/workDoneProgress/create",
        "window/showMessageRequest",
        "workspace/codeLens/refresh",
        "workspace/diagnostic/refresh",
        "workspace/inlayHint/refresh",
        "workspace/projectContext/_vs_refresh",
        "workspace/refreshSourceGeneratedDocument",
        "workspace/semanticTokens/refresh",
        "workspace/textDocumentContent/refresh",
        "workspace/_roslyn_projectNeedsRestore",
    }
)
"""Requests whose answer is ``null`` because there is nothing to say."""


class Incoming:
    """Answers the requests of one server process, and hears its notifications."""

    def __init__(self, dialect: Dialect, target: LoadTarget, watch: LoadWatch) -> None:
        self._dialect = dialect
        self._target = target
        self._watch = watch
        self.edits = EditIntake()

    async def answer(self, method: str, params: msgspec.Raw) -> object:
        """The result of a request of the server."""
        self._watch.wake()  # a sign of work, for whoever waits for a load
        match method:
            case "workspace/configuration":
                return self._configuration(params)
            case "workspace/workspaceFolders":
                return [{"uri": path_to_uri(self._target.root), "name": self._target.root.name}]
            case "workspace/applyEdit":
                return self.edits.answer(params)
            case "client/registerCapability":
                self._watch.diagnostic_sources |= _diagnostic_sources(params)
                return None
            case "workspace/attachDebugger":
                return {"didAttach": False}
            case _ if method in QUIETLY_ANSWERED:
                return None
            case _:
                logger.debug("answered null to the unknown request %s", method)
                return None

    def hear(self, method: str, params: msgspec.Raw) -> None:
        """Take in a notification of the server; the ones that mean nothing to us are dropped."""
        self._watch.take(self._dialect.hear(method, params, self._target))

    def _configuration(self, params: msgspec.Raw) -> list[object]:
        """One answer an item, in order: a list of another length ends Roslyn."""
        try:
            items = decode(params, ConfigurationParams).items
        except ProtocolViolation as error:
            raise ResponseError("workspace/configuration", INVALID_PARAMS, error.detail) from error
        return [self._dialect.configuration(item.section or "", self._target) for item in items]


def _diagnostic_sources(params: msgspec.Raw) -> set[str]:
    """The kinds of diagnostics that a registration names; odd registrations name none."""
    try:
        registered = decode(params, RegistrationParams).registrations
        options = [
            decode(item.register_options, DiagnosticRegistration)
            for item in registered
            if item.method == "textDocument/diagnostic" and not is_null(item.register_options)
        ]
    except ProtocolViolation:
        return set()
    return {option.identifier for option in options if option.identifier is not None}
