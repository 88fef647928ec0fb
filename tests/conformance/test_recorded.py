"""Box runs the pods of the shell; their statuses are those that the full run recorded of the real kubelet."""

from collections.abc import Iterator, Mapping

import pytest

from tests.conformance import shell
from tests.conformance.cases import SYSTEM, SYSTEM_IMAGE
from tests.conformance.kubelets import Here, data_of, run
from tests.conformance.recorded import recorded
from tests.conformance.statuses import Told, unmeant
from triton_local.boxed import Box

AT_A_TIME = 12


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Told]]:
    """What Box says of each pod."""
    cases, known = list(shell.cases()), recorded()
    here = Here(tmp_path_factory.mktemp("box"), Box(), {SYSTEM: SYSTEM_IMAGE}.__getitem__, data_of(cases))
    yield run(here, cases, AT_A_TIME, lambda name, now: not unmeant(name, "Box", known[name], now))
    here.close()


@pytest.mark.parametrize("name", shell.SPECS)
def test_box_says_what_the_kubelet_said(said: Mapping[str, Told], name: str) -> None:
    assert unmeant(name, "Box", recorded()[name], said[name]) == []
