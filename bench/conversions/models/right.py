"""`python -m bench.conversions.models.right FOLDER`: save sixty right models, as their libraries save them."""

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightgbm
import numpy
import pandas
import xgboost
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from bench.conversions.models.case import save, table, with_missing

ROWS = 600
GROUP = 20
"""Rows of a query, of which a ranker orders each by itself."""


def targets() -> dict[str, Any]:
    """Return what models learn, by its kind: [rows], or [rows, 2] for several."""
    value = table(ROWS)[1]
    return {
        "value": value,
        "share": 1 / (1 + numpy.exp(-value)),
        "positive": numpy.exp(value / 2),
        "count": numpy.round(numpy.exp(value / 2)),
        "two": (value > 0.5).astype(int),
        "three": numpy.digitize(value, [0, 1]),
        "words": numpy.array(["low", "middle", "high"])[numpy.digitize(value, [0, 1])],
        "grades": numpy.digitize(value, [0, 1, 2]),
        "several": numpy.stack([value, -value], axis=1),
    }


def features() -> dict[str, Any]:
    """Return what models learn from, by its kind: [rows, 6]."""
    x = table(ROWS)[0]
    random = numpy.random.default_rng(5)
    codes = x.copy()
    codes[:, 1] = random.integers(0, 30, ROWS)
    cents = numpy.round(random.uniform(0, 500, x.shape), 2)
    categories = pandas.DataFrame(codes, columns=list("abcdef"))
    categories["b"] = pandas.Categorical(random.integers(0, 12, ROWS))
    zeros = numpy.where(random.random(x.shape) < 0.4, 0, x)
    times = x.astype(float)
    times[:, 0] = random.integers(1_700_000_000, 1_760_000_000, ROWS)
    words = pandas.DataFrame(x, columns=list("abcdef")).assign(
        b=random.choice(["Bologna", "Ferrara", "Modena"], ROWS), c=random.choice(["nurse", "smith"], ROWS)
    )
    return {
        "numbers": x,
        "missing": with_missing(x),
        "whole": numpy.round(x * 3),
        "codes": codes,
        "categories": categories,
        "cents": cents,
        "zeros": zeros,
        "times": times,
        "words": words,
    }


XGBOOST: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("reg:squarederror", "numbers", "value", {}, "json"),
    ("reg:squarederror", "missing", "value", {}, "ubj"),
    ("reg:squarederror", "whole", "value", {"max_depth": 2, "n_estimators": 300}, "json"),
    ("reg:squarederror", "cents", "value", {"max_depth": 12}, "ubj"),
    ("reg:squarederror", "times", "value", {}, "json"),
    ("reg:squarederror", "categories", "value", {"enable_categorical": True}, "json"),
    ("reg:squarederror", "numbers", "several", {}, "ubj"),
    ("reg:absoluteerror", "numbers", "value", {}, "json"),
    ("reg:pseudohubererror", "missing", "value", {}, "json"),
    ("reg:quantileerror", "numbers", "value", {"quantile_alpha": 0.9}, "json"),
    ("reg:logistic", "numbers", "share", {}, "json"),
    ("reg:gamma", "numbers", "positive", {}, "ubj"),
    ("reg:tweedie", "zeros", "count", {}, "json"),
    ("count:poisson", "missing", "count", {}, "json"),
    ("binary:logistic", "numbers", "two", {}, "json"),
    ("binary:logistic", "missing", "two", {"booster": "dart", "rate_drop": 0.2}, "ubj"),
    ("binary:logistic", "zeros", "two", {"base_score": 0.2, "scale_pos_weight": 3}, "json"),
    ("multi:softprob", "missing", "three", {"num_parallel_tree": 3, "n_estimators": 10, "subsample": 0.7}, "json"),
    ("multi:softprob", "categories", "three", {"enable_categorical": True, "grow_policy": "lossguide"}, "ubj"),
    ("rank:ndcg", "numbers", "grades", {}, "json"),
]
"""Objective, features, target, what else is set, and the ending of the file."""
LIGHTGBM: list[tuple[str, str, str, dict[str, Any]]] = [
    ("regression", "numbers", "value", {}),
    ("regression", "missing", "value", {"num_leaves": 4, "n_estimators": 300}),
    ("regression", "cents", "value", {"num_leaves": 200, "min_child_samples": 2}),
    ("regression", "times", "value", {}),
    ("regression", "categories", "value", {}),
    ("regression", "zeros", "value", {"zero_as_missing": True}),
    ("regression", "numbers", "positive", {"reg_sqrt": True}),
    ("regression", "whole", "value", {"boosting_type": "rf", "subsample": 0.7, "subsample_freq": 1}),
    ("regression_l1", "whole", "value", {}),
    ("huber", "missing", "value", {}),
    ("quantile", "numbers", "value", {"alpha": 0.1}),
    ("poisson", "missing", "count", {}),
    ("gamma", "numbers", "positive", {}),
    ("tweedie", "zeros", "count", {}),
    ("cross_entropy", "numbers", "share", {}),
    ("binary", "categories", "two", {"min_data_per_group": 5}),
    ("binary", "missing", "two", {"boosting_type": "dart", "sigmoid": 1.7}),
    ("multiclass", "cents", "three", {}),
    ("multiclassova", "missing", "three", {}),
    ("lambdarank", "codes", "grades", {}),
]
"""Objective, features, target and what else is set."""


