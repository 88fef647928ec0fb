"""docs/api.md: every field of a TritonDeployment, from the CRD; the examples are those of api_examples.yaml."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from triton_operator.crdgen import crd

Schema = Mapping[str, Any]

PAGE = Path(__file__).parents[2] / "docs/api.md"
EXAMPLES = Path(__file__).with_name("api_examples.yaml")
HEAD = """\
# API

Every field of a `TritonDeployment` (`triton-operator.dev/v1alpha1`). In a cluster, `kubectl explain td.spec.models` and
so on shows the same texts. This page is generated: `make generate`.

A field that you leave out stays out of the object, and the operator applies its default. Only `serving.replicas` is
written into the object, because [autoscalers](scaling.md) read and write it there.
"""
SPEC_COLUMNS = "| Field | Type | Default | Meaning |\n|---|---|---|---|\n"
STATUS_COLUMNS = "| Field | Type | Meaning |\n|---|---|---|\n"
COLUMNS_HEAD = """
## Columns

What `kubectl get td` prints of each object, and from where.

| Column | Field | Only with `-o wide` |
|---|---|---|
"""
_ESCAPED = "\\|"
LARGE = 2
"""An object with more fields than this has one table; other places refer to it."""


class NoExampleError(Exception):
    """A field of the spec or the status has a section of the page, and no example in api_examples.yaml."""


def pages() -> dict[Path, str]:
    """Return the page by its path.

    Raises NoExampleError if a field has no example.
    """
    parts = [(part, sections(part)) for part in ("spec", "status")]
    index = "\n".join(
        f"- `{part}`: {', '.join(f'[{name}](#{part}{name.lower()})' for name in found)}" for part, found in parts
    )
    described: dict[str, str] = {}
    text = "".join(_section(f"{part}.{name}", found[name], described) for part, found in parts for name in found)
    return {PAGE: f"{HEAD}\n{index}\n{text}{_columns()}"}


def _columns() -> str:
    """Return the section about what `kubectl get` prints."""
    columns = crd()["spec"]["versions"][0]["additionalPrinterColumns"]
    rows = "".join(
        f"| `{each['name'].upper()}` | `{each['jsonPath'].removeprefix('.')}`"
        f" | {'yes' if each.get('priority') else ''} |\n"
        for each in columns
    )
    return f"{COLUMNS_HEAD}{rows}"


def sections(part: str) -> dict[str, Schema]:
    """Return the schemas of the fields of the spec or the status, which have a section each."""
    root = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]
    return {
        name: {**field, "required_here": name in root.get("required", ())} for name, field in root["properties"].items()
    }


def examples() -> dict[str, str]:
    """Return the example of each section, by the section's name."""
    documents = EXAMPLES.read_text(encoding="utf-8").split("---\n")[1:]
    return {head.removeprefix("# "): text for head, _, text in (each.partition("\n") for each in documents)}


def _section(path: str, schema: Schema, described: dict[str, str]) -> str:
    example = examples().get(path)
    if example is None:
        message = f"{path} has no example in hack/docs/api_examples.yaml"
        raise NoExampleError(f"{message}: add a document that begins with `# {path}`")
    required = "; required" if schema["required_here"] else ""
    section = f"{path}[]" if schema["type"] == "array" else path
    first = _described_at(_inner(schema), section, described)
    meaning = f"{schema['description']} The fields are those of `{first}`." if first else schema["description"]
    head = f"\n## {path}\n\n{meaning} (*{_type(schema)}{required}*)\n\n```yaml\n{example}```\n"
    rows = "" if first else "".join(_rows(_inner(schema), section, "", described))
    columns = SPEC_COLUMNS if path.startswith("spec") else STATUS_COLUMNS
    return f"{head}\n{columns}{rows}" if rows else head


def _rows(schema: Schema, section: str, prefix: str, described: dict[str, str]) -> Iterator[str]:
    """Return a row for each field below a schema. ``described``: the place of every large object that has rows."""
    for name, field in schema.get("properties", {}).items():
        place, below = f"{prefix}{name}", _inner(field)
        meaning, _, default = field["description"].partition("Default: ")
        default = "required" if name in schema.get("required", ()) else default.removesuffix(".")
        first = _described_at(below, f"{section}.{place}", described)
        if first:
            meaning = f"{meaning.strip()} The fields are those of `{first}`."
        # No user sets a field of the status: none has a default.
        defaults = (default,) if section.startswith("spec") else ()
        cells = (f"`{place}`", _type(field), *defaults, meaning.strip())
        yield f"| {' | '.join(cell.replace('|', _ESCAPED) for cell in cells)} |\n"
        if not first:
            yield from _rows(below, section, f"{place}[]." if field.get("type") == "array" else f"{place}.", described)


def _described_at(schema: Schema, place: str, described: dict[str, str]) -> str:
    """Return where a large object has its rows already; empty if it has none yet."""
    fields = schema.get("properties", {})
    first = described.setdefault(json.dumps(fields), place) if len(fields) > LARGE else place
    return "" if first == place else first


def _inner(schema: Schema) -> Schema:
    """Return the schema of a list's items, or the schema itself."""
    found: Schema = schema.get("items", schema)
    return found


def _type(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" if value else "empty" for value in schema["enum"])
    if "x-kubernetes-int-or-string" in schema:
        return "quantity"
    if schema["type"] == "array":
        return f"list of {_plural(schema['items'])}{_bounds(schema.get('minItems'), schema.get('maxItems'))}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map of {_plural(schema['additionalProperties'])}"
    return f"{schema['type']}{_bounds(schema.get('minimum'), schema.get('maximum'))}"


def _plural(schema: Schema) -> str:
    if "x-kubernetes-int-or-string" in schema:
        return "quantities"
    return _type(schema) if "enum" in schema else f"{schema['type']}s"


def _bounds(least: int | None, most: int | None) -> str:
    if least is None:
        return "" if most is None else f", at most {most}"
    if least == most:
        return f", exactly {most}"
    return f", at least {least}" if most is None else f", {least} to {most}"
