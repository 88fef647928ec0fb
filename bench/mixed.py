"""`python3 -m bench.mixed`: what a client of sentences of all lengths gets, and what the sweeps foretold.

A text encoder, made here, is served by the real tritonserver. Five times, one after the other: a sweep with requests of
one length, as ``performance.inputShapes`` asks for; a sweep with the samples in their own lengths; and a client that
sends the same samples by chance, at the concurrency of the mixture's saturation. Needs the images, and no cluster.
"""

import json
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy
import tritonclient.grpc
from onnx import TensorProto, helper, numpy_helper

from bench.gates.claim import key_of, publish_model
from bench.gates.trial import Reference
from bench.machine import cpu_model
from hack.deploy.command import ROOT
from hack.imagebuild.pod import Pod, serving
from triton_converters.claim_store.dump import Array
from triton_converters.contract.measurement_requests import (
    DEFAULT_TOLERANCES,
    InputShape,
    Measurement,
    ProfileRequest,
    Sweep,
)
from triton_converters.contract.results import ProfileResult, Row
from triton_converters.contract.saturation import saturation

SEED = 7
ROUNDS = 5
SAMPLES = 96
LONGEST = 96
"""Tokens of the longest sentence."""
VOCABULARY, WIDTH, LAYERS, HEADS = 2000, 512, 6, 8
LARGEST_BATCH = 8
CLIENT_SECONDS = 15
CONCURRENCIES = (1, 2, 4, 8, 16)
MEASUREMENT = Measurement("TimeWindows", 20, 1500, 15)
MODEL, REVISION = "encoder", "0e7c0de00e7c0de0"
KEY = key_of(MODEL)


