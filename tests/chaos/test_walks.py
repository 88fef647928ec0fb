"""Random walks of edits, deletions, failures, scarce GPUs, newer operators and clock jumps, against the simulation.

Every pass is checked (tests/simulation/test_properties.py); every walk ends Ready once nothing fails any more.
"""

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.conftest import Fault
from tests.simulation.cluster import ORDER, Cluster
from tests.simulation.deployments import a_spec
from tests.simulation.test_properties import EDITS, KINDS, act_out, checked_pass, scripts, settle, told

GPU = {"resourceName": "nvidia.com/gpu", "count": 1}
HISTORY: tuple[dict[str, Any], ...] = tuple({"revisionHistoryLimit": limit} for limit in (0, 1, 3))
WALKS, STEPS = 60, 40


class Walk(RuleBasedStateMachine):
    """A TritonDeployment and what happens to it."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(a_spec(gpu=GPU))

    @initialize(
        gpus=st.sampled_from([None, 1, 2]),
        order=st.sampled_from([ORDER, ("containers", "job", "pod"), ("job", "containers", "pod")]),
    )
    def begin(self, gpus: int | None, order: tuple[str, ...]) -> None:
        self.cluster.gpus, self.cluster.order = gpus, order

    @rule(what=st.sampled_from([*EDITS, *HISTORY]))
    def edit(self, what: dict[str, Any]) -> None:
        act_out(self.cluster, ("edit", what))

    @rule(kind=st.sampled_from(KINDS))
    def delete(self, kind: str) -> None:
        act_out(self.cluster, ("delete", kind))

    @rule(what=scripts)
    def fail(self, what: Any) -> None:
        act_out(self.cluster, ("scripts", what))

    @rule(steps=st.integers(1, 40))
    def time_passes(self, steps: int) -> None:
        Walk.steps += steps
        act_out(self.cluster, ("run", steps))

    @rule(hours=st.sampled_from([-24, -1, 1, 24]))
    def the_clock_jumps(self, hours: int) -> None:
        self.cluster.now += timedelta(hours=hours)

    @rule(version=st.integers(1, 3))
    def the_operator_is_upgraded(self, version: int) -> None:
        self.cluster.settings = replace(self.cluster.settings, server_image=f"example/server:{version}")

    def teardown(self) -> None:
        """Nothing fails any more: then it is Ready, and at rest."""
        cluster = self.cluster
        cluster.scripts = told({})
        cluster.retry()
        cluster.edit(**deepcopy(a_spec(gpu=GPU)), suspend=False, serving={}, performance={})
        settle(cluster)
        assert cluster.condition("Ready")["status"] == "True", cluster.condition("Ready")
        assert checked_pass(cluster) == 0


@pytest.mark.chaos
def test_random_walks_end_at_the_fixpoint(fault: Fault) -> None:
    fault("random walks in the simulation", WALKS)
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    run_state_machine_as_test(
        Walk,
        settings=settings(max_examples=WALKS, stateful_step_count=STEPS, deadline=None, suppress_health_check=checks),
    )
    fault("random walks in the simulation", WALKS, f"{Walk.steps} steps, every one checked")
