"""JSON schemas for kubeconform, from a real API server: `python -m hack.lint.kubernetes_schemas FOLDER`.

kubeconform would fetch them from the internet. The API server that devcluster builds publishes the same as OpenAPI,
for the version in use and for this project's CustomResourceDefinition. They are written once for each version and CRD.
"""

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hack.devcluster.apiserver import ApiServer
from hack.devcluster.binaries import program

ROOT = Path(__file__).parents[2]
CRD = ROOT / "crds" / "tritondeployments.triton-operator.dev.yaml"
GROUP_VERSIONS = (
    "api/v1",
    "apis/apps/v1",
    "apis/batch/v1",
    "apis/networking.k8s.io/v1",
    "apis/policy/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/storage.k8s.io/v1",
    "apis/admissionregistration.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/triton-operator.dev/v1alpha1",
)
REFERENCE = "#/components/schemas/"
PUBLISHED_WITHIN_SECONDS = 60
"""How long the API server may take to publish the schema of a new kind, on a busy machine."""

Schema = dict[str, Any]


def file_name(group: str, version: str, kind: str) -> str:
    """Return the file name of a kind: kubeconform's `{{.ResourceKind}}{{.KindSuffix}}.json`."""
    return "-".join(part for part in (kind, group.partition(".")[0], version) if part).lower() + ".json"


def strict(node: Any) -> Any:
    """Return the schema with unknown properties refused."""
    if isinstance(node, list):
        return [strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    # A property may itself be called "properties": JSONSchemaProps has one.
    names = node.get("properties")
    result = {
        key: {name: strict(below) for name, below in value.items()} if key == "properties" else strict(value)
        for key, value in node.items()
        if key not in ("description", "default")
    }
    open_ended = node.get("additionalProperties") or node.get("x-kubernetes-preserve-unknown-fields")
    if isinstance(names, dict) and names and not open_ended:
        result["additionalProperties"] = False
    return result


def kinds(document: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the file name and schema of every kind of an OpenAPI v3 document, with what the schema refers to."""
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            needed = _closure(name, schemas)
            body = {
                "allOf": [{"$ref": REFERENCE + name}],
                "components": {"schemas": {item: strict(schemas[item]) for item in sorted(needed)}},
            }
            yield file_name(kind["group"], kind["version"], kind["kind"]), body


def _closure(name: str, schemas: Schema) -> set[str]:
    found, open_names = set(), [name]
    while open_names:
        current = open_names.pop()
        if current not in found:
            found.add(current)
            open_names += _references(schemas[current])
    return found


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"].removeprefix(REFERENCE)] if isinstance(node.get("$ref"), str) else []
    return own + [name for value in node.values() for name in _references(value)]


def write(folder: Path) -> None:
    """Start an API server, install the CRD and write one file for each kind."""
    with tempfile.TemporaryDirectory(prefix="schemas-") as place, ApiServer(Path(place)) as server:
        kubectl = [str(program("kubectl")), f"--kubeconfig={server.kubeconfig}"]
        subprocess.run([*kubectl, "create", "-f", str(CRD)], check=True, stdout=subprocess.DEVNULL)
        folder.mkdir(parents=True, exist_ok=True)
        for group_version in GROUP_VERSIONS:
            for name, schema in kinds(_document(kubectl, group_version)):
                (folder / name).write_text(json.dumps(schema))


def _document(kubectl: list[str], group_version: str) -> Schema:
    """Return the OpenAPI document; that of a new CRD appears after some seconds."""
    deadline = time.monotonic() + PUBLISHED_WITHIN_SECONDS
    while True:
        argv = [*kubectl, "get", "--raw", f"/openapi/v3/{group_version}"]
        outcome = subprocess.run(argv, capture_output=True, text=True, check=False)
        if outcome.returncode == 0:
            document: Schema = json.loads(outcome.stdout)
            return document
        if time.monotonic() > deadline:
            raise SystemExit(f"/openapi/v3/{group_version} within {PUBLISHED_WITHIN_SECONDS} s: {outcome.stderr}")
        time.sleep(0.5)


def main() -> None:
    """Write the schemas, unless the folder has them."""
    parser = argparse.ArgumentParser(prog="python -m hack.lint.kubernetes_schemas", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    done = folder / ".done"
    if not done.exists():
        write(folder)
        done.touch()


if __name__ == "__main__":
    main()
