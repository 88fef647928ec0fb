"""Seeded random weights and data, in the format of the real ones. Runs inside the image, in the project's folder."""

import json
import os
import sys
import wave
from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy

from tests.user_files.projects import CHECKPOINT
from triton_converters.user import rehearsal

SEED = 7
WORDS = ("good", "day", "for", "the", "new", "model", "and", "its", "users")


def pictures(data: Path, number: int, size: int, form: str) -> None:
    """Write pictures of noise, in one folder for each class."""
    from PIL import Image

    random = numpy.random.default_rng(SEED)
    for index in range(number):
        folder = data / form.format(index)
        folder.mkdir(parents=True)
        Image.fromarray(random.integers(0, 256, (size, size, 3), numpy.uint8)).save(folder / "picture.png")


def calibrate(model: Any, size: int) -> None:
    """Let normalization layers see pictures of noise, as in a training: without it, values grow from layer to layer."""
    import torch

    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
    with torch.no_grad():
        model.train()(torch.randn(8, 3, size, size))
    model.eval()


def resnet50(source: Path, data: Path) -> None:
    """ResNet-50 v1.5 of 1,000 classes, and pictures."""
    import torch

    model = import_module("image_classification.models").resnet50(pretrained=False)
    calibrate(model, 224)
    torch.save(model.state_dict(), source / CHECKPOINT)
    pictures(data, 6, 256, "{}")


def gpunet(source: Path, data: Path) -> None:
    """GPUNet-0, as a checkpoint with averaged weights, and pictures."""
    import torch

    model = (
        import_module("models.gpunet_builder")
        .GPUNet_Builder()
        .get_model(json.loads((source / "configs/batch1/GV100/0.65ms.json").read_text()))
    )
    calibrate(model, 320)
    torch.save({"state_dict": model.state_dict(), "state_dict_ema": model.state_dict()}, source / CHECKPOINT)
    pictures(data / "validation", 6, 400, "n{:08}")


