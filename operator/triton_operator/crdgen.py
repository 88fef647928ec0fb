"""Generate the CustomResourceDefinition from the API's types: `python -m triton_operator.crdgen [--check]`.

It writes `crds/<name>.yaml` and the chart's template of it. With --check it writes nothing and exits with 1 if a file
would change.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from triton_operator.api.serving import Serving
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import TritonDeploymentStatus
from triton_operator.kube.kinds import TRITON_DEPLOYMENT
from triton_operator.names import GROUP, KIND

CRD_NAME = f"{TRITON_DEPLOYMENT.plural}.{GROUP}"
NAME_PATTERN = "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$"

Schema = dict[str, Any]

DROPPED = {"title", "default", "$defs"}
"""Keywords of JSON Schema that are left out of the structural schema. Of the defaults, only that of the replicas is
written into objects."""
KEPT = {
    "type", "format", "description", "enum", "pattern", "required",
    "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "maxProperties",
}  # fmt: skip
"""Keywords that mean the same in a structural schema."""


class NotStructuralError(ValueError):
    """A type of the API that no structural schema can express."""


def structural(schema: Schema, definitions: Schema, path: str = "") -> Schema:
    """Return a Kubernetes structural schema made from pydantic's JSON schema.

    References are inlined, `T | None` becomes an optional T, titles and defaults are dropped, descriptions stay.

    Raises NotStructuralError with the path of any keyword that it cannot translate.
    """
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return structural(target | _without(schema, "$ref"), definitions, path)
    if "anyOf" in schema:
        options = [option for option in schema["anyOf"] if option != {"type": "null"}]
        if len(options) != 1:
            raise NotStructuralError(f"{path} is a union; give the field one type")
        return structural(options[0] | _without(schema, "anyOf"), definitions, path)
    result: Schema = {}
    for keyword in (each for each in schema if each not in DROPPED):
        result |= _translated(keyword, schema[keyword], definitions, path)
    if "type" not in result and not result.get("x-kubernetes-int-or-string"):
        raise NotStructuralError(f"{path} has no type")
    return result


def _translated(keyword: str, value: Any, definitions: Schema, path: str) -> Schema:
    """Return a keyword as a structural schema has it."""
    if keyword in KEPT or keyword.startswith("x-kubernetes-"):
        return {keyword: _folded(value) if keyword == "description" else value}
    if keyword == "const":
        return {"enum": [value]}
    if keyword == "properties":
        return {keyword: {name: structural(field, definitions, f"{path}.{name}") for name, field in value.items()}}
    if keyword == "items":
        return {keyword: structural(value, definitions, f"{path}[]")}
    if keyword == "additionalProperties" and isinstance(value, dict):
        return {keyword: structural(value, definitions, f"{path}.*")}
    raise NotStructuralError(f"{path}: {keyword} is not allowed in a structural schema")


def _without(schema: Schema, keyword: str) -> Schema:
    return {name: value for name, value in schema.items() if name != keyword}


def crd() -> dict[str, Any]:
    """The CustomResourceDefinition as a plain dict."""
    spec = TritonDeploymentSpec.model_json_schema(by_alias=True)
    status = TritonDeploymentStatus.model_json_schema(by_alias=True)
    spec_schema = structural(spec, spec.get("$defs", {}), "spec")
    # /scale of an object without replicas is an error 500. No list holds the field, so `kubectl apply` of an unchanged
    # file still says `unchanged`.
    spec_schema["properties"]["serving"]["default"] = {}
    spec_schema["properties"]["serving"]["properties"]["replicas"]["default"] = Serving().replicas
    # A client that waits for the status (kstatus) must not take a new object for a finished one.
    status_schema = structural(status, status.get("$defs", {}), "status")
    status_schema["default"] = {"observedGeneration": -1}
    root: Schema = {
        "description": "A model to convert, verify, measure and serve with NVIDIA Triton Inference Server.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec_schema,
            "status": status_schema,
        },
        # Services have the object's name; Jobs and their pods have its name and a suffix.
        "x-kubernetes-validations": [
            {
                "rule": f"self.metadata.name.matches('{NAME_PATTERN}')",
                "message": "metadata.name must have at most 40 characters (a-z, 0-9 and -), begin with a letter"
                " and not end with -: choose another name",
            }
        ],
    }
    version = {
        "name": TRITON_DEPLOYMENT.version,
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.serving.replicas",
                "statusReplicasPath": ".status.serving.replicas",
                "labelSelectorPath": ".status.serving.selector",
            },
        },
        "additionalPrinterColumns": _columns(),
        "schema": {"openAPIV3Schema": root},
    }
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": TRITON_DEPLOYMENT.plural,
        "singular": KIND.lower(),
        "shortNames": ["td"],
        "categories": ["triton"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD_NAME},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def _columns() -> list[dict[str, Any]]:
    """The columns of `kubectl get td`; those of priority 1 need -o wide."""
    ready, newest = (f'.status.conditions[?(@.type=="{each}")]' for each in ("Ready", "UpToDate"))
    narrow = [
        ("Ready", "string", f"{ready}.status"),
        ("UpToDate", "string", f"{newest}.status"),
        # While Ready is False, both have the same reason.
        ("Reason", "string", f"{newest}.reason"),
        # Also while Ready is False: it and the figures after it are of what answers requests now.
        ("Serving", "string", ".status.serving.candidate"),
        ("Precision", "string", ".status.serving.precision"),
        ("Inf/s", "string", ".status.serving.throughput"),
        ("P99", "string", ".status.serving.p99Latency"),
        ("Accuracy", "string", ".status.serving.accuracy"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]
    wide = [
        ("Format", "string", ".status.serving.format"),
        ("Revision", "string", ".status.serving.revision"),
        ("Target", "string", ".status.target.revision"),
        ("Endpoint", "string", ".status.endpoint.grpc"),
        ("Message", "string", f"{newest}.message"),
    ]
    columns: list[dict[str, Any]] = [{"name": name, "type": type, "jsonPath": path} for name, type, path in narrow]
    return columns + [{"name": name, "type": type, "jsonPath": path, "priority": 1} for name, type, path in wide]


def _folded(text: str) -> str:
    """Return a docstring on one line: kubectl explain wraps by itself."""
    return " ".join(text.split())


def files(root: Path) -> dict[Path, str]:
    """Return the texts of the generated files by path; `root` is the directory of the repository.

    Raises NotStructuralError if a type of the API has no structural schema, or if the CRD cannot become a template of
    Helm's.
    """
    body = yaml.safe_dump(crd(), sort_keys=False, width=120, allow_unicode=True)
    header = "# Generated by `make generate` from operator/triton_operator/api.\n"
    metadata = f"metadata:\n  name: {CRD_NAME}\n"
    if body.count(metadata) != 1 or "{{" in body:
        raise NotStructuralError("the CRD cannot be put into a Helm template as text: metadata is not alone, or {{")
    keep = '  annotations:\n    helm.sh/resource-policy: "keep"\n'
    guarded = body.replace(metadata, metadata + "  {{- if .Values.crds.keep }}\n" + keep + "  {{- end }}\n")
    return {
        root / "crds" / f"{CRD_NAME}.yaml": header + body,
        root / "charts" / "triton-operator" / "templates" / "crd.yaml": (
            "{{- if .Values.crds.install }}\n" + header + guarded + "{{- end }}\n"
        ),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files, or compare them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m triton_operator.crdgen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file would change")
    check = parser.parse_args(argv).check
    drifted = []
    for path, text in files(Path(__file__).parents[2]).items():
        if not path.exists() or path.read_text() != text:
            drifted.append(path)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    for path in drifted:
        print(f"{path}: {'differs from the types of the API; run `make generate`' if check else 'written'}")
    return 1 if check and drifted else 0


if __name__ == "__main__":
    sys.exit(main())