def _encoded(model: Any, words: Any) -> Pipeline:
    """Return a pipeline with encoded words, and numbers that are filled in and scaled."""
    numbers = Pipeline([("imputer", SimpleImputer(strategy="median")), ("scaler", StandardScaler())])
    encoder = ColumnTransformer([("words", words, ["b", "c"]), ("numbers", numbers, list("adef"))])
    return Pipeline([("encoder", encoder), ("model", model)])


def _sklearn() -> list[tuple[Any, str, str]]:
    """Return models of scikit-learn that are not trained, their features and their targets."""
    one_hot, ordinal = OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder()
    return [
        (DecisionTreeClassifier(max_depth=4), "numbers", "two"),
        (DecisionTreeClassifier(), "missing", "words"),
        (DecisionTreeRegressor(), "cents", "value"),
        (RandomForestClassifier(20), "numbers", "three"),
        (RandomForestClassifier(50, max_depth=5), "missing", "two"),
        (RandomForestRegressor(20), "times", "value"),
        (RandomForestRegressor(10), "numbers", "several"),
        (ExtraTreesClassifier(20), "whole", "words"),
        (ExtraTreesRegressor(20), "missing", "value"),
        (GradientBoostingClassifier(n_estimators=30), "numbers", "two"),
        (GradientBoostingClassifier(n_estimators=10), "whole", "words"),
        (GradientBoostingRegressor(loss="huber"), "cents", "value"),
        (HistGradientBoostingClassifier(), "missing", "two"),
        (HistGradientBoostingClassifier(max_iter=20), "numbers", "three"),
        (HistGradientBoostingRegressor(loss="poisson"), "missing", "count"),
        (HistGradientBoostingRegressor(categorical_features=[1]), "codes", "value"),
        (_encoded(LogisticRegression(), one_hot), "words", "two"),
        (_encoded(LinearRegression(), one_hot), "words", "value"),
        (_encoded(RandomForestClassifier(20), ordinal), "words", "three"),
        (_encoded(GradientBoostingRegressor(n_estimators=20), one_hot), "words", "value"),
    ]


def trained() -> Iterator[tuple[str, Any]]:
    """Yield the file's name and the trained model of each."""
    x, y = features(), targets()
    for number, (objective, known, wanted, settings, ending) in enumerate(XGBOOST):
        kind = {"binary": xgboost.XGBClassifier, "multi": xgboost.XGBClassifier, "rank": xgboost.XGBRanker}
        model = kind.get(objective.partition(":")[0], xgboost.XGBRegressor)(
            **{"objective": objective, "n_estimators": 30, "random_state": 0, **settings}
        )
        yield f"xgboost-{number:02}.{ending}", model.fit(x[known], y[wanted], **_queries(objective))
    for number, (objective, known, wanted, settings) in enumerate(LIGHTGBM):
        made = {"objective": objective, "n_estimators": 30, "num_class": 3 if wanted == "three" else 1}
        columns: Any = [1] if known == "codes" else "auto"
        data = lightgbm.Dataset(x[known], y[wanted], categorical_feature=columns, **_queries(objective))
        quiet = {"verbose": -1, "num_threads": 1, "seed": 0}
        yield f"lightgbm-{number:02}.txt", lightgbm.train({**made, **quiet, **settings}, data)
    for number, (model, known, wanted) in enumerate(_sklearn()):
        numpy.random.seed(0)  # noqa: NPY002 - what scikit-learn draws from
        yield f"sklearn-{number:02}.skops", model.fit(x[known], y[wanted])


def _queries(objective: str) -> dict[str, Any]:
    """Return how the rows are grouped, if an objective orders those of a query."""
    return {"group": [GROUP] * (ROWS // GROUP)} if "rank" in objective else {}


def main() -> None:
    """Train and save all."""
    warnings.filterwarnings("ignore")
    for name, model in trained():
        save(model, Path(sys.argv[1]) / name)


if __name__ == "__main__":
    main()
