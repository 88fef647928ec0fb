"""Every example and every overlay: the API knows all of it, and what the operator makes of it is what is written."""

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2

from examples.asking import Answer, as_jpeg, user_file
from examples.example import FOLDER, apply, drift, find, read, render, train
from examples.line import heading, line
from examples.pipeline import PIPELINES, Pipeline, report_lines
from examples.reduced import reductions
from hack.deploy.command import CommandError, executable
from hack.deploy.command import TargetCluster as Tools
from tests.e2e.test_examples import EXAMPLES, patches
from tests.simulation.answers import GOOD, Script, Scripts
from tests.simulation.cluster import Cluster
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.measurement_requests import ProfileRequest
from triton_converters.contract.results import ReferenceResult, Signature, Tensor
from triton_converters.model_config import model
from triton_converters.model_config.model import Execution
from triton_operator.api.measured_status import AccuracyStatus, PerformanceStatus, StepStatus
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import CandidateStatus, ServingStatus, TritonDeploymentStatus
from triton_plugin.drafting.validation.structural import faults
from triton_plugin.drafting.validation.validate import schema

KUSTOMIZATIONS = sorted({file.parent for file in FOLDER.rglob("kustomization.yaml")})
SIGNATURES = {
    "nnunet-3d": Signature(
        (Tensor("INPUT__0", "FP32", (4, 128, 128, 128)),), (Tensor("OUTPUT__0", "FP32", (4, 128, 128, 128)),), 4
    ),
    "resnet50-pyt": Signature(
        (Tensor("INPUT__0", "FP32", (3, 224, 224)),), (Tensor("OUTPUT__0", "FP32", (1000,)),), 128
    ),
    "fastpitch": Signature(
        (Tensor("INPUT__0", "INT64", (128,)),),
        (
            Tensor("OUTPUT__0", "FP32", (80, -1)),
            Tensor("OUTPUT__1", "INT64", (1,)),
            *(Tensor(f"OUTPUT__{index}", "FP32", (128,)) for index in (2, 3, 4)),
        ),
        8,
    ),
}
"""The signatures of the GPU variants."""
NVIDIAS: dict[str, dict[str, Any]] = {
    "nnunet-3d": {
        "max_batch_size": 4,
        "preferred": [2, 4],
        "instances": 1,
        "offline": (1, 2, 4),
        "online": tuple(range(1, 9)),
        "shared_memory": True,
        "workspace": 4294967296,
        "opset": 12,
        "shape": (),
        "candidates": {
            (form, precision) for form in ("ts-trace", "ts-script", "onnx", "trt") for precision in ("fp32", "fp16")
        },
        "accelerators": {"ts-trace": "cuda", "ts-script": "cuda", "onnx": "cuda", "trt": "none"},
    },
    "resnet50-pyt": {
        "max_batch_size": 128,
        "preferred": [64, 128],
        "instances": 1,
        "offline": (1, 2, 4, 8, 16, 32, 64, 128),
        "online": tuple(range(16, 257, 16)),
        "shared_memory": False,
        "workspace": 1073741824,
        "opset": 11,
        "shape": (),
        "candidates": {("onnx", "fp16")},
        "accelerators": {"onnx": "trt"},
    },
    "fastpitch": {
        "max_batch_size": 8,
        "preferred": [4, 8],
        "instances": 2,
        "offline": (1, 2, 4, 8),
        "online": tuple(range(1, 17)),
        "shared_memory": False,
        "workspace": 512 * 2**20,
        "opset": 12,
        "shape": ("INPUT__0", (128,)),
        "candidates": {
            (form, precision) for form in ("ts-trace", "ts-script", "onnx", "trt") for precision in ("fp32", "fp16")
        },
        "accelerators": {"ts-trace": "cuda", "ts-script": "cuda", "onnx": "cuda", "trt": "none"},
    },
}
"""The parameters of NVIDIA's examples: their tables, or else their commands. All three have a queue delay of 1
microsecond, preferred batch sizes and no CUDA graphs."""


@cache
def spec_of(folder: Path) -> dict[str, Any] | None:
    """The spec of a kustomization's TritonDeployment; None where it has none."""
    found = [each for each in render(folder) if each["kind"] == "TritonDeployment"]
    assert len(found) <= 1
    return found[0]["spec"] if found else None


