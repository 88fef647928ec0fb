"""The engine without a cluster follows each field of a pod that the operator makes, or has a reason not to."""

from collections.abc import Iterator
from typing import Any

from tests.conformance.collected import of_golden_cases

CONTAINERS = ("initContainers[]", "containers[]")
OPEN = ("limits", "matchLabels", "nodeSelector")
"""Objects whose keys are not fields."""
FOLLOWED = {
    *("activeDeadlineSeconds", "terminationGracePeriodSeconds", "securityContext.runAsUser"),
    *("volumes[].name", "volumes[].configMap.name", "volumes[].emptyDir.medium"),
    "volumes[].secret.secretName",
    *("volumes[].persistentVolumeClaim.claimName", "volumes[].persistentVolumeClaim.readOnly"),
    *(
        f"container.{each}"
        for each in (
            *("name", "image", "command[]", "args[]", "workingDir", "restartPolicy", "terminationMessagePolicy"),
            *("env[].name", "env[].value", "env[].valueFrom.fieldRef.fieldPath", "resources.limits"),
            *("ports[].containerPort", "ports[].name"),
            *(f"volumeMounts[].{field}" for field in ("mountPath", "name", "readOnly", "subPath")),
            *("startupProbe.exec.command[]", "startupProbe.failureThreshold"),
            *("startupProbe.periodSeconds", "startupProbe.timeoutSeconds"),
            *(
                f"livenessProbe.{field}"
                for field in ("httpGet.path", "httpGet.port", "periodSeconds", "timeoutSeconds")
            ),
            *(f"readinessProbe.{field}" for field in ("httpGet.path", "httpGet.port", "periodSeconds")),
        )
    ),
}
"""What local/triton_local/kubelet.py, probes.py and volumes.py read."""
ALWAYS = {
    "restartPolicy": "a Job's pod never starts again, and a Deployment's always does",
    "automountServiceAccountToken": "there are no tokens",
    "enableServiceLinks": "there are no variables for Services",
    "securityContext.runAsGroup": "a user namespace has one group",
    "securityContext.runAsNonRoot": "no container is the machine's root",
    "securityContext.seccompProfile.type": "the box always has RuntimeDefault's filter",
    "container.imagePullPolicy": "images are there, by their digests",
    "container.securityContext.allowPrivilegeEscalation": "no container may",
    "container.securityContext.capabilities.drop[]": "no container has any",
    "container.securityContext.readOnlyRootFilesystem": "every root is read-only",
}
"""What every pod has, whether its spec says so or not."""
WITHOUT_EFFECT = {
    **dict.fromkeys(
        (
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].labelSelector.matchLabels",
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[].topologyKey",
            *("nodeSelector", "runtimeClassName"),
            *("tolerations[].effect", "tolerations[].key", "tolerations[].operator"),
        ),
        "all runs on one machine",
    ),
    "securityContext.fsGroup": "all files are the user's",
    "volumes[].secret.defaultMode": "all files are the user's",
    "securityContext.fsGroupChangePolicy": "all files are the user's",
    "volumes[].emptyDir.sizeLimit": "nothing bounds what a program writes: docs/check.md",
    "container.lifecycle.preStop.sleep.seconds": "no traffic comes that could come late",
}


def fields(value: Any, place: str = "") -> Iterator[str]:
    """Yield the path of each field; containers of both kinds are one."""
    if isinstance(value, dict) and place.rpartition(".")[2] not in OPEN:
        for name, each in value.items():
            yield from fields(each, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list):
        for each in value:
            yield from fields(each, "container" if f"{place}[]" in CONTAINERS else f"{place}[]")
    else:
        yield place


def test_no_field_of_a_pod_is_unknown_to_the_engine_without_a_cluster() -> None:
    found = {path for body in of_golden_cases() for path in fields(body["spec"]["template"]["spec"])}
    assert found == FOLLOWED | ALWAYS.keys() | WITHOUT_EFFECT.keys()
