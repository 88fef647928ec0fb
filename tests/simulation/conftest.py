"""Fixtures of the simulation."""

from copy import deepcopy

import pytest

from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_spec


@pytest.fixture(scope="session")
def settled() -> Cluster:
    """A cluster whose object is Ready; not to be changed."""
    cluster = Cluster(a_spec())
    cluster.settle()
    return cluster


@pytest.fixture
def serving(settled: Cluster) -> Cluster:
    """A cluster whose object is Ready."""
    return deepcopy(settled)
