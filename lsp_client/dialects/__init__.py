"""The kinds of language servers, one module each; `base` is the seam they share."""

from typing import Final

from lsp_client.dialects.base import Dialect
from lsp_client.dialects.csharp_ls import CsharpLsDialect
from lsp_client.dialects.embedded import EmbeddedDialect
from lsp_client.dialects.roslyn import RoslynDialect

ROSLYN: Final[Dialect] = RoslynDialect()
CSHARP_LS: Final[Dialect] = CsharpLsDialect()
EMBEDDED: Final[Dialect] = EmbeddedDialect()

__all__ = ["CSHARP_LS", "EMBEDDED", "ROSLYN", "Dialect"]
