"""Class numbers, flags, words and amounts: what is lost never passes, and near ties and last steps do not fail."""

import numpy
import pytest

from triton_converters.claim_store.dump import Array
from triton_converters.contract.failure import StageError
from triton_converters.contract.measurement_requests import DEFAULT_TOLERANCES, IntegerTolerance, Tolerance
from triton_converters.contract.reasons import Reason
from triton_converters.gates.agreement import compare
from triton_converters.gates.answers import Answers
from triton_converters.gates.exact import RULES, distances
from triton_converters.gates.outputs import check_outputs
from triton_converters.gates.rare import Rare
from triton_converters.gates.variation import Variation

RANDOM = numpy.random.default_rng(3)
FP16 = DEFAULT_TOLERANCES["fp16"]
BACKGROUND = numpy.zeros((16, 64, 64), dtype=numpy.uint8)


def verdict(framework: Array, served: Array, precision: str, integers: IntegerTolerance | None = None) -> str:
    """The gate's complaint about one output, [samples, ...]; empty: it passes."""
    default = DEFAULT_TOLERANCES[precision]
    tolerance = Tolerance(default.absolute, default.relative, integers or IntegerTolerance())
    names = [str(number) for number in range(len(framework))]
    variation, rare = Variation(), Rare()
    variation.add(framework, served)
    if framework.shape == served.shape:
        steps = tolerance.integers.steps if framework.dtype.kind in "iu" else 0
        rare.add(framework, distances(framework, served) > steps)
    agreement = compare("OUT", framework, served, names, tolerance)
    try:
        answers = Answers({"OUT": agreement}, requests=1, variations={"OUT": variation}, rare={"OUT": rare})
        check_outputs(answers, precision, tolerance)
    except StageError as error:
        return error.message if error.reason is Reason.OUTPUTS_DIFFER else str(error)
    return ""


def segmented(pixels: int, samples: int = 16) -> Array:
    """Masks in which the first pixels are an object."""
    masks = BACKGROUND[:samples].copy()
    masks.reshape(samples, -1)[:, :pixels] = 1
    return masks


def tags(entities: int, samples: int = 200) -> Array:
    """Sentences of 40 words with so many names."""
    found = numpy.zeros((samples, 40), dtype=numpy.int64)
    found[:, :entities] = 1 + RANDOM.integers(0, 8, (samples, entities))
    return found


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize(
    ("framework", "served"),
    [
        (segmented(30), BACKGROUND),
        (segmented(3), segmented(0)),
        (tags(1), tags(0)),
        (segmented(30), numpy.roll(segmented(30), 32, axis=2)),
        (segmented(400), numpy.concatenate([segmented(400, 15), BACKGROUND[:1]])),
        (numpy.repeat(["ORG", "", ""], 20)[None], numpy.repeat(["", "", ""], 20)[None]),
    ],
    ids=["no object", "no small object", "no entity", "object elsewhere", "no object in one sample", "no word"],
)
def test_what_is_lost_among_background_fails(framework: Array, served: Array, precision: str) -> None:
    assert verdict(framework, served, precision)


@pytest.mark.parametrize(("lost", "fails"), [(8, False), (40, True)])
def test_half_precision_may_lose_a_few_pixels_of_a_sample(lost: int, fails: bool) -> None:
    framework = segmented(400)
    served = framework.copy()
    served[5].reshape(-1)[:lost] = 0
    assert bool(verdict(framework, served, "fp16")) is fails
    assert verdict(framework, served, "fp32")


def test_an_argmax_of_two_million_voxels_may_turn_two_near_ties() -> None:
    framework = RANDOM.integers(0, 4, (1, 128, 128, 128)).astype(numpy.int32)
    served = framework.copy()
    served.reshape(-1)[[5, 500_000]] += 1
    assert not verdict(framework, served, "fp32")
    served.reshape(-1)[:100] += 1
    assert verdict(framework, served, "fp32")


