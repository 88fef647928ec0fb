"""The operator sets that an ONNX model says it uses."""

from collections.abc import Mapping
from typing import Any

from onnx import defs, helper

OWN_DOMAINS = frozenset({"", "ai.onnx"})
"""ONNX's own domain has two names."""


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
