"""Export small transformers of random weights by PyTorch's exporter, as users of `transformers` do.

`python3 transformer.py FOLDER`, where torch, onnx and transformers are.
"""

import sys
from pathlib import Path

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertModel,
    T5Config,
    T5EncoderModel,
    ViTConfig,
    ViTForImageClassification,
)

OPTIONS = {"attn_implementation": "eager"}
WORDS = 500
TEXT = torch.ones((2, 16), dtype=torch.int64)
PICTURES = torch.rand((2, 3, 32, 32))


class Tuples(torch.nn.Module):
    """A model whose arguments have names and whose answers are a tuple."""

    def __init__(self, model: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model.eval(), names

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        """Return the first answer."""
        given = dict(zip(self.names, values, strict=True))
        return self.model(**given, return_dict=False)[0]


def export(path: Path, model: torch.nn.Module, values: dict[str, torch.Tensor], output: str, opset: int) -> None:
    """Write a model whose batch, and the length of whose texts, are open."""
    names = list(values)
    axes = {name: {0: "batch", **({1: "sequence"} if value.ndim == 2 else {})} for name, value in values.items()}
    with torch.no_grad():
        torch.onnx.export(
            Tuples(model, names), tuple(values.values()), str(path), input_names=names, output_names=[output],
            dynamic_axes=axes | {output: {0: "batch"}}, opset_version=opset, dynamo=False,
        )  # fmt: skip


def main(folder: Path) -> None:
    """Write every model."""
    torch.manual_seed(0)
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    bert = BertForSequenceClassification(BertConfig(vocab_size=WORDS, num_labels=3, **size, **OPTIONS))
    pair = {"input_ids": TEXT, "attention_mask": TEXT, "token_type_ids": torch.zeros_like(TEXT)}
    export(folder / "bert.onnx", bert, pair, "logits", 14)
    distil = DistilBertConfig(vocab_size=WORDS, dim=64, n_layers=2, n_heads=2, hidden_dim=128, **OPTIONS)
    single = {"input_ids": TEXT, "attention_mask": TEXT}
    export(folder / "distilbert.onnx", DistilBertModel(distil), single, "last_hidden_state", 17)
    t5 = T5EncoderModel(T5Config(vocab_size=WORDS, d_model=64, d_kv=32, d_ff=128, num_layers=2, num_heads=2))
    export(folder / "t5-encoder.onnx", t5, single, "last_hidden_state", 16)
    vit = ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, num_labels=10, **size, **OPTIONS))
    export(folder / "vit.onnx", vit, {"pixel_values": PICTURES}, "logits", 18)
    export(folder / "vit-half.onnx", vit.half(), {"pixel_values": PICTURES.half()}, "logits", 18)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
