"""Reads the sentences of the scheduler, the kubelet and the API server. Pure.

Their reasons do not tell what is missing; only their messages do, and no other module reads those. tritonserver's
sentences are read in `refusal`.
"""

import re
from collections.abc import Iterable

from triton_converters.contract.reasons import Reason
from triton_operator.names import INCOMING

_INSUFFICIENT = re.compile(r"Insufficient ([\w./-]*\w)")
_QUOTA = re.compile(r"requests\.([\w./-]+)=")
_RESOURCES = (
    "spec.conversion.pod.resources and spec.serving.pod.resources, or for all objects the Helm values jobs.resources"
    " and servers.resources"
)
_SCHEDULER = (
    (
        "is being deleted",
        "The claim goes with the last pod that has it. The operator makes its own claim anew; make any other one anew"
        " then.",
    ),
    ("non-existent", "The claim's volume is gone: restore it, or make the claim anew."),
    (
        r"persistentvolumeclaim \S+ not found",
        "Create the claim or correct its name; the pod then starts by itself.",
    ),
    (
        "unbound immediate PersistentVolumeClaims|binding volumes",
        "A claim has no volume yet; to see what its storage waits for, type: kubectl describe persistentvolumeclaims",
    ),
    (
        "persistent volumes to bind",
        "No volume fits a claim: correct its StorageClass, size and access modes, or add such a PersistentVolume.",
    ),
    (
        "enough free storage",
        "The storage of those nodes has too little room for a claim: free some, or ask for less in"
        " spec.repository.volumeClaimTemplate.",
    ),
    ("ReadWriteOncePod", "One pod at a time can have such a claim: use one with ReadWriteOnce or ReadWriteMany."),
    (
        "volume node affinity",
        "The volume of a claim is tied to a zone or a node, and no node there takes the pod: make room or remove what"
        " else keeps it off there, or use a claim that all nodes reach.",
    ),
    (
        "match pod affinity",
        "An object's pods stay on one node unless its claim is ReadWriteMany, so another node does not help: request"
        " less, make room on that node and let it take pods, or use such a claim. If the pod has its own podAffinity,"
        " check that too.",
    ),
    ("anti-affinity", "A podAntiAffinity keeps the pod off those nodes: relax it, or add a node."),
    (
        "topology spread",
        "Set whenUnsatisfiable of the pod's topologySpreadConstraints to ScheduleAnyway, or add a node where they ask"
        " for one.",
    ),
    ("max volume count", "Those nodes have as many volumes as they may: add a node, or move pods with volumes away."),
    ("Insufficient", "Request less, or add a node that has it."),
    ("Too many pods", "Those nodes run as many pods as they may: end some, or add a node."),
    (
        "node selector|node affinity",
        "Check spec.gpu.product and the pod's nodeSelector and affinity against the nodes' labels.",
    ),
    (
        r"taint \{node\.kubernetes\.io/(?!unschedulable)",
        "The cluster keeps pods off a node that is not well; to see what it lacks, type: kubectl describe nodes",
    ),
    (
        r"taint \{(?!node\.kubernetes\.io/)",
        "If the pod may run there, add the taint to its tolerations; else add a node.",
    ),
    ("unschedulable", "Those nodes take no new pods; to let one take them again, type: kubectl uncordon NODE"),
    ("no nodes available", "The cluster has no node: add one."),
)
"""What the scheduler says if it finds no node, and what to do: the first that it says counts. A claim comes before
what another node would help with."""
_ADMISSION = (
    (
        r"exceeded quota: .*used: \S*=0,",
        f"one pod asks for more than the whole quota: raise that, or change {_RESOURCES}",
    ),
    (
        r"(minimum|maximum) \S+ usage per|limit to request ratio per",
        f"a LimitRange of the namespace bounds what its pods use: raise that, or stay within it by {_RESOURCES}",
    ),
    ("failed quota: .*must specify", f"the quota takes only pods that say what they use: set that in {_RESOURCES}"),
    (
        "must be less than or equal to",
        "a LimitRange of the namespace, or a webhook, gives containers a lower limit than the pod requests: set the"
        f" limit too, in {_RESOURCES}",
    ),
    (
        "no PriorityClass",
        "create the PriorityClass, or correct priorityClassName in spec.pod, spec.conversion.pod and spec.serving.pod",
    ),
    (
        r"RuntimeClass \S+ not found",
        "create the RuntimeClass, or correct runtimeClassName in spec.pod, spec.conversion.pod and spec.serving.pod,"
        " and the Helm value userCode.runtimeClassName",
    ),
    (
        "error looking up service account",
        "create the ServiceAccount, or correct its name in spec.source, spec.weights or spec.dataset",
    ),
    (
        "violates PodSecurity",
        "the operator's own containers meet the standard `restricted`: if a webhook adds what is named here, keep it"
        " out of these pods by labels or annotations in spec.pod",
    ),
    (
        "denied (the )?request",
        "do what the policy asks for, such as by labels in spec.pod, or have it let these pods pass",
    ),
)
"""What admission says of a pod that it refuses whenever it is asked, and what to do."""
_FULL = (
    (
        "exceeded quota",
        "it goes on once the quota has that much left: wait until other pods have ended, raise the quota, or request"
        f" less by {_RESOURCES}",
    ),
)
"""What admission says of a pod that it may let in later, and what to do."""
_KUBELET = (
    ("Multi-Attach", "the volume comes once no pod has it on another node; if one stays there, look at that node"),
    (
        r"no runtime for|RuntimeHandler",
        "configure the RuntimeClass's handler on the node, or change runtimeClassName in the spec",
    ),
    ("sandbox", "the node's network or container runtime fails: look at its pods and at the kubelet's log"),
    ("x509:", "let the node trust the authority of the registry's certificate"),
    ("no space left on device", "free disk space on the node"),
    ("no match for platform", "use an image for the node's architecture, or choose nodes of the image's"),
    ("executable file not found", "use an image that has this program"),
    ("nvidia-container-cli|nvml error", "look at the node's NVIDIA driver"),
    (
        "(attach|[Mm]ount).*(timed out|[Dd]eadline|exit status)",
        "look at the node and at the volume's server; the kubelet tries again",
    ),
)
"""What the kubelet says of what it tried in vain, and what to do, where that is not to correct a name."""


