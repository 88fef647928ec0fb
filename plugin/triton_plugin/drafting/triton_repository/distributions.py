"""Which package of the index has a module: a table that people checked, because a guess may be an attacker's. Pure."""

import re
from collections.abc import Mapping

DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "PIL": ("pillow", "pillow-simd"),
    "accelerate": ("accelerate",),
    "albumentations": ("albumentations",),
    "attr": ("attrs",),
    "av": ("av",),
    "bs4": ("beautifulsoup4",),
    "cachetools": ("cachetools",),
    "catboost": ("catboost",),
    "ctranslate2": ("ctranslate2",),
    "cv2": (
        "opencv-python-headless",
        "opencv-contrib-python-headless",
        "opencv-python",
        "opencv-contrib-python",
    ),
    "dateutil": ("python-dateutil",),
    "diffusers": ("diffusers",),
    "einops": ("einops",),
    "emoji": ("emoji",),
    "faiss": ("faiss-cpu", "faiss-gpu"),
    "faster_whisper": ("faster-whisper",),
    "ftfy": ("ftfy",),
    "gensim": ("gensim",),
    "gliner": ("gliner",),
    "google.protobuf": ("protobuf",),
    "huggingface_hub": ("huggingface-hub",),
    "imageio": ("imageio",),
    "jinja2": ("jinja2",),
    "joblib": ("joblib",),
    "jsonschema": ("jsonschema",),
    "keras": ("keras",),
    "Levenshtein": ("levenshtein", "python-levenshtein"),
    "librosa": ("librosa",),
    "lightgbm": ("lightgbm",),
    "loguru": ("loguru",),
    "lxml": ("lxml",),
    "matplotlib": ("matplotlib",),
    "msgpack": ("msgpack",),
    "networkx": ("networkx",),
    "nibabel": ("nibabel",),
    "nltk": ("nltk",),
    "numba": ("numba",),
    "onnx": ("onnx",),
    "onnxruntime": ("onnxruntime", "onnxruntime-gpu"),
    "open_clip": ("open-clip-torch",),
    "orjson": ("orjson",),
    "packaging": ("packaging",),
    "pandas": ("pandas",),
    "peft": ("peft",),
    "polars": ("polars",),
    "psutil": ("psutil",),
    "pyarrow": ("pyarrow",),
    "pyannote.audio": ("pyannote-audio",),
    "pyclipper": ("pyclipper",),
    "pycocotools": ("pycocotools",),
    "pydantic": ("pydantic",),
    "pydicom": ("pydicom",),
    "pydub": ("pydub",),
    "pywt": ("pywavelets",),
    "rapidfuzz": ("rapidfuzz",),
    "regex": ("regex",),
    "requests": ("requests",),
    "resampy": ("resampy",),
    "safetensors": ("safetensors",),
    "scipy": ("scipy",),
    "segmentation_models_pytorch": ("segmentation-models-pytorch",),
    "sentence_transformers": ("sentence-transformers",),
    "sentencepiece": ("sentencepiece",),
    "shapely": ("shapely",),
    "SimpleITK": ("simpleitk",),
    "six": ("six",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "soundfile": ("soundfile",),
    "spacy": ("spacy",),
    "sympy": ("sympy",),
    "tensorflow": ("tensorflow", "tensorflow-cpu"),
    "tifffile": ("tifffile",),
    "tiktoken": ("tiktoken",),
    "timm": ("timm",),
    "tokenizers": ("tokenizers",),
    "torch": ("torch",),
    "torchaudio": ("torchaudio",),
    "torchvision": ("torchvision",),
    "tqdm": ("tqdm",),
    "transformers": ("transformers",),
    "tritonclient": ("tritonclient",),
    "typing_extensions": ("typing-extensions",),
    "ujson": ("ujson",),
    "ultralytics": ("ultralytics",),
    "unidecode": ("unidecode",),
    "xgboost": ("xgboost",),
    "yaml": ("pyyaml",),
    "zstandard": ("zstandard",),
}
"""The packages that have a module, by its name, the one to propose first. A name with a dot is that of a module in a
namespace which several packages share. Each has wheels: none is built from its sources here."""
NAMESPACES = frozenset(name.partition(".")[0] for name in DISTRIBUTIONS if "." in name)
HEADLESS: Mapping[str, str] = {
    "opencv-python": "opencv-python-headless",
    "opencv-contrib-python": "opencv-contrib-python-headless",
}
"""Packages that need libraries of a desktop, which no server has, and the same ones without."""
OF_TORCH = frozenset(
    {
        *("torch", "torchvision", "torchaudio", "timm", "accelerate", "peft", "open_clip", "sentence_transformers"),
        *("gliner", "ultralytics", "segmentation_models_pytorch", "pyannote.audio"),
    }
)
"""Modules that come with PyTorch."""


def normal(name: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def module(name: str) -> str:
    """Return what of a dotted name a package is looked for by: the first part, or two of a namespace's."""
    first, _, rest = name.partition(".")
    second = rest.partition(".")[0]
    return f"{first}.{second}" if first in NAMESPACES and second else first