def answers(folder: Path) -> Scripts:
    """How the Jobs of the kustomization's TritonDeployment fare: well, and its model has the example's signature."""
    signature = SIGNATURES.get(folder.relative_to(FOLDER).parts[0])

    def script(stage: str, candidate: str, request: Any) -> Script:
        if stage != "reference" or signature is None:
            return GOOD
        result = ReferenceResult(signature, 64, 8, 1.0)
        return Script(answer=Outcome("reference", request.key, result).to_json())

    return script


@cache
def requests(folder: Path) -> tuple[Any, ...]:
    """Every Job's request on the way of the kustomization's TritonDeployment to Ready, in the simulation."""
    seen, script = [], answers(folder)

    def watched(stage: str, candidate: str, request: Any) -> Script:
        seen.append(request)
        return script(stage, candidate, request)

    spec = spec_of(folder)
    assert spec is not None
    Cluster(spec, watched).settle(600)
    return tuple(seen)


def converted(folder: Path) -> list[ConvertRequest]:
    return [request for request in requests(folder) if isinstance(request, ConvertRequest)]


def config_of(request: ConvertRequest, signature: Signature) -> Any:
    """config.pbtxt of a request, read with NVIDIA's own message."""
    execution = Execution(request.format, request.accelerator, request.tensorrt.workspace_bytes, "")
    shapes = {tensor.name: tuple(2 if dim == -1 else dim for dim in tensor.dims) for tensor in signature.inputs}
    text = model.render(signature, request.config, execution, shapes)
    return text_format.Parse(text, model_config_pb2.ModelConfig())


@pytest.mark.parametrize("folder", KUSTOMIZATIONS, ids=lambda folder: str(folder.relative_to(FOLDER)))
def test_the_spec_holds_no_field_that_the_api_does_not_know(folder: Path) -> None:
    given = spec_of(folder)
    if given is None:
        assert not (folder / "tritondeployment.yaml").exists(), "a TritonDeployment that the kustomization leaves out"
        return
    assert list(faults(given, schema()["properties"]["spec"], "spec")) == []


@pytest.mark.parametrize("name", NVIDIAS)
@pytest.mark.parametrize("variant", ["", "overlays/gpu"])
def test_every_candidate_is_converted_or_skipped_and_its_config_loads_as_asked(name: str, variant: str) -> None:
    folder = FOLDER / name / variant
    spec = TritonDeploymentSpec.model_validate(spec_of(folder))
    config, asked = spec.models[0].config, {candidate.name for candidate in spec.models[0].candidates}
    made = {request.candidate: request for request in converted(folder)}
    assert made.keys() <= asked
    for request in made.values():
        message = config_of(request, SIGNATURES[name])
        assert message.backend == FORMATS[request.format].backend
        assert [group.count for group in message.instance_group] == [config.instances]
        assert config.dynamic_batching is not None
        assert list(message.dynamic_batching.preferred_batch_size) == config.dynamic_batching.preferred_batch_sizes
        assert message.dynamic_batching.max_queue_delay_microseconds == 1
    needs_gpu = {each.name for each in spec.models[0].candidates if each.format == "trt"}
    assert asked - made.keys() == (set() if variant else needs_gpu)


@pytest.mark.parametrize("folder", KUSTOMIZATIONS, ids=lambda folder: str(folder.relative_to(FOLDER)))
def test_only_a_variant_with_tensorrt_lists_engines_for_a_gpu_and_none_names_an_image_that_nobody_has(
    folder: Path,
) -> None:
    given = spec_of(folder)
    if given is None or "gpu" not in given:
        return
    spec = TritonDeploymentSpec.model_validate(given)
    engines = [each.name for model in spec.models for each in model.candidates if FORMATS[each.format].needs_gpu]
    assert bool(engines) is (folder.name == "gpu-tensorrt")
    assert not spec.conversion.image
    assert not spec.serving.image or spec.serving.image.startswith("nvcr.io/nvidia/tritonserver:")


