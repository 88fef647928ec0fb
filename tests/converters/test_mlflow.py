"""Downloads from MLflow: where a version's files are, and the answers that no MLflow server gives."""

import json
from typing import Any

import pytest

from tests.conftest import Attack
from tests.converters.cloud_server import Cloud
from tests.converters.downloaded import download, files, with_secret
from tests.converters.https_server import Behaviour, Server, serving
from tests.converters.mlflow_server import API, ARTIFACTS, FOLDER, Mlflow
from tests.converters.test_look import changed, looked, refusal
from triton_converters.contract.failure import StageError
from triton_converters.contract.look import LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import connection, mlflow

SECRET = "a-secret-that-nobody-else-may-read"
FILES = {
    "MLmodel": b"flavors: {}\n",
    "data/model #1.onnx": bytes(300_000),
    "data/deep/er/a.txt": b"",
    "conda.yaml": b"c",
}
CHAMPION = {"revision": "champion"}
GET, LIST = f"{API}model-versions/get?", f"{ARTIFACTS}?path="


@pytest.fixture
def registry(server: Server) -> Mlflow:
    registry = server.behaviour.hub = Mlflow(dict(FILES))
    return registry


def uri(server: Server, name: str = "fraud") -> str:
    return f"mlflow://{server.host}/{name}"


