"""The gate's verdict on kinds of outputs: what is wrong never passes, what is right passes at every scale."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy
import pytest

from triton_converters.claim_store.dump import Array, Arrays, Batch
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import IntegerTolerance, Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import Signature, Tensor
from triton_converters.gates import outputs
from triton_converters.gates.answers import collect, scales_of
from triton_converters.gates.outputs import check_outputs
from triton_converters.gates.variation import Variation
from triton_converters.model_config.data_types import triton_type

DEFAULT = {"fp32": Tolerance(1e-4, 1e-4), "fp16": Tolerance(1e-2, 1e-2)}
RANDOM = numpy.random.default_rng(11)
SCALES = [10.0**power for power in range(-12, 13, 3)]


@dataclass(frozen=True)
class Case:
    """What the framework and the server answer to all samples, and the words of the verdict; empty: it passes."""

    framework: Array
    served: Array
    words: str = ""
    precision: str = "fp32"
    tolerance: Tolerance | None = None


def verdict(case: Case, batch_size: int = 8) -> str:
    """The gate's complaint; empty if the answers agree."""
    # A number of detections or a length varies.
    shape = [-1, *case.framework.shape[2:]] if case.framework.ndim > 1 else []
    signature = Signature(
        (Tensor("X", "INT32", (1,)),), (Tensor("OUT", str(triton_type(case.framework.dtype)), tuple(shape)),), 4
    )

    def batches() -> Iterator[Batch]:
        for start in range(0, len(case.framework), batch_size):
            rows = numpy.arange(len(case.framework), dtype=numpy.int32)[start : start + batch_size]
            yield Batch(rows, {"X": rows[:, None]}, {}, {"OUT": case.framework[rows]})

    def infer(inputs: Arrays, outputs: tuple[str, ...]) -> dict[str, Array]:
        return {"OUT": case.served[inputs["X"][:, 0]]}

    tolerance = case.tolerance or DEFAULT[case.precision]
    scales = scales_of(batches(), True, tolerance, case.precision)
    answered = collect(infer, batches(), signature, tolerance, scales)
    try:
        check_outputs(answered, case.precision, tolerance)
    except StageError as error:
        return error.message if error.reason is Reason.OUTPUTS_DIFFER else str(error.reason)
    return ""


def single(array: Array) -> Array:
    return array.astype(numpy.float32)


def normal(*shape: int) -> Array:
    return single(RANDOM.normal(size=shape))


def softmax(logits: Array) -> Array:
    powers = numpy.exp(logits - logits.max(axis=-1, keepdims=True))
    return single(powers / powers.sum(axis=-1, keepdims=True))


def unit(array: Array) -> Array:
    return single(array / numpy.linalg.norm(array, axis=-1, keepdims=True))


def noisy(array: Array, share: float = 1e-6) -> Array:
    """Another runtime's rounding: noise as a share of each element, and of the size of its column."""
    columns = numpy.sqrt(numpy.mean(numpy.square(array, dtype=numpy.float64), axis=0))
    noise = RANDOM.normal(size=array.shape) * share
    return single(array + noise * array + RANDOM.normal(size=array.shape) * share * columns * (array != 0))


def half(array: Array) -> Array:
    return array.astype(numpy.float16).astype(numpy.float32)


def turned(array: Array, cosine: float) -> Array:
    """Unit vectors at that cosine from the given ones."""
    other = normal(*array.shape)
    across = unit(other - (other * array).sum(axis=-1, keepdims=True) * array)
    return single(cosine * array + numpy.sqrt(1 - cosine**2) * across)