def fastpitch(source: Path, data: Path) -> None:
    """FastPitch with its usual sizes, and speech."""
    import argparse
    import importlib.util

    import torch

    specification = importlib.util.spec_from_file_location("nvidias_model", source / "triton/model.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    models, parser = import_module("models"), argparse.ArgumentParser()
    module.update_argparser(parser)
    arguments = parser.parse_args(["--output-format", "ts-trace"])
    config = models.get_model_config(model_name="FastPitch", args=arguments)
    model = models.get_model("FastPitch", config, device="cpu")
    with torch.no_grad():
        # The predicted logarithms of durations: some frames for each symbol, as after a training.
        model.duration_predictor.fc.bias.fill_(1.5)
    torch.save({"state_dict": model.state_dict()}, source / CHECKPOINT)
    speech(source, data)


def speech(source: Path, data: Path) -> None:
    """Sentences with noise as speech, its pitch, and a small pronouncing dictionary."""
    import torch

    random, lines = numpy.random.default_rng(SEED), []
    (data / "wavs").mkdir(parents=True)
    (data / "pitch").mkdir()
    for index in range(6):
        samples = random.integers(-3000, 3000, 256 * (60 + index), numpy.int16)
        with wave.open(str(data / f"wavs/{index}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(22050)
            file.writeframes(samples.tobytes())
        torch.save(100 + 50 * torch.rand(1, len(samples) // 256 + 1), data / f"pitch/{index}.pt")
        lines.append(f"wavs/{index}.wav|pitch/{index}.pt|{' '.join(random.choice(WORDS, 4 + index % 2))}")
    (data / "list.txt").write_text("\n".join(lines))
    (data / "cmudict-0.7b").write_text("MODEL  M AA1 D AH0 L\nDAY  D EY1\n")


def bert(source: Path, data: Path) -> None:
    """BERT for questions and answers, with two layers and without its usual activation, and questions.

    The usual one calls a function of NVIDIA's own PyTorch of 2021: `gelu(approximate=True)`.
    """
    import torch

    modeling = import_module("modeling")

    small = json.loads((source / "bert_configs/base.json").read_text()) | {"num_hidden_layers": 2, "hidden_act": "relu"}
    (source / "bert_configs/tiny.json").write_text(json.dumps(small))
    config = modeling.BertConfig.from_json_file(str(source / "bert_configs/tiny.json"))
    config.vocab_size += -config.vocab_size % 8
    torch.save({"model": modeling.BertForQuestionAnswering(config).state_dict()}, source / CHECKPOINT)
    (source / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]))
    context = " ".join(WORDS)
    questions = [{"id": str(each), "question": WORDS[each], "answers": []} for each in range(6)]
    paragraphs = [{"context": context, "qas": questions}]
    data.mkdir(exist_ok=True)
    (data / "squad.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))


def tft(source: Path, data: Path, plain: bool = False) -> None:
    """A Temporal Fusion Transformer for electricity, and a table of its test set.

    ``plain``: the configuration is written as an OrderedDict with attributes, which ``torch.load`` reads as weights.
    """
    import pickle

    os.environ["TFT_SCRIPTING"] = "True"  # as NVIDIA's model.py has it
    import torch

    config = import_module("configuration").ElectricityConfig()
    model = import_module("modeling").TemporalFusionTransformer(config)
    kept = _plain(config) if plain else config
    batch = {
        "s_cat": torch.zeros(1, config.example_length, 1, dtype=torch.int64), "s_cont": None,
        "k_cat": None, "k_cont": torch.zeros(1, config.example_length, 3), "o_cat": None, "o_cont": None,
        "target": torch.zeros(1, config.example_length, 1), "id": None,
    }  # fmt: skip
    model(batch)  # makes the lazy embeddings
    torch.save({"model": model.state_dict(), "config": kept}, source / "checkpoint/checkpoint.pt")
    random, rows = numpy.random.default_rng(SEED), config.example_length + 5
    frame = import_module("pandas").DataFrame({
        "id": numpy.zeros(rows, int), "hours_from_start": numpy.arange(rows) / rows,
        "power_usage": random.normal(size=rows), "hour": numpy.arange(rows) % 24 / 24,
        "day_of_week": numpy.arange(rows) // 24 % 7 / 7, "categorical_id": numpy.zeros(rows, int),
    })  # fmt: skip
    data.mkdir(exist_ok=True)
    frame.to_csv(data / "test.csv")
    scaler = import_module("sklearn.preprocessing").StandardScaler().fit(random.normal(size=(9, 1)))
    (data / "tgt_scalers.bin").write_bytes(pickle.dumps({0: scaler, "": scaler}))


def tft_plain(source: Path, data: Path) -> None:
    """The same, with the configuration as plain values."""
    tft(source, data, plain=True)


def _plain(config: Any) -> Any:
    """Return an OrderedDict with the attributes of a configuration, whose features have attributes too."""

    def named(values: dict[str, Any]) -> Any:
        made: Any = OrderedDict()
        made.__dict__.update(values)
        return made

    features = [named({name: int(value) if isinstance(value, int) else value for name, value in each._asdict().items()})
                for each in config.features]  # fmt: skip
    return named(vars(config) | {"features": features})


def nnunet(source: Path, data: Path) -> None:
    """A checkpoint as Lightning writes it, with the arguments of the training, and small volumes."""
    import torch

    arguments = SimpleNamespace(dim=3, deep_supervision=False)
    torch.save({"state_dict": {}, "hyper_parameters": {"args": arguments}}, source / CHECKPOINT)
    data.mkdir(exist_ok=True)
    for index in range(10):
        numpy.save(data / f"{index}_x.npy", numpy.zeros((1, 8, 8, 8), numpy.float32))
        numpy.save(data / f"{index}_y.npy", numpy.zeros((1, 8, 8, 8), numpy.uint8))


def resnet50_tf(source: Path, data: Path) -> None:
    """Pictures; a checkpoint is written by TensorFlow 1."""
    pictures(data, 6, 256, "{}")


SEEDS: dict[str, Callable[[Path, Path], None]] = {
    "resnet50": resnet50,
    "gpunet": gpunet,
    "fastpitch": speech,  # its model.py cannot be imported
    "fastpitch-2022": fastpitch,
    "bert": bert,
    "bert-model": bert,
    "tft": tft,
    "tft-plain": tft_plain,
    "tft-model": tft_plain,
    "nnunet": nnunet,
    "resnet50-tf": resnet50_tf,
}


def main(name: str, source: Path, data: Path) -> None:
    """Write weights and data of a project."""
    (source / CHECKPOINT).parent.mkdir(exist_ok=True)
    sys.path.insert(0, str(source))
    rehearsal.begin()
    if name != "resnet50-tf":
        import torch

        torch.manual_seed(SEED)
    SEEDS[name](source, data)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
