"""Format ``lightgbm``: a model in text, which LightGBM itself answers."""

from pathlib import Path

import numpy

from triton_converters.claim_store.dump import Array
from triton_converters.contract.conversion_requests import ModelCode
from triton_converters.load import trees
from triton_converters.load.trees import Predict, TreeLibrary, TreesFramework
from triton_converters.trees import lightgbm_model


def load(source: Path, model: ModelCode, output_format: str) -> TreesFramework:
    """Open the file; ``output_format`` changes nothing. Raises what ``trees.load`` raises."""
    return trees.load(source, model.entrypoint.path, TreeLibrary(lightgbm_model.read, rewritten, opened, _runtime))


def rewritten(content: bytes) -> bytes:
    """Return the model as LightGBM saves it. Raises what LightGBM raises."""
    import lightgbm

    text: str = lightgbm.Booster(model_str=content.decode()).model_to_string(num_iteration=-1)
    return text.encode()


def opened(content: bytes) -> Predict:
    """Return what answers rows by the model. Raises what LightGBM raises."""
    import lightgbm

    booster = lightgbm.Booster(model_str=content.decode())

    def predict(rows: Array) -> Array:
        return numpy.asarray(booster.predict(rows.astype(numpy.float64)))

    return predict


def _runtime() -> str:
    import lightgbm

    return f"lightgbm {lightgbm.__version__}"
