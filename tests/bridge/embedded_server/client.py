"""A pytest-lsp client that can read Roslyn's dialect.

The stock client ends the server at a notification without ``params``, and loses code actions that have a command. This
one leaves JSON as it is wherever Roslyn leaves the standard.
"""

from typing import Any

import cattrs
from lsprotocol import types
from pygls.protocol import default_converter
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCResponseMessage
from pytest_lsp import LanguageClient
from pytest_lsp.client import register_lsp_features
from pytest_lsp.protocol import LanguageClientProtocol

LOADED = "workspace/projectInitializationComplete"

_RAW = frozenset(
    {
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CODE_ACTION_RESOLVE,
        types.TEXT_DOCUMENT_DOCUMENT_SYMBOL,
        types.TEXT_DOCUMENT_FOLDING_RANGE,
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        types.TEXT_DOCUMENT_HOVER,
        types.TEXT_DOCUMENT_DID_OPEN,
        types.TEXT_DOCUMENT_DID_CHANGE,
        types.TEXT_DOCUMENT_DID_CLOSE,
    }
)

# What JSON gives; tests look into it without further ado.
Json = Any


class DialectProtocol(LanguageClientProtocol):
    """What the tests send as JSON, and what Roslyn answers in its own way, stays JSON."""

    # type ignores: pygls wraps both in a cache, which is no part of what they are for
    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        return None if method in _RAW else super().get_message_type(method)

    def get_result_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        return None if method in _RAW else super().get_result_type(method)


class DialectClient(LanguageClient):
    """The client of the tests: asks with JSON, remembers loads."""

    def __init__(self) -> None:
        super().__init__(protocol_cls=DialectProtocol, converter_factory=_converter)
        register_lsp_features(self)
        self.loads: list[object] = []
        self.registered: list[str] = []

        # Functions, not methods: pygls writes attributes on its handlers. And it takes a first parameter of type object
        # for a wish to get the client.
        def loaded(params: None) -> None:
            self.loads.append(params)

        def register(params: types.RegistrationParams) -> None:
            self.registered += [registration.method for registration in params.registrations]

        self.feature(LOADED)(loaded)
        self.feature(types.CLIENT_REGISTER_CAPABILITY)(register)

    async def ask(self, method: str, msg_id: str | None = None, **params: Json) -> Json:
        """The result of a request. Raises JsonRpcException."""
        sent = self.protocol.send_request_async(method, params, msg_id)  # type: ignore[no-untyped-call]  # pytest-lsp's
        return await sent

    def tell(self, method: str, **params: Json) -> None:
        """Send a notification."""
        self.protocol.notify(method, params)

    async def actions(self, uri: str, line: int, character: int = 0) -> dict[str, Json]:
        """The items offered at a caret (zero-based line, UTF-16 character), by title."""
        caret = {"line": line, "character": character}
        items = await self.ask(
            types.TEXT_DOCUMENT_CODE_ACTION,
            textDocument={"uri": uri},
            range={"start": caret, "end": caret},
            context={"diagnostics": []},
        )
        return {item["title"]: item for item in items}


def _converter() -> cattrs.Converter:
    converter = default_converter()  # type: ignore[no-untyped-call]  # pygls'
    converter.register_structure_hook(JsonRPCNotification, _notification)
    converter.register_structure_hook(JsonRPCResponseMessage, _response)
    assert isinstance(converter, cattrs.Converter)
    return converter


def _notification(message: Json, _type: object) -> JsonRPCNotification:
    return JsonRPCNotification(message["method"], message["jsonrpc"], message.get("params"))


def _response(message: Json, _type: object) -> JsonRPCResponseMessage:
    return JsonRPCResponseMessage(message["id"], message["jsonrpc"], message.get("result"))
