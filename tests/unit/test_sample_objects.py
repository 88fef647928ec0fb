"""Every object of manifests/samples is valid, comes to its end in the simulation, and says what has to be there."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.docs import samples
from tests.simulation.cluster import Cluster
from triton_plugin.__main__ import main

FILES = sorted(samples.FOLDER.glob("*.yaml"))
each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
FEATURES = {
    "accessModes", "approval", "autoscaling", "candidates", "canary", "constraints", "dataloader", "ensemble",
    "gpu", "search", "secretRef", "soak", "thresholds",
}  # fmt: skip
SOURCES = {"pvc", "s3", "hf"}


def body(path: Path) -> dict[str, Any]:
    (found,) = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return dict(found)


def fields(value: Any) -> set[str]:
    if isinstance(value, list):
        return {field for each in value for field in fields(each)}
    if isinstance(value, dict):
        return set(value) | {field for each in value.values() for field in fields(each)}
    return set()


def test_the_samples_show_each_way_to_begin() -> None:
    specs = [body(path)["spec"] for path in FILES]
    assert FEATURES - {field for spec in specs for field in fields(spec)} == set()
    assert {spec["source"]["uri"].partition(":")[0] for spec in specs} == SOURCES


@each_file
def test_a_sample_has_the_name_of_its_file_and_a_short_comment(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = [line for line in lines if line.startswith("#")]
    assert lines[: len(comment)] == comment
    assert len(comment) in {2, 3}
    assert body(path)["metadata"] == {"name": path.stem}


@each_file
def test_the_plugin_takes_a_sample(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: {path.stem}: valid\n"


@each_file
def test_a_sample_serves_or_waits_for_the_person_that_it_asks(path: Path) -> None:
    spec = body(path)["spec"]
    for model in spec["models"]:
        # The simulation knows what a path is by its name.
        model["path"] = "triton-repository/ocr" if model.get("format") == "triton-repository" else model.get("path")
    cluster = Cluster({**spec, "models": [{k: v for k, v in each.items() if v} for each in spec["models"]]})
    cluster.settings = replace(cluster.settings, allowed_python_steps=True)
    cluster.settle(600)
    asks = spec.get("selection", {}).get("approval") == "Manual"
    assert cluster.condition("Ready")["reason"] == ("AwaitingApproval" if asks else "Ready")


def test_a_comment_that_does_not_say_what_has_to_be_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "FOLDER", tmp_path)
    (tmp_path / "a.yaml").write_text("# Shows a thing.\nkind: TritonDeployment\n")
    with pytest.raises(ValueError, match=r"a\.yaml does not say what has to be there: add `# Needs: "):
        samples.samples()
