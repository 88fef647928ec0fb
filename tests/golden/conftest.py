"""The option that writes golden files anew."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the files of the tests that run anew: choose some with -k"
    )


@pytest.fixture(scope="session")
def updates(request: pytest.FixtureRequest) -> bool:
    """Whether a test is to write its file anew before it compares."""
    return bool(request.config.getoption("--update-golden"))
