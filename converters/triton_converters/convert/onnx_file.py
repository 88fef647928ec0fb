"""Format ``onnx`` from an ONNX file: only its operator set and its precision may change, and the optimiser may run."""

from pathlib import Path

from triton_converters.contract.formats import FORMATS
from triton_converters.convert import onnx_graph
from triton_converters.convert.task import Task
from triton_converters.graph.opsets import lower_ir_version
from triton_converters.load.onnx_mending import mend


def convert(task: Task, directory: Path) -> None:
    """Write model.onnx; raises what ``onnx_graph.convert_file`` and ``onnx_graph.finish`` raise."""
    path = directory / FORMATS["onnx"].file
    asked = task.request.onnx_opset
    model = onnx_graph.load(task.framework.source / task.framework.path)
    mend(model)
    onnx_graph.leave_out(model, task.signature)
    onnx_graph.redeclare(model, task.signature)
    lower_ir_version(model)
    onnx_graph.save(model, path)
    if asked and onnx_graph.opset_of(model) != asked:
        onnx_graph.convert_file(path, asked, f"{task.framework.path} has")
    onnx_graph.finish(task, directory, cast=task.half)
