"""The revisions of the object, their files on a claim, and the requests that clients send."""

import json
import random
from pathlib import Path
from typing import Any

from bench.deep_network import over_words
from bench.place import Place

NAME, CLAIM = "words", "models"
WORDS, LAYERS = 100, 200
REVISIONS = {
    "good": (LAYERS, WORDS),
    "slower by half": (LAYERS * 3 // 2, WORDS),
    "errs on 5 %": (LAYERS, WORDS - 5),
}
"""Layers and words of each revision's network."""
POD = {"resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": "500m"}}}
"""Every server's, a profile's too: the good revision has to be as fast beside it."""
INFER = f"/v2/models/{NAME}/infer"
READY_SECONDS = 900

Body = dict[str, Any]


def push(place: Place, folder: Path) -> None:
    """Write each revision's network to a folder of the claim that has its number."""
    for number, shape in enumerate(REVISIONS.values()):
        model = folder / str(number) / f"{NAME}.onnx"
        model.parent.mkdir()
        model.write_bytes(over_words(*shape))
        place.push(model, CLAIM, str(number))


def requests(count: int) -> list[bytes]:
    """Return bodies of requests, each for a word by chance: 5 of 100 are words that the last revision lacks."""
    words = random.Random(0).choices(range(WORDS), k=count)
    tensor = {"name": "word", "shape": [1, 1], "datatype": "INT64"}
    return [json.dumps({"inputs": [tensor | {"data": [word]}]}).encode() for word in words]


def deployment(number: int, serving: Body) -> Body:
    """The object with the revision of this number, and how it is served."""
    return {
        "apiVersion": "triton-operator.dev/v1alpha1",
        "kind": "TritonDeployment",
        "metadata": {"name": NAME},
        "spec": {
            "source": {"uri": f"pvc://{CLAIM}/{number}"},
            "models": [{"name": NAME, "path": f"{NAME}.onnx"}],
            "performance": {
                "offline": {"batchSizes": [1]},
                "online": {"concurrency": {"start": 1, "end": 1}},
            },
            "serving": {"pod": POD, **serving},
        },
    }


def condition(place: Place, kind: str) -> Body:
    """Return a condition of the object; empty without it."""
    found: list[Body] = place.get("td", NAME)["status"]["conditions"]
    return next((each for each in found if each["type"] == kind), {})


def selected(place: Place, service: str) -> str:
    """Return the Deployment that a Service sends requests to."""
    return str(place.get("service", service)["spec"]["selector"]["triton-operator.dev/server"])
