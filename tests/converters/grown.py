"""Small models of trees, as XGBoost and LightGBM themselves train and save them, by what is special about each."""

from collections.abc import Callable, Mapping
from typing import Any

import lightgbm
import numpy
import xgboost

ROWS = 400
random = numpy.random.default_rng(11)
PLAIN = random.normal(size=(ROWS, 6)).round(2)
GAPS = numpy.where(random.random(PLAIN.shape) < 0.2, numpy.nan, PLAIN)
ZEROS = numpy.where(random.random(PLAIN.shape) < 0.3, 0, GAPS)
CATEGORIES = PLAIN.copy()
CATEGORIES[:, 4], CATEGORIES[:, 5] = random.integers(0, 40, ROWS), random.integers(0, 3, ROWS)
MISSING_CATEGORIES = numpy.where(random.random(PLAIN.shape) < 0.1, numpy.nan, CATEGORIES)
IDS = PLAIN.copy()
IDS[:, 0] = 1e9 + random.integers(0, 3000, ROWS)
"""Whole numbers that float32 does not tell apart."""

NUMBERS = PLAIN[:, 0] * 2 + numpy.sin(PLAIN[:, 1] * 3) * 3 + random.normal(size=ROWS) * 0.1
POSITIVE = numpy.exp(numpy.clip(NUMBERS / 4, -3, 3))
FLAGS = (NUMBERS > 0).astype(int)
CLASSES = numpy.digitize(NUMBERS, [-2, 1])
SEVERAL = numpy.stack([NUMBERS, PLAIN[:, 2], NUMBERS * PLAIN[:, 3]], axis=1)
BY_CATEGORY = NUMBERS + ((CATEGORIES[:, 4] * 7) % 11 > 5) * 3 + CATEGORIES[:, 5]
GROUP = 20

Model = Callable[[], Any]
ROUNDS = 8
THREE = {"num_class": 3}


def boosted(objective: str, rows: Any = PLAIN, target: Any = NUMBERS, **parameters: Any) -> Model:
    """A model of XGBoost."""
    listed = rows is CATEGORIES or rows is MISSING_CATEGORIES
    labels = {name: parameters.pop(name) for name in list(parameters) if name.startswith(("label", "qid"))}
    rounds = parameters.pop("rounds", ROUNDS)

    def train() -> Any:
        kinds = [*["q"] * 4, "c", "c"] if listed else None
        data = xgboost.DMatrix(rows, target, feature_types=kinds, enable_categorical=listed, nthread=1, **labels)
        own = {"objective": objective, "verbosity": 0, "nthread": 1, "max_depth": 4}
        return xgboost.train(own | parameters, data, rounds)

    return train


def stopped(booster: Any, rounds: int) -> Any:
    """A model as XGBoost's interface of scikit-learn saves it, whose best round was an earlier one."""
    booster.set_attr(scikit_learn="{}", best_iteration=str(rounds - 1))
    return booster


