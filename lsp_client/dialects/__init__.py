"""The kinds of language servers, one module each; `base` is the seam they share."""

from collections.abc import Mapping
from typing import Final

from lsp_client.dialects.base import Dialect
from lsp_client.dialects.csharp_ls import CsharpLsDialect
from lsp_client.dialects.embedded import EmbeddedDialect
from lsp_client.dialects.roslyn import RoslynDialect

ROSLYN: Final[Dialect] = RoslynDialect()
CSHARP_LS: Final[Dialect] = CsharpLsDialect()
EMBEDDED: Final[Dialect] = EmbeddedDialect()

DIALECTS: Final[Mapping[str, Dialect]] = {dialect.name: dialect for dialect in (ROSLYN, CSHARP_LS, EMBEDDED)}
"""All dialects by name, the best server first."""

__all__ = ["CSHARP_LS", "DIALECTS", "EMBEDDED", "ROSLYN", "Dialect"]
