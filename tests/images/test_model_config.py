import json
from pathlib import Path
from typing import Any

import pytest
from triton_cpu import cores
from triton_cpu.config import Config, ModelError, parse


def arguments(**config: Any) -> dict[str, str]:
    """What the server hands over, in the form it prints a configuration."""
    whole = {"max_batch_size": 8, "default_model_filename": "model.onnx", **config}
    return {
        "model_config": json.dumps(whole),
        "model_name": "m",
        "model_version": "3",
        "model_repository": "/models/m",
        "model_instance_kind": "CPU",
        "model_instance_device_id": "0",
    }


def with_parameters(**parameters: str) -> Config:
    return parse(arguments(parameters={key: {"string_value": value} for key, value in parameters.items()}))


def test_parse() -> None:
    config = parse(
        arguments(
            input=[{"name": "x", "data_type": "TYPE_FP32", "dims": ["-1", 4], "allow_ragged_batch": False}],
            output=[{"name": "y", "data_type": "TYPE_INT64", "dims": [1], "reshape": {"shape": []}}],
            instance_group=[{"count": 2}, {"count": 1}],
            optimization={
                "graph": {"level": 2},
                "execution_accelerators": {"gpu_execution_accelerator": [{"name": "tensorrt"}]},
            },
        )
    )
    assert config.file == Path("/models/m/3/model.onnx")
    assert [tensor.dims for tensor in config.inputs] == [(-1, 4)]
    assert [tensor.dims for tensor in config.outputs] == [()]
    assert (config.instances, config.graph_level, config.gpu_accelerators) == (3, 2, ("tensorrt",))


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"sequence_batching": {"direct": {}}}, "sequence_batching is not supported"),
        ({"batch_input": [{}]}, "batch_input is not supported"),
        ({"model_operations": {"op_library_filename": ["a.so"]}}, "op_library_filename is not supported"),
        ({"input": [{"name": "x", "data_type": "TYPE_FP32", "allow_ragged_batch": True}]}, "ragged input 'x'"),
    ],
)
def test_what_is_not_served_is_refused(part: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parse(arguments(**part))


@pytest.mark.parametrize(
    ("kind", "number", "name"),
    [("GPU", "0", "cuda:0"), ("GPU", "3", "cuda:3"), ("CPU", "0", "cpu"), ("MODEL", "1", "cpu")],
)
def test_an_instance_computes_on_the_gpu_that_the_server_gives_it(kind: str, number: str, name: str) -> None:
    own = {"model_instance_kind": kind, "model_instance_device_id": number}
    assert parse(arguments() | own).device == name


def test_parameters() -> None:
    config = with_parameters(threads="4", enabled="True", disabled="0", wrong="maybe")
    assert (config.integer("threads"), config.integer("absent")) == (4, None)
    assert (config.boolean("enabled"), config.boolean("disabled"), config.boolean("absent")) == (True, False, None)
    for read in (config.integer, config.boolean):
        with pytest.raises(ModelError, match="failed to convert parameter 'wrong' with value 'maybe'"):
            read("wrong")


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({}, None),
    ],
)
def test_cpu_limit_of_the_container(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cores.quota(tmp_path) == quota
    assert cores.available(tmp_path) <= (2 if quota == 1.5 else 1 if quota else 1024)


def test_a_call_of_pytorch_takes_the_threads_of_its_parameters_or_its_share() -> None:
    assert cores.torch_threads(with_parameters(INTRA_OP_THREAD_COUNT="3", NUM_THREADS="5")) == 3
    assert cores.torch_threads(with_parameters(NUM_THREADS="5")) == 5
    assert cores.torch_threads(with_parameters()) == cores.available()


def test_cores_are_shared_among_instances() -> None:
    assert [cores.share(instances, 8) for instances in (1, 2, 3, 16)] == [8, 4, 2, 1]
