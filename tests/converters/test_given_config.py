"""What is taken of a config.pbtxt that a user wrote, and what is refused: real texts, and hostile ones."""

import re
from pathlib import Path

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from tritonclient.grpc import model_config_pb2

from tests.hostile_text import HOSTILE
from triton_converters.contract import overrides
from triton_converters.contract.repository_config import TAKEN
from triton_converters.contract.results import RepositoryModel, Tensor
from triton_converters.model_config.given import RefusedError, read
from triton_operator.api.resolved import FromRepository

IN = 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 3, -1 ] } ]'
OUT = 'output [ { name: "y" data_type: TYPE_STRING dims: [ 1 ] reshape { shape: [ ] } } ]'
SERVED = f"""
# As somebody serves it.
name: "ocr"
platform: "onnxruntime_onnx"
max_batch_size: 8
{IN} {OUT}
instance_group [ {{ name: "all" count: 2 kind: KIND_GPU rate_limiter {{ priority: 2 }} }} ]
dynamic_batching {{
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  default_queue_policy {{ max_queue_size: 10 }}
}}
optimization {{ input_pinned_memory {{ enable: false }} cuda {{ graphs: true }} }}
parameters {{ key: "intra_op_thread_count" value {{ string_value: "2" }} }}
model_warmup [ {{
  name: "w" batch_size: 1 inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: 3 zero_data: true }} }} }} ]
response_cache {{ enable: false }}
version_policy: {{ specific {{ versions: [ 1, 3 ] }} }}
default_model_filename: "ocr.onnx"
"""


def taken(text: str, backend: str = "onnxruntime") -> RepositoryModel:
    """What is taken of a text whose model's file is ``ocr/1/model``."""
    return read(text.encode()).repository_model("ocr/1/model", backend)


@pytest.mark.parametrize("field", ["input", "output"])
def test_a_type_that_no_triton_has_is_refused(field: str) -> None:
    text = re.sub(rf"({field} \[ .*?data_type: )TYPE_\w+", r"\g<1>999", SERVED)
    with pytest.raises(RefusedError, match=f"{field} [xy] is 999: a tensor may be BOOL"):
        read(text.encode())


def test_halves_are_taken_where_the_graph_may_declare_them() -> None:
    text = f'input {{ name: "x" data_type: TYPE_FP16 dims: 1 }} {OUT}'
    model = taken(text)
    assert [each.data_type for each in model.inputs] == ["FP16"]
    with pytest.raises(RefusedError, match=r"input x is FP16: a tensor may be BOOL, .*, FP32, FP64 or STRING"):
        read(f'backend: "pytorch" {text}'.encode())


def test_names_of_parameters_are_quoted_and_bounded() -> None:
    """They stand in a condition of an object that is well."""
    emoji = "2. \u202e" + "\U0001f600" * 100
    names = ["1. THE OPERATOR: is out of date", emoji, *(f"{number}" * 99 for number in "3456789")]
    text = "".join(f'parameters {{ key: "{name}" value {{ string_value: "x" }} }}' for name in names)
    (told,) = taken(text).left_out
    assert told.startswith("parameters '1. THE OPERATOR: is out of date', '2. \\u202e\\U0001f600")
    assert told.endswith("' and 1 more: the backend does not read them")
    assert told.isascii()
    assert len(told) < 1024, "an entry of the status"
    with pytest.raises(RefusedError, match="parameters must not have 'file: give it up': remove them"):
        taken('parameters { key: "file: give it up" value { string_value: "x" } }')


def test_everything_that_a_server_may_be_told_is_taken() -> None:
    config = read(SERVED.encode())
    assert (config.backend, config.file, config.versions) == ("onnxruntime", "ocr.onnx", (1, 3))
    found = config.repository_model("ocr/3/ocr.onnx", "onnxruntime")
    kept = model_config_pb2.ModelConfig()
    text_format.Parse(found.overrides, kept)
    assert found == RepositoryModel(
        file="ocr/3/ocr.onnx",
        max_batch_size=8,
        inputs=(Tensor("x", "FP32", (3, -1)),),
        outputs=(Tensor("y", "BYTES", ()),),
        instances=2,
        dynamic_batching=True,
        preferred_batch_sizes=(4, 8),
        max_queue_delay_microseconds=100,
        cuda_graphs=True,
        parameters={"intra_op_thread_count": "2"},
        overrides=found.overrides,
    )
    assert kept.dynamic_batching.default_queue_policy.max_queue_size == 10
    assert kept.instance_group[0].rate_limiter.priority == 2
    assert kept.optimization.HasField("input_pinned_memory")
    assert not kept.optimization.HasField("cuda")


