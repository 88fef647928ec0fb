"""python3 texts.py HOST: send texts as a client does. Prints what each of them got."""

import json
import sys

import numpy as np
from reached import reached
from tritonclient import grpc
from tritonclient.utils import InferenceServerException

TEXTS = ["Bitte eine gültige Adresse eingeben.", "Veuillez saisir une adresse valide.", "Ange en giltig adress."]
client = reached(f"{sys.argv[1]}:8001")


def send(texts):
    rows = np.array([[each] for each in texts], dtype=object)
    given = grpc.InferInput("TEXT", rows.shape, "BYTES").set_data_from_numpy(rows)
    return [each.decode() for each in client.infer("texts", [given]).as_numpy("LABEL")[:, 0]]


together, alone = send(TEXTS), [send([each])[0] for each in TEXTS]
try:
    send([b"\xff\xfe"])
    refused = ""
except InferenceServerException as error:
    refused = error.message()
print(json.dumps({"together": together, "alone": alone, "refused": refused}))
