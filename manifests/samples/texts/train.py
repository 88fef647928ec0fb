"""Train the tokenizer and the network of this sample on Django's messages, and write its files.

`python3 train.py`, where Django 5.2.8, tokenizers 0.22.1, NumPy and ONNX are. The files are in the repository: nobody
has to. The messages are under Django's license, which is in LICENSE.django.
"""

import ast
import re
import shutil
from importlib.metadata import distribution
from pathlib import Path

import django
import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

FOLDER = Path(__file__).parent
LANGUAGES = ("de", "es", "fr", "it", "nl", "pl", "pt", "sv")
VOCABULARY, WIDTH, STEPS = 1000, 12, 400
SHORTEST, HELD_OUT = 20, 5
"""Characters of the shortest text; and one in so many messages is left for the data."""
MOST_DATA = 60
"""Texts of each language in the data."""
STRING = re.compile(r'^(msgid|msgstr(?:\[0\])?) ("(?:.*\n")*.*")$', re.MULTILINE)
PLACEHOLDER = re.compile(r"%\(\w+\)[sdr]|%[sdr]|\{\w*\}|<[^>]*>|&\w+;")


def messages(language: str) -> dict[str, str]:
    """Return Django's longer messages in a language by their English, each as one line without its placeholders."""
    found: dict[str, str] = {}
    for file in sorted(Path(django.__file__).parent.glob(f"**/locale/{language}/LC_MESSAGES/django.po")):
        english = ""
        for kind, strings in STRING.findall(file.read_text(encoding="utf-8")):
            text = "".join(map(ast.literal_eval, strings.splitlines()))
            plain = " ".join(PLACEHOLDER.sub(" ", text).split())
            if kind == "msgid":
                english = text
            elif english and len(plain) >= SHORTEST:
                found.setdefault(english, plain)
    return found


def trained_tokenizer(texts: list[str]) -> Tokenizer:
    """Return byte pair encoding; number 0 is padding."""
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[UNK]"]
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=special, show_progress=False)
    )
    return tokenizer


def shares(tokenizer: Tokenizer, texts: list[str]) -> numpy.ndarray:
    """Return how much of each text each token is: float32 [texts, tokens]."""
    counts = numpy.zeros((len(texts), VOCABULARY), numpy.float32)
    for row, text in zip(counts, texts, strict=True):
        numpy.add.at(row, tokenizer.encode(text).ids, 1)
    return counts / numpy.maximum(counts.sum(1, keepdims=True), 1)


def trained(inputs: numpy.ndarray, labels: numpy.ndarray) -> list[numpy.ndarray]:
    """Return embeddings [tokens, width], weights [width, languages] and offsets, by Adam on the cross entropy."""
    random = numpy.random.default_rng(0)
    sizes = ((VOCABULARY, WIDTH), (WIDTH, len(LANGUAGES)), (len(LANGUAGES),))
    values = [random.normal(0, 0.3, size).astype(numpy.float32) for size in sizes]
    means, squares = ([numpy.zeros_like(each) for each in values] for _ in range(2))
    wanted = numpy.eye(len(LANGUAGES), dtype=numpy.float32)[labels]
    for step in range(1, STEPS + 1):
        embeddings, weights, offsets = values
        hidden = inputs @ embeddings
        scores = numpy.exp(hidden @ weights + offsets)
        error = (scores / scores.sum(1, keepdims=True) - wanted) / len(inputs)
        slopes = (inputs.T @ (error @ weights.T), hidden.T @ error, error.sum(0))
        for i, slope in enumerate(slopes):
            means[i] += 0.1 * (slope - means[i])
            squares[i] += 0.001 * (slope**2 - squares[i])
            values[i] -= 0.05 * (means[i] / (1 - 0.9**step)) / (numpy.sqrt(squares[i] / (1 - 0.999**step)) + 1e-8)
    values[0][0] = 0
    return values


def graph(values: list[numpy.ndarray]) -> onnx.ModelProto:
    """Return the network: tokens int64 [batch, length], padded with 0, to probabilities [batch, languages]."""
    embeddings, weights, offsets = values
    constants = {
        "embeddings": embeddings,
        "weights": weights,
        "offsets": offsets,
        "padding": numpy.array(0, numpy.int64),
        "along": numpy.array([1], numpy.int64),
        "one": numpy.array(1, numpy.float32),
    }
    nodes = [
        helper.make_node("Gather", ["embeddings", "tokens"], ["embedded"]),
        helper.make_node("ReduceSum", ["embedded", "along"], ["sum"], keepdims=0),
        helper.make_node("Equal", ["tokens", "padding"], ["padded"]),
        helper.make_node("Not", ["padded"], ["there"]),
        helper.make_node("Cast", ["there"], ["counted"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["counted", "along"], ["count"], keepdims=1),
        helper.make_node("Max", ["count", "one"], ["length"]),
        helper.make_node("Div", ["sum", "length"], ["mean"]),
        helper.make_node("Gemm", ["mean", "weights", "offsets"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["probabilities"], axis=1),
    ]
    tokens = helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "length"])
    probabilities = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", len(LANGUAGES)])
    known = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    made = helper.make_graph(nodes, "texts", [tokens], [probabilities], known)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def main() -> None:
    """Write tokenizer.json, texts.onnx, texts.tsv with texts that neither was trained on, and the license."""
    found = {language: messages(language) for language in LANGUAGES}
    held_out = set(sorted({english for each in found.values() for english in each})[::HELD_OUT])
    known = [
        (text, label)
        for label, each in enumerate(found.values())
        for english, text in each.items()
        if english not in held_out
    ]
    texts = [text for text, _ in known]
    tokenizer = trained_tokenizer(texts)
    values = trained(shares(tokenizer, texts), numpy.array([label for _, label in known]))
    seen = set(texts)
    data = {
        language: [text for english, text in each.items() if english in held_out and text not in seen]
        for language, each in found.items()
    }
    rows = range(min(MOST_DATA, *map(len, data.values())))
    lines = [f"{language}\t{data[language][row]}" for row in rows for language in LANGUAGES]
    (FOLDER / "tokenize").mkdir(exist_ok=True)
    tokenizer.save(str(FOLDER / "tokenize" / "tokenizer.json"), pretty=False)
    onnx.save(graph(values), FOLDER / "texts.onnx")
    (FOLDER / "texts.tsv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (license_file,) = (each for each in distribution("django").files or () if each.parts[1:] == ("licenses", "LICENSE"))
    shutil.copyfile(str(license_file.locate()), FOLDER / "LICENSE.django")
    embeddings, weights, offsets = values
    wanted = [LANGUAGES.index(line.split("\t")[0]) for line in lines]
    scores = shares(tokenizer, [line.split("\t")[1] for line in lines]) @ embeddings @ weights + offsets
    print(f"{len(texts)} texts; {len(lines)} held out, of which {numpy.mean(scores.argmax(1) == wanted):.1%} are right")


if __name__ == "__main__":
    main()
