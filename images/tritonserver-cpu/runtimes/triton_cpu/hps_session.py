"""Lookups in embedding tables, in the flattened form of NVIDIA's hps_backend (release 23.09, hps.cc).

A request holds KEYS, int64 [1, n]: all keys of the first table, then all of the second, and so on; and NUMKEYS, int32
[1, tables]: how many keys each table has in it. OUTPUT0 is float32 of one dimension: the vectors in the keys' order.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from triton_cpu.batch import Array, Arrays
from triton_cpu.command_line import backend_setting
from triton_cpu.config import Config, ModelError, Tensor
from triton_cpu.parameter_server import Parameters, read_parameters, read_tables
from triton_cpu.session import Log, RunError

KEYS, NUMKEYS, OUTPUT = "KEYS", "NUMKEYS", "OUTPUT0"
INPUTS = {KEYS: "TYPE_INT64", NUMKEYS: "TYPE_INT32"}


class HpsSession:
    """The tables of one model instance."""

    def __init__(self, config: Config, log_warning: Log) -> None:
        """Read the tables that the server's --backend-config=hps,ps=FILE names. Raises ModelError."""
        check(config)
        file = backend_setting("hps", "ps")
        if file is None:
            raise ModelError(
                f"unable to load model '{config.name}', the server has no --backend-config=hps,ps=FILE, the Parameter"
                " Server json configuration file"
            )
        self._parameters = read_parameters(Path(file), config.name)
        check_instances(config, self._parameters)
        if self._parameters.gpu_cache:
            log_warning(f"model '{config.name}': gpucache is for GPUs and ignored on this CPU")
        self._tables = read_tables(self._parameters)
        self._output = config.outputs[0].name

    def run(self, inputs: Arrays) -> Mapping[str, Array]:
        """Look all keys of one request up. Raises RunError."""
        keys, counts = inputs[KEYS].reshape(-1), inputs[NUMKEYS]
        check_request(keys, counts, self._parameters)
        ends = np.cumsum(counts[0])
        parts = [
            table.lookup(keys[end - count : end]).reshape(-1)
            for table, count, end in zip(self._tables, counts[0], ends, strict=True)
        ]
        return {self._output: parts[0] if len(parts) == 1 else np.concatenate(parts)}


def check(config: Config) -> None:
    """What NVIDIA's backend wants of config.pbtxt (model_state.cpp, ValidateModelConfig). Raises ModelError."""
    if len(config.inputs) != len(INPUTS):
        raise ModelError(f"expect {len(INPUTS)} input, got {len(config.inputs)}")
    for tensor in config.inputs:
        if tensor.name not in INPUTS:
            raise ModelError(f"expected input name as KEYS and NUMKEYS, but got {tensor.name}")
        if tensor.data_type != INPUTS[tensor.name]:
            raise ModelError(f"expected {tensor.name} input datatype as {INPUTS[tensor.name]}, got {tensor.data_type}")
        _check_dims(tensor, "input")
    if len(config.outputs) != 1:
        raise ModelError(f"expect 1 output, got {len(config.outputs)}")
    output = config.outputs[0]
    if output.data_type != "TYPE_FP32":
        raise ModelError(f"expected output datatype as TYPE_FP32, got {output.data_type}")
    _check_dims(output, "output")


def check_instances(config: Config, parameters: Parameters) -> None:
    """Every instance needs a worker's buffer. Raises ModelError."""
    if config.instances > parameters.workers:
        raise ModelError(
            f"model '{config.name}' has {config.instances} instances, more than num_of_worker_buffer_in_pool"
            f" ({parameters.workers}) in the Parameter Server json file"
        )


def check_request(keys: Array, counts: Array, parameters: Parameters) -> None:
    """Shapes and numbers of one request; raises RunError.

    NVIDIA's backend reads beyond its buffers where these do not hold, but for the number of samples.
    """
    tables = len(parameters.sparse_files)
    if counts.ndim != 2 or counts.shape[0] != 1 or counts.shape[1] != tables:
        raise RunError(f"NUMKEYS has shape {list(counts.shape)}, not [1, {tables}]: the number of tables", True)
    if (counts < 0).any() or int(counts.sum()) != keys.size:
        raise RunError(f"NUMKEYS asks for {counts[0].tolist()} keys, KEYS holds {keys.size}", True)
    if keys.size > parameters.max_batch_size * parameters.max_samples_keys:
        raise RunError(
            f"The number of Input samples greater than max batch size: {keys.size} keys, at most"
            f" {parameters.max_batch_size} samples of {parameters.max_samples_keys}",
            True,
        )


def _check_dims(tensor: Tensor, kind: str) -> None:
    if not tensor.dims or tensor.dims[0] != -1:
        raise ModelError(f"expected {kind} shape equal -1, got {list(tensor.dims)}")