LOGITS = normal(32, 50)
FLAT = softmax(normal(16, 32000) * 0.1)
WINNER = softmax(normal(16, 1000) * 4)
EMBEDDINGS = unit(normal(32, 768))
OUTLIER = unit(normal(32, 768) + 40 * numpy.eye(768)[5])
SIGNS = RANDOM.choice([-0.007, 0.007], (32, 768))
SPARSE = single(numpy.where(RANDOM.random((32, 200)) < 0.02, 50 * RANDOM.random((32, 200)), 0))
CHANNELS = normal(32, 2, 40) * single(numpy.array([[1e3], [1e-3]]))
RESIDUAL = normal(16, 64) * single(numpy.array(1e-8))
CONSTANT = single(numpy.tile(RANDOM.random(20), (16, 1)))
DEGREES = single(300 + RANDOM.normal(size=(32, 1)))
BOXES = single(RANDOM.random((16, 100, 6)) * [640, 640, 640, 640, 1, 80])
SCORES_LOST = BOXES * single(numpy.array([1, 1, 1, 1, 0, 1]))
FEW_BOXES = BOXES[:3, 0, :5]
FEW_INVERTED = single(numpy.concatenate([FEW_BOXES[:, :4], 1 - FEW_BOXES[:, 4:]], axis=1))
TAILED = single(numpy.append(RANDOM.uniform(1, 10, 99), 1e6)[:, None])
SEVERAL_TAILED = single(numpy.where(RANDOM.random((64, 8, 5)) < 0.3, 1e6, RANDOM.uniform(1, 10, (64, 8, 5))))
TAILED_COLUMN = single(numpy.concatenate([RANDOM.uniform(300, 600, (100, 4)), TAILED], axis=1))
TAILED_HALVED = single(TAILED_COLUMN * numpy.where(TAILED_COLUMN < 100, 0.5, 1))
LOGNORMAL = single(10 * numpy.exp(RANDOM.normal(0, 3, (200, 1))))
ANCHORS = single(RANDOM.random((8, 84, 300)) * numpy.array([640] * 4 + [0.1] * 80)[:, None])
EDGE = numpy.float32(0.3)
ANCHORS[:, 0, ::7] = EDGE
NEAR_ZERO = BOXES.copy()
NEAR_ZERO[:, ::7, 0] = 0.3
CLASSES = RANDOM.integers(0, 3, (400, 1))
RARE = (numpy.arange(400) == 7).astype(numpy.int64)[:, None]
OFTEN = (numpy.arange(400) % 80 == 7).astype(numpy.int64)[:, None]
RARE_PIXEL = numpy.tile(RANDOM.integers(0, 3, 100), (8, 1))
RARE_PIXEL[5, 7] += 1
REGIONS = RANDOM.choice([1, 2, 3], (8, 32, 32))
SPOTS = numpy.where(RANDOM.random(REGIONS.shape) < 0.008, 4, REGIONS)
PRICES = single(20_000 + 5 * RANDOM.normal(size=(64, 1)))
PRICED = single(numpy.concatenate([PRICES, 20_000 + 5 * RANDOM.normal(size=(64, 1))], axis=1))
NUMBERS = single(RANDOM.integers(0, 5000, (64, 1)))
FEW_NUMBERS = single(RANDOM.integers(0, 1000, (64, 1)))
IN_HALVES = half(1500 + 100 * normal(64, 1))
MASK = RANDOM.random(LOGITS.shape) < 0.9
HIDDEN, HIDDEN_IN_FP16 = (numpy.where(MASK, numpy.float32(value), LOGITS) for value in (-1e9, -1e4))
LOST = numpy.where(MASK, HIDDEN, LOGITS[::-1])
HALVED = numpy.where(MASK, HIDDEN_IN_FP16, LOGITS / 2)
BLURRED = numpy.where(MASK, HALVED, HALVED + 0.009 * numpy.sign(normal(*LOGITS.shape)))
SELDOM = RANDOM.random(LOGITS.shape) < numpy.linspace(0, 1, 32)[:, None]
FEWER = numpy.where(SELDOM, -1e4, LOGITS / 2)
FEWER_BLURRED = numpy.where(SELDOM, FEWER, FEWER + 0.009 * numpy.sign(normal(*LOGITS.shape)))
EMPTY = numpy.zeros((8, 0, 4), numpy.float32)
FOUND = normal(8, 3, 4)
LOOSE = Tolerance(1e3, 1e3)
ZERO, SAME = "is 0 in every element", "is the same"

