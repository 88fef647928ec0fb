"""Inputs for a model without a dataloader: made from what the model's graph declares, in sizes that it accepts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.conversion_requests import ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import SOURCE_FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.found import axes
from triton_converters.load.framework import Framework
from triton_converters.load.graph_inputs import FLAGS, DeclaresInputs, GraphInput, KnowsRows
from triton_converters.model_config.data_types import is_served, strings
from triton_converters.stages.reference import soundness

BATCHES = 8
ENOUGH = 3
"""Samples of which one may be black: two others still show that an answer varies."""
FLOATS = ("float16", "float32", "float64")
SIZES = (224, 128, 256, 64, 32, 320, 512, 640, 1024, 16, 8, 4, 3, 2, 1, 16000)
"""Sizes to try for dimensions that the graph leaves open: pictures and texts first, then other multiples and small
numbers, then a second of speech."""
USUAL = SIZES[:3]
"""Sizes of all other dimensions while one of them takes every size."""
SPECIAL_SHARE = 0.1
"""Share of the words of a text that are special to the graph."""
EXACT = 2**53
"""Beyond it, floating point does not hold every integer."""
MOST_ELEMENTS = 2**25
"""Elements of all inputs of a batch, beyond which a size is not tried."""
WORDS = ("a", "good", "day", "for", "the", "new", "model", "and", "its", "users")
NO_ARRAYS: Mapping[str, Array] = {}
ADVICE = "write a dataloader and name it in spec.dataloader"

Sizes = Mapping[str, int]
"""Sizes by the names of the dimensions that the graph leaves open."""


@dataclass(frozen=True)
class Fill:
    """What integers of which nothing is known are, and masks of any type."""

    flags: tuple[int, int]
    """From the first number to below the second."""
    is_wide: bool = False
    """Whether amounts are of the whole range of their type instead."""
    is_highest: bool = False
    """Whether only the largest number is given."""

    def limits(self, declared: GraphInput) -> tuple[int, int]:
        """Return the first number that an input may hold, and the one after the last."""
        if not declared.is_flags and not declared.may_choose:
            return 0, declared.limit
        first, limit = self.flags if declared.is_flags else (0, declared.limit)
        if self.is_wide and declared.is_amounts:
            known = numpy.iinfo(declared.type)
            first = int(known.min)
            limit = int(known.max) + 1
        return (limit - 1, limit) if self.is_highest else (first, limit)


FILLS = (Fill((0, 2), is_wide=True), Fill((0, 2)), Fill((1, 2)), Fill((0, 1)))
"""What is tried in turn. A text without a single word may have no answer, and neither has an edge without a node."""


@dataclass(frozen=True)
class Recipe:
    """How inputs are made."""

    inputs: tuple[GraphInput, ...]
    sizes: Sizes
    fill: "Fill"

    def make(self, batch_size: int | None, random: numpy.random.Generator) -> dict[str, Array]:
        """Return inputs by name. ``batch_size``: the first size of each; None: there is no batch dimension."""
        return {each.name: self._values(each, self._shape(each, batch_size), random) for each in self.inputs}

    def elements(self, batch_size: int | None) -> int:
        """Return the number of elements of all inputs together."""
        return sum(prod(self._shape(each, batch_size)) for each in self.inputs)

    def _shape(self, declared: GraphInput, batch_size: int | None) -> tuple[int, ...]:
        batch, dims = ((), declared.dims) if batch_size is None else ((batch_size,), declared.dims[1:])
        return (*batch, *(each if isinstance(each, int) else self.sizes[each] for each in dims))

    def _values(self, declared: GraphInput, shape: tuple[int, ...], random: numpy.random.Generator) -> Array:
        if declared.type == "str":
            words = random.choice(numpy.array(WORDS), shape).astype(object)
            _categorize(words, declared, random)
            return strings(words)
        is_float = declared.type in FLOATS and not declared.is_flags
        if is_float or declared.is_table:
            drawn = "float32" if declared.type == "float16" else declared.type if is_float else "float64"
            values = random.random(shape, numpy.dtype(drawn))
            for column, points in enumerate(declared.points):
                values[..., column] = numpy.interp(values[..., column], numpy.linspace(0, 1, len(points)), points)
            _categorize(values, declared, random)
            return values.astype(declared.type) if is_float else _whole(values, declared.type)
        if declared.is_lengths and self.sizes:
            longest = max(self.sizes.values())
            return random.integers(longest // 2, longest + 1, shape).astype(declared.type)
        first, limit = self.fill.limits(declared)
        found = random.integers(first, limit, shape).astype(declared.type)
        if special := [] if declared.is_flags else [each for each in declared.special if first <= each < limit]:
            chosen = random.choice(numpy.array(special, dtype=declared.type), shape)
            found = numpy.where(random.random(shape) < SPECIAL_SHARE, chosen, found)
        return found


def _categorize(values: Array, declared: GraphInput, random: numpy.random.Generator) -> None:
    """Fill the columns whose categories are known with some of these."""
    for column, given in enumerate(declared.categories):
        place = ... if len(declared.categories) == 1 else (..., column)
        known = [each for each in given if isinstance(each, str) == (declared.type == "str")]
        if known:
            values[place] = random.choice(numpy.array(known, dtype=values.dtype), values[place].shape)


def _whole(values: Array, kind: str) -> Array:
    """Return numbers rounded to those of an integer type, of which floating point holds every one."""
    limits = numpy.iinfo(kind)
    return numpy.clip(numpy.rint(values), max(limits.min, -EXACT), min(limits.max, EXACT)).astype(kind)


def batches(model: Framework, request: ReferenceRequest) -> Iterator[Batch]:
    """Yield some batches of different content, which is the same for the same source; outputs are empty.

    Raises StageError: InputsNotGenerated, BatchingUnsupported, FrameworkFailed (an output has a type that cannot be
    served), and what the model raises besides FrameworkFailed.
    """
    random = numpy.random.default_rng(int(request.source, 16))
    batch_size = request.largest_batch_size if request.model.max_batch_size else None
    declared = _declared(model, request)
    if isinstance(model, KnowsRows):
        yield from _rows(model.rows(request.max_samples, random), request)
        return
    recipe = _accepted(model, declared, batch_size, random)
    wide = _widened(model, recipe, None if batch_size is None else 1, random)
    if wide is not recipe:
        made = _made(model, request, wide)
        answers = (_is_answered(model, each.inputs, batch_size and len(each.ids)) for each in made)
        recipe = wide if all(answers) else recipe
    yield from _made(model, request, recipe)


def _rows(inputs: Arrays, request: ReferenceRequest) -> Iterator[Batch]:
    """Yield inputs of all samples in batches."""
    for start in range(0, request.max_samples, request.largest_batch_size):
        part = {name: array[start : start + request.largest_batch_size] for name, array in inputs.items()}
        ids = numpy.arange(start, min(start + request.largest_batch_size, request.max_samples))
        yield Batch(ids, part, NO_ARRAYS, NO_ARRAYS)


def _made(model: Framework, request: ReferenceRequest, recipe: Recipe) -> Iterator[Batch]:
    """Yield the batches of a recipe, which are always the same."""
    random = numpy.random.default_rng(int(request.source, 16))
    batched = request.model.max_batch_size > 0
    size = request.largest_batch_size
    samples = min(request.max_samples, BATCHES * size)
    for start in range(0, samples, size):
        count = min(size, samples - start)
        inputs = recipe.make(count if batched else None, random)
        if start + count == samples and samples >= ENOUGH:
            inputs = _ending_black(model, recipe.inputs, inputs, count if batched else None)
        yield Batch(numpy.arange(start, start + count), inputs, NO_ARRAYS, NO_ARRAYS)


def refused(model: Framework, batch: Batch, error: StageError) -> StageError:
    """Return the error of a model that answered the first inputs that were generated, but not these."""
    why = f"accepts the first inputs that were generated, but not others like them, {_shapes(batch.inputs)}"
    return _failed(f"{model.path} {why}: {error.message:.300}")


def _ending_black(
    model: Framework, declared: tuple[GraphInput, ...], inputs: dict[str, Array], batch_size: int | None
) -> dict[str, Array]:
    """Return the inputs with zeros as the last sample's pictures or sounds, if the model answers that.

    What divides by a norm may be NaN there and nowhere else, for one precision alone. What chooses or hides something
    stays as it is: nobody asks about a text of nothing but padding.
    """
    black = {each.name: inputs[each.name].copy() for each in declared if _may_be_black(each)}
    for array in black.values():
        array[... if batch_size is None else -1] = 0
    if not black:
        return inputs
    answered, error = _answered(model, inputs | black, batch_size)
    return inputs if error is not None or soundness.has_infinities(answered) else inputs | black


def _may_be_black(declared: GraphInput) -> bool:
    """Whether zeros are what a camera or a microphone may give: a row of a table has its own range."""
    is_row = bool(declared.points or declared.categories)
    return declared.is_amounts or (declared.type in FLOATS and not is_row and not declared.is_flags)


def _declared(model: Framework, request: ReferenceRequest) -> tuple[GraphInput, ...]:
    """Return the inputs that the model's graph declares, if arrays for them can be served."""
    declared = model.declared if isinstance(model, DeclaresInputs) else ()
    halves = SOURCE_FORMATS[request.model.format].halves
    if not declared:
        raise _failed(f"{model.path} does not declare the types and shapes of its inputs")
    for each in declared:
        if each.type != "str" and not is_served(numpy.dtype(each.type), halves):
            message = f"input {each.name} of {model.path} is {each.type}, which a model of this format cannot have"
            advice = "export the model with float32 inputs and outputs; weights may be float16"
            raise StageError(Reason.INPUTS_NOT_GENERATED, f"{message}: {advice}")
        if request.model.max_batch_size and not (each.dims and isinstance(each.dims[0], str)):
            message = f"the first dimension of input {each.name} of {model.path} is no batch of any size"
            raise StageError(Reason.INPUTS_NOT_GENERATED, f"{message}: set models[].config.maxBatchSize to 0")
    if not request.model.max_batch_size and request.largest_batch_size > 1:
        raise _failed("without a batch dimension, only a dataloader knows what a request of several samples looks like")
    return declared


