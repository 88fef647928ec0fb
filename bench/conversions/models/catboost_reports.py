"""Reports of CatBoost: each function is called as the thread that it rebuilds."""

import runpy
import tempfile
from collections.abc import Callable
from pathlib import Path

import catboost
import numpy

from bench.conversions.models.case import Answers, Case, Rows, predicted, table


def catboost_452() -> Case:
    """A regressor of one shallow tree, which does not use all features, as Python."""
    x, y = table(100, 5)
    model = catboost.CatBoost({"depth": 2, "iterations": 1, "random_seed": 0, "verbose": False})
    model.fit(x, y, save_snapshot=False)

    def convert() -> Callable[[Rows], Answers]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.py"
            model.save_model(str(file), format="python")
            apply = runpy.run_path(str(file))["apply_catboost_model"]
        return lambda rows: [numpy.array([apply(row) for row in rows])]

    return Case(model, predicted(model), convert, {"leaves": x})
