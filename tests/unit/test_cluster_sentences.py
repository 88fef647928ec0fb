"""What the user reads of sentences of the scheduler, the kubelet and admission: theirs first, then what to do.

The sentences are those of Kubernetes 1.27 to 1.34, from public reports.
"""

from typing import Any

import pytest

from tests.states.pods import a_job, a_pod
from triton_converters.contract.reasons import Reason
from triton_operator.observed.job import job_view
from triton_operator.observed.pod import pod_view
from triton_operator.observed.trouble import Trouble, pod_trouble

Body = dict[str, Any]
RESOURCES = (
    "spec.conversion.pod.resources and spec.serving.pod.resources, or for all objects the Helm values jobs.resources"
    " and servers.resources"
)
NO_VICTIMS = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."

SCHEDULER = {
    "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.": "Request less, or add a node that has it.",
    "0/3 nodes are available: 1 Insufficient memory, 2 node(s) didn't match Pod's node affinity/selector.": (
        "Request less, or add a node that has it."
    ),
    f"0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. {NO_VICTIMS}": (
        "Check spec.gpu.product and the pod's nodeSelector and affinity against the nodes' labels."
    ),
    "0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 node(s) had"
    " volume node affinity conflict.": (
        "The volume of a claim is tied to a zone or a node, and no node there takes the pod: make room or remove what"
        " else keeps it off there, or use a claim that all nodes reach."
    ),
    "0/2 nodes are available: 1 Insufficient memory, 1 node(s) didn't match pod affinity rules. preemption: 0/2 nodes"
    " are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.": (
        "An object's pods stay on one node unless its claim is ReadWriteMany, so another node does not help: request"
        " less, make room on that node and let it take pods, or use such a claim. If the pod has its own podAffinity,"
        " check that too."
    ),
    '0/1 nodes are available: persistentvolumeclaim "digits-repository" is being deleted. preemption: not eligible due'
    " to preemptionPolicy=Never.": (
        "The claim goes with the last pod that has it. The operator makes its own claim anew; make any other one anew"
        " then."
    ),
    '0/1 nodes are available: persistentvolumeclaim "models" not found. preemption: not eligible due to'
    " preemptionPolicy=Never.": "Create the claim or correct its name; the pod then starts by itself.",
    "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found": (
        "A claim has no volume yet; to see what its storage waits for, type: kubectl describe persistentvolumeclaims"
    ),
    "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.": (
        "No volume fits a claim: correct its StorageClass, size and access modes, or add such a PersistentVolume."
    ),
    "0/1 nodes are available: 1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access"
    " mode.": "One pod at a time can have such a claim: use one with ReadWriteOnce or ReadWriteMany.",
    "0/2 nodes are available: 2 node(s) exceed max volume count.": (
        "Those nodes have as many volumes as they may: add a node, or move pods with volumes away."
    ),
    "0/2 nodes are available: 2 Too many pods.": "Those nodes run as many pods as they may: end some, or add a node.",
    "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules.": (
        "A podAntiAffinity keeps the pod off those nodes: relax it, or add a node."
    ),
    "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints.": (
        "Set whenUnsatisfiable of the pod's topologySpreadConstraints to ScheduleAnyway, or add a node where they ask"
        " for one."
    ),
    "0/1 nodes are available: 1 node(s) had untolerated taint {sku: gpu}.": (
        "If the pod may run there, add the taint to its tolerations; else add a node."
    ),
    "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.": (
        "The cluster keeps pods off a node that is not well; to see what it lacks, type: kubectl describe nodes"
    ),
    "0/1 nodes are available: 1 node(s) were unschedulable.": (
        "Those nodes take no new pods; to let one take them again, type: kubectl uncordon NODE"
    ),
}
"""The scheduler's sentences, and what the user reads after each."""


@pytest.mark.parametrize("words", SCHEDULER)
def test_the_schedulers_sentence_and_what_to_do(words: str) -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    trouble = pod_trouble(pod_view(a_pod(conditions=[condition])), [])
    assert trouble is not None
    assert (trouble.reason, trouble.message) == (
        Reason.UNSCHEDULABLE,
        f"pod p cannot be scheduled: {words} {SCHEDULER[words]}",
    )


