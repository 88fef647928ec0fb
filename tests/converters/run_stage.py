"""Run a stage with user code in this process, as its three containers do one after the other."""

import importlib
import tempfile
from pathlib import Path
from typing import Any

from triton_converters.__main__ import STAGES
from triton_converters.contract.conversion_requests import ConvertRequest, ReferenceRequest
from triton_converters.contract.document import Document
from triton_converters.contract.measurement_requests import MetricsRequest
from triton_converters.contract.results import ConvertResult, MetricsResult, ReferenceResult
from triton_converters.incoming import documents


def _run(name: str, request: Any) -> Any:
    stage = STAGES[name]
    if (found := stage.result(name, request.key)) is not None:
        return found
    with tempfile.TemporaryDirectory() as folder:
        incoming = Path(folder)
        parts = {part: importlib.import_module(f"{stage.module}.{part}") for part in ("prepare", "produce", "publish")}
        missing = parts["prepare"].run(request, incoming)
        if missing:
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