CASES: dict[str, Case] = {
    "logits, noise": Case(LOGITS, noisy(LOGITS)),
    "logits, fp16": Case(LOGITS, half(LOGITS), precision="fp16"),
    "logits, zeros": Case(LOGITS, LOGITS * 0, ZERO),
    "logits, 5 % off": Case(LOGITS, LOGITS * single(numpy.array(1.05)), "outside", "fp16"),
    "logits, of another sample": Case(LOGITS, LOGITS[::-1], "outside"),
    "factor 3e-9 lost in fp16": Case(LOGITS * numpy.float32(3e-9), LOGITS * 0, ZERO, "fp16"),
    "divisor 1e9 clamped in fp16": Case(LOGITS / numpy.float32(1e9), LOGITS / numpy.float32(65504), "outside", "fp16"),
    "flat softmax, noise": Case(FLAT, noisy(FLAT)),
    "flat softmax, fp16": Case(FLAT, half(FLAT), precision="fp16"),
    "flat softmax, zeros": Case(FLAT, FLAT * 0, ZERO),
    "flat softmax, of another sample": Case(FLAT, FLAT[::-1], "outside"),
    "softmax with a winner, noise": Case(WINNER, noisy(WINNER)),
    "softmax with a winner, fp16": Case(WINNER, half(WINNER), precision="fp16"),
    "softmax with a winner, zeros": Case(WINNER, WINNER * 0, ZERO, "fp16"),
    "embeddings, noise": Case(EMBEDDINGS, noisy(EMBEDDINGS)),
    "embeddings, fp16": Case(EMBEDDINGS, turned(half(EMBEDDINGS), 0.99999), precision="fp16"),
    "embeddings at cosine 0.988": Case(EMBEDDINGS, turned(EMBEDDINGS, 0.988), "outside", "fp16"),
    "embeddings at cosine 0.988 in fp32": Case(EMBEDDINGS, turned(EMBEDDINGS, 0.988), "outside"),
    "one large dimension, fp16": Case(OUTLIER, half(OUTLIER), precision="fp16"),
    "one large dimension, cosine 0.988": Case(OUTLIER, turned(OUTLIER, 0.988), "outside", "fp16"),
    "one large dimension, all others a little off": Case(OUTLIER, single(OUTLIER + SIGNS), "of its size", "fp16"),
    "sparse, noise": Case(SPARSE, noisy(SPARSE)),
    "sparse, fp16": Case(SPARSE, half(SPARSE), precision="fp16"),
    "sparse, zeros": Case(SPARSE, SPARSE * 0, ZERO),
    "channels of two scales, noise": Case(CHANNELS, noisy(CHANNELS)),
    "channels of two scales, the small one lost": Case(CHANNELS, single(CHANNELS * [[1], [0]]), "outside"),
    "boxes, noise": Case(BOXES, noisy(BOXES)),
    "boxes, fp16": Case(BOXES, half(BOXES), precision="fp16"),
    "boxes at the edge, half a pixel off": Case(NEAR_ZERO, single(NEAR_ZERO + 0.5 * (NEAR_ZERO == 0.3)), "", "fp16"),
    "boxes without scores": Case(BOXES, SCORES_LOST, "outside", "fp16"),
    "boxes of three samples, noise": Case(FEW_BOXES, noisy(FEW_BOXES)),
    "boxes of three samples, fp16": Case(FEW_BOXES, half(FEW_BOXES), precision="fp16"),
    "boxes of three samples, scores inverted": Case(FEW_BOXES, FEW_INVERTED, "outside", "fp16"),
    "boxes of three samples, scores 0.02 off": Case(
        FEW_BOXES, single(FEW_BOXES + numpy.array([0, 0, 0, 0, 0.02])), "elements are outside"
    ),
    "boxes of one sample, the score inverted": Case(FEW_BOXES[:1], FEW_INVERTED[:1], "outside", "fp16"),
    "one outlier, noise": Case(TAILED, single(TAILED + 1e-5 * normal(100, 1))),
    "one outlier, all others halved": Case(TAILED, single(TAILED * numpy.where(TAILED < 100, 0.5, 1)), "99 of"),
    "one outlier, all others 0.1 off": Case(TAILED, single(TAILED + 0.1 * (TAILED < 100)), "99 of"),
    "outliers everywhere, all others halved": Case(
        SEVERAL_TAILED, single(SEVERAL_TAILED * numpy.where(SEVERAL_TAILED < 100, 0.5, 1)), "outside", "fp16"
    ),
    "an outlier next to coordinates, all others halved": Case(TAILED_COLUMN, TAILED_HALVED, "99 of", "fp16"),
    "many sizes, fp16": Case(LOGNORMAL, half(LOGNORMAL), precision="fp16"),
    "many sizes, the small half lost": Case(LOGNORMAL, LOGNORMAL * (LOGNORMAL > 4), "outside", "fp16"),
    "boxes by anchor, fp16": Case(ANCHORS, single(ANCHORS + 0.5 * (ANCHORS == EDGE)), "", "fp16"),
    "boxes by anchor, scores lost": Case(ANCHORS, single(ANCHORS * (ANCHORS > 0.1)), "outside", "fp16"),
    "a residual of noise, the same": Case(RESIDUAL, noisy(RESIDUAL)),
    "a residual of other noise": Case(RESIDUAL, RESIDUAL[::-1], "outside"),
    "a residual of other noise, that the user allows": Case(RESIDUAL, RESIDUAL[::-1], tolerance=Tolerance(1e-6, 0)),
    "constant on both sides": Case(CONSTANT, CONSTANT),
    "constant but for the last bits": Case(noisy(CONSTANT, 5e-8), CONSTANT),
    "zeros on both sides": Case(CONSTANT * 0, CONSTANT * 0),
    "zeros, and next to nothing": Case(CONSTANT * 0, CONSTANT * 0 + numpy.float32(1e-30)),
    "below fp32's normal numbers": Case(CONSTANT * numpy.float32(1e-39), CONSTANT * 0),
    "300 degrees, noise": Case(DEGREES, noisy(DEGREES)),
    "300 degrees, fp16": Case(DEGREES, half(DEGREES), precision="fp16"),
    "300 degrees for ever": Case(DEGREES, DEGREES * 0 + 300, "is 300 in every element", "fp16"),
    "prices near 20,000, noise": Case(PRICES, noisy(PRICES)),
    "prices near 20,000, fp16": Case(PRICES, half(PRICES), "times what it varies by", "fp16"),
    "two prices near 20,000, fp16": Case(PRICED, half(PRICED), "times what it varies by", "fp16"),
    "prices that differ by hundreds, fp16": Case(
        single(PRICES * 40 - 780_000), half(single(PRICES * 40 - 780_000)), precision="fp16"
    ),
    "prices near 20,000, by the tolerance of the user": Case(
        PRICES, half(PRICES), precision="fp16", tolerance=Tolerance(10, 0)
    ),
    "class numbers in floating point": Case(NUMBERS, NUMBERS, precision="fp16"),
    "class numbers in floating point, noise": Case(NUMBERS, noisy(NUMBERS)),
    "class numbers in floating point, fp16": Case(NUMBERS, half(NUMBERS), "other whole numbers", "fp16"),
    "class numbers in floating point, the next class": Case(
        FEW_NUMBERS, FEW_NUMBERS + 1, "other whole numbers", "fp16"
    ),
    "amounts in whole numbers, by the tolerance of the user": Case(
        NUMBERS, half(NUMBERS), precision="fp16", tolerance=Tolerance(2, 0)
    ),
    "whole numbers by chance, as halves beyond 1,024 are": Case(
        IN_HALVES, IN_HALVES + single(RANDOM.integers(-1, 2, (64, 1))), precision="fp16"
    ),
    "most scores hidden, noise": Case(HIDDEN, numpy.where(MASK, HIDDEN, noisy(LOGITS))),
    "most scores hidden, fp16": Case(HIDDEN_IN_FP16, half(HIDDEN_IN_FP16), precision="fp16"),
    "most scores hidden, the others of another sample": Case(HIDDEN, LOST, "outside", "fp16"),
    "most scores hidden, the others 5 % off": Case(
        HIDDEN, numpy.where(MASK, HIDDEN, LOGITS * numpy.float32(1.05)), "outside", "fp16"
    ),
    "most scores hidden, the others blurred": Case(HALVED, single(BLURRED), "of its size", "fp16"),
    "some scores hidden, in some samples all, fp16": Case(single(FEWER), half(FEWER), precision="fp16"),
    "some scores hidden, the others blurred": Case(single(FEWER), single(FEWER_BLURRED), "of its size", "fp16"),
    "the first answer for ever": Case(LOGITS, numpy.tile(LOGITS[:1], (32, 1)), SAME),
    "zeros, whatever the user allows": Case(LOGITS, LOGITS * 0, ZERO, tolerance=LOOSE),
    "far off, which the user allows": Case(LOGITS, LOGITS * 2, tolerance=LOOSE),
    "the tolerance that the user wrote": Case(FLAT, FLAT + numpy.float32(5e-4), tolerance=Tolerance(1e-3, 0)),
    "fp32 by the tolerance of fp16": Case(FLAT, noisy(FLAT) * 2, tolerance=Tolerance(1e-2, 1e-3)),
    "classes": Case(CLASSES, CLASSES),
    "classes, always the first": Case(CLASSES, CLASSES * 0, ZERO, "fp16"),
    "a rare class, lost": Case(RARE, RARE * 0, ZERO),
    "a rare class, lost in fp16": Case(RARE, RARE * 0, "0 of the 1 samples", "fp16"),
    "a class of 1 in 80, lost once": Case(OFTEN, OFTEN - RARE, precision="fp16"),
    "a class of 1 in 80, lost": Case(OFTEN, OFTEN * 0, ZERO, "fp16"),
    "flags, lost": Case(OFTEN == 1, OFTEN == 2, "is False in every element", "fp16"),
    "the only flag, lost": Case(RARE == 1, RARE == 2, "0 of the 1 samples", "fp16"),
    "flags, one raised too often": Case(RARE == 2, RARE == 1, precision="fp16"),
    "a rare class in one sample, the first answer for ever": Case(RARE_PIXEL, RARE_PIXEL[[0] * 8], SAME),
    "a rare class in one sample, within that share": Case(RARE_PIXEL, RARE_PIXEL[[0] * 8], precision="fp16"),
    "a class of few pixels, lost": Case(SPOTS, REGIONS, "elements in which the framework's is 4", "fp16"),
    "a class of few pixels, a third of it lost": Case(
        SPOTS, numpy.where(RANDOM.random(REGIONS.shape) < 0.3, REGIONS, SPOTS), precision="fp16"
    ),
    "a class of few pixels, lost, which the user allows": Case(
        SPOTS, REGIONS, precision="fp16", tolerance=Tolerance(1e-2, 1e-2, IntegerTolerance(share=0.01))
    ),
    "words": Case(numpy.array([["a"], ["b"]]), numpy.array([["a"], ["a"]]), SAME),
    "one sample, zeros": Case(LOGITS[:1], LOGITS[:1] * 0, ZERO),
    "one sample, noise": Case(LOGITS[:1], noisy(LOGITS[:1])),
    "nothing found": Case(EMPTY, EMPTY),
    "nothing found, served padding": Case(EMPTY, FOUND * 0),
    "nothing found, served padding that is not zero": Case(
        EMPTY, FOUND * 0 - 1, "framework's is empty for all samples"
    ),
    "nothing found, served boxes": Case(EMPTY, FOUND, "the framework's is empty for all samples"),
    "boxes found, served nothing": Case(FOUND, EMPTY, "is empty for all"),
    "padding, served nothing": Case(FOUND[..., 0] * 0, EMPTY[..., 0]),
    "padding of classes, served nothing": Case(CLASSES[:8] * 0, CLASSES[:8, :0]),
    "padding and one class, served nothing": Case(OFTEN[:8], OFTEN[:8, :0], "is empty for all"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_verdict(name: str) -> None:
    case = CASES[name]
    message = verdict(case)
    assert (case.words in message) if case.words else not message, message


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ["logits, noise", "flat softmax, noise", "embeddings, noise", "sparse, noise"])
def test_another_runtimes_rounding_passes_at_every_scale(name: str, scale: float) -> None:
    case = CASES[name]
    assert not verdict(Case(case.framework * numpy.float32(scale), case.served * numpy.float32(scale)))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize(
    "change",
    [lambda x: x * 0, lambda x: x[::-1], lambda x: x * numpy.float32(1.05), lambda x: numpy.tile(x[:1], (32, 1))],
    ids=["zeros", "mixed up", "5 % off", "frozen"],
)
def test_a_wrong_answer_fails_at_every_scale(change: Callable[[Array], Array], precision: str, scale: float) -> None:
    framework = LOGITS * numpy.float32(scale)
    assert verdict(Case(framework, change(framework), precision=precision))


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 1e2, 1e4])
def test_rounding_to_fp16_passes_wherever_fp16_has_its_bits(scale: float) -> None:
    framework = LOGITS * numpy.float32(scale)
    served = half(single(framework + normal(*framework.shape) * scale * 1e-3))
    assert not verdict(Case(framework, served, precision="fp16"))


