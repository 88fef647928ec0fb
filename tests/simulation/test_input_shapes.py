"""Shapes to measure with that the model does not have are told once the framework has run, before any conversion."""

import pytest

from tests.states.deployment import a_deployment


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (
            {"input": "INPUT_0", "dims": [1, 8, 8]},
            "spec.performance.inputShapes: the model has no input 'INPUT_0'; it has: INPUT__0",
        ),
        ({"input": "INPUT__0", "dims": [3, 8, 8]}, "[3, 8, 8] does not fit input INPUT__0, whose dimensions are [1, 8"),
    ],
    ids=["name", "dims"],
)
def test_what_no_profile_could_send_stops_before_the_conversions(shape: dict[str, object], words: str) -> None:
    cluster = a_deployment().one_candidate().asking(performance={"inputShapes": [shape]}).settled().cluster()
    assert cluster.story == ["source", "reference"]
    ready = cluster.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert words in ready["message"]
    assert cluster.condition("Stalled")["status"] == "True"
    cluster.edit(performance={"inputShapes": [{"input": "INPUT__0", "dims": [1, 8, 8]}]})
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("reference") == 1
