import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.apiserver.custom_resources import MINIMAL, changed
from tests.report.subjects import golden
from triton_plugin.__main__ import main
from triton_plugin.command_line import COMMANDS
from triton_plugin.exits import Exit
from triton_plugin.reading.subject import parse
from triton_plugin.telling.report.as_csv import metrics_csv
from triton_plugin.telling.report.document import report


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """What kubectl printed of an object and its results."""
    file = tmp_path / "digits.yaml"
    file.write_text(yaml.safe_dump({"kind": "List", "items": list(golden("ready"))}), encoding="utf-8")
    return str(file)


def test_a_report_in_each_form(saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", saved, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "digits"
    assert main(["report", saved, "-o", "csv"]) == 0
    assert capsys.readouterr().out.startswith("Candidate,Measured on,Scenario,Configuration,Precision,")
    assert main(["report", saved, "--output", "csv"]) == 0
    assert capsys.readouterr().out.startswith("Candidate,"), "-o and --output are one option, as kubectl's are"
    assert main(["report", saved, "--file", str(tmp_path / "report.md")]) == 0
    assert (tmp_path / "report.md").read_text().startswith("# ")
    assert capsys.readouterr() == ("", f"wrote {tmp_path / 'report.md'}\n")
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "digits-offline-throughput.svg",
        "digits-offline-latency.svg",
        "digits-online-latency.svg",
        "digits-saturation.svg",
        "digits-tradeoff.svg",
    }
    assert main(["report", saved]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("<!doctype html>")
    assert err == ""


def test_no_file_gets_a_form_that_its_name_does_not_tell(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.pdf"
    assert main(["report", saved, "--file", str(file)]) == 1
    assert "does not end with .html, .md, .csv, .json: say which form it has" in capsys.readouterr().err
    assert not file.exists()
    assert main(["report", saved, "--file", str(file), "-o", "csv"]) == 0
    assert file.read_text().startswith("Candidate,")


def test_a_folder_gets_each_form_and_the_tables_that_nvidias_readmes_end_with(saved: str, tmp_path: Path) -> None:
    folder = tmp_path / "outcome"
    assert main(["report", saved, "--file", str(folder)]) == 0
    sweeps = ("triton_performance_offline.csv", "triton_performance_online.csv")
    assert {each.name for each in folder.iterdir()} == {
        *("report.html", "report.md", "report.json", "plots", "accuracy_metrics.csv", *sweeps),
    }
    lines = [[*csv.DictReader((folder / name).open(encoding="utf-8"))] for name in sweeps]
    assert [{each["Scenario"] for each in found} for found in lines] == [{"Offline"}, {"Online"}]
    everything = report(parse(*golden("ready")))
    framework, *served = csv.DictReader((folder / "accuracy_metrics.csv").open(encoding="utf-8"))
    metric, of_active = everything.accuracy[0].metric, everything.accuracy[0].served
    assert framework == {"Outputs of": "framework", "Samples": "64", metric: everything.accuracy[0].framework}
    assert everything.serving is not None
    assert {each["Outputs of"]: each[metric] for each in served}[everything.serving.candidate] == of_active


def test_an_object_without_metrics_has_no_table_of_them() -> None:
    assert metrics_csv(report(parse(*golden("new-object")))) == ""


def test_explain_and_compare(saved: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["explain", saved]) == 0
    assert "is ready" in capsys.readouterr().out
    assert main(["compare", saved, saved]) == 0
    out = capsys.readouterr().out
    assert "Measured alike" in out
    assert "+0 %" in out
    assert "…" not in out


def test_validate_says_what_and_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(yaml.safe_dump(MINIMAL))
    bad.write_text(yaml.safe_dump(changed(MINIMAL, {"spec.models.0.candidates.0.accelerator": "trt"})))
    assert main(["validate", str(good)]) == 0
    assert capsys.readouterr().out == f"{good}: digits: valid\n"
    assert main(["validate", str(good), str(bad)]) == 1
    assert f"{bad}: digits: spec: accelerators cuda, trt and amp need a GPU: set spec.gpu" in capsys.readouterr().out


def test_validate_takes_a_repository_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "ocr/kustomization.yaml": "kind: Kustomization\nresources: [ocr.yaml]\n",
        "ocr/ocr.yaml": yaml.safe_dump_all([in_namespace("vision"), {"kind": "Secret"}, in_namespace("test")]),
        "templates/chart.yaml": "{{- if .Values.enabled }}\nkind: Secret\n{{- end }}\n",
        ".git/old.yaml": "kind: TritonDeployment\n",
        "README.md": "kind: TritonDeployment\n",
        "list.json": json.dumps({"kind": "List", "items": None}),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["validate", "."]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "list.json: skipped: contains no TritonDeployment",
        "ocr/kustomization.yaml: skipped: contains no TritonDeployment",
        "ocr/ocr.yaml: vision/digits: valid",
        "ocr/ocr.yaml: test/digits: valid",
        "templates/chart.yaml: skipped: contains no TritonDeployment",
    ]


def in_namespace(name: str) -> dict[str, Any]:
    return changed(MINIMAL, {"metadata.namespace": name})


def test_validate_takes_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(yaml.safe_dump(MINIMAL)))
    assert main(["validate", "-"]) == 0
    assert capsys.readouterr().out == "-: digits: valid\n"


