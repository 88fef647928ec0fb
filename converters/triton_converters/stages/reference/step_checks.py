"""Whether a Python step answers the same again, several requests as each alone, and other models in any order."""

from collections.abc import Sequence

from triton_converters.claim_store.dump import Array, Arrays
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.load.ensemble import Ensemble, Member
from triton_converters.load.triton_python import PythonStep
from triton_converters.stages.reference import evidence
from triton_converters.stages.reference.soundness import disagreement, usual_sizes


def check_step(ensemble: Ensemble, member: Member, passed: Sequence[Arrays]) -> None:
    """Ask a Python step twice, and hand it requests of equal and of unequal rows at once, as the server's batcher does.

    What one loop gets wrong mixes requests. Raises StageError: ReferenceNotReproducible if it answers otherwise the
    second time; BatchingUnsupported if one of several requests is answered otherwise than alone; what ``_check_order``
    raises.
    """
    model, name, largest = member.model, member.step.model, member.step.code.max_batch_size
    if not isinstance(model, PythonStep):
        return
    requests = evidence.requests(passed) if largest else passed[:1]
    alone = [_connected(member, model(each)) for each in requests]
    _check_same(_connected(member, model(requests[0])), alone[0], name)
    _check_order(ensemble, member, requests, alone)
    if len(requests) < 2:
        return
    _check_at_once(member, model, requests, alone)
    if unequal := evidence.unequal(requests, largest):
        try:
            alone = [_connected(member, model(each)) for each in unequal]
        except StageError as error:
            # Two rows in one request are more than some ensembles ever hand on.
            if error.reason is Reason.FRAMEWORK_FAILED:
                return
            raise
        _check_at_once(member, model, unequal, alone)


def _check_at_once(member: Member, model: PythonStep, requests: Sequence[Arrays], alone: Sequence[Arrays]) -> None:
    """Hand a Python step all requests at once; ``alone``: its answers to each; raises as ``check_together``."""
    name = member.step.model
    try:
        together = model.together(requests)
    except StageError as error:
        if error.reason is not Reason.FRAMEWORK_FAILED:
            raise
        raise _mixed(name, f"one of {len(requests)} fails: {error.message}") from error
    check_together([_connected(member, each) for each in together], alone, name)


def _check_order(ensemble: Ensemble, member: Member, requests: Sequence[Arrays], alone: Sequence[Arrays]) -> None:
    """Answer the requests of a step to other models with the outputs in another order.

    Raises StageError(ConversionUnsupported) if the step's answer is another one.
    """
    several = [each for each in member.step.code.calls if len(ensemble.called[each].model.outputs) > 1]
    if not several:
        return
    with ensemble.reversed():
        for inputs, answer in zip(requests, alone, strict=True):
            try:
                differs = disagreement(_connected(member, member.model(inputs)), answer)
            except StageError as error:
                differs = error.message
            if differs is not None:
                raise _ordered(member.step.model, several, differs)


def _connected(member: Member, outputs: Arrays) -> dict[str, Array]:
    """Return the outputs that the ensemble uses."""
    return {name: outputs[name] for name in member.step.outputs}


def _check_same(again: Arrays, first: Arrays, model: str) -> None:
    """Check that a Python step answers a request as it did before.

    ``model``: the model's name. Raises StageError(ReferenceNotReproducible).
    """
    if worst := disagreement(again, first, usual_sizes({name: [array] for name, array in first.items()})):
        message = f"model {model} answers one request in two ways ({worst}): answer by its inputs, or set a seed"
        raise StageError(Reason.REFERENCE_NOT_REPRODUCIBLE, message)


def check_together(together: Sequence[Arrays], alone: Sequence[Arrays], model: str) -> None:
    """Check that a Python step answers requests that ``execute`` gets at once as it answers each alone.

    It may pad to the longest of all, with any number, as a tokenizer does; of an answer alone it may cut nothing but
    zeros. ``model``: the model's name. Raises StageError(BatchingUnsupported).
    """
    usual = usual_sizes({name: [each[name] for each in alone] for name in alone[0]})
    for number, (one, other) in enumerate(zip(together, alone, strict=True), start=1):
        worst = disagreement(_without_padding(one, other), other, usual)
        if worst is not None:
            raise _mixed(model, f"number {number} of {len(alone)}, {worst}")


def _without_padding(together: Arrays, alone: Arrays) -> dict[str, Array]:
    """Return the outputs without what lies beyond the end of those that were computed alone."""
    return {name: array[tuple(map(slice, alone[name].shape[: array.ndim]))] for name, array in together.items()}


def _mixed(model: str, what: str) -> StageError:
    """Return the error of a Python step that answers requests otherwise when ``execute`` gets several at once."""
    message = f"model {model}: execute answers requests that it gets at once otherwise than alone ({what})"
    advice = "answer each by its own inputs, in their order, or set models[].config.maxBatchSize to 0"
    return StageError(Reason.BATCHING_UNSUPPORTED, f"{message}; {advice}")


def _ordered(model: str, asked: Sequence[str], what: str) -> StageError:
    """Return the error of a Python step whose answer depends on the order of another model's outputs."""
    message = f"model {model}: it takes outputs of {', '.join(asked)} by their place in output_tensors() ({what})"
    advice = "servers differ in their order; take each by pb_utils.get_output_tensor_by_name(response, NAME)"
    return StageError(Reason.CONVERSION_UNSUPPORTED, f"{message}; {advice}")
