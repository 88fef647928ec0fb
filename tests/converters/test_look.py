"""Looks: what each scheme's server says that it has now, in how many requests, and what a download of it takes."""

import shutil
from pathlib import Path

import pytest

from tests.converters.cloud_server import Cloud
from tests.converters.downloaded import KEY, download, files, with_secret
from tests.converters.https_server import Behaviour, Server
from tests.converters.hub_server import COMMIT, Hub
from triton_converters import __main__ as program
from triton_converters.contract import layout
from triton_converters.contract.conversion_requests import SourceRequest
from triton_converters.contract.document import DocumentError
from triton_converters.contract.envelope import Outcome
from triton_converters.contract.failure import StageError
from triton_converters.contract.look import LookRequest, LookResult
from triton_converters.contract.reasons import Reason
from triton_converters.fetch import hf
from triton_converters.stages import look


def looked(uri: str, **fields: object) -> LookResult:
    source = SourceRequest("", uri, "", **{"sha256": "", **fields})  # type: ignore[arg-type]  # of the request
    return look.run(LookRequest.from_json(LookRequest(KEY, source).to_json()))


def refusal(uri: str, **fields: object) -> StageError:
    with pytest.raises(StageError) as caught:
        looked(uri, **fields)
    return caught.value


def changed(uri: str, version: str) -> None:
    with pytest.raises(StageError) as caught:
        download(uri, version=version)
    assert (caught.value.reason, caught.value.final) == (Reason.SOURCE_CHANGED, True)
    assert "the operator looks again" in caught.value.message


@pytest.mark.parametrize(
    ("version", "label"), [("", "a"), ("a", ""), ("a" * 257, "a"), ("a", "a\x1b[2J"), ("a\n", "a"), ("a", "a\u202e")]
)
def test_a_version_and_its_label_are_short_and_printable(version: str, label: str) -> None:
    with pytest.raises(DocumentError, match="printable"):
        LookResult(version, exact=True, label=label)


def test_the_job_has_no_claim(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(layout.MOUNT)
    monkeypatch.setenv("TERMINATION_LOG", str(tmp_path / "message"))
    request = LookRequest(KEY, SourceRequest("", server.uri(), "", sha256=""))
    assert program.main(["look", request.to_json()]) == 0
    assert isinstance(Outcome.from_json((tmp_path / "message").read_text()).result, LookResult)
    assert not layout.MOUNT.exists()


def test_a_file_has_the_version_of_its_headers_in_one_request(server: Server) -> None:
    has = server.behaviour
    has.headers = {"Last-Modified": "Mon, 23 Nov 2026 09:00:00 GMT"}
    found = looked(server.uri())
    assert (found.exact, found.label) == (False, "modified 2026-11-23T09:00Z")
    assert len(has.seen) == 1
    assert looked(server.uri()) == found
    assert files(download(server.uri(), version=found.version)) == {"ocr.onnx": has.content}
    has.content, has.tag = b"new", '"version-2"'
    assert looked(server.uri()).version != found.version
    changed(server.uri(), found.version)


@pytest.mark.parametrize(
    "modified",
    [
        "",
        "yesterday",
        "Mon, 99 Nov 2026 09:00:00 GMT",
        f"Mon, 23 Nov {10**30} 09:00:00 GMT",
        f"Mon, 23 Nov 2026 {10**10}:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 -2300",
        f"Mon, 23 Nov 2026 09:00:00 +{10**20}",
    ],
)
def test_without_a_time_the_label_is_the_entity_tag(server: Server, modified: str) -> None:
    server.behaviour.headers = {"Last-Modified": modified}
    assert looked(server.uri()).label == "entity tag '\"version-1\"'"


def test_a_server_that_tells_no_version_is_refused(server: Server) -> None:
    server.behaviour.headers = {"ETag": ""}
    error = refusal(server.uri())
    assert error.reason is Reason.SOURCE_INVALID
    assert "spec.source.interval" in error.message


@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, Reason.SOURCE_ACCESS_DENIED), (404, Reason.SOURCE_NOT_FOUND), (503, Reason.SOURCE_UNREACHABLE)],
)
def test_a_look_fails_as_a_download_does(server: Server, status: int, reason: Reason) -> None:
    server.behaviour.status = status
    assert refusal(server.uri()).reason is reason


