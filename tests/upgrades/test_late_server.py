"""A server that was late stays so after an upgrade, though 2bb6dae5 kept that nowhere but in the status."""

import pytest

from tests.upgrades.stored import state


@pytest.mark.parametrize("name", ["late-server", "late-server-without-pods"])
def test_the_first_pass_records_what_the_status_says_and_later_ones_read_no_words(name: str) -> None:
    cluster = state(name).renamed.cluster()
    cluster.gpus = 1
    cluster.starts = lambda _: True
    before = {each["metadata"]["name"]: each["spec"]["replicas"] for each in cluster.of_kind("Deployment")}
    said = (cluster.condition("Stalled")["status"], cluster.condition("Stalled")["message"])
    cluster.act()
    for each in cluster.status["conditions"]:
        each["message"] = ""
    cluster.act()
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["message"]) == said
    assert {each["metadata"]["name"]: each["spec"]["replicas"] for each in cluster.of_kind("Deployment")} == before
