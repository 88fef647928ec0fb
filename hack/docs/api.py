"""docs/api.md: every field of a TritonDeployment, from the CRD; the examples are those of api_examples.yaml."""

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
STATUS_COLUMNS = "| Field | Meaning |\n|---|---|\n"
COLUMNS_HEAD = """
## Columns

What `kubectl get td` prints of each object, and from where.

| Column | Field | Only with `-o wide` |
|---|---|---|
"""
_ESCAPED = "\\|"
SHARED = 4
"""An object that has so many fields of an earlier one, or just its fields, refers to it for them."""


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
    described: dict[str, Schema] = {}
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


def _section(path: str, schema: Schema, described: dict[str, Schema]) -> str:
    example = examples().get(path)
    if example is None:
        message = f"{path} has no example in hack/docs/api_examples.yaml"
        raise NoExampleError(f"{message}: add a document that begins with `# {path}`")
    required = "; required" if schema["required_here"] else ""
    section = f"{path}[]" if schema["type"] == "array" else path
    refers, fields = _told(_inner(schema), section, described)
    head = f"\n## {path}\n\n{schema['description']}{refers} (*{_type(schema)}{required}*)\n\n```yaml\n{example}```\n"
    rows = "".join(_rows(fields, section, "", described))
    columns = SPEC_COLUMNS if path.startswith("spec") else STATUS_COLUMNS
    return f"{head}\n{columns}{rows}" if rows else head


def _rows(schema: Schema, section: str, prefix: str, described: dict[str, Schema]) -> Iterator[str]:
    """Return a row for each field below a schema. ``described``: the fields of every object that has rows, by place."""
    for name, field in schema.get("properties", {}).items():
        place = f"{prefix}{name}"
        meaning, _, default = field["description"].partition("Default: ")
        default = "required" if name in schema.get("required", ()) else default.removesuffix(".")
        refers, fields = _told(_inner(field), f"{section}.{place}", described)
        # No user sets a field of the status: it has no default, and of its type only the values matter.
        if section.startswith("spec"):
            cells = [_type(field), default, f"{meaning.strip()}{refers}"]
        else:
            cells = [f"{meaning.strip()}{f' One of {_type(field)}.' if 'enum' in field else ''}{refers}"]
        yield f"| `{place}` | {' | '.join(cell.replace('|', _ESCAPED) for cell in cells)} |\n"
        yield from _rows(fields, section, f"{place}[]." if field.get("type") == "array" else f"{place}.", described)


def _told(schema: Schema, place: str, described: dict[str, Schema]) -> tuple[str, Schema]:
    """Return where fields of an object have their rows already, as a sentence, and the object with the other fields."""
    fields = schema.get("properties", {})
    alike = [
        (sum(known.get(name) == field for name, field in fields.items()), first) for first, known in described.items()
    ]
    count, first = max(alike, default=(0, ""), key=lambda each: each[0])
    if len(fields) > 1 and described.get(first) == fields:
        return f" The fields are those of `{first}`.", {}
    if len(fields) > 1:
        described[place] = fields
    if count < SHARED:
        return "", schema
    others = {name: field for name, field in fields.items() if described[first].get(name) != field}
    names = ", ".join(f"`{name}`" for name in fields if name not in others)
    return f" {names}: as in `{first}`.", {**schema, "properties": others}


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
