"""A published source of small models, and the stages run on it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.converters.run_stage import run_convert, run_reference
from tests.converters.torch.cases import REFERENCE, SOURCE, model_code, request
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import Entrypoint, ReferenceRequest
from triton_converters.contract.results import ConvertResult, ReferenceResult


@pytest.fixture
def published(mount: Path) -> Path:
    """The source directory on the claim."""
    directory = layout.source_directory(SOURCE)
    shutil.copytree(Path(__file__).parent / "user", directory)
    return directory


@pytest.fixture
def refer(published: Path) -> Callable[..., ReferenceResult]:
    """Runs the reference stage for a model."""

    def run(kind: str, loader: dict[str, str] | None = None, **arguments: str) -> ReferenceResult:
        entrypoint = Entrypoint("loader.py", {"kind": kind, **(loader or {})})
        code = model_code(kind, **arguments)
        return run_reference(ReferenceRequest(REFERENCE, SOURCE, code, entrypoint, 64, needs_labels=False))

    return run


@pytest.fixture
def convert(refer: Callable[..., ReferenceResult]) -> Callable[..., ConvertResult]:
    """Runs the reference and the convert stage for a model."""

    def run(
        kind: str,
        format_name: str,
        precision: str = "fp32",
        exporter: str = "TorchScript",
        opset: int = 17,
        loader: dict[str, str] | None = None,
        **arguments: str,
    ) -> ConvertResult:
        refer(kind, loader, **arguments)
        return run_convert(request(model_code(kind, **arguments), format_name, precision, exporter, opset))

    return run