def main() -> int:
    """Measure, print and write the figures; return the exit status."""
    random = numpy.random.default_rng(SEED)
    lengths = numpy.clip(numpy.round(random.lognormal(3.0, 0.6, SAMPLES)), 4, LONGEST).astype(int)
    samples = [{"input_ids": random.integers(1, VOCABULARY, length, dtype=numpy.int64)} for length in lengths]
    rounds: list[dict[str, float]] = []
    concurrencies: list[tuple[int, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made = publish_model(root, REVISION, MODEL, encoder(), LARGEST_BATCH, samples)
        with serving(root, REVISION) as pod:
            # The first length is what perf_analyzer was told before samples kept their own.
            shape = (InputShape("input_ids", (len(samples[0]["input_ids"]),)),)
            for number in range(ROUNDS):
                one, mixture = (swept(pod, made, f"{number}{len(each)}", each) for each in (shape, ()))
                real = client(pod, samples, mixture.concurrency, seed=number)
                rounds.append({"one shape": one.throughput, "mixture": mixture.throughput, "client": real})
                concurrencies.append((one.concurrency, mixture.concurrency))
                print(rounds[-1], concurrencies[-1], flush=True)
    middle = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    shapes = {"p50": int(numpy.median(lengths)), "longest": int(lengths.max()), "one shape": int(lengths[0])}
    for name, value in middle.items():
        print(f"{name}: {value:.1f} requests/s, {100 * value / middle['client']:.0f} % of what the client got")
    document = {
        "cpu": cpu_model(),
        "lengths": shapes,
        "medians": middle,
        "rounds": rounds,
        "concurrencies": concurrencies,
    }
    path = ROOT / f"bench/results/mixed-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def swept(pod: Pod, made: Reference, name: str, shapes: tuple[InputShape, ...]) -> Row:
    """Return the saturation that the profile stage finds."""
    request = ProfileRequest(
        key=key_of(name),
        revision=REVISION,
        reference=KEY,
        model_name=MODEL,
        max_batch_size=made.signature.max_batch_size,
        format="onnx",
        precision="fp32",
        tolerance=DEFAULT_TOLERANCES["fp32"],
        keep_outputs=False,
        load=replace(pod.load(MEASUREMENT), input_shapes=shapes),
        offline=Sweep((1,), (1,), False),
        online=Sweep((1,), CONCURRENCIES, False, until_saturated=True),
    )
    _, outcome, output = pod.run_stage("profile", request, seconds=900)
    result: Any = outcome.result
    if not isinstance(result, ProfileResult):
        raise SystemExit(f"{outcome.reason}: {output[-2000:]}")
    found = saturation(result.online, ())
    assert found is not None
    assert found.row is not None, result
    return found.row


def client(pod: Pod, samples: list[dict[str, Array]], concurrency: int, seed: int) -> float:
    """Return the requests per second that as many threads get, each with a request in flight."""
    ended = threading.Event()
    counts = [0] * concurrency
    # Made before: on this machine the client's own work is taken from the server's cores.
    requests = []
    for sample in samples:
        values = sample["input_ids"][None]
        requests.append([tritonclient.grpc.InferInput("input_ids", values.shape, "INT64").set_data_from_numpy(values)])

    def send(number: int) -> None:
        random = numpy.random.default_rng((seed, number))
        with tritonclient.grpc.InferenceServerClient(f"localhost:{pod.ports[1]}") as server:
            while not ended.is_set():
                server.infer(MODEL, requests[random.integers(len(requests))])
                counts[number] += 1

    threads = [threading.Thread(target=send, args=(number,)) for number in range(concurrency)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    before, start = sum(counts), time.monotonic()
    time.sleep(CLIENT_SECONDS)
    rate = (sum(counts) - before) / (time.monotonic() - start)
    ended.set()
    for thread in threads:
        thread.join()
    return rate


def encoder() -> Any:
    """Return the graph of a text encoder: token ids [batch, length] to the mean of the last layer [batch, WIDTH]."""
    random = numpy.random.default_rng(SEED)
    weights, nodes = [], [helper.make_node("Gather", ["words", "input_ids"], ["h0"])]

    def weight(name: str, *shape: int) -> str:
        values = random.normal(0, shape[0] ** -0.5 if len(shape) > 1 else 0.02, shape).astype(numpy.float32)
        weights.append(numpy_helper.from_array(values, name))
        return name

    def add(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    weight("words", VOCABULARY, WIDTH)
    weights.append(numpy_helper.from_array(numpy.ones(WIDTH, numpy.float32), "one"))
    weights.append(numpy_helper.from_array(numpy.array([0, 0, HEADS, WIDTH // HEADS]), "split"))
    weights.append(numpy_helper.from_array(numpy.array([0, 0, WIDTH]), "join"))
    weights.append(numpy_helper.from_array(numpy.array((WIDTH // HEADS) ** -0.5, numpy.float32), "scale"))
    for layer in range(LAYERS):
        at, heads = f"h{layer}", {}
        for part, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            name = f"{part}{layer}"
            add("MatMul", [at, weight(f"w{name}", WIDTH, WIDTH)], f"m{name}")
            add("Reshape", [f"m{name}", "split"], f"r{name}")
            heads[part] = add("Transpose", [f"r{name}"], name, perm=order)
        add("MatMul", [heads["q"], heads["k"]], f"s{layer}")
        add("Mul", [f"s{layer}", "scale"], f"ss{layer}")
        add("Softmax", [f"ss{layer}"], f"p{layer}", axis=-1)
        add("MatMul", [f"p{layer}", heads["v"]], f"c{layer}")
        add("Transpose", [f"c{layer}"], f"ct{layer}", perm=[0, 2, 1, 3])
        add("Reshape", [f"ct{layer}", "join"], f"cj{layer}")
        add("Add", [at, f"cj{layer}"], f"a{layer}")
        add("LayerNormalization", [f"a{layer}", "one"], f"n{layer}")
        add("MatMul", [f"n{layer}", weight(f"u{layer}", WIDTH, 4 * WIDTH)], f"f{layer}")
        add("Relu", [f"f{layer}"], f"g{layer}")
        add("MatMul", [f"g{layer}", weight(f"d{layer}", 4 * WIDTH, WIDTH)], f"o{layer}")
        add("Add", [f"n{layer}", f"o{layer}"], f"b{layer}")
        add("LayerNormalization", [f"b{layer}", "one"], f"h{layer + 1}")
    add("ReduceMean", [f"h{LAYERS}"], "embedding", axes=[1], keepdims=0)
    inputs = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])]
    outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", WIDTH])]
    graph = helper.make_graph(nodes, MODEL, inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


if __name__ == "__main__":
    sys.exit(main())
