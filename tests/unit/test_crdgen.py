"""The CRD that is generated from the API's types."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from triton_operator import crdgen
from triton_operator.api.scheduling import PodPart
from triton_operator.api.schema import ApiType
from triton_operator.api.spec import TritonDeploymentSpec
from triton_operator.api.status import ConditionType
from triton_operator.crdgen import NotStructuralError, crd, files, structural

ROOT = Path(__file__).parents[2]
RULES = "x-kubernetes-validations"
COLUMNS = crd()["spec"]["versions"][0]["additionalPrinterColumns"]
OPEN = "x-kubernetes-preserve-unknown-fields"
SCHEDULING = (".affinity", ".tolerations.items", ".topologySpreadConstraints.items")
"""Fields that Kubernetes describes. The operator checks them, and bounds their length as a whole."""
METADATA = {"properties": {"creationTimestamp": {"type": "string"}}}
"""What the API server itself says of an object, as far as a column shows it."""


def nodes(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema below a schema, with its path."""
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from nodes(below, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from nodes(schema[keyword], f"{path}.{keyword}")


def types(kind: Any) -> Iterator[type[ApiType]]:
    """The types of the API in an annotation, and those in their fields."""
    if isinstance(kind, type) and issubclass(kind, ApiType):
        yield kind
        for field in kind.model_fields.values():
            yield from types(field.annotation)
    for argument in get_args(kind):
        yield from types(argument)


def open_types() -> set[type[ApiType]]:
    """The types that Kubernetes explains."""
    return {kind for kind in types(TritonDeploymentSpec) if issubclass(kind, PodPart)}


@pytest.fixture(scope="module")
def root() -> dict[str, Any]:
    schema: dict[str, Any] = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def test_the_files_are_what_the_types_say() -> None:
    drifted = [path for path, text in files(ROOT).items() if path.read_text() != text]
    assert drifted == [], "run `make generate`"


def test_the_only_defaults_are_the_replicas_and_the_status_of_a_new_object(root: dict[str, Any]) -> None:
    """A default inside a list item makes every `kubectl apply` of the same file say "configured"."""
    defaults = {path: schema["default"] for path, schema in nodes(root) if "default" in schema}
    assert defaults == {
        ".spec.serving": {},
        ".spec.serving.replicas": 1,
        ".status": {"observedGeneration": -1},
    }


def test_scale_reads_and_writes_fields_that_exist(root: dict[str, Any]) -> None:
    scale = crd()["spec"]["versions"][0]["subresources"]["scale"]
    types = {path: schema.get("type") for path, schema in nodes(root)}
    assert {name: types[path] for name, path in scale.items()} == {
        "specReplicasPath": "integer",
        "statusReplicasPath": "integer",
        "labelSelectorPath": "string",
    }


def test_everything_in_the_spec_is_bounded_and_explained(root: dict[str, Any]) -> None:
    """The API server refuses rules over unbounded fields; `kubectl explain` shows the descriptions."""
    spec = root["properties"]["spec"]
    for path, schema in nodes(spec):
        if OPEN in schema:
            assert path.endswith(SCHEDULING)
            continue
        bounds = {"string": ("maxLength", "enum"), "array": ("maxItems",), "object": ("properties", "maxProperties")}
        if schema.get("type", "string") in bounds:
            assert any(bound in schema for bound in bounds[schema.get("type", "string")]), f"spec{path} has no bound"
        if not path.endswith((".items", ".additionalProperties")):
            assert schema.get("description"), f"spec{path} has no description"


def test_the_api_server_keeps_no_other_field_without_a_schema(root: dict[str, Any]) -> None:
    """Such a field takes 10,000 levels; test_hostile_nesting.py has them read. No rule may read them."""
    found = {path for path, schema in nodes(root) if OPEN in schema}
    pods = (".spec.pod", ".spec.conversion.pod", ".spec.serving.pod")
    assert found == {f"{pod}{each}" for pod in pods for each in SCHEDULING}


def test_every_key_of_a_map_is_bounded(root: dict[str, Any]) -> None:
    """A schema has no limit for keys, so a rule has to have one."""
    maps = {path: schema for path, schema in nodes(root["properties"]["spec"]) if "additionalProperties" in schema}
    bounded = {path for path, schema in maps.items() if "self.all(k, k.matches(" in str(schema.get(RULES))}
    assert ".serving.pod.nodeSelector" in bounded
    assert set(maps) - bounded == {".models.items.config.parameters"}, "rules list its keys"


@pytest.mark.parametrize("kind", sorted(set(types(TritonDeploymentSpec)) - open_types(), key=str))
def test_the_description_of_a_field_tells_its_default(kind: type[ApiType]) -> None:
    """Hardly a default is in the CRD, so the description is the only place where a user sees one."""
    for name, field in kind.model_fields.items():
        default = field.default[0] if isinstance(field.default, tuple) else field.default
        if field.is_required() or field.default_factory or default in (None, ""):
            continue
        told = str(default).lower() if isinstance(default, bool) else str(default)
        _, _, words = " ".join((field.description or "").split()).partition("Default: ")
        assert re.match(rf"{re.escape(told)}\b", words), f"{kind.__name__}.{name}: says {words!r}, not {told}"


def test_lists_of_named_things_are_merged_by_name(root: dict[str, Any]) -> None:
    keys = {
        path: schema.get("x-kubernetes-list-map-keys") for path, schema in nodes(root) if schema.get("type") == "array"
    }
    assert keys[".spec.models"] == ["name"]
    assert keys[".spec.models.items.candidates"] == ["name"]
    assert keys[".status.conditions"] == ["type"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "#/$defs/A", "description": "field"}, {"type": "string", "description": "field"}),
        ({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "default": None}, {"type": "string", "description": "a"}),
        ({"const": "pyt", "type": "string", "title": "Format"}, {"enum": ["pyt"], "type": "string"}),
        (
            {"type": "object", "properties": {"title": {"type": "string", "title": "Title"}}},
            {"type": "object", "properties": {"title": {"type": "string"}}},
        ),
        ({"type": "string", "description": "two\n    lines"}, {"type": "string", "description": "two lines"}),
    ],
)
def test_structural(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert structural(schema, {"A": {"type": "string", "description": "a"}}) == expected


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "spec is a union"),
        ({"type": "array", "prefixItems": []}, "spec: prefixItems is not allowed"),
        ({"type": "integer", "exclusiveMinimum": 0}, "spec: exclusiveMinimum is not allowed"),
        ({"type": "object", "properties": {"a": {}}}, "spec.a has no type"),
        ({"type": "object", "additionalProperties": True}, "spec: additionalProperties is not allowed"),
    ],
)
def test_what_no_structural_schema_can_say_is_refused(schema: dict[str, Any], message: str) -> None:
    with pytest.raises(NotStructuralError, match=message):
        structural(schema, {}, "spec")


