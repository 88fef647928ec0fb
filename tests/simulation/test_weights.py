"""Weights apart from the code: a Job of their own, and what they change."""

from dataclasses import replace
from typing import Any

from tests.simulation.answers import GOOD, Script, when
from tests.simulation.cluster import SETTINGS, Cluster
from tests.simulation.deployments import a_model, a_spec
from tests.simulation.made_jobs import WEB, jobs, request, sha256
from tests.states.deployment import a_deployment
from triton_converters.contract.reasons import Reason

Body = dict[str, Any]
CODE, WEIGHTS = "configmap://digits", "s3://models/digits/v3"


def weighed(**weights: Any) -> Cluster:
    spec = a_spec(
        source={"uri": CODE},
        weights={"uri": WEIGHTS} | weights,
        models=[a_model(arguments={"checkpoint": "$(WEIGHTS)/model.pt"})],
    )
    return Cluster(spec, settings=replace(SETTINGS, sources_egress=(WEB,)))


def test_code_and_weights_are_read_side_by_side_and_only_the_download_is_let_out() -> None:
    cluster = weighed(secretRef={"name": "bucket"})
    cluster.act()
    assert sorted(request(each)["uri"] for each in jobs(cluster, "source")) == [CODE, WEIGHTS]
    assert [request(each)["uri"] for each in jobs(cluster, "source") if "bucket" in str(each)] == [WEIGHTS]
    assert "digits-sources" in {each["metadata"]["name"] for each in cluster.of_kind("NetworkPolicy")}
    out = [each for each in jobs(cluster, "source") if "triton-operator.dev/downloads" in each["metadata"]["labels"]]
    assert [request(each)["uri"] for each in out] == [WEIGHTS]


def test_the_condition_names_both() -> None:
    cluster = weighed()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    message = cluster.condition("SourceResolved")["message"]
    assert (
        f"{CODE} is published as sha256:{sha256(CODE)}; {WEIGHTS} is published as sha256:{sha256(WEIGHTS)}" in message
    )


def test_only_the_users_code_reads_them_and_only_reads() -> None:
    cluster = weighed()
    cluster.settle()
    mount = {
        "name": "repository",
        "mountPath": "/weights",
        "subPath": f".triton-operator/sources/{sha256(WEIGHTS)}",
        "readOnly": True,
    }
    stages = ("reference", "convert", "metrics")
    for stage in stages:
        for job in jobs(cluster, stage):
            containers = [*job["spec"]["initContainers"], *job["spec"]["containers"]]
            assert [each["name"] for each in containers if mount in each["volumeMounts"]] == ["run"]
            assert request(job)["weights"] == sha256(WEIGHTS)
    assert '"checkpoint":"/weights/model.pt"' in jobs(cluster, "reference")[0]["spec"]["containers"][0]["args"][-1]
    for stage in ("source", "profile", "measure"):
        assert "/weights" not in str([each["spec"] for each in jobs(cluster, stage)])
    assert "/weights" not in str(cluster.of_kind("Deployment"))


def test_other_weights_are_converted_and_the_same_ones_are_not() -> None:
    cluster = weighed()
    cluster.settle()
    references, conversions = cluster.started("reference"), cluster.started("convert")
    first = cluster.serving()
    cluster.edit(weights={"uri": WEIGHTS, "version": "2026-11-23"})
    cluster.settle()
    assert (cluster.started("reference"), cluster.started("convert")) == (references, conversions)
    assert cluster.serving() == first
    cluster.edit(weights={"uri": "s3://models/digits/v4"})
    cluster.settle()
    assert (cluster.started("reference"), cluster.started("convert")) == (references + 1, 2 * conversions)
    assert cluster.serving() != first


def test_the_same_uri_is_read_once() -> None:
    cluster = a_deployment().asking(source={"uri": CODE}, weights={"uri": CODE}).serving().cluster()
    assert cluster.started("source") == 1
    assert request(jobs(cluster, "reference")[0])["weights"] == sha256(CODE)


def test_a_job_is_told_its_field_and_what_it_says_is_not_changed() -> None:
    cluster = weighed()
    denied = Script(exit_code=42, reason=Reason.SOURCE_ACCESS_DENIED, message="s3://spec.source answered 403")
    cluster.scripts = lambda stage, name, asked: (
        denied if stage == "source" and (asked.uri, asked.field) == (WEIGHTS, "spec.weights") else GOOD
    )
    cluster.until_has("SourceAccessDenied", "Stalled")
    stalled = cluster.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "SourceAccessDenied")
    assert "s3://spec.source answered 403" in stalled["message"]
    assert cluster.started("source") == 2
    cluster.scripts = lambda stage, name, asked: GOOD
    cluster.retry()
    cluster.settle()
    assert cluster.condition("Ready")["status"] == "True"
    assert cluster.started("source") == 3


def test_slower_weights_are_compared_with_the_last_ones() -> None:
    cluster = weighed()
    cluster.settle()
    cluster.scripts = when("measure", Script(speed=0.8))
    cluster.edit(weights={"uri": "s3://models/digits/v4"}, performance={"regression": {"maxPercent": 10}})
    cluster.settle()
    measured = cluster.condition("PerformanceMeasured")
    assert measured["reason"] == "PerformanceRegressed"
    assert f"the previously served source sha256:{sha256(WEIGHTS)[:12]}" in measured["message"]