def test_what_a_minimal_file_leaves_out_is_left_to_the_graph() -> None:
    found = taken('backend: "onnxruntime"')
    assert (found.max_batch_size, found.inputs, found.instances, found.dynamic_batching) == (None, (), None, False)
    assert found.overrides == ""
    assert taken(f"{IN} {OUT}").max_batch_size == 0, "as Triton takes a file that lists inputs"


@pytest.mark.parametrize("delay", ["", "max_queue_delay_microseconds: 100"])
def test_a_batcher_of_a_model_without_batches_is_left_out_as_triton_lets_it_do_nothing(delay: str) -> None:
    found = taken(f"{IN} {OUT} dynamic_batching {{ {delay} }}")
    assert (found.max_batch_size, found.dynamic_batching) == (0, False)
    assert found.left_out == ("dynamic_batching: max_batch_size is 0, so no requests are batched",)


REFUSED = {
    'backend: "python"': "a Python backend is code",
    'platform: "tensorrt_plan"': "give the ONNX file",
    'platform: "ensemble" ensemble_scheduling { step { model_name: "a" } }': "list the models of the ensemble",
    'backend: "../../mine"': "the operator serves onnxruntime, pytorch, tensorflow",
    'backend: "onnxruntime" platform: "pytorch_libtorch"': "backend and platform differ",
    "sequence_batching { }": "the gates send no correlation IDs",
    "response_cache { enable: true }": "a sweep would measure the cache",
    'model_operations { op_library_filename: "a.so" }': "a library is code",
    'cc_model_filenames { key: "7.5" value: "a.onnx" }': "cc_model_filenames",
    'model_repository_agents { agents { name: "a" } }': "an agent is code",
    'runtime: "model.py"': "a program is code",
    "model_transaction_policy { decoupled: true }": "one answer for each request",
    "instance_group { count: 1 } instance_group { count: 1 }": "several instance groups",
    "instance_group { count: 65 }": "instance_group.count must be at most 64",
    "instance_group { kind: KIND_MODEL }": "KIND_MODEL is not supported",
    'default_model_filename: "../model.onnx"': "must be a plain name",
    'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/mnt/x" } }': "EXECUTION_ENV_PATH",
    'parameters { key: "intra_op_thread_count" value { string_value: "/mnt/x" } }': "must be a number, a flag or a",
    f"{IN}": "lists inputs or outputs alone",
    f"{IN} {IN} {OUT}": "names an input twice",
    f"input {{ data_type: TYPE_FP32 dims: 1 }} {OUT}": "the name of an input",
    f'input {{ name: "x" data_type: TYPE_BF16 dims: 1 }} {OUT}': "input x is BF16: a tensor may be BOOL",
    f'input {{ name: "x" dims: 1 }} {OUT}': "input x is INVALID: a tensor may be BOOL",
    f'input {{ name: "x" data_type: TYPE_FP32 dims: 0 }} {OUT}': "dims of input x",
    f'input {{ name: "x" data_type: TYPE_FP32 dims: 4 reshape {{ shape: [ 2, 2 ] }} }} {OUT}': "input.reshape of x is",
    f'input {{ name: "x" data_type: TYPE_FP32 dims: 4 allow_ragged_batch: true }} {OUT}': "ragged",
    f'input {{ name: "x" data_type: TYPE_FP32 dims: 4 optional: true }} {OUT}': "send every input",
    f"{IN} {OUT} dynamic_batching {{ preserve_ordering: true }}": "dynamic_batching needs a max_batch_size",
    "max_batch_size: 65537": "max_batch_size must be",
    "max_batch_size: -1": "max_batch_size must be",
    "max_batch_size: 4 dynamic_batching { preferred_batch_size: 8 }": "preferred_batch_size",
    "dynamic_batching { max_queue_delay_microseconds: 60000001 }": "max_queue_delay_microseconds",
    "dynamic_batching { default_queue_policy { default_timeout_microseconds: 9999999999 } }": "at most 9 digits",
    "a_field_of_a_later_triton: 1": "no config.pbtxt that this version knows",
    "name: {": "no config.pbtxt that this version knows",
    "#" * 70_000: "longer than",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:50])
