import json
from pathlib import Path

import pytest
import yaml

from tests.apiserver.custom_resources import MINIMAL, changed
from tests.report.subjects import golden
from triton_plugin.__main__ import main


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
    assert main(["report", saved, "--output", str(tmp_path / "report.md")]) == 0
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
    assert "no cluster is configured" in capsys.readouterr().err
