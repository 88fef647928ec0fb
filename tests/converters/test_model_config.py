"""config.pbtxt, held against files that were read by a person and by Triton's own parser."""

from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf import json_format, text_format
from hypothesis import given
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2

from triton_converters.contract.conversion_requests import ModelConfig
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.overrides import ALLOWED, checked
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor, Tuning
from triton_converters.model_config.model import Execution, render, retuned, warmup_file

GOLDEN = Path(__file__).parent / "golden"
IMAGE = Signature((Tensor("INPUT__0", "FP32", (3, 224, 224)),), (Tensor("OUTPUT__0", "FP32", (1000,)),), 128)
MIXED = Signature(
    (Tensor("tokens", "INT64", (-1,)), Tensor("user/id", "INT32", ())),
    (Tensor("scores", "FP32", (-1, 4)), Tensor("class", "INT64", ())),
    8,
)
UNBATCHED = Signature((Tensor("x", "FP32", (-1, 3)), Tensor("flag", "BOOL", ())), (Tensor("y", "FP32", (-1,)),), 0)


def execution(format_name: str, accelerator: str = "none", cache: str = "") -> Execution:
    return Execution(format_name, accelerator, 2**30, cache)


def configuration(**changes: object) -> ModelConfig:
    defaults: dict[str, object] = {
        "instances": 1,
        "instance_group_kind": "KIND_GPU",
        "dynamic_batching": False,
        "preferred_batch_sizes": (),
        "max_queue_delay_microseconds": 0,
        "cuda_graphs": False,
        "warmup": True,
        "parameters": {},
    }
    return ModelConfig(**(defaults | changes))


