"""Models of scikit-learn on its own small data sets, by what is special about each, and files of skops."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

import numpy
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import (
    BayesianRidge,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

random = numpy.random.default_rng(23)
WINE, KINDS = load_wine(return_X_y=True)
SICK, IS_SICK = load_breast_cancer(return_X_y=True)
BODIES, SUGAR = load_diabetes(return_X_y=True)
GAPS = numpy.where(random.random(WINE.shape) < 0.15, numpy.nan, WINE)
SICK_GAPS = numpy.where(random.random(SICK.shape) < 0.1, numpy.nan, SICK)
WORDS = numpy.array(["dry", "sweet", "sour"])[KINDS]
TIMES = BODIES.copy()
TIMES[:, 0] = 1_700_000_000 + random.integers(0, 90_000_000, len(TIMES))
"""Seconds, which float32 does not tell apart."""
CODES = WINE.copy()
CODES[:, 0], CODES[:, 5] = random.integers(0, 60, len(CODES)), random.choice([-1.5, 2.0, 7.25], len(CODES))
CITIES = numpy.empty((len(SICK), 5), object)
"""Two columns of words between numbers, some of them missing."""
CITIES[:, [0, 2, 4]] = SICK_GAPS[:, [3, 0, 13]]
CITIES[:, 1] = random.choice(["Oslo", "Pécs", "Rome", "São Paulo"], len(SICK), p=[0.5, 0.3, 0.15, 0.05])
CITIES[:, 3] = random.choice(["yes", "no"], len(SICK))
WHOLE = numpy.where(numpy.isnan(CITIES[:, [0, 2, 4]].astype(float)), 0, CITIES[:, [0, 2, 4]].astype(float))
FULL = CITIES.copy()
FULL[:, [0, 2, 4]] = WHOLE

Made = Callable[[], Any]


def trained(model: Any, rows: Any, target: Any) -> Made:
    """A model that is trained when it is asked for, always alike."""

    def train() -> Any:
        chosen = [name for name in model.get_params() if name.endswith("random_state")]
        return model.set_params(**dict.fromkeys(chosen, 0)).fit(rows, target)

    return train


def words(model: Any, encoder: Any = None, numbers: Any = None) -> Pipeline:
    """A pipeline of CITIES: words are encoded, numbers filled in and scaled."""
    encoder = encoder or OneHotEncoder(handle_unknown="ignore")
    numbers = numbers or make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return Pipeline([("columns", ColumnTransformer([("w", encoder, [1, 3]), ("n", numbers, [0, 2, 4])])), ("m", model)])


UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
CONVERTED: Mapping[str, Made] = {
    "a tree": trained(DecisionTreeClassifier(max_depth=6), SICK, IS_SICK),
    "a tree of words and gaps": trained(DecisionTreeClassifier(), GAPS, WORDS),
    "a tree at random": trained(ExtraTreeRegressor(), TIMES, SUGAR),
    "a tree of several targets": trained(
        DecisionTreeRegressor(min_samples_leaf=3), BODIES, numpy.stack([SUGAR, -SUGAR], 1)
    ),
    "a forest": trained(RandomForestClassifier(12), WINE, WORDS),
    "a forest of gaps": trained(RandomForestClassifier(12, max_features=None), GAPS, KINDS),
    "a forest of times": trained(RandomForestRegressor(8), TIMES, SUGAR),
    "extra trees of gaps": trained(ExtraTreesClassifier(12), SICK_GAPS, IS_SICK),
    "extra trees of values": trained(ExtraTreesRegressor(9, bootstrap=True), BODIES, SUGAR * 1e5),
    "boosting of two classes": trained(GradientBoostingClassifier(n_estimators=25, subsample=0.6), SICK, IS_SICK),
    "boosting of three classes": trained(GradientBoostingClassifier(n_estimators=9, learning_rate=0.4), WINE, WORDS),
    "boosting by exponential loss": trained(
        GradientBoostingClassifier(loss="exponential", n_estimators=15), WINE, KINDS > 0
    ),
    "boosting from zero": trained(GradientBoostingRegressor(init="zero", n_estimators=20), BODIES, SUGAR),
    "boosting of a quantile": trained(
        GradientBoostingRegressor(loss="quantile", alpha=0.2, n_estimators=20), TIMES, SUGAR
    ),
    "boosting of the absolute error": trained(
        GradientBoostingRegressor(loss="absolute_error", n_estimators=20), BODIES, SUGAR
    ),
    "histograms": trained(HistGradientBoostingRegressor(max_iter=20), TIMES, SUGAR),
    "histograms of counts": trained(HistGradientBoostingRegressor(loss="poisson", max_iter=20), GAPS, KINDS),
    "histograms of amounts": trained(HistGradientBoostingRegressor(loss="gamma", max_iter=20), GAPS, KINDS + 0.5),
    "histograms of a quantile": trained(
        HistGradientBoostingRegressor(loss="quantile", quantile=0.7, max_iter=20), BODIES, SUGAR
    ),
    "histograms of two classes": trained(
        HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=9), SICK_GAPS, IS_SICK
    ),
    "histograms of words": trained(HistGradientBoostingClassifier(max_iter=9, early_stopping=True), GAPS, WORDS),
    "histograms of categories": trained(
        HistGradientBoostingClassifier(max_iter=20, categorical_features=[0, 5], min_samples_leaf=3), CODES, KINDS
    ),
    "histograms of categories and gaps": trained(
        HistGradientBoostingRegressor(max_iter=20, categorical_features=[5]),
        numpy.where(random.random(CODES.shape) < 0.1, numpy.nan, CODES),
        KINDS,
    ),
    "words for a forest": trained(words(RandomForestClassifier(9)), CITIES, IS_SICK),
    "words by number for a forest": trained(words(ExtraTreesClassifier(9), OrdinalEncoder(**UNKNOWN)), CITIES, IS_SICK),
    "words for boosting": trained(words(GradientBoostingRegressor(n_estimators=9)), CITIES, IS_SICK * 10),
    "words and gaps for histograms": trained(
        words(HistGradientBoostingClassifier(max_iter=9), OrdinalEncoder(), "passthrough"), CITIES, IS_SICK
    ),
    "words for a linear model": trained(words(LogisticRegression(max_iter=500)), CITIES, IS_SICK),
    "seldom words": trained(
        words(LogisticRegression(), OneHotEncoder(min_frequency=80, handle_unknown="infrequent_if_exist")),
        CITIES,
        IS_SICK,
    ),
    "words without the first": trained(words(LinearRegression(), OneHotEncoder(drop="first")), CITIES, IS_SICK),
    "words by their target": trained(words(RandomForestRegressor(7), TargetEncoder()), CITIES, IS_SICK.astype(float)),
    "words for scores": trained(words(LinearSVC()), CITIES, IS_SICK),
    "words for a network": trained(words(MLPClassifier((7,), max_iter=40)), CITIES, IS_SICK),
    "words that are filled in": trained(
        words(
            SGDClassifier(loss="modified_huber"),
            make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")),
            make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
        ),
        CITIES,
        IS_SICK,
    ),
    "words alone": trained(make_pipeline(OrdinalEncoder(), RandomForestClassifier(5)), CITIES[:, [1, 3]], IS_SICK),
    "columns that are left over": trained(
        make_pipeline(ColumnTransformer([("w", OneHotEncoder(), [1, 3])], remainder=RobustScaler()), GaussianNB()),
        FULL,
        IS_SICK,
    ),
    "columns with weights": trained(
        make_pipeline(
            ColumnTransformer(
                [("a", StandardScaler(), slice(0, 6)), ("b", "passthrough", [7])], transformer_weights={"a": 3.0}
            ),
            DecisionTreeRegressor(),
        ),
        BODIES,
        SUGAR,
    ),
    "three columns of five": trained(
        make_pipeline(ColumnTransformer([("n", MinMaxScaler(clip=True), [0, 2, 4])]), ExtraTreesRegressor(4)),
        FULL,
        IS_SICK,
    ),
    "words, and columns that are dropped": trained(
        make_pipeline(
            ColumnTransformer([("w", OneHotEncoder(), [3]), ("n", "passthrough", [0]), ("d", "drop", [1])]),
            LogisticRegression(max_iter=500),
        ),
        FULL,
        IS_SICK,
    ),
    "codes by category": trained(
        make_pipeline(
            ColumnTransformer([("c", OneHotEncoder(handle_unknown="ignore"), [0, 5])], remainder=MaxAbsScaler()),
            LogisticRegression(max_iter=500),
        ),
        CODES,
        KINDS,
    ),
    "codes by number": trained(
        make_pipeline(
            ColumnTransformer([("c", OrdinalEncoder(**UNKNOWN), [0, 5])], remainder="passthrough"),
            GradientBoostingClassifier(n_estimators=5),
        ),
        CODES,
        KINDS,
    ),
    "scaled times for a forest": trained(make_pipeline(StandardScaler(), RandomForestRegressor(6)), TIMES, SUGAR),
    "quantiles for trees": trained(
        make_pipeline(QuantileTransformer(n_quantiles=40), HistGradientBoostingClassifier(max_iter=6)), WINE, KINDS
    ),
    "bins": trained(
        make_pipeline(KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), LogisticRegression()), WINE, KINDS
    ),
    "products": trained(
        make_pipeline(MinMaxScaler(), PolynomialFeatures(2, interaction_only=True, include_bias=False), Lasso()),
        BODIES,
        SUGAR,
    ),
    "components": trained(make_pipeline(RobustScaler(), PCA(3), RandomForestClassifier(5)), WINE, WORDS),
    "a union": trained(
        make_pipeline(FeatureUnion([("a", StandardScaler()), ("b", PCA(2))]), LinearDiscriminantAnalysis()), WINE, KINDS
    ),
    "chosen columns": trained(
        make_pipeline(SelectFromModel(ExtraTreesClassifier(5)), VarianceThreshold(), QuadraticDiscriminantAnalysis()),
        WINE,
        KINDS,
    ),
    "votes": trained(
        VotingClassifier([("f", RandomForestClassifier(4)), ("n", GaussianNB())], voting="soft", weights=[2, 1]),
        WINE,
        WORDS,
    ),
    "a stack": trained(
        StackingRegressor([("h", HistGradientBoostingRegressor(max_iter=5)), ("b", BayesianRidge())]), BODIES, SUGAR
    ),
    "calibrated": trained(CalibratedClassifierCV(ExtraTreesClassifier(4), cv=2), WINE, KINDS),
    "bags": trained(BaggingClassifier(n_estimators=4, max_features=0.5), WINE, KINDS),
    "weighted trees": trained(AdaBoostRegressor(n_estimators=4), BODIES, SUGAR),
    "one for each class": trained(OneVsRestClassifier(LogisticRegression(max_iter=500)), WINE, KINDS),
    "one for each target": trained(
        MultiOutputRegressor(RandomForestRegressor(3)), BODIES, numpy.stack([SUGAR, 1 / SUGAR], 1)
    ),
    "scores of two classes": trained(make_pipeline(StandardScaler(), RidgeClassifier()), SICK, IS_SICK),
    "counts": trained(make_pipeline(StandardScaler(), PoissonRegressor()), BODIES, SUGAR),
    "bits": trained(
        make_pipeline(KBinsDiscretizer(2, encode="ordinal", strategy="uniform"), BernoulliNB()), WINE, KINDS
    ),
    "shares": trained(make_pipeline(MinMaxScaler(clip=True), ComplementNB()), WINE, KINDS),
    "amounts": trained(MultinomialNB(), WINE, KINDS),
    "a network of values": trained(
        make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=[5], max_iter=40)), BODIES, SUGAR
    ),
}
"""Those that are converted. None of them was looked at before the code was written."""
REFUSED: Mapping[str, tuple[Made, str]] = {
    "neighbours": (trained(KNeighborsClassifier(), WINE, KINDS), "holds sklearn.neighbors"),
    "support vectors": (trained(SVC(), WINE, KINDS), "holds sklearn.svm._classes.SVC, "),
    "outliers": (trained(IsolationForest(n_estimators=3), WINE, None), "holds sklearn.ensemble._iforest"),
    "a search": (
        trained(GridSearchCV(GaussianNB(), {"var_smoothing": [0.1]}), WINE, KINDS),
        r"skops.io.dump\(search.best_estimator_",
    ),
    "a function": (
        trained(make_pipeline(FunctionTransformer(numpy.log1p), GaussianNB()), WINE, KINDS),
        "holds numpy.log1p",
    ),
    "chosen by a function": (
        trained(make_pipeline(SelectKBest(k=3), GaussianNB()), WINE, KINDS),
        "in place of SelectKBest",
    ),
    "a neighbour's value": (trained(make_pipeline(KNNImputer(), GaussianNB()), GAPS, KINDS), "use SimpleImputer"),
    "powers": (trained(make_pipeline(PowerTransformer(), GaussianNB()), WINE, KINDS), "use StandardScaler"),
    "texts": (
        trained(make_pipeline(TfidfVectorizer(), LogisticRegression()), WORDS, KINDS),
        "docs/tokenizer.md",
    ),
    "weighted classes": (trained(AdaBoostClassifier(n_estimators=3), WINE, KINDS), "holds sklearn.ensemble._weight"),
    "a target behind a function": (
        trained(TransformedTargetRegressor(LinearRegression(), func=numpy.log, inverse_func=numpy.exp), BODIES, SUGAR),
        "holds ",
    ),
    "votes for labels": (
        trained(VotingClassifier([("n", GaussianNB())]), WINE, KINDS),
        "a VotingClassifier that answers labels alone",
    ),
    "a scaler": (trained(StandardScaler(), WINE, KINDS), "a StandardScaler that answers nothing"),
    "several targets of classes": (
        trained(DecisionTreeClassifier(), WINE, numpy.stack([KINDS, KINDS > 0], 1)),
        "train a model for each target",
    ),
    "boosting from a model": (
        trained(GradientBoostingRegressor(init=LinearRegression(), n_estimators=2), BODIES, SUGAR),
        r"begins with a LinearRegression \(init\)",
    ),
    "a stump of one leaf": (trained(DecisionTreeRegressor(min_samples_leaf=300), BODIES, SUGAR), "no tree that splits"),
}
"""Those that are refused when the file is opened, and why."""
UNCONVERTED: Mapping[str, tuple[Made, str]] = {
    "normal quantiles": (
        trained(
            make_pipeline(QuantileTransformer(n_quantiles=9, output_distribution="normal"), GaussianNB()), WINE, KINDS
        ),
        "output_distribution='normal'",
    ),
    "an empty column": (
        trained(make_pipeline(SimpleImputer(), LinearRegression()), numpy.insert(BODIES, 3, numpy.nan, 1), SUGAR),
        "leaves out a column",
    ),
    "scores for each class": (trained(OneVsRestClassifier(LinearSVC()), WINE, KINDS), "the scores of a OneVsRest"),
}
"""Those that the library answers and skl2onnx does not convert, and what it says."""


def altered(content: bytes, change: Callable[[Any, dict[str, bytes]], None], **options: Any) -> bytes:
    """A file of skops whose schema, and files by their names, are changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(files["schema.json"])
    change(schema, files)
    files["schema.json"] = json.dumps(schema).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", **options) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def saved(model: Any) -> bytes:
    """The file of a model."""
    content: bytes = skops.io.dumps(model)
    return content
