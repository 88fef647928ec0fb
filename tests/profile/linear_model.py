"""A model in NumPy with two outputs of one shape and a class number, to be served in process or as ONNX."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.results import Signature, Tensor

FEATURES = 6
CLASSES = 4
MAX_BATCH_SIZE = 8
SIGNATURE = Signature(
    inputs=(Tensor("FEATURES", "FP32", (FEATURES,)),),
    outputs=(
        Tensor("LOGITS", "FP32", (CLASSES,)),
        Tensor("SCALED", "FP32", (CLASSES,)),
        Tensor("CLASS", "INT64", (1,)),
    ),
    max_batch_size=MAX_BATCH_SIZE,
)


def weights() -> Array:
    return numpy.random.default_rng(5).normal(size=(FEATURES, CLASSES)).astype(numpy.float32)


@dataclass
class Linear:
    """Answers a request; keeps the sizes it saw."""

    weights: Array = field(default_factory=weights)
    sizes: list[int] = field(default_factory=list)

    def __call__(self, inputs: Arrays, outputs: tuple[str, ...] = ()) -> dict[str, Array]:
        x = inputs["FEATURES"]
        self.sizes.append(len(x))
        logits = (x @ self.weights).astype(numpy.float32)
        return {"LOGITS": logits, "SCALED": logits * 3 + 1, "CLASS": logits.argmax(axis=1, keepdims=True)}


def batches(samples: int = 40, size: int = 6) -> Iterator[Batch]:
    """The reference, in batches of a size that no request has."""
    x = numpy.random.default_rng(7).normal(size=(samples, FEATURES)).astype(numpy.float32)
    for start in range(0, samples, size):
        rows = x[start : start + size]
        answer = Linear()({"FEATURES": rows})
        ids = numpy.arange(start, start + len(rows))
        yield Batch(ids, {"FEATURES": rows}, {"LABEL": answer["CLASS"][:, 0]}, answer)


Mutant = Callable[[Arrays, dict[str, Array]], dict[str, Array]]


def mutated(change: Mutant) -> Callable[[Arrays, tuple[str, ...]], dict[str, Array]]:
    """The model with its answers changed."""
    model = Linear()
    return lambda inputs, outputs: change(inputs, model(inputs))
