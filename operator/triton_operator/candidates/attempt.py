"""A candidate on its way through the stages. Pure."""

from dataclasses import dataclass, replace
from typing import Self

from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ProfileResult
from triton_operator.api.status import CandidateState
from triton_operator.candidates.combination import Combination
from triton_operator.observed.pods import Trouble


@dataclass(frozen=True)
class Attempt:
    """What is known of a candidate so far."""

    candidate: Combination
    key: str = ""
    """Of its revision."""
    state: CandidateState = "Pending"
    reason: Reason | None = None
    message: str = ""
    conversion: ConvertResult | None = None
    engine_cache: str = ""
    """Where its server keeps what it compiles; empty: it compiles nothing."""
    profile: ProfileResult | None = None
    profile_key: str = ""
    """Of the profile's record."""

    def now(self, state: CandidateState, trouble: Trouble | None = None) -> Self:
        """The candidate in its next state, with what is to be said about it."""
        reason, message = (trouble.reason, trouble.message) if trouble else (None, "")
        return replace(self, state=state, reason=reason, message=message)

    @property
    def name(self) -> str:
        """The candidate's."""
        return self.candidate.name

    @property
    def tensorrt_version(self) -> str:
        """Of the TensorRT that made the file; empty where none did."""
        return self.conversion.tensorrt_version if self.conversion else ""

    @property
    def passed(self) -> bool:
        """Whether every gate before selection was passed."""
        return self.profile is not None and self.profile.passed