def _accepted(
    model: Framework, inputs: tuple[GraphInput, ...], batch_size: int | None, random: numpy.random.Generator
) -> Recipe:
    """Return the first way to make inputs that the model answers with finite numbers or, failing that, with numbers.

    Sizes are tried with one sample: that is quicker, and ONNX Runtime was seen to divide by zero, which ends the
    process, where a batch has a size that the model does not take.
    """
    one = None if batch_size is None else 1
    first: tuple[dict[str, Array], StageError] | None = None
    mixed: StageError | None = None
    infinite: Recipe | None = None
    for sizes in _tries(inputs, batch_size):
        for fill in _fills(inputs):
            recipe = Recipe(inputs, sizes, fill)
            if sizes and recipe.elements(batch_size) > MOST_ELEMENTS:
                continue
            made = recipe.make(one, random)
            answered, error = _answered(model, made, one)
            error = error or _refused_highest(model, recipe, one, random)
            if error is not None:
                first = first or (made, error)
                mixed = mixed or (error if error.reason is Reason.BATCHING_UNSUPPORTED else None)
            elif soundness.has_infinities(answered):
                infinite = infinite or recipe
            else:
                _check_batch(model, recipe, batch_size, random)
                return recipe
    if infinite is not None:
        _check_batch(model, infinite, batch_size, random)
        return infinite
    if mixed is not None:
        raise mixed
    if first is None:
        raise _failed(f"the inputs of {model.path} are too large to be generated")
    if batch_size is not None and _is_accepted(model, inputs, random):
        raise soundness.unbatched(f"{model.path} answers no single sample, but inputs of another first size")
    made, error = first
    does = "accepts no inputs" if error.reason is Reason.FRAMEWORK_FAILED else "answers nothing finite to the inputs"
    raise _failed(f"{model.path} {does} that were tried, first {_shapes(made)}: {error.message:.300}")


