"""The stages of one subject, in their images: reference, conversions, profiles next to a real server, metrics."""

import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gates.claim import key_of
from bench.int8.subjects import FOLDER, Subject
from hack.imagebuild.pod import Pod, outcome_in, serving, start_stage
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    Entrypoint,
    ModelCode,
    ModelConfig,
    ReferenceRequest,
    TensorRtOptions,
)
from triton_converters.contract.document import Document
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import (
    DEFAULT_TOLERANCES,
    KeptOutputs,
    Measurement,
    MetricsRequest,
    ProfileRequest,
    Sweep,
)
from triton_converters.contract.quantization import Quantization
from triton_converters.contract.results import ConvertResult, MetricsResult, ProfileResult

PRECISIONS = ("fp32", "int8")
CALIBRATION_SAMPLES = 32
MOST_SAMPLES = 480
THREADS = 1
"""The server's: on two cores, perf_analyzer needs the other one."""
IN_FLIGHT = 8
"""Requests of one sample, which the server gathers in batches where the model has them."""
MEASUREMENT = Measurement("TimeWindows", 20, 1000, 15)
STAGE_SECONDS = 600


@dataclass(frozen=True)
class Claim:
    """A subject's source on a claim, and what stages make of it."""

    root: Path
    subject: Subject

    @classmethod
    def filled(cls, root: Path, subject: Subject) -> "Claim":
        """Return a claim at ``root`` with the subject's files."""
        claim = cls(root, subject)
        source = layout.source_directory(claim.source, root)
        shutil.copytree(FOLDER / "user", source, ignore=shutil.ignore_patterns("__*__*"))
        subject.fill(source)
        return claim

    @property
    def source(self) -> str:
        """The digest that the source goes by."""
        return key_of(self.subject.name) * 4

    @property
    def reference(self) -> str:
        """The key of the reference."""
        return key_of("reference")

    @property
    def code(self) -> ModelCode:
        """The model as a user gives it."""
        return ModelCode("onnx", Entrypoint("model.onnx", {}), self.subject.max_batch_size)

    def refer(self) -> None:
        """Run the framework. Raises StageError."""
        loader = Entrypoint("dataloader.py", {})
        request = ReferenceRequest(self.reference, self.source, self.code, loader, MOST_SAMPLES, needs_labels=True)
        self._answer("reference", request)

    def convert(self, precision: str) -> ConvertResult:
        """Make the candidate's revision. Raises StageError, such as GainsNothing."""
        request = ConvertRequest(
            key=key_of(precision),
            conversion_key=key_of(f"file {precision}"),
            source=self.source,
            reference=self.reference,
            model_name=self.subject.name,
            model=self.code,
            candidate=f"onnx-{precision}",
            format="onnx",
            precision=precision,
            accelerator="none",
            onnx_opset=0,
            onnx_exporter="TorchScript",
            onnx_optimized=False,
            tensorrt=TensorRtOptions(2**30, 3),
            gpu_product="",
            engine_cache="",
            config=ModelConfig(
                instances=1,
                instance_group_kind="KIND_CPU",
                dynamic_batching=self.subject.max_batch_size > 0,
                preferred_batch_sizes=(),
                max_queue_delay_microseconds=0,
                cuda_graphs=False,
                warmup=True,
                parameters={"intra_op_thread_count": str(THREADS)},
            ),
            quantization=Quantization(CALIBRATION_SAMPLES) if precision == "int8" else None,
        )
        result: ConvertResult = self._answer("convert", request)
        return result

    def serve(self, precision: str) -> AbstractContextManager[Pod]:
        """Serve the candidate's revision."""
        return serving(self.root, key_of(precision))

    def profile(self, pod: Pod, precision: str, number: int) -> ProfileResult:
        """Run the gates and one sweep. Raises StageError."""
        request = ProfileRequest(
            key=_profile(precision, number),
            revision=key_of(precision),
            reference=self.reference,
            model_name=self.subject.name,
            max_batch_size=self.subject.max_batch_size,
            format="onnx",
            precision=precision,
            tolerance=DEFAULT_TOLERANCES[precision],
            keep_outputs=True,
            load=pod.load(MEASUREMENT),
            offline=Sweep((), (), False),
            online=Sweep((1,), (IN_FLIGHT,), False),
        )
        result: ProfileResult = _result(pod.start_stage("profile", request))
        return result

    def measure(self, number: int) -> MetricsResult:
        """Compute the user's metrics of what the profiles of a round kept. Raises StageError."""
        kept = tuple(KeptOutputs(_profile(each, number), "onnx", each) for each in PRECISIONS)
        subject = self.subject
        arguments = {"metric": subject.metric, "output": subject.output}
        request = MetricsRequest(
            key=key_of("metrics"),
            source=self.source,
            reference=self.reference,
            model_format="onnx",
            max_batch_size=subject.max_batch_size,
            metrics=Entrypoint("metrics.py", arguments),
            candidates=kept,
            required=(subject.metric,),
            calibration_samples=CALIBRATION_SAMPLES,
        )
        result: MetricsResult = self._answer("metrics", request)
        return result

    def _answer(self, stage: str, request: Document) -> Any:
        return _result(start_stage(self.root, stage, request, environment=(f"OMP_NUM_THREADS={THREADS}",)))


def _profile(precision: str, number: int) -> str:
    return key_of(f"profile {precision} {number}")


def _result(process: Any) -> Any:
    """Wait for a stage, and return what it answers. Raises StageError with its reason."""
    output = process.communicate(timeout=STAGE_SECONDS)[0]
    outcome = outcome_in(output)
    if outcome.result is None:
        assert outcome.reason is not None
        raise StageError(outcome.reason, outcome.message)
    return outcome.result
