"""Downloads from buckets: a real server with S3's API, and what the other clouds are asked for."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.converters.cloud_server import Cloud
from tests.converters.downloaded import begun, files, with_secret
from tests.converters.https_server import Server, proxying
from tests.converters.s3_server import KEY, SECRET, Bucket, serving
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.failure import StageError
from triton_converters.contract.reasons import Reason
from triton_converters.contract.results import SourceResult
from triton_converters.fetch import bucket, connection, partial, patience, scheme
from triton_converters.stages import source

OBJECTS = {"ocr/config.json": b"{}", "ocr/onnx/model #1 50%.onnx": bytes(1_000_000), "ocr/empty.txt": b""}
LARGE = bytes(range(256)) * 4000
FILES = {name.removeprefix("ocr/"): content for name, content in OBJECTS.items()}


@pytest.fixture
def models(trusting: None, authority: tuple[Path, Path], tmp_path: Path) -> Iterator[Bucket]:
    (tmp_path / "s3").mkdir()
    with serving(tmp_path / "s3", authority[1]) as models:
        for name, content in OBJECTS.items():
            models.put(name, content)
        models.put("ocr-2/other.txt", b"other")
        with_secret(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET, AWS_ENDPOINT_URL=models.url)
        yield models


def download(uri: str = "s3://models/ocr", **fields: Any) -> SourceResult:
    return source.run(SourceRequest("0123456789abcdef", uri, "", **{"sha256": "", **fields}))


def failure(uri: str = "s3://models/ocr", **fields: Any) -> StageError:
    with pytest.raises(StageError) as caught:
        download(uri, **fields)
    assert SECRET not in caught.value.message
    return caught.value


@pytest.mark.parametrize("uri", ["s3://models/ocr", "s3://models/ocr/"])
def test_a_folder_is_published_as_a_directory(models: Bucket, uri: str) -> None:
    result = download(uri)
    assert files(result) == FILES
    assert (result.resolved, result.files) == ("", len(FILES))


def test_a_bucket_may_be_the_folder(models: Bucket) -> None:
    assert set(files(download("s3://models"))) == {*OBJECTS, "ocr-2/other.txt"}


def test_an_object_is_published_as_a_file_with_its_version(models: Bucket) -> None:
    models.put("ocr/model.onnx", b"graph")
    result = download("s3://models/ocr/model.onnx")
    assert files(result) == {"model.onnx": b"graph"}
    assert result.resolved.startswith('"')


def test_only_what_include_names_is_downloaded(models: Bucket, capfd: pytest.CaptureFixture[str]) -> None:
    assert set(files(download(include=("*.json", "onnx/*")))) == {"config.json", "onnx/model #1 50%.onnx"}
    assert {name for name, _ in begun(capfd)} == {"config.json", "model #1 50%.onnx"}
    assert failure(include=("*.bin",)).reason is Reason.SOURCE_NOT_FOUND


def test_a_typing_error_downloads_nothing(models: Bucket, capfd: pytest.CaptureFixture[str]) -> None:
    assert failure(paths=("onnx/modle.onnx",)).reason is Reason.ENTRYPOINT_INVALID
    assert failure(paths=("onnx",), requirements="r.txt").reason is Reason.REQUIREMENTS_INVALID
    assert failure("s3://models/ocr/config.json", include=("*.onnx",)).reason is Reason.SOURCE_NOT_FOUND
    assert begun(capfd) == []


def test_the_mark_of_an_empty_folder_is_no_file(server: Server) -> None:
    objects = {"ocr/": b"", "ocr/c/": b"", "ocr/c/m.onnx": b"1", "ocr/c/empty.txt": b"", "ocr/c/e/": b"", "ocr/e/": b""}
    server.behaviour.hub = Cloud(objects, "/models")
    with_secret(AWS_ENDPOINT_URL=f"https://{server.host}")
    assert files(download()) == {"c/m.onnx": b"1", "c/empty.txt": b""}
    server.behaviour.hub = Cloud({"ocr/": b"", "ocr/e/": b""}, "/models")
    assert failure().reason is Reason.SOURCE_NOT_FOUND


def test_a_broken_connection_is_gone_on_with(
    models: Bucket, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    models.put("model.bin", LARGE)
    with proxying([10**9, 300_000, 300_000]) as (proxy, connected):
        monkeypatch.setenv(connection.PROXY, proxy)
        assert files(download("s3://models/model.bin")) == {"model.bin": LARGE}
    assert set(connected) == {models.url.removeprefix("https://")}
    assert begun(capfd) == [("model.bin", True), ("model.bin", False), ("model.bin", False)]


def test_another_process_goes_on_where_a_killed_one_stopped(
    models: Bucket, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    models.put("model.bin", LARGE)
    monkeypatch.setattr(patience, "PAUSES", ())
    with proxying([10**9, 300_000]) as (proxy, _):
        monkeypatch.setenv(connection.PROXY, proxy)
        error = failure("s3://models/model.bin")
    assert (error.reason, error.final) == (Reason.SOURCE_TRUNCATED, False)
    monkeypatch.delenv(connection.PROXY)
    assert files(download("s3://models/model.bin")) == {"model.bin": LARGE}
    assert begun(capfd) == [("model.bin", True), ("model.bin", False)]


def test_files_that_came_are_not_asked_for_again_unless_the_folder_has_changed(
    models: Bucket, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    models.put("ocr/zz.bin", LARGE)
    real = bucket.Bucket._try

    def but_the_last(self: Any, path: str, partial: Any) -> str:
        if path.endswith("zz.bin"):
            raise StageError(Reason.SOURCE_UNREACHABLE, "it is not there now", final=False)
        return real(self, path, partial)

    with monkeypatch.context() as broken:
        broken.setattr(bucket.Bucket, "_try", but_the_last)
        failure()
    begun(capfd)
    download()
    assert begun(capfd) == [("zz.bin", True)]
    with monkeypatch.context() as broken:
        broken.setattr(bucket.Bucket, "_try", but_the_last)
        failure()
    models.put("ocr/config.json", b"[]")
    assert files(download())["config.json"] == b"[]"


class Whole:
    """A bucket's server that answers a request for a part otherwise than with that part."""

    def __init__(self, server: Server, status: int, headers: dict[str, str]) -> None:
        self.server, self.status, self.headers = server, status, headers
        self.cloud = Cloud({"model.bin": LARGE}, "/models")

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        status, headers, body = self.cloud.answer(path, authorization)
        if "range" in self.server.behaviour.seen[-1]:
            return self.status, headers | self.headers, body
        return status, headers, body


