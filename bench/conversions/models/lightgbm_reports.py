"""Reports of LightGBM: each function is called as the thread that it rebuilds."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import catboost
import lightgbm
import numpy
import scipy.sparse
import treelite
from onnxmltools import convert_lightgbm
from onnxmltools.convert.common.data_types import FloatTensorType
from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm as step_of_lightgbm
from skl2onnx import convert_sklearn, update_registered_converter
from skl2onnx.common.data_types import FloatTensorType as FloatOfStep
from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

from bench.conversions.models.case import Answers, Case, Rows, classified, lying, predicted, table

QUIET: dict[str, Any] = {"verbose": -1, "num_threads": 1}


def onnxmltools_150() -> Case:
    """A classifier with the objective ova, on grey levels."""
    x = numpy.random.default_rng(0).integers(0, 17, (400, 16)).astype(numpy.float32)
    model = lightgbm.LGBMClassifier(objective="ova", n_estimators=20, **QUIET)
    model.fit(x, numpy.digitize(x[:, 0] + x[:, 1], [8, 16, 24]))
    return Case(model, classified(model), lambda: _converted(model, x, zipmap=False), lying(x, _splits(model.booster_)))


def catboost_977() -> Case:
    """A Booster in ONNX, as CatBoost loads it."""
    x = numpy.random.default_rng(0).random((100, 2)).astype(numpy.float32)
    model = lightgbm.train({"objective": "regression", **QUIET}, lightgbm.Dataset(x, 2 * x[:, 0] + 3 * x[:, 1]))

    def convert() -> Callable[[Rows], Answers]:
        graph = convert_lightgbm(model, initial_types=[("x", FloatTensorType([None, 2]))])
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            file.write_bytes(graph.SerializeToString())
            return predicted(catboost.CatBoost().load_model(str(file), format="onnx"))

    return Case(model, predicted(model), convert, lying(x, _splits(model)))


def onnxmltools_728() -> Case:
    """A classifier on whole numbers, as a step of skl2onnx."""
    random = numpy.random.default_rng(0)
    x = random.integers(0, 6, (500, 20)).astype(numpy.float32)
    x[:, 4] = random.integers(0, 500, 500)
    y = numpy.where(x[:, 0] * x[:, 4] > 400, x[:, 1] > 3, 1)
    model = lightgbm.LGBMClassifier(n_estimators=50, **QUIET).fit(x, y)

    def convert() -> Any:
        update_registered_converter(
            lightgbm.LGBMClassifier,
            "LightGbmLGBMClassifier",
            calculate_linear_classifier_output_shapes,
            step_of_lightgbm,
            options={"nocl": [True, False], "zipmap": [True, False, "columns"]},
        )
        types, options = [("x", FloatOfStep([None, 20]))], {id(model): {"zipmap": False}}
        return convert_sklearn(model, initial_types=types, options=options, target_opset={"": 15, "ai.onnx.ml": 3})

    return Case(model, classified(model), convert, lying(x, _splits(model.booster_)))


def treelite_77() -> Case:
    """A Booster of two classes with categories, in Treelite."""
    random = numpy.random.default_rng(0)
    x = table(2000)[0]
    x[:, 1:4] = random.integers(0, 40, (2000, 3))
    y = ((x[:, 1] * 7 % 11 > 5) ^ (x[:, 0] > 0)).astype(int)
    settings = {
        "objective": "binary", "scale_pos_weight": 2.0, "num_leaves": 255, "max_depth": 20, "min_data_in_leaf": 10,
        "feature_fraction": 0.7, "bagging_freq": 5, "bagging_fraction": 0.8, "min_gain_to_split": 1e-8,
    }  # fmt: skip
    data = lightgbm.Dataset(x, y, categorical_feature=[1, 2, 3])
    model = lightgbm.train(settings | QUIET, data, 50)
    unseen = x.copy()
    unseen[:, 1] = 40 + numpy.arange(2000) % 7
    rows = {**lying(x, (each for each in _splits(model) if each[0] not in {1, 2, 3})), "unseen categories": unseen}
    return Case(model, predicted(model), lambda: _in_treelite(model), rows)


def onnxmltools_708() -> Case:
    """A regressor on sines and cosines of times in double precision."""
    day, hour = (each.ravel().astype(float) for each in numpy.mgrid[0:7, 0:24])
    angles = [2 * numpy.pi * day / 7, 2 * numpy.pi * hour / 24]
    x = numpy.stack([f(each) for each in angles for f in (numpy.sin, numpy.cos)], axis=1)
    y = numpy.where((day <= 4) & (numpy.isin(hour, [8, 12, 14])), hour, 0)
    x, y = numpy.tile(x, (12, 1)), numpy.tile(y, 12)
    model = lightgbm.LGBMRegressor(**QUIET).fit(x, y)
    return Case(model, predicted(model), lambda: _converted(model, x), lying(x, _splits(model.booster_)))


def hummingbird_802() -> Case:
    """A ranker on numbers and coded words, by onnxmltools: Hummingbird needs PyTorch with CUDA."""
    x = numpy.random.default_rng(0).uniform(0, 100, (400, 7)).astype(numpy.float32)
    x[:, 4:] = x[:, 4:] // 34
    model = lightgbm.LGBMRanker(n_estimators=20, **QUIET).fit(x, x[:, 0] > 50, group=[20] * 20)
    return Case(model, predicted(model), lambda: _converted(model, x), lying(x, _splits(model.booster_)))


def treelite_222() -> Case:
    """A Booster with lambdarank on a sparse matrix, in Treelite."""
    x, y = table(640)
    x[numpy.random.default_rng(1).random(x.shape) < 0.5] = 0
    settings = {"objective": "lambdarank", "num_leaves": 32, "lambda_l1": 0.1, "lambda_l2": 0.1, "learning_rate": 0.1}
    sparse = scipy.sparse.csr_matrix(x)
    model = lightgbm.train(settings | QUIET, lightgbm.Dataset(sparse, numpy.digitize(y, [0, 1]), group=[32] * 20), 128)
    rows = {kind: scipy.sparse.csr_matrix(each) for kind, each in lying(x, _splits(model)).items()}
    return Case(model, predicted(model), lambda: _in_treelite(model), rows)


def treelite_98() -> Case:
    """A Booster on times in seconds in double precision, in Treelite."""
    x = numpy.random.default_rng(0).integers(1_490_000_000, 1_515_000_000, (2000, 2)).astype(float)
    model = lightgbm.train(QUIET, lightgbm.Dataset(x, x[:, 0] % 86_400 + x[:, 1] / 1e3), 50)
    return Case(model, predicted(model), lambda: _in_treelite(model), lying(x, _splits(model)))


def _converted(model: Any, x: Any, **options: bool) -> Any:
    return convert_lightgbm(model, initial_types=[("x", FloatTensorType([None, x.shape[1]]))], **options)


def _in_treelite(model: Any) -> Callable[[Rows], Answers]:
    converted = treelite.frontend.from_lightgbm(model)
    return lambda rows: [treelite.gtil.predict(converted, rows)]


def _splits(booster: Any) -> Iterator[tuple[int, float]]:
    nodes = booster.trees_to_dataframe()
    inner = nodes[nodes["decision_type"] == "<="]
    columns = inner["split_feature"].map(booster.feature_name().index)
    return zip(columns, inner["threshold"].astype(float), strict=True)
