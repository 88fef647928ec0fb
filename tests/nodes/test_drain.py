"""Nodes are drained under several servers."""

import time

from tests.apiserver.operator_process import eventually
from tests.chaos.node.place import server_pods
from tests.conftest import Fault
from tests.nodes.conftest import Place
from tests.nodes.objects import SHARED, a_graph
from tests.nodes.test_nodes import MOVED_SECONDS, is_ready, nodes_of

DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=300s")


def test_a_drain_of_all_its_nodes_leaves_a_server_ready(place: Place, fault: Fault) -> None:
    """Without the budget both servers would end at the same moment."""
    what = "two nodes drained under 2 servers"
    fault(what)
    cluster = place.kubectl
    machine, others = place.nodes[0].name, [each.name for each in place.nodes[1:]]
    applied = place.new("drained", a_graph(SHARED, replicas=2))
    try:
        # Its servers are then on the two others, which tests may drain: the machine has the cluster's own pods.
        cluster.run("cordon", machine)
        applied.wait_ready(applied.apply())
        assert nodes_of(applied) <= set(others)
        cluster.run("uncordon", machine)
        assert cluster.exists("poddisruptionbudget", "drained-servers")
        least, began = 2, time.monotonic()
        drain = cluster.stream("drain", *others, *DRAIN)
        while drain.poll() is None:
            least = min(least, sum(map(is_ready, server_pods(applied))))
            time.sleep(0.2)
        assert drain.returncode == 0
        took = time.monotonic() - began
        eventually(lambda: nodes_of(applied) == {machine} and len(server_pods(applied)) == 2, MOVED_SECONDS)
    finally:
        cluster.run("uncordon", machine, *others)
        cluster.delete("tritondeployment", "drained")
    assert least == 1
    fault(what, 1, f"one moved after the other in {took:.0f} s")
