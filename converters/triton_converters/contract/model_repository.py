"""The layout of a Triton model repository: a folder for each model, with config.pbtxt and a folder for each version.

Standard library only. Source: docs/user_guide/model_repository.md of tritonserver.
"""

import re

CONFIG = "config.pbtxt"
VERSION = re.compile(r"[1-9][0-9]{0,8}")
"""The name of a version's folder; Triton ignores other names, and numbers that begin with 0."""
PYTHON_BACKEND = (
    "a Python backend is code: serve it as a step of an ensemble, which `kubectl triton init` writes, or give the model"
    " that it runs as a file of format onnx, ts-script or tf-savedmodel"
)
"""Why a Python backend is refused, and what to do instead."""
