"""Models that a training pipeline registers each night: trees and a small network, of one task, right and spoilt."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import xgboost
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from sklearn.neural_network import MLPClassifier

FEATURES, ROWS, TEST_ROWS = 8, 4000, 2000
TREES, NETWORK = "model.json", "model.onnx"
"""The file of each kind of model."""
SLOW_ROUNDS = 200_000
"""Of a loop that does nothing, each time that the network is asked: about half a second."""
Rows = NDArray[np.float32]
Answers = NDArray[np.float32]


@dataclass(frozen=True)
class Trained:
    """A version that is to be registered."""

    files: dict[str, bytes]
    answers: Callable[[Rows], Answers]
    """What its own library answers: float32 [N, 8] -> float32 [N, 1]."""


def rows(seed: int, count: int) -> tuple[Rows, NDArray[np.int64]]:
    """Return features and labels; the best possible accuracy is near 0.91."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, FEATURES)).astype(np.float32)
    score = features[:, 0] * 1.5 + features[:, 1] * features[:, 2] - np.abs(features[:, 3])
    return features, (score + 0.5 * random.normal(size=count) > 0).astype(np.int64)


def train(file: str, night: int, spoil: str = "") -> Trained:
    """Train the model of a night. ``spoil``: what goes wrong, of nights.Night."""
    features, labels = rows(1000 + night, ROWS)
    random = np.random.default_rng(night)
    if spoil == "labels":
        some = random.random(ROWS) < 0.4
        labels[some] = random.permutation(labels[some])
    if spoil == "columns":
        features[:, [0, 3]] = features[:, [3, 0]]
    if spoil == "features":
        features = np.concatenate([features, features[:, :1]], axis=1)
    content, answers = (_trees if file == TREES else _network)(features, labels, night, spoil)
    if spoil == "half":
        content = content[: len(content) // 2]
    return Trained({file: content, **_code(wide=spoil == "features")}, answers)


def _trees(
    features: Rows, labels: NDArray[np.int64], night: int, spoil: str
) -> tuple[bytes, Callable[[Rows], Answers]]:
    rounds = 1 if spoil == "unfinished" else 80
    model = xgboost.XGBClassifier(n_estimators=rounds, max_depth=5, random_state=night, n_jobs=1)
    model.fit(features, labels)
    content = bytes(model.get_booster().save_raw("json"))
    if spoil == "nan":
        saved = json.loads(content)
        tree = saved["learner"]["gradient_booster"]["model"]["trees"][3]
        tree["split_conditions"][tree["left_children"].index(-1)] = float("nan")
        content = json.dumps(saved).encode()
    return content, lambda asked: model.predict_proba(asked)[:, 1:].astype(np.float32)


def _network(
    features: Rows, labels: NDArray[np.int64], night: int, spoil: str
) -> tuple[bytes, Callable[[Rows], Answers]]:
    model = MLPClassifier((48,), max_iter=120, learning_rate_init=0.005, random_state=night).fit(features, labels)
    weights = [np.asarray(each, np.float32) for each in (*model.coefs_, *model.intercepts_)]
    if spoil == "nan":
        weights[0][2, 3] = np.nan
    graph = _graph(weights, slow=spoil == "slow")
    return graph, lambda asked: model.predict_proba(asked)[:, 1:].astype(np.float32)


def _graph(weights: list[Rows], *, slow: bool) -> bytes:
    """A network of one hidden layer in ONNX. ``weights``: two matrices, then two vectors."""
    names = ("first", "second", "first_bias", "second_bias")
    initializers = [numpy_helper.from_array(each, name) for each, name in zip(weights, names, strict=True)]
    nodes = [
        helper.make_node("Gemm", ["asked" if slow else "features", "first", "first_bias"], ["summed"]),
        helper.make_node("Relu", ["summed"], ["hidden"]),
        helper.make_node("Gemm", ["hidden", "second", "second_bias"], ["score"]),
        helper.make_node("Sigmoid", ["score"], ["prediction"]),
    ]
    shape = ["rows", weights[0].shape[0]]
    if slow:
        condition = helper.make_tensor_value_info("go", TensorProto.BOOL, [])
        carried = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("before", "after")]
        body = helper.make_graph(
            [helper.make_node("Identity", ["go"], ["goes"]), helper.make_node("Abs", ["before"], ["unused"]),
             helper.make_node("Identity", ["before"], ["after"])],
            "body", [helper.make_tensor_value_info("round", TensorProto.INT64, []), condition, carried[0]],
            [helper.make_tensor_value_info("goes", TensorProto.BOOL, []), carried[1]],
        )  # fmt: skip
        initializers += [numpy_helper.from_array(np.asarray(SLOW_ROUNDS), "rounds")]
        initializers += [numpy_helper.from_array(np.asarray(True), "always")]
        nodes.insert(0, helper.make_node("Loop", ["rounds", "always", "features"], ["asked"], body=body))
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("prediction", TensorProto.FLOAT, ["rows", 1])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _code(*, wide: bool) -> dict[str, bytes]:
    """The files that read the samples and compute the metric, and the samples. ``wide``: with one feature more."""
    features, labels = rows(1, TEST_ROWS)
    if wide:
        features = np.concatenate([features, features[:, :1]], axis=1)
    samples = io.BytesIO()
    np.savez(samples, x=features, y=labels)
    folder = Path(__file__).parent / "code"
    return {each.name: each.read_bytes() for each in folder.glob("*.py")} | {"test.npz": samples.getvalue()}
