"""python3 compare.py SOURCE ENTRYPOINT CHECKPOINT KIND MODEL URL BATCH: serve the framework's samples, compare.

Prints JSON: the largest difference by output, and the shapes that came back. ``SOURCE`` is the folder of the user's
files; ``BATCH`` 0 is for a model without a batch dimension.
"""

import importlib
import json
import sys

import numpy as np
import torch
from tritonclient import grpc

source, entrypoint, checkpoint, kind, model, url, batch = sys.argv[1:]
sys.path.insert(0, source)


def main():
    from loader import samples_of

    network, names = importlib.import_module(entrypoint).get_model(checkpoint=f"{source}/{checkpoint}")
    client = grpc.InferenceServerClient(url)
    worst, shapes = {}, {}
    for start in (0, 8):
        arrays = samples_of(kind, start, max(1, int(batch)))
        with torch.no_grad():
            wanted = network(*(torch.from_numpy(arrays[name]) for name in names["inputs"]))
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        answer = client.infer(model, [given(name, arrays[name]) for name in names["inputs"]])
        for name, expected in zip(names["outputs"], wanted, strict=True):
            served = answer.as_numpy(name)
            worst[name] = max(worst.get(name, 0.0), float(np.abs(served - expected.numpy()).max()))
            shapes[name] = list(served.shape)
    print(json.dumps({"worst": worst, "shapes": shapes}))


def given(name, array):
    tensor = grpc.InferInput(name, array.shape, {"float32": "FP32", "int64": "INT64"}[str(array.dtype)])
    tensor.set_data_from_numpy(array)
    return tensor


main()
