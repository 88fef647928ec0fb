"""Reports of scikit-learn: each function is called as the thread that it rebuilds."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pandas
import xgboost
from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost
from skl2onnx import convert_sklearn, to_onnx, update_registered_converter
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes
from skl2onnx.sklapi import CastTransformer
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import (
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier

from bench.conversions.models.case import (
    Answers,
    Case,
    Rows,
    classified,
    lying,
    predicted,
    table,
    transformed,
    with_missing,
)

CITIES = numpy.array(["Bologna", "Ferrara", "Modena", "Parma"])


def sklearn_onnx_201() -> Case:
    """Boosting of two classes."""
    x, y = table()
    model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(x, (y > 0.5).astype(int))
    return _trees(model, x, classified(model))


def sklearn_onnx_1192() -> Case:
    """Boosting with histograms behind encoded words and a cast to float32."""
    data, y = _people(1000)
    encoder = ColumnTransformer([("words", TargetEncoder(random_state=0), ["city"])], remainder="passthrough")
    cast, boosting = CastTransformer(dtype=numpy.float32), HistGradientBoostingRegressor(random_state=0)
    model = Pipeline([("encoder", encoder), ("cast", cast), ("regressor", boosting)]).fit(data, y)
    nodes = numpy.concatenate([trees[0].nodes for trees in model["regressor"]._predictors])  # noqa: SLF001 - no public name
    of_income = nodes[(nodes["is_leaf"] == 0) & (nodes["feature_idx"] == 2)]["num_threshold"].astype(numpy.float32)
    at = data.sample(len(of_income), replace=True, random_state=0).assign(income=of_income)
    rows = {"leaves": data, "thresholds": at, "fresh": _people(500, 1)[0]}
    return Case(model, predicted(model), lambda: _columns_converted(model), rows)


def sklearn_onnx_548() -> Case:
    """A forest that finds outliers."""
    random = numpy.random.default_rng(42)
    x = (0.3 * random.normal(size=(200, 2)) + numpy.repeat([[2], [-2]], 100, axis=0)).astype(numpy.float32)
    model = IsolationForest(max_samples=100, n_estimators=20, random_state=0).fit(x)
    rows = lying(x, _splits(model)) | {"outliers": random.uniform(-4, 4, (100, 2)).astype(numpy.float32)}

    def library(rows: Rows) -> Answers:
        return [model.predict(rows), model.decision_function(rows)]

    return Case(model, library, lambda: _converted(model, 2, {"": 15, "ai.onnx.ml": 3}), rows)


def sklearn_onnx_1046() -> Case:
    """A classifier of XGBoost behind encoded words."""
    data, y = _people(500)
    steps = Pipeline([("scaler", StandardScaler()), ("cast", CastTransformer(dtype=numpy.float32))])
    words = OneHotEncoder(handle_unknown="ignore")
    encoder = ColumnTransformer([("numbers", steps, ["age", "income"]), ("words", words, ["city"])])
    model = Pipeline([("encoder", encoder), ("classifier", xgboost.XGBClassifier(n_estimators=20))])
    model.fit(data, (y > 1).astype(int))

    def convert() -> Any:
        update_registered_converter(
            xgboost.XGBClassifier,
            "XGBoostXGBClassifier",
            calculate_linear_classifier_output_shapes,
            convert_xgboost,
            options={"nocl": [True, False], "zipmap": [True, False, "columns"]},
        )
        return _columns_converted(model, {"": 15, "ai.onnx.ml": 3}, zipmap=False)

    return Case(model, classified(model), convert, {"leaves": data, "fresh": _people(500, 1)[0]})


def onnxruntime_4130() -> Case:
    """A forest of values behind a scaler, on columns of large numbers."""
    x, y = table()
    x *= numpy.array([1, 10, 100, 1000, 1e4, 1e5], numpy.float32)
    model = Pipeline([("scaler", StandardScaler()), ("forest", RandomForestRegressor(30, random_state=0))])
    model.fit(x, 1000 * y)
    scaler = model["scaler"]
    splits = ((each, value * scaler.scale_[each] + scaler.mean_[each]) for each, value in _splits(model["forest"]))
    return Case(model, predicted(model), lambda: _converted(model, 6), lying(x, splits))


def sklearn_onnx_184() -> Case:
    """Boosting of three classes with another learning rate."""
    x, y = table(150, 4)
    model = GradientBoostingClassifier(learning_rate=0.21, n_estimators=10, random_state=0)
    model.fit(x, numpy.digitize(y, [0, 1]))
    return _trees(model, x, classified(model))


def sklearn_onnx_671() -> Case:
    """A linear classifier behind imputers, a scaler and encoded words."""
    data, y = _people(500)
    gaps = data.copy()
    gaps.loc[::7, "age"] = numpy.nan
    numbers = Pipeline([("imputer", SimpleImputer(strategy="median")), ("scaler", StandardScaler())])
    words = Pipeline([
        ("imputer", SimpleImputer(missing_values="", strategy="constant", fill_value="missing")),
        ("onehot", OneHotEncoder(handle_unknown="ignore")),
    ])  # fmt: skip
    encoder = ColumnTransformer([("numbers", numbers, ["age", "income"]), ("words", words, ["city"])])
    model = Pipeline([("encoder", encoder), ("classifier", LogisticRegression())]).fit(gaps, (y > 1).astype(int))
    unseen = data.assign(city="Rome")
    rows = {"training": data, "missing": gaps, "unseen words": unseen}
    return Case(model, classified(model), lambda: _columns_converted(model, zipmap=False), rows)


def sklearn_onnx_1253() -> Case:
    """A forest of two classes that was trained with missing values."""
    x, y = table(600)
    model = RandomForestClassifier(50, max_depth=5, random_state=0).fit(with_missing(x), (y > 0.5).astype(int))
    return _trees(model, x, classified(model), missing=True)


def sklearn_onnx_223() -> Case:
    """Boosting of values with weights and another learning rate."""
    x, y = table()
    model = AdaBoostRegressor(n_estimators=5, learning_rate=1.2, loss="exponential", random_state=42).fit(x, y)
    return _trees(model, x, predicted(model))


def sklearn_onnx_166() -> Case:
    """A forest of values."""
    x, y = table(400, 10)
    model = RandomForestRegressor(30, random_state=0).fit(x, y)
    return _trees(model, x, predicted(model))


def sklearn_onnx_120() -> Case:
    """Boosting with words as labels."""
    x, y = table()
    model = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(x, numpy.where(y > 0.5, "A", "B"))
    return _trees(model, x, classified(model))


def sklearn_onnx_1165() -> Case:
    """An imputer by neighbours."""
    x = with_missing(table(100, 10)[0])
    model = KNNImputer(n_neighbors=5).fit(x)
    rows = {"training": x, "fresh": with_missing(table(100, 10, 1)[0])}
    return Case(model, transformed(model), lambda: _converted(model, 10), rows)


def onnxmltools_415() -> Case:
    """A forest that saw one class."""
    x = table(20)[0][:, :1]
    model = RandomForestClassifier(5, random_state=0).fit(x, numpy.zeros(20, int))
    return Case(model, classified(model), lambda: _converted(model, 1, zipmap=False), {"leaves": x})


def sklearn_onnx_196() -> Case:
    """Weights of words in texts, some of which have no known word."""
    texts = numpy.array([f"the {city} train of day {day}" for city in CITIES for day in range(10, 20)])
    model = TfidfVectorizer().fit(texts)
    rows = {"training": texts, "unseen words": numpy.array(["Rome is far", "it's 10 o'clock, in Parma!"])}

    # By default, the graph names a locale that this machine and many images lack.
    types, options = [("x", StringTensorType([None]))], {id(model): {"locale": "C"}}
    return Case(model, transformed(model), lambda: convert_sklearn(model, initial_types=types, options=options), rows)


def sklearn_onnx_1132() -> Case:
    """Codes of words, with one for a missing word and one for an unknown word."""
    words = numpy.array([["a"], ["b"], ["c"], ["d"], [numpy.nan]], object)
    model = OrdinalEncoder(encoded_missing_value=42, handle_unknown="use_encoded_value", unknown_value=99).fit(words)
    types = [("x", StringTensorType([None, 1]))]
    rows = {"training": words, "unseen words": numpy.array([["e"]], object)}
    return Case(model, transformed(model), lambda: convert_sklearn(model, initial_types=types), rows)


def sklearn_onnx_1080() -> Case:
    """A tree of two classes whose leaves hold both."""
    x, y = table(500, 27)
    model = DecisionTreeClassifier(max_depth=4, random_state=0)
    model.fit(x, (y + numpy.random.default_rng(3).normal(size=500) > 0.5).astype(int))
    return _trees(model, x, classified(model))


def sklearn_onnx_194() -> Case:
    """Two groups of columns with weights."""
    x = table(200, 20)[0]
    pca, svd = PCA(n_components=5, random_state=0), TruncatedSVD(random_state=0)
    parts = [("pca", pca, slice(0, 10)), ("svd", svd, slice(10, 20))]
    model = ColumnTransformer(parts, transformer_weights={"pca": 10, "svd": 3}).fit(x)
    rows = {"training": x, "fresh": table(200, 20, 1)[0]}
    return Case(model, transformed(model), lambda: _converted(model, 20), rows)


def sklearn_onnx_156() -> Case:
    """Boosting by absolute errors, which was called lad."""
    x, y = table()
    model = GradientBoostingRegressor(n_estimators=10, loss="absolute_error", random_state=42).fit(x, y)
    return _trees(model, x, predicted(model))


def sklearn_onnx_321() -> Case:
    """A linear model behind encoded whole numbers and a scaler."""
    random = numpy.random.default_rng(0)
    data = pandas.DataFrame({"code": random.integers(0, 5, 200), "number": random.normal(size=200)})
    parts = [("codes", OneHotEncoder(), ["code"]), ("numbers", RobustScaler(), ["number"])]
    model = Pipeline([("encoder", ColumnTransformer(parts)), ("linear", LinearRegression())])
    model.fit(data, data["code"] ** 2 + data["number"])
    types = [("code", Int64TensorType([None, 1])), ("number", FloatTensorType([None, 1]))]
    return Case(model, predicted(model), lambda: convert_sklearn(model, initial_types=types), {"training": data})


def onnxruntime_28557() -> Case:
    """A forest of two classes."""
    x, y = table(500, 10)
    model = RandomForestClassifier(20, max_depth=8, random_state=42).fit(x, (y > 0.5).astype(int))
    return _trees(model, x, classified(model))


def _people(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Return a table with two columns of numbers and one of words, and a value for each row."""
    random = numpy.random.default_rng(seed)
    city = random.integers(len(CITIES), size=rows)
    age, income = random.integers(18, 80, rows).astype(float), random.normal(30_000, 8_000, rows).round(2)
    data = pandas.DataFrame({"age": age, "income": income, "city": CITIES[city]})
    return data, age / 50 + numpy.where(city % 2, income / 30_000, 0)


