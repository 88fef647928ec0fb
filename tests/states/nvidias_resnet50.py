"""The settings of NVIDIA's ResNet50 v1.5 for PyTorch on an A100: the README's tables, then its command.

If text and table differ (queue delay 0 or 1, preferred batch sizes 128 or 64 and 128), the table is used.
"""

from typing import Any

TABLE = {
    "Max Batch Size": 128,
    "Number of model instances": 1,
    "Triton Max Queue Delay": 1,
    "Triton Preferred Batch Sizes": [64, 128],
    "Model format": "onnx",
    "Backend": "onnxruntime",
    "Backend accelerator": "tensorrt",
    "Precision": "FP16",
    "Client Batch Size": [1, 2, 4, 8, 16, 32, 64, 128],
    "Concurrent client requests": [16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256],
}
"""Parameters of the offline and online scenarios, and the column that counts their rows."""
COMMAND = {"--onnx-opset": 11, "--onnx-optimized": 1, "--max-workspace-size": 1073741824, "--capture-cuda-graph": 0}
"""The options of the conversion and configuration steps."""
PRODUCT = "NVIDIA-A100-SXM4-80GB"

SPEC: dict[str, Any] = {
    "source": {"uri": "pvc://models/resnet50"},
    "dataset": {"uri": "pvc://datasets/imagenet"},
    "dataloader": {"entrypoint": "dataloader.py", "arguments": {"data_dir": "$(DATASET)"}},
    "metrics": {"entrypoint": "metrics.py"},
    "accuracy": {"thresholds": [{"metric": "accuracy", "min": 0.76}]},
    "models": [
        {
            "name": "resnet50",
            "format": "pyt",
            "entrypoint": "model.py",
            "arguments": {"checkpoint": "nvidia_resnet50_200821.pth.tar", "config": "resnet50"},
            "config": {
                "maxBatchSize": 128,
                "instances": 1,
                "dynamicBatching": {"preferredBatchSizes": [64, 128], "maxQueueDelay": "1us"},
                "cudaGraphs": False,
            },
            "candidates": [{"name": "onnx-trt-fp16", "format": "onnx", "precision": "fp16", "accelerator": "trt"}],
            "onnx": {"opset": 11, "optimized": True},
            "tensorrt": {"workspace": "1Gi"},
        }
    ],
    "gpu": {"product": PRODUCT, "count": 1},
    "performance": {
        "offline": {"batchSizes": [1, 2, 4, 8, 16, 32, 64, 128]},
        "online": {"batchSize": 1, "concurrency": {"start": 16, "end": 256, "step": 16}},
        "sharedMemory": [],
    },
    "serving": {"image": "nvcr.io/nvidia/tritonserver:26.03-py3", "pod": {"resources": {"limits": {"memory": "16Gi"}}}},
}
