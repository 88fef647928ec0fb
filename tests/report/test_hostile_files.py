"""Saved objects and model folders of somebody else: a terminal or a spreadsheet shows them and obeys nothing.

A saved object is a file that people send to each other; so is a model folder.
"""

import copy
import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.custom_resources import MINIMAL, changed
from tests.hostile_text import CONTROLS, HOSTILE, obeyed
from tests.report.subjects import golden
from triton_converters.contract.envelope import Outcome
from triton_plugin.__main__ import main
from triton_plugin.reading.subject import parse
from triton_plugin.telling.progress import Picture
from triton_plugin.telling.report.document import report

HTML = "<img src=x onerror=alert(1)>"
FORMULAS = ["=cmd|'/c calc'!A1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\uff1d1"]
FORMS = ["html", "md", "csv", "json"]


def hostile_object() -> tuple[dict[str, Any], dict[str, Any]]:
    """An object and its results with hostile words in every place that takes some, also inside deflated records."""
    body, results = copy.deepcopy(golden("ready"))
    words = HOSTILE + HTML
    body["metadata"]["name"] = "digits"
    body["spec"]["models"][0]["arguments"] = {f"key {words}": words}
    status = body["status"]
    status["conditions"][0]["message"] = words
    status["candidates"][0]["message"] = status["candidates"][1]["name"] = words
    status["performance"]["environment"] |= {"cpu": words, "serverVersion": words, "perfAnalyzer": [words]}
    status["accuracy"][0] |= {"metric": words, "framework": words, "served": words, "threshold": words}
    results["data"] = {name: hostile_record(text) for name, text in results["data"].items()}
    return body, results


def hostile_record(text: str) -> str:
    """A record whose texts are hostile; deflated, so that no reader of the ConfigMap sees them."""
    try:
        outcome = Outcome.from_json(text)
    except ValueError:
        return text
    assert outcome.result is not None
    whole = json.loads(outcome.to_json())
    if outcome.stage == "convert":
        whole["result"]["warnings"] = [HOSTILE + HTML]
    if outcome.stage == "profile":
        whole["result"]["environment"]["cpu"] = HOSTILE + HTML
    return json.dumps(whole)


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("hostile") / "saved.yaml"
    file.write_text(yaml.safe_dump({"kind": "List", "items": list(hostile_object())}), encoding="utf-8")
    return str(file)