@pytest.mark.parametrize(("wrong", "fails"), [(0, False), (2, False), (3, True)])
def test_a_lone_class_number_is_no_background(wrong: int, fails: bool) -> None:
    framework = RANDOM.integers(0, 10, (256, 1))
    served = framework.copy()
    served[:wrong] += 1
    assert bool(verdict(framework, served, "fp16")) is fails
    assert bool(verdict(framework, served, "fp32")) is (wrong > 0)


def alarms(column: int, *samples: int) -> Array:
    """Flags of 400 samples, three each: the middle one is often True, and one is True in these samples alone."""
    found = numpy.zeros((400, 3), dtype=bool)
    found[::2, 1] = True
    found[list(samples), column] = True
    return found


@pytest.mark.parametrize(
    ("framework", "served", "words"),
    [
        (alarms(2, 7, 90, 311), alarms(2), "is right in only 0 of the 3"),
        (alarms(2, 7, 90, 311), alarms(2, 7), "is right in only 1 of the 3"),
        (alarms(2, 7, 90, 311), alarms(2, 7, 90), ""),
        (alarms(2, 7, 90, 311), alarms(2, 7, 90, 311, 312), ""),
        (alarms(2, 7), alarms(2), "is right in only 0 of the 1 "),
        (numpy.where(alarms(2, 7, 90), "spam", "ham"), numpy.where(alarms(2), "spam", "ham"), "0 of the 2 "),
        (1 + alarms(2, 7, 90).astype(int), 1 + alarms(2).astype(int), "element [2] is right in only 0 of the 2 "),
    ],
    ids=["never", "seldom", "one lost", "a false one", "the only one", "words", "classes"],
)
def test_a_rare_answer_that_is_lost_fails_though_few_samples_have_it(
    framework: Array, served: Array, words: str
) -> None:
    message = verdict(framework, served, "fp16")
    assert (words in message) if words else not message, message


@pytest.mark.parametrize(("lost", "fails"), [([7], False), ([7, 90, 311], True)])
def test_one_of_many_classes_that_is_never_given_fails(lost: list[int], fails: bool) -> None:
    framework = 3 + numpy.arange(400)[:, None] % 4
    framework[[7, 90, 311]] = 9 if fails else [[9], [10], [11]]
    served = framework.copy()
    served[lost] = 3
    assert bool(verdict(framework, served, "fp16")) is fails


def test_an_amount_that_is_one_step_off_is_not_lost() -> None:
    framework = alarms(2, 7, 90).astype(int)
    assert not verdict(framework, framework + 1, "fp16", IntegerTolerance(steps=1))


def picture() -> Array:
    return RANDOM.integers(0, 256, (8, 32, 32, 3)).astype(numpy.uint8)


