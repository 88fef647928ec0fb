"""All variants of one model: what each is worth on hidden samples, and what the gates say of it."""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import onnx

from bench.gates import right, subjects
from bench.gates.decisions import Truth, truth
from bench.gates.right import Open, Run
from bench.gates.subjects import Subject
from bench.gates.surgery import Surgery, lifted
from bench.gates.trial import FILE, LARGEST_BATCH, Reference, batched, reference, verdict
from bench.gates.wrong import WRONG, Known, Rule
from hack.gate_rates import Row
from tests.zoo.fetch import fetch
from tests.zoo.models import BY_NAME
from triton_converters.claim_store.dump import Array
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.convert.onnx_precision import to_fp16
from triton_converters.found.batches import has_batch_dimension
from triton_converters.gates.precision import weight_data_types
from triton_converters.load.onnx_mending import mend

HIDDEN = 256
"""Samples that decide what a variant is worth; no gate sees them."""
OWN = 64
"""Samples of the user's dataloader, of the same kind."""
TYPICAL = 8
"""Hidden samples that the rules look at."""
HIDDEN_SEED, OWN_SEED = 1, 2
PRECISIONS = ("fp32", "fp16")


@dataclass(frozen=True)
class Variant:
    """A graph and how it is run."""

    rule: str
    place: str
    graph: Any
    open: Open


Tell = Callable[[str], None]
"""Is told what does not apply, and why."""


@dataclass(frozen=True)
class Case:
    """A subject with all that its variants are judged by."""

    subject: Subject
    folder: Path
    model: Any
    size: int
    """The largest batch; 0: there is no batch dimension."""
    hidden: list[dict[str, Array]]
    framework: dict[str, list[Array]]
    """The framework's outputs for the hidden samples."""
    references: dict[bool, Reference | StageError]
    """The references that the operator makes, with and without a dataloader, or why it makes none."""


def rows(subject: Subject, precision: str, tell: Tell) -> Iterator[Row]:
    """Yield the rows of a subject in a precision. Raises RuntimeError if it does not answer its own samples."""
    with tempfile.TemporaryDirectory() as name:
        case = prepare(subject, Path(name))
        for variant in variants(case, tell):
            yield from _judged(case, variant, precision, tell)


def prepare(subject: Subject, folder: Path) -> Case:
    """Make the references and the hidden samples of a subject. Raises RuntimeError as ``rows``."""
    source = folder / "source"
    source.mkdir()
    _write(subject, source)
    hidden, own = (_samples(subject, count, seed) for count, seed in ((HIDDEN, HIDDEN_SEED), (OWN, OWN_SEED)))
    size = LARGEST_BATCH if has_batch_dimension(source, FILE) else 0
    references = {
        loads: _reference(source, size, folder / str(loads), own if loads else None) for loads in (True, False)
    }
    made = [each.signature.max_batch_size for each in references.values() if isinstance(each, Reference)]
    if size and made and not made[0]:
        size, hidden = 0, _whole(hidden) or []
    model = lifted(onnx.load(str(source / FILE)))
    framework = _answers(right.PLAIN(model, tuple(Surgery(model).outputs())), hidden, size)
    if framework is None:
        raise RuntimeError(f"{subject.name} does not answer its own samples")
    return Case(subject, folder, model, size, hidden, framework, references)


def _write(subject: Subject, source: Path) -> None:
    """Put the subject's graph into ``source``."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / fetch(BY_NAME[subject.model], Path(name))
        graph = onnx.load(str(path))
    mend(graph)
    if subject.derive is not None:
        graph = subject.derive(graph)
    onnx.save(graph, str(source / FILE))


def _samples(subject: Subject, count: int, seed: int) -> list[dict[str, Array]]:
    random = numpy.random.default_rng(seed)
    return [subject.sample(random) for _ in range(count)]


def _whole(samples: list[dict[str, Array]] | None) -> list[dict[str, Array]] | None:
    """Return samples as requests of one sample each, for a model whose samples must not share a batch."""
    return samples and [{name: array[None] for name, array in each.items()} for each in samples]


def _reference(source: Path, size: int, folder: Path, own: list[dict[str, Array]] | None) -> Reference | StageError:
    """Return the reference that the operator makes: without batches where it fails with them. Or why it makes none."""
    failed = None
    for each in (size, 0) if size else (0,):
        try:
            return reference(source, each, folder / str(each), own if each == size else _whole(own))
        except StageError as error:
            failed = error
            if error.reason is not Reason.BATCHING_UNSUPPORTED:
                break
    assert failed is not None
    return failed


def _answers(ask: Run, samples: list[dict[str, Array]], size: int) -> dict[str, list[Array]] | None:
    """Return the outputs of all samples, by name, in the samples' order; None: a request failed."""
    found: dict[int, dict[str, Array]] = {}
    try:
        for numbers, inputs in batched(samples, size):
            answered = {name: numpy.asarray(array) for name, array in ask(inputs).items()}
            for index, number in enumerate(numbers):
                found[number] = {name: array[index, ...] if size else array for name, array in answered.items()}
    except Exception:
        return None
    return {name: [found[number][name] for number in range(len(samples))] for name in found[0]}


