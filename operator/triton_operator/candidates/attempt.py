"""How far a candidate came through the stages. Pure."""

from dataclasses import dataclass, replace
from typing import Self

from triton_converters.contract.accuracy import Accuracy
from triton_converters.contract.comparison import MarkComparison
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ProfileResult
from triton_operator.api.status import CandidateState
from triton_operator.candidates.candidate import Candidate
from triton_operator.observed.trouble import Trouble


@dataclass(frozen=True)
class Attempt:
    """What became of a candidate so far: its state, its results and their keys."""

    candidate: Candidate
    key: str = ""
    """Key of the candidate's revision."""
    state: CandidateState = "Pending"
    reason: Reason | None = None
    message: str = ""
    conversion: ConvertResult | None = None
    replaces: tuple[str, ...] = ()
    """Keys of the revisions that it was published under before, all of them damaged since."""
    engine_cache: str = ""
    """Directory where the candidate's server keeps compiled engines; empty: it compiles none."""
    profile: ProfileResult | None = None
    profile_key: str = ""
    """Key of the profile's record."""
    image_id: str = ""
    """ID of the server's image that it was profiled with, as the kubelet reported it; empty: not reported."""
    gpu_driver: str = ""
    """Versions of the driver and of CUDA on the node that it was profiled on; empty: not known."""
    accuracy: tuple[Accuracy, ...] = ()
    """The candidate's metrics, judged by the spec's thresholds."""
    metrics_key: str = ""
    """Key of the metrics' record."""
    compared: tuple[MarkComparison, ...] = ()
    """The comparison of these metrics with those of earlier revisions: of the last one, and of the anchor if that is
    another."""

    def in_state(self, state: CandidateState, trouble: Trouble | None = None) -> Self:
        """Return the candidate in a state. ``trouble``: the reason and message of that state; None: it has none."""
        reason, message = (trouble.reason, trouble.message) if trouble else (None, "")
        return replace(self, state=state, reason=reason, message=message)

    @property
    def name(self) -> str:
        """The candidate's name."""
        return self.candidate.name

    @property
    def tensorrt_version(self) -> str:
        """Version of the TensorRT that made the file; empty if none did."""
        return self.conversion.tensorrt_version if self.conversion else ""

    @property
    def passed(self) -> bool:
        """Whether the candidate passed every gate before selection."""
        return self.state in ("Passed", "Selected")