def test_validate_does_not_wait_for_a_person_to_type(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = io.StringIO(yaml.safe_dump(MINIMAL))
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", terminal)
    assert main(["validate"]) == Exit.USAGE
    assert "name the files to check" in capsys.readouterr().err
    assert main(["validate", "-"]) == Exit.OK, "it was asked for"


@pytest.mark.parametrize("command", [["explain"], ["report", "-o", "csv"]])
def test_whoever_reads_no_further_is_told_nothing(
    saved: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """As where `| head -1` has what it wants."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w", encoding="utf-8") as out:
        monkeypatch.setattr("sys.stdout", out)
        assert main([*command, saved]) == Exit.FAILED
        out.flush()
    assert capsys.readouterr().err == ""


def test_a_command_that_is_interrupted_as_it_starts_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("triton_plugin.__main__.import_module", interrupted)
    assert main(["explain", "digits"]) == Exit.INTERRUPTED


def test_a_folder_of_hostile_depth_is_said_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.py").write_text("import torch\ndef get_model(): ...\n")
    place = os.open(tmp_path, os.O_DIRECTORY)
    for _ in range(2 * sys.getrecursionlimit()):
        os.mkdir("d", dir_fd=place)
        below = os.open("d", os.O_DIRECTORY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    try:
        # From Python 3.12 on, its walk does not recurse.
        assert main(["init", str(tmp_path)]) in (Exit.OK, Exit.FAILED)
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)
    assert "Traceback" not in capsys.readouterr().err


def test_to_check_nothing_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("kind: Secret\n")
    assert main(["validate", str(other)]) == 1
    assert "Nothing was checked: no TritonDeployment is in what you named." in capsys.readouterr().out
    assert main(["validate", str(tmp_path / "none.yaml")]) == 1
    assert capsys.readouterr().out == f"{tmp_path / 'none.yaml'}: No such file or directory\n"


def test_what_a_file_system_refuses_is_said_without_a_number(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "none" / "report.html"
    assert main(["report", saved, "--file", str(place)]) == 1
    assert capsys.readouterr().err == f"kubectl triton: {place}: No such file or directory\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_of_every_command_is_described(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "-h"])
    assert re.findall(r"^  \S+\n(?!   )", capsys.readouterr().out, re.MULTILINE) == []


@pytest.mark.parametrize(
    ("text", "words"), [("a: [", "is not a saved TritonDeployment"), ("kind: Pod\n", "contains 0 objects of kind")]
)
def test_a_file_that_is_none_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    assert main(["explain", str(file)]) == 1
    assert words in capsys.readouterr().err


def test_no_cluster_is_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    assert main(["explain", "digits"]) == 1
    said = "no cluster is configured (Invalid kube-config file. No configuration found): set KUBECONFIG"
    assert said in capsys.readouterr().err
