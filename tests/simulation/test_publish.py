"""What passed is published once, after everything that may undo it, and what serves waits for nothing of it."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.answers import SAMPLES, Script, when
from tests.simulation.cluster import Cluster
from tests.simulation.edits import a_wider_batch, another_source
from tests.simulation.test_follow import one_life
from tests.simulation.test_soak import Clients, with_clients
from tests.states.deployment import State, a_deployment
from triton_converters.contract.envelope import EXIT_FINAL
from triton_converters.contract.reasons import Reason
from triton_operator.api.triton_deployment import InvalidSpecError, parse

PLACE = "registry.example/acme/digits"
PUBLISH: dict[str, Any] = {
    "uri": f"oci://{PLACE}",
    "secretRef": {"name": "registry"},
    "signing": {"secretRef": {"name": "cosign"}},
}
REFUSED = Script(EXIT_FINAL, reason=Reason.REGISTRY_NOT_FOUND, message="PUT: 404")
BUSY = Script(1, reason=Reason.REGISTRY_BUSY, message="PUT: 429")


def asking(**fields: Any) -> State:
    return a_deployment().one_candidate().asking(publish=PUBLISH | fields)


def state_of(cluster: Cluster, kind: str = "Published") -> tuple[str, str]:
    condition = cluster.condition(kind)
    return condition["status"], condition["reason"]


def asked(cluster: Cluster) -> dict[str, Any]:
    """The request of the last publish Job."""
    (job,) = (each for each in cluster.of_kind("Job") if each["metadata"]["name"].startswith("digits-publish-"))
    request: dict[str, Any] = json.loads(job["spec"]["template"]["spec"]["containers"][0]["args"][1])
    return request


def test_the_active_revision_is_published_once() -> None:
    cluster = asking().settled().cluster()
    published, revision = cluster.status["published"], cluster.status["serving"]["revision"]
    assert cluster.started("publish") == 1
    assert (state_of(cluster), state_of(cluster, "Ready")) == (("True", "Published"), ("True", "Ready"))
    assert published["revision"] == revision
    assert published["image"].startswith(f"{PLACE}@sha256:")
    assert published["signer"]
    assert published["time"]
    cluster.edit(serving={"replicas": 3})
    cluster.edit(revisionHistoryLimit=5)
    cluster.retry()
    cluster.settle()
    assert cluster.started("publish") == 1
    cluster.edit(a_wider_batch())
    cluster.settle()
    assert cluster.started("publish") == 2
    assert cluster.status["published"]["revision"] == cluster.status["serving"]["revision"] != revision


def test_the_report_says_nothing_that_may_change_while_a_job_pushes() -> None:
    cluster = asking().until_active("publish").cluster()
    before = asked(cluster)
    assert before["signs"]
    assert "publish" not in json.loads(before["predicate"])["identity"]["spec"]
    cluster.edit(serving={"replicas": 3})
    cluster.act()
    assert asked(cluster) == before


@pytest.mark.parametrize(
    "field",
    [
        {"uri": "oci://registry.example/acme/other"},
        {"signing": {"secretRef": {"name": "another-key"}}},
        {"samples": True},
    ],
    ids=lambda each: next(iter(each)),
)
def test_another_place_key_or_content_is_another_image(field: dict[str, Any]) -> None:
    cluster = asking().settled().cluster()
    jobs = len(cluster.story)
    cluster.edit(publish=PUBLISH | field)
    cluster.settle()
    assert cluster.story[jobs:] == ["publish"]
    assert state_of(cluster) == ("True", "Published")


def test_without_the_field_nothing_is_told_of_it() -> None:
    cluster = asking().settled().cluster()
    cluster.edit(publish=None)
    cluster.settle()
    assert "published" not in cluster.status
    assert "Published" not in {each["type"] for each in cluster.status["conditions"]}


def test_what_serves_waits_for_nothing_of_it() -> None:
    cluster = asking().faring(when("publish", REFUSED)).settled().cluster()
    assert (state_of(cluster), state_of(cluster, "Ready")) == (("False", "RegistryNotFound"), ("True", "Ready"))
    assert state_of(cluster, "UpToDate") == ("True", "Ready")
    assert state_of(cluster, "Stalled") == ("False", "NoStall")
    assert "published" not in cluster.status
    assert cluster.started("publish") == 1
    cluster.scripts = when("publish", Script())
    cluster.retry()
    cluster.settle()
    assert state_of(cluster) == ("True", "Published")


def test_a_registry_that_is_busy_is_asked_again() -> None:
    cluster = asking().faring(when("publish", BUSY)).until_has("RegistryBusy", "Published").cluster()
    tries = cluster.started("publish")
    assert state_of(cluster, "Ready") == ("True", "Ready")
    assert cluster.due is not None
    cluster.now = max(cluster.now, cluster.due) + timedelta(minutes=5)
    cluster.run(10)
    assert cluster.started("publish") > tries
    cluster.scripts = when("publish", Script())
    cluster.now += timedelta(minutes=10)
    cluster.settle()
    assert state_of(cluster) == ("True", "Published")


def test_an_image_stays_told_while_something_newer_is_worked_on() -> None:
    cluster = asking().settled().cluster()
    image = cluster.status["published"]
    cluster.edit(another_source())
    cluster.until(lambda each: each.active("convert"))
    assert (state_of(cluster), cluster.status["published"]) == (("True", "Published"), image)
    first = cluster.status["serving"]["revision"]
    cluster.settle()
    cluster.edit(rollout={"revision": first})
    cluster.settle()
    assert state_of(cluster) == ("False", "RolledBack")
    assert cluster.started("publish") == 2


def test_nothing_is_published_before_its_soak_has_passed() -> None:
    cluster = with_clients()
    cluster.edit(publish=PUBLISH)
    cluster.settle()
    # No other revision was active before the first one, so nothing can undo it.
    assert cluster.started("publish") == 1
    cluster.edit(a_wider_batch())
    cluster.until(lambda each: each.has("Soaking", "Soaked"))
    assert state_of(cluster) == ("Unknown", "Soaking")
    assert cluster.started("publish") == 1
    cluster.until(lambda each: each.has("SoakPassed", "Soaked"))
    cluster.settle()
    assert state_of(cluster) == ("True", "Published")
    assert cluster.status["published"]["revision"] == cluster.status["serving"]["revision"]


def test_what_no_soak_has_judged_is_not_signed() -> None:
    cluster = with_clients()
    cluster.edit(publish=PUBLISH, rollout={"onInconclusive": "Continue"})
    cluster.settle()
    assert isinstance(cluster.counters, Clients)
    cluster.counters.until = cluster.now
    cluster.edit(a_wider_batch())
    cluster.until(lambda each: each.has("SoakInconclusive", "Soaked"))
    cluster.settle()
    assert state_of(cluster) == ("False", "SoakInconclusive")
    assert cluster.started("publish") == 1


def test_what_a_soak_undoes_is_never_signed() -> None:
    cluster = with_clients()
    cluster.edit(publish=PUBLISH)
    cluster.settle()
    first = cluster.status["published"]
    assert isinstance(cluster.counters, Clients)
    cluster.counters.failing = 0.5
    cluster.edit(a_wider_batch())
    cluster.until(lambda each: each.has("SoakFailed", "Soaked"))
    cluster.settle()
    assert cluster.started("publish") == 1
    assert cluster.status["published"] == first


def test_what_awaits_approval_is_not_published() -> None:
    cluster = asking().asking(selection={"approval": "Manual"}).settled().cluster()
    assert (state_of(cluster), cluster.started("publish")) == (("Unknown", "Waiting"), 0)


def test_what_has_no_record_is_not_signed() -> None:
    cluster = asking().until_active("measure").cluster()
    results = cluster.objects["ConfigMap", "digits-results"]["data"]
    results |= {name: text.replace(SAMPLES, "") for name, text in results.items()}
    cluster.settle()
    assert (state_of(cluster), state_of(cluster, "Ready")) == (("False", "NotAttested"), ("True", "Ready"))
    assert "its files or samples have no recorded digest" in cluster.condition("Published")["message"]
    assert cluster.started("publish") == 0


def test_an_image_that_would_be_its_own_source_is_refused() -> None:
    cluster = asking(uri=f"oci://{PLACE}:nightly").cluster()
    source = {"uri": f"oci://{PLACE}:nightly"}
    cluster.edit(source=source)
    with pytest.raises(InvalidSpecError, match=r"publish\.uri would overwrite spec\.source"):
        parse(cluster.body())
    cluster.edit(publish=PUBLISH | {"uri": f"oci://{PLACE}:passed"})
    assert parse(cluster.body()).spec.publish
    cluster.edit(source=source | {"interval": "1h"})
    with pytest.raises(InvalidSpecError, match=r"publish\.uri would overwrite spec\.source"):
        parse(cluster.body())


@pytest.mark.parametrize("serving", [{}, {"mode": "None"}], ids=["served", "gate-only"])
@pytest.mark.parametrize("writes", range(5))
def test_an_operator_that_ends_between_two_writes_publishes_nothing_twice(writes: int, serving: dict[str, Any]) -> None:
    cluster = asking().asking(serving=serving).until_active("publish").cluster()
    while cluster.active("publish"):
        cluster.step()
    one_life(cluster, writes)
    cluster.settle()
    assert state_of(cluster) == ("True", "Published")
    assert cluster.started("publish") == 1
    assert cluster.status["published"]["revision"] == cluster.status["serving"]["revision"]
