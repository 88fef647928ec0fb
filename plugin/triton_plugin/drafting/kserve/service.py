"""The parts of a KServe InferenceService. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from triton_operator.names import Body
from triton_plugin.errors import FolderError

API_VERSIONS = ("serving.kserve.io/v1beta1", "serving.kubeflow.org/v1beta1")
"""The latter is what the same API was called before KServe had its name."""
KIND = "InferenceService"
FORMATS = ("triton", "onnx", "tensorflow", "pytorch", "xgboost", "lightgbm")
"""The model formats of which the operator takes the files."""
SKLEARN = "sklearn"
OTHER_PREDICTORS = (SKLEARN, "huggingface", "pmml", "paddle")
"""The older names of models that the operator does not take."""


@dataclass(frozen=True)
class Service:
    """The parts of an InferenceService."""

    name: str
    body: Body
    predictor: Body
    kind: str
    """The field of the predictor that holds the model, such as `model` or `triton`."""
    model: Body
    form: str
    """Name of the model's format."""


def services(documents: Iterable[Any]) -> list[Body]:
    """Return the InferenceServices among objects, and among the items of lists, in their order."""
    return [
        each
        for document in map(_as_json, documents)
        if isinstance(document, dict)
        for each in (document["items"] if isinstance(document.get("items"), list) else [document])
        if isinstance(each, dict) and each.get("kind") == KIND
    ]


def read(body: Body) -> Service:
    """Return the parts of an InferenceService. Raises FolderError if it serves what the operator does not."""
    if body.get("apiVersion") not in API_VERSIONS:
        raise FolderError(f"it is of apiVersion {body.get('apiVersion')}; only {API_VERSIONS[0]} is read")
    metadata, predictor = map_of(body, "metadata"), map_of(map_of(body, "spec"), "predictor")
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    kind = next((each for each in ("model", *FORMATS, *OTHER_PREDICTORS) if each in predictor), "")
    if not kind:
        raise FolderError("it runs a container of its user; the operator runs only tritonserver. Keep it")
    model = map_of(predictor, kind)
    form = str(map_of(model, "modelFormat").get("name", "")) if kind == "model" else kind
    if form == SKLEARN:
        raise FolderError(
            "it has a model of scikit-learn, of which KServe reads pickles; the operator runs none. Save it with skops"
            " (skops.io.dump(model, 'model.skops')), and run `kubectl triton run model.skops`"
        )
    if form not in FORMATS:
        raise FolderError(
            f"it has a model of format {form or '(none)'}; {', '.join(FORMATS)} are taken. Keep it, or give the model"
            " in another format, such as ONNX"
        )
    return Service(name, body, predictor, kind, model, form)


def own_address(body: Body) -> str:
    """Return the name of the Kubernetes Service by which clients find it, as its status tells; empty: not known."""
    at: Any = body
    for field in ("status", "address", "url"):
        at = at.get(field) if isinstance(at, dict) else None
    return str(at or "").partition("://")[2].partition(".")[0]


def _as_json(value: Any) -> Any:
    """The value as the API server would get it: YAML has other keys than texts, and sets and bytes."""
    if isinstance(value, dict):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_json(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


def map_of(body: Mapping[str, Any], field: str) -> Body:
    """Return the object in a field; empty if it is missing. Raises FolderError if it is no object."""
    value = body.get(field)
    if value is not None and not isinstance(value, dict):
        raise FolderError(f"the {KIND}'s {field} is no object; correct the file")
    return value or {}
