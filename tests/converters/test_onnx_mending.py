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


def scaled_where_asked() -> onnx.ModelProto:
    """A graph of two scalars, as Silero VAD has: a rate, which nodes of the branches of an If read, and a mean."""
    branches = {}
    for name, kind in (("then_branch", "Mul"), ("else_branch", "Div")):
        nodes = [
            helper.make_node("Cast", ["rate"], [f"{name}_rate"], to=TensorProto.FLOAT),
            helper.make_node(kind, ["signal", f"{name}_rate"], [name]),
        ]
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        branches[name] = helper.make_graph(nodes, name, [], [output])
    nodes = [
        helper.make_node("Constant", [], ["limit"], value=helper.make_tensor("limit", TensorProto.INT64, [], [10])),
        helper.make_node("Less", ["rate", "limit"], ["is_low"]),
        helper.make_node("If", ["is_low"], ["scaled"], **branches),
        helper.make_node("ReduceMean", ["scaled"], ["mean"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "voice",
        [
            helper.make_tensor_value_info("signal", TensorProto.FLOAT, [None, 4]),
            helper.make_tensor_value_info("rate", TensorProto.INT64, []),
        ],
        [
            helper.make_tensor_value_info("scaled", TensorProto.FLOAT, [None, 4]),
            helper.make_tensor_value_info("mean", TensorProto.FLOAT, []),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_scalars_get_the_dimension_that_a_server_needs() -> None:
    signal = numpy.arange(8, dtype=numpy.float32).reshape(2, 4)
    for rate in (2, 20):
        before = onnxruntime.InferenceSession(scaled_where_asked().SerializeToString())
        expected, mean = before.run(["scaled", "mean"], {"signal": signal, "rate": numpy.array(rate)})
        widened = scaled_where_asked()
        assert mend(widened)
        onnx.checker.check_model(widened, full_check=True)
        session = onnxruntime.InferenceSession(widened.SerializeToString(), providers=["CPUExecutionProvider"])
        assert [(each.name, each.shape) for each in (*session.get_inputs(), *session.get_outputs())] == [
            ("signal", [None, 4]),
            ("rate", [1]),
            ("scaled", [None, 4]),
            ("mean", [1]),
        ]
        scaled, means = session.run(["scaled", "mean"], {"signal": signal, "rate": numpy.array([rate])})
        numpy.testing.assert_array_equal(scaled, expected)
        numpy.testing.assert_array_equal(means, [mean])
    assert not mend(widened), "there is nothing left to mend"


def test_an_output_without_a_shape_that_nodes_make_a_scalar_gets_it_too() -> None:
    model = scaled_where_asked()
    for each in model.graph.output:
        each.type.tensor_type.ClearField("shape")
    assert mend(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {"signal": numpy.ones((2, 4), numpy.float32), "rate": numpy.array([2])}
    assert [answer.shape for answer in session.run(["scaled", "mean"], given)] == [(2, 4), (1,)]