def failure(server: Server, name: str = "fraud", **fields: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        download(uri(server, name), **{**CHAMPION, **fields})
    assert SECRET not in caught.value.message
    return caught.value


def test_a_version_is_published_as_a_directory_with_its_number(server: Server, registry: Mlflow) -> None:
    result = download(uri(server), **CHAMPION)
    assert files(result) == FILES
    assert result.resolved == "7"
    assert download(uri(server), revision="7") == result


def test_a_look_asks_for_the_version_its_place_and_each_folder(server: Server, registry: Mlflow) -> None:
    found = looked(uri(server), **CHAMPION)
    assert (found.exact, found.label) == (True, "version 7 (champion)")
    assert [each.partition("?")[0] for each in registry.seen] == [
        f"{API}registered-models/alias",
        f"{API}model-versions/get-download-uri",
        *[ARTIFACTS] * 4,
    ]
    assert looked(uri(server), revision="7") == LookResult(found.version, exact=True, label="version 7")
    assert found.version.startswith("7@")
    registry.source = registry.location
    registry.seen.clear()
    assert looked(uri(server), **CHAMPION) == found, "wherever it was registered from"
    assert len(registry.seen) == 5


def test_a_version_that_was_looked_at_is_the_one_that_is_taken(server: Server, registry: Mlflow) -> None:
    first = looked(uri(server), **CHAMPION).version
    registry.number = "8"
    assert looked(uri(server), **CHAMPION).version != first
    assert failure(server, version=first).reason is Reason.SOURCE_NOT_FOUND
    registry.number = "7"
    assert files(download(uri(server), version=first, **CHAMPION)) == FILES
    registry.files["data/model #1.onnx"] += b"the rest of it"
    assert looked(uri(server), **CHAMPION).version != first, "it was half written"
    changed(uri(server), first)


def test_a_version_that_changes_while_it_is_read_is_not_taken(server: Server, registry: Mlflow) -> None:
    class Changing(Mlflow):
        def _told(self, path: str) -> Any:
            found = super()._told(path)
            if path.endswith("conda.yaml"):
                self.files["new.txt"] = b"new"
            return found

    server.behaviour.hub = Changing(dict(FILES))
    error = failure(server)
    assert (error.reason, error.final) == (Reason.SOURCE_CHANGED, False)
    assert files(download(uri(server), **CHAMPION)) == FILES | {"new.txt": b"new"}


def test_only_what_include_names_is_downloaded(server: Server, registry: Mlflow) -> None:
    assert set(files(download(uri(server), include=("data/*",), **CHAMPION))) == {
        "data/model #1.onnx",
        "data/deep/er/a.txt",
    }
    assert failure(server, paths=("modle",)).reason is Reason.ENTRYPOINT_INVALID


@pytest.mark.parametrize(
    ("source", "location"),
    [
        ("runs:/r-1/artifacts", "mlflow-artifacts:/1/models/m-1"),
        ("models:/fraud/3", f"mlflow-artifacts:/{FOLDER}"),
        ("models:/m-1", "runs:/r-1"),
        (f"mlflow-artifacts://HOST/{FOLDER}", ""),
        (f"https://HOST{ARTIFACTS}/{FOLDER}", ""),
    ],
)
def test_the_server_says_where_the_files_are(server: Server, registry: Mlflow, source: str, location: str) -> None:
    with_secret(token=SECRET)
    registry.source, registry.location = source.replace("HOST", server.host), location
    if location.startswith("runs:/"):
        registry.wrong[f"{API}runs/get"] = {"run": {"info": {"artifact_uri": f"mlflow-artifacts:/{FOLDER}"}}}
    assert files(download(uri(server), **CHAMPION)) == FILES
    assert {each.partition(" ")[2] for each in registry.seen} == {f"Bearer {SECRET}"}


def test_a_server_may_have_a_prefix_and_a_name_any_characters(server: Server, registry: Mlflow) -> None:
    class Prefixed(Mlflow):
        def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
            assert path.startswith("/team+1/mlflow/"), path
            return super().answer(
                path.removeprefix("/team+1/mlflow").replace("name=a+fraud%26", "name=fraud"), authorization
            )

    server.behaviour.hub = Prefixed(dict(FILES))
    assert files(download(uri(server, "team+1/mlflow/a%20fraud%26"), **CHAMPION)) == FILES


@pytest.mark.parametrize(
    ("values", "header"),
    [
        ({"token": SECRET}, f"Bearer {SECRET}"),
        ({"username": "ann", "password": "pass:word"}, "Basic YW5uOnBhc3M6d29yZA=="),
    ],
)
def test_the_secrets_values_are_the_credentials(
    server: Server, registry: Mlflow, values: dict[str, str], header: str
) -> None:
    with_secret(**values)
    looked(uri(server), **CHAMPION)
    assert {each.partition(" ")[2] for each in registry.seen} == {header}


def test_another_servers_artifacts_are_read_without_the_secret(
    server: Server, registry: Mlflow, authority: Any, attack: Attack
) -> None:
    with_secret(token=SECRET)
    with serving(authority[1], Behaviour(hub=Mlflow(dict(FILES)))) as other:
        registry.source = f"mlflow-artifacts://{other.host}/{FOLDER}"
        assert files(download(uri(server), **CHAMPION)) == FILES
        assert {each.get("Authorization") for each in other.behaviour.seen} == {None}
    attack("server of a source", "another host, named as the place of a model's files", "it gets no credentials")


@pytest.mark.parametrize(
    ("secret", "words"),
    [({"user": SECRET}, "lacks the keys of this scheme"), ({"username": SECRET}, "lacks the keys of this scheme")],
)
def test_a_secret_that_does_not_fit_is_refused_and_not_quoted(
    server: Server, registry: Mlflow, secret: dict[str, str], words: str
) -> None:
    with_secret(**secret)
    error = failure(server)
    assert error.reason is Reason.SOURCE_ACCESS_DENIED
    assert words in error.message
    assert registry.seen == []


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        (
            "fraud",
            {"revision": "challenger"},
            "with version challenger; correct spec.source.uri or spec.source.version",
        ),
        ("fraud", {"revision": "8"}, "no model 'fraud' with version 8"),
        ("frad", {}, "no model 'frad' with version champion"),
    ],
)
def test_what_is_not_there_is_not_found(
    server: Server, registry: Mlflow, name: str, fields: dict[str, str], words: str
) -> None:
    error = failure(server, name, **fields)
    assert error.reason is Reason.SOURCE_NOT_FOUND
    assert words in error.message


def test_a_version_must_be_named(server: Server, registry: Mlflow) -> None:
    error = failure(server, revision="")
    assert error.reason is Reason.SOURCE_INVALID
    assert "an alias or the number of a version in spec.source.version" in error.message