def test_everything_else_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(RefusedError) as caught:
        taken(text)
    assert REFUSED[text] in str(caught.value)


def test_all_that_is_refused_is_named_at_once() -> None:
    with pytest.raises(RefusedError) as caught:
        taken('backend: "python" sequence_batching { oldest { } } model_operations { }')
    for name in ("backend 'python'", "sequence_batching", "model_operations"):
        assert f"{name} is not supported" in str(caught.value)


def test_faults_of_values_are_named_with_those_of_fields() -> None:
    text = f"""
    {IN} output {{ name: "y" data_type: TYPE_BF16 dims: 4 }} response_cache {{ enable: true }}
    backend: "onnxruntime" parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "x" }} }}
    instance_group {{ count: 65 }} instance_group {{ }} dynamic_batching {{ max_queue_delay_microseconds: 60000001
      default_queue_policy {{ default_timeout_microseconds: 9999999999 }} }}
    """
    with pytest.raises(RefusedError) as caught:
        taken(text)
    for words in (
        "output y is BF16",
        "the cache",
        "EXECUTION_ENV_PATH",
        "several instance",
        "at most 64",
        "at most 60000",
    ):
        assert words in str(caught.value)
    assert len(str(caught.value).split("; ")) >= 8


def test_a_torchscript_file_needs_names() -> None:
    with pytest.raises(RefusedError, match="does not name its tensors"):
        taken('backend: "pytorch"', "pytorch")


def test_every_field_of_triton_is_taken_or_refused_by_name() -> None:
    """A field that nobody thought of is refused: this list only says which ones are thought of."""
    fields = {each.name for each in model_config_pb2.ModelConfig.DESCRIPTOR.fields}
    known = {each.partition(".")[0] for each in (*TAKEN, *overrides.ALLOWED)}
    assert known <= fields


def checked(text: bytes) -> None:
    """Nothing but a refusal in printable words, or what a spec could say too."""
    words = ""
    try:
        found = read(text).repository_model("ocr/1/model.onnx", "onnxruntime")
        overrides.checked(found.overrides)
        FromRepository.of(RepositoryModel.from_json(found.to_json()))
    except RefusedError as refused:
        words = str(refused)
    assert len(words) < 4000
    assert not words or words.isprintable()


@given(st.binary(max_size=300))
@settings(max_examples=300)
def test_any_bytes_are_refused_or_harmless(text: bytes) -> None:
    checked(text)
    checked(f'backend: "{HOSTILE}"'.encode())
    checked(b'backend: "onnxruntime" ' + text)


NAMES = sorted({each.name for each in model_config_pb2.ModelConfig.DESCRIPTOR.fields})
WORDS = [
    *"{}[]:,<",
    '"x"',
    '"../a.so"',
    "-1",
    "9999999999999999999",
    "1e309",
    "true",
    "KIND_GPU",
    "TYPE_FP32",
    "key",
    "value",
    "dims",
]


@given(st.lists(st.sampled_from([*NAMES, *WORDS]), max_size=40))
@settings(max_examples=500)
def test_any_words_of_a_configuration_are_refused_or_harmless(words: list[str]) -> None:
    checked(" ".join(words).encode())


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(RefusedError):
        taken("optimization { " * 5000)


def test_the_page_names_what_is_refused() -> None:
    page = (Path(__file__).parents[2] / "docs/formats.md").read_text()
    for name in ("sequence_batching", "response_cache", "model_operations", "cc_model_filenames", "label_filename"):
        assert f"`{name}`" in page