@pytest.mark.parametrize("name", NVIDIAS)
def test_the_gpu_variant_has_the_settings_of_nvidias_example(name: str) -> None:
    folder, wanted = FOLDER / name / "overlays/gpu-tensorrt", NVIDIAS[name]
    if not folder.exists():
        folder = FOLDER / name / "overlays/gpu"
    made = converted(folder)
    assert {(request.format, request.precision) for request in made} == wanted["candidates"]
    for request in made:
        assert request.accelerator == wanted["accelerators"][request.format]
        # Only a request that they concern has the options of ONNX and TensorRT.
        if request.format in ("onnx", "trt"):
            assert (request.onnx_opset, request.onnx_optimized) == (wanted["opset"], True)
        if "trt" in (request.format, request.accelerator):
            assert request.tensorrt.workspace_bytes == wanted["workspace"]
        message = config_of(request, SIGNATURES[name])
        assert message.max_batch_size == wanted["max_batch_size"]
        assert [group.count for group in message.instance_group] == [wanted["instances"]]
        assert list(message.dynamic_batching.preferred_batch_size) == wanted["preferred"]
        assert message.dynamic_batching.max_queue_delay_microseconds == 1
        assert not message.optimization.cuda.graphs
    profiles = [request for request in requests(folder) if isinstance(request, ProfileRequest)]
    assert len(profiles) == len(made)
    for profile in profiles:
        assert profile.offline.batch_sizes == wanted["offline"]
        assert [sweep.shared_memory for sweep in (profile.offline, profile.online)] == [wanted["shared_memory"]] * 2
        assert profile.online.concurrencies == wanted["online"]
        assert profile.online.batch_sizes == (1,)
        assert [(shape.input, shape.dims) for shape in profile.load.input_shapes] == [wanted["shape"]][
            : len(wanted["shape"])
        ]


def test_an_example_is_found_by_its_name_with_its_jobs_and_images() -> None:
    examples = {example.namespace: example for example in find()}
    assert {"digits", *NVIDIAS} <= examples.keys()
    assert "digits-gpu" not in examples
    assert examples["digits"].jobs == ("digits-train",)
    assert examples["resnet50-pyt"].images == ("digits-trainer",)
    assert examples["nnunet-3d"].images == ("converter",)
    assert examples["resnet50-tf"].images == ("converter-tensorflow", "digits-trainer")


class Rendering(Tools):
    """Renders what would be applied."""

    def run(self, *argv: str, **_: Any) -> str:
        assert argv[:3] == ("kubectl", "apply", "--kustomize")
        argv = (executable("kubectl"), "kustomize", argv[3])
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_trains_first_and_is_smaller_in_the_suite(name: str) -> None:
    example, small = read(name), EXAMPLES[name]
    images = dict.fromkeys(example.images, "image:1")
    before, after = (
        {each["kind"]: each for each in yaml.safe_load_all(step(Rendering(Path()), example, images, patches(small)))}
        for step in (train, apply)
    )
    assert before == {kind: each for kind, each in after.items() if kind != "TritonDeployment"}
    spec = TritonDeploymentSpec.model_validate(after["TritonDeployment"]["spec"])
    assert [candidate.name for candidate in spec.models[small.model].candidates] == ["onnx-fp32"]
    assert [each.resources.limits["cpu"] for each in (spec.conversion.pod, spec.serving.pod)] == ["2", "2"]
    pod = after["Job"]["spec"]["template"]["spec"]
    containers = [*pod.get("initContainers", ()), *pod["containers"]]
    assert {container["image"] for container in containers} == {"image:1"}
    assert tuple(containers[0]["command"][len(containers[0]["command"]) - len(small.arguments) :]) == small.arguments


@dataclass(frozen=True)
class Applied(Tools):
    """Answers for an example that is in the cluster already."""

    difference: str
    applied: str

    def run(self, *argv: str, **_: Any) -> str:
        assert argv[2] == "--kustomize"
        if argv[1] == "diff" and self.difference:
            raise CommandError(self.difference)
        return self.applied if argv[1] == "apply" else ""


