"""The stages that have Jobs, one record each; what else is said of a stage by its name is said here.

The module or package of a stage in ``triton_converters.stages`` bears its name. The Jobs, the operator and the plugin
read this table; standard library only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from triton_converters.contract import layout
from triton_converters.contract.comparison_result import ComparisonResult
from triton_converters.contract.conversion_requests import (
    CodeRequest,
    ConvertRequest,
    PackagesRequest,
    ReferenceRequest,
    SourceRequest,
)
from triton_converters.contract.document import Document
from triton_converters.contract.look import LookRequest, LookResult
from triton_converters.contract.measurement_requests import (
    ComparisonRequest,
    MeasureRequest,
    MetricsRequest,
    ProfileRequest,
    SearchRequest,
)
from triton_converters.contract.publishing import PublishRequest, PublishResult
from triton_converters.contract.reason_kinds import Containers
from triton_converters.contract.reasons import Reason, found_by
from triton_converters.contract.results import (
    CleanResult,
    ConvertResult,
    MeasureResult,
    MetricsResult,
    PackagesResult,
    ProfileResult,
    ReferenceResult,
    SearchResult,
    SnapshotResult,
    SourceResult,
)
from triton_converters.contract.upkeep_requests import CleanRequest, SnapshotRequest

CONVERSION = "spec.conversion.activeDeadlineSeconds"
PERFORMANCE = "spec.performance.activeDeadlineSeconds"
"""The fields that bound how long a pod may take."""


@dataclass(frozen=True)
class Stage:
    """What a stage asks, answers and leaves behind."""

    request: type[Document]
    result: type[Document]
    directory: Callable[..., Path] | None = None
    """Returns the directory on the claim that holds the result of a key, so that no second Job computes it. None: the
    stage looks at its input every time."""
    has_claim: bool = True
    """Whether the stage's containers have the repository claim."""
    reads_claim: bool = False
    """Whether that claim is mounted read-only, and nothing is written there."""
    boxed: bool = False
    """Whether the stage meets code, files or answers of strangers, and so is a package of ``prepare``, ``produce`` and
    ``publish``, for three containers."""
    image_in_key: bool = True
    """Whether the key of a Job covers its image, so that another image does the work anew. It need not if all images
    give the same, or if nothing of the result is kept."""
    deadline: str = ""
    """The field that bounds how long a pod of it may take; empty: no field does."""
    run_reasons: frozenset[Reason] = frozenset()
    """The failures that the second of these containers may end with. Some pass by themselves, so that the Job runs
    again without end: user code that gives one that its stage cannot find out would occupy the cluster for good."""
    log_lines: tuple[str, ...] = ()
    """How the lines of its log begin that tell how far it came: of a gate, a point, samples or a part of a download."""

    @property
    def user_code(self) -> bool:
        """Whether the stage runs the user's code."""
        return issubclass(self.request, CodeRequest)


STAGES: Mapping[str, Stage] = {
    "look": Stage(LookRequest, LookResult, has_claim=False, image_in_key=False),
    "source": Stage(SourceRequest, SourceResult, image_in_key=False, deadline=CONVERSION, log_lines=("download ",)),
    "packages": Stage(
        PackagesRequest,
        PackagesResult,
        layout.packages_directory,
        boxed=True,
        deadline=CONVERSION,
        run_reasons=found_by(Containers.PIP),
        log_lines=("download ", "resolve "),
    ),
    "reference": Stage(
        ReferenceRequest,
        ReferenceResult,
        layout.reference_directory,
        boxed=True,
        deadline=CONVERSION,
        run_reasons=found_by(Containers.USER_CODE),
        log_lines=("reference: ",),
    ),
    "convert": Stage(
        ConvertRequest,
        ConvertResult,
        layout.revision_directory,
        boxed=True,
        deadline=CONVERSION,
        run_reasons=found_by(Containers.USER_CODE),
    ),
    "profile": Stage(
        ProfileRequest,
        ProfileResult,
        layout.measurement_directory,
        boxed=True,
        deadline=PERFORMANCE,
        run_reasons=found_by(Containers.CLIENT),
        log_lines=("gates: ", "offline ", "online ", "request rate "),
    ),
    "metrics": Stage(
        MetricsRequest,
        MetricsResult,
        layout.measurement_directory,
        boxed=True,
        deadline=CONVERSION,
        run_reasons=found_by(Containers.USER_CODE),
    ),
    "comparison": Stage(
        ComparisonRequest,
        ComparisonResult,
        layout.measurement_directory,
        boxed=True,
        deadline=CONVERSION,
        run_reasons=found_by(Containers.USER_CODE),
    ),
    "search": Stage(
        SearchRequest,
        SearchResult,
        layout.measurement_directory,
        boxed=True,
        deadline=PERFORMANCE,
        run_reasons=found_by(Containers.CLIENT),
        log_lines=("search ",),
    ),
    "measure": Stage(
        MeasureRequest,
        MeasureResult,
        layout.measurement_directory,
        boxed=True,
        deadline=PERFORMANCE,
        run_reasons=found_by(Containers.CLIENT),
        log_lines=("online ",),
    ),
    "publish": Stage(
        PublishRequest, PublishResult, reads_claim=True, image_in_key=False, deadline=CONVERSION, log_lines=("push ",)
    ),
    "snapshot": Stage(SnapshotRequest, SnapshotResult, image_in_key=False),
    "clean": Stage(CleanRequest, CleanResult, image_in_key=False),
}
"""The stages by their names, in the order of the flow."""