def _truth(case: Case, served: dict[str, list[Array]] | None) -> Truth:
    """Judge samples of one shape together: the worst loudness, and the mean share of changed decisions."""
    nothing = Truth(-numpy.inf, 1.0)
    if served is None:
        return nothing
    shapes = [tuple(arrays[number].shape for arrays in case.framework.values()) for number in range(HIDDEN)]
    if shapes != [tuple(served[name][number].shape for name in case.framework) for number in range(HIDDEN)]:
        return nothing

    def judged(numbers: list[int]) -> Truth:
        expected, actual = (
            {name: numpy.stack([arrays[number] for number in numbers]) for name, arrays in side.items()}
            for side in (case.framework, served)
        )
        return truth(expected, actual, case.subject.decisions, case.subject.dense, case.subject.hidden)

    groups = [[number for number, each in enumerate(shapes) if each == shape] for shape in dict.fromkeys(shapes)]
    found = [(len(group), judged(group)) for group in groups]
    return Truth(min(each.decibels for _, each in found), sum(count * each.changed for count, each in found) / HIDDEN)


def _known(case: Case) -> Known:
    _, typical = next(batched(case.hidden, case.size and TYPICAL))
    outputs = tuple(Surgery(case.model).outputs())

    def inside(graph: Any, names: list[str]) -> dict[str, Array]:
        watched = Surgery(graph)
        watched.graph.output.extend(onnx.helper.make_empty_tensor_value_info(each) for each in names)
        return right.PLAIN(watched.model, tuple(names))(typical)

    lengths: dict[str, dict[int, tuple[int, ...]]] = {name: {} for name in typical}
    for name, array in case.hidden[0].items():
        for axis in range(array.ndim):
            found = tuple(sorted(row[name].shape[axis] for row in case.hidden))
            if len(set(found)) > 1:
                lengths[name][axis + bool(case.size)] = found
    return Known(typical, inside, right.PLAIN(case.model, outputs)(typical), lengths, case.size > 0)


def variants(case: Case, tell: Tell) -> Iterator[Variant]:
    """Yield every variant of the model, the wrong ones first."""
    known = _known(case)
    for rule, make in WRONG.items():
        for place, graph in _tried(rule, partial(_places, make, case.model, known), tell) or ():
            yield Variant(rule, place, graph, right.PLAIN)
    for rule, each in right.RIGHT.items():
        if each.batched and not case.size:
            tell(f"{rule}: does not apply")
        elif graph := _tried(rule, partial(each.graph, case.model), tell):
            yield Variant(rule, "", graph, each.engine)


def _places(make: Rule, model: Any, known: Known) -> list[tuple[str, Any]]:
    return list(make(model, known))


def _tried(rule: str, make: Callable[[], Any], tell: Tell) -> Any:
    """Return what a rule makes; None, after telling why: it does not apply, or cannot be made."""
    try:
        made = make()
    except Exception as error:
        tell(f"{rule}: cannot be made: {type(error).__name__}: {str(error)[:200]}")
        return None
    if not made:
        tell(f"{rule}: does not apply")
    return made


def graph_of(variant: Variant, precision: str) -> Any:
    """Return the variant's graph in a precision. Raises what ``to_fp16`` raises."""
    graph = onnx.ModelProto()
    graph.CopyFrom(variant.graph)
    return to_fp16(graph) if precision == "fp16" else graph


def _judged(case: Case, variant: Variant, precision: str, tell: Tell) -> Iterator[Row]:
    label = f"{variant.rule} {variant.place} {precision}"
    path, started = case.folder / "variant.onnx", time.monotonic()
    try:
        graph = graph_of(variant, precision)
        onnx.save(graph, str(path))
        if precision == "fp16" and "FP64" in weight_data_types(path, "onnx"):
            tell(f"{label}: a model in double precision has no fp16 variant")
            return
        ask = variant.open(graph, tuple(case.framework))
    except Exception as error:
        tell(f"{label}: cannot be made or opened: {type(error).__name__}: {str(error)[:200]}")
        return
    worth = _truth(case, _answers(ask, case.hidden, case.size))
    for loads, made in case.references.items():
        failed = made if isinstance(made, StageError) else verdict(ask, path, precision, made)
        yield Row(
            subject=case.subject.name,
            rule=variant.rule,
            place=variant.place,
            precision=precision,
            dataloader=loads,
            wrong=worth.is_wrong,
            is_right=variant.rule in right.RIGHT and not worth.is_wrong,
            decibels=round(worth.decibels, 1) if numpy.isfinite(worth.decibels) else None,
            changed=round(worth.changed, 4),
            reason=str(failed.reason if failed else Reason.PASSED),
            message=failed.message if failed else "",
        )
    tell(f"{label}: {worth.decibels:.1f} dB, {worth.changed:.2%} changed, {time.monotonic() - started:.1f} s")


def main() -> None:
    """Print a subject's rows in a precision as JSON, a line each; what does not apply is a string."""
    name, precision = sys.argv[1:]
    tell = partial(print, file=sys.stdout, flush=True)
    # The reference prints how far it is.
    with redirect_stdout(sys.stderr):
        for row in rows(subjects.BY_NAME[name], precision, lambda text: tell(json.dumps(text))):
            tell(json.dumps(asdict(row)))


if __name__ == "__main__":
    main()
