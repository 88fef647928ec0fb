"""python3 say.py HOST:PORT MODEL WORD...: send each word to a model of text by gRPC, and print the answers as JSON."""

import json
import sys

import numpy as np
from reached import reached
from tritonclient import grpc

url, model, *words = sys.argv[1:]
client = reached(url)
answers = []
for word in words:
    array = np.array([[word.encode()]], dtype=object)
    answer = client.infer(model, [grpc.InferInput("WORD", array.shape, "BYTES").set_data_from_numpy(array)])
    answers.append(answer.as_numpy("SAID")[0, 0].decode())
print(json.dumps(answers))
