"""Fixtures of the simulation."""

from collections.abc import Iterator

import pytest

from tests.simulation.cluster import Cluster
from tests.states.deployment import a_deployment, apart


@pytest.fixture(scope="session")
def settled() -> Cluster:
    """A cluster whose object is Ready; not to be changed."""
    return a_deployment().serving().cluster()


@pytest.fixture
def serving() -> Cluster:
    """A cluster whose object is Ready."""
    return a_deployment().serving().cluster()


@pytest.fixture(autouse=True)
def _states_of_another_operator(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep what a test that changes the operator's code reaches from all others, and theirs from it."""
    if "monkeypatch" not in request.fixturenames:
        yield
        return
    with apart():
        yield
