"""Evaluates the CRD's CEL rules with cel-python."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import celpy
from celpy.adapter import json_to_cel
from celpy.celparser import CELParser

from triton_operator.api.network_policy import is_block
from triton_plugin.drafting.validation.structural import Fault, Schema


def rules(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield every rule of a schema with its message, outermost first."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield rule["rule"], rule["message"]
    for below in _below(schema):
        yield from rules(below)


def broken(value: Any, schema: Schema, path: str) -> Iterator[Fault]:
    """Yield the rules that a value breaks; the value must otherwise match the schema.

    A rule about a change (``oldSelf``) does not apply to a new object, as in the API server.
    """
    applied = [each for each in schema.get("x-kubernetes-validations", ()) if "oldSelf" not in each["rule"]]
    # Converted once for all its rules: the spec has dozens of them, and is large.
    given = json_to_cel(value) if applied else None
    for rule in applied:
        if not _holds(rule["rule"], given):
            yield Fault(path, rule["message"])
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from broken(each, schema["items"], f"{path}[{number}]")
    elif isinstance(value, Mapping):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, each in value.items():
            if name in properties:
                yield from broken(each, properties[name], f"{path}.{name}" if path else name)
            elif isinstance(others, Mapping):
                yield from broken(each, others, f"{path}.{name}")


def _below(schema: Schema) -> Iterator[Schema]:
    yield from schema.get("properties", {}).values()
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), Mapping):
            yield schema[keyword]


def _holds(rule: str, given: Any) -> bool:
    """Whether a rule holds for a value of CEL. Raises celpy.CELEvalError if the rule, not the object, is wrong."""
    return bool(_program(rule).evaluate({"self": given}))


@cache
def _program(rule: str) -> celpy.Runner:
    """Return the rule as Python, which takes a third of the interpreter's time, but knows no function of ours."""
    _make_parser()
    runner = celpy.InterpretedRunner if "isCIDR(" in rule else celpy.CompiledRunner
    environment = celpy.Environment(runner_class=runner)
    # What `has` answers in Python is no bool of CEL, which the operators want; what `==` answers is one.
    tree = environment.compile(re.sub(r"\bhas\([^()]*\)", r"(\g<0> == true)", rule))
    return environment.program(tree, functions={"isCIDR": _is_cidr})


@cache
def _make_parser() -> None:
    """Make the one parser of the process: its trees are of the kind that its first user asks for, ours fit for both."""
    CELParser.CEL_PARSER = None
    celpy.Environment(runner_class=celpy.CompiledRunner)


def _is_cidr(text: celpy.celtypes.StringType) -> celpy.celtypes.BoolType:
    return celpy.celtypes.BoolType(is_block(text))
