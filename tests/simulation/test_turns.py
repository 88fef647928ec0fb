"""Many objects measure in turn: never two on a node, each namespace in its turn, and nobody for ever."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest

from tests.simulation.installation import Installation


@pytest.mark.parametrize("seed", range(3))
def test_never_do_two_measure_on_a_node_and_all_serve_in_the_end(seed: int) -> None:
    chance = Random(seed)
    sizes = {f"team-{number}": chance.randint(1, 2) for number in range(3)}
    nodes = [f"node-{number}" for number in range(chance.randint(1, 3))]
    installation = Installation(sizes, nodes, chance=chance)
    most = 0
    for number in installation.steps(installation.serve):
        loads = installation.loads()
        assert all(len(owners) == 1 for owners in loads.values()), loads
        most = max(most, len(loads))
        if number and not number % 50:
            installation.restart()
    assert most == min(len(nodes), len(installation.members)), "no node stands idle while others wait"


def test_where_nodes_cannot_be_read_one_measures_at_a_time() -> None:
    installation = Installation({"vision": 2, "audio": 1}, ["node-0", "node-1", "node-2"], reads_nodes=False)
    for _ in installation.steps(installation.serve):
        assert sum(map(len, installation.loads().values())) <= 1


def test_a_namespace_with_many_objects_keeps_no_other_waiting() -> None:
    installation = Installation({"big": 6, "small": 1}, ["node-0"])
    for _ in installation.steps(lambda: installation.members[-1].serves):
        pass
    began = installation.began
    small = [number for number, owner in enumerate(began) if owner[0] == "small"]
    assert len(small) == 3, "two profiles, and the measurement before it serves"
    assert small[0] <= 2
    for one, other in pairwise(small):
        assert other - one <= 2, f"another namespace had more than one turn between: {began}"


def test_one_whose_job_no_node_takes_lets_the_others_pass() -> None:
    installation = Installation({"vision": 2, "audio": 1}, ["node-0"], stuck=[("audio", "object-0")])
    for _ in installation.steps(installation.serve):
        pass
    (stuck,) = [each for each in installation.members if each.stuck]
    assert stuck.cluster.started("profile") >= 1
    for _ in range(20):
        stuck.cluster.act()
        stuck.cluster.step()
    assert stuck.cluster.active("profile"), "it has the place that nobody else wants"


def test_who_waits_is_told_its_place_and_what_for() -> None:
    installation = Installation({"vision": 3}, ["node-0"])

    def waiting() -> list[str]:
        clusters = [each.cluster for each in installation.members]
        return [each.condition("Verified")["message"] for each in clusters if each.has("Queued", "Verified")]

    def is_told() -> bool:
        return all(
            any(place in each and "on node node-0 is measured" in each for each in waiting())
            for place in ("place 1 of 2: vision/object-", "place 2 of 2: vision/object-")
        )

    for _ in installation.steps(is_told):
        pass
    assert all(not each.cluster.has("True", "Stalled") for each in installation.members)


def test_any_number_measures_at_once_where_the_installation_says_so() -> None:
    installation = Installation({"vision": 3}, ["node-0"])
    for each in installation.members:
        each.cluster.settings = replace(each.cluster.settings, measurements_per_node=0)
    for _ in installation.steps(lambda: len(installation.loads().get("node-0", ())) == 3):
        pass