def lacking_resources(message: str) -> frozenset[str]:
    """Return the resources that the scheduler, or the API server for a quota, says it has too few of."""
    requested = message.partition("exceeded quota:")[2].partition("requested:")[2].partition(", used:")[0]
    return frozenset(_INSUFFICIENT.findall(message)) | frozenset(_QUOTA.findall(requested))


def hint(message: str) -> str:
    """Return what to do about a pod for which the scheduler found no node, as the end of a message; it may be empty."""
    advice = _first(_SCHEDULER, message)
    return f" {advice}" if advice else ""


def kubelet_advice(message: str, otherwise: str) -> str:
    """Return what to do about what the kubelet tried in vain. ``otherwise``: the advice where nothing else is true."""
    return _first(_KUBELET, message) or otherwise


def refused_pod(message: str) -> tuple[Reason, str]:
    """Return the reason of a pod that admission refused, and what to do, which may be empty.

    The reason is PodRefused if no time helps.
    """
    advice = _first(_ADMISSION, message)
    return (Reason.POD_REFUSED, advice) if advice else (Reason.APPLY_REFUSED, _first(_FULL, message))


def _first(table: Iterable[tuple[str, str]], message: str) -> str:
    return next((advice for words, advice in table if re.search(words, message)), "")


def lacks_directory(message: str) -> bool:
    """Whether the kubelet found a directory missing on a read-only volume. On another one it makes it."""
    return "failed to create subPath directory" in message


def is_of_incoming(message: str) -> bool:
    """Whether the kubelet names the volume that user code writes to."""
    return f'"{INCOMING}"' in message