def _shapes(inputs: Arrays) -> str:
    return ", ".join(f"{name} {array.dtype}{list(array.shape)}" for name, array in inputs.items())


def _fills(inputs: Sequence[GraphInput]) -> tuple[Fill, ...]:
    """Return the fills that make a difference to these inputs."""
    if not any(each.is_flags for each in inputs):
        return FILLS[:1]
    return FILLS if any(each.is_amounts for each in inputs) else (FILLS[0], *FILLS[2:])


def _refused_highest(
    model: Framework, recipe: Recipe, batch_size: int | None, random: numpy.random.Generator
) -> StageError | None:
    """Return why the model refuses the largest integers of a recipe, which inputs made later may hold.

    None if it takes them, or answers nothing finite to nothing but these.
    """
    if not any(each.is_flags or each.may_choose for each in recipe.inputs):
        return None
    highest = replace(recipe, fill=replace(recipe.fill, is_highest=True))
    _, error = _answered(model, highest.make(batch_size, random), batch_size)
    return error if error is not None and error.reason is Reason.FRAMEWORK_FAILED else None


def _widened(model: Framework, recipe: Recipe, batch_size: int | None, random: numpy.random.Generator) -> Recipe:
    """Return the recipe with the largest integers that the model takes, one input after the other."""
    for place, declared in enumerate(recipe.inputs):
        if not declared.may_choose or (recipe.fill.is_wide and declared.is_amounts):
            continue
        before = recipe.inputs[:place]
        after = recipe.inputs[place + 1 :]
        taken = FLAGS
        limit = min(declared.most, int(numpy.iinfo(declared.type).max) + 1)
        refused = limit + 1
        while taken < limit:
            wide = replace(recipe, inputs=(*before, replace(declared, limit=limit), *after))
            is_answered = _is_answered(model, wide.make(batch_size, random), batch_size)
            if is_answered and _refused_highest(model, wide, batch_size, random) is None:
                recipe, taken = wide, limit
            else:
                refused = limit
            limit = (taken + refused) // 2
    return recipe


