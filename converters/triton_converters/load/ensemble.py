"""An ensemble outside Triton: the frameworks of its steps, one after the other, each in fp32."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.conversion_requests import EnsembleCode, ModelCode, Step
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.incoming.documents import OpenAxes
from triton_converters.load import framework, server_tensors
from triton_converters.load.called import UNKNOWN, CalledModel
from triton_converters.load.framework import Framework
from triton_converters.load.triton_python import PythonStep


@dataclass(frozen=True)
class Member:
    """A step with its framework."""

    step: Step
    model: Framework


@dataclass(frozen=True)
class Passage:
    """The inputs and outputs of one member."""

    member: Member
    inputs: Arrays
    outputs: Arrays
    """All outputs of the framework, whether they are used or not."""


@dataclass(frozen=True)
class Ensemble:
    """The members as one Framework."""

    members: tuple[Member, ...]
    """The steps in their order."""
    called: Mapping[str, CalledModel]
    """The models that Python steps ask, by their names; a step may be one of them."""
    code: EnsembleCode
    source: Path

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs' names, as the spec declares them."""
        return tuple(tensor.name for tensor in self.code.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs' names, as the spec declares them."""
        return tuple(tensor.name for tensor in self.code.outputs)

    @property
    def open_axes(self) -> OpenAxes:
        """None: the spec declares the ensemble's tensors."""
        return {}

    @property
    def path(self) -> str:
        """The models' files, for messages."""
        return ", ".join(model.path for model in self.models)

    @property
    def models(self) -> tuple[Framework, ...]:
        """The frameworks of the steps, and then those of the models that are none."""
        return (
            *(member.model for member in self.members),
            *(self.called[each.model].model for each in self.code.called),
        )

    @contextmanager
    def reversed(self) -> Iterator[None]:
        """Let models that Python steps ask answer their outputs in the reverse order."""
        for called in self.called.values():
            called.is_reversed = True
        try:
            yield
        finally:
            for called in self.called.values():
                called.is_reversed = False

    def __call__(self, inputs: Arrays, samples: range = UNKNOWN, *, alone: bool = False) -> dict[str, Array]:
        """Return the ensemble's outputs; raises what the members raise, with the member's name.

        ``samples``: the numbers of those that are given. ``alone``: they are run so that it is known of which sample a
        request to another model is.
        """
        tensors = dict(inputs)
        for passage in self.passages(inputs, samples, alone=alone):
            tensors |= _passed_on(passage.member.step, passage.outputs)
        return {name: tensors[name] for name in self.outputs}

    def passages(self, inputs: Arrays, samples: range = UNKNOWN, *, alone: bool = False) -> tuple[Passage, ...]:
        """Return the inputs and outputs of every member, in the steps' order; the arguments are those of a call.

        Raises the StageError of a member's loader, with the member's name.
        """
        for called in self.called.values():
            called.samples, called.is_alone = samples, alone
        tensors = dict(inputs)
        passed = []
        bare = set[str]()
        for member in self.members:
            found = {name: tensors[tensor] for name, tensor in member.step.inputs.items()}
            scalars = {name for name, tensor in member.step.inputs.items() if tensor in bare}
            given = server_tensors.received(member.step, member.model, found, scalars)
            try:
                outputs = member.model(given)
            except StageError as error:
                raise StageError(
                    error.reason, f"model {member.step.model}: {error.message}", final=error.final
                ) from error
            passed.append(Passage(member, given, outputs))
            tensors |= _passed_on(member.step, outputs)
            made = member.step.outputs.items()
            bare |= {tensor for name, tensor in made if server_tensors.is_bare(member.step, outputs[name])}
        return tuple(passed)


def _passed_on(step: Step, outputs: Arrays) -> Arrays:
    """Return the ensemble's tensors that a step makes."""
    return {tensor: server_tensors.answered(step, outputs[name]) for name, tensor in step.outputs.items()}


def load(source: Path, model: ModelCode, output_format: str) -> Ensemble:
    """Load every model with its own format's loader, and let the Python steps ask those that they call.

    Raises StageError: what those raise; InvalidSpec if a step's maps do not fit its model's tensors, if a step comes
    before the one that makes its input, or if a step calls a model that there is not.
    """
    assert model.ensemble is not None
    code, members = model.ensemble, []
    models = {each.model: _loaded(source, each) for each in code.models}
    asked = {name for each in code.models for name in each.code.calls}
    if unknown := sorted(asked - set(models)):
        raise StageError(Reason.INVALID_SPEC, f"calls names {unknown[0]}, but spec.models has no such model: add it")
    called = {each.model: CalledModel(each, models[each.model]) for each in code.models if each.model in asked}
    known = {tensor.name for tensor in code.inputs}
    for step in code.steps:
        loaded = models[step.model]
        _check(step, loaded, known)
        known |= set(step.outputs.values())
        if isinstance(loaded, PythonStep):
            loaded = replace(loaded, called={name: called[name].answer for name in step.code.calls})
        members.append(Member(step, loaded))
    return Ensemble(tuple(members), called, code, source)


def _loaded(source: Path, step: Step) -> Framework:
    try:
        return framework.load(source, step.code, step.code.format)
    except StageError as error:
        raise StageError(error.reason, f"model {step.model}: {error.message}", final=error.final) from error


def _check(step: Step, model: Framework, known: set[str]) -> None:
    where = f"spec.ensemble.steps: model {step.model}"
    if set(step.inputs) != set(model.inputs):
        message = f"{where}: inputMap has {sorted(step.inputs)}, but the model's inputs are {sorted(model.inputs)}"
        raise StageError(Reason.INVALID_SPEC, message)
    if missing := sorted(set(step.outputs) - set(model.outputs)):
        message = f"{where}: outputMap has {missing[0]}, but the model's outputs are {sorted(model.outputs)}"
        raise StageError(Reason.INVALID_SPEC, message)
    if late := sorted(set(step.inputs.values()) - known):
        raise StageError(
            Reason.INVALID_SPEC, f"{where}: no earlier step makes the tensor {late[0]}; change the order of the steps"
        )
