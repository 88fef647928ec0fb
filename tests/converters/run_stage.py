"""Run a boxed stage in this process, as its three containers do one after the other."""

import importlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from triton_converters.claim_store.replay import find_result
from triton_converters.contract import layout
from triton_converters.contract.comparison_result import ComparisonResult
from triton_converters.contract.conversion_requests import ConvertRequest, PackagesRequest, ReferenceRequest
from triton_converters.contract.document import Document
from triton_converters.contract.measurement_requests import ComparisonRequest, MetricsRequest
from triton_converters.contract.results import (
    ConvertResult,
    MetricsResult,
    PackagesResult,
    ReferenceResult,
)
from triton_converters.contract.stages import STAGES
from triton_converters.incoming import documents

PARTS = ("prepare", "produce", "publish")


@contextmanager
def _without_claim() -> Iterator[None]:
    """The claim is not there; what is written in its place is lost, as a container's own files are."""
    claim, hidden = layout.MOUNT, layout.MOUNT.with_name("hidden")
    claim.rename(hidden)
    try:
        yield
    finally:
        shutil.rmtree(claim, ignore_errors=True)
        hidden.rename(claim)


def _run(name: str, request: Any, mounts_claim: bool = True) -> Any:
    stage = STAGES[name]
    if stage.directory and (found := find_result(stage.directory(request.key), name, request.key)) is not None:
        return found
    with tempfile.TemporaryDirectory() as folder:
        incoming = Path(folder)
        parts = {part: importlib.import_module(f"triton_converters.stages.{name}.{part}") for part in PARTS}
        missing = parts["prepare"].run(request, incoming)
        if missing:
            with nullcontext() if mounts_claim else _without_claim():
                parts["produce"].run(stage.request.from_json(request.to_json()), missing, incoming)
            documents.write_end(incoming, documents.End())
        result: Document = parts["publish"].run(request, incoming)
    return result


def run_reference(request: ReferenceRequest) -> ReferenceResult:
    """Run the reference stage."""
    result: ReferenceResult = _run("reference", request)
    return result


def run_convert(request: ConvertRequest) -> ConvertResult:
    """Run the convert stage."""
    result: ConvertResult = _run("convert", request)
    return result


def run_metrics(request: MetricsRequest) -> MetricsResult:
    """Run the metrics stage."""
    result: MetricsResult = _run("metrics", request)
    return result


def run_comparison(request: ComparisonRequest) -> ComparisonResult:
    """Run the comparison stage."""
    result: ComparisonResult = _run("comparison", request)
    return result


def run_packages(request: PackagesRequest) -> PackagesResult:
    """Run the packages stage."""
    result: PackagesResult = _run("packages", request, mounts_claim=False)
    return result
