"""Names of get_model in another order than forward's parameters: framework and files take each tensor by its name."""

from collections import OrderedDict
from collections.abc import Callable

import numpy
import pytest
import torch
import torch.fx

from tests.converters.torch.cases import REFERENCE, REVISION, run_file
from triton_converters.claim_store.dump import Array, Arrays, read_batches
from triton_converters.claim_store.replay import read_result
from triton_converters.claim_store.revision import model_file
from triton_converters.contract import layout
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import ConvertResult, ReferenceResult, Signature
from triton_converters.load.torch_framework import parameters

pytestmark = pytest.mark.torch
Convert = Callable[..., ConvertResult]
Refer = Callable[..., ReferenceResult]
FORMATS = [("ts-trace", ""), ("ts-script", ""), ("onnx", "TorchScript"), ("onnx", "Dynamo")]
CASES = [
    (kind, *each)
    for kind in ("Swapped", "LeftOut", "KeywordOnly")
    for each in FORMATS
    # What torch.jit.script makes of a parameter that is passed by name alone cannot be called in a trace.
    if (kind, each[0]) != ("KeywordOnly", "ts-script")
]
ORDERS = {"Swapped": "mask,ids,types", "LeftOut": "ids,types", "KeywordOnly": "types,mask,ids"}


def signature() -> Signature:
    return read_result(layout.reference_directory(REFERENCE), "reference", REFERENCE, ReferenceResult).signature


def expected(inputs: Arrays) -> dict[str, Array]:
    """What the models compute, by the names of their parameters."""
    ids, types, mask = inputs["ids"], inputs["types"], inputs.get("mask", numpy.float32(1))
    return {"total": ids - 2 * types + 3 * mask * ids, "part": types - mask}


def assert_right(outputs: Arrays, inputs: Arrays, tolerance: float) -> None:
    for name, wanted in expected(inputs).items():
        numpy.testing.assert_allclose(outputs[name], wanted, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize(("kind", "format_name", "exporter"), CASES)
def test_every_format_takes_each_tensor_by_its_name(
    convert: Convert, kind: str, format_name: str, exporter: str, precision: str
) -> None:
    convert(kind, format_name, precision, exporter or "TorchScript", 18 if exporter == "Dynamo" else 17)
    tolerance = {"fp32": 1e-5, "fp16": 2e-2}[precision]
    assert ",".join(tensor.name for tensor in signature().inputs) == ORDERS[kind]
    assert [tensor.name for tensor in signature().outputs] == ["part", "total"]
    for batch in read_batches(layout.reference_directory(REFERENCE)):
        assert_right(batch.outputs, batch.inputs, 1e-6)
        assert_right(run_file(format_name, batch.inputs, signature()), batch.inputs, tolerance)
    config = (model_file(REVISION, "small", format_name).parents[1] / "config.pbtxt").read_text()
    places = [config.index(f'name: "{tensor.name}"') for tensor in (*signature().inputs, *signature().outputs)]
    assert places == sorted(places), "TorchScript's tensors are found by their order"


def test_a_compiled_module_has_the_parameters_of_what_was_compiled() -> None:
    linear = torch.nn.Bilinear(2, 3, 4)
    assert [each.name for each in parameters(torch.compile(linear))] == ["input1", "input2"]


@pytest.mark.parametrize("wrapped", ["script", "parallel"])
def test_the_framework_takes_them_by_name_in_a_wrapped_module_too(refer: Refer, wrapped: str) -> None:
    refer("Swapped", wrapped=wrapped)
    for batch in read_batches(layout.reference_directory(REFERENCE)):
        assert_right(batch.outputs, batch.inputs, 1e-5)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("format_name", ["ts-trace", "ts-script", "onnx"])
def test_a_scripted_module_is_converted_by_name_too(convert: Convert, format_name: str, precision: str) -> None:
    convert("Swapped", format_name, precision, wrapped="script")
    for batch in read_batches(layout.reference_directory(REFERENCE)):
        tolerance = {"fp32": 1e-5, "fp16": 2e-2}[precision]
        assert_right(run_file(format_name, batch.inputs, signature()), batch.inputs, tolerance)


@pytest.mark.parametrize(
    "inputs", ["ids,types,mask", "INPUT__0,INPUT__1,INPUT__2", "ids,types,attention"], ids=["own", "indices", "some"]
)
def test_names_in_forward_s_order_are_passed_by_position(refer: Refer, inputs: str) -> None:
    refer("Swapped", {"rename": inputs}, inputs=inputs)
    for batch in read_batches(layout.reference_directory(REFERENCE)):
        own = dict(zip(("ids", "types", "mask"), (batch.inputs[name] for name in inputs.split(",")), strict=True))
        assert_right(batch.outputs, own, 1e-6)


def test_names_that_contradict_the_order_are_refused(refer: Refer) -> None:
    with pytest.raises(StageError) as caught:
        refer("Swapped", inputs="types,ids,attention")
    assert caught.value.reason is Reason.ENTRYPOINT_INVALID
    orders = "get_model names types, ids, attention, but forward's parameters are ids, types, mask: types is not at"
    assert orders in caught.value.message


def test_outputs_that_contradict_the_order_are_refused(refer: Refer) -> None:
    with pytest.raises(StageError) as caught:
        refer("Swapped", outputs="part,sum")
    assert caught.value.reason is Reason.FRAMEWORK_FAILED
    assert (
        "get_model names part, sum, but the fields of what the model returned are total, part" in caught.value.message
    )


class Plain(torch.nn.Module):
    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return ids - mask


class Optional(torch.nn.Module):
    def forward(self, ids: torch.Tensor | None = None, mask: torch.Tensor | None = None) -> torch.Tensor | None:
        return mask if ids is None else ids


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (torch.fx.symbolic_trace(Plain()), ["ids", "mask"]),
        (torch.nn.DataParallel(Plain()), ["ids", "mask"]),
        (torch.compile(Plain(), backend="eager"), ["ids", "mask"]),
        (torch.jit.script(Plain()), ["ids", "mask"]),
        (torch.nn.Sequential(OrderedDict(module=Optional())), ["input"]),
    ],
    ids=["a graph of torch.fx", "in DataParallel", "compiled", "a script", "a child called module"],
)
def test_the_parameters_are_those_of_what_is_called(module: torch.nn.Module, names: list[str]) -> None:
    assert [each.name for each in parameters(module)] == names
