"""The list of tools itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from schemas.catalog import CATALOG, Effects, ToolEntry, _catalog
from schemas.wire import Data, Request


def test_the_thirteen_tools_of_the_main_job_are_there() -> None:
    assert set(CATALOG) >= {
        *("workspace-open", "workspace-list", "workspace-status", "workspace-reload", "workspace-close"),
        *("transaction-start", "transaction-preview", "transaction-history"),
        *("transaction-commit", "transaction-rollback"),
        *("list-code-actions", "stage-code-action", "server-status"),
    }


def test_every_entry_stands_under_its_own_name() -> None:
    assert all(name == entry.name for name, entry in CATALOG.items())


@pytest.mark.parametrize("entry", CATALOG.values(), ids=lambda entry: entry.name)
def test_every_entry_finds_its_models(entry: ToolEntry) -> None:
    assert issubclass(entry.request_model, Request)
    assert issubclass(entry.data_model, Data)


def test_two_tools_of_one_name_are_refused() -> None:
    entry = ToolEntry("same", "Same", "", Effects(), "none", "schemas.server", "ServerStatus")
    with pytest.raises(ValueError, match="two tools are called same"):
        _catalog(entry, entry)


def test_importing_the_catalog_imports_neither_pydantic_nor_any_model() -> None:
    script = (
        "import sys, schemas.catalog;"
        "print(*sorted(m for m in sys.modules if m.split('.')[0] in ('schemas', 'pydantic', 'pydantic_core')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.split() == ["schemas", "schemas.catalog"]
