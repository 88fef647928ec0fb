"""The requests to the Jobs that judge and measure what is served: profile, metrics, search, measure.

Standard library only.
"""

from dataclasses import dataclass

from triton_converters.contract.conversion_requests import CodeRequest, Entrypoint
from triton_converters.contract.document import Document
from triton_converters.contract.results import Tuning

OUTSIDE_SECONDS = 600
"""Time in a metrics Job, beyond its deadline, for running the candidates' files in their own runtimes: a sixth of the
default deadline. What has not run then has no such metrics."""
COMPARISON_SECONDS = 600
"""Time in a comparison Job, beyond its deadline and OUTSIDE_SECONDS, for the metrics of all resamples. What has none
then is not compared."""


@dataclass(frozen=True)
class IntegerTolerance:
    """How far integer outputs may be from the framework's: those that hold amounts, such as a picture's."""

    steps: int = 0
    """The largest difference by which two elements agree."""
    share: float | None = None
    """The largest share of elements that may differ by more; None: the default of the precision."""


@dataclass(frozen=True)
class Tolerance:
    """|a - b| <= absolute + relative * |b| for every element of a floating point output.

    The absolute part of a default is multiplied by the output's scale (``gates.scale``); any other means what it says.
    """

    absolute: float
    relative: float
    integers: IntegerTolerance = IntegerTolerance()

    def is_default(self, precision: str = "") -> bool:
        """Whether the tolerance of floating point outputs is the default of a precision, or of any (empty).

        The absolute part of a default follows the output's scale.
        """
        defaults = [DEFAULT_TOLERANCES[precision]] if precision else DEFAULT_TOLERANCES.values()
        return (self.absolute, self.relative) in [(each.absolute, each.relative) for each in defaults]


DEFAULT_TOLERANCES = {"fp32": Tolerance(1e-4, 1e-4), "fp16": Tolerance(1e-2, 1e-2), "int8": Tolerance(1e6, 1e6)}
"""Tolerances by the candidate's precision. INT8 errs in any element, so that of int8 is one that no finite element
exceeds: the signal-to-noise ratio of the whole output judges it (``gates.agreement.ERROR_SHARES``)."""


@dataclass(frozen=True)
class InputShape:
    """perf_analyzer's --shape for an input with dynamic dimensions, without the batch dimension."""

    input: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Measurement:
    """How perf_analyzer measures one point."""

    mode: str
    """``CountWindows`` or ``TimeWindows``."""
    request_count: int
    interval_milliseconds: int
    stability_percentage: int
    fast_milliseconds: int = 0
    """Length of the windows in place of the mode's where a request takes less than 10 ms; 0: the mode's."""


@dataclass(frozen=True)
class Sweep:
    """The points of one scenario: the product of batch sizes and concurrencies."""

    batch_sizes: tuple[int, ...]
    concurrencies: tuple[int, ...]
    shared_memory: bool
    """Whether requests use system shared memory; client and server then share /dev/shm."""
    until_saturated: bool = False
    """Whether the sweep ends before its last concurrency once the throughput no longer rises."""


@dataclass(frozen=True)
class Load:
    """What all points measured against one server have in common."""

    url: str
    """host:port of the protocol's endpoint."""
    protocol: str
    """``grpc`` or ``http``."""
    http_url: str
    """host:port of Triton's HTTP endpoint, for statistics, configuration and metadata."""
    input_shapes: tuple[InputShape, ...]
    measurement: Measurement
    metrics_url: str = ""
    """host:port of Triton's metrics; empty: the default port on the HTTP endpoint's host."""


@dataclass(frozen=True)
class Constraint:
    """Bounds that a measurement must meet; those that are not None apply."""

    metric: str
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True)
class OpenLoop:
    """Points at which requests arrive at a rate, whatever the server has answered, in the online sweep's batch size.

    They arrive at random, by a Poisson process, as those of many independent clients do.
    """

    rates: tuple[int, ...]
    """Requests per second."""
    confirmed_percent: int = 0
    """Share of the throughput at which the online sweep saturates, for one more point; 0: none."""
    constraints: tuple[Constraint, ...] = ()
    """The constraints within which that throughput is taken; only with ``confirmed_percent``."""


@dataclass(frozen=True)
class ServedModel:
    """A model of an ensemble as a revision serves it."""

    name: str
    format: str
    precision: str


