"""python3 probe.py MODEL=HOST:PORT...: keep asking; one JSON line a second and target says what came of it.

Two clients a target: one keeps its connection and repeats what was UNAVAILABLE, as docs/serving.md advises; the other
makes a new connection for each request, and repeats none.
"""

import json
import sys
import threading
import time

import numpy as np
from tritonclient import grpc

PERIOD_SECONDS = 0.2
TIMEOUT_SECONDS = 30
"""A host that stands still for some seconds is no fault of the server."""
RETRY = {"maxAttempts": 3, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2}
EVERY_METHOD = {"name": [{}], "retryPolicy": RETRY | {"retryableStatusCodes": ["UNAVAILABLE"]}}
RETRYING = [("grpc.service_config", json.dumps({"methodConfig": [EVERY_METHOD]}))]
FEATURES = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)


def ask(client, model):
    """The classifier's scores for one fixed sample, rounded so that equal answers are equal strings."""
    sample = grpc.InferInput("INPUT__0", FEATURES.shape, "FP32")
    sample.set_data_from_numpy(FEATURES)
    answer = client.infer(model, [sample], client_timeout=TIMEOUT_SECONDS)
    return np.array2string(answer.as_numpy("OUTPUT__0"), precision=2, suppress_small=True)


def probe(model, url, keep):
    """Ask for ever; what fails before the first answer is not reported: the server is not there yet."""
    client, answered_once, second = None, False, None
    answered, failed, answers = 0, [], set()
    while True:
        client = client or grpc.InferenceServerClient(url, channel_args=RETRYING if keep else None)
        try:
            answers.add(ask(client, model))
            answered, answered_once = answered + 1, True
        except Exception as error:
            if answered_once:
                failed.append(f"{type(error).__name__}: {error}")
        if not keep:
            client.close()
            client = None
        now = int(time.time())
        if now != second:
            if answered or failed:
                report = {"model": model, "url": url, "keeps": keep, "time": time.time(), "answered": answered}
                # One write: print writes the end of the line by itself, and threads share the file.
                sys.stdout.write(json.dumps(report | {"failed": failed, "answers": sorted(answers)}) + "\n")
            second, answered, failed, answers = now, 0, [], set()
        time.sleep(PERIOD_SECONDS)


for target in sys.argv[1:]:
    name, address = target.split("=")
    for keeps in (True, False):
        threading.Thread(target=probe, args=(name, address, keeps)).start()
