"""A model of bench/search/user as the operator's Jobs make it: each stage in the converter image."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.imagebuild.pod import ROOT, Pod, outcome_in, start_stage
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    Entrypoint,
    ModelCode,
    ModelConfig,
    ReferenceRequest,
    SourceRequest,
    TensorRtOptions,
)
from triton_converters.contract.document import Document
from triton_converters.contract.measurement_requests import Measurement, ProfileRequest, SearchRequest, Sweep, Tolerance
from triton_converters.contract.results import ProfileResult, SearchResult, SourceResult, Tuning

USER = ROOT / "bench/search/user"
MAX_BATCH_SIZE = 8
TOLERANCE = Tolerance(1e-4, 1e-4)
BASE = Tuning(MAX_BATCH_SIZE, 1, False, (), 0, False)
"""Triton's defaults for a configuration that sets only the largest batch; also Model Analyzer's default."""
STAGE_SECONDS = 3600


@dataclass(frozen=True)
class Candidate:
    """A converted model on a claim; keys are words."""

    root: Path
    kind: str
    """A model of bench/search/user/model.py; also the model's name and the keys of its results."""

    @property
    def repository(self) -> Path:
        """The repository that tritonserver loads."""
        return layout.model_repository(self.kind, self.root)

    def profile(self, pod: Pod, measurement: Measurement, online: Sweep) -> ProfileResult:
        """The base's measurements."""
        request = ProfileRequest(
            key=f"profile-{self.kind}",
            revision=self.kind,
            reference=self.kind,
            model_name=self.kind,
            max_batch_size=MAX_BATCH_SIZE,
            format="onnx",
            precision="fp32",
            tolerance=TOLERANCE,
            keep_outputs=False,
            load=pod.load(measurement),
            offline=Sweep((), (), False),
            online=online,
        )
        result = answer(pod.start_stage("profile", request))
        assert isinstance(result, ProfileResult)
        assert result.passed, result.message
        return result

    def search(self, pod: Pod, measurement: Measurement, online: Sweep, **wanted: Any) -> list[SearchResult]:
        """Run all parts of a search; ``wanted``: the fields of SearchRequest that say what is searched and how much."""
        results: list[SearchResult] = []
        while not results or not results[-1].ended:
            request = SearchRequest(
                key=f"search-{self.kind}-{wanted['mode']}-{len(results)}",
                search=f"points-{self.kind}",
                part=len(results),
                revision=self.kind,
                reference=self.kind,
                profile=f"profile-{self.kind}",
                model_name=self.kind,
                max_batch_size=MAX_BATCH_SIZE,
                precision="fp32",
                tolerance=TOLERANCE,
                scenario="online",
                load=pod.load(measurement),
                sweep=online,
                base=BASE,
                vary_cuda_graphs=False,
                **wanted,
            )
            result = answer(pod.start_stage("search", request))
            assert isinstance(result, SearchResult)
            results.append(result)
        return results


def prepare(root: Path, kind: str) -> Candidate:
    """Run the stages up to the revision that serves the model as ONNX in fp32."""
    mount = (f"{USER}:{layout.SOURCE_MOUNT}:ro",)
    published = answer(start_stage(root, "source", SourceRequest("source", "bench", "", ""), mount))
    assert isinstance(published, SourceResult)
    arguments = {"kind": kind}
    code = ModelCode("pyt", Entrypoint("model.py", arguments), MAX_BATCH_SIZE)
    loader = Entrypoint("dataloader.py", arguments)
    answer(
        start_stage(root, "reference", ReferenceRequest(kind, published.digest, code, loader, 64, needs_labels=False))
    )
    config = ModelConfig(
        instances=BASE.instances,
        instance_group_kind="KIND_CPU",
        dynamic_batching=BASE.dynamic_batching,
        preferred_batch_sizes=BASE.preferred_batch_sizes,
        max_queue_delay_microseconds=BASE.max_queue_delay_microseconds,
        cuda_graphs=False,
        # Model Analyzer keeps warm-up batches that its own configurations are too small for, and they do not load then.
        warmup=False,
        parameters={},
    )
    request = ConvertRequest(
        key=kind,
        conversion_key=f"file-{kind}",
        source=published.digest,
        reference=kind,
        model_name=kind,
        model=code,
        candidate="onnx-fp32",
        format="onnx",
        precision="fp32",
        accelerator="none",
        onnx_opset=17,
        onnx_exporter="TorchScript",
        onnx_optimized=False,
        tensorrt=TensorRtOptions(0, 3),
        gpu_product="",
        engine_cache="",
        config=config,
    )
    answer(start_stage(root, "convert", request))
    return Candidate(root, kind)


def answer(stage: "subprocess.Popen[str]") -> Document:
    """Run a stage, print its output as it comes and return its result. Raises RuntimeError if it has none."""
    lines = []
    assert stage.stdout is not None
    for line in stage.stdout:
        lines.append(line)
        if not line.startswith('{"key"'):
            print(f"  {line}", end="", flush=True)
    stage.wait(STAGE_SECONDS)
    outcome = outcome_in("".join(lines))
    if outcome.result is None:
        raise RuntimeError(f"{outcome.stage}: {outcome.reason}: {outcome.message}")
    return outcome.result
