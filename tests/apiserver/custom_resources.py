"""TritonDeployments for tests."""

import copy
from typing import Any

JSON = dict[str, Any]

MINIMAL: JSON = {
    "apiVersion": "triton-operator.dev/v1alpha1",
    "kind": "TritonDeployment",
    "metadata": {"name": "digits"},
    "spec": {
        "source": {"uri": "pvc://models/digits"},
        "dataloader": {"entrypoint": "dataloader.py"},
        "models": [
            {
                "name": "digits",
                "format": "pyt",
                "entrypoint": "model.py",
                "candidates": [{"name": "onnx-fp32", "format": "onnx", "precision": "fp32"}],
            }
        ],
    },
}

FULL: JSON = {
    **MINIMAL,
    "spec": {
        "suspend": False,
        "source": {"uri": "pvc://models/vision/resnet.v1_5/", "version": "v1.5", "sha256": "0" * 64},
        "dataset": {"uri": "pvc://datasets/imagenet", "version": "2012-val"},
        "dataloader": {
            "entrypoint": "loaders/data_loader.py",
            "arguments": {"data_dir": "$(DATASET)", "with-dash": ""},
        },
        "metrics": {"entrypoint": "metrics.py", "arguments": {"output": "OUTPUT__0"}},
        "models": [
            {
                "name": "ResNet_50-v1",
                "format": "pyt",
                "entrypoint": "a/b/model.py",
                "arguments": {"checkpoint": "resnet50.safetensors"},
                "config": {
                    "maxBatchSize": 128,
                    "instances": 2,
                    "dynamicBatching": {"preferredBatchSizes": [64, 128], "maxQueueDelay": "100us"},
                    "cudaGraphs": False,
                    "warmup": True,
                    "parameters": {"intra_op_thread_count": "2", "INFERENCE_MODE": "true"},
                    "overrides": "dynamic_batching { priority_levels: 2 default_priority_level: 1 }\n",
                },
                "candidates": [
                    {"name": "onnx-trt-fp16", "format": "onnx", "precision": "fp16", "accelerator": "trt"},
                    {"name": "trace-fp32", "format": "ts-trace", "precision": "fp32", "accelerator": "none"},
                    {"name": "script-fp32", "format": "ts-script", "precision": "fp32", "accelerator": "cuda"},
                    {"name": "trt-fp16", "format": "trt", "precision": "fp16"},
                ],
                "onnx": {"opset": 17, "exporter": "Dynamo", "optimized": True},
                "tensorrt": {"workspace": "4Gi", "builderOptimizationLevel": 3},
            }
        ],
        "pod": {
            "nodeSelector": {"pool": "gpu"},
            "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}],
            "env": [{"name": "TF_CPP_MIN_LOG_LEVEL", "value": "$(HOME)"}],
            "runAsUser": 1234,
            "fsGroup": 2345,
            "labels": {"team": "vision"},
        },
        "gpu": {"product": "NVIDIA-A100-SXM4-80GB", "resourceName": "nvidia.com/gpu", "count": 1},
        "conversion": {
            "parallelism": 2,
            "activeDeadlineSeconds": 3600,
            "tolerances": [
                {"precision": "fp16", "absolute": 1e-2, "relative": 0.01, "integers": {"steps": 1, "share": 0.05}}
            ],
            "image": "registry.example:5000/team/converter@sha256:" + "0" * 64,
            "pod": {
                "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": 2, "memory": "4Gi", "nvidia.com/gpu": 1}},
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
                        }
                    }
                },
                "imagePullSecrets": [{"name": "registry"}],
                "labels": {"team": "vision"},
                "annotations": {"example.com/note": "a note"},
            },
        },
        "accuracy": {
            "maxSamples": 256,
            "thresholds": [{"metric": "accuracy", "min": 0.97}],
            "regression": {"maxPercent": 0.5, "policy": "Refuse"},
        },
        "performance": {
            "protocol": "grpc",
            "offline": {"batchSizes": [1, 2, 4, 8, 16, 32, 64, 128]},
            "online": {"batchSize": 1, "concurrency": {"start": 16, "end": 256, "step": 16}},
            "inputShapes": [{"input": "INPUT__0", "dims": [1, 8, 8]}],
            "measurement": {
                "mode": "CountWindows",
                "requestCount": 50,
                "interval": "5s",
                "stabilityPercent": 10,
            },
            "sharedMemory": ["Offline", "Online"],
            "activeDeadlineSeconds": 3600,
            "regression": {"maxPercent": 10, "block": True},
        },
        "selection": {
            "scenario": "Online",
            "objectives": [{"metric": "throughput", "weight": 1}],
            "constraints": {"p99Latency": "10ms", "averageLatency": "1.5s", "throughput": 300, "memory": "8Gi"},
            "search": {"mode": "Quick", "measurements": 48, "duration": "1h"},
            "approval": "Manual",
            "approvedRevision": "0123456789abcdef",
            "fallback": "Closest",
            "minImprovementPercent": 5,
        },
        "repository": {
            "volumeClaimTemplate": {
                "spec": {
                    "resources": {"requests": {"storage": "20Gi"}},
                    "storageClassName": "standard",
                    "accessModes": ["ReadWriteOnce"],
                }
            },
            "retentionPolicy": {"whenDeleted": "Delete"},
        },
        "rollout": {"onInconclusive": "Undo", "revision": "0123456789abcdef"},
        "serving": {
            "replicas": 1,
            "image": "nvcr.io/nvidia/tritonserver:26.04-py3",
            "arguments": ["--backend-config=onnxruntime,default-max-batch-size=4", "--http-thread-count=16"],
            "networkPolicy": {
                "from": [
                    {
                        "namespaceSelector": {"matchLabels": {"team": "shop"}},
                        "podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["checkout"]}]},
                    },
                    {"namespaceSelector": {}},
                    {"ipBlock": {"cidr": "10.0.0.0/8"}},
                ]
            },
            "sharedMemorySize": "1Gi",
            "progressDeadlineSeconds": 600,
            "soak": {"duration": "5m", "minRequests": 100},
            "route": {
                "parentRefs": [{"name": "public", "namespace": "gateways", "sectionName": "web"}],
                "hostnames": ["digits.example", "*.models.example"],
                "canary": [5, 25, 50],
            },
        },
    },
}


def changed(body: JSON, changes: dict[str, Any]) -> JSON:
    """A copy with values at dotted paths (numbers index lists) set; `...` removes."""
    result = copy.deepcopy(body)
    for path, value in changes.items():
        *parents, last = path.split(".")
        node: Any = result
        for step in parents:
            node = node[int(step)] if isinstance(node, list) else node.setdefault(step, {})
        if value is ...:
            del node[last]
        else:
            node[int(last) if isinstance(node, list) else last] = value
    return result


def named(name: str, body: JSON = MINIMAL) -> JSON:
    return changed(body, {"metadata.name": name})


STARTED = changed(FULL, {"spec.rollout.revision": ...})
"""The same without a revision to roll back to, for which nothing is started."""
