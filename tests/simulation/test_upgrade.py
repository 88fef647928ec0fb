"""A newer operator: what it would write otherwise changes nothing that is done or serves."""

from copy import deepcopy
from dataclasses import replace

import pytest

from tests.simulation.cluster import Cluster
from triton_operator.resources import pod


def test_newer_default_images_roll_nothing_out(serving: Cluster) -> None:
    story = list(serving.story)
    serving.settings = replace(serving.settings, converter_image="example/converter:2", server_image="example/server:2")
    assert serving.act() == 0
    serving.settle()
    assert serving.story == story


def test_what_serves_keeps_its_pods_where_the_operator_writes_others(
    serving: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template of every pod is another one: Jobs that ended and the server stay as they are."""
    story, before = list(serving.story), {key: body["metadata"]["uid"] for key, body in serving.objects.items()}
    monkeypatch.setattr(pod, "USER", 2000)
    monkeypatch.setitem(pod.POD_SECURITY, "runAsUser", 2000)
    assert serving.act() == 0
    serving.settle()
    assert serving.story == story
    assert {key: body["metadata"]["uid"] for key, body in serving.objects.items()} == before


def test_a_server_that_is_deleted_is_made_as_the_newer_operator_writes_it(
    serving: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(pod.POD_SECURITY, "runAsUser", 2000)
    server = serving.serving() or ""
    serving.delete("Deployment", server)
    serving.settle()
    template = serving.objects["Deployment", server]["spec"]["template"]
    assert template["spec"]["securityContext"]["runAsUser"] == 2000


def test_an_edited_template_is_wanted_as_it_was_made(serving: Cluster) -> None:
    name = serving.serving() or ""
    server = serving.objects["Deployment", name]
    made = deepcopy(server["spec"]["template"])
    server["spec"]["template"]["spec"]["containers"][0]["args"][2] = "--edited"
    (wanted,) = [each for each in serving.intent().objects if each["metadata"]["name"] == name]
    assert wanted["spec"]["template"] == made