@pytest.mark.parametrize(
    ("difference", "applied", "found"),
    [
        ("", "namespace/a unchanged\njob.batch/a unchanged\n", []),
        (
            "-  replicas: 2",
            "namespace/a unchanged\n",
            ["an applied example differs from its manifests: -  replicas: 2"],
        ),
        ("", "namespace/a unchanged\ntd/a configured\n", ["a second apply changed something: td/a configured"]),
    ],
)
def test_a_second_apply_of_an_example_must_change_nothing(difference: str, applied: str, found: list[str]) -> None:
    example = read("resnet50-pyt")
    cluster = Applied(Path("kubeconfig"), difference, applied)
    assert drift(cluster, example, dict.fromkeys(example.images, "image:1")) == found


def test_an_example_is_one_line_under_its_heading() -> None:
    status = TritonDeploymentStatus(
        candidates=[
            CandidateStatus(name="onnx-fp32", state="Selected"),
            CandidateStatus(name="trt-fp16", state="Skipped", reason="GpuProductMissing"),
        ],
        serving=ServingStatus(
            revision="0123456789abcdef", candidate="onnx-fp32", format="onnx", precision="fp32", throughput="12.5",
            p99_latency="80ms", accuracy="0.9",
        ),
        accuracy=[
            AccuracyStatus(metric="dice", framework="0.72", served="0.72", samples=3, threshold="x", passed=True),
            AccuracyStatus(metric="dice_1", framework="0.75", served="0.75", samples=3, passed=True),
        ],
    )  # fmt: skip
    text = line("nnunet-3d", status, 241.6)
    assert "dice 0.72 (0.72)" in text
    assert "dice_1" not in text
    assert text.split()[:4] == ["nnunet-3d", "onnx-fp32", "12.5", "80ms"]
    assert text.endswith("  242")
    assert text.index("1 Selected, 1 Skipped") == heading().index("CANDIDATES")


def test_an_example_tells_what_its_gpu_variant_has_more_of() -> None:
    assert reductions(read("resnet50-pyt")) == [
        "reduced: maximum batch 4 of 128, batch sizes 1 to 4 of 1 to 128, concurrency 1 to 3 of 16 to 256, "
        "requests of a window 5 of 50, samples 32 of 256, held-out 32 of 256 (overlays/gpu has all)"
    ]
    assert reductions(read("digits")) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_can_tell_what_it_reduces(name: str) -> None:
    (text,) = reductions(read(name))
    assert "requests of a window" in text


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_a_pipeline_is_a_sample_with_its_files(pipeline: Pipeline) -> None:
    spec = TritonDeploymentSpec.model_validate(pipeline.example.deployment["spec"])
    assert pipeline.example.namespace == pipeline.name == pipeline.example.name
    there = {file.relative_to(pipeline.folder).as_posix() for file in pipeline.folder.rglob("*") if file.is_file()}
    there |= {file.name for file in pipeline.files if file.is_file()}
    wanted = {path for model in spec.models for path in (model.path, model.entrypoint, model.requirements) if path}
    assert wanted <= there
    assert spec.conversion.index_secret_ref is not None


def test_a_pipeline_tells_its_answers_and_its_steps_below_its_line() -> None:
    steps = [StepStatus(model="decode", queue_time="670us", compute_time="1.55ms", share_percent="35.3")]
    status = TritonDeploymentStatus(performance=PerformanceStatus(steps=steps))
    text = report_lines("picture-to-label", status, [Answer("a PNG of a written 7", "7", "7", 0.9871)], 90.2)
    first, *below = text.splitlines()
    assert first.startswith("picture-to-label  none")
    assert below == [
        "    a PNG of a written 7 is 7, with probability 0.987",
        "    decode: 35.3 % of the average latency (queue 670us, compute 1.55ms)",
        "    the rest: 64.7 % (the client, the network, and the server between the models)",
    ]


def test_a_client_of_the_pictures_sends_a_png_and_a_jpeg(tmp_path: Path) -> None:
    folder = PIPELINES["picture-to-label"].folder
    for file in (folder / "dataloader.py", *PIPELINES["picture-to-label"].files):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    _, inputs, _ = next(user_file(tmp_path, "dataloader").get_dataloader_fn(1)())
    file = inputs["FILE"][0, 0]
    assert (file[:4], as_jpeg(file)[:3]) == (b"\x89PNG", b"\xff\xd8\xff")