@pytest.mark.parametrize("name", ["zeros, whatever the user allows", "nothing found, served boxes", "words"])
def test_what_no_tolerance_changes_gives_no_advice_to_widen_it(name: str) -> None:
    assert "tolerances" not in verdict(CASES[name])


def test_only_a_floating_point_output_is_said_to_be_rounded_to_0() -> None:
    assert "fp16 rounds" in verdict(CASES["factor 3e-9 lost in fp16"])
    assert "fp16 rounds" not in verdict(CASES["classes, always the first"])
    assert "fp16 rounds" not in verdict(Case(CLASSES == 1, CLASSES == 3, precision="fp16"))


def test_a_zero_has_no_sign() -> None:
    assert " is 0 in every element" in verdict(Case(LOGITS, -0.0 * numpy.abs(LOGITS)))


@pytest.mark.parametrize("name", ["nothing found", "nothing found, served padding", "padding, served nothing"])
def test_where_nothing_is_compared_the_verdict_says_so(name: str) -> None:
    variation = Variation()
    variation.add(CASES[name].framework, CASES[name].served)
    assert variation.is_empty


NOISY_DEGREES = single(DEGREES + RANDOM.normal(0, 8, (32, 1)))
WIDENED: dict[str, Case] = {
    "large logits": Case(LOGITS * 100, single(LOGITS * 100 + normal(32, 50)), precision="fp16"),
    "large logits in fp32": Case(LOGITS * 100, single(LOGITS * 100 + normal(32, 50))),
    "many small errors": Case(OUTLIER, single(OUTLIER + SIGNS), precision="fp16"),
    "errors of the default": Case(EMBEDDINGS, EMBEDDINGS + numpy.float32(0.00999), precision="fp16"),
    "small numbers": Case(RESIDUAL, RESIDUAL[::-1]),
    "boxes and scores": Case(BOXES, single(BOXES + 0.03), precision="fp16"),
    "300 degrees": Case(DEGREES, NOISY_DEGREES, precision="fp16"),
    "what the user wrote": Case(DEGREES, NOISY_DEGREES, tolerance=Tolerance(0.1, 0)),
}


