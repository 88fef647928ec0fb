"""The types that the test models carry, for both sides: the tests, and the script that makes the models."""

ONNX_TYPES = (
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64",
)  # fmt: skip
TORCH_TYPES = tuple(name for name in ONNX_TYPES if name not in ("UINT16", "UINT32", "UINT64"))
