"""Models that are really trained each night, and a pool that tells what they really reach."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy
import onnx
from onnx import TensorProto, helper

Array = numpy.ndarray[Any, Any]
CLASSES, FEATURES, TRAINING, POOL, MODELS = 4, 12, 3000, 20_000, 64
BISECTIONS = 12
"""Steps that find a model of a wanted loss: to a thousandth of the way from a good one to a poor one."""


def softmax(scores: Array) -> Array:
    """Probabilities, a row a sample."""
    exponents = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    return exponents / exponents.sum(axis=1, keepdims=True)


def trained(x: Array, y: Array) -> Array:
    """The weights of a logistic regression, by gradient descent."""
    weights, targets = numpy.zeros((x.shape[1], CLASSES)), numpy.eye(CLASSES)[y]
    for _ in range(150):
        weights -= 1.0 * x.T @ (softmax(x @ weights) - targets) / len(x)
    return weights


def accuracy(answers: Array, labels: Array) -> float:
    """The share of right answers."""
    return float((answers.argmax(axis=1) == labels).mean())


def log_loss(answers: Array, labels: Array) -> float:
    """The mean of -ln(probability of the right class)."""
    return float(-numpy.log(answers[numpy.arange(len(labels)), labels]).mean())


METRICS: dict[str, Callable[[Array, Array], float]] = {"accuracy": accuracy, "log_loss": log_loss}
DIRECTIONS = {"accuracy": 1, "log_loss": -1}


class Task:
    """What is to be learned: a training set, and a pool of samples to be judged by."""

    def __init__(self, spread: float) -> None:
        """``spread``: standard deviation of the classes' centres; that of their samples is 1."""
        chance = numpy.random.default_rng(7)
        centres = chance.normal(size=(CLASSES, FEATURES)) * spread
        self.labels = chance.integers(CLASSES, size=POOL)
        self.pool = (centres[self.labels] + chance.normal(size=(POOL, FEATURES))).astype(numpy.float32)
        self.y = chance.integers(CLASSES, size=TRAINING)
        self.x = centres[self.y] + chance.normal(size=(TRAINING, FEATURES))
        draws = chance.integers(TRAINING, size=(MODELS, TRAINING))
        self._models = [trained(self.x[rows], self.y[rows]) for rows in draws]
        usual = self._models[:8]
        self.level = {name: float(numpy.mean([self.reaches(each, name) for each in usual])) for name in METRICS}
        """What a good model reaches, in the mean."""

    def answers(self, weights: Array, rows: Array | slice = slice(None)) -> Array:
        """The probabilities of the pool's samples."""
        return softmax(self.pool[rows] @ weights.astype(numpy.float32))

    def reaches(self, weights: Array, metric: str) -> float:
        """What a model really reaches."""
        return METRICS[metric](self.answers(weights), self.labels)

    def good(self, chance: numpy.random.Generator) -> Array:
        """A model of a night like all others: trained on another draw of the training set."""
        return self._models[chance.integers(MODELS)]

    def worse(self, chance: numpy.random.Generator, loss: float, metric: str = "accuracy") -> Array:
        """A model that is worse than the level by so much: on the way from a good one to a poor one."""
        good, poor = self.good(chance), self._poor(chance, metric)
        wanted, low, high = self.level[metric] - DIRECTIONS[metric] * loss, 0.0, 1.0
        for _ in range(BISECTIONS):
            share = (low + high) / 2
            gain = DIRECTIONS[metric] * (self.reaches((1 - share) * good + share * poor, metric) - wanted)
            low, high = (share, high) if gain > 0 else (low, share)
        return (1 - low) * good + low * poor

    def _poor(self, chance: numpy.random.Generator, metric: str) -> Array:
        """A model of few samples, of few features, or of a broken file; for the log loss alone, of too much trust."""
        kind = chance.integers(3)
        if metric == "log_loss":
            return self.good(chance) * 12
        if kind == 0:
            rows = chance.choice(TRAINING, 8, replace=False)
            return trained(self.x[rows], self.y[rows])
        if kind == 1:
            seen = self.x * (numpy.arange(FEATURES) < 2)
            return trained(seen, self.y)
        return self.good(chance) + chance.normal(size=(FEATURES, CLASSES))


@cache
def task(spread: float) -> Task:
    """The task of that spread, which is made once a process."""
    return Task(spread)


def as_onnx(weights: Array) -> bytes:
    """The file of a model."""
    tensors = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size])
        for name, size in (("X", FEATURES), ("P", CLASSES))
    ]
    constant = helper.make_tensor("w", TensorProto.FLOAT, weights.shape, weights.astype(numpy.float32).ravel())
    nodes = [helper.make_node("MatMul", ["X", "w"], ["scores"]), helper.make_node("Softmax", ["scores"], ["P"], axis=1)]
    graph = helper.make_graph(nodes, "g", tensors[:1], tensors[1:], [constant])
    opsets = [helper.make_opsetid("", 17)]
    return bytes(onnx.ModelProto.SerializeToString(helper.make_model(graph, opset_imports=opsets, ir_version=8)))
