"""JSON as .NET tools accept it in ``global.json`` and ``.slnf``: with comments, trailing commas and a BOM."""

from __future__ import annotations

import json
import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)


def parse_jsonc(text: str) -> object:
    """The value of ``text``; raises ``ValueError`` with the place of the mistake, or for nesting that no person wrote."""
    bare = _TOKEN.sub(lambda m: m[0] if m[0].startswith('"') else " ", text.removeprefix("\ufeff"))
    if "//" in text or "/*" in text:
        # A comma may stand before a comment that stands before the bracket: it trails only now.
        bare = _TOKEN.sub(lambda m: m[0] if m[0].startswith('"') else " ", bare)
    try:
        value: object = json.loads(bare)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value
