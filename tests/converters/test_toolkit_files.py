"""Files written for NVIDIA's deployment toolkit run unchanged: the shapes that DeepLearningExamples documents.

Each text has the form of one of its models' files, in our words: what it imports, declares, takes and returns.
"""

from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.converters.sources import WriteSource
from triton_converters.claim_store.dump import Batch
from triton_converters.contract.conversion_requests import Entrypoint, ModelCode, ReferenceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.user.dataloader import batches
from triton_converters.user.metrics import calculate, gather
from triton_converters.user.user_code import call

STAGE = {"precision": "fp32", "output_format": "ts-trace", "batch_size": 8}

FASTPITCH = """
import argparse
from typing import List

def update_argparser(parser):
    parser.add_argument("--checkpoint", type=str, required=True, help="of the generator")
    parser.add_argument("--ema", action="store_true", help="use the averaged weights")
    model = parser.add_argument_group("architecture")
    model.add_argument("--n-mel-channels", default=80, type=int)
    model.add_argument("--symbols-embedding-dim", default=384, type=int)
    model.add_argument("--in-fft-output-size", default=384, type=int)
    model.add_argument("--p-in-fft-dropout", default=0.1, type=float)
    model.add_argument("--pitch-conditioning-formants", default=1, type=int)
    model.add_argument("--energy-conditioning", action="store_true")
    model.add_argument("--text-cleaners", nargs="*", default=["english_cleaners_v2"])
    parser.add_argument("--precision", choices=["fp32", "fp16"], default="fp16")

def get_model(**model_args):
    args = argparse.Namespace(**model_args)
    names = {"inputs": ["INPUT__0"], "outputs": [f"OUTPUT__{i}" for i in range(5)]}
    return args, names
"""


def entry(path: str, **arguments: str) -> Entrypoint:
    return Entrypoint(path, arguments)


def test_a_namespace_of_all_that_the_argparser_declares(write_source: WriteSource) -> None:
    """FastPitch: flags, lists, a required checkpoint, and every default in one Namespace."""
    source = write_source({"triton/model.py": FASTPITCH, "weights/fastpitch.pt": ""})
    given = entry("triton/model.py", checkpoint="weights/fastpitch.pt", ema="true", **{"text-cleaners": "[a, b]"})
    args, names = call(source, given, "get_model", STAGE)
    assert vars(args) == STAGE | {
        "checkpoint": str(source / "weights/fastpitch.pt"),
        "ema": True,
        "n_mel_channels": 80,
        "symbols_embedding_dim": 384,
        "in_fft_output_size": 384,
        "p_in_fft_dropout": 0.1,
        "pitch_conditioning_formants": 1,
        "energy_conditioning": False,
        "text_cleaners": ["a", "b"],
    }
    assert names["outputs"][-1] == "OUTPUT__4"


def test_a_required_argument_that_nobody_gives_is_named(write_source: WriteSource) -> None:
    with pytest.raises(StageError) as caught:
        call(write_source({"model.py": FASTPITCH}), entry("model.py"), "get_model", STAGE)
    assert caught.value.reason is Reason.INVALID_SPEC
    assert "--checkpoint" in caught.value.message


NNUNET = """
import importlib
from typing import List, Optional
import numpy as np
from triton.deployment_toolkit.core import BaseMetricsCalculator

def get_dataloader_fn(*, data_dir: str, batch_size: int, precision: str, folds: List[int], patch: Optional[int] = None):
    def _get_dataloader():
        for i, fold in enumerate(folds):
            x = np.full((batch_size, 4, 2, 2, 2), fold, dtype=np.dtype(f"float{precision[2:]}"))
            yield [f"{data_dir}/{i}/{j}" for j in range(batch_size)], {"INPUT__0": x}, {"OUTPUT__0": x[:, :1]}
    return _get_dataloader

class MetricsCalculator(BaseMetricsCalculator):
    def __init__(self, output_used_for_metrics: str = "OUTPUT__0"):
        self._output = output_used_for_metrics
    def calc(self, *, ids, y_pred, x, y_real):
        agree = y_pred[self._output] == y_real[self._output]
        return {"dice": float(agree.mean())}
"""


def load(source: Path, loader: Entrypoint, max_batch_size: int) -> list[Batch]:
    code = ModelCode("pyt", entry("model.py"), max_batch_size)
    request = ReferenceRequest("k", "s", code, loader, 64, needs_labels=True)
    return list(batches(request, source, ("INPUT__0",)))


