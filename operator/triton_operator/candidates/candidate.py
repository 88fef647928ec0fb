"""A candidate: one way to serve each model. Without an ensemble it has one member. Pure."""

from dataclasses import dataclass
from itertools import product

from triton_converters.contract.formats import AS_GIVEN
from triton_converters.contract.results import Tuning
from triton_operator import names
from triton_operator.api.model import Model, PostTrainingQuantization
from triton_operator.api.spec import TritonDeploymentSpec

PRECISIONS = ("int8", "fp16", "fp32")
"""The precisions, the lowest first."""


@dataclass(frozen=True)
class Member:
    """A model and how it is served."""

    model: Model
    format: str
    precision: str
    accelerator: str
    quantization: PostTrainingQuantization | None = None
    """How the model is quantized; None: its precision is not int8."""

    @property
    def label(self) -> str:
        """The member as FORMAT-PRECISION-ACCELERATOR."""
        return f"{self.format}-{self.precision}-{self.accelerator}"


@dataclass(frozen=True)
class Candidate:
    """One way to serve every model of the object."""

    name: str
    members: tuple[Member, ...]
    """One for each model, in the spec's order."""
    tuning: Tuning | None = None
    """The configuration that a search found for the single model; None: the spec's configuration."""

    def max_batch_size(self, spec: TritonDeploymentSpec) -> int:
        """Return the most samples that a request may hold; 0: no batch dimension."""
        return self.tuning.max_batch_size if self.tuning else spec.max_batch_size

    @property
    def format(self) -> str:
        """The members' formats, joined by "+"."""
        return "+".join(member.format for member in self.members)

    @property
    def precision(self) -> str:
        """The lowest precision of the members, which decides the tolerances."""
        return min((member.precision for member in self.members), key=PRECISIONS.index)

    @property
    def accelerator(self) -> str:
        """The members' accelerators, joined by "+"; "none" if no member has one."""
        return "+".join(member.accelerator for member in self.members if member.accelerator != "none") or "none"


def candidates_of(spec: TritonDeploymentSpec) -> tuple[Candidate, ...]:
    """Return all candidates: the product of the models' candidates in the spec's order, the last model fastest."""
    named_members = []
    for model in spec.models:
        if model.format in AS_GIVEN:
            named_members.append([("", Member(model, model.format, "fp32", "none"))])
            continue
        named_members.append(
            [
                (
                    candidate.name,
                    Member(model, candidate.format, candidate.precision, candidate.accelerator, candidate.calibration),
                )
                for candidate in model.candidates
            ]
        )
    return tuple(
        Candidate(
            names.candidate([name for name, _ in combination if name]) or spec.models[0].format or "",
            tuple(member for _, member in combination),
        )
        for combination in product(*named_members)
    )
