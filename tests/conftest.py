"""What every test shares: one async backend, and the .NET toolchain where it lies beside the project."""

from collections.abc import Mapping

import pytest

from tests.shared import NO_TOOLCHAIN, dotnet_environment, has_toolchain


@pytest.fixture
def anyio_backend() -> str:
    """The bridge runs on asyncio; the async tests do as well."""
    return "asyncio"


@pytest.fixture(scope="session")
def toolchain() -> Mapping[str, str]:
    """The whole environment for .NET processes of the tests; skipped where the toolchain is not."""
    if not has_toolchain():
        pytest.skip(NO_TOOLCHAIN)
    return dotnet_environment()
