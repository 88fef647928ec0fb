"""The requests of conversions to ONNX and of ensembles, which tests of the convert stage change."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import onnx
from onnx import TensorProto, helper

from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import (
    ConvertRequest,
    ModelCode,
    ModelConfig,
    Step,
    TensorRtOptions,
)

CONFIG = ModelConfig(1, "KIND_CPU", True, (), 0, False, False, {})
"""One instance on the CPU, with the dynamic batcher and no warm-up."""


def conversion(model: ModelCode, **fields: Any) -> ConvertRequest:
    """A candidate in fp32 for the CPU, in the model's own format; keywords are the other fields, or replace them."""
    return ConvertRequest(
        **{
            "candidate": model.format,
            "format": model.format,
            "precision": "fp32",
            "accelerator": "none",
            "onnx_opset": 0,
            "onnx_exporter": "TorchScript",
            "onnx_optimized": False,
            "tensorrt": TensorRtOptions(2**30, 3),
            "gpu_product": "",
            "engine_cache": "",
            "config": CONFIG,
        }
        | fields,
        model=model,
    )


def ensemble_conversion(
    whole: ModelCode, name: str, reference: str, threads: Mapping[str, str] = MappingProxyType({}), **fields: Any
) -> ConvertRequest:
    """All models of an ensemble, each as it is; ``reference``: its key; ``threads``: by a model's name."""
    assert whole.ensemble is not None

    def member(step: Step) -> ConvertRequest:
        parameters = {"intra_op_thread_count": threads[step.model]} if step.model in threads else {}
        return conversion(
            step.code,
            conversion_key=step.model.ljust(16, "0"),
            reference=layout.member_key(reference, step.model),
            model_name=step.model,
            candidate="",
            config=ModelConfig(1, "KIND_CPU", False, (), 0, False, True, parameters),
            **fields,
        )

    members = tuple(map(member, whole.ensemble.models))
    one = replace(members[0], conversion_key="", reference=reference, model_name=name, model=whole, members=members)
    return replace(one, candidate="all", format="ensemble")


def save_doubling(path: Path) -> None:
    """An ONNX graph of x [batch, 3] to y, twice as large."""
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "g", sides[:1], sides[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
