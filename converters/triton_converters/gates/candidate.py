"""The gates, in order, the cheap ones first: what a candidate on its server must pass.

A profile tries a candidate on the whole reference, a search each of its configurations on the first samples.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from triton_converters.claim_store.dump import Batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES, ServedModel, Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature
from triton_converters.gates.answers import Answers, Infer, collect
from triton_converters.gates.engines import check_engines
from triton_converters.gates.outputs import check_outputs
from triton_converters.gates.precision import HALVES, check_precision
from triton_converters.gates.scale import Scale
from triton_converters.gates.signature import check_signature


@dataclass
class ServedCandidate:
    """A candidate on its server, and the part of the reference that it must answer.

    No field has a default: the profile and the search each have to say what a new gate wants to know.
    """

    declared: Callable[[], Signature]
    """Asks the server for its signature."""
    infer: Infer
    signature: Signature
    """The inputs and outputs that the candidate must collect."""
    precision: str
    tolerance: Tolerance
    scales: Callable[[], Mapping[str, Scale]]
    """Returns the scales of the whole reference, which the profile reads anew each time and the search once."""
    batches: Iterable[Batch]
    """In the profile they can be read once."""
    sizes: Iterable[Batch]
    """Requests of other sizes, whose samples do not count."""
    files: Iterable[tuple[Path, ServedModel]]
    """The files to look into, and what they must be."""
    keep_outputs: bool
    published_types: tuple[str, ...]
    """Floating point types that the files were published with."""
    engine_caches: tuple[Path, ...]
    """The directories in which the server keeps the engines that it builds."""
    answers: Answers | None = field(default=None, init=False)
    """What the server answered to ``batches``; None until it did."""


@dataclass(frozen=True)
class Gate:
    """A check, and the reasons that are a verdict on the candidate; any other ends the Job, which may run again."""

    check: Callable[[ServedCandidate], None]
    reasons: frozenset[Reason]


def _precision(candidate: ServedCandidate) -> None:
    for path, model in candidate.files:
        check_precision(path, model.format, model.precision, candidate.published_types)


def _signature(candidate: ServedCandidate) -> None:
    check_signature(candidate.declared(), candidate.signature, candidate.signature.max_batch_size)


def _outputs(candidate: ServedCandidate) -> None:
    precision, tolerance = _computes_in(candidate)
    asked = candidate.signature, tolerance, candidate.scales()
    candidate.answers = collect(candidate.infer, candidate.batches, *asked, candidate.keep_outputs)
    candidate.answers.include(collect(candidate.infer, candidate.sizes, *asked))
    check_outputs(candidate.answers, precision, tolerance, candidate.precision)


def _computes_in(candidate: ServedCandidate) -> tuple[str, Tolerance]:
    """Return the precision that the candidate computes in, and its tolerance.

    A file of halves that is served as it is has the precision fp32, because nothing is cast, but rounds as fp16 does.
    So does a graph that answers in halves, whatever its weights are.
    """
    is_half = any(each in HALVES for each in candidate.published_types[:1]) or any(
        each.data_type in HALVES for each in candidate.signature.outputs
    )
    if candidate.precision != "fp32" or not is_half:
        return candidate.precision, candidate.tolerance
    if not candidate.tolerance.is_default("fp32"):
        return "fp16", candidate.tolerance
    return "fp16", replace(DEFAULT_TOLERANCES["fp16"], integers=candidate.tolerance.integers)


def _engines(candidate: ServedCandidate) -> None:
    check_engines(candidate.engine_caches)


GATES = (
    Gate(_precision, frozenset({Reason.PRECISION_MISMATCH, Reason.MODEL_LOAD_FAILED})),
    Gate(_signature, frozenset({Reason.SIGNATURE_MISMATCH})),
    Gate(
        _outputs,
        frozenset(
            {Reason.INFERENCE_FAILED, Reason.SIGNATURE_MISMATCH, Reason.OUTPUTS_NOT_FINITE, Reason.OUTPUTS_DIFFER}
        ),
    ),
    # The last one, because engines are built for the first requests.
    Gate(_engines, frozenset({Reason.GAINS_NOTHING})),
)
VERDICTS = frozenset[Reason]().union(*(gate.reasons for gate in GATES))
"""The reasons for which a candidate fails."""


def judge(candidate: ServedCandidate) -> StageError | None:
    """Run the gates in turn; return why the candidate fails, or None if it passes them all."""
    for gate in GATES:
        try:
            gate.check(candidate)
        except StageError as error:
            if error.reason not in gate.reasons:
                raise
            return error
    return None