def test_a_version_that_is_not_ready_is_tried_again(server: Server, registry: Mlflow) -> None:
    registry.status = "PENDING_REGISTRATION"
    error = refusal(uri(server), **CHAMPION)
    assert error.reason is Reason.SOURCE_NOT_FOUND
    assert "'PENDING_REGISTRATION', and not READY yet" in error.message


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((401, b"<html>"), Reason.SOURCE_ACCESS_DENIED),
        ((403, b"Permission denied"), Reason.SOURCE_ACCESS_DENIED),
        ((404, b"<html>"), Reason.SOURCE_NOT_FOUND),
        pytest.param((404, b"[" * 100_000), Reason.SOURCE_NOT_FOUND, id="deep error"),
        ((400, b"[]"), Reason.SOURCE_INVALID),
        ((400, b'{"error_code": "INTERNAL_ERROR"}'), Reason.SOURCE_INVALID),
        ((503, b"{}"), Reason.SOURCE_UNREACHABLE),
        ((200, b"<html>Sign in"), Reason.SOURCE_INVALID),
        pytest.param((200, b"[" * 100_000), Reason.SOURCE_INVALID, id="deep"),
        ((200, b"\xff"), Reason.SOURCE_INVALID),
        ((200, b"[]"), Reason.SOURCE_INVALID),
        ((200, b'{"model_version": 1}'), Reason.SOURCE_INVALID),
        pytest.param((200, b"{" + b" " * mlflow.LARGEST_ANSWER), Reason.SOURCE_INVALID, id="long"),
    ],
)
def test_each_answer_about_a_version_has_its_reason(
    server: Server, registry: Mlflow, answer: tuple[int, bytes], reason: Reason
) -> None:
    registry.wrong[API] = answer
    assert refusal(uri(server), **CHAMPION).reason is reason


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 7},
        {"version": "07"},
        {"version": "8"},
        {"version": "7\n"},
        {"status": None},
        {"source": {}},
        {"source": "mlflow-artifacts:/1/\ud800"},
    ],
)
def test_a_version_of_another_form_is_refused(server: Server, registry: Mlflow, changes: dict[str, Any]) -> None:
    told = {"version": "7", "status": "READY", "source": registry.location}
    registry.wrong[GET] = {"model_version": told | changes}
    error = refusal(uri(server), revision="7")
    assert error.reason is Reason.SOURCE_INVALID
    assert "not one of an MLflow server" in error.message


@pytest.mark.parametrize(
    "source",
    [
        "file:///etc",
        "/mlruns/1",
        "dbfs:/models",
        "http://127.0.0.1/api/2.0/mlflow-artifacts/artifacts/1",
        "https://127.0.0.1/models/1",
        f"https://u:p@127.0.0.1{ARTIFACTS}/1",
        f"https://127.0.0.1{ARTIFACTS}/../../users",
        "mlflow-artifacts:/1/../../users",
        "mlflow-artifacts:/",
        "mlflow-artifacts://127.0.0.1:x/1",
        "s3://Models/1",
        "s3://models/../1",
        "models:/m-1",
        pytest.param("x" * 100_000, id="long"),
        "\x1b[2J",
    ],
)
def test_a_place_that_is_not_read_is_told(server: Server, registry: Mlflow, source: str) -> None:
    registry.source, registry.location = "models:/m-1", source
    error = refusal(uri(server), **CHAMPION)
    assert error.reason is Reason.SOURCE_INVALID
    assert "where they cannot be read" in error.message
    assert error.message.isprintable()
    assert len(error.message) < 400


def listing(*files: Any) -> dict[str, Any]:
    return {"files": list(files)}


