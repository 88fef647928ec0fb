"""What becomes of the fields of a config.pbtxt that the user wrote. Standard library only.

The source Job judges a model's file by these tables, and the plugin a whole repository before anything is pushed.
"""

from collections.abc import Iterator
from typing import Any

from triton_converters.contract import overrides
from triton_converters.contract.formats import PYTORCH
from triton_converters.contract.model_repository import PYTHON_BACKEND

LONGEST = 64 * 1024
"""The limit of the file, in bytes."""
BACKENDS = {
    "onnxruntime": "onnxruntime",
    "onnxruntime_onnx": "onnxruntime",
    PYTORCH: PYTORCH,
    "pytorch_libtorch": PYTORCH,
    "tensorflow": "tensorflow",
    "tensorflow_savedmodel": "tensorflow",
}
"""Backends by their names in `backend` and `platform`."""
OTHER_BACKENDS = {
    "python": PYTHON_BACKEND,
    "tensorrt": "a TensorRT engine has no reference, because only the TensorRT that built it runs it: give the ONNX"
    " file that it was built from, and list a candidate of format trt",
    "ensemble": "list the models of the ensemble in spec.models, and connect them in spec.ensemble, as"
    " `kubectl triton init` writes it",
    "tensorflow_graphdef": "save the graph as a SavedModel",
    "fil": "convert the trees to ONNX with onnxmltools or skl2onnx, compare that graph with their own predict,"
    " and set backend onnxruntime",
    "dali": "do what the pipeline does in a step in Python, or in the client",
}
"""What to do instead of a backend that is not served."""
OTHER_BACKENDS["tensorrt_plan"] = OTHER_BACKENDS["tensorrt"]
TAKEN = frozenset(
    (
        *("name", "platform", "backend", "default_model_filename", "max_batch_size", "parameters", "input", "output"),
        *("version_policy.latest", "version_policy.latest.num_versions", "version_policy.all"),
        *("version_policy", "version_policy.specific", "version_policy.specific.versions"),
        *(f"{side}.{field}" for side in ("input", "output") for field in ("name", "data_type", "dims", "reshape")),
        *("input.format", "instance_group.count", "instance_group.kind", "instance_group.name"),
        *("dynamic_batching.preferred_batch_size", "dynamic_batching.max_queue_delay_microseconds"),
        *("optimization.cuda.graphs", "model_warmup"),
        # Only a message that sets nothing has this path.
        *("response_cache", "model_transaction_policy"),
    )
)
"""The fields that are taken, besides those of ``contract.overrides``, and those that change nothing here: the object
says the model's name, `spec.gpu` the kind of instances, and the operator writes a warm-up of its own."""
WHOLE = frozenset({"model_warmup", "input.reshape", "output.reshape"})
"""Messages that are taken, or judged, whole."""
LEFT_OUT = {
    "output.label_filename": "no file with labels is served, and answers hold numbers",
    "optimization.execution_accelerators": "to try one, list a candidate with the accelerator in models[].candidates",
    "instance_group.gpus": "spec.gpu says how many GPUs the server has, and it uses all of them",
    "metric_tags": "metrics have the labels that the operator needs",
}
"""Fields that are left out with a notice, because what is served without them answers the same."""
UNBATCHED = "max_batch_size is 0, so no requests are batched"
"""Why a dynamic batcher is left out."""
REFUSED = {
    "ensemble_scheduling": OTHER_BACKENDS["ensemble"],
    "sequence_batching": "the gates send no correlation IDs",
    "response_cache": "a sweep would measure the cache",
    "model_operations": "it names libraries, and a library is code",
    "model_repository_agents": "an agent is code",
    "cc_model_filenames": "every GPU gets the same file",
    "runtime": "it names a program, and a program is code",
    "input.allow_ragged_batch": "ragged batches cannot be compared with the reference",
    "batch_input": "ragged batches cannot be compared with the reference",
    "batch_output": "ragged batches cannot be compared with the reference",
    "input.optional": "the reference and the sweeps send every input",
    "instance_group.secondary_devices": "spec.gpu says how many GPUs the server has, and it uses all of them",
    "model_transaction_policy": "the gates expect one answer for each request",
}
"""Why, or what to do instead, by field; a longer path counts as its beginning."""


def paths(message: Any, above: str = "") -> Iterator[str]:
    """Yield the path of each field of Triton's message that is set, and of each message within it that sets nothing.

    A map is one field.
    """
    for field, value in message.ListFields():
        path = f"{above}{field.name}"
        messages = [] if path in WHOLE else overrides.messages_of(field, value)
        for each in messages:
            yield from paths(each, f"{path}.") if each.ListFields() else [path]
        if not messages:
            yield path
