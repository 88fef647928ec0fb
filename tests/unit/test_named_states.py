"""States by name: reached once, never shared, and not written down again where a name is there for them."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.simulation import deployments
from tests.simulation.answers import Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.edits import (
    Edit,
    a_narrower_batch,
    a_wider_batch,
    another_source,
    another_version,
    merged,
    only,
    the_usual_batch,
)
from tests.states.deployment import a_deployment, apart
from tests.states.pods import without_a_node

TESTS = Path(__file__).parents[1]
NAMES = vars(deployments)
"""What a literal spec is written with."""
EDITS: dict[str, Edit] = {
    "the_usual_batch()": the_usual_batch(),
    "a_wider_batch()": a_wider_batch(),
    "a_narrower_batch()": a_narrower_batch(),
    'only("onnx-fp32")': only("onnx-fp32"),
    "another_source()": another_source(),
    "another_version()": another_version(),
}


def known() -> Iterator[tuple[str, Any]]:
    """What has a name, each with the name that stands for it."""
    for state in (a_deployment(), a_deployment().one_candidate()):
        spec = state.cluster().spec
        for name, edit in EDITS.items():
            fields = edit(spec)
            yield from ((name, each) for each in (fields, *fields.values()))


def written_again(text: str) -> Iterator[tuple[int, str]]:
    """Lines on which a module names a literal that has a name already, and that name."""
    named = list(known())
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        try:
            found = eval(ast.unparse(node.value), dict(NAMES))  # noqa: S307 - a literal of this repository
        except (NameError, TypeError):  # A name of the module's own may have another type among NAMES.
            continue
        if isinstance(found, dict) and found.get("conditions", [{}])[0].get("type") == "PodScheduled":
            yield node.lineno, "without_a_node()"
        yield from ((node.lineno, name) for name, value in named if found == value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('ONE = [a_model(candidates=[candidate("onnx-fp32")])]', 'only("onnx-fp32")'),
        ('WIDER = [a_model(config={"maxBatchSize": 16, "dynamicBatching": {}})]', "a_wider_batch()"),
        ('OTHER = {"source": {"uri": "pvc://models/other"}}', "another_source()"),
        ('OTHER: Body = {"uri": "pvc://models/digits", "version": "v2"}', "another_version()"),
        ('NO_NODE = {"phase": "Pending", "conditions": [{"type": "PodScheduled"}]}', "without_a_node()"),
    ],
)
def test_what_has_a_name_is_found_where_it_is_written_again(text: str, name: str) -> None:
    assert name in [found for _, found in written_again(text)]


def test_no_module_writes_down_what_has_a_name() -> None:
    found = [
        f"{path.relative_to(TESTS)}:{line} is {name}"
        for suite in ("apiserver", "golden", "simulation", "unit")
        for path in (TESTS / suite).rglob("*.py")
        for line, name in written_again(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(["use the name from tests/simulation/edits.py or tests/states:", *found])


def test_the_same_words_lead_to_the_same_state_and_each_cluster_is_ones_own() -> None:
    state = a_deployment().one_candidate().serving()
    assert a_deployment().one_candidate().serving() is state
    mine = state.cluster()
    mine.edit(a_wider_batch())
    mine.settle()
    assert state.cluster() == a_deployment().one_candidate().serving().cluster() != mine
    assert mine.story[-1] == "promotion"


def test_a_state_is_reached_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[Cluster] = []
    act = Cluster.act

    def counted(cluster: Cluster) -> int:
        passes.append(cluster)
        return act(cluster)

    monkeypatch.setattr(Cluster, "act", counted)
    with apart():
        a_deployment().one_candidate().until_active("reference").cluster()
        count = len(passes)
        assert count > 0
        a_deployment().one_candidate().until_active("reference").cluster()
        assert len(passes) == count
        a_deployment().one_candidate().until_active("reference").until_active("convert").cluster()
        assert count < len(passes) < 3 * count, "it goes on from there"


def test_edits_keep_what_they_do_not_name() -> None:
    cluster = a_deployment().one_candidate().autoscaled(minReplicas=2).edited(a_wider_batch()).cluster()
    (model,) = cluster.spec["models"]
    assert [each["name"] for each in model["candidates"]] == ["onnx-fp32"]
    assert model["config"]["maxBatchSize"] == 16
    assert cluster.spec["serving"] == {"autoscaling": {"maxReplicas": 6, "minReplicas": 2}}
    cluster.edit(merged("serving", replicas=3), another_source())
    assert cluster.spec["serving"].keys() == {"autoscaling", "replicas"}
    assert (cluster.spec["source"], cluster.generation) == ({"uri": "pvc://models/other"}, 3)


def test_what_serves_may_be_edited_and_serves_again() -> None:
    cluster = a_deployment().one_candidate().autoscaled().serving().edited(a_wider_batch()).serving().cluster()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.story.count("promotion") == 1
    assert ("ScaledObject", "digits") in cluster.objects


def test_what_is_not_reached_says_so() -> None:
    suspended = a_deployment().asking(suspend=True)
    with pytest.raises(AssertionError, match=r"it does not serve: .*Suspended"):
        suspended.serving().cluster()
    with pytest.raises(AssertionError, match="it did not come about in 300 steps"):
        suspended.until_active("convert").cluster()
    with pytest.raises(AssertionError, match="a Cluster has no field gpu"):
        a_deployment().where(gpu=1).cluster()


def test_a_pod_without_a_node_is_told_as_unschedulable() -> None:
    scripts = when("reference", Script(pending=without_a_node()))
    assert a_deployment().faring(scripts).until_has("Unschedulable").cluster().condition("Ready")["status"] == "False"
