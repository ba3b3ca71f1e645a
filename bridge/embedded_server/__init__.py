"""A small C# language server that knows syntax and nothing else, in Roslyn's dialect.

It exists so that the bridge can be shown and tested where no .NET is: a stand-in, and it says so. It is started as
a child process like any other server (``python -m bridge.embedded_server --stdio``) and shares no code path with the
rest of the bridge, so nothing here may lean on being in the same process. What it borrows is small and pure: texts and
positions from ``transactions``, URIs from ``lsp_client``.

Map of the package, from the inside out:

- ``positions``  UTF-16 positions and Roslyn's idea of a line, for a Python string
- ``syntax``     a text with its tree-sitter tree; byte offsets become character offsets here and nowhere else
- ``edits``      replacement of stretches of one text, as values
- ``actions/``   one refactoring a module, each a pure function from a tree to edits
- ``outline``, ``folding``   the two other questions that syntax can answer
- ``projects``   which files a solution holds, by the SDK's default globs
- ``documents``  open texts over the disk
- ``wire``       actions in the shape in which Roslyn lists and resolves them
- ``wire_outline``   outlines and folds in the protocol's shapes
- ``messages``   what is read of incoming messages
- ``engine``     pygls, taught to leave parameters alone
- ``server``     the conversation: load, listen, answer

What it must never do: claim a meaning. No diagnostics, no rename, no references, no types of expressions.
"""