OVERRIDES = """
dynamic_batching { priority_levels: 2 default_priority_level: 1
  priority_queue_policy { key: 2 value { max_queue_size: 8 } } }
instance_group { rate_limiter { resources { name: "R1" count: 2 } priority: 2 } }
optimization { priority: PRIORITY_MAX cuda { busy_wait_events: true } input_pinned_memory { enable: false } }
"""
CASES: dict[str, tuple[Signature, ModelConfig, Execution, dict[str, tuple[int, ...]]]] = {
    "onnx-trt-fp16": (
        IMAGE,
        configuration(
            instances=2,
            dynamic_batching=True,
            preferred_batch_sizes=(64, 128),
            max_queue_delay_microseconds=1,
            cuda_graphs=True,
            parameters={"enable_mem_arena": "0"},
        ),
        execution("onnx", "trt", "/repository/caches/NVIDIA-A40/10.13.3/1234"),
        {"INPUT__0": (3, 224, 224)},
    ),
    "onnx-cuda-fp32": (IMAGE, configuration(dynamic_batching=True), execution("onnx", "cuda"), {}),
    "ts-script-fp16": (
        MIXED,
        configuration(parameters={"INFERENCE_MODE": "true"}),
        execution("ts-script", "none"),
        {"tokens": (17,), "user/id": ()},
    ),
    "ts-trace-cpu": (IMAGE, configuration(instance_group_kind="KIND_AUTO"), execution("ts-trace", "none"), {}),
    "trt-fp16": (
        IMAGE,
        configuration(dynamic_batching=True, preferred_batch_sizes=(64, 128), max_queue_delay_microseconds=1),
        execution("trt", "cuda"),
        {},
    ),
    "tf-savedmodel-amp": (IMAGE, configuration(instances=2), execution("tf-savedmodel", "amp"), {}),
    "onnx-overrides": (
        IMAGE,
        configuration(dynamic_batching=True, max_queue_delay_microseconds=100, overrides=OVERRIDES),
        execution("onnx", "trt"),
        {},
    ),
    "onnx-unbatched": (
        UNBATCHED,
        configuration(instance_group_kind="KIND_CPU"),
        execution("onnx", "none"),
        {"x": (5, 3), "flag": ()},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_config_is_the_golden_one(name: str) -> None:
    signature, config, candidate, shapes = CASES[name]
    assert render(signature, config, candidate, shapes) == (GOLDEN / f"{name}.pbtxt").read_text()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.pbtxt")), ids=lambda path: path.stem)
def test_golden_files_are_cases_and_parse(path: Path) -> None:
    assert path.stem in CASES
    text_format.Parse(path.read_text(), model_config_pb2.ModelConfig())


@pytest.mark.parametrize("format_name", FORMATS)
def test_accelerators_are_those_that_the_backend_knows(format_name: str) -> None:
    """The field that Triton's own parser reads; TorchScript, engines and SavedModels run on the GPU without it."""
    backend_s = {
        "onnxruntime": {"cuda": ["cuda"], "trt": ["tensorrt"]},
        "tensorflow": {"amp": ["auto_mixed_precision"]},
    }
    for accelerator in FORMATS[format_name].accelerators:
        text = render(IMAGE, configuration(), execution(format_name, accelerator), {})
        read = text_format.Parse(text, model_config_pb2.ModelConfig())
        expected = backend_s.get(FORMATS[format_name].backend, {}).get(accelerator, [])
        found = read.optimization.execution_accelerators.gpu_execution_accelerator
        assert [each.name for each in found] == expected
        assert read.HasField("optimization") is bool(expected)


def test_without_a_cache_tensorrt_inside_onnx_runtime_keeps_nothing() -> None:
    text = render(IMAGE, configuration(), execution("onnx", "trt"), {})
    assert "trt_engine_cache" not in text


def test_tensorrt_inside_onnx_runtime_takes_the_types_from_the_graph() -> None:
    """A precision_mode makes TensorRT's network weakly typed, though the graph is cast already."""
    text = render(IMAGE, configuration(), execution("onnx", "trt"), {})
    read = text_format.Parse(text, model_config_pb2.ModelConfig())
    (accelerator,) = read.optimization.execution_accelerators.gpu_execution_accelerator
    assert set(accelerator.parameters) == {"max_workspace_size_bytes"}


dims = st.lists(st.integers(1, 9) | st.just(-1), max_size=4).map(tuple)
tensors = st.builds(
    Tensor, st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,20}", fullmatch=True), st.sampled_from(["FP32", "INT8"]), dims
)


@given(
    inputs=st.lists(tensors, min_size=1, max_size=4, unique_by=lambda tensor: tensor.name),
    outputs=st.lists(tensors, min_size=1, max_size=4, unique_by=lambda tensor: tensor.name),
    max_batch_size=st.integers(0, 300),
    parameters=st.dictionaries(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"))),
)
def test_what_is_printed_is_what_triton_reads(
    inputs: list[Tensor], outputs: list[Tensor], max_batch_size: int, parameters: dict[str, str]
) -> None:
    signature = Signature(tuple(inputs), tuple(outputs), max_batch_size)
    shapes = {tensor.name: tuple(abs(dim) for dim in tensor.dims) for tensor in inputs}
    text = render(signature, configuration(parameters=parameters), execution("onnx", "none"), shapes)
    read = text_format.Parse(text, model_config_pb2.ModelConfig())
    assert [(each.name, tuple(each.dims)) for each in read.input] == [(t.name, t.served_dims) for t in inputs]
    assert [each.HasField("reshape") for each in read.output] == [t.dims == () for t in outputs]
    assert {name: value.string_value for name, value in read.parameters.items()} == parameters
    assert {each.batch_size for each in read.model_warmup} == {1, max(1, max_batch_size)}
    for warmup in read.model_warmup:
        assert {name: tuple(value.dims) for name, value in warmup.inputs.items()} == {
            name: shape or (1,) for name, shape in shapes.items()
        }


@pytest.mark.parametrize(("largest", "sizes"), [(0, [1]), (1, [1]), (2, [1, 2]), (8, [1, 2, 8])])
@pytest.mark.parametrize("format_name", ["ts-trace", "ts-script"])
def test_torchscript_is_warmed_up_until_pytorch_has_optimized(format_name: str, largest: int, sizes: list[int]) -> None:
    """In the second and third call of each of two shapes, and of a third one for all others."""
    signature = replace(IMAGE, max_batch_size=largest)
    text = render(signature, configuration(), execution(format_name), {"INPUT__0": (3, 224, 224)})
    read = text_format.Parse(text, model_config_pb2.ModelConfig())
    assert [(each.batch_size, each.count) for each in read.model_warmup] == [(size, 3) for size in sizes]


@pytest.mark.parametrize("kind", ["KIND_CPU", "KIND_AUTO"])
def test_without_a_gpu_torchscript_is_warmed_up_once(kind: str) -> None:
    made = configuration(instance_group_kind=kind)
    text = render(IMAGE, made, execution("ts-trace"), {"INPUT__0": (3, 224, 224)})
    read = text_format.Parse(text, model_config_pb2.ModelConfig())
    assert [(each.batch_size, each.count) for each in read.model_warmup] == [(1, 0), (IMAGE.max_batch_size, 0)]


@pytest.mark.parametrize("format_name", [name for name, each in FORMATS.items() if each.backend != "pytorch"])
def test_other_backends_are_warmed_up_once(format_name: str) -> None:
    text = render(IMAGE, configuration(), execution(format_name), {"INPUT__0": (3, 224, 224)})
    assert "count" not in text.partition("model_warmup")[2]


def test_a_search_warms_up_an_older_file_as_it_would_be_served_now() -> None:
    signature, config, candidate, shapes = CASES["ts-script-fp16"]
    older = render(signature, config, candidate, shapes).replace("count: 3\n", "")
    tuning = Tuning(8, 1, False, (), 0, False)
    loaded = json_format.Parse(retuned(older, tuning), model_config_pb2.ModelConfig())
    assert [(each.batch_size, each.count) for each in loaded.model_warmup] == [(1, 3), (2, 3), (8, 3)]


@pytest.mark.parametrize(("cpus", "threads"), [(0, "4"), (4, "2"), (1, "1")])
def test_a_search_divides_the_cpus_among_the_instances_that_it_tries(cpus: int, threads: str) -> None:
    config = replace(configuration(), parameters={"intra_op_thread_count": "4"})
    text = render(IMAGE, config, execution("onnx"), {})
    loaded = json_format.Parse(retuned(text, Tuning(8, 2, False, (), 0, False), cpus), model_config_pb2.ModelConfig())
    assert loaded.parameters["intra_op_thread_count"].string_value == threads


@pytest.mark.parametrize("name", [".", "..", "文" * 60, "a/" * 114, "字" * 240, "x"])
def test_a_warm_up_file_can_be_written_whatever_its_tensor_is_called(name: str, tmp_path: Path) -> None:
    (tmp_path / warmup_file(name)).write_bytes(b"sample")
    assert [each.name for each in tmp_path.iterdir()] == [warmup_file(name)]


def test_warm_up_files_of_long_names_are_apart() -> None:
    assert len({warmup_file(each) for each in (".", "..", "文" * 60, "文" * 61)}) == 4


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_.:/-]{0,127}", fullmatch=True))
def test_warm_up_files_are_plain_names(name: str) -> None:
    assert "/" not in warmup_file(name)
    assert warmup_file(name) not in (".", "..")


@given(
    st.sampled_from(sorted(CASES)),
    st.builds(
        Tuning,
        max_batch_size=st.sampled_from([1, 2, 4, 8]),
        instances=st.integers(1, 5),
        dynamic_batching=st.booleans(),
        preferred_batch_sizes=st.sampled_from([(), (1, 2)]),
        max_queue_delay_microseconds=st.sampled_from([0, 100, 5000]),
        cuda_graphs=st.booleans(),
    ),
)
def test_what_a_search_loads_is_what_would_be_served(case: str, tuning: Tuning) -> None:
    signature, config, execution_, shapes = CASES[case]
    if not signature.max_batch_size:
        tuning = replace(tuning, max_batch_size=0, dynamic_batching=False)
    loaded = json_format.Parse(
        retuned(render(signature, config, execution_, shapes), tuning), model_config_pb2.ModelConfig()
    )
    served = replace(
        config,
        max_batch_size=tuning.max_batch_size,
        instances=tuning.instances,
        dynamic_batching=tuning.dynamic_batching,
        preferred_batch_sizes=tuning.preferred_batch_sizes,
        max_queue_delay_microseconds=tuning.max_queue_delay_microseconds,
        cuda_graphs=tuning.cuda_graphs,
    )
    expected = text_format.Parse(render(signature, served, execution_, shapes), model_config_pb2.ModelConfig())
    # Without graphs, render leaves out a message that says so.
    if not loaded.optimization.cuda.ListFields():
        loaded.optimization.ClearField("cuda")
        if not loaded.optimization.ListFields():
            loaded.ClearField("optimization")
    assert loaded == expected


def overridden(text: str, **changes: object) -> model_config_pb2.ModelConfig:
    config = configuration(overrides=text, **changes)
    return text_format.Parse(render(IMAGE, config, execution("onnx", "trt"), {}), model_config_pb2.ModelConfig())


def test_overrides_are_merged_and_the_operators_own_settings_stay() -> None:
    found = overridden(OVERRIDES, instances=3, dynamic_batching=True, preferred_batch_sizes=(4,), cuda_graphs=True)
    (group,) = found.instance_group
    assert (group.count, group.rate_limiter.priority, group.rate_limiter.resources[0].name) == (3, 2, "R1")
    assert found.dynamic_batching.preferred_batch_size == [4]
    assert found.dynamic_batching.priority_queue_policy[2].max_queue_size == 8
    assert found.optimization.cuda.graphs
    assert found.optimization.cuda.busy_wait_events
    assert found.optimization.HasField("input_pinned_memory"), "an absent message would leave pinned memory on"
    assert found.optimization.execution_accelerators.gpu_execution_accelerator[0].name == "tensorrt"


def test_settings_of_a_batcher_make_none() -> None:
    assert not overridden("dynamic_batching { preserve_ordering: true }").HasField("dynamic_batching")


@given(st.sets(st.sampled_from(sorted(ALLOWED)), min_size=1), st.data())
def test_what_the_check_takes_triton_reads_and_takes(paths: set[str], data: st.DataObject) -> None:
    messages: dict[str, object] = {}
    for path in sorted(paths):
        *above, name = path.split(".")
        place = messages
        for each in above:
            place = place.setdefault(each, {})
        place[name] = data.draw(st.from_regex(ALLOWED[path].pattern, fullmatch=True))
    text = written(messages)
    checked(text)
    overridden(text, dynamic_batching=True)


def written(message: dict[str, object]) -> str:
    return " ".join(
        f"{name} {{ {written(value)} }}" if isinstance(value, dict) else f"{name}: {value}"
        for name, value in message.items()
    )


@pytest.mark.parametrize(
    "text",
    [
        "response_cache { enable: true }",
        'instance_group { host_policy: "x" }',
        "optimization { cuda { graphs: true } }",
        "{",
    ],
)
def test_the_job_takes_nothing_that_the_operator_should_have_refused(text: str) -> None:
    with pytest.raises(StageError) as refused:
        overridden(text)
    assert refused.value.reason is Reason.INVALID_SPEC
    assert "config.overrides" in refused.value.message