def test_the_dataloader_s_batch_size_is_the_stage_s_or_the_spec_s(write_source: WriteSource) -> None:
    """nnU-Net: keyword-only arguments, typed lists; 1 to convert two of NVIDIA's examples, else the maximum."""
    source = write_source({"loader.py": NNUNET})
    given = {"data_dir": "/data", "folds": "1 2"}
    assert [len(batch.ids) for batch in load(source, Entrypoint("loader.py", given), 4)] == [4, 4]
    assert [len(batch.ids) for batch in load(source, Entrypoint("loader.py", given | {"batch_size": "1"}), 4)] == [1, 1]


def answers(source: Path, path: str, reference: list[Batch], served: list[dict[str, Any]]) -> tuple[Any, Any]:
    """Metrics of the framework's outputs, and of those that were served."""
    framework, candidate = (
        calculate(source, entry(path), STAGE, gather(reference, True, outputs)) for outputs in (None, served)
    )
    return framework, candidate


def test_metrics_that_import_the_toolkit_beside_torch_s_triton(write_source: WriteSource) -> None:
    source = write_source({"loader.py": NNUNET})
    ids, ones = numpy.array(["a", "b"]), numpy.ones((2, 1, 2), numpy.float32)
    reference = [Batch(ids, {"INPUT__0": ones}, {"OUTPUT__0": ones}, {"OUTPUT__0": ones})]
    framework, served = answers(source, "loader.py", reference, [{"OUTPUT__0": ones[0]}, {"OUTPUT__0": 2 * ones[1]}])
    assert (framework["dice"], served["dice"]) == (1.0, 0.5)


RESNET_TF = """
from typing import Any, Dict, List, NamedTuple, Optional
import numpy as np
from deployment_toolkit.core import BaseMetricsCalculator

class MetricsCalculator(BaseMetricsCalculator):
    def __init__(self, output_used_for_metrics: str = "classes"):
        self._output_used_for_metrics = output_used_for_metrics
        self._equals = []

    def update(self, ids: List[Any], y_pred: Dict[str, np.ndarray], x, y_real: Optional[Dict[str, np.ndarray]]):
        self._equals.append(y_pred[self._output_used_for_metrics] == y_real[self._output_used_for_metrics])

    @property
    def metrics(self):
        return {"accuracy": np.concatenate(self._equals, axis=0).mean()}
"""


def test_metrics_by_update_and_a_property(write_source: WriteSource) -> None:
    """ResNet-50 of TensorFlow: the older contract, whose figure is a NumPy scalar."""
    source = write_source({"metrics.py": RESNET_TF})
    ids, classes = numpy.arange(4), numpy.array([1, 2, 3, 4])
    reference = [Batch(ids, {"input": classes}, {"classes": classes}, {"classes": numpy.array([1, 2, 3, 0])})]
    framework, served = answers(
        source, "metrics.py", reference, [{"classes": numpy.int64(each)} for each in (1, 2, 0, 0)]
    )
    assert (framework["accuracy"], served["accuracy"]) == (0.75, 0.5)


MEL_RANGE = """
import numpy as np
from deployment_toolkit.core import BaseMetricsCalculator

class MetricsCalculator(BaseMetricsCalculator):
    def calc(self, *, ids, y_pred, x, y_real):
        mel = y_pred["OUTPUT__0"]
        frames = np.isfinite(mel).sum()
        return {"longest": float(mel.shape[1]), "mel_max": float(np.nanmax(mel)), "frames": float(frames)}
"""


def test_outputs_of_several_lengths_are_padded_with_nan(write_source: WriteSource) -> None:
    """FastPitch: the length of the speech is the model's own choice."""
    source = write_source({"metrics.py": MEL_RANGE})
    reference = [
        Batch(numpy.array([length]), {"INPUT__0": numpy.zeros((1, 3))}, {}, {"OUTPUT__0": numpy.full((1, length), 2.0)})
        for length in (3, 5)
    ]
    served = [{"OUTPUT__0": numpy.full(length, 2.0)} for length in (3, 4)]
    framework, answered = answers(source, "metrics.py", reference, served)
    assert framework == {"longest": 5.0, "mel_max": 2.0, "frames": 8.0}
    assert answered == {"longest": 4.0, "mel_max": 2.0, "frames": 7.0}
