"""Runs all checks on the TritonDeployments of a file."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from triton_operator.api.triton_deployment import InvalidSpecError, parse
from triton_operator.crdgen import crd
from triton_operator.names import API_VERSION, KIND
from triton_plugin.drafting.validation.cel import broken
from triton_plugin.drafting.validation.structural import Fault, Schema, faults, not_unicode, pruned
from triton_plugin.reading import bounded_yaml


class Loader(yaml.SafeLoader):
    """Reads YAML as kubectl does: a date is text, and 1e-2 is a number."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_TEXT = {"type": "string"}
_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
METADATA: Schema = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": {**_TEXT, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
        "labels": {
            "type": "object",
            "additionalProperties": {
                **_TEXT,
                "maxLength": 63,
                "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
            },
        },
        "annotations": {"type": "object", "additionalProperties": _TEXT},
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp", "resourceVersion", "selfLink", "uid"), _TEXT),
        **{name: {"type": "integer"} for name in ("deletionGracePeriodSeconds", "generation")},
        "finalizers": {"type": "array", "items": _TEXT},
        **{name: {"type": "array", "items": _ANY} for name in ("managedFields", "ownerReferences")},
    },
}
"""What Kubernetes takes as metadata; of what no person writes, the types alone."""
_EXPONENT = re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$")
Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))


def deployments(text: str) -> Iterator[dict[str, Any]]:
    """Yield the TritonDeployments among a file's documents; others are ignored. Raises yaml.YAMLError."""
    for document in bounded_yaml.documents(text, Loader):
        items = document.get("items") if isinstance(document, dict) else ()
        for each in items if isinstance(items, list) else [document]:
            if isinstance(each, dict) and each.get("kind") == KIND:
                yield each


def check(body: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of an object: what the API server refuses, then what the operator refuses."""
    # A new object's status is the operator's to write: the API server drops it.
    given = pruned({name: value for name, value in body.items() if name != "status"})
    if found := list(not_unicode(given, "")):
        return found
    if given.get("apiVersion") != API_VERSION:
        return [Fault("apiVersion", f"must be {API_VERSION}")]
    found = list(faults(given, schema(), ""))
    # Like the API server, evaluate no rule on an object of the wrong shape.
    return found or list(broken(given, schema(), "")) or list(_combinations(given))


@cache
def schema() -> Schema:
    """Return the CRD's schema of the served version."""
    version: Mapping[str, Any] = crd()["spec"]["versions"][0]
    found: Schema = version["schema"]["openAPIV3Schema"]
    properties = {**found["properties"], "metadata": METADATA}
    return {**found, "required": [*found["required"], "metadata"], "properties": properties}


def _combinations(body: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield what the operator would refuse as InvalidSpec."""
    identity = {"namespace": "default", "uid": "", "generation": 1}
    try:
        parse({**body, "metadata": identity | body["metadata"]})
    except InvalidSpecError as error:
        for place, words in error.faults.items():
            steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
            yield Fault(f"spec{''.join(steps)}", words)
        if not error.faults:
            yield Fault("spec", str(error))