def test_check_writes_nothing_and_fails_on_drift(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(crdgen, "__file__", str(tmp_path / "operator" / "triton_operator" / "crdgen.py"))
    assert crdgen.main(["--check"]) == 1
    assert list(tmp_path.iterdir()) == []
    assert "run `make generate`" in capsys.readouterr().out
    assert crdgen.main([]) == 0
    assert crdgen.main(["--check"]) == 0
    (tmp_path / "crds" / f"{crdgen.CRD_NAME}.yaml").write_text("edited")
    assert crdgen.main(["--check"]) == 1


FILTER = re.compile(r"\[\?\(@\.type==\"(\w+)\"\)\]")
TYPES = {"string": {"string"}, "integer": {"integer"}, "date": {"string"}}
"""What a column of a type may show."""


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column["name"])
def test_a_column_leads_to_a_field_of_its_type(column: dict[str, Any], root: dict[str, Any]) -> None:
    """The API server takes any path, and shows nothing where it leads nowhere."""
    path = column["jsonPath"]
    conditions = FILTER.findall(path)
    assert set(conditions) <= set(get_args(ConditionType))
    schema: dict[str, Any] = {"properties": {**root["properties"], "metadata": METADATA}}
    for name in FILTER.sub(".items", path).removeprefix(".").split("."):
        schema = schema["items"] if name == "items" else schema["properties"][name]
    assert schema["type"] in TYPES[column["type"]]


def test_no_two_columns_are_called_the_same() -> None:
    names = [column["name"].upper() for column in COLUMNS]
    assert len(names) == len(set(names))
