"""Format ``onnx`` from a model of scikit-learn: trees by the operator's own writer, all other steps by skl2onnx."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from triton_converters.contract.failure import StageError
from triton_converters.contract.formats import FORMATS
from triton_converters.contract.reasons import Reason
from triton_converters.convert import onnx_graph, sklearn_steps
from triton_converters.convert.task import Task
from triton_converters.convert.trees_onnx import ML_OPSET, OPSET
from triton_converters.graph.opsets import READ_BY_ALL
from triton_converters.load import sklearn_rows, trees
from triton_converters.load.sklearn_columns import steps
from triton_converters.load.sklearn_model import SklearnModel, opened
from triton_converters.load.sklearn_pipeline import SklearnFramework
from triton_converters.load.trees import INPUT, OUTPUT

ERROR = "error"
"""The file in which the child says why skl2onnx converted nothing."""
WORDS = 500
"""Characters of that which are told."""


def convert(task: Task, directory: Path) -> None:
    """Write model.onnx.

    Raises StageError: ConversionUnsupported (fp16: values would move; or skl2onnx cannot, or does not end), and what
    ``onnx_graph.convert_file`` and ``onnx_graph.finish`` raise.
    """
    model = task.framework
    assert isinstance(model, SklearnFramework)
    if task.half:
        message = f"{model.path} holds a table's model, whose thresholds fp16 would move: use precision fp32"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, message)
    path, told = directory / FORMATS["onnx"].file, directory / ERROR
    words = trees.fault(_write, model.source / model.path, path, told)
    if told.exists():
        words = f"does not convert it: {told.read_text(encoding='utf-8')}"
        told.unlink()
    if words:
        message = f"{model.path}: skl2onnx {words}; use other estimators (docs/converters.md), or convert it yourself"
        raise StageError(Reason.CONVERSION_UNSUPPORTED, message)
    if task.request.onnx_opset != OPSET:
        onnx_graph.convert_file(path, task.request.onnx_opset, "models of scikit-learn are written in")
    onnx_graph.finish(task, directory, cast=False)


def _write(source: Path, path: Path, told: Path) -> None:
    """Write the graph of a file, or else why not. It runs in a process of its own."""
    try:
        onnx_graph.save(graph(opened(source)), path)
    except Exception as error:
        told.write_text(f"{type(error).__name__}: {trees.line(error)}"[:WORDS], encoding="utf-8")


def graph(model: SklearnModel) -> ModelProto:
    """Return the graph: its inputs are those of SklearnFramework. Raises what skl2onnx raises."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType
    from skl2onnx.helpers.onnx_helper import select_model_inputs_outputs

    sklearn_steps.use()
    numbers = FloatTensorType if model.type == "float32" else DoubleTensorType
    names, types = [INPUT], [numbers([None, len(model.columns)])]
    if model.is_by_column:
        names = [each.name if each.is_used else "" for each in model.columns]
        types = [(StringTensorType if each.is_text else numbers)([None, 1]) for each in model.columns]
    width = model.answers(sklearn_rows.base(model)).shape[1]
    estimator = _scoring(model.estimator) if model.method == "decision_function" else model.estimator
    is_classifier = hasattr(steps(estimator)[1], "classes_")
    made = to_onnx(
        estimator,
        initial_types=[(f"column{number}", each) for number, each in enumerate(types)],
        options={id(estimator): {"zipmap": False}} if is_classifier else None,
        target_opset={"": OPSET, "ai.onnx.ml": ML_OPSET},
    )
    answer = made.graph.output[int(is_classifier)].name
    return _named(select_model_inputs_outputs(made, [answer]), names, width)


def _scoring(estimator: Any) -> Any:
    """Return a model that answers the scores of a linear classifier: skl2onnx has none of one class in double."""
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline

    before, last = steps(estimator)
    if not hasattr(last, "coef_"):
        raise NotImplementedError(f"the scores of a {type(last).__name__}")
    scores = LinearRegression()
    scores.coef_, scores.intercept_, scores.n_features_in_ = last.coef_, last.intercept_, last.n_features_in_
    return make_pipeline(*before, scores)


def _named(made: ModelProto, names: Sequence[str], width: int) -> ModelProto:
    """Return a graph with the names of a reference: inputs in the order of ``names``, and one output, [rows, width].

    A column without a name is no input.
    """
    # No name inside is that of a column: it is longer, and skl2onnx gives none with a space.
    inside = "_" * (1 + max(map(len, (OUTPUT, *names))))
    whole = onnx.compose.add_prefix(made, inside)
    graph = whole.graph
    used = {name for node in graph.node for name in node.input}
    kept = [each for each in graph.initializer if each.name in used]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    for node in graph.node:
        node.name = ""
    for value in list(graph.input):
        name = names[int(value.name.removeprefix(f"{inside}column"))]
        if not name:
            graph.input.remove(value)
            continue
        graph.node.insert(0, helper.make_node("Identity", [name], [value.name]))
        value.name = name
        value.type.tensor_type.shape.dim[0].dim_param = "rows"
    (answer,) = graph.output
    graph.initializer.append(numpy_helper.from_array(numpy.array([-1, width]), f"{inside} shape"))
    graph.node.append(helper.make_node("Cast", [answer.name], [f"{inside} number"], to=TensorProto.FLOAT))
    graph.node.append(helper.make_node("Reshape", [f"{inside} number", f"{inside} shape"], [OUTPUT]))
    answer.CopyFrom(helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["rows", width]))
    whole.ir_version, whole.producer_name = READ_BY_ALL, "triton-operator"
    return whole
