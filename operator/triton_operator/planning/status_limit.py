"""Keeps a status under its size limit, however much users' code and the cluster have to say. Pure.

An object in etcd may have 1.5 MiB, but every watcher gets the whole status with each change. What is left out here is
not lost: the results ConfigMap holds each Job's whole result, and the Job's log each message.
"""

from collections.abc import Callable
from typing import Any

from triton_converters.contract.text import shortened
from triton_operator.api.status import CandidateStatus, TritonDeploymentStatus

LIMIT_BYTES = 32 * 1024
"""The largest status, in bytes of JSON: the statuses of 1,000 objects are 32 MiB for every watcher then."""
Reduction = Callable[[TritonDeploymentStatus], TritonDeploymentStatus]
"""What leaves out a part of a status."""


def within_limit(status: TritonDeploymentStatus) -> TritonDeploymentStatus:
    """Return the status. If it is too large, its least useful parts are left out one by one until it fits."""
    steps = (
        _of_each("candidates", lambda each: _with_metrics(each, 3)),
        *(_of_each(field, _with_message(160)) for field in ("candidates", "search", "conditions")),
        _with_tensors(16),
        _of_each("candidates", lambda each: _with_metrics(each, 0)),
        _of_each("candidates", _with_message(40)),
        _with_tensors(0),
        _of_each("conditions", _with_message(80)),
    )
    for step in steps:
        if size(status) <= LIMIT_BYTES:
            break
        status = step(status)
    return status


def size(status: TritonDeploymentStatus) -> int:
    """The size in bytes of the status as the API server gets it."""
    return len(status.model_dump_json(by_alias=True, exclude_none=True, exclude_defaults=True).encode())


def _of_each(field: str, change: Callable[[Any], Any]) -> Reduction:
    """Return what changes all elements of a field."""
    return lambda status: status.model_copy(update={field: [change(each) for each in getattr(status, field)]})


def _with_message(length: int) -> Callable[[Any], Any]:
    """Return what cuts the message of a candidate, a search or a condition."""
    return lambda each: each.model_copy(update={"message": shortened(each.message, length)})


def _with_metrics(candidate: CandidateStatus, most: int) -> CandidateStatus:
    metrics = candidate.metrics[:most]
    omitted = (candidate.omitted_metrics or 0) + len(candidate.metrics) - len(metrics)
    return candidate.model_copy(update={"metrics": metrics, "omitted_metrics": omitted or None})


def _with_tensors(most: int) -> Reduction:
    """Return what leaves out all but the first ``most`` inputs and outputs of a signature, and counts the rest."""

    def change(status: TritonDeploymentStatus) -> TritonDeploymentStatus:
        if (signature := status.signature) is None:
            return status
        inputs, outputs = signature.inputs[:most], signature.outputs[:most]
        omitted = (signature.omitted or 0) + len(signature.inputs) - len(inputs) + len(signature.outputs) - len(outputs)
        shorter = signature.model_copy(update={"inputs": inputs, "outputs": outputs, "omitted": omitted or None})
        return status.model_copy(update={"signature": shorter})

    return change
