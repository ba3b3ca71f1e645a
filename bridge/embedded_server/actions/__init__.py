"""The refactorings, one a module; each knows a text and a tree, and no server."""
