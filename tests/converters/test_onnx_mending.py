"""What converters write and a server does not take is mended; the lists of classifiers: test_smallest_object."""

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper

from triton_converters.load.onnx_mending import LOCALE, mend


def lower_case(**attributes: str) -> onnx.ModelProto:
    """A graph without a name that writes text in lower case."""
    node = helper.make_node("StringNormalizer", ["text"], ["words"], case_change_action="LOWER", **attributes)
    tensors = [helper.make_tensor_value_info(name, TensorProto.STRING, [None]) for name in ("text", "words")]
    graph = helper.make_graph([node], "named", tensors[:1], tensors[1:])
    graph.name = ""
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_text_is_normalized_in_a_locale_that_every_image_has() -> None:
    model = lower_case()
    assert mend(model)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (words,) = session.run(None, {"text": numpy.array(["RÉSUMÉ", "Ärger"], dtype=object)})
    assert words.tolist() == ["résumé", "ärger"]
    assert not mend(model), "there is nothing left to mend"


def test_a_locale_that_the_file_names_stays() -> None:
    model = lower_case(locale="C")
    mend(model)
    assert [each.s.decode() for each in model.graph.node[0].attribute if each.name == "locale"] == ["C"]
    assert LOCALE != "C"
