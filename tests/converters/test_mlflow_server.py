"""Downloads from the real MLflow, which requirements/mlflow.txt pins, and whose library logs and registers models."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.converters import s3_server
from tests.converters.downloaded import begun, download, files, with_secret
from tests.converters.https_server import proxying
from tests.converters.mlflow_server import PASSWORD, USER, Real, serving
from tests.converters.pushed import GRAPH
from tests.converters.test_look import looked, refusal
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import connection

pytestmark = pytest.mark.integrations
LARGE = bytes(range(256)) * 4000
PROGRAM = """
import sys, mlflow, onnx
graph, file = sys.stdin.buffer.read(), sys.argv[1]
client = mlflow.MlflowClient()
for _ in range(2):
    with mlflow.start_run():
        model = onnx.load_model_from_string(graph)
        mlflow.onnx.log_model(model, name="net", registered_model_name="fraud", pip_requirements=[])
client.set_registered_model_alias("fraud", "champion", 1)
client.create_registered_model("of a run")
run = client.create_run(client.create_experiment("of a run"))
client.log_artifact(run.info.run_id, file, "model")
client.create_model_version("of a run", f"runs:/{run.info.run_id}/model", run.info.run_id)
client.create_registered_model("in-a-bucket")
run = client.create_run(client.create_experiment("in-a-bucket", "s3://models/experiment"))
client.create_model_version("in-a-bucket", run.info.artifact_uri, run.info.run_id)
print(run.info.artifact_uri)
"""
"""Logs a graph twice and aliases the first; registers what lies below a run, as older versions did, and in a bucket."""


@dataclass(frozen=True)
class Registry:
    """A running server with these models."""

    server: Real
    in_bucket: str
    """Where the files of ``in-a-bucket`` are to lie."""

    def uri(self, name: str = "fraud") -> str:
        return f"mlflow://{self.server.host}/{name}"


@pytest.fixture(scope="module")
def real(authority: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("mlflow")
    (folder / "model.bin").write_bytes(LARGE)
    with serving(folder, authority[1], authority[0], "--artifacts-destination", str(folder / "artifacts")) as server:
        yield Registry(server, server.run("-c", PROGRAM, str(folder / "model.bin"), input=GRAPH))


@pytest.fixture(autouse=True)
def account(trusting: None) -> None:
    """The stage has the account."""
    with_secret(username=USER, password=PASSWORD)


def failure(uri: str, **fields: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        download(uri, **fields)
    assert PASSWORD not in caught.value.message
    return caught.value


def test_a_model_is_followed_by_its_alias(real: Registry) -> None:
    first = looked(real.uri(), revision="champion")
    assert (first.exact, first.label) == (True, "version 1 (champion)")
    result = download(real.uri(), revision="champion", version=first.version, models=("MLmodel",))
    assert (result.resolved, result.formats) == ("1", ("onnx",))
    assert [each.file for each in result.repositories if each] == ["model.onnx"]
    assert {"MLmodel", "model.onnx", "conda.yaml"} <= files(result).keys()
    assert looked(real.uri(), revision="champion") == first
    real.server.set_alias("fraud", "champion", "2")
    second = looked(real.uri(), revision="champion")
    assert second.label == "version 2 (champion)"
    assert second.version.partition("@")[2] != first.version.partition("@")[2], "files of the same names and sizes"
    assert download(real.uri(), revision="champion", version=first.version).resolved == "1", (
        "the one that was asked for"
    )
    assert looked(real.uri(), revision="1").version == first.version


@pytest.mark.parametrize(
    ("name", "revision"), [("unknown", "champion"), ("unknown", "1"), ("fraud", "nobody"), ("fraud", "9")]
)
def test_what_is_not_there_is_not_found(real: Registry, name: str, revision: str) -> None:
    error = failure(real.uri(name), revision=revision)
    assert error.reason is Reason.SOURCE_NOT_FOUND
    assert f"no model '{name}' with version {revision}" in error.message


@pytest.mark.parametrize("secret", [{}, {"username": USER, "password": "another"}, {"token": "t"}])
def test_without_the_account_there_is_no_access(real: Registry, secret: dict[str, str]) -> None:
    with_secret(**secret)
    assert failure(real.uri(), revision="champion").reason is Reason.SOURCE_ACCESS_DENIED
    assert refusal(real.uri(), revision="champion").reason is Reason.SOURCE_ACCESS_DENIED


def test_the_artifacts_of_a_run_are_gone_on_with_after_a_break(
    real: Registry, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with proxying([300_000, 300_000]) as (proxy, _):
        monkeypatch.setenv(connection.PROXY, proxy)
        assert files(download(real.uri("of%20a%20run"), revision="1")) == {"model.bin": LARGE}
    assert begun(capfd) == [("model.bin", True), ("model.bin", False), ("model.bin", False)]


def test_the_artifacts_in_a_bucket_are_read_there(real: Registry, authority: tuple[Path, Path], tmp_path: Path) -> None:
    name = f"{real.in_bucket.removeprefix('s3://models/')}/model.onnx"
    with s3_server.serving(tmp_path, authority[1]) as bucket:
        bucket.put(name, GRAPH)
        keys = {"AWS_ACCESS_KEY_ID": s3_server.KEY, "AWS_SECRET_ACCESS_KEY": s3_server.SECRET}
        with_secret(username=USER, password=PASSWORD, AWS_ENDPOINT_URL=bucket.url, **keys)
        found = looked(real.uri("in-a-bucket"), revision="1")
        result = download(real.uri("in-a-bucket"), revision="1", version=found.version)
        assert files(result) == {"model.onnx": GRAPH}
        assert (found.label, result.resolved) == ("version 1", "1")
        bucket.put(name, GRAPH + b" ")
        error = failure(real.uri("in-a-bucket"), revision="1", version=found.version)
        assert error.reason is Reason.SOURCE_CHANGED
