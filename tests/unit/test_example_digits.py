import importlib.util
import json
import math
import re
from pathlib import Path
from types import ModuleType

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "manifests/examples/digits"


def user_file(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"digits_{name}", DIGITS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_dataloader_yields_every_held_out_picture_once_in_order(tmp_path: Path) -> None:
    pictures = np.random.default_rng(0).random((70, 1, 8, 8), dtype=np.float32)
    digits = np.arange(70, dtype=np.int64) % 10
    np.savez(tmp_path / "held-out.npz", pictures=pictures, digits=digits)

    batches = list(user_file("dataloader").get_dataloader_fn(data_dir=str(tmp_path), batch_size=32)())

    assert [len(ids) for ids, _, _ in batches] == [32, 32, 6]
    assert [number for ids, _, _ in batches for number in ids] == [str(number) for number in range(70)]
    np.testing.assert_array_equal(np.concatenate([x["INPUT__0"] for _, x, _ in batches]), pictures)
    np.testing.assert_array_equal(np.concatenate([y["OUTPUT__0"] for _, _, y in batches]), digits)


def test_accuracy_is_the_fraction_of_pictures_read_right() -> None:
    logits = np.eye(10, dtype=np.float32)[[3, 1, 4, 1]]
    digits = np.array([3, 1, 4, 5], dtype=np.int64)
    calculator = user_file("metrics").MetricsCalculator(output_used_for_metrics="OUTPUT__0")

    metrics = calculator.calc(ids=list("abcd"), y_pred={"OUTPUT__0": logits}, x={}, y_real={"OUTPUT__0": digits})

    assert metrics == {"accuracy": 0.75}


def test_the_request_is_one_picture_of_the_served_shape() -> None:
    (tensor,) = json.loads((DIGITS / "request.json").read_text(encoding="utf-8"))["inputs"]
    assert (tensor["name"], tensor["datatype"], tensor["shape"]) == ("INPUT__0", "FP32", [1, 1, 8, 8])
    assert len(tensor["data"]) == math.prod(tensor["shape"])
    assert {value * 16 for value in tensor["data"]} <= set(range(17))


def test_the_trainers_image_shares_its_large_layer_with_the_converters() -> None:
    def first_layers(name: str) -> list[str]:
        text = (ROOT / "images" / name / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
        return [re.sub(r"\s+", " ", line) for line in text.splitlines() if line.startswith("RUN")][:2]

    assert first_layers("digits-trainer") == first_layers("converter")
