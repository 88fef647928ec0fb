"""The types that a file of skops may hold. Each is of scikit-learn, NumPy or Python, and its state is data alone."""

from collections.abc import Mapping

ESTIMATORS: Mapping[str, str] = {
    "calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration",
    "compose._column_transformer": "ColumnTransformer make_column_selector",
    "decomposition._pca": "PCA",
    "decomposition._truncated_svd": "TruncatedSVD",
    "discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "dummy": "DummyClassifier DummyRegressor",
    "ensemble._bagging": "BaggingClassifier BaggingRegressor",
    "ensemble._forest": "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier RandomForestRegressor",
    "ensemble._gb": "GradientBoostingClassifier GradientBoostingRegressor",
    "ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "ensemble._hist_gradient_boosting.gradient_boosting": (
        "HistGradientBoostingClassifier HistGradientBoostingRegressor"
    ),
    "ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "ensemble._stacking": "StackingClassifier StackingRegressor",
    "ensemble._voting": "VotingClassifier VotingRegressor",
    "ensemble._weight_boosting": "AdaBoostRegressor",
    "feature_selection._from_model": "SelectFromModel",
    "feature_selection._variance_threshold": "VarianceThreshold",
    "impute._base": "MissingIndicator SimpleImputer",
    "linear_model._base": "LinearRegression",
    "linear_model._bayes": "ARDRegression BayesianRidge",
    "linear_model._coordinate_descent": "ElasticNet ElasticNetCV Lasso LassoCV",
    "linear_model._glm.glm": "GammaRegressor PoissonRegressor TweedieRegressor",
    "linear_model._huber": "HuberRegressor",
    "linear_model._logistic": "LogisticRegression LogisticRegressionCV",
    "linear_model._passive_aggressive": "PassiveAggressiveClassifier PassiveAggressiveRegressor",
    "linear_model._perceptron": "Perceptron",
    "linear_model._quantile": "QuantileRegressor",
    "linear_model._ridge": "Ridge RidgeCV RidgeClassifier RidgeClassifierCV",
    "linear_model._stochastic_gradient": "SGDClassifier SGDRegressor",
    "linear_model._theil_sen": "TheilSenRegressor",
    "multiclass": "OneVsRestClassifier",
    "multioutput": "MultiOutputRegressor",
    "naive_bayes": "BernoulliNB ComplementNB GaussianNB MultinomialNB",
    "neural_network._multilayer_perceptron": "MLPClassifier MLPRegressor",
    "neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "pipeline": "FeatureUnion Pipeline",
    "preprocessing._data": "MaxAbsScaler MinMaxScaler QuantileTransformer RobustScaler StandardScaler",
    "preprocessing._discretization": "KBinsDiscretizer",
    "preprocessing._encoders": "OneHotEncoder OrdinalEncoder",
    "preprocessing._function_transformer": "FunctionTransformer",
    "preprocessing._label": "LabelBinarizer LabelEncoder",
    "preprocessing._polynomial": "PolynomialFeatures",
    "preprocessing._target_encoder": "TargetEncoder",
    "svm._classes": "LinearSVC LinearSVR",
    "tree._classes": "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor",
    "_loss.link": "HalfLogitLink IdentityLink Interval LogLink LogitLink MultinomialLogit",
    "_loss.loss": (
        "AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss HalfPoissonLoss"
        " HalfSquaredError HalfTweedieLoss HalfTweedieLossIdentity HuberLoss PinballLoss"
    ),
}
"""Objects by their module in scikit-learn: what is trained, and the parts of it. Those whose compiled code trusts
arrays that nothing here checks (neighbours, kernels of support vectors, clusters) are left out."""
LOSSES: Mapping[str, str] = {
    "_loss._loss": (
        "CyAbsoluteError CyExponentialLoss CyHalfBinomialLoss CyHalfGammaLoss CyHalfMultinomialLoss CyHalfPoissonLoss"
        " CyHalfSquaredError CyHalfTweedieLoss CyHalfTweedieLossIdentity CyHuberLoss CyPinballLoss"
    ),
    "linear_model._sgd_fast": "EpsilonInsensitive Hinge ModifiedHuber SquaredEpsilonInsensitive SquaredHinge",
}
"""Compiled losses, which training alone uses."""
NUMBERS = frozenset(
    f"numpy.{name}"
    for name in (
        *("bool", "bool_", "float16", "float32", "float64", "str_"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
)


def _named(modules: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f"sklearn.{module}.{name}" for module, names in modules.items() for name in names.split())


TREE = "sklearn.tree._tree.Tree"
PREDICTOR = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
CHECK = "sklearn.utils.validation.check_array"
"""The one function: a HistGradientBoosting with categories checks its numbers with it."""
ALLOWED: Mapping[str, frozenset[str]] = {
    "DictNode": frozenset({"builtins.dict", "sklearn.utils._bunch.Bunch"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "SetNode": frozenset({"builtins.set"}),
    "JsonNode": frozenset({"builtins.str"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "TypeNode": NUMBERS | {f"builtins.{name}" for name in ("bool", "float", "int", "object", "str")} | {"numpy.number"},
    "DTypeNode": frozenset({"numpy.dtype"}),
    "NdArrayNode": NUMBERS | {"numpy.ndarray"},
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "ObjectNode": _named(ESTIMATORS),
    "LossNode": _named(LOSSES),
    "TreeNode": frozenset({TREE}),
    "PartialNode": frozenset({"functools.partial"}),
    "FunctionNode": frozenset({CHECK}),
}
"""The types that each kind of node of skops may have."""
ADVICE: Mapping[str, str] = {
    "sklearn.model_selection": "save the model that was found: skops.io.dump(search.best_estimator_, 'model.skops')",
    "xgboost": "save it alone as JSON: model.save_model('model.json')",
    "lightgbm": "save it alone as text: model.booster_.save_model('model.txt')",
    "sklearn.feature_selection._univariate_selection": (
        "name the columns that it chose in a ColumnTransformer, in place of SelectKBest and the like"
    ),
    "sklearn.preprocessing._polynomial.Spline": "use KBinsDiscretizer in place of splines",
    "sklearn.preprocessing._data.": "use StandardScaler or QuantileTransformer: skl2onnx converts this one wrong",
    "sklearn.impute._knn": "use SimpleImputer: skl2onnx converts KNNImputer wrong",
    "sklearn.feature_extraction": (
        "words are split by the server's own language; do it in a Python step (docs/tokenizer.md)"
    ),
}
"""What to do about other types, by how their names begin."""
OTHERWISE = (
    "use an estimator that docs/converters.md lists, or convert the model yourself with skl2onnx and give the ONNX file"
)
