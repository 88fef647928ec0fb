"""What is profiled is what serves: the profile Job's sidecar is the serving container but for a printed list."""

from typing import Any

from tests.states.moments import MOMENTS
from tests.states.passes import planned

DIFFERENCES = {
    "image": "its digest, which the kubelet reported of the sidecar",
    "args": "only our own client reaches it, on loopback; so no interface is closed, and no connection is renewed",
    "env": "the key of the closed interfaces",
    "restartPolicy": "a native sidecar: it starts before the client and ends with it",
    "ports": "nobody else connects to it",
    "readinessProbe": "no Service points to it",
    "livenessProbe": "the Job's deadline ends what hangs",
    "lifecycle": "nobody's requests are drained",
}
"""Fields of a container that only one of the two has, and why."""


def containers() -> tuple[dict[str, Any], dict[str, Any], list[Any], list[Any]]:
    """Sidecar and serving container of one revision, and their pods' volumes."""
    profile = next(
        each for each in planned("profiling").objects if each["metadata"]["name"].startswith("digits-profile")
    )
    pod = profile["spec"]["template"]["spec"]
    _, sidecar, _ = pod["initContainers"]
    revision = repository(sidecar)
    for case in MOMENTS:
        for each in planned(case).objects:
            if each["kind"] == "Deployment":
                server = each["spec"]["template"]["spec"]
                if repository(server["containers"][0]) == revision:
                    return sidecar, server["containers"][0], pod["volumes"], server["volumes"]
    raise AssertionError(f"no case serves the revision that is profiled: {revision}")


def repository(container: dict[str, Any]) -> str:
    """The argument that names the revision's model repository."""
    return next(str(each) for each in container["args"] if each.startswith("--model-repository="))


def test_the_sidecar_is_the_serving_container_but_for_a_list() -> None:
    sidecar, serving, _, _ = containers()
    different = {field for field in sidecar.keys() | serving.keys() if sidecar.get(field) != serving.get(field)}
    for field in sorted(different):
        print(f"{field}: {DIFFERENCES[field]}")
    assert different == set(DIFFERENCES)


def test_both_see_the_same_shared_memory_and_a_repository_they_cannot_write_to() -> None:
    sidecar, serving, profiled, served = containers()
    assert [each for each in profiled if each["name"] == "dshm"] == [each for each in served if each["name"] == "dshm"]
    for container in (sidecar, serving):
        mount = next(each for each in container["volumeMounts"] if each["name"] == "repository")
        assert mount["readOnly"] is True
