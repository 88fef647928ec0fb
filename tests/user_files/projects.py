"""The projects: which files of the checkout are taken, and the object that a user would write for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Arguments = Mapping[str, str]
CHECKPOINT = "checkpoint/model.pt"
"""Where ``seeds`` writes the weights, below the source."""
TORCH = (("ts-trace", "fp32"), ("ts-trace", "fp16"), ("onnx", "fp32"), ("onnx", "fp16"))
SCRIPT = (("ts-script", "fp32"),)


@dataclass(frozen=True)
class UserFile:
    """A file of the interface, and its function's arguments in the spec."""

    path: str
    arguments: Arguments = field(default_factory=dict)


@dataclass(frozen=True)
class Project:
    """A folder of the checkout whose files are taken as they are."""

    name: str
    folder: str
    """Its path in the checkout."""
    parts: tuple[str, ...]
    """What is taken of it: files and folders below ``folder``."""
    model: UserFile
    dataloader: UserFile
    metrics: UserFile | None
    candidates: tuple[tuple[str, str], ...]
    """Formats and precisions."""
    max_batch_size: int
    samples: int = 4
    packages: tuple[str, ...] = ()
    """What the image lacks, by the names in packages.txt."""
    logger: bool = False
    """Whether NVIDIA's dllogger is added to the source: it is on no package index."""
    format: str = "pyt"
    image: str = "converter"
    commit: str = "HEAD"
    standin: str = ""
    """A dataloader of ours in ``standins/``, because the project's own does not run; the table says so."""
    note: str = ""
    """What is not as NVIDIA has it, besides weights and data."""


_VISION = "PyTorch/Classification/ConvNets"
_GPUNET = "PyTorch/Classification/GPUNet"
_SPEECH = "PyTorch/SpeechSynthesis/FastPitch"
_BERT = "PyTorch/LanguageModeling/BERT"
_TFT = "PyTorch/Forecasting/TFT"
_UNET = "PyTorch/Segmentation/nnUNet"
_TENSORFLOW = "TensorFlow/Classification/ConvNets"

_SPEECH_PARTS = ("triton", "fastpitch", "common", "waveglow", "cmudict", "inference.py", "models.py")
_SPEECH_MODEL = UserFile("triton/model.py", {"checkpoint": CHECKPOINT})
_SPEECH_LOADER = UserFile(
    "triton/dataloader.py",
    {
        "dataset_path": "$(DATASET)",
        "filelist": "$(DATASET)/list.txt",
        "cmudict_path": "$(DATASET)/cmudict-0.7b",
        "heteronyms_path": "cmudict/heteronyms",
    },
)
_SPEECH_METRICS = UserFile("triton/metrics.py", {"output_used_for_metrics": "OUTPUT__0"})
_SPEECH_PACKAGES = (
    "librosa",
    "numba",
    "llvmlite",
    "scipy",
    "scikit-learn",
    "joblib",
    "cloudpickle",
    "narwhals",
    "threadpoolctl",
    "audioread",
    "decorator",
    "soxr",
    "pooch",
    "platformdirs",
    "lazy-loader",
    "msgpack",
    "soundfile",
    "cffi",
    "pycparser",
    "inflect",
    "more-itertools",
    "typeguard",
    "tqdm",
    "tensorboard",
    "absl-py",
    "requests",
    "urllib3",
    "idna",
    "certifi",
    "charset-normalizer",
    "standard-aifc",
    "standard-sunau",
    "standard-chunk",
    "audioop-lts",
)
_BERT_MODEL = UserFile("triton/model.py", {"checkpoint": CHECKPOINT, "config_file": "bert_configs/tiny.json"})
_BERT_PARTS = (
    "triton", "bert_configs", "modeling.py", "file_utils.py", "run_squad.py", "tokenization.py", "optimization.py",
    "schedulers.py", "utils.py",
)  # fmt: skip
_BERT_PACKAGES = (
    "boto3",
    "botocore",
    "s3transfer",
    "jmespath",
    "python-dateutil",
    "six",
    "tqdm",
    "requests",
    "urllib3",
    "idna",
    "certifi",
    "charset-normalizer",
)
_TFT_MODEL = UserFile("triton/model.py", {"checkpoint": "checkpoint", "precision": "fp32"})
_TFT_PARTS = ("triton", "modeling.py", "configuration.py", "data_utils.py", "criterions.py", "utils.py")
_TFT_LOADER = UserFile("triton/dataloader.py", {"checkpoint": "checkpoint", "dataset": "$(DATASET)"})
_TFT_PACKAGES = (
    "pandas",
    "python-dateutil",
    "six",
    "scikit-learn",
    "scipy",
    "joblib",
    "cloudpickle",
    "narwhals",
    "threadpoolctl",
)
_TFT_METRICS = UserFile("triton/metrics.py", {"checkpoint": "checkpoint", "dataset": "$(DATASET)"})