@pytest.mark.parametrize("tries", [1, 3], ids=["in the next Job", "in the same Job"])
@pytest.mark.parametrize(
    ("status", "content_range"),
    [(200, ""), (206, ""), (206, "bytes"), (206, "bytes 5-9/10"), (206, f"bytes 0-{len(LARGE) - 1}/{len(LARGE)}")],
)
def test_a_server_that_does_not_go_on_with_an_object_sends_it_anew(
    server: Server, status: int, content_range: str, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PAUSES", (0.01,) * (tries - 1))
    server.behaviour.hub = Whole(server, status, {"Content-Range": content_range})
    server.behaviour.breaks = [100_000]
    with_secret(AWS_ENDPOINT_URL=f"https://{server.host}")
    if tries == 1:
        failure("s3://models/model.bin")
        error = failure("s3://models/model.bin")
        assert (error.reason, error.final) == (Reason.SOURCE_TRUNCATED, False)
        assert "the part of the file that was asked for" in error.message
    assert files(download("s3://models/model.bin")) == {"model.bin": LARGE}
    assert [each.get("range", "") for each in server.behaviour.seen][-1] == ""


def test_another_version_begins_anew(models: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PAUSES", ())
    place = layout.ROOT / "sources" / ".tmp-0123456789abcdef-download"
    place.mkdir(parents=True)
    models.put("model.bin", b"x" * 100_000)
    partial.Partial(place, "s3://models/model.bin", "model.bin").write([b"y" * 50_000], '"another"', 0, None)
    error = failure("s3://models/model.bin")
    assert (error.reason, error.final) == (Reason.SOURCE_TRUNCATED, False)
    assert files(download("s3://models/model.bin")) == {"model.bin": b"x" * 100_000}


def test_a_process_that_is_killed_as_another_version_begins_leaves_no_bytes_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = partial.Partial(tmp_path, "s3://models/model.bin", "model.bin")
    file.write([b"old"], '"1"', 0, None)
    write = Path.write_text

    def killed(path: Path, *args: Any, **kw: Any) -> int:
        write(path, *args, **kw)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        file.write([b"new"], '"2"', 0, None)
    assert file.have() == ('"2"', 0)


def test_a_public_bucket_needs_no_keys(models: Bucket) -> None:
    with_secret(AWS_ENDPOINT_URL=models.url)
    error = failure()
    assert (error.reason, error.final) == (Reason.SOURCE_ACCESS_DENIED, True)
    models.make_public()
    assert files(download()) == FILES


def test_a_wrong_key_is_denied_and_not_quoted(models: Bucket, capfd: pytest.CaptureFixture[str]) -> None:
    with_secret(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=f"{SECRET}-2", AWS_ENDPOINT_URL=models.url)
    error = failure(field="spec.weights")
    assert (error.reason, error.final) == (Reason.SOURCE_ACCESS_DENIED, True)
    assert "spec.weights.secretRef" in error.message
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.parametrize("uri", ["s3://models/nothing", "s3://others/ocr", "s3://models/ocr/config.jso"])
def test_what_is_not_there_is_not_found(models: Bucket, uri: str) -> None:
    assert failure(uri).reason is Reason.SOURCE_NOT_FOUND


def test_a_bucket_of_another_region_is_told(models: Bucket) -> None:
    (layout.CREDENTIALS_MOUNT / "AWS_REGION").write_text("eu-west-1")
    error = failure()
    assert error.reason is Reason.SOURCE_INVALID
    assert "AWS_REGION" in error.message


def test_a_server_with_another_authority_is_not_trusted(models: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(connection.CA_BUNDLE)
    error = failure()
    assert (error.reason, error.final) == (Reason.SOURCE_CERTIFICATE_INVALID, True)
    assert "UnknownIssuer" in error.message


@pytest.mark.parametrize(
    ("url", "words"), [("https://127.0.0.1:1", "refused"), ("https://nowhere.invalid", "does not resolve")]
)
def test_nobody_there(mount: Path, monkeypatch: pytest.MonkeyPatch, url: str, words: str) -> None:
    monkeypatch.setattr(patience, "PAUSES", (0.01,))
    with_secret(AWS_ENDPOINT_URL=url)
    error = failure()
    assert (error.reason, error.final) == (Reason.SOURCE_UNREACHABLE, False)
    assert words in error.message


@pytest.mark.parametrize(
    ("scheme", "values"),
    [
        ("s3", {"token": SECRET}),
        ("s3", {"AWS_ACCESS_KEY_ID": SECRET}),
        ("s3", {"AWS_ENDPOINT_URL": f"http://{SECRET}"}),
        ("s3", {"AWS_REGION": f"{SECRET}\nX: 1"}),
        ("s3", {"AWS_ENDPOINT_URL": f"https://{SECRET}:x/"}),
        ("gs", {"token": SECRET}),
        ("gs", {"GOOGLE_APPLICATION_CREDENTIALS_JSON": SECRET}),
        ("gs", {"GOOGLE_APPLICATION_CREDENTIALS_JSON": json.dumps({"private_key": SECRET})}),
        ("azure", {}),
        ("azure", {"AZURE_STORAGE_ACCOUNT_KEY": SECRET}),
        ("azure", {"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_ACCOUNT_KEY": f"{SECRET}!"}),
        ("azure", {"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_SAS_TOKEN": SECRET}),
        ("azure", {"AZURE_STORAGE_ACCOUNT_NAME": "acme", "AZURE_STORAGE_ENDPOINT": "http://acme.example"}),
    ],
)
def test_a_secret_that_does_not_fit_is_refused_and_not_quoted(
    mount: Path, scheme: str, values: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PAUSES", ())
    with_secret(**values)
    error = failure(f"{scheme}://models/ocr")
    assert error.reason is Reason.SOURCE_ACCESS_DENIED
    assert "spec.source.secretRef" in error.message


def test_the_secret_is_nowhere_on_the_claim_nor_in_the_log(models: Bucket, capfd: pytest.CaptureFixture[str]) -> None:
    download()
    assert not [path for path in layout.MOUNT.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert SECRET not in "".join(capfd.readouterr())


def test_a_folder_without_room_is_not_begun(
    models: Bucket, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    usage = SimpleNamespace(total=2**30, used=2**30 - 1000, free=1000)
    monkeypatch.setattr(partial.shutil, "disk_usage", lambda path: usage)
    assert failure().reason is Reason.STORAGE_FULL
    assert begun(capfd) == []


def test_a_bucket_of_google(server: Server) -> None:
    cloud = server.behaviour.hub = Cloud(OBJECTS, "/models")
    account = {
        "gcs_base_url": f"https://{server.host}", "disable_oauth": True, "private_key": "", "private_key_id": "",
        "client_email": "",
    }  # fmt: skip
    with_secret(GOOGLE_APPLICATION_CREDENTIALS_JSON=json.dumps(account, indent=2))
    assert files(download("gs://models/ocr")) == FILES
    assert cloud.queries[1]["prefix"] == ["ocr/"]
    assert files(download("gs://models/ocr/config.json")) == {"config.json": b"{}"}


def test_a_folder_that_changes_while_it_comes_is_downloaded_again(server: Server) -> None:
    listed = OBJECTS | {"ocr/config.json": b"a longer one"}
    cloud = server.behaviour.hub = Cloud(OBJECTS, "/models", listed)
    with_secret(AWS_ENDPOINT_URL=f"https://{server.host}")
    error = failure()
    assert (error.reason, error.final) == (Reason.SOURCE_TRUNCATED, False)
    assert "config.json has 2 bytes, but was listed with 12" in error.message
    cloud.listed = None
    assert files(download()) == FILES


class Replaced(Cloud):
    """All objects become others of the same sizes once the first one came, and what they were when nobody looks."""

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        answer = super().answer(path, authorization)
        if path.endswith("graph.onnx"):
            self.objects = {name: content.replace(b"old", b"new") for name, content in self.objects.items()}
        return answer


def test_a_folder_that_is_replaced_while_it_comes_is_not_published_half_old(server: Server) -> None:
    objects = {"ocr/a/graph.onnx": b"old graph", "ocr/a/weights.bin": b"old weights", "ocr/b/x": b"old"}
    with_secret(AWS_ENDPOINT_URL=f"https://{server.host}")
    for _ in range(2):
        server.behaviour.hub = Replaced(objects, "/models")
        error = failure()
        assert (error.reason, error.final) == (Reason.SOURCE_CHANGED, False)
    assert files(download()) == {"a/graph.onnx": b"new graph", "a/weights.bin": b"new weights", "b/x": b"new"}


def test_what_is_not_taken_of_a_folder_may_change_while_it_comes(server: Server) -> None:
    server.behaviour.hub = Replaced({"ocr/a/graph.onnx": b"graph", "ocr/b/x": b"old"}, "/models")
    with_secret(AWS_ENDPOINT_URL=f"https://{server.host}")
    assert files(download(paths=("a/graph.onnx",))) == {"a/graph.onnx": b"graph"}


@pytest.mark.parametrize(
    "key", [{}, {"ACCOUNT_KEY": base64.b64encode(b"a-key").decode()}, {"SAS_TOKEN": f"sv=2024&sig={SECRET}"}]
)
def test_a_container_of_azure(server: Server, key: dict[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    cloud = server.behaviour.hub = Cloud(OBJECTS, "/acme/models")
    endpoint = f"https://{server.host}/acme"
    secret = {f"AZURE_STORAGE_{name}": value for name, value in key.items()}
    with_secret(AZURE_STORAGE_ACCOUNT_NAME="acme", AZURE_STORAGE_ENDPOINT=endpoint, **secret)
    assert files(download("azure://models/ocr")) == FILES
    assert cloud.queries[1]["prefix"] == ["ocr/"]
    for query in cloud.queries:
        assert ("SharedKey acme:" in query["Authorization"][0]) == ("ACCOUNT_KEY" in key)
        assert (query.get("sig") == [SECRET]) == ("SAS_TOKEN" in key)
    server.behaviour.hub = Cloud({}, "/acme/models")
    failure("azure://models/ocr")
    assert SECRET not in "".join(capfd.readouterr())


@pytest.mark.parametrize("cloud", ["s3", "azure"])
def test_a_serviceaccount_without_an_identity_never_asks_the_node_for_its_own(
    mount: Path, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(scheme.SERVICE_ACCOUNT, "models-reader")
    with_secret(**({"AZURE_STORAGE_ACCOUNT_NAME": "acme"} if cloud == "azure" else {}))
    error = failure(f"{cloud}://models/ocr")
    assert (error.reason, error.final) == (Reason.SOURCE_ACCESS_DENIED, True)
    assert "the cloud gave the pod no identity of ServiceAccount models-reader" in error.message


class Tokens:
    """The server of a cloud that gives keys to a pod with a token of its ServiceAccount, or refuses."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.asked: list[str] = []

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(path)
        keys = (
            f"<AccessKeyId>{KEY}</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
            "<SessionToken></SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>"
        )
        body = (
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult>"
            f"<Credentials>{keys}</Credentials>"
            "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )
        return self.status, {}, body.encode() if self.status == 200 else b""


@pytest.mark.parametrize("status", [200, 403])
def test_a_bucket_of_amazon_knows_the_serviceaccount(
    models: Bucket, server: Server, tmp_path: Path, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = server.behaviour.hub = Tokens(status)
    (tmp_path / "token").write_text("the-pods-token")
    monkeypatch.setenv(scheme.SERVICE_ACCOUNT, "models-reader")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/reader")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"https://{server.host}")
    with_secret(AWS_ENDPOINT_URL=models.url)
    if status == 200:
        assert files(download()) == FILES
    else:
        error = failure()
        assert error.reason is Reason.SOURCE_ACCESS_DENIED
        assert "ServiceAccount models-reader" in error.message
    assert "WebIdentityToken=the-pods-token" in cloud.asked[0]