def test_a_branch_has_the_version_of_its_commit_in_one_request(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hf.ENDPOINT, f"https://{server.host}")
    hub = server.behaviour.hub = Hub({"model.onnx": b"graph"})
    found = looked("hf://acme/ocr")
    assert found == LookResult(COMMIT, exact=True, label="main, commit 0123456789ab")
    assert len(server.behaviour.seen) == 1
    assert download("hf://acme/ocr", version=found.version).resolved == COMMIT
    hub.commit = "f" * 40
    assert looked("hf://acme/ocr").version == "f" * 40
    with pytest.raises(StageError) as caught:
        download("hf://acme/ocr", version=COMMIT)
    assert caught.value.reason is Reason.SOURCE_NOT_FOUND


@pytest.fixture
def bucket(server: Server) -> Behaviour:
    with_secret(AWS_ENDPOINT_URL=f"https://{server.host}")
    objects = {"ocr/": b"", "ocr/model.onnx": b"graph", "ocr/a/b.bin": b"1", "c.onnx": b"2"}
    server.behaviour.hub = Cloud(objects, "/models")
    return server.behaviour


def test_a_folder_has_the_version_of_its_listing_in_two_requests(bucket: Behaviour) -> None:
    found = looked("s3://models/ocr")
    assert (found.exact, found.label) == (False, "2 objects, newest 2026-11-23T09:00Z")
    assert len(bucket.seen) == 2
    result = download("s3://models/ocr", version=found.version)
    assert files(result) == {"model.onnx": b"graph", "a/b.bin": b"1"}
    assert isinstance(bucket.hub, Cloud)
    bucket.hub.objects["ocr/a/b.bin"] = b"2"
    assert looked("s3://models/ocr").version != found.version
    before = len(bucket.seen)
    changed("s3://models/ocr", found.version)
    assert len(bucket.seen) == before + 2, "nothing was downloaded"


def test_only_what_is_taken_has_a_version(bucket: Behaviour) -> None:
    found = looked("s3://models/ocr", include=("*.onnx",))
    assert isinstance(bucket.hub, Cloud)
    bucket.hub.objects["ocr/a/b.bin"] = b"2"
    assert looked("s3://models/ocr", include=("*.onnx",)).version == found.version


def test_an_object_has_a_version_in_one_request(bucket: Behaviour) -> None:
    found = looked("s3://models/c.onnx")
    assert (found.exact, found.label) == (False, "modified 2026-11-23T09:00Z")
    assert len(bucket.seen) == 1
    assert files(download("s3://models/c.onnx", version=found.version)) == {"c.onnx": b"2"}
    assert isinstance(bucket.hub, Cloud)
    bucket.hub.objects["c.onnx"] = b"3"
    changed("s3://models/c.onnx", found.version)


class Lax(Cloud):
    """It lists objects that are not below the folder that it is asked for."""

    def _listed(self, prefix: str) -> str:
        return super()._listed("")


def test_what_lies_elsewhere_in_a_bucket_is_no_part_of_a_folder(bucket: Behaviour) -> None:
    found = looked("s3://models/ocr")
    assert isinstance(bucket.hub, Cloud)
    bucket.hub = Lax({**bucket.hub.objects, "ocr-2/secret.bin": b"3"}, "/models")
    assert looked("s3://models/ocr") == found
    assert files(download("s3://models/ocr", version=found.version)) == {"model.onnx": b"graph", "a/b.bin": b"1"}
    assert refusal("s3://models/nothing").reason is Reason.SOURCE_NOT_FOUND


@pytest.mark.parametrize("year", ["0000", "+99999", "-0001"])
def test_a_time_that_is_none_is_refused(bucket: Behaviour, year: str) -> None:
    class Odd(Cloud):
        def _listed(self, prefix: str) -> str:
            return super()._listed(prefix).replace("2026-", f"{year}-")

    bucket.hub = Odd({"ocr/model.onnx": b"graph"}, "/models")
    assert "s3://models/ocr has an object that was changed at a time that is none" in refusal("s3://models/ocr").message


def test_a_folder_without_objects_is_not_found(bucket: Behaviour) -> None:
    assert refusal("s3://models/nothing").reason is Reason.SOURCE_NOT_FOUND