def printed(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    main(command)
    found = capsys.readouterr()
    return found.out + found.err


@pytest.mark.parametrize("form", FORMS)
def test_a_report_of_a_hostile_object_is_printable_in_every_form(
    saved: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, "report", saved, "-o", form)
    assert len(text) > 1000
    assert obeyed(text) == set()
    if form == "html":
        assert HTML not in text
    if form == "md":
        code = [line for line in text.splitlines() if HTML in line]
        assert all(line.startswith("    ") for line in code), "HTML is only in code"


def test_a_candidate_whose_models_have_other_names_is_reported() -> None:
    """One object that another program wrote must not end the page of all objects."""
    body, results = golden("ready")
    for each in body["status"]["candidates"]:
        each["members"] = ["onnx", "a-b"]
    assert report(parse(body, results)).candidates


@pytest.mark.parametrize("command", ["explain", "compare"])
def test_what_is_told_of_a_hostile_object_is_printable(
    saved: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, command, *([saved, saved] if command == "compare" else [saved]))
    assert "Environment" in text or "Measured alike" in text
    assert obeyed(text) == set()


def test_keys_of_a_hostile_object_are_printable() -> None:
    (model,) = parse(*hostile_object()).spec.models
    assert [obeyed(key + value) for key, value in model.arguments.items()] == [set()]


@pytest.mark.parametrize("control", CONTROLS.values(), ids=CONTROLS)
def test_validate_prints_no_control_of_a_name_a_field_or_a_value(
    control: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "object.json"
    body = changed(
        MINIMAL,
        {
            "metadata.name": f"a{control}b",
            f"spec.a{control}b": 1,
            "spec.suspend": f"a{control}b",
        },
    )
    file.write_text(json.dumps(body), encoding="utf-8")
    text = printed(capsys, "validate", str(file))
    is_text = not re.search("[\ud800-\udfff]", control)
    assert ("unknown field" if is_text else "is not Unicode text") in text
    assert obeyed(text) == set()


@pytest.mark.parametrize("metadata", ["a name", ["a"], None, 1])
def test_an_object_without_metadata_is_named_so(
    metadata: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "object.json"
    file.write_text(json.dumps({**MINIMAL, "metadata": metadata}), encoding="utf-8")
    assert f"{file}: (no name): metadata: " in printed(capsys, "validate", str(file))


def test_names_of_files_and_what_is_wrong_with_them_are_printable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = HOSTILE.replace("\x00", "")
    file = tmp_path / f"{name}.yaml"
    file.write_text(f"a: [ '{name}", encoding="utf-8", errors="replace")
    for command in ("validate", "explain", "report"):
        text = printed(capsys, command, str(file))
        assert ".yaml" in text
        assert obeyed(text) == set()
    assert obeyed(printed(capsys, "explain", str(tmp_path / f"absent {name}.yaml"))) == set()


def test_init_of_a_hostile_folder_writes_an_object_that_can_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = HOSTILE.replace("\x00", "")
    (tmp_path / f"model {name}.py").write_text("import torch\ndef get_model(checkpoint_path): ...\n")
    for number in range(3):
        (tmp_path / f"loader {number} {name}.py").write_text("def get_dataloader_fn(): ...\n")
        (tmp_path / f"weights {number} {name}.pt").write_text("")
    text = printed(capsys, "init", str(tmp_path))
    assert obeyed(text) == set()
    # Such a path is refused, in words that can be printed; a plain one is not.
    assert "cannot stand in a TritonDeployment" in text
    (tmp_path / f"model {name}.py").rename(tmp_path / "model.py")
    (tmp_path / f"loader 0 {name}.py").rename(tmp_path / "dataloader.py")
    main(("init", str(tmp_path)))
    found = capsys.readouterr()
    assert yaml.safe_load(found.out)["kind"] == "TritonDeployment"
    assert "also found" in found.out
    assert obeyed(found.out + found.err) == set()


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_is_a_formula(formula: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body, results = copy.deepcopy(golden("ready"))
    for each in body["status"]["candidates"]:
        each["name"] = formula + each["name"]
    body["status"]["serving"]["candidate"] = body["status"]["candidates"][0]["name"]
    body["spec"]["performance"] = {"inputShapes": [{"input": "x", "dims": [1]}]}
    file = tmp_path / "saved.json"
    file.write_text(json.dumps({"kind": "List", "items": [body, results]}), encoding="utf-8")
    lines = list(csv.reader(io.StringIO(printed(capsys, "report", str(file), "-o", "csv"))))
    cells = [cell for line in lines[1:] for cell in line]
    assert f"'{formula}onnx-fp32" in cells
    assert [cell for cell in cells if cell.startswith(tuple("=+-@\t\r\uff1d"))] == []


@pytest.mark.parametrize("name", ["../../escaped", "/tmp/escaped", ".."])
def test_an_objects_name_leads_no_plot_out_of_its_folder(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body, results = copy.deepcopy(golden("ready"))
    body["metadata"]["name"], results["metadata"]["name"] = name, f"{name}-results"
    file = tmp_path / "deep" / "down" / "saved.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"kind": "List", "items": [body, results]}), encoding="utf-8")
    assert "wrote " in printed(capsys, "report", str(file), "-o", "md", "--file", str(file.with_name("report.md")))
    assert {path.parent.name for path in tmp_path.rglob("*.svg")} == {"plots"}


def test_a_picture_of_the_progress_is_printable() -> None:
    subject = parse(*hostile_object())
    line = Picture("Ready", "Reason", subject.status.conditions[0].message, ()).line()
    assert obeyed(line) == set()
