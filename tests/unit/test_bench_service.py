"""The Jobs that `bench.service` runs again: the same work at one load, and nothing that makes them the operator's."""

import json
from typing import Any

from bench.service import POD, PROFILE, SERVICE, Figure, again, copies, medians
from tests.states.moments import MOMENTS
from triton_converters.contract.measurement_requests import MeasureRequest, ProfileRequest


def jobs() -> dict[str, dict[str, Any]]:
    """The profile and the measure Job of an object that is Ready."""
    found = [each for each in MOMENTS["ready"].cluster().objects.values() if each["kind"] == "Job"]
    return {job["metadata"]["labels"]["triton-operator.dev/stage"]: job for job in found}


def test_each_way_takes_one_online_measurement_at_the_same_load() -> None:
    ways = copies(jobs(), 4, "10.0.0.7")
    profile = ProfileRequest.from_json(json.dumps(ways[PROFILE][1]))
    service, pod = (MeasureRequest.from_json(json.dumps(ways[way][1])) for way in (SERVICE, POD))
    assert {each.online.concurrencies for each in (profile, service, pod)} == {(4,)}
    assert (profile.offline.batch_sizes, profile.offline.concurrencies) == ((1,), (1,))
    assert service.load.url == "digits-preview:8001"
    assert (pod.load.url, pod.load.http_url) == ("10.0.0.7:8001", "10.0.0.7:8000")


def test_a_job_that_runs_again_has_another_key_and_no_mark_of_the_operator() -> None:
    job, request = copies(jobs(), 4, "10.0.0.7")[SERVICE]
    body = again(job, request, "0123456789abcdef")
    assert json.loads(body["spec"]["template"]["spec"]["containers"][0]["args"][-1])["key"] == "0123456789abcdef"
    assert "triton-operator.dev" not in json.dumps([body["metadata"], body["spec"]["template"]["metadata"]])
    assert "ownerReferences" not in body["metadata"]


def test_the_table_shows_medians() -> None:
    assert medians([Figure(100.0, 900), Figure(120.4, 700), Figure(500.0, 800)]) == ("120", "800")
    assert medians([]) == ("", "")
