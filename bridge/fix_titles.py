"""Which titles mean the same fix at different places.

A server without a fix-all of its own gives a fix no identity but its title.  So two fixes are one and the same when
their titles are equal, or when both fit the same form of a closed list: forms of Roslyn's own fixes whose titles name
what stands at the place, and nothing else that differs.  A title that names what is *chosen* ("using System.IO;",
"Change 'Lenght' to 'Length'.") is never taken for another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

_NAME: Final = r"[^'\r\n]+"

FORMS: Final = tuple(
    re.compile(form)
    for form in (
        rf"Make '{_NAME}' static",
        rf"Unseal class '{_NAME}'",
        r"Make [^\s]+ return Task instead of void\.",
    )
)
"""Each names the member or type at the place, which is another one at the next place."""

ONLY_DIAGNOSTIC: Final[Mapping[str, str]] = {"Remove unnecessary usings": "CS8019"}
"""Fixes that belong to one diagnostic by their nature, whatever else touches the place they are listed for."""


def same_fix(title: str) -> Callable[[str], bool]:
    """Tells whether another title means the fix that ``title`` means."""
    form = next((form for form in FORMS if form.fullmatch(title)), None)
    if form is None:
        return title.__eq__
    return lambda other: form.fullmatch(other) is not None