def _trees(model: Any, x: Any, library: Callable[[Rows], Answers], *, missing: bool = False) -> Case:
    options = {"zipmap": False} if hasattr(model, "predict_proba") else {}
    return Case(
        model, library, lambda: _converted(model, x.shape[1], **options), lying(x, _splits(model), missing=missing)
    )


def _converted(model: Any, columns: int, versions: Any = None, **options: bool) -> Any:
    types, chosen = [("x", FloatTensorType([None, columns]))], {id(model): options} if options else None
    return convert_sklearn(model, initial_types=types, options=chosen, target_opset=versions)


def _columns_converted(model: Any, versions: Any = None, **options: bool) -> Any:
    types = [(name, FloatTensorType([None, 1])) for name in ("age", "income")] + [("city", StringTensorType([None, 1]))]
    chosen = {id(model): options} if options else None
    return to_onnx(model, initial_types=types, options=chosen, target_opset=versions)


def _splits(model: Any) -> Iterator[tuple[int, float]]:
    """Yield column and threshold of each split of a tree, or of all trees of a forest."""
    for tree in numpy.ravel(getattr(model, "estimators_", model)):
        inner = tree.tree_.children_left >= 0
        yield from zip(tree.tree_.feature[inner], tree.tree_.threshold[inner], strict=True)
