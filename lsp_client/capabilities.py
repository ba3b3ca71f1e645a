"""What we tell a server that we can do.

Each entry is here because a server behaves differently with it; what is left out is left out for the same reason:
semantic tokens, inlay hints and code lenses would only add refresh traffic, and the Visual Studio extensions change
the shape of code actions.
"""

from __future__ import annotations

RESOURCE_OPERATIONS = ("create", "rename", "delete")
"""Without the needed operation Roslyn's edit comes back empty, with no sign of failure."""


def client_capabilities(*, dynamic_registration: bool, applies_edits: bool) -> dict[str, object]:
    """The capabilities of ``initialize``.

    With ``dynamic_registration`` the server may register watchers, diagnostics and configuration at run time
    (Roslyn's way: then it leaves watching to us, and answers all its sources of diagnostics).  Without it a server
    offers everything from the start and waits for no answer of ours while it starts.  ``applies_edits``: whether there
    are commands whose edit we take by ``workspace/applyEdit``.
    """
    dynamic = {"dynamicRegistration": dynamic_registration}
    return {
        "general": {"positionEncodings": ["utf-16"]},
        "window": {"workDoneProgress": True, "showMessage": {}},
        "workspace": {
            "applyEdit": applies_edits,
            "configuration": True,
            "workspaceFolders": True,
            "didChangeConfiguration": dict(dynamic),
            "didChangeWatchedFiles": {**dynamic, "relativePatternSupport": True},
            "diagnostics": {"refreshSupport": True},
            "symbol": dict(dynamic),
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": list(RESOURCE_OPERATIONS),
                "failureHandling": "abort",
            },
        },
        "textDocument": {
            "synchronization": {"didSave": False, "willSave": False},
            # Its mere presence keeps csharp-ls from pushing diagnostics.
            "diagnostic": {**dynamic, "relatedDocumentSupport": False},
            "codeAction": {
                # csharp-ls offers resolve only to clients that know literals; resolveSupport keeps it from
                # computing every edit while listing, where one bad provider fails the whole list.
                "codeActionLiteralSupport": {
                    "codeActionKind": {
                        "valueSet": [
                            "",
                            "quickfix",
                            "refactor",
                            "refactor.extract",
                            "refactor.inline",
                            "refactor.rewrite",
                            "source",
                        ]
                    }
                },
                "dataSupport": True,
                "isPreferredSupport": True,
                "resolveSupport": {"properties": ["edit"]},
            },
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
            "hover": {"contentFormat": ["markdown", "plaintext"]},
            "definition": {"linkSupport": False},
            "typeDefinition": {"linkSupport": False},
            "implementation": {"linkSupport": False},
            "references": {},
            "callHierarchy": {},
            "typeHierarchy": {},
            "rename": {"prepareSupport": True},
            "formatting": {},
            "rangeFormatting": {},
            "foldingRange": {},
        },
    }
