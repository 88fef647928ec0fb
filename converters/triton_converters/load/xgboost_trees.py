"""Format ``xgboost``: a model in JSON or UBJSON, which XGBoost itself answers as the object that saved it does."""

from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.load import trees
from triton_converters.load.trees import Predict, TreeLibrary, TreesFramework
from triton_converters.trees import xgboost_model
from triton_converters.trees.forest import Forest


def load(source: Path, model: ModelCode, output_format: str) -> TreesFramework:
    """Open the file; ``output_format`` changes nothing. Raises what ``trees.load`` raises."""
    return trees.load(source, model.entrypoint.path, TreeLibrary(_read, rewritten, opened, _runtime))


def _read(content: bytes) -> Forest:
    import xgboost

    return xgboost_model.read(content, [int(each) for each in xgboost.__version__.split(".")])


def rewritten(content: bytes) -> bytes:
    """Return the model as XGBoost saves it. Raises what XGBoost raises."""
    import xgboost

    return bytes(xgboost.Booster(model_file=bytearray(content)).save_raw("ubj"))


def opened(content: bytes) -> Predict:
    """Return what answers rows by the model. Raises what XGBoost raises."""
    import xgboost

    booster = xgboost.Booster(model_file=bytearray(content))
    rounds = xgboost_model.best_round(booster.attributes())

    def predict(rows: Array) -> Array:
        table = xgboost.DMatrix(
            rows.astype(numpy.float32),
            feature_names=booster.feature_names,
            feature_types=booster.feature_types,
            enable_categorical=True,
        )
        answers: Array = booster.predict(table, iteration_range=(0, rounds))
        return answers

    return predict


def _runtime() -> str:
    import xgboost

    return f"xgboost {xgboost.__version__}"
