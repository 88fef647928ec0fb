"""The training of the example `fraud` with the real MLflow: what looks find, what is downloaded, and how good it is."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import xgboost

from examples.asking import user_file
from examples.champion import HELD_OUT, METRIC, NAME, VERSIONS
from examples.example import read
from tests.converters.downloaded import download, files, with_secret
from tests.converters.mlflow_server import PASSWORD, USER, Real, serving
from tests.converters.test_look import looked

pytestmark = pytest.mark.integrations
EXAMPLE = read(NAME)


@pytest.fixture(scope="module")
def real(authority: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    folder = tmp_path_factory.mktemp("mlflow")
    with serving(folder, authority[1], authority[0], "--artifacts-destination", str(folder / "artifacts")) as server:
        yield server


@pytest.fixture(autouse=True)
def account(trusting: None) -> None:
    """The stage has the account."""
    with_secret(username=USER, password=PASSWORD)


def f1_score(model: bytes, held_out: Path) -> float:
    """The metric of a model's own answers, by the example's files."""
    ids, inputs, labels = next(user_file(EXAMPLE.folder, "dataloader").get_dataloader_fn(str(held_out), 10_000)())
    booster = xgboost.Booster(model_file=bytearray(model))
    predictions = {"prediction": booster.predict(xgboost.DMatrix(inputs["features"]))}
    calculator = user_file(EXAMPLE.folder, "metrics").MetricsCalculator()
    return float(calculator.calc(ids=ids, y_pred=predictions, x=inputs, y_real=labels)[METRIC])


def test_each_version_takes_the_alias_and_only_the_comparison_refuses_the_last(real: Real) -> None:
    spec, uri, scores = EXAMPLE.deployment["spec"], f"mlflow://{real.host}/{NAME}", []
    for version in VERSIONS:
        told = real.run(str(EXAMPLE.folder / "train.py"), *version.arguments)
        found = looked(uri, revision=spec["source"]["version"])
        assert (found.exact, found.label) == (True, version.label)
        result = download(uri, revision=spec["source"]["version"], version=found.version, models=("MLmodel",))
        assert (result.resolved, result.formats) == (str(version.number), ("xgboost",))
        there = files(result)
        assert {spec["dataloader"]["entrypoint"], spec["metrics"]["entrypoint"]} <= there.keys()
        scores.append(f1_score(there["model.ubj"], real.folder / HELD_OUT))
        assert told == f"version {version.number} of fraud is the champion: f1_score {scores[-1]:.4f}"
    first, second, third = scores
    (threshold,) = spec["accuracy"]["thresholds"]
    assert min(scores) > threshold["min"], "a threshold alone lets all of them serve"
    assert second > max(first, third) + 0.1
    page = (EXAMPLE.folder / "README.md").read_text(encoding="utf-8")
    assert [float(each) for each in re.findall(r"^\| \d \| .* \| (0\.\d{3}) \|", page, re.MULTILINE)] == pytest.approx(
        scores, abs=0.02
    ), "of another release of XGBoost"
