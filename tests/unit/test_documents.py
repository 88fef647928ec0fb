"""Each row of what NVIDIA's READMEs have people do: its field, its test, its manifests and its reason exist."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from examples.example import FOLDER, render
from hack.docs.documents import KINDS, Row, read
from tests.e2e.test_examples import EXAMPLES
from triton_operator.crdgen import crd
from triton_plugin.command_line import COMMANDS
from triton_plugin.telling import columns

ROOT = Path(__file__).parents[2]
DATA = read()
SCHEMA = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
FLAGS = {
    "nnunet-3d": {7: 14, 8: 13, 9: 12, 10: 8, 11: 7},
    "resnet50-pyt": {7: 16, 8: 13, 9: 11, 10: 6, 11: 5},
    "resnet50-tf": {7: 13, 8: 12, 9: 13, 10: 12, 11: 6, 12: 7},
    "fastpitch": {7: 15, 8: 15, 9: 11, 10: 5, 11: 7, 12: 6},
    "dlrm-hps": {2: 7, 3: 12, 4: 11, 5: 7, 6: 8, 7: 5},
}
"""How many flags with two dashes the commands of each step have in the READMEs, where there are any."""
STEPS = {"nnunet-3d": 11, "resnet50-pyt": 11, "resnet50-tf": 12, "fastpitch": 12, "dlrm-hps": 7}
"""How many steps each README has."""
KUBECTL = {"delete"}
"""Commands of kubectl itself."""


def rows() -> list[tuple[str, Row]]:
    """Every row of every document, with the document's name."""
    return [(name, row) for name in DATA.documents for row in DATA.rows(name)]


def has(schema: Mapping[str, Any], path: list[str]) -> bool:
    """Whether a schema has a field; a list is the field itself, or with [] its items."""
    if not path:
        return True
    name = path[0].removesuffix("[]")
    field = schema.get("properties", {}).get(name)
    if field is None or (path[0].endswith("[]") and "items" not in field):
        return False
    return has(field["items"] if path[0].endswith("[]") else field, path[1:])


def exists(field: str) -> bool:
    """Whether the CRD has the field, or kubectl and its plugin the command."""
    program, *words = field.split()
    if program == "kubectl":
        return words[1] in COMMANDS if words[0] == "triton" else words[0] in KUBECTL
    path = field.split(".")
    return has(SCHEMA, path if path[0] == "status" else ["spec", *path])


def test_every_field_is_in_the_crd_and_every_command_is_one() -> None:
    assert {row.field for _, row in rows() if row.field and not exists(row.field)} == set()


@pytest.mark.parametrize(
    ("field", "there"),
    [
        ("models[].onnx.opset", True),
        ("models.onnx.opset", False),
        ("gpu[].product", False),
        ("models[].onnx.opsets", False),
        ("status.endpoint.grpc", True),
        ("kubectl triton report NAME", True),
        ("kubectl triton reports NAME", False),
        ("kubectl remove", False),
    ],
)
def test_a_field_or_a_command_that_is_not_there_is_noticed(field: str, there: bool) -> None:
    assert exists(field) is there


@cache
def functions(path: Path) -> set[str]:
    return {each.name for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, ast.FunctionDef)}


@pytest.mark.parametrize("proof", DATA.proofs.values())
def test_every_test_and_every_example_is_there(proof: str) -> None:
    file, _, test = proof.partition("::")
    if test:
        assert test in functions(ROOT / file)
    else:
        assert file in EXAMPLES


def test_every_proof_is_of_a_row_and_every_step_of_a_document() -> None:
    assert {row.test for _, row in rows() if row.test} == DATA.proofs.keys()
    assert {step for each in DATA.documents.values() for step in each.steps.values()} == DATA.steps.keys()


def test_every_row_says_one_way_or_why_not() -> None:
    said = [(row, [name for name in KINDS if getattr(row, name)]) for _, row in rows()]
    assert [row for row, names in said if len(names) != 1] == []
    assert {row.name for row, names in said if "test" in names and not row.field} == set()


def test_every_step_is_there() -> None:
    assert {name: list(each.steps) for name, each in DATA.documents.items()} == {
        name: list(range(1, last + 1)) for name, last in STEPS.items()
    }


def test_every_step_has_as_many_flags_as_its_commands_each_once() -> None:
    found = {
        (example, at): [flag.name for flag in DATA.flags(example, step)]
        for example, each in DATA.documents.items()
        for at, step in each.steps.items()
    }
    counts = {key: sum(name.startswith("--") for name in names) for key, names in found.items() if names}
    assert counts == {(example, at): count for example, steps in FLAGS.items() for at, count in steps.items()}
    assert {key: names for key, names in found.items() if len(set(names)) < len(names)} == {}


def test_a_row_is_only_in_documents_that_have_its_step() -> None:
    for key, step in DATA.steps.items():
        users = {name for name, each in DATA.documents.items() if key in each.steps.values()}
        assert {name for flag in step.flags for name in flag.only.split()} <= users, key
    assert {name for each in DATA.results for name in each.only.split()} <= DATA.documents.keys()


@cache
def spec(example: str, folder: str) -> Mapping[str, Any]:
    (found,) = [each for each in render(FOLDER / example / folder) if each["kind"] == "TritonDeployment"]
    return dict(found["spec"])


def values(body: Any, path: list[str]) -> Iterator[Any]:
    """Yield what a field has in each item of the lists on its way."""
    if not path:
        yield body
        return
    found = body.get(path[0].removesuffix("[]"))
    for each in found or () if path[0].endswith("[]") else [found]:
        if each is not None:
            yield from values(each, path[1:])


SETS = [
    (name, row, folder, value)
    for name, each in DATA.documents.items()
    for row in each.values
    for folder, value in row.sets.items()
]


@pytest.mark.parametrize(
    ("example", "row", "folder", "value"), SETS, ids=[f"{name}-{row.name}-{folder}" for name, row, folder, _ in SETS]
)
def test_what_a_row_says_of_a_manifest_is_set_there(example: str, row: Row, folder: str, value: Any) -> None:
    assert value in list(values(spec(example, folder), row.field.split(".")))


def test_values_are_of_the_folders_that_the_page_shows() -> None:
    for each in DATA.documents.values():
        assert {folder for row in each.values for folder in row.sets} == {"base", each.overlay}
        assert all(row.sets for row in each.values)


def test_what_needs_a_gpu_is_set_by_an_overlay() -> None:
    wanted = {(name, row.overlay or DATA.documents[name].overlay, row.field) for name, row in rows() if row.gpu}
    assert wanted
    unset = [
        (name, overlay, field)
        for name, overlay, field in sorted(wanted)
        if not list(values(spec(name, overlay), field.split(".")))
    ]
    assert unset == []


def test_a_column_has_the_heading_of_its_field() -> None:
    headings = {each.heading: each.field.replace("_", "").lower() for each in columns.ALL}
    found = [row for row in DATA.results if row.field.startswith("status.performance.")]
    assert len(found) == 17
    assert [row for row in found if headings[row.gives] != row.field.rpartition(".")[2].lower()] == []
