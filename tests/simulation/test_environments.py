"""Only figures of one environment are compared: the odd one is measured again, by itself, and not for ever."""

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.answers import ENVIRONMENT, GOOD, Script
from tests.simulation.cluster import Cluster
from tests.simulation.deployments import a_model, candidate
from tests.states.deployment import a_deployment
from triton_operator.candidates.environments import differences

OTHER = Script(cpu="another CPU, 2 cores", speed=2.0)
"""A processor on which everything is twice as fast."""
ODD, FIRST, THIRD = "ts-trace-fp32", "onnx-fp32", "ts-script-fp32"


class Tries:
    """The answers of the candidates' profiles, one for each try; the last one counts from then on."""

    def __init__(self, **tries: list[Script]) -> None:
        self.tries = {name.replace("_", "-"): scripts for name, scripts in tries.items()}
        self.keys: dict[str, list[str]] = {}

    def __call__(self, stage: str, name: str, request: Any) -> Script:
        """How a Job fares."""
        if stage != "profile" or name not in self.tries:
            return GOOD
        keys = self.keys.setdefault(name, [])
        if request.key not in keys:
            keys.append(request.key)
        return self.tries[name][min(keys.index(request.key), len(self.tries[name]) - 1)]


def measured(tries: Tries, *names: str) -> Cluster:
    """A settled object with these candidates."""
    return a_deployment().candidates(*names).faring(tries).settled().cluster()


def profiles(cluster: Cluster, name: str) -> int:
    return cluster.story.count(f"profile {name}")


def test_the_odd_one_is_measured_again_and_ranked_by_that() -> None:
    cluster = measured(Tries(ts_trace_fp32=[OTHER, GOOD]), FIRST, ODD)
    assert (profiles(cluster, FIRST), profiles(cluster, ODD)) == (1, 2)
    assert cluster.condition("Ready")["status"] == "True"
    assert sorted(cluster.candidate(each)["rank"] for each in (FIRST, ODD)) == [1, 2]
    assert cluster.status["serving"]["candidate"] == FIRST, "the figures of the faster processor do not count"


def test_while_the_odd_one_is_measured_again_it_is_said_why() -> None:
    cluster = a_deployment().candidates(FIRST, ODD).faring(Tries(ts_trace_fp32=[OTHER, GOOD])).cluster()
    cluster.until(lambda each: "measured again" in str(each.status))
    assert f"{ODD}: processor differs: another CPU, 2 cores and a CPU, 2 cores" in str(cluster.status)


def test_what_is_never_comparable_is_left_out_and_told() -> None:
    cluster = measured(Tries(ts_trace_fp32=[OTHER]), FIRST, ODD, THIRD)
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.status["serving"]["candidate"] != ODD
    assert profiles(cluster, ODD) == 3
    told = cluster.candidate(ODD)
    assert told["reason"] == "NotCompared"
    assert "processor differs: another CPU, 2 cores and a CPU, 2 cores" in told["message"]
    assert f"not ranked: {ODD}: it was measured elsewhere" in cluster.condition("Selected")["message"]
    before = len(cluster.story)
    cluster.run(50)
    assert len(cluster.story) == before


def test_a_retry_measures_the_odd_one_again() -> None:
    cluster = measured(Tries(ts_trace_fp32=[OTHER, OTHER, OTHER, GOOD]), FIRST, ODD, THIRD)
    assert cluster.candidate(ODD)["reason"] == "NotCompared"
    served = cluster.serving()
    cluster.retry()
    cluster.settle()
    assert "rank" in cluster.candidate(ODD)
    assert cluster.serving() == served


def test_where_all_nodes_are_other_ones_what_was_measured_before_is_measured_again() -> None:
    tries = Tries(onnx_fp32=[GOOD, OTHER], ts_script_fp32=[GOOD, OTHER], ts_trace_fp32=[OTHER])
    cluster = measured(tries, FIRST, THIRD)
    cluster.edit(models=[a_model(candidates=[candidate(each) for each in (FIRST, THIRD, ODD)])])
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert all("rank" in cluster.candidate(each) for each in (FIRST, THIRD, ODD))
    assert (profiles(cluster, FIRST), profiles(cluster, THIRD), profiles(cluster, ODD)) == (2, 2, 3)


def test_the_winner_stays_until_the_better_one_was_measured_where_it_was() -> None:
    slower = {"selection": {"minImprovementPercent": 50}}
    tries = Tries(ts_trace_fp32=[OTHER, OTHER, Script(speed=4.0)])
    cluster = a_deployment().candidates(FIRST).asking(**slower).faring(tries).serving().cluster()
    cluster.edit(models=[a_model(candidates=[candidate(FIRST), candidate(ODD)])])
    cluster.settle()
    assert cluster.status["serving"]["candidate"] == ODD
    assert profiles(cluster, ODD) == 3


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ({"gpu_driver": "580"}, {"gpu_driver": "535"}, "GPU driver differs: 580 and 535"),
        ({"gpu_driver": "580"}, {}, ""),
        ({"gpu_product": "L4"}, {"gpu_product": "A100"}, "GPU differs: L4 and A100"),
        ({"gpu_product": "L4"}, {}, ""),
        ({"cpu": "a CPU, 2 cores"}, {"cpu": "a CPU, 4 cores"}, "processor differs: a CPU, 2 cores and a CPU, 4 cores"),
        ({"device": "gpu"}, {}, "device differs: gpu and cpu"),
    ],
)
def test_what_makes_two_environments_differ(one: dict[str, Any], other: dict[str, Any], difference: str) -> None:
    found = differences(replace(ENVIRONMENT, **one), replace(ENVIRONMENT, **other))
    assert next(found, "") == difference
