"""python3 cascade.py HOST FOLDER: send pictures one after the other; print how many of them were told rightly.

FOLDER holds the sample's dataloader. Prints the pictures that each model answered, too, by the server's own count.
"""

import json
import sys
import time

import numpy as np
from reached import reached
from tritonclient import grpc

host, folder = sys.argv[1:]
sys.path.insert(0, folder)
import dataloader  # noqa: E402 - it is in the folder that the arguments name

MODELS = ("digits", "cascade", "small", "large")
_, inputs, labels = next(dataloader.get_dataloader_fn(100)())
client = reached(f"{host}:8001")


def counts():
    found = [client.get_inference_statistics(each).model_stats[0].inference_count for each in MODELS]
    return np.array(found, dtype=int)


def told(picture):
    given = grpc.InferInput("X", [1, 64], "FP32").set_data_from_numpy(picture[None])
    return int(client.infer("digits", [given]).as_numpy("probabilities")[0].argmax())


before = counts()
wanted = labels["label"].tolist()
right = sum(told(picture) == label for picture, label in zip(inputs["X"], wanted, strict=True))
# The server counts a request of an ensemble once it has answered it.
ends = time.monotonic() + 30
while (asked := counts() - before)[0] < len(wanted) and time.monotonic() < ends:
    time.sleep(0.1)
print(json.dumps({"right": right, "asked": dict(zip(MODELS, asked.tolist(), strict=True))}))
