"""A real tritonserver of the tritonserver-cpu image, and stages run in the converter image beside it."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import served_claim

from hack.imagebuild.pod import Pod, explicit, serving

# Read once, as gRPC's first channel is made. With its default, epoll1, a client of 1.67 was seen to miss a reset
# connection and to wait for ever.
os.environ.setdefault("GRPC_POLL_STRATEGY", "poll")


@pytest.fixture(scope="session")
def pod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pod]:
    """One server for all tests that leave it as it is."""
    with serving(served_claim.build(tmp_path_factory.mktemp("claim")), served_claim.REVISION) as served:
        yield served


@pytest.fixture
def start_pod(tmp_path: Path) -> Iterator[Callable[[str], Pod]]:
    """A server of a test's own, of one model."""
    with ExitStack() as stack:
        yield lambda model: stack.enter_context(
            serving(served_claim.build(tmp_path), served_claim.REVISION, explicit(model))
        )
