"""`python3 -m tests.user_files.inside NAME`, in an image: the processes of the Jobs' containers, one after the other.

It prints a line of JSON for each step. Nothing is served or measured: the formats' own runtimes run the files, and the
gate of the profile compares every output of theirs with the framework's.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.user_files.projects import PROJECTS, Project, UserFile
from triton_converters.claim_store.dump import read_batches
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
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import has_runtime
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES, MetricsRequest
from triton_converters.contract.results import ConvertResult, MetricsResult, ReferenceResult, Signature, SourceResult
from triton_converters.convert import comparison
from triton_converters.gates import agreement, exact
from triton_converters.gates.scale import measure
from triton_converters.incoming import documents

MESSAGE = Path("/work/message")
"""Stands for a container's termination message."""
REFERENCE, METRICS = "e" * 16, "f" * 16


@dataclass(frozen=True)
class Step:
    """What became of one step."""

    name: str
    passed: bool
    words: str
    rehearsed: bool = False


def steps(project: Project) -> Iterator[Step]:
    """Run the steps as far as they go."""
    try:
        source = _run("source", SourceRequest("0" * 16, "pvc://user-files", "", ""))
    except StageError as error:
        yield _failed("source", error)
        return
    assert isinstance(source, SourceResult)
    yield Step("source", True, f"{source.files} files")
    try:
        reference = _run("reference", _reference(project, source.digest))
    except StageError as error:
        yield _failed("reference", error)
        return
    assert isinstance(reference, ReferenceResult)
    words = f"{reference.samples} samples: {_shapes(reference.signature)}"
    yield Step("reference", True, words, reference.rehearsed)
    for number, (form, precision) in enumerate(project.candidates):
        yield _candidate(project, source.digest, reference, number, form, precision)
    if project.metrics is not None:
        yield _metrics(project, source.digest, project.metrics)


def _candidate(
    project: Project, source: str, reference: ReferenceResult, number: int, form: str, precision: str
) -> Step:
    name = f"{form} {precision}"
    request = _convert(project, source, number, form, precision)
    try:
        result = _run("convert", request)
        assert isinstance(result, ConvertResult)
        return Step(name, *_agreement(request, reference.signature, precision), rehearsed=result.rehearsed)
    except StageError as error:
        return _failed(name, error)


def _agreement(request: ConvertRequest, signature: Signature, precision: str) -> tuple[bool, str]:
    """Whether the file's answers agree with the framework's, by the gate of the profile, and the largest error."""
    directory, tolerance = layout.candidate_directory(request.conversion_key), DEFAULT_TOLERANCES[precision]
    if not has_runtime(request.format):
        return True, "converted; no runtime of this format is here"
    try:
        answer = comparison.runtime(request.format, signature, directory)
    except StageError as error:
        return False, f"converted, but not compared: {error.message}"
    scales = measure(read_batches(layout.reference_directory(request.reference)), batched=True)
    found: dict[str, agreement.Agreement] = {}
    for batch in read_batches(layout.reference_directory(request.reference)):
        answers = answer(batch.inputs)
        for output, expected in batch.outputs.items():
            if output not in answers:
                return False, f"the file has no output {output}"
            samples = [str(each) for each in batch.ids]
            scale = scales.get(output)
            compared = agreement.compare(output, expected, answers[output], samples, tolerance, scale)
            found[output] = found[output] + compared if output in found else compared
    rule = exact.RULES[precision]
    outside = [each for each in found.values() if not each.holds(rule, agreement.ERROR_SHARE)]
    if outside:
        return False, f"OutputsDiffer: {agreement.describe(outside[0], tolerance, rule)}"
    return True, f"agrees, largest error {max(each.max_absolute_error for each in found.values()):.2g}"


def _metrics(project: Project, source: str, metrics: UserFile) -> Step:
    """The metrics of the framework's own outputs."""
    request = MetricsRequest(
        METRICS, source, REFERENCE, project.format, project.max_batch_size, _entrypoint(metrics), candidates=()
    )
    try:
        result = _run("metrics", request)
    except StageError as error:
        return _failed("metrics", error)
    assert isinstance(result, MetricsResult)
    return Step("metrics", True, ", ".join(result.metrics))


def _reference(project: Project, source: str) -> ReferenceRequest:
    loader = _entrypoint(project.dataloader)
    return ReferenceRequest(REFERENCE, source, _code(project), loader, project.samples, needs_labels=False)


def _convert(project: Project, source: str, number: int, form: str, precision: str) -> ConvertRequest:
    return ConvertRequest(
        key=f"{number:016x}",
        conversion_key=f"{number:015x}c",
        source=source,
        reference=REFERENCE,
        model_name=project.name,
        model=_code(project),
        candidate=f"{form}-{precision}",
        format=form,
        precision=precision,
        accelerator="none",
        onnx_opset=17,
        onnx_exporter="TorchScript",
        onnx_optimized=False,
        tensorrt=TensorRtOptions(2**30, 3),
        gpu_product="",
        engine_cache="",
        config=ModelConfig(1, "KIND_CPU", True, (), 0, False, True, {}),
    )


def _code(project: Project) -> ModelCode:
    return ModelCode(project.format, _entrypoint(project.model), project.max_batch_size)


def _entrypoint(file: UserFile) -> Entrypoint:
    data = str(layout.DATA_MOUNT)
    return Entrypoint(file.path, {name: value.replace("$(DATASET)", data) for name, value in file.arguments.items()})


def _run(stage: str, request: Any) -> Document:
    """Run a Job's containers and return its result; raises the StageError that the Job answers with."""
    for path in layout.INCOMING_MOUNT.iterdir():
        subprocess.run(["rm", "-rf", str(path)], check=True)
    MESSAGE.unlink(missing_ok=True)
    commands = [["prepare", stage, request.to_json()], ["run", stage], ["publish", stage, request.to_json()]]
    for command in [[stage, request.to_json()]] if stage == "source" else commands:
        ended = subprocess.run(
            [sys.executable, "-m", "triton_converters", *command],
            env=os.environ | {"TERMINATION_LOG": str(MESSAGE)},
            stdout=sys.stderr,
            check=False,
        )
        if ended.returncode or MESSAGE.exists():
            break
    outcome = Outcome.from_json(MESSAGE.read_text())
    if outcome.result is None:
        assert outcome.reason is not None
        raise StageError(outcome.reason, documents.plain(outcome.message, 400))
    return outcome.result


def _shapes(signature: Signature) -> str:
    def words(tensors: Any) -> str:
        return ", ".join(f"{each.name} {each.data_type}{list(each.dims)}" for each in tensors)

    return f"{words(signature.inputs)} -> {words(signature.outputs)}"


def _failed(name: str, error: StageError) -> Step:
    return Step(name, False, f"{error.reason}: {error.message}")


if __name__ == "__main__":
    (chosen,) = [each for each in PROJECTS if each.name == sys.argv[1]]
    for step in steps(chosen):
        print(json.dumps(vars(step)), flush=True)