@pytest.mark.parametrize(
    "listed",
    [
        b"<html>",
        pytest.param(b"[" * 100_000, id="deep"),
        [],
        {"files": 1},
        listing("model.onnx"),
        listing({"path": "model.onnx"}),
        listing({"path": "model.onnx", "is_dir": False}),
        listing({"path": "model.onnx", "is_dir": False, "file_size": "1"}),
        listing({"path": "model.onnx", "is_dir": False, "file_size": -1}),
        listing({"path": 1, "is_dir": False, "file_size": 1}),
        listing({"path": ["a"], "is_dir": False, "file_size": 1}),
        listing({"path": {}, "is_dir": True}),
        listing({"path": "../model.onnx", "is_dir": False, "file_size": 1}),
        listing({"path": "a/model.onnx", "is_dir": False, "file_size": 1}),
        listing({"path": "..", "is_dir": True}),
        listing({"path": "", "is_dir": True}),
        listing({"path": ".triton-operator", "is_dir": True}),
        listing({"path": "a\\b", "is_dir": False, "file_size": 1}),
        listing({"path": "a\x00b", "is_dir": False, "file_size": 1}),
        listing({"path": "\ud800", "is_dir": False, "file_size": 1}),
        listing({"path": "a" * 300, "is_dir": False, "file_size": 1}),
        listing(*[{"path": "a", "is_dir": False, "file_size": 1}] * 2),
        listing({"path": "a", "is_dir": False, "file_size": 1}, {"path": "a", "is_dir": True}),
        listing(*[{"path": str(number), "is_dir": False, "file_size": 1} for number in range(20_001)]),
        pytest.param(b'{"files": [' + b" " * mlflow.LARGEST_ANSWER, id="long"),
    ],
)
def test_a_listing_that_no_server_gives_is_refused(server: Server, registry: Mlflow, listed: Any) -> None:
    registry.wrong[LIST + FOLDER.replace("/", "%2F") + "%2F"] = listing({"path": "b", "is_dir": False, "file_size": 1})
    registry.wrong[LIST] = listed
    error = refusal(uri(server), **CHAMPION)
    assert error.reason is Reason.SOURCE_INVALID
    assert error.message.isprintable()


@pytest.mark.parametrize("names", [["a"], ["a", "b"]], ids=["deep", "wide and deep"])
def test_folders_without_end_are_bounded(
    server: Server, registry: Mlflow, names: list[str], monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    monkeypatch.setattr(mlflow, "MOST_FOLDERS", 20)
    registry.wrong[LIST] = listing(*[{"path": name, "is_dir": True} for name in names])
    error = refusal(uri(server), **CHAMPION)
    assert error.reason is Reason.SOURCE_INVALID
    assert "more than 20 folders" in error.message
    assert len(registry.seen) == 22
    attack("server of a source", "a listing of folders without end", "it is refused after 256 of them")


def test_an_answer_byte_by_byte_is_given_up(
    server: Server, registry: Mlflow, monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.2)
    server.behaviour.pause = 0.02
    error = refusal(uri(server), **CHAMPION)
    assert (error.reason, error.final) == (Reason.SOURCE_UNREACHABLE, False)
    assert "whole answer in 0.2 s" in error.message
    attack("server of a source", "an answer of a few bytes a minute", "it is given up after 60 s")


@pytest.mark.parametrize("location", ["http://169.254.169.254/latest/meta-data", "file:///etc/passwd"])
def test_a_redirect_that_leaves_https_is_refused(server: Server, registry: Mlflow, location: str) -> None:
    class Redirecting(Mlflow):
        def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
            return 302, {"Location": location}, b""

    server.behaviour.hub = Redirecting({})
    error = refusal(uri(server), **CHAMPION)
    assert error.reason is Reason.SOURCE_INVALID
    assert "redirects to something that is not a plain https URL" in error.message


def test_the_files_in_a_bucket_are_read_with_the_buckets_keys(server: Server, registry: Mlflow, authority: Any) -> None:
    objects = {
        f"1/m/{name}": content for name, content in {"MLmodel": b"flavors:", "data/model.onnx": b"graph"}.items()
    }
    registry.source = "s3://models/1/m"
    with serving(authority[1], Behaviour(hub=Cloud(dict(objects), "/models"))) as bucket:
        with_secret(token=SECRET, AWS_ENDPOINT_URL=f"https://{bucket.host}")
        found = looked(uri(server), **CHAMPION)
        result = download(uri(server), version=found.version, **CHAMPION)
        assert files(result) == {"MLmodel": b"flavors:", "data/model.onnx": b"graph"}
        assert (found.label, result.resolved) == ("version 7 (champion)", "7")
        assert SECRET not in json.dumps(bucket.behaviour.seen)
        assert isinstance(bucket.behaviour.hub, Cloud)
        bucket.behaviour.hub.objects["1/m/MLmodel"] = b"other"
        changed(uri(server), found.version)
