"""The models, the samples that they are judged by, and what is read off their outputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
from onnx import TensorProto, helper, numpy_helper

from bench.gates import samples
from bench.gates.decisions import Decision, above, exact, higher, top1
from bench.gates.samples import Random, Sampler
from bench.gates.surgery import LEARNED, LEARNED_OPSET, encoder
from triton_converters.claim_store.dump import Array


@dataclass(frozen=True)
class Subject:
    """A model of the zoo, or one that is made of it."""

    name: str
    model: str
    """The zoo's name."""
    sample: Sampler
    decisions: tuple[Decision, ...] = ()
    dense: tuple[str, ...] = ()
    """Integer outputs that hold amounts, not class numbers."""
    hidden: float = -numpy.inf
    """What is at most so much in floating point outputs is hidden by a mask."""
    derive: Callable[[Any], Any] | None = None
    """Makes another graph of the zoo's, in place."""


def _normal(image: Array, mean: tuple[float, ...], deviation: tuple[float, ...]) -> Array:
    """Return a picture of 0 to 255 as [3, height, width], normalised."""
    scaled = (image / 255 - numpy.array(mean)) / numpy.array(deviation)
    made: Array = scaled.transpose(2, 0, 1).astype(numpy.float32)
    return made


IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HALVES = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
PLAIN = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


def _people(random: Random) -> dict[str, Array]:
    return {"images": _normal(samples.picture(random, 160, 160), *PLAIN)}


def _page(random: Random) -> dict[str, Array]:
    return {"x": _normal(samples.page(random, 160), *IMAGENET)}


def _line(random: Random) -> dict[str, Array]:
    return {"x": _normal(samples.line(random, 48, int(random.choice([160, 240, 320]))), *HALVES)}


def _short_line(random: Random) -> dict[str, Array]:
    image = samples.line(random, 48, 192)
    return {"x": _normal(image[::-1, ::-1] if random.integers(2) else image, *HALVES)}


def _nsfw(random: Random) -> dict[str, Array]:
    picture = samples.picture(random, 224, 224)[:, :, ::-1] - numpy.array([104.0, 117.0, 123.0])
    return {"input_0": picture.astype(numpy.float32)}


def _small_picture(random: Random) -> dict[str, Array]:
    return {"pixel_values": _normal(samples.picture(random, 32, 32), *IMAGENET)}


def _file(random: Random) -> dict[str, Array]:
    return {"bytes": samples.file_ends(random)}