def _is_answered(model: Framework, inputs: Arrays, batch_size: int | None) -> bool:
    """Whether the model answers with finite numbers."""
    answered, error = _answered(model, inputs, batch_size)
    return error is None and not soundness.has_infinities(answered)


def _is_accepted(model: Framework, inputs: tuple[GraphInput, ...], random: numpy.random.Generator) -> bool:
    """Whether the model answers inputs whose first dimension is no batch."""
    try:
        _accepted(model, inputs, None, random)
    except StageError as error:
        if error.reason is not Reason.INPUTS_NOT_GENERATED:
            raise
        return False
    return True


def _check_batch(model: Framework, recipe: Recipe, batch_size: int | None, random: numpy.random.Generator) -> None:
    """Check that a model that answers one sample answers a whole batch. Raises what ``no_batch`` returns."""
    if batch_size is None or batch_size == 1:
        return
    _, error = _answered(model, recipe.make(batch_size, random), batch_size)
    if error is not None:
        raise soundness.no_batch(error, batch_size)


def _tries(inputs: Sequence[GraphInput], batch_size: int | None) -> Iterator[Sizes]:
    """Yield sizes to try. Without a batch dimension, a request is taken for one sample first."""
    names = _open(inputs, batch_size)
    single = dict.fromkeys(_samples(inputs), 1) if batch_size is None else {}
    if single:
        yield from ({**sizes, **single} for sizes in _choices([name for name in names if name not in single]))
    yield from _choices(names)


def _samples(inputs: Sequence[GraphInput]) -> Iterator[str]:
    """Yield the names of dimensions that the graph leaves open and that may count samples, of inputs with several.

    That is the first one, unless it seems to be a length, and any one that is called a batch.
    """
    for declared in inputs:
        if len(declared.dims) == 1:
            continue
        named = [_name(declared, axis) for axis in range(len(declared.dims))]
        if declared.dims and isinstance(declared.dims[0], str) and not axes.is_length(named):
            yield declared.dims[0]
        yield from filter(axes.is_batch, named)


def _name(declared: GraphInput, axis: int) -> str:
    """Return the name that the graph gives to a dimension; empty: none, or a size."""
    size = declared.dims[axis]
    return size if isinstance(size, str) and size != f"{declared.name}[{axis}]" else ""


def _open(inputs: Sequence[GraphInput], batch_size: int | None) -> list[str]:
    """Return the names of dimensions whose sizes are not known yet, each once."""
    skipped = 0 if batch_size is None else 1
    names = (each for declared in inputs for each in declared.dims[skipped:] if isinstance(each, str))
    return list(dict.fromkeys(names))


def _choices(names: Sequence[str]) -> Iterator[Sizes]:
    """Yield sizes to try: first one for all dimensions, then another one for each of them in turn."""
    if not names:
        yield {}
        return
    yield from (dict.fromkeys(names, size) for size in SIZES)
    if len(names) > 1:
        for usual in USUAL:
            others = [size for size in SIZES if size != usual]
            yield from ({**dict.fromkeys(names, usual), name: size} for name in names for size in others)


def _answered(model: Framework, inputs: Arrays, batch_size: int | None) -> tuple[Arrays, StageError | None]:
    """Return the model's outputs, and why they are no answer; None: they are one."""
    try:
        answered = Batch(numpy.arange(batch_size or 1), inputs, NO_ARRAYS, model(inputs))
    except StageError as error:
        if error.reason is not Reason.FRAMEWORK_FAILED:
            raise
        return NO_ARRAYS, error
    # Other inputs would change no type. Whether it may be float16 is judged with all other answers.
    soundness.check_types(answered.outputs, halves=True)
    try:
        soundness.check_outputs(answered, batched=batch_size is not None, halves=True)
    except StageError as error:
        return answered.outputs, error
    return answered.outputs, None


def _failed(message: str) -> StageError:
    return StageError(Reason.INPUTS_NOT_GENERATED, f"{message}; {ADVICE}")
