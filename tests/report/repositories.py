"""Triton model repositories as people have them: texts by path, with the smallest files that show what they are."""

TEXT_STEP = """
import json
import numpy as np
import triton_python_backend_utils as pb_utils
from words import count
class TritonPythonModel:
    def initialize(self, args):
        self.scale = json.loads(args["model_config"])["parameters"]["scale"]["string_value"]
    def execute(self, requests):
        return [pb_utils.InferenceResponse([]) for _ in requests]
"""
PLAIN_STEP = """
import numpy as np
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([]) for _ in requests]
"""
TOKENIZER = """
# what the tokenizer takes and gives
name: "tokenizer"
backend: "python"
max_batch_size: 8
input [ { name: "text" data_type: TYPE_STRING dims: [ 1 ] } ]
output [
  { name: "ids", data_type: TYPE_INT64, dims: [ -1 ] },
  { name: "mask", data_type: TYPE_INT64, dims: [ -1 ] }
]
instance_group [ { count: 2 kind: KIND_CPU } ]
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 500
  default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 900 } }
parameters { key: "scale" value: { string_value: "2" } }
"""
NETWORK = """
name: "network"
backend: "onnxruntime"
max_batch_size: 16
input { name: "ids" data_type: TYPE_INT64 dims: -1 }
input { name: "mask" data_type: TYPE_INT64 dims: -1 }
output { name: "logits" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" }
version_policy { specific { versions: [ 2 ] } }
instance_group [ { kind: KIND_GPU, gpus: [ 0 ] } ]
"""
LABELS = """
backend: "python"
max_batch_size: 8
input [ { name: "logits" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "label" data_type: TYPE_STRING dims: [ 1 ] }, { name: "score" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
ENSEMBLE = """
name: "classifier"
platform: "ensemble"
max_batch_size: 8
input [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "LABEL" data_type: TYPE_STRING dims: [ 1 ] } ]
ensemble_scheduling {
  step [
    { model_name: "labels" model_version: -1
      input_map { key: "logits" value: "LOGITS" }
      output_map { key: "label" value: "LABEL" } },
    { model_name: "tokenizer" model_version: -1
      input_map { key: "text" value: "TEXT" }
      output_map { key: "ids" value: "IDS" }
      output_map { key: "mask" value: "MASK" } },
    { model_name: "network" model_version: 2
      input_map [ { key: "ids" value: "IDS" }, { key: "mask" value: "MASK" } ]
      output_map { key: "logits" value: "LOGITS" } }
  ]
}
"""
CLASSIFIER = {
    "models/classifier/config.pbtxt": ENSEMBLE,
    "models/classifier/1/.keep": "",
    "models/tokenizer/config.pbtxt": TOKENIZER,
    "models/tokenizer/1/model.py": TEXT_STEP,
    "models/tokenizer/1/words.py": "def count(text): ...\n",
    "models/network/config.pbtxt": NETWORK,
    "models/network/1/model.onnx": "old",
    "models/network/2/model.onnx": "graph",
    "models/labels/config.pbtxt": LABELS,
    "models/labels/1/model.py": PLAIN_STEP,
}
"""Text to label: a tokenizer, a network and its labels, with steps that are not in their order."""
ALONE = {"counter/config.pbtxt": LABELS, "counter/1/model.py": PLAIN_STEP}
"""One Python model."""
