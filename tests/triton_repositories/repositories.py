"""The repositories of docs/triton-repositories.md, in the order of the rule, and what each gets before its try."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.triton_repositories import hub_models


@dataclass(frozen=True)
class Repository:
    """A public repository."""

    name: str
    """Owner and name on GitHub."""
    commit: str
    folder: str
    """The Triton model repository in it."""
    pipelines: tuple[str, ...]
    """Every ensemble, and every Python model that is in none, below ``folder``."""
    graphs: Mapping[str, str] = field(default_factory=dict)
    """The config.pbtxt, as text, by its folder: a model whose whole folder is elsewhere. It is not written."""
    data: Mapping[str, str | bytes] = field(default_factory=dict)
    """Contents by their paths: what comes with the weights, and is not in the repository either."""
    networks: Mapping[str, str] = field(default_factory=dict)
    """The programs that make SavedModels and TorchScript, by their paths. Only their frameworks can, and init reads
    names alone."""

    @property
    def short(self) -> str:
        """A name for files and objects."""
        return self.name.partition("/")[0].lower()


_YOLO = (
    'input { name: "input" data_type: TYPE_FP32 dims: [ 1, 3, 416, 416 ] }'
    ' output { name: "output" data_type: TYPE_FP32 dims: [ 1, 10647, 84 ] }'
)
_VOCABULARY = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\ncat\ngood\nit\npeople\nrains\ntwo"
_COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _hub(step: str, name: str, files: Mapping[str, str | bytes]) -> dict[str, str | bytes]:
    """A model of the Hugging Face hub, made by us, as it lies next to a step's file."""
    folder = f"{step}/huggingface/models--{name.replace('/', '--')}"
    return {
        f"{folder}/refs/main": _COMMIT,
        **{f"{folder}/snapshots/{_COMMIT}/{each}": text for each, text in files.items()},
    }


_TOKENIZER = {
    "config.json": '{"model_type": "distilbert", "vocab_size": 12, "dim": 16, "n_heads": 2, "n_layers": 1}',
    "tokenizer_config.json": '{"tokenizer_class": "DistilBertTokenizer", "do_lower_case": true}',
    "vocab.txt": _VOCABULARY,
}
REPOSITORIES = (
    Repository(
        "rh-aiservices-bu/kserve-triton-ensemble-testing",
        "fe740c164aa5",
        "model01/xgb_v2",
        ("ensemble_merger_google_xgb",),
    ),
    Repository(
        "Kirill-Tamogashev/Triton-ensemble-for-bert",
        "3259252fdb0c",
        "model_repository",
        ("ensemble_model",),
        data={"tokenizer/1/vocab.txt": _VOCABULARY},
    ),
    Repository(
        "luizvilasboas/triton-ensemble",
        "d43897dff44b",
        "models",
        ("yolov8n_ensemble",),
    ),
    Repository(
        "gianpd/triton-inference",
        "87f7ea0ee57e",
        # The folder of the server, whose requirements.txt is for its steps.
        "TritonServer",
        ("model_repository/pipeline",),
        networks={"model_repository/od/1/model.savedmodel": "detector.py"},
    ),
    Repository(
        "rizwanishaq/triton-inference-server-examples",
        "31eeb0eb7616",
        "models",
        (
            "decoupled/models/square_int32",
            "get_languages/models/get_languages",
            "get_languages/models/requests_counter",
            "jpg_model",
            "python_backend_batch",
            "t2t_lang",
            "vad_silero",
            "webp_model",
        ),
    ),
    Repository(
        "gladiaio/triton-inference-memory-allocation",
        "8076715b4c7d",
        "models",
        ("pyannote_diarization", "whisper_mel_worker"),
    ),
    Repository(
        "Pranjalya/triton-inference-docker",
        "0a840e7a16c0",
        "tritonserverpipeline/models",
        (
            "classification_bart_large_mnli",
            "ner_gliner_multilingual",
            "ner_wikineural_multilingual",
            "sentiment_distilbert_multilingual",
            "summarization_bart_large_cnn",
        ),
        data={
            **_hub("classification_bart_large_mnli/1", "facebook/bart-large-mnli", hub_models.bart()),
            **_hub("summarization_bart_large_cnn/1", "facebook/bart-large-cnn", hub_models.bart()),
            **_hub("ner_wikineural_multilingual/1", "Babelscape/wikineural-multilingual-ner", hub_models.bert()),
            **_hub(
                "sentiment_distilbert_multilingual/1",
                "lxyuan/distilbert-base-multilingual-cased-sentiments-student",
                hub_models.distilbert(),
            ),
        },
    ),
    Repository(
        "151ali/triton-inference-server-examples",
        "00cb90b7d667",
        "model_repository",
        ("yolov4_pipeline",),
        {"yolov4": _YOLO},
    ),
    Repository(
        "blokhinnv/triton-inference-example",
        "002f49385de6",
        "models",
        ("cifar10-ensemble",),
    ),
    Repository("loki-lab/triton-inference-ocr", "301407fcbfd6", "model_repository", ("pp_ocr", "rec_pp")),
    Repository("nbdaaa/bge-m3-onnx-Triton-Inference-Server", "f6fbeaaa2e64", "model_repository", ("bge_m3_ensemble",)),
    Repository(
        "RamVegiraju/triton-inference-server-examples",
        "26b4ca2225ee",
        ".",
        ("ensemble/hf_pipeline/text_ensemble", "conda-python-backend/nlp/sentiment"),
        data=_hub("ensemble/hf_pipeline/preprocess/1", "distilbert-base-uncased", _TOKENIZER),
        networks={"ensemble/hf_pipeline/torch_classifier/1/model.pt": "classifier.py"},
    ),
)