PROJECTS = (
    Project(
        "resnet50",
        _VISION,
        ("triton", "image_classification"),
        UserFile("triton/model.py", {"config": "resnet50", "checkpoint": CHECKPOINT}),
        UserFile("triton/dataloader.py", {"data_dir": "$(DATASET)"}),
        UserFile("triton/metric.py"),
        (*TORCH, *SCRIPT),
        2,
        packages=("pillow",),
    ),
    Project(
        "gpunet",
        _GPUNET,
        ("triton", "models", "configs"),
        UserFile(
            "triton/model.py",
            {"config": "configs/batch1/GV100/0.65ms.json", "checkpoint": CHECKPOINT, "is_prunet": "False"},
        ),
        UserFile(
            "triton/dataloader.py",
            {"config": "configs/batch1/GV100/0.65ms.json", "val_path": "$(DATASET)", "is_prunet": "False"},
        ),
        UserFile("triton/metrics.py"),
        TORCH,
        2,
        packages=("timm", "pillow"),
    ),
    Project(
        "fastpitch",
        _SPEECH,
        (*_SPEECH_PARTS, "hifigan"),
        _SPEECH_MODEL,
        _SPEECH_LOADER,
        _SPEECH_METRICS,
        (*TORCH, *SCRIPT),
        2,
        packages=_SPEECH_PACKAGES,
        logger=True,
    ),
    Project(
        "fastpitch-2022",
        _SPEECH,
        _SPEECH_PARTS,
        _SPEECH_MODEL,
        _SPEECH_LOADER,
        _SPEECH_METRICS,
        (*TORCH, *SCRIPT),
        1,
        packages=_SPEECH_PACKAGES,
        logger=True,
        commit="1083538c",
        note="the commit before its model.py and its inference.py no longer fitted",
    ),
    Project(
        "bert",
        _BERT,
        _BERT_PARTS,
        _BERT_MODEL,
        UserFile("triton/dataloader.py", {"vocab_file": "vocab.txt", "predict_file": "$(DATASET)/squad.json"}),
        None,
        TORCH,
        2,
        packages=_BERT_PACKAGES,
        logger=True,
        note="a configuration with 2 layers and relu",
    ),
    Project(
        "bert-model",
        _BERT,
        _BERT_PARTS,
        _BERT_MODEL,
        UserFile("standin.py"),
        None,
        TORCH,
        2,
        packages=_BERT_PACKAGES,
        standin="bert.py",
        note="a configuration with 2 layers and relu",
    ),
    Project("tft", _TFT, _TFT_PARTS, _TFT_MODEL, _TFT_LOADER, _TFT_METRICS, TORCH, 2, packages=_TFT_PACKAGES),
    Project(
        "tft-plain",
        _TFT,
        _TFT_PARTS,
        _TFT_MODEL,
        _TFT_LOADER,
        _TFT_METRICS,
        TORCH,
        2,
        packages=_TFT_PACKAGES,
        note="the checkpoint holds its configuration as plain values",
    ),
    Project(
        "tft-model",
        _TFT,
        _TFT_PARTS,
        _TFT_MODEL,
        UserFile("standin.py"),
        None,
        TORCH,
        2,
        packages=_TFT_PACKAGES,
        standin="tft.py",
        note="the checkpoint holds its configuration as plain values",
    ),
    Project(
        "nnunet",
        _UNET,
        ("triton", "nnunet", "data_loading", "utils"),
        UserFile("triton/model.py", {"checkpoint_dir": CHECKPOINT, "data_dir": "$(DATASET)"}),
        UserFile("triton/dataloader.py", {"data_dir": "$(DATASET)"}),
        UserFile("triton/metrics.py"),
        TORCH,
        2,
        packages=("pytorch-lightning", "lightning-utilities", "torchmetrics", "tqdm"),
        logger=True,
    ),
    Project(
        "resnet50-tf",
        _TENSORFLOW,
        ("triton", "runtime", "model", "utils"),
        UserFile("triton/rn50_model.py", {"model_dir": "checkpoint"}),
        UserFile("triton/dataloader.py", {"data_dir": "$(DATASET)"}),
        UserFile("triton/metrics.py"),
        (("tf-savedmodel", "fp32"), ("onnx", "fp32")),
        2,
        packages=("pillow",),
        logger=True,
        format="tf-estimator",
        image="converter-tensorflow",
    ),
)
