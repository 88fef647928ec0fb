"""The option that writes golden files anew."""

import pytest

from tests.golden import files


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden/cases and tests/golden/objects anew"
    )


@pytest.fixture(scope="session", autouse=True)
def updated(request: pytest.FixtureRequest) -> None:
    """Write all files before the first of them is read, where that is asked for."""
    if request.config.getoption("--update-golden"):
        files.write()
