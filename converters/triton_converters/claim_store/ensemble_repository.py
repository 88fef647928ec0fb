"""A revision of an ensemble: the directories of its models and its own, and the hps backend's ps.json."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triton_converters.claim_store import embedding_tables
from triton_converters.claim_store.dump import Batch
from triton_converters.claim_store.publish import temporary_directory
from triton_converters.claim_store.repository import MODELS, Conversion, publish, write_model_directory
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import ConvertRequest
from triton_converters.contract.formats import HPS
from triton_converters.contract.results import ConvertResult, Signature
from triton_converters.model_config.ensemble import render_ensemble

WARNINGS = 4
"""Number of warnings kept of all models: they share the termination message."""


@dataclass(frozen=True)
class Built:
    """A converted model with what its directory is made from."""

    request: ConvertRequest
    signature: Signature
    conversion: Conversion
    example: Batch


def publish_ensemble(request: ConvertRequest, parts: Sequence[Built], signature: Signature) -> ConvertResult:
    """Publish ``revisions/<key>/`` with all models; returns the result that was published first.

    ``signature``: the ensemble's own, whose outputs may have other sizes than the spec declares. Raises OSError if the
    claim is full.
    """
    assert request.model.ensemble is not None
    with temporary_directory(layout.revision_directory(request.key)) as directory:
        for part in parts:
            write_model_directory(directory / MODELS, part.request, part.signature, part.conversion, part.example)
        ensemble = directory / MODELS / request.model_name
        # Triton wants a version directory of an ensemble too, which stays empty.
        (ensemble / layout.VERSION).mkdir(parents=True)
        code = replace(request.model.ensemble, outputs=signature.outputs)
        text = render_ensemble(code, request.model.max_batch_size)
        (ensemble / "config.pbtxt").write_text(text, encoding="utf-8")
        served = [_served(request.key, part) for part in parts if part.request.format == HPS]
        if served:
            text = embedding_tables.parameter_server(served, request.gpu_count)
            (directory / layout.PARAMETER_SERVER).write_text(text, encoding="utf-8")
        return publish(directory, request.key, _together(parts))


def _served(key: str, part: Built) -> embedding_tables.ServedTables:
    """Describe a model of format hps with the published directory's paths, which the server mounts as the Job does."""
    request = part.request
    assert request.hps is not None
    return embedding_tables.ServedTables(
        name=request.model_name,
        version=layout.model_repository(key) / request.model_name / layout.VERSION,
        tables=embedding_tables.read_index(layout.candidate_directory(request.conversion_key)),
        max_batch_size=part.signature.max_batch_size,
        instances=request.config.instances,
        options=request.hps,
    )


def _together(parts: Sequence[Built]) -> ConvertResult:
    """Join the results of all models into one."""
    results = [part.conversion.result for part in parts]
    errors = [result.max_absolute_error for result in results if result.max_absolute_error is not None]
    versions = [result.tensorrt_version for result in results if result.tensorrt_version]
    warnings = [
        f"{part.request.model_name}: {warning}"
        for part, result in zip(parts, results, strict=True)
        for warning in result.warnings
    ]
    return ConvertResult(
        file_sha256=hashlib.sha256("".join(result.file_sha256 for result in results).encode()).hexdigest(),
        file_bytes=sum(result.file_bytes for result in results),
        data_types=tuple(dict.fromkeys(name for result in results for name in result.data_types)),
        seconds=round(sum(result.seconds for result in results), 3),
        warnings=tuple(warnings[:WARNINGS]),
        tensorrt_version=versions[0] if versions else "",
        max_absolute_error=max(errors, default=None),
        rehearsed=any(result.rehearsed for result in results),
        gpu=max(result.gpu for result in results),
    )
