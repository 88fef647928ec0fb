"""Reports of XGBoost: each function is called as the thread that it rebuilds."""

from collections.abc import Iterator
from typing import Any

import numpy
import treelite
import xgboost
from onnxmltools import convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType

from bench.conversions.models.case import Case, classified, lying, predicted, table


def onnxmltools_511() -> Case:
    """A regressor of 200 deep trees on parts of the rows and columns."""
    x, y = table()
    model = xgboost.XGBRegressor(n_estimators=200, max_depth=7, eta=0.01, subsample=0.7, colsample_bytree=0.8)
    return _regressor(model.fit(x, y), x)


def onnxmltools_667() -> Case:
    """A Booster on parts of the columns."""
    x, y = table()
    model = xgboost.train({"colsample_bytree": 0.8}, xgboost.DMatrix(x, y), 30)
    return Case(model, _by_booster(model), lambda: _converted(model, x), lying(x, _splits(model)))


def onnxmltools_672() -> Case:
    """A regressor as it is by default, whose base score is learnt."""
    x, y = table()
    return _regressor(xgboost.XGBRegressor().fit(x, y + 20), x)


def onnxruntime_11892() -> Case:
    """A classifier with a base score."""
    x, y = table()
    return _classifier(xgboost.XGBClassifier(base_score=0.8, n_estimators=20).fit(x, (y > 0.5).astype(int)), x)


def onnxruntime_1585() -> Case:
    """A regressor of two trees on seven columns."""
    x, y = table(1000, 7)
    return _regressor(xgboost.XGBRegressor(n_estimators=2).fit(x, 1 / (1 + numpy.exp(-y))), x)


def onnxmltools_671() -> Case:
    """A classifier of two classes."""
    x, y = table()
    return _classifier(xgboost.XGBClassifier().fit(x, (y > 1).astype(int)), x)


def onnxmltools_726() -> Case:
    """A regressor with binary:logistic on one column of small whole numbers."""
    x = numpy.random.default_rng(0).integers(1, 5, (40, 1)).astype(numpy.float32)
    model = xgboost.XGBRegressor(max_depth=1, n_estimators=3, subsample=0.95, objective="binary:logistic")
    return _regressor(model.fit(x, x[:, 0] % 2 == 1), x)


def onnxruntime_5450() -> Case:
    """A classifier of three classes that stopped early."""
    x, y = table(300, 4)
    classes = numpy.digitize(y + numpy.random.default_rng(2).normal(size=len(y)), [0, 1])
    model = xgboost.XGBClassifier(early_stopping_rounds=40)
    return _classifier(model.fit(x[:200], classes[:200], eval_set=[(x[200:], classes[200:])], verbose=False), x)


def onnxmltools_646() -> Case:
    """A regressor with reg:logistic."""
    x, y = table(200, 10)
    return _regressor(xgboost.XGBRegressor(objective="reg:logistic", n_estimators=20).fit(x, (y > 0.5).astype(int)), x)


def treelite_7() -> Case:
    """A Booster of three classes in Treelite."""
    x, y = table()
    settings = {"objective": "multi:softprob", "num_class": 3, "max_depth": 5, "min_child_weight": 5, "eta": 0.5}
    model = xgboost.train(settings, xgboost.DMatrix(x, numpy.digitize(y, [0, 1])), 5)

    def convert() -> Any:
        converted = treelite.frontend.from_xgboost(model)
        return lambda rows: [treelite.gtil.predict(converted, rows)]

    return Case(model, _by_booster(model), convert, lying(x, _splits(model)))


def _regressor(model: Any, x: Any) -> Case:
    return Case(model, predicted(model), lambda: _converted(model, x), lying(x, _splits(model.get_booster())))


def _classifier(model: Any, x: Any) -> Case:
    return Case(model, classified(model), lambda: _converted(model, x), lying(x, _splits(model.get_booster())))


def _by_booster(model: Any) -> Any:
    return lambda rows: [model.predict(xgboost.DMatrix(rows))]


def _converted(model: Any, x: Any) -> Any:
    return convert_xgboost(model, initial_types=[("x", FloatTensorType([None, x.shape[1]]))])


def _splits(booster: Any) -> Iterator[tuple[int, float]]:
    nodes = booster.trees_to_dataframe()
    inner = nodes[nodes["Feature"] != "Leaf"]
    return zip(inner["Feature"].str[1:].astype(int), inner["Split"], strict=True)
