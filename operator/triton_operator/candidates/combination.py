"""What a candidate is made of: one way to serve each model. A plain model is the case of one member. Pure."""

from dataclasses import dataclass
from itertools import product

from triton_converters.contract.formats import HPS
from triton_converters.contract.results import Tuning
from triton_operator import names
from triton_operator.api.model import Model
from triton_operator.api.spec import TritonDeploymentSpec


@dataclass(frozen=True)
class Member:
    """A model and how it is served."""

    model: Model
    format: str
    precision: str
    accelerator: str

    @property
    def words(self) -> str:
        """FORMAT-PRECISION-ACCELERATOR."""
        return f"{self.format}-{self.precision}-{self.accelerator}"


@dataclass(frozen=True)
class Combination:
    """A candidate of the whole."""

    name: str
    members: tuple[Member, ...]
    """One a model, in the spec's order."""
    tuning: Tuning | None = None
    """What a search found, of the one model; None: the spec's configuration."""

    def max_batch_size(self, spec: TritonDeploymentSpec) -> int:
        """Samples of a request to what is served; 0: no batch dimension."""
        return self.tuning.max_batch_size if self.tuning else spec.max_batch_size

    @property
    def format(self) -> str:
        """The members' formats, joined by "+"."""
        return "+".join(member.format for member in self.members)

    @property
    def precision(self) -> str:
        """The lowest of the members': what the tolerances go by."""
        return "fp16" if any(member.precision == "fp16" for member in self.members) else "fp32"

    @property
    def accelerator(self) -> str:
        """The members' accelerators, joined by "+"; none where no member has one."""
        return "+".join(member.accelerator for member in self.members if member.accelerator != "none") or "none"


def combinations(spec: TritonDeploymentSpec) -> tuple[Combination, ...]:
    """All that are to be tried: the product of the members' candidates, in the spec's order, the last varying first."""
    choices = []
    for model in spec.models:
        if model.format == HPS:
            choices.append([("", Member(model, HPS, "fp32", "none"))])
            continue
        choices.append(
            [
                (candidate.name, Member(model, candidate.format, candidate.precision, candidate.accelerator))
                for candidate in model.candidates
            ]
        )
    return tuple(
        Combination(
            names.combination([name for name, _ in choice if name]) or HPS, tuple(member for _, member in choice)
        )
        for choice in product(*choices)
    )
