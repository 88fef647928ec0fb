"""Models of the Hugging Face hub that steps of public repositories load: their classes, tiny, with random weights."""

import json
from collections.abc import Mapping

import numpy

Files = Mapping[str, str | bytes]
Shapes = dict[str, tuple[int, ...]]
WIDTH, INNER, PLACES = 16, 32, 128
"""Sizes of all of them: of a hidden state, of a feed-forward layer, and the most tokens of a text."""
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("a", "cat", "good", "it", "people", "rains", "two", "talk", "small", "on", "chair")
LABELS = {"0": "contradiction", "1": "neutral", "2": "entailment"}
"""Of a classifier by entailment: the last one is what `zero-shot-classification` reads."""


def distilbert() -> Files:
    """A DistilBERT that tells the sentiment of a text."""
    shapes = _embeddings("distilbert.embeddings", ("word", "position")) | _linear("pre_classifier", WIDTH, WIDTH)
    shapes |= _linear("classifier", 3, WIDTH)
    layer = "distilbert.transformer.layer.0"
    for name in ("q", "k", "v", "out"):
        shapes |= _linear(f"{layer}.attention.{name}_lin", WIDTH, WIDTH)
    shapes |= _linear(f"{layer}.ffn.lin1", INNER, WIDTH) | _linear(f"{layer}.ffn.lin2", WIDTH, INNER)
    shapes |= _norm(f"{layer}.sa_layer_norm") | _norm(f"{layer}.output_layer_norm")
    config = {"dim": WIDTH, "hidden_dim": INNER, "n_heads": 2, "n_layers": 1, "max_position_embeddings": PLACES}
    labels = {"0": "positive", "1": "neutral", "2": "negative"}
    return _words("DistilBertTokenizer") | _model(
        "DistilBertForSequenceClassification", "distilbert", config, labels, shapes
    )


def bert() -> Files:
    """A BERT that tells the names in a text."""
    shapes = _embeddings("bert.embeddings", ("word", "position", "token_type")) | _linear("classifier", 3, WIDTH)
    layer = "bert.encoder.layer.0"
    for name in ("self.query", "self.key", "self.value", "output.dense"):
        shapes |= _linear(f"{layer}.attention.{name}", WIDTH, WIDTH)
    shapes |= _linear(f"{layer}.intermediate.dense", INNER, WIDTH) | _linear(f"{layer}.output.dense", WIDTH, INNER)
    shapes |= _norm(f"{layer}.attention.output.LayerNorm") | _norm(f"{layer}.output.LayerNorm")
    config = {"hidden_size": WIDTH, "intermediate_size": INNER, "num_attention_heads": 2, "num_hidden_layers": 1}
    config["max_position_embeddings"] = PLACES
    labels = {"0": "O", "1": "B-PER", "2": "I-PER"}
    return _words("BertTokenizer") | _model("BertForTokenClassification", "bert", config, labels, shapes)


def bart() -> Files:
    """A BART that tells whether a text entails another."""
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *_bytes(), "<mask>"]
    shapes: Shapes = {"model.shared.weight": (len(vocabulary), WIDTH)}
    for side, kinds in (("encoder", ("self_attn",)), ("decoder", ("self_attn", "encoder_attn"))):
        # Two places more than the configuration says, as in BART.
        shapes[f"model.{side}.embed_positions.weight"] = (PLACES + 2, WIDTH)
        layer = f"model.{side}.layers.0"
        for kind in kinds:
            for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
                shapes |= _linear(f"{layer}.{kind}.{name}", WIDTH, WIDTH)
            shapes |= _norm(f"{layer}.{kind}_layer_norm")
        shapes |= _linear(f"{layer}.fc1", INNER, WIDTH) | _linear(f"{layer}.fc2", WIDTH, INNER)
        shapes |= _norm(f"{layer}.final_layer_norm") | _norm(f"model.{side}.layernorm_embedding")
    shapes |= _linear("classification_head.dense", WIDTH, WIDTH) | _linear("classification_head.out_proj", 3, WIDTH)
    config = {"d_model": WIDTH, "max_position_embeddings": PLACES, "vocab_size": len(vocabulary)}
    for side in ("encoder", "decoder"):
        config |= {f"{side}_layers": 1, f"{side}_attention_heads": 2, f"{side}_ffn_dim": INNER}
    config |= {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    return {
        "tokenizer_config.json": json.dumps({"tokenizer_class": "BartTokenizer", "model_max_length": PLACES}),
        "vocab.json": json.dumps({token: number for number, token in enumerate(vocabulary)}),
        "merges.txt": "#version: 0.2\n",
        **_model("BartForSequenceClassification", "bart", config, LABELS, shapes),
    }


def _words(tokenizer: str) -> dict[str, str | bytes]:
    settings = {"tokenizer_class": tokenizer, "do_lower_case": True, "model_max_length": PLACES}
    return {"tokenizer_config.json": json.dumps(settings), "vocab.txt": "\n".join([*SPECIAL, *WORDS])}


def _model(
    architecture: str, kind: str, config: Mapping[str, int], labels: Mapping[str, str], shapes: Shapes
) -> dict[str, str | bytes]:
    named = {"id2label": labels, "label2id": {label: int(number) for number, label in labels.items()}}
    told = {"vocab_size": len(SPECIAL) + len(WORDS)} | dict(config) | named
    return {
        "config.json": json.dumps({"model_type": kind, "architectures": [architecture], **told}),
        "model.safetensors": safetensors(shapes),
    }


def safetensors(shapes: Shapes) -> bytes:
    """Return a file of random weights of these shapes: a header of JSON, after its length in 8 bytes, and the data."""
    random, start, data = numpy.random.default_rng(0), 0, []
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    for name, shape in shapes.items():
        part = random.normal(0, 0.5, shape).astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": (start, start + len(part))}
        start += len(part)
        data.append(part)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(data)


def _embeddings(name: str, kinds: tuple[str, ...]) -> Shapes:
    rows = {"word": len(SPECIAL) + len(WORDS), "position": PLACES, "token_type": 2}
    return {f"{name}.{kind}_embeddings.weight": (rows[kind], WIDTH) for kind in kinds} | _norm(f"{name}.LayerNorm")


def _linear(name: str, outputs: int, inputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name: str) -> Shapes:
    return {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}


def _bytes() -> list[str]:
    """Return the letters by which GPT-2's and BART's vocabularies write the 256 bytes, in the order of the bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(each if each in plain else next(others)) for each in range(256)]
