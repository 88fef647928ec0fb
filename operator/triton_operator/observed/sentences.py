"""Reads the sentences of the scheduler, the kubelet and the API server. Pure.

Their reasons do not tell what is missing; only their messages do, and no other module reads those. tritonserver's
sentences are read in `refusal`.
"""

import re

from triton_operator.names import INCOMING

_INSUFFICIENT = re.compile(r"Insufficient ([\w./-]*\w)")
_QUOTA = re.compile(r"requests\.([\w./-]+)=")
_HINTS = (
    ("Insufficient", " Request less, or add a node that has it."),
    ("persistentvolumeclaim", " Create the claim or correct its name; the pod then starts by itself."),
    *(
        (phrase, " Check spec.gpu.product and the pod's nodeSelector and affinity against the nodes' labels.")
        for phrase in ("node selector", "affinity")
    ),
)
"""What the scheduler says if it finds no node, and what to do; the first that it says counts."""


def lacking_resources(message: str) -> frozenset[str]:
    """Return the resources that the scheduler, or the API server for a quota, says it has too few of."""
    requested = message.partition("exceeded quota:")[2].partition("requested:")[2].partition(", used:")[0]
    return frozenset(_INSUFFICIENT.findall(message)) | frozenset(_QUOTA.findall(requested))


def hint(message: str) -> str:
    """Return what to do about a pod for which the scheduler found no node, as the end of a message; it may be empty."""
    return next((advice for phrase, advice in _HINTS if phrase in message), "")


def lacks_directory(message: str) -> bool:
    """Whether the kubelet found a directory missing on a read-only volume. On another one it makes it."""
    return "failed to create subPath directory" in message


def is_of_incoming(message: str) -> bool:
    """Whether the kubelet names the volume that user code writes to."""
    return f'"{INCOMING}"' in message