def _bands(random: Random, frames: int, bands: int) -> Array:
    """Return the logarithm of a sound's spectrum, [frames, bands]."""
    hop = 160
    sound = samples.sound(random, hop * (frames + 2))
    pieces = numpy.lib.stride_tricks.sliding_window_view(sound, 2 * hop)[::hop][:frames]
    power = numpy.square(numpy.abs(numpy.fft.rfft(pieces * numpy.hanning(2 * hop))))[:, : bands * (161 // bands)]
    grouped = power[:, : bands * (power.shape[1] // bands)].reshape(frames, bands, -1).mean(axis=2)
    made: Array = numpy.log10(grouped + 1e-6).astype(numpy.float32)
    return made


def _mel(random: Random) -> dict[str, Array]:
    return {"input_1": (_bands(random, 76, 32) + 2)[:, :, None]}


def _quality(random: Random) -> dict[str, Array]:
    bands = _bands(random, 900, 120)
    return {"input_1": ((bands + 6) / 8).astype(numpy.float32)}


def _turn(random: Random) -> dict[str, Array]:
    bands = _bands(random, 800, 80).T
    return {"input_features": numpy.ascontiguousarray(numpy.maximum(bands, bands.max() - 8) + 4) / 4}


def _note(random: Random) -> dict[str, Array]:
    return {"serving_default_input_2:0": samples.sound(random, 43844, 22050)[:, None]}


def _frame(random: Random) -> dict[str, Array]:
    state = numpy.tanh(random.normal(0, 0.5, (2, 1, 128))).astype(numpy.float32) * random.integers(0, 2)
    return {"input": samples.sound(random, 576)[None], "state": state.astype(numpy.float32)}


def _waves(random: Random) -> dict[str, Array]:
    count = int(random.choice([8000, 12000, 16000]))
    return {"waveforms": samples.sound(random, count), "waveforms_lens": numpy.array(count, dtype=numpy.int64)}


def _wave44(random: Random) -> dict[str, Array]:
    count = int(random.choice([11025, 22050]))
    return {"waveforms": samples.sound(random, count, 44100), "waveforms_lens": numpy.array(count, dtype=numpy.int64)}


def _text(*names: str) -> Sampler:
    """Return a sampler of sentences of 6 to 32 words in 32 places, as tokenizers pad them."""

    def sample(random: Random) -> dict[str, Array]:
        length = int(random.integers(6, 33))
        mask = (numpy.arange(32) < length).astype(numpy.int64)
        kinds = (numpy.arange(32) >= length // 2).astype(numpy.int64) * mask
        given = {"input_ids": samples.words(random, 32, 500) * mask, "attention_mask": mask, "token_type_ids": kinds}
        return {name: given[name] for name in names}

    return sample


def _khmer(random: Random) -> dict[str, Array]:
    length = int(random.choice([12, 20, 28]))
    mask = numpy.arange(28) < length
    return {"x": samples.words(random, 28, 126)[None] * mask, "mask": mask[None]}


def _letters(name: str, vocabulary: int) -> Sampler:
    """Return a sampler of texts of three lengths."""

    def sample(random: Random) -> dict[str, Array]:
        return {name: random.integers(1, vocabulary, int(random.choice([16, 24, 40]))).astype(numpy.int64)}

    return sample


def _name(random: Random) -> dict[str, Array]:
    mask = numpy.arange(12) < int(random.integers(3, 13))
    return {"src": random.integers(1, 160, 12).astype(numpy.int64) * mask, "src_mask": mask}


def _step(random: Random) -> dict[str, Array]:
    mask = numpy.arange(12) < int(random.integers(3, 13))
    memory, hidden = (numpy.tanh(random.normal(0, 1, shape)).astype(numpy.float32) for shape in ((12, 256), (2, 256)))
    prefix = random.integers(1, 160, 6).astype(numpy.int64)
    return {"prefix": prefix, "memory": memory, "src_mask": mask, "hidden": hidden}


def _series(random: Random) -> dict[str, Array]:
    time = numpy.arange(24)
    wave = numpy.sin(2 * numpy.pi * time / random.uniform(6, 24) + random.uniform(0, 6)) * random.uniform(0.2, 1.5)
    return {"values": (wave + random.normal(0, 0.1, 24)).astype(numpy.float32)[:, None]}


def _append(model: Any, nodes: list[Any], outputs: list[tuple[str, int, list[Any]]], weights: list[Any]) -> Any:
    """Add nodes to a graph, and make these its outputs: name, type and shape."""
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(weights)
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(*each) for each in outputs)
    return model


def _mask(model: Any) -> Any:
    """A page's mask instead of its probabilities: most of it is background."""
    probability = model.graph.output[0].name
    nodes = [
        helper.make_node("Greater", [probability, "gates_limit"], ["gates_text"]),
        helper.make_node("Cast", ["gates_text"], ["mask"], to=TensorProto.INT64),
    ]
    limit = numpy_helper.from_array(numpy.array(0.3, dtype=numpy.float32), "gates_limit")
    return _append(model, nodes, [("mask", TensorProto.INT64, ["n", 1, "h", "w"])], [limit])


def _grey(model: Any) -> Any:
    """A picture of a page's probabilities, 0 to 255."""
    probability = model.graph.output[0].name
    nodes = [
        helper.make_node("Mul", [probability, "gates_white"], ["gates_shades"]),
        helper.make_node("Cast", ["gates_shades"], ["picture"], to=TensorProto.UINT8),
    ]
    white = numpy_helper.from_array(numpy.array(255, dtype=numpy.float32), "gates_white")
    return _append(model, nodes, [("picture", TensorProto.UINT8, ["n", 1, "h", "w"])], [white])


def _masked(model: Any) -> Any:
    """Logits in which classes that are not allowed are minus infinity."""
    logits = model.graph.output[0].name
    nodes = [helper.make_node("Where", ["gates_allowed", logits, "gates_never"], ["scores"])]
    allowed = numpy_helper.from_array(numpy.arange(10)[None] % 4 != 3, "gates_allowed")
    never = numpy_helper.from_array(numpy.array(-numpy.inf, dtype=numpy.float32), "gates_never")
    return _append(model, nodes, [("scores", TensorProto.FLOAT, ["batch", 10])], [allowed, never])


def _anchored(model: Any) -> Any:
    """A second output that is the same for every sample: four numbers that belong to the model."""
    logits = model.graph.output[0].name
    nodes = [
        helper.make_node("Shape", [logits], ["gates_shape"]),
        helper.make_node("Gather", ["gates_shape", "gates_zero"], ["gates_rows"]),
        helper.make_node("Concat", ["gates_rows", "gates_four"], ["gates_sizes"], axis=0),
        helper.make_node("Expand", ["gates_numbers", "gates_sizes"], ["anchors"]),
    ]
    weights = [
        numpy_helper.from_array(numpy.array([0]), "gates_zero"),
        numpy_helper.from_array(numpy.array([4]), "gates_four"),
        numpy_helper.from_array(numpy.array([[8, 16, 32, 64]], dtype=numpy.float32), "gates_numbers"),
    ]
    kept = (logits, TensorProto.FLOAT, ["batch", 10])
    return _append(model, nodes, [kept, ("anchors", TensorProto.FLOAT, ["batch", 4])], weights)


def _classes(model: Any) -> Any:
    """The numbers of the best classes, without their scores."""
    logits = model.graph.output[0].name
    nodes = [helper.make_node("ArgMax", [logits], ["classes"], axis=-1, keepdims=0)]
    return _append(model, nodes, [("classes", TensorProto.INT64, ["batch", "length"])], [])


WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _named(model: Any) -> Any:
    """The digit's name alone, as a Python step after the network answers it."""
    label = model.graph.output[0].name
    learned = next(each for each in model.opset_import if each.domain == LEARNED)
    learned.version = max(learned.version, LEARNED_OPSET)
    nodes = [encoder([label], ["word"], keys_int64s=list(range(10)), values_strings=WORDS, default_string="none")]
    return _append(model, nodes, [("word", TensorProto.STRING, ["n"])], [])


def _priced(model: Any) -> Any:
    """Prices near 20,000 that differ by a few: how far a disease goes, a tenth of it."""
    progress = model.graph.output[0].name
    nodes = [
        helper.make_node("Mul", [progress, "gates_tenth"], ["gates_change"]),
        helper.make_node("Add", ["gates_change", "gates_mean"], ["price"]),
    ]
    numbers = {"gates_tenth": 0.1, "gates_mean": 20_000}
    weights = [numpy_helper.from_array(numpy.array(each, numpy.float32), name) for name, each in numbers.items()]
    return _append(model, nodes, [("price", TensorProto.FLOAT, ["n", 1])], weights)


def _hidden(model: Any) -> Any:
    """Probabilities of which most are hidden by a finite mask: those of digits whose own pixel is dark.

    The pixels are at the left and at the right. Hardly any is near the limit, so that fp16 does not move it across.
    """
    probabilities = model.graph.output[1].name
    nodes = [
        helper.make_node("Gather", [model.graph.input[0].name, "gates_pixels"], ["gates_own"], axis=1),
        helper.make_node("Less", ["gates_own", "gates_dark"], ["gates_never"]),
        helper.make_node("Where", ["gates_never", "gates_lowest", probabilities], ["scores"]),
    ]
    weights = [
        numpy_helper.from_array(numpy.array([9, 14, 17, 22, 25, 30, 33, 38, 49, 54]), "gates_pixels"),
        numpy_helper.from_array(numpy.array(0.97, numpy.float32), "gates_dark"),
        numpy_helper.from_array(numpy.array(-1e4, numpy.float32), "gates_lowest"),
    ]
    return _append(model, nodes, [("scores", TensorProto.FLOAT, ["n", 10])], weights)


_CLASS = (Decision("label", exact), Decision("probabilities", top1()))
_IDS = ("input_ids", "attention_mask")
_OCR_MAP = "sigmoid_0.tmp_0"
SUBJECTS = (
    Subject("digits-mlp", "digits-mlp", samples.row("digits.csv.gz"), _CLASS),
    Subject("wine-forest", "wine-forest", samples.row("wine_data.csv"), _CLASS),
    Subject("iris-svc", "iris-svc", samples.row("iris.csv"), _CLASS),
    Subject("iris-neighbours", "iris-neighbours", samples.row("iris.csv"), _CLASS),
    Subject("diabetes-double", "diabetes-double", samples.row("diabetes_data_raw.csv.gz", "float64")),
    Subject("diabetes-boosted", "diabetes-boosted", samples.row("diabetes_data_raw.csv.gz")),
    Subject("exercise-targets", "exercise-targets", samples.row("linnerud_exercise.csv")),
    Subject("wine-clusters", "wine-clusters", samples.row("wine_data.csv"), (Decision("label", exact),)),
    Subject("wine-xgboost", "wine-xgboost", samples.row("wine_data.csv", input_name="input"), _CLASS),
    Subject("wine-outliers", "wine-outliers", samples.row("wine_data.csv"), (Decision("label", exact),)),
    Subject("magika", "magika", _file, (Decision("target_label", top1()),)),
    Subject("nudenet", "nudenet", _people, (Decision("output0", above(0.25, 4)),)),
    Subject("ocr-detect", "ocr-detect", _page, (Decision(_OCR_MAP, above(0.3)),)),
    Subject("ocr-recognize", "ocr-recognize", _line, (Decision("softmax_11.tmp_0", top1()),)),
    Subject("ocr-classify", "ocr-classify", _short_line, (Decision("save_infer_model/scale_0.tmp_1", top1()),)),
    Subject("open-nsfw", "open-nsfw", _nsfw, (Decision("4195", top1()),)),
    Subject("vit", "vit", _small_picture, (Decision("logits", top1()),)),
    Subject("speech-embedding", "speech-embedding", _mel),
    Subject("dnsmos-p808", "dnsmos-p808", _quality),
    Subject("smart-turn", "smart-turn", _turn, (Decision("logits", above(0.0)),)),
    Subject("basic-pitch", "basic-pitch", _note, (Decision("StatefulPartitionedCall:1", above(0.5)),)),
    Subject("silero-vad-fixed", "silero-vad-fixed", _frame, (Decision("output", above(0.5)),)),
    Subject("nemo-features", "nemo-features", _waves),
    Subject("kaldi-features", "kaldi-features", _waves),
    Subject("resample", "resample", _wave44),
    Subject("bert", "bert", _text(*_IDS, "token_type_ids"), (Decision("logits", top1()),)),
    Subject("distilbert", "distilbert", _text(*_IDS)),
    Subject("t5-encoder", "t5-encoder", _text(*_IDS)),
    Subject("khmer-words", "khmer-words", _khmer, (Decision("emissions", top1()),)),
    Subject("vowel-signs", "vowel-signs", _letters("input_ids", 54), (Decision("logits", top1()),)),
    Subject("vowel-signs-merged", "vowel-signs-merged", _letters("input", 236), (Decision("gated_cls", exact),)),
    Subject("name-encoder", "name-encoder", _name, (Decision("src_mask_out", exact),)),
    Subject("name-decoder", "name-decoder", _step, (Decision("logprobs", top1()),)),
    Subject("forecast", "forecast", _series),
    Subject("page-mask", "ocr-detect", _page, (Decision("mask", exact),), derive=_mask),
    Subject("page-grey", "ocr-detect", _page, dense=("picture",), derive=_grey),
    Subject("vit-masked", "vit", _small_picture, (Decision("scores", top1()),), derive=_masked),
    Subject("vit-anchored", "vit", _small_picture, (Decision("logits", top1()),), derive=_anchored),
    Subject(
        "diabetes-prices",
        "diabetes-boosted",
        samples.row("diabetes_data_raw.csv.gz"),
        (Decision("price", higher),),
        derive=_priced,
    ),
    Subject(
        "digits-hidden",
        "digits-mlp",
        samples.row("digits.csv.gz"),
        (Decision("scores", top1()),),
        derive=_hidden,
        hidden=-1e3,
    ),
    Subject("vowel-classes", "vowel-signs", _letters("input_ids", 54), (Decision("classes", exact),), derive=_classes),
    Subject("digits-words", "digits-mlp", samples.row("digits.csv.gz"), (Decision("word", exact),), derive=_named),
)
"""Each is the ONNX file of the zoo; what is made of one adds an output of a kind that the zoo lacks."""
BY_NAME = {subject.name: subject for subject in SUBJECTS}