ADMISSION = {
    'pods "digits-source-x" is forbidden: maximum memory usage per Container is 4Gi, but limit is 16Gi': (
        Reason.POD_REFUSED,
        f"a LimitRange of the namespace bounds what its pods use: raise that, or stay within it by {RESOURCES}",
    ),
    'Pod "digits-source-x" is invalid: spec.containers[0].resources.requests: Invalid value: "2": must be'
    " less than or equal to cpu limit of 500m": (
        Reason.POD_REFUSED,
        "a LimitRange of the namespace, or a webhook, gives containers a lower limit than the pod requests: set the"
        f" limit too, in {RESOURCES}",
    ),
    'pods "digits-source-x" is forbidden: exceeded quota: team, requested: limits.memory=16Gi, used:'
    " limits.memory=0, limited: limits.memory=8Gi": (
        Reason.POD_REFUSED,
        f"one pod asks for more than the whole quota: raise that, or change {RESOURCES}",
    ),
    'pods "digits-source-x" is forbidden: exceeded quota: team, requested: limits.memory=16Gi, used:'
    " limits.memory=20Gi, limited: limits.memory=32Gi": (
        Reason.APPLY_REFUSED,
        "it goes on once the quota has that much left: wait until other pods have ended, raise the quota, or request"
        f" less by {RESOURCES}",
    ),
    'pods "digits-source-x" is forbidden: failed quota: team: must specify requests.cpu for: source': (
        Reason.POD_REFUSED,
        f"the quota takes only pods that say what they use: set that in {RESOURCES}",
    ),
    'pods "digits-source-x" is forbidden: no PriorityClass with name urgent was found': (
        Reason.POD_REFUSED,
        "create the PriorityClass, or correct priorityClassName in spec.pod, spec.conversion.pod and spec.serving.pod",
    ),
    'pods "digits-source-x" is forbidden: pod rejected: RuntimeClass "nvidia" not found': (
        Reason.POD_REFUSED,
        "create the RuntimeClass, or correct runtimeClassName in spec.pod, spec.conversion.pod and spec.serving.pod,"
        " and the Helm value userCode.runtimeClassName",
    ),
    'pods "digits-source-x" is forbidden: error looking up service account vision/models: serviceaccount'
    ' "models" not found': (
        Reason.POD_REFUSED,
        "create the ServiceAccount, or correct its name in spec.source, spec.weights or spec.dataset",
    ),
    'pods "digits-source-x" is forbidden: violates PodSecurity "restricted:latest": unrestricted'
    ' capabilities (container "istio-init" must not include "NET_ADMIN", "NET_RAW" in'
    " securityContext.capabilities.add)": (
        Reason.POD_REFUSED,
        "the operator's own containers meet the standard `restricted`: if a webhook adds what is named here, keep it"
        " out of these pods by labels or annotations in spec.pod",
    ),
    'admission webhook "validate.kyverno.svc-fail" denied the request: resource Pod/vision/x was blocked'
    " due to the following policies: require-labels": (
        Reason.POD_REFUSED,
        "do what the policy asks for, such as by labels in spec.pod, or have it let these pods pass",
    ),
    'Internal error occurred: failed calling webhook "validate.kyverno.svc-fail": Post'
    ' "https://kyverno-svc.kyverno.svc:443/validate": dial tcp 10.96.1.2:443: connect: connection refused': (
        Reason.APPLY_REFUSED,
        "",
    ),
}
"""The API server's sentences about a pod that the Job controller makes, and the reason and what the user reads."""


@pytest.mark.parametrize("sentence", ADMISSION)
def test_the_sentence_of_admission_and_what_to_do(sentence: str) -> None:
    words = f"Error creating: {sentence}"
    event = {"kind": "Event", "involvedObject": {"uid": "job-1"}, "reason": "FailedCreate", "message": words}
    reason, advice = ADMISSION[sentence]
    message = f"Job digits-convert-1 gets no pod: {words}{'; ' if advice else ''}{advice}"
    assert job_view(a_job(), [], [event]).pending == Trouble(reason, message)


PULL = 'failed to pull and unpack image "example/torch:1": failed to resolve reference "example/torch:1": '
KUBELET = {
    ("ErrImagePull", PULL + "pull access denied, repository does not exist or may require authorization"): (
        "check the image's name, the registry and imagePullSecrets"
    ),
    ("ErrImagePull", PULL + "tls: failed to verify certificate: x509: certificate signed by unknown authority"): (
        "let the node trust the authority of the registry's certificate"
    ),
    ("ErrImagePull", PULL + "no match for platform in manifest: not found"): (
        "use an image for the node's architecture, or choose nodes of the image's"
    ),
    ("ErrImagePull", PULL + "write /var/lib/containerd/ingest/1/data: no space left on device"): (
        "free disk space on the node"
    ),
    ("CreateContainerConfigError", "couldn't find key password in Secret vision/hub"): "correct what the message names",
    (
        "RunContainerError",
        'failed to create containerd task: runc create failed: exec: "python3": executable file not found in $PATH',
    ): "use an image that has this program",
    ("FailedMount", 'MountVolume.SetUp failed for volume "data" : configmap "digits" not found'): (
        "create or correct what is missing"
    ),
    ("FailedMount", 'MountVolume.SetUp failed for volume "pv-1" : mount failed: exit status 32'): (
        "look at the node and at the volume's server; the kubelet tries again"
    ),
    (
        "FailedAttachVolume",
        'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) digits-0a1b-x',
    ): "the volume comes once no pod has it on another node; if one stays there, look at that node",
    (
        "FailedCreatePodSandBox",
        'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "1":'
        ' plugin type="calico" failed (add): Unauthorized',
    ): "the node's network or container runtime fails: look at its pods and at the kubelet's log",
    (
        "FailedCreatePodSandBox",
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for"
        ' "nvidia" is configured',
    ): "configure the RuntimeClass's handler on the node, or change runtimeClassName in the spec",
}
"""The kubelet's reasons and sentences, and what the user reads after each."""


@pytest.mark.parametrize(("reason", "words"), KUBELET)
def test_the_kubelets_sentence_and_what_to_do(reason: str, words: str) -> None:
    is_event = reason.startswith("Failed")
    state = {"reason": "ContainerCreating"} if is_event else {"reason": reason, "message": words}
    event = {"kind": "Event", "involvedObject": {"uid": "pod-1"}, "reason": reason, "message": words}
    pod = pod_view(a_pod(containerStatuses=[{"name": "convert", "state": {"waiting": state}}]))
    trouble = pod_trouble(pod, [event])
    where = "pod p" if is_event else "pod p, container convert"
    assert trouble is not None
    assert trouble.message == f"{where}: {words}; {KUBELET[reason, words]}"
