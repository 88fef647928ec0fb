"""What a server of a published image answers to the image's samples."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array, read_batches
from triton_converters.contract.measurement_requests import Load, Measurement
from triton_converters.contract.predicate import Predicate
from triton_converters.measuring.server import Server

READY_SECONDS = 600.0
"""How long a server may take to load PyTorch on a busy machine."""
Answers = Sequence[Mapping[str, Array]]


def answers(ports: Sequence[int], predicate: Predicate, samples: Path) -> Answers:
    """Send the samples to the server at these ports, HTTP and gRPC, in requests as large as it takes."""
    http, grpc = (f"127.0.0.1:{each}" for each in ports[:2])
    load = Load(grpc, "grpc", http, (), Measurement("CountWindows", 1, 0, 0))
    server = Server(load, predicate.revision.model, [each.name for each in predicate.revision.models])
    server.wait_ready(READY_SECONDS)
    most = predicate.gates.signature.max_batch_size
    names = tuple(each.name for each in predicate.gates.signature.outputs)
    found = []
    for batch in read_batches(samples):
        steps = range(0, len(batch.ids), most) if most else (0,)
        for start in steps:
            rows = slice(start, start + most) if most else slice(None)
            inputs = {name: array[rows] if most else array for name, array in batch.inputs.items()}
            found.append(server.infer(inputs, names))
    return found


def difference(one: Answers, other: Answers) -> str:
    """How two answers to the same requests differ; empty: not in a bit."""
    assert len(one) == len(other) > 0
    worst = 0.0
    for ours, theirs in zip(one, other, strict=True):
        for name, array in ours.items():
            if array.dtype != theirs[name].dtype or array.shape != theirs[name].shape:
                return f"{name} has another type or shape"
            if array.dtype.kind not in "fc":
                if not numpy.array_equal(array, theirs[name]):
                    return f"{name} has other values"
            elif array.tobytes() != theirs[name].tobytes():
                worst = max(worst, float(numpy.abs(array - theirs[name]).max()))
    return f"by at most {worst:g}" if worst else ""


def values(found: Answers) -> int:
    """How many values they have."""
    return sum(array.size for each in found for array in each.values())
