"""python3 pictures.py HOST FOLDER: send pictures' files as a client does, until the probabilities are rounded.

FOLDER holds the sample's dataloader. Prints what each of some files got, and how many of all requests failed.
"""

import json
import sys
import time

import numpy as np
from reached import reached
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

host, folder = sys.argv[1:]
sys.path.insert(0, folder)
import dataloader  # noqa: E402 - it is in the folder that the arguments name

SECONDS = 600
_, inputs, labels = next(dataloader.get_dataloader_fn(8)())
files = inputs["FILE"]
client = reached(f"{host}:8001")


def send(wanted):
    given = grpc.InferInput("FILE", wanted.shape, "BYTES").set_data_from_numpy(wanted)
    answer = client.infer("pictures", [given])
    return answer.as_numpy("LABEL")[:, 0].tolist(), answer.as_numpy("PROBABILITY")[:, 0].tolist()


names, shares = send(files)
try:
    send(np.array([[files[0, 0][:40]]], dtype=object))
    refused = ""
except InferenceServerException as error:
    refused = error.message()
print(json.dumps({"labels": [each.decode() for each in names], "probabilities": shares, "refused": refused,
                  "wanted": labels["label"].tolist()}), flush=True)  # fmt: skip
unsure = files[[int(np.argmin(shares))]]
sent, failed, started, last = 0, [], time.monotonic(), min(shares)
while abs(100 * last - round(100 * last)) > 1e-4 and time.monotonic() < started + SECONDS:
    sent += 1
    try:
        last = send(unsure)[1][0]
    except InferenceServerException as error:
        failed.append(error.message())
    time.sleep(0.1)
print(json.dumps({"sent": sent, "failed": failed[:3], "before": min(shares), "last": last}))
