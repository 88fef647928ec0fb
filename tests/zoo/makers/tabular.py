"""Train models on the real tables inside scikit-learn, and convert them as their libraries' users do.

`python3 tabular.py FOLDER`, where scikit-learn, skl2onnx, onnxmltools, LightGBM and XGBoost are.
"""

import re
import sys
from pathlib import Path
from typing import Any

import numpy
from lightgbm import LGBMClassifier, LGBMRegressor
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as ToolFloat
from skl2onnx import to_onnx
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_linnerud, load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, IsolationForest, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from xgboost import XGBClassifier, XGBRegressor

TENSORS = {"zipmap": False}
"""Probabilities as a tensor: skl2onnx makes a list of dictionaries by default."""


def converted(model: Any, columns: int, opset: int, **options: Any) -> Any:
    """Return a fitted model of scikit-learn as ONNX."""
    return to_onnx(model, initial_types=[("X", FloatTensorType([None, columns]))], target_opset=opset, **options)


def classifiers() -> dict[str, Any]:
    """Return classifiers of scikit-learn."""
    wine, cancer = load_wine(return_X_y=True), load_breast_cancer(return_X_y=True)
    digits, iris = load_digits(return_X_y=True), load_iris(return_X_y=True)
    forest = RandomForestClassifier(30, random_state=0).fit(*wine)
    logistic = make_pipeline(StandardScaler(), LogisticRegression()).fit(*cancer)
    svc = make_pipeline(StandardScaler(), SVC()).fit(*iris)
    mlp = make_pipeline(PCA(30), MLPClassifier((32,), max_iter=60, random_state=0)).fit(*digits)
    neighbours = KNeighborsClassifier(3).fit(*iris)
    return {
        "wine-forest": converted(forest, 13, 12, options=TENSORS),
        "cancer-zipmap": converted(logistic, 30, 15),
        "iris-svc": converted(svc, 4, 14, options=TENSORS),
        "digits-mlp": converted(mlp, 64, 19, options=TENSORS),
        "iris-neighbours": converted(neighbours, 4, 17, options=TENSORS),
    }


def others() -> dict[str, Any]:
    """Return regressions, clusters and outliers."""
    sugar, (wine, _) = load_diabetes(return_X_y=True), load_wine(return_X_y=True)
    double = [("X", DoubleTensorType([None, 10]))]
    exercise = load_linnerud(return_X_y=True)
    odd = IsolationForest(n_estimators=20, random_state=0).fit(wine)
    boosted = HistGradientBoostingRegressor(max_iter=30, random_state=0).fit(*sugar)
    return {
        "diabetes-double": to_onnx(Ridge().fit(*sugar), initial_types=double, target_opset=18),
        "diabetes-boosted": converted(boosted, 10, 21),
        "exercise-targets": converted(Ridge().fit(*exercise), 3, 9),
        "wine-clusters": converted(KMeans(3, random_state=0).fit(wine), 13, 16),
        "wine-outliers": converted(odd, 13, {"": 15, "ai.onnx.ml": 3}),
    }


def boosters() -> dict[str, Any]:
    """Return trees of LightGBM and XGBoost."""
    (wine, kind), sugar = load_wine(return_X_y=True), load_diabetes(return_X_y=True)

    def given(columns: int) -> list[Any]:
        return [("input", ToolFloat([None, columns]))]

    light, light_sugar = LGBMClassifier(n_estimators=20, verbose=-1), LGBMRegressor(n_estimators=20, verbose=-1)
    return {
        "wine-lightgbm": convert_lightgbm(light.fit(wine, kind), "", given(13), target_opset=13, zipmap=False),
        "diabetes-lightgbm": convert_lightgbm(light_sugar.fit(*sugar), "", given(10), target_opset=11),
        "wine-xgboost": convert_xgboost(XGBClassifier(n_estimators=20).fit(wine, kind), "", given(13), target_opset=15),
        "diabetes-xgboost": convert_xgboost(XGBRegressor(n_estimators=20).fit(*sugar), "", given(10), target_opset=10),
    }


def texts() -> dict[str, Any]:
    """Return models of text: sentences about scikit-learn's tables, and a column of words."""
    loads = (load_wine, load_breast_cancer, load_diabetes, load_digits, load_iris)
    sentences, about = [], []
    for load in loads:
        found = [each.strip() for each in re.split(r"[.\n]", load().DESCR) if len(each.split()) > 2]
        sentences += found
        about += [load.__name__.removeprefix("load_")] * len(found)
    words = TfidfVectorizer(token_pattern="[a-zA-Z]+", min_df=2)
    topic = make_pipeline(words, LogisticRegression()).fit(sentences, about)
    colours = numpy.random.default_rng(0).choice(["red", "white", "green"], (178, 1)).astype(object)
    encoder = ColumnTransformer([("colour", OneHotEncoder(handle_unknown="ignore"), [0])])
    coloured = make_pipeline(encoder, LogisticRegression()).fit(colours, load_wine().target)
    sentence, colour = ([(name, StringTensorType([None, 1]))] for name in ("text", "colour"))
    return {
        "topic-tfidf": to_onnx(topic, initial_types=sentence, target_opset=15, options=TENSORS),
        "colour-onehot": to_onnx(coloured, initial_types=colour, target_opset=17, options=TENSORS),
    }


def main(folder: Path) -> None:
    """Write every model."""
    for name, model in (classifiers() | others() | boosters() | texts()).items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