def test_a_picture_that_rounds_otherwise_is_told_of_steps_and_passes_with_them() -> None:
    framework = picture()
    changed = RANDOM.random(framework.shape) < 0.04
    served = numpy.where(changed, numpy.minimum(framework, 254) + 1, framework).astype(numpy.uint8)
    words = verdict(framework, served, "fp32")
    advice = (
        "If OUT holds amounts, as a picture does, and no class numbers, set spec.conversion.tolerances to"
        " [{precision: fp32, absolute: 0.0001, relative: 0.0001, integers: {steps: 1}}]"
    )
    assert words.endswith(advice)
    assert not verdict(framework, served, "fp32", IntegerTolerance(steps=1))
    assert "differ by more than 1" in verdict(framework, framework // 2, "fp32", IntegerTolerance(steps=1))


@pytest.mark.parametrize(
    ("values", "step", "share", "fails"),
    [(256, 1, 0.007, False), (256, 1, 0.02, True), (256, 2, 0.007, True), (60, 1, 0.007, True)],
    ids=["a last step", "too many", "two steps", "few values"],
)
def test_a_few_amounts_may_round_to_the_other_side_in_fp32(values: int, step: int, share: float, fails: bool) -> None:
    framework = RANDOM.integers(0, values - 2, (8, 64, 64)).astype(numpy.uint8)
    served = (framework + step * (RANDOM.random(framework.shape) < share)).astype(numpy.uint8)
    assert bool(verdict(framework, served, "fp32")) is fails


def test_a_class_that_is_taken_for_its_neighbour_is_lost_however_many_classes_there_are() -> None:
    framework = RANDOM.integers(0, 200, (8, 64, 64))
    served = numpy.where(framework == 77, 78, framework)
    assert "the framework's is 77" in verdict(framework, served, "fp32")


def test_a_share_of_the_spec_replaces_the_default() -> None:
    framework = RANDOM.integers(0, 10, (100, 1))
    served = framework.copy()
    served[:4] += 1
    assert not verdict(framework, served, "fp16", IntegerTolerance(share=0.05))
    assert verdict(framework, served, "fp16", IntegerTolerance(share=0.03))


@pytest.mark.parametrize("kind", ["classes far apart", "flags"])
def test_no_steps_are_advised_for_what_holds_no_amounts(kind: str) -> None:
    framework = RANDOM.integers(0, 100, (50, 9)) if kind != "flags" else RANDOM.random((50, 9)) < 0.5
    assert "steps" not in verdict(framework, framework[::-1].copy(), "fp32")


@pytest.mark.parametrize("kind", ["int64", "uint64", "uint8", "int8"])
def test_the_ends_of_a_type_are_as_far_apart_as_they_are(kind: str) -> None:
    limits = numpy.iinfo(kind)
    ends = numpy.array([limits.min, limits.max], dtype=kind)
    span = int(limits.max) - int(limits.min)
    assert distances(ends, ends[::-1].copy()).tolist() == [span, span]


def test_a_text_that_loses_its_end_fails() -> None:
    framework = RANDOM.integers(1, 9, (200, 60))
    whole = verdict(framework[5:6], framework[5:6, :3].copy(), "fp16")
    assert whole
    agreements = [
        compare("OUT", framework[at : at + 1], framework[at : at + 1, : 3 if at == 5 else 60], [str(at)], FP16)
        for at in range(200)
    ]
    total = sum(agreements[1:], agreements[0])
    assert (total.outside, total.counted) == (57, 12_000)
    assert not total.holds(RULES["fp16"])


@pytest.mark.parametrize("kind", ["flags", "words"])
def test_steps_are_for_integers_alone(kind: str) -> None:
    framework = numpy.array([[True] * 5 + [False] * 5]) if kind == "flags" else numpy.array([["a"] * 5 + ["b"] * 5])
    assert verdict(framework, framework[:, ::-1].copy(), "fp32", IntegerTolerance(steps=1))


@pytest.mark.parametrize("place", [0, 100, -1])
def test_a_place_that_is_wrong_in_every_sample_fails_however_many_others_are_right(place: int) -> None:
    framework = RANDOM.integers(0, 9, (64, 200))
    served = framework.copy()
    served[:, place] += 1
    assert "is right in only 0 of the 64 samples that have it" in verdict(framework, served, "fp16")


@pytest.mark.parametrize(("place", "told"), [(0, "[0]"), (-1, "[-1]")])
def test_so_does_the_first_or_last_place_of_samples_of_any_length(place: int, told: str) -> None:
    rare = Rare()
    for length in range(150, 170):
        framework = RANDOM.integers(0, 9, (1, length))
        differs = numpy.zeros(framework.shape, bool)
        differs[:, place] = True
        rare.add(framework, differs)
    assert rare.complaint() == f"element {told} is right in only 0 of the 20 samples that have it"


def test_near_ties_lie_in_other_places_of_each_sample() -> None:
    framework = RANDOM.integers(0, 9, (64, 200))
    served = framework + (RANDOM.random(framework.shape) < 0.005)
    assert not verdict(framework, served, "fp16")


@pytest.mark.parametrize("samples", [1, 5])
def test_few_samples_do_not_tell_a_place_that_is_always_wrong(samples: int) -> None:
    framework = RANDOM.integers(0, 9, (samples, 20000))
    served = framework.copy()
    served[:, 7] += 1
    assert not verdict(framework, served, "fp16")