@dataclass(frozen=True)
class ProfileRequest(Document):
    """Compare the served candidate with the reference, then sweep it on its private server."""

    key: str
    revision: str
    reference: str
    model_name: str
    max_batch_size: int
    format: str
    precision: str
    tolerance: Tolerance
    keep_outputs: bool
    """Whether the served outputs are kept, for a metrics Job."""
    load: Load
    offline: Sweep
    online: Sweep
    members: tuple[ServedModel, ...] = ()
    """The models of an ensemble (format ``ensemble``)."""
    content: str = ""
    """``ConvertResult.content`` of the revision; empty: not recorded."""
    open_loop: OpenLoop = OpenLoop(())
    """The request rates to measure after the online sweep."""
    seconds: int = 0
    """Time that the sweeps should take together if a request takes less than 10 ms; ``measuring.budget`` gives slower
    ones more. 0: every point is measured that is asked for."""


@dataclass(frozen=True)
class KeptOutputs:
    """What a profile kept of a candidate's answers."""

    profile: str
    """Key of the profile."""
    format: str
    precision: str
    revision: str = ""
    """Key of the candidate's revision, whose file also runs in its format's own runtime; empty: it has none there."""


@dataclass(frozen=True)
class MetricsRequest(CodeRequest):
    """Compute the user's metrics of the framework's outputs, and of the outputs that profiles kept.

    One Job for all candidates, so that the framework's metrics are computed once. It knows no thresholds: the
    controller judges the values.
    """

    reference: str
    model_format: str
    """The source's format, which the calculator of the framework's metrics is told."""
    max_batch_size: int
    """Largest batch, in samples; 0: no batch dimension."""
    metrics: Entrypoint
    candidates: tuple[KeptOutputs, ...]
    required: tuple[str, ...] = ()
    """Names of metrics that must not be dropped if the result is too long: those with a threshold."""
    calibration_samples: int = 0
    """The most samples by which any candidate of the object is calibrated (``quantization.calibration``). They are left
    out of the metrics of every candidate and of the framework, so that all are computed of the same samples."""
    model_name: str = ""
    """The model's name in the revisions."""


@dataclass(frozen=True)
class Mark:
    """A revision that served with another reference, against which candidates are held."""

    revision: str
    """Key of the revision."""
    model_name: str
    """The model's name in the revision."""
    reference: str
    """Key of the reference that it was verified with."""
    outputs: KeptOutputs


@dataclass(frozen=True)
class ComparisonRequest(MetricsRequest):
    """Compute how far the metrics of candidates are from those of earlier revisions, and how sure that is.

    ``required``: the metrics that are compared.
    """

    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Objective:
    """A metric to improve, and its weight relative to the other objectives."""

    metric: str
    """A key of ``scoring.METRICS``."""
    weight: int


@dataclass(frozen=True)
class SearchRequest(Document):
    """Measure other configurations of a revision on its private server, until no step helps or the budget is spent.

    One search is a series of Jobs, because a termination message holds few points. Each Job walks the search's path
    from the start and does not measure again what is in the file of points. Part n answers with the points from
    ``n * search_parts.PART_POINTS`` on.
    """

    key: str
    search: str
    """Name of the file of points on the claim: a hash of what changes a point's figures. It excludes the budget and the
    objectives, so another search of the same revision finds what this one measured."""
    part: int
    """Number of the Job: 0, 1, ..."""
    revision: str
    reference: str
    profile: str
    """Key of the revision's profile, whose measurements are known points."""
    model_name: str
    max_batch_size: int
    """Largest batch of the revision's own configuration, in samples; 0: no batch dimension."""
    precision: str
    tolerance: Tolerance
    """A configuration whose outputs differ from the reference by more than this is refused."""
    scenario: str
    """``offline`` or ``online``: the sweep whose measurements are judged."""
    load: Load
    sweep: Sweep
    """The loads with which configurations may be measured."""
    mode: str
    """``Quick`` or ``Exhaustive``."""
    base: Tuning
    """The revision's own configuration."""
    maximum_instances: int
    vary_cuda_graphs: bool
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    measurements: int
    """Most points and repeats on the path, in all parts together, whichever search measured them; the profile's are
    free."""
    seconds: int
    """Most time that measuring them may take; a point that is being measured is finished."""
    cpus: int = 0
    """The whole CPUs that the instances of a configuration share, if their threads follow from that; 0: the threads
    stay as they are in the revision's own configuration."""


@dataclass(frozen=True)
class MeasureRequest(Document):
    """Sweep the target revision's server through its preview Service."""

    key: str
    revision: str
    reference: str
    model_name: str
    max_batch_size: int
    load: Load
    online: Sweep
