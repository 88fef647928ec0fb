"""python3 load.py MODEL HOST REQUESTS CONCURRENCY: send requests together.

Prints the server's own counts before and after.
"""

import json
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tritonclient import grpc

model, host, requests, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
FEATURES = np.ones((1, 8), dtype=np.float32)


def counts():
    """nv_inference_count (samples) and nv_inference_exec_count (executions) of the model."""
    with urllib.request.urlopen(f"http://{host}:8002/metrics") as page:
        lines = page.read().decode().splitlines()
    wanted = [line for line in lines if f'model="{model}"' in line]

    def total(name):
        return sum(float(line.rsplit(" ", 1)[1]) for line in wanted if line.startswith(name + "{"))

    return {"samples": total("nv_inference_count"), "executions": total("nv_inference_exec_count")}


def send(_):
    sample = grpc.InferInput("INPUT__0", FEATURES.shape, "FP32")
    sample.set_data_from_numpy(FEATURES)
    return client.infer(model, [sample]).as_numpy("OUTPUT__0").shape


client = grpc.InferenceServerClient(f"{host}:8001")
before = counts()
with ThreadPoolExecutor(concurrency) as pool:
    shapes = set(pool.map(send, range(requests)))
print(json.dumps({"before": before, "after": counts(), "shapes": sorted(shapes)}))