@pytest.mark.parametrize("name", WIDENED)
def test_the_tolerance_that_the_message_advises_is_enough(name: str) -> None:
    case = WIDENED[name]
    message = verdict(case)
    advised = re.search(r"\[{precision: (\w+), absolute: (\S+), relative: (\S+)}\]", message)
    assert advised, message
    assert advised[1] == case.precision
    assert not verdict(replace(case, tolerance=Tolerance(float(advised[2]), float(advised[3]))))
    assert not verdict(replace(case, tolerance=Tolerance(1.001 * float(advised[2]), float(advised[3]))))
    assert verdict(replace(case, tolerance=Tolerance(0.8 * float(advised[2]), float(advised[3]))))
    assert ("of the whole output" in message) is (case.tolerance is None)


def test_a_tolerance_written_as_the_message_has_it_judges_elements_alike() -> None:
    case = WIDENED["300 degrees"]
    message = verdict(case)
    used = re.search(r"<= (\S+) \(0.01 \* \S+, the output's scale\)", message)
    assert used, message
    again = verdict(replace(case, tolerance=Tolerance(float(used[1]), 0.01)))
    assert again.split("elements are outside")[0] == message.split("elements are outside")[0]


def test_no_tolerance_is_advised_where_none_helps() -> None:
    infinite = LOGITS.copy()
    infinite[0, 0] = numpy.inf
    message = verdict(Case(infinite, LOGITS))
    assert "outside" in message
    assert "tolerances" not in message


def test_the_difference_of_the_largest_doubles_is_no_warning() -> None:
    largest = numpy.array([[1.7e308], [-1.7e308], [1e3]])
    with numpy.errstate(over="raise"):
        assert not verdict(Case(largest, largest))
        assert "outside" in verdict(Case(largest, -largest))


@pytest.mark.parametrize("error", [numpy.finfo(numpy.float64).max, 5e-324, 1e-310])
def test_an_error_at_the_ends_of_the_doubles_is_a_verdict(error: float) -> None:
    framework = numpy.array([[0.0], [1.0], [0.0]])
    served = framework + numpy.array([[error], [0.0], [0.0]])
    assert "elements are outside" in verdict(Case(framework, served, tolerance=Tolerance(0.0, 0.0)))


@pytest.mark.parametrize("part", ["words", "advice"])
def test_what_cannot_be_put_into_words_is_a_verdict_all_the_same(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    def fail(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(outputs, "RULES", tuple(replace(rule, **{part: fail}) for rule in outputs.RULES))
    assert "OUT" in verdict(CASES["logits, 5 % off"])