LEARNING_TO_RANK = numpy.repeat(numpy.arange(ROWS // GROUP), GROUP)
XGBOOST: Mapping[str, Model] = {
    **{name: boosted(name) for name in ("reg:squarederror", "reg:pseudohubererror", "reg:absoluteerror")},
    **{
        name: boosted(name, target=FLAGS)
        for name in ("binary:logistic", "reg:logistic", "binary:logitraw", "binary:hinge")
    },
    **{
        name: boosted(name, target=POSITIVE)
        for name in ("reg:squaredlogerror", "count:poisson", "reg:gamma", "reg:tweedie", "survival:cox")
    },
    **{
        f"{name} from a base": boosted(name, target=FLAGS, base_score=0.3)
        for name in ("binary:logistic", "binary:logitraw", "count:poisson", "reg:squarederror")
    },
    "survival:aft": boosted("survival:aft", label_lower_bound=POSITIVE, label_upper_bound=POSITIVE * 1.1),
    "one quantile": boosted("reg:quantileerror", quantile_alpha=0.3),
    "multi:softprob": boosted("multi:softprob", target=CLASSES, **THREE),
    "multi:softmax": boosted("multi:softmax", target=CLASSES, **THREE),
    "several trees a class": boosted("multi:softprob", target=CLASSES, num_parallel_tree=3, subsample=0.7, **THREE),
    "several outputs": boosted("reg:squarederror", target=SEVERAL),
    "several labels": boosted("binary:logistic", target=(SEVERAL > 0).astype(int)),
    "leaves of vectors": boosted("reg:squarederror", GAPS, SEVERAL, multi_strategy="multi_output_tree"),
    "classes in leaves of vectors": boosted(
        "multi:softprob", target=CLASSES, multi_strategy="multi_output_tree", **THREE
    ),
    "missing values": boosted("reg:squarederror", GAPS),
    "dropped trees": boosted("reg:squarederror", booster="dart", rate_drop=0.4),
    "dropped trees of classes": boosted("multi:softprob", GAPS, CLASSES, booster="dart", rate_drop=0.4, **THREE),
    "a random forest": boosted("reg:squarederror", num_parallel_tree=12, subsample=0.6, learning_rate=1, rounds=1),
    "by leaves": boosted("reg:squarederror", grow_policy="lossguide", max_leaves=40, max_depth=0),
    "pruned trees": boosted("reg:squarederror", GAPS, tree_method="exact", gamma=5),
    "categories": boosted("reg:squarederror", CATEGORIES, BY_CATEGORY),
    "missing categories": boosted("reg:squarederror", MISSING_CATEGORIES, BY_CATEGORY),
    "single categories": boosted("reg:squarederror", MISSING_CATEGORIES, BY_CATEGORY, max_cat_to_onehot=60),
    "whole numbers near 1e9": boosted("reg:squarederror", IDS, numpy.sin(IDS[:, 0] / 7)),
    "stumps": boosted("reg:squarederror", max_depth=1),
    **{
        name: boosted(name, target=(NUMBERS > 1).astype(int), qid=LEARNING_TO_RANK)
        for name in ("rank:ndcg", "rank:map", "rank:pairwise")
    },
}


def light(objective: str, rows: Any = PLAIN, target: Any = NUMBERS, **parameters: Any) -> Model:
    """A model of LightGBM."""
    listed = [4, 5] if rows is CATEGORIES or rows is MISSING_CATEGORIES else []
    groups = {"group": parameters.pop("group")} if "group" in parameters else {}
    own = {"objective": objective, "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "num_leaves": 15}

    def train() -> Any:
        data = lightgbm.Dataset(rows, target, categorical_feature=listed, **groups)
        return lightgbm.train(own | parameters, data, ROUNDS)

    return train


FOREST = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
LIGHTGBM: Mapping[str, Model] = {
    **{name: light(name) for name in ("regression", "regression_l1", "huber", "fair", "quantile")},
    **{name: light(name, target=POSITIVE) for name in ("mape", "poisson", "gamma", "tweedie")},
    **{name: light(name, target=FLAGS) for name in ("binary", "cross_entropy", "cross_entropy_lambda")},
    "another sigmoid": light("binary", target=FLAGS, sigmoid=2.5),
    "roots": light("regression", reg_sqrt=True),
    "multiclass": light("multiclass", target=CLASSES, **THREE),
    "multiclassova": light("multiclassova", target=CLASSES, sigmoid=0.5, **THREE),
    **{name: light(name, target=CLASSES, group=[GROUP] * (ROWS // GROUP)) for name in ("lambdarank", "rank_xendcg")},
    "an objective in Python": light(lambda answers, data: (answers - data.get_label(), numpy.ones(len(answers)))),
    "missing values": light("regression", GAPS),
    "zeros are missing": light("regression", ZEROS, zero_as_missing=True),
    "nothing is missing": light("regression", ZEROS, use_missing=False),
    "a random forest": light("regression", **FOREST),
    "a random forest of flags": light("binary", target=FLAGS, **FOREST),
    "a random forest of classes": light("multiclass", target=CLASSES, **FOREST, **THREE),
    "dropped trees": light("regression", boosting="dart", drop_rate=0.4),
    "categories": light("regression", CATEGORIES, BY_CATEGORY),
    "missing categories": light("regression", MISSING_CATEGORIES, BY_CATEGORY),
    "categories where zeros are missing": light("regression", MISSING_CATEGORIES, BY_CATEGORY, zero_as_missing=True),
    "single categories": light("regression", MISSING_CATEGORIES, BY_CATEGORY, max_cat_to_onehot=60),
    "whole numbers near 1e9": light("regression", IDS, numpy.sin(IDS[:, 0] / 7)),
}


def saved(model: Any, suffix: str) -> bytes:
    """The file of a model: json or ubj of XGBoost, txt of LightGBM."""
    return model.model_to_string().encode() if suffix == "txt" else bytes(model.save_raw(suffix))
