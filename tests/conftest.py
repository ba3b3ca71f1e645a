"""What every test shares: one async backend."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The bridge runs on asyncio; the async tests do as well."""
    return "asyncio"
