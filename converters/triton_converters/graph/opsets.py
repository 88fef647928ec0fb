"""The operator sets that an ONNX model says it uses."""

from collections.abc import Mapping
from typing import Any

from onnx import TensorProto, defs, helper

from triton_converters.graph.walk import graphs

OWN_DOMAINS = frozenset({"", "ai.onnx"})
"""ONNX's own domain has two names."""

READ_BY_ALL = 10
"""The newest version of ONNX's file format that ONNX Runtime 1.18 reads, which Triton's release 24.05 has."""
TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype"})
"""Attributes that hold an element type."""
_NEWER_TYPES = frozenset({TensorProto.FLOAT4E2M1, TensorProto.FLOAT8E8M0, TensorProto.INT2, TensorProto.UINT2})
"""Element types that later versions of the file format brought."""


def newest(domain: str, ir_version: int) -> int:
    """Return the newest operator set that was released with a version of ONNX's file format; 1 for other domains.

    Every runtime that reads the file has it. ``domain``: one of OWN_DOMAINS, ``ai.onnx.ml``, or another project's.
    """
    column = 2 if domain in OWN_DOMAINS else 3 if domain == "ai.onnx.ml" else 0
    if not column:
        return 1
    known = [int(row[column]) for row in helper.VERSION_TABLE if int(row[1]) <= ir_version]
    return max(known, default=1)


def add_missing(model: Any, used: frozenset[str]) -> int:
    """Import the newest operator sets of the domains that are used and not imported; return how many were missing.

    ONNX Runtime runs such a model, and onnx refuses it.
    """
    imported = {_one_name(entry.domain) for entry in model.opset_import}
    missing = sorted({_one_name(domain) for domain in used} - imported)
    for domain in missing:
        model.opset_import.append(helper.make_opsetid(domain, newest(domain, model.ir_version)))
    return len(missing)


def _one_name(domain: str) -> str:
    return "" if domain in OWN_DOMAINS else domain


def lower_ir_version(model: Any) -> None:
    """Declare READ_BY_ALL if a newer version of the file format is declared and nothing of the model needs it.

    What onnx writes by default is newer than its operator set needs, and a server of NVIDIA's refuses it for that.
    """
    needed = max((entry.version for entry in model.opset_import if entry.domain in OWN_DOMAINS), default=0)
    types = {tensor.data_type for graph in graphs(model.graph) for tensor in graph.initializer}
    attributes = (each for graph in graphs(model.graph) for node in graph.node for each in node.attribute)
    casts = {each.i for each in attributes if each.name in TYPE_ATTRIBUTES}
    if needed <= newest("", READ_BY_ALL) and not _NEWER_TYPES & (types | casts):
        model.ir_version = min(model.ir_version, READ_BY_ALL)


def by_domain(model: Any) -> dict[str, int]:
    """Return the version of each operator set that a model imports; ONNX's own domain is the empty name."""
    return {_one_name(entry.domain): entry.version for entry in model.opset_import}


def schema(node: Any, opsets: Mapping[str, int]) -> Any:
    """Return the declaration of a node's operator; None if onnx has none. ``opsets``: what ``by_domain`` returns."""
    domain = _one_name(node.domain)
    known = domain in opsets and defs.has(node.op_type, domain)
    return defs.get_schema(node.op_type, opsets[domain], domain) if known else None


def allows_half(parameters: Any, index: int, declared: Any) -> bool:
    """Whether an operator takes fp16 for that input or output; the last parameter may repeat.

    ``parameters``: the inputs or the outputs of ``declared``, which ``schema`` returned.
    """
    kind = parameters[min(index, len(parameters) - 1)].type_str
    allowed = next(
        (each.allowed_type_strs for each in declared.type_constraints if each.type_param_str == kind), [kind]
    )
    return any("float16" in each and "bfloat16" not in each for each in allowed)
